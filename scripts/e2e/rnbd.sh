#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# RNBD, a block device over RTRS: requests and answers are RDMA Writes with immediate data.
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"

suite rnbd <<'TOPOLOGY'
  rnbd-client and rnbd-server --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

control=/sys/devices/virtual/rnbd-client/ctl

server_up() {
	memory_disk weftrnbd 64
	backing=$disk
}

mapped() { echo /sys/block/rnbd*; }
is_mapped() { [ -b "/dev/$(basename "$(mapped)")" ]; }
is_unmapped() { [ ! -d "$(mapped)" ]; }

login() {
	limit 60 bash -c "echo 'sessname=weft path=ip:$addr4 device_path=$backing' \
		>$control/map_device"
	until_true 20 is_mapped
	sd=/dev/$(basename "$(mapped)")
}

logout() {
	limit 60 bash -c "echo normal >'$(mapped)/rnbd/unmap_device'"
	until_true 20 is_unmapped
}

before_test() {
	wire_up
	[ ! -d "$(mapped)" ] || echo force >"$(mapped)/rnbd/unmap_device"
}

mixed_sizes() {
	local immediates
	sleep 0.1	# the core refreshes its counters with a delay
	immediates=$(counted rx_immediates)
	login
	verified_io "$sd" 120
	same_disks "$sd" "$backing"
	logout
	sleep 0.1
	immediates=$(($(counted rx_immediates) - immediates))
	echo "immediate data: $immediates"
	[ "$immediates" -ge 100 ] || fail "too few for what was written"
}

nothing_left() {
	rmmod rnbd-client rtrs-client rnbd-server rtrs-server rtrs-core
	memory_disks_gone
	idle_but_for_pools
	limit 20 rdma link delete "$dev"
}

# Answers that invalidate would be Sends with immediate data, which iWARP does not have.
modprobe -q rtrs-server always_invalidate=N
needs rtrs-server rnbd-server rnbd-client null_blk
topology_dummy
server_up
t "blocks of mixed sizes are written and verified" mixed_sizes
t "ext4: a tree survives unmapping and mapping" tree_survives
t "nothing is left of client and server" nothing_left
finish
