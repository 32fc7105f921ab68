#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# NVMe over Fabrics: the kernel's target and host, with every block verified,
# with and without failures.
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"
. "$here/nvmeof.sh"

suite nvme <<'TOPOLOGY'
  nvme-rdma and nvmet-rdma --- wd0 (dummy, 10.77.0.1) --- lo
  subsystems t1 and t2 on null_blk disks in memory
TOPOLOGY

live() { [ "$(cat "$ctrl/state")" = live ]; }

before_test() {
	wire_up
	nvme disconnect-all
	[ ! -e /sys/class/net/va ] || cable_gone
}

discovery() {
	limit 60 nvme discover -t rdma -a "$addr4" -s 4420 -q "$nvme_host" | tee "$tmp/found"
	expect '^subnqn: +t1$' "$tmp/found" 1
	expect '^subnqn: +t2$' "$tmp/found" 1
	expect '^trtype: +rdma$' "$tmp/found" 3
}

mixed_sizes() {
	connect t1
	verified_io "$ns" 120
	# What the target's disk holds is what was written.
	sync
	same_disks "$ns" "$(cat "$nvmet/subsystems/t1/namespaces/1/device_path")"
	disconnect t1
}

file_system() {
	connect t1
	mkfs.ext4 -q "$ns"
	mkdir -p "$tmp/mnt" "$tmp/tree"
	tree "$tmp/tree"
	mount "$ns" "$tmp/mnt"
	cp -r "$tmp/tree/." "$tmp/mnt/"
	limit 60 umount "$tmp/mnt"
	disconnect t1
	connect t1
	mount "$ns" "$tmp/mnt"
	rmdir "$tmp/mnt/lost+found"
	diff -r "$tmp/tree" "$tmp/mnt"
	limit 60 umount "$tmp/mnt"
	e2fsck -fn "$ns"
	disconnect t1
}

resets_under_load() {
	local i
	connect t1
	start_load "$ns" 16
	local load=$started
	for i in $(seq 3); do
		sleep 1
		limit 60 nvme reset "/dev/${ctrl##*/}"
		until_true 20 live
	done
	kill -0 "$load" || fail "the load was over before the third reset"
	wait "$load" || { cat "$tmp/load"; fail "I/O did not survive $i resets"; }
	disconnect t1
}

two_connections() {
	local ns1
	connect t1
	ns1=$ns
	connect t2
	[ "$ns" != "$ns1" ] || fail "one namespace for two subsystems"
	limit 150 fio --verify=crc32c --verify_fatal=1 --verify_state_save=0 --rw=randwrite \
		--bsrange=4k-128k --size=8m --iodepth=8 --ioengine=libaio --direct=1 --minimal \
		--name=one --filename="$ns1" --name=two --filename="$ns"
	disconnect t1
	disconnect t2
}

# load_through FUNCTION: verified I/O that has to survive it.
load_through() {
	connect t1
	start_load "$ns" 16
	local load=$started
	sleep 3
	"$1"
	wait "$load" || { cat "$tmp/load"; fail "I/O did not survive"; }
	until_true 30 live
	verified_io "$ns" 60 --size=4m
	disconnect t1
}

# Longer than the host waits for a keep-alive, so it gives the connection up.
silent_wire() {
	wire_down
	sleep 10
	wire_up
	until_true 60 said 'Successfully reconnected'
}

# Target and host are in one namespace, always, and what one address of it says to
# another goes over lo. These two are made to use a cable.
cable_made() {
	local end
	modprobe -q veth
	ip link add va type veth peer name vb
	for end in va vb; do
		echo 1 >"/proc/sys/net/ipv4/conf/$end/accept_local"
		echo 0 >"/proc/sys/net/ipv4/conf/$end/rp_filter"
		ip rule add pref 10 dev "$end" lookup local
	done
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	ip rule add pref 20 lookup 77
	ip rule add pref 30 lookup local
	ip rule del pref 0
	ip addr add 10.78.0.1/32 dev va
	ip addr add 10.78.0.2/32 dev vb
	plug_in
	make_link "${driver}a" va
	make_link "${driver}b" vb
}

# What an end has forgotten while it was down.
plug_in() {
	local end
	for end in va vb; do ip link set "$end" up; done
	ip route replace 10.78.0.1 dev vb src 10.78.0.2 table 77
	ip route replace 10.78.0.2 dev va src 10.78.0.1 table 77
	ip neigh replace 10.78.0.1 lladdr "$(cat /sys/class/net/va/address)" dev vb nud permanent
	ip neigh replace 10.78.0.2 lladdr "$(cat /sys/class/net/vb/address)" dev va nud permanent
}

cable_gone() {
	ip rule add pref 0 lookup local
	ip rule del pref 20
	ip rule del pref 30
	ip link delete va
}

# The host's end; the other one has no carrier meanwhile.
link_down() {
	local before
	before=$(cat /sys/class/net/vb/statistics/tx_bytes)
	[ "$before" -gt 1000000 ] || fail "only $before bytes went over the cable"
	ip link set vb down
	sleep 1
	rdma link show | tee "$tmp/links"
	expect "^link ${driver}[ab]/1 state DOWN" "$tmp/links" 2
	sleep 9
	plug_in
	until_true 60 said 'Successfully reconnected'
}

link_loss() {
	local addr4=10.78.0.1
	port_down
	cable_made
	port_up t1
	load_through link_down
	port_down
	cable_gone
	until_true 10 no_cable
	addr4=10.77.0.1
	port_up t1 t2
}

no_cable() { ! rdma link show | grep -q "^link ${driver}[ab]/"; }

netdev_replaced() {
	netdev_goes
	sleep 2
	netdev_back
	target_back
	until_true 60 said 'Successfully reconnected'
}

target_goes() {
	port_down
	sleep 5
	port_up t1 t2
}

# The host dies without closing its connections. This is imitated by cutting it off, and the
# target drops the host when its keep-alive is overdue. The host is disconnected when it has
# noticed: until then it would wait for its own close.
host_dies() {
	local end=$((SECONDS + 60 * slow))
	connect t1
	start 120 "$tmp/load" bash -c \
		"while dd if=/dev/zero of=$ns bs=64k count=400 oflag=direct; do :; done"
	sleep 1
	wire_down
	until said 'keep-alive timer.*expired'; do
		[ "$SECONDS" -lt "$end" ] || fail "the target waits for a dead host"
		sleep 1
	done
	until_true 60 grep connecting "$ctrl/state"
	limit 60 nvme disconnect -n t1
	wire_up
	until_true 30 no_queues
	connect t1
	verified_io "$ns" 60 --size=3m
	disconnect t1
}

# Only the listener is left of the target.
no_queues() { ! rdma resource show | sed -nE "/: $driver/s/.* qp ([0-9]+) .*/\1/p" | grep -q '[1-9]'; }

# A bad sector at the target is an I/O error at the host, there and only there.
bad_sector() {
	connect t1
	echo "+8192-8199" >"$nullb/weftt1/badblocks"
	dd if="$ns" of=/dev/null bs=4096 count=1 skip=1024 iflag=direct 2>"$tmp/dd" &&
		fail "a bad sector was read"
	expect 'Input/output error' "$tmp/dd"
	dd if=/dev/zero of="$ns" bs=4096 count=1 seek=1024 oflag=direct 2>"$tmp/dd" &&
		fail "a bad sector was written"
	expect 'Input/output error' "$tmp/dd"
	live
	verified_io "$ns" 60 --size=3m
	echo "-8192-8199" >"$nullb/weftt1/badblocks"
	verified_io "$ns" 60 --offset=4m --size=1m
	disconnect t1
}

# For gone_under_mount. The host forgets by itself what was on a device that is gone.
login() {
	connect t1
	sd=$ns
}
logout() { disconnect t1; }
host_gives_up() { :; }
target_back() {
	port_down
	port_up t1 t2
}

nothing_left() {
	target_down t1 t2
	idle_but_for_pools
	limit 20 rdma link delete "$dev"
}

needs nvmet-rdma nvme-rdma null_blk sch_netem
set_up() {
	topology_dummy
	subsystem t1 48
	subsystem t2 48
	port_up t1 t2
	until_true 20 listening 4420
}

set_up
t "discovery" discovery
t "blocks of mixed sizes are written and verified" mixed_sizes
t "ext4: a tree survives unmounting and reconnecting" file_system
t "two subsystems at once" two_connections
t "three resets under load" resets_under_load
t "ten seconds of silence on the wire under load" by_tcp load_through silent_wire
long "the link is down for ten seconds under load" link_loss
long "the target is removed and added again under load" load_through target_goes
long "the host dies in the middle of its writes: the target drops it" host_dies
t "a bad sector of the target is an I/O error and nothing else" bad_sector
t "the device is deleted under a mounted file system" gone_under_mount link
# The host tries to reach its target for 60 s more: that is its ctrl-loss-tmo.
long "the netdev is deleted under a mounted file system" gone_under_mount netdev 90
long "the netdev is deleted and added again under load" load_through netdev_replaced
long "the module is unloaded under a mounted file system" gone_under_mount module
t "nothing is left of host and target" nothing_left
finish
