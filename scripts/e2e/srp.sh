#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# SRP through rdma_cm: LIO's ib_srpt as the target, ib_srp as the initiator.
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"

suite srp <<'TOPOLOGY'
  ib_srp and ib_srpt --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

# An iWARP GID ends in zeros, which the initiator uses as its id.
initiator=0x00000000000000000000000000000000
lio=/sys/kernel/config/target
port=5555

# The name of the target's port is the GID, that of the target itself the GUID.
gid() { echo "0x$(tr -d : <"/sys/class/infiniband/$dev/ports/1/gids/0")"; }
guid() { tr -d : <"/sys/class/infiniband/$dev/node_guid"; }

target_up() {
	memory_disk weftsrp 32
	backing=$disk
	mkdir -p "$lio/core/iblock_1/weft"
	echo "udev_path=$disk" >"$lio/core/iblock_1/weft/control"
	echo 1 >"$lio/core/iblock_1/weft/enable"
	mkdir -p "$lio/srpt"
	echo "$port" >"$lio/srpt/discovery_auth/rdma_cm_port"
	port_up
}

port_up() {
	tpg=$lio/srpt/$(gid)/$(gid)
	mkdir -p "$tpg/lun/lun_0"
	ln -s "$lio/core/iblock_1/weft" "$tpg/lun/lun_0/weft"
	mkdir -p "$tpg/acls/$initiator/lun_0"
	ln -s "$tpg/lun/lun_0" "$tpg/acls/$initiator/lun_0/weft"
	echo 1 >"$tpg/enable"
}

port_down() {
	echo 0 >"$tpg/enable"
	rm "$tpg/acls/$initiator/lun_0/weft" "$tpg/lun/lun_0/weft"
	rmdir "$tpg/acls/$initiator/lun_0" "$tpg/acls/$initiator"
	rmdir "$tpg/lun/lun_0" "$tpg" "${tpg%/*}"
}

target_down() {
	port_down
	rmdir "$lio/core/iblock_1/weft" "$lio/srpt"
	memory_disks_gone
}

host() { echo /sys/class/srp_remote_ports/port-*; }
srp_disk() { echo /sys/class/scsi_host/host*/device/target*/*/block/sd*; }
has_disk() { [ -d "$(srp_disk)" ] && [ -b "/dev/$(basename "$(srp_disk)")" ]; }
has_no_port() { [ ! -d "$(host)" ]; }

# The initiator forgets a target a moment after its port has gone from sysfs.
add_target() {
	echo "id_ext=$(guid),ioc_guid=$(guid),dest=$addr4:$port,queue_size=32" \
		>"/sys/class/infiniband_srp/srp-$dev-1/add_target"
}

login() {
	until_true 20 add_target
	until_true 20 has_disk
	sd=/dev/$(basename "$(srp_disk)")
	echo 2 >"$(host)/reconnect_delay"
	echo 60 >"$(host)/dev_loss_tmo"
	echo 30 >"$(host)/fast_io_fail_tmo"
}

logout() {
	echo 1 >"$(host)/delete"
	until_true 20 has_no_port
}

before_test() {
	wire_up
	[ -d "$(host)" ] && echo 1 >"$(host)/delete"
}

mixed_sizes() {
	login
	verified_io "$sd" 120
	same_disks "$sd" "$backing"
	logout
}

# A host goes with its device. What the target's port was made of is still that of
# the device that is gone.
host_gives_up() { until_true 20 has_no_port; }
target_back() {
	port_down
	port_up
}

nothing_left() {
	target_down
	# The target listens for everybody as long as it is loaded.
	rmmod ib_srp ib_srpt
	idle_but_for_pools
	limit 20 rdma link delete "$dev"
}

needs ib_srpt ib_srp target_core_iblock sd_mod null_blk sch_netem
topology_dummy
target_up
t "blocks of mixed sizes are written and verified" mixed_sizes
t "ext4: a tree survives unmounting and a new login" tree_survives
long "the device is deleted under a mounted file system" gone_under_mount link
t "nothing is left of target and initiator" nothing_left
finish
