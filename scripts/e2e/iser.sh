#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# iSCSI over RDMA: LIO as the target, open-iscsi as the initiator.
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"

suite iser <<'TOPOLOGY'
  open-iscsi (ib_iser) and LIO (ib_isert) --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

lio=/sys/kernel/config/target
iqn=iqn.2026-01.org.weft:t1
tpg=$lio/iscsi/$iqn/tpgt_1

# LIO insists on a TCP portal beside the one of iSER, at the same address and
# port, and a software RNIC has no second set of ports. It opens the TCP socket
# in the namespace of the caller, and that of iSER in the first one.
portal_up() {
	nsenter --net=/run/netns/wa mkdir "$tpg/np/$addr4:3260"
	echo 1 >"$tpg/np/$addr4:3260/iser"
}

portal_down() { rmdir "$tpg/np/$addr4:3260"; }

# LIO forgets the listener of a device that is gone.
target_back() {
	portal_down
	portal_up
}

target_up() {
	memory_disk weftiser 32
	backing=$disk
	mkdir -p "$lio/core/iblock_0/weft"
	echo "udev_path=$disk" >"$lio/core/iblock_0/weft/control"
	echo 1 >"$lio/core/iblock_0/weft/enable"
	mkdir -p "$lio/iscsi" && mkdir -p "$tpg/lun/lun_0"
	ln -s "$lio/core/iblock_0/weft" "$tpg/lun/lun_0/weft"
	echo 0 >"$tpg/attrib/authentication"
	echo 1 >"$tpg/attrib/generate_node_acls"
	echo 1 >"$tpg/attrib/cache_dynamic_acls"
	echo 0 >"$tpg/attrib/demo_mode_write_protect"
	ip netns add wa
	portal_up
	echo 1 >"$tpg/enable"
}

target_down() {
	echo 0 >"$tpg/enable"
	portal_down
	rm "$tpg/lun/lun_0/weft"
	rmdir "$tpg/lun/lun_0" "$tpg" "$lio/iscsi/$iqn" "$lio/core/iblock_0/weft"
	memory_disks_gone
}

initiator_up() {
	mkdir -p /run/lock/iscsi /etc/iscsi
	echo "InitiatorName=iqn.2026-01.org.weft:host" >/etc/iscsi/initiatorname.iscsi
	sed -i 's/^node.session.timeo.replacement_timeout.*/#/' /etc/iscsi/iscsid.conf
	echo "node.session.timeo.replacement_timeout = 60" >>/etc/iscsi/iscsid.conf
	iscsid
	iscsiadm -m node -o new -T "$iqn" -p "$addr4:3260" -I iser
}

session_disk() { echo /sys/class/iscsi_session/session*/device/target*/*/block/sd*; }
has_disk() { [ -d "$(session_disk)" ] && [ -b "/dev/$(basename "$(session_disk)")" ]; }

login() {
	limit 60 iscsiadm -m node -T "$iqn" -p "$addr4:3260" -l
	until_true 20 has_disk
	sd=/dev/$(basename "$(session_disk)")
}

logout() { limit 60 iscsiadm -m node -T "$iqn" -p "$addr4:3260" -u; }

before_test() {
	wire_up
	iscsiadm -m node -u
}

mixed_sizes() {
	login
	iscsiadm -m session | tee "$tmp/session"
	expect "^iser: .*$iqn" "$tmp/session" 1
	verified_io "$sd" 120
	same_disks "$sd" "$backing"
	logout
}

silence_under_load() {
	login
	start_load "$sd" 16
	local load=$started
	sleep 3
	wire_down
	sleep 10
	wire_up
	wait "$load" || { cat "$tmp/load"; fail "I/O did not survive"; }
	verified_io "$sd" 60 --size=2m
	logout
}

# The session waits for its target, and goes on when that is back.
link_replaced() {
	login
	start_load "$sd" 16
	local load=$started
	sleep 3
	link_goes
	sleep 3
	link_back
	target_back
	wait "$load" || { cat "$tmp/load"; fail "I/O did not survive"; }
	same_disks "$sd" "$backing"
	logout
}

# waits SECONDS: so long a session does, and then its disk gets errors.
waits() {
	iscsiadm -m node -T "$iqn" -p "$addr4:3260" -o update \
		-n node.session.timeo.replacement_timeout -v "$1"
}

host_gives_up() { limit 60 iscsiadm -m node -u; }

link_gone_under_mount() {
	waits 5
	gone_under_mount link
	waits 60
}

nothing_left() {
	pkill -x iscsid
	target_down
	idle_but_for_pools
	limit 20 rdma link delete "$dev"
}

needs ib_isert ib_iser target_core_iblock sd_mod null_blk sch_netem
topology_dummy
target_up
initiator_up
t "blocks of mixed sizes are written and verified" mixed_sizes
t "ext4: a tree survives unmounting and a new session" tree_survives
long "ten seconds of silence on the wire under load" silence_under_load
long "the device is deleted and added again under load" link_replaced
long "the device is deleted under a mounted file system" link_gone_under_mount
t "nothing is left of target and initiator" nothing_left
finish
