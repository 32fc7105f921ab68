# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# NVMe over Fabrics: a target on disks in memory, and a host that connects to it.
# Sourced after lib.sh and storage.sh.
# shellcheck disable=SC2034,SC2154  # variables travel between the parts

nvmet=/sys/kernel/config/nvmet
nvme_host=nqn.2014-08.org.nvmexpress:uuid:7f7a8e0e-0000-4000-8000-000000000001

# subsystem NAME MEGABYTES: on a disk in memory.
subsystem() {
	local dir=$nvmet/subsystems/$1
	memory_disk "weft$1" "$2"
	mkdir -p "$dir/namespaces/1"
	echo 1 >"$dir/attr_allow_any_host"
	echo "$disk" >"$dir/namespaces/1/device_path"
	echo 1 >"$dir/namespaces/1/enable"
}

# port_up SUBSYSTEM...: the port that serves them.
port_up() {
	local port=$nvmet/ports/1 name
	mkdir -p "$port"
	echo rdma >"$port/addr_trtype"
	echo ipv4 >"$port/addr_adrfam"
	echo "$addr4" >"$port/addr_traddr"
	echo 4420 >"$port/addr_trsvcid"
	for name; do ln -s "$nvmet/subsystems/$name" "$port/subsystems/$name"; done
}

port_down() {
	rm -f "$nvmet"/ports/1/subsystems/*
	rmdir "$nvmet/ports/1"
}

# target_down SUBSYSTEM...: the end of all that.
target_down() {
	local name
	port_down
	for name; do
		echo 0 >"$nvmet/subsystems/$name/namespaces/1/enable"
		rmdir "$nvmet/subsystems/$name/namespaces/1" "$nvmet/subsystems/$name"
	done
	memory_disks_gone
}

# controllers NQN: the ones connected to it.
controllers() { grep -lx "$1" /sys/class/nvme/nvme*/subsysnqn 2>/dev/null | xargs -r -n1 dirname; }

# connect NQN [OPTION]...: its namespace in $ns, its controller in $ctrl.
connect() {
	local nqn=$1
	shift
	limit 60 nvme connect -t rdma -a "$addr4" -s 4420 -n "$nqn" -q "$nvme_host" \
		--nr-io-queues=2 --reconnect-delay=1 --ctrl-loss-tmo=60 --keep-alive-tmo=5 "$@"
	ctrl=$(controllers "$nqn" | tail -n 1)
	until_true 20 namespace "$nqn"
	ns=$(namespace "$nqn")
}

# namespace NQN: the block device that stands for it, whatever the paths to it.
namespace() {
	local dir head
	for dir in /sys/class/nvme-subsystem/*; do
		[ "$(cat "$dir/subsysnqn")" = "$1" ] || continue
		for head in "$dir"/nvme*n1; do
			[ -b "/dev/${head##*/}" ] && echo "/dev/${head##*/}" && return
		done
	done
	return 1
}

disconnect() { limit 60 nvme disconnect -n "$1"; }
