#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Memory that can only be freed by writing to a disk behind weft: swap, and dirty
# pages of a file system. Allocations on the path to that disk must not wait for it.
#
# Usage: scripts/guest-pair --weft reclaim
# The target has a guest of its own: it allocates as if its host's memory did not
# depend on it, and the kernel says "deadlocked on memory" if it does.
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"
. "$here/nvmeof.sh"

suite reclaim <<'TOPOLOGY'
  nvme-rdma, weft0 - eth0 (10.77.0.1) === cable === eth0 (10.77.0.2) - weft0, nvmet-rdma
  subsystem t1 on a null_blk disk there
TOPOLOGY

# Megabytes: of the disk, and what is left free.
size=96
left=64

there() { "$here/progs/remote.py" "${REMOTE:?scripts/guest-pair sets it}" "$@"; }

# What the other guest runs.
target_up() {
	set -e
	mount -t configfs configfs /sys/kernel/config
	modprobe -q nvmet-rdma
	rdma link add weft0 type weft netdev eth0
	subsystem t1 "$size"
	port_up t1
}

target_gone() {
	set -e
	port_down
	echo 0 >"$nvmet/subsystems/t1/namespaces/1/enable"
	rmdir "$nvmet/subsystems/t1/namespaces/1" "$nvmet/subsystems/t1" "$nullb/weftt1"
	rdma link delete weft0
}

on_target() {
	there bash -c "$(declare -f memory_disk subsystem port_up port_down target_up target_gone)
		nvmet=$nvmet nullb=$nullb size=$size addr4=$peer4; nullb_made=(); modprobe -q configfs
		$1"
}

set_up() {
	modprobe -q virtio_net
	ip link set eth0 up
	ip addr add "$addr4/24" dev eth0
	rdma link add "$dev" type "$driver" netdev eth0
	until_true 60 there true
	on_target target_up
	addr4=$peer4	# the target's, for connect
	echo 0 >/proc/sys/vm/oom_dump_tasks
}

stat_of() { awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat; }

# Packets received into the reserves for a socket that may not use them.
dropped() { nstat -asz TcpExtPFMemallocDrop | awk '/PFMemallocDrop/ { print $2 }'; }

# hold_the_rest: only so much memory is left for all that follows.
hold_the_rest() {
	start 500 "$tmp/left" "$tmp/reclaim" leave "$left"
	holder=$started
	until_true 60 grep 'are left' "$tmp/left"
	cat "$tmp/left"
}

# attach: a target that is only slow, as both are with little memory, is not given up.
attach() { connect t1 --keep-alive-tmo=60; }

# A process of more than twice the memory that is left, page by page through the disk.
swapping() {
	local before drops out began rc=0
	attach
	mkswap "$ns"
	hold_the_rest
	swapon "$ns"
	before=$(stat_of pswpout) drops=$(dropped) began=$SECONDS
	limit 400 "$tmp/reclaim" touch $((left + size / 2)) 1 >"$tmp/touched" || rc=$?
	cat "$tmp/touched"
	no_process_killed
	[ "$rc" -eq 0 ] || fail "status $rc"
	expect 'pages as written' "$tmp/touched" 1
	echo "after $((SECONDS - began)) s"
	out=$(($(stat_of pswpout) - before))
	echo "$out pages were swapped out, $(($(dropped) - drops)) packets dropped"
	[ "$out" -gt $((size * 48)) ] || fail "hardly anything was swapped"
	[ "$(dropped)" -eq "$drops" ] || fail "packets were dropped for want of memory"
	limit 120 swapoff "$ns"
	kill "$holder"
	wait "$holder" || true
	disconnect t1
}

# As many dirty pages as the kernel lets be, all of them of a file system on the disk.
writeback() {
	local ratio background drops
	attach
	mkfs.ext4 -q "$ns"
	mkdir -p "$tmp/mnt"
	mount "$ns" "$tmp/mnt"
	ratio=$(cat /proc/sys/vm/dirty_ratio) background=$(cat /proc/sys/vm/dirty_background_ratio)
	echo 95 >/proc/sys/vm/dirty_ratio
	echo 90 >/proc/sys/vm/dirty_background_ratio
	hold_the_rest
	drops=$(dropped)
	limit 240 fio --name=w --directory="$tmp/mnt" --numjobs=3 --rw=randwrite \
		--bsrange=4k-128k --size=16m --ioengine=psync --fallocate=none --end_fsync=1 \
		--verify=crc32c --verify_fatal=1 --verify_state_save=0 --minimal >"$tmp/fio" 2>&1 ||
		{ cat "$tmp/fio"; fail "written and read are not the same"; }
	no_process_killed
	[ "$(dropped)" -eq "$drops" ] || fail "packets were dropped for want of memory"
	kill "$holder"
	wait "$holder" || true
	echo "$ratio" >/proc/sys/vm/dirty_ratio
	echo "$background" >/proc/sys/vm/dirty_background_ratio
	limit 120 umount "$tmp/mnt"
	e2fsck -fn "$ns"
	disconnect t1
}

# no_process_killed: all memory that was asked for could be freed.
no_process_killed() {
	kernel_says >"$tmp/oom"
	! grep -q 'invoked oom-killer' "$tmp/oom" || { cat "$tmp/oom"; fail "out of memory"; }
}

after_test() { new_splats; }

before_test() {
	swapoff -a
	umount "$tmp/mnt"
	nvme disconnect-all
}

nothing_left() {
	on_target target_gone
	there --stop
	idle_but_for_pools
	limit 20 rdma link delete "$dev"
}

needs nvme-rdma
compile reclaim >/dev/null
set_up >"$tmp/set_up" 2>&1 || diagnose <"$tmp/set_up"
t "swap on NVMe over Fabrics: a process of twice the memory left" swapping
t "ext4 on it: nearly all memory is dirty pages of its files" writeback
t "nothing is left of host and target" nothing_left
finish
