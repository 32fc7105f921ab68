#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# A host dies in the middle of its writes: the machine is reset, and sends nothing more.
# The target drops it, has every byte whose write was confirmed, and serves
# the next host.
#
# Usage: scripts/guest-pair --weft --other-dies dead-host
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"
. "$here/nvmeof.sh"

suite dead-host <<'TOPOLOGY'
  nvmet-rdma, weft0 - eth0 (10.77.0.1) === cable === eth0 (10.77.0.2) - weft0, nvme-rdma
  subsystem t1 on a null_blk disk here
TOPOLOGY

there() { "$here/progs/remote.py" "${REMOTE:?scripts/guest-pair sets it}" "$@"; }

set_up() {
	modprobe -q virtio_net
	ip link set eth0 up
	ip addr add "$addr4/24" dev eth0
	rdma link add "$dev" type "$driver" netdev eth0
	subsystem t1 32
	port_up t1
	until_true 60 there true
}

# What the other guest does until it dies.
host() {
	set -e
	modprobe -q nvme-rdma
	rdma link add weft0 type weft netdev eth0
	connect t1 >&2
	exec "$here/progs/acked.py" write "$ns"
}

lines_in() { [ "$(wc -l <"$1")" -ge "$2" ]; }
no_queues() { ! rdma resource show qp | grep "^link $dev/"; }

host_dies() {
	start 300 "$tmp/told" "$here/progs/remote.py" "$REMOTE" bash -c \
		"$(declare -f limit until_true controllers connect namespace host)
		slow=$slow here=$here addr4=$addr4 nvme_host=$nvme_host; host"
	until_true 120 lines_in "$tmp/told" 200
	# No answer ever comes to this.
	limit 5 "$here/progs/remote.py" "$REMOTE" bash -c \
		'echo 1 >/proc/sys/kernel/sysrq; echo b >/proc/sysrq-trigger' || true
	local died=$SECONDS
	rdma resource show qp | tee "$tmp/qps"
	expect 'state RTS' "$tmp/qps"
	# Its keep-alive is overdue after 5 s, and closing takes 5 s more.
	until_true 30 no_queues
	echo "the target dropped it after $((SECONDS - died)) s"
	said 'keep-alive timer.*expired' || fail "it was not for want of a keep-alive"
	kill "$started" || true
	wait "$started" || true
	blockdev --flushbufs "$disk"
	"$here/progs/acked.py" check "$disk" "$tmp/told" | tee "$tmp/checked"
	expect 'sectors are as they should be' "$tmp/checked" 1
}

next_host() {
	connect t1
	"$here/progs/acked.py" check "$ns" "$tmp/told"
	verified_io "$ns" 120
	same_disks "$ns" "$disk"
	disconnect t1
}

nothing_left() {
	target_down t1
	idle_but_for_pools
	limit 20 rdma link delete "$dev"
}

needs nvmet-rdma nvme-rdma null_blk
set_up >"$tmp/set_up" 2>&1 || diagnose <"$tmp/set_up"
t "the host's machine is reset under load: confirmed data is there" host_dies
t "the next host finds all of it and continues" next_host
t "nothing is left of the target" nothing_left
finish
