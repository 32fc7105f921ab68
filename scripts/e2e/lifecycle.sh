#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Links are added and deleted: on every kind of netdev, refused where they must be, a
# thousand times, and without leaks.
. "$(dirname "$0")/lib.sh"

suite lifecycle <<'TOPOLOGY'
  wd0 (dummy, 10.77.0.1, fd77::1), and per test: VLAN wd0.7, bridge wbr0, veth wv0, lo
TOPOLOGY

# CYCLES of link add, rping, link delete.
cycles=${CYCLES:-1000}

netdev() {
	modprobe -q dummy
	ip link add wd0 type dummy
	ip link set wd0 up
	ip addr add "$addr4/24" dev wd0
	ip addr add "$addr6/64" dev wd0 nodad
	saddr4=$addr4
}

# A test that failed half way must not fail the next ones.
before_test() {
	local name
	for name in $(rdma link show | sed -n "s,^link \(${driver}[^/]*\)/.*,\1,p"); do
		timeout 20 rdma link delete "$name"
	done
	for name in wd1 wd2 wd3 wd4 wd5 wd0.7 wbr0 wv0 wtun0; do ip link delete "$name"; done
	return 0
}

add() { make_link "$@"; }

# refused WORDS COMMAND...: it fails, and says WORDS.
refused() {
	local words=$1
	shift
	if "$@" >"$tmp/out" 2>&1; then fail "'$*' succeeded"; fi
	cat "$tmp/out"
	expect "$words" "$tmp/out" 1
}

no_such_netdev() { refused 'No such device' add "$dev" nosuch0; }

# A tun can be of any kind: here of that of PPP (TUNSETLINK).
unsuitable_netdev() {
	local unsupported='Operation not supported'
	[ "$driver" = weft ] || unsupported='Operation not supported|Invalid argument'
	modprobe -q tun || skip "this kernel has no tun"
	ip tuntap add wtun0 mode tun
	python3 - <<-'PYTHON'
		import fcntl, os, struct
		tun = os.open("/dev/net/tun", os.O_RDWR)
		fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", b"wtun0", 1))
		fcntl.ioctl(tun, 0x400454CD, 512)
	PYTHON
	[ "$(cat /sys/class/net/wtun0/type)" = 512 ] || fail "it stays a tun"
	refused "$unsupported" add "$dev" wtun0
	ip link delete wtun0
}

same_name() {
	ip link add wd1 type dummy
	add "$dev" wd0
	refused 'File exists' add "$dev" wd1
	rdma link delete "$dev"
	ip link delete wd1
}

same_netdev() {
	add "$dev" wd0
	refused 'File exists' add "${driver}9" wd0
	rdma link delete "$dev"
}

# However many ask at the same time, one of them gets it.
same_netdev_at_once() {
	local name
	[ "$driver" = weft ] || skip "only for weft"
	for _ in 1 2 3 4 5; do
		for name in "${driver}"{1..6}; do
			add "$name" wd0 >/dev/null 2>&1 &
		done
		wait
		rdma link show | tee "$tmp/links"
		expect 'netdev wd0' "$tmp/links" 1
		for name in $(rdma link show | sed -n "s,^link \(${driver}[^/]*\)/.*,\1,p"); do
			rdma link delete "$name"
		done
	done
}

delete_missing() { refused 'No such device|Invalid argument|Wrong device' rdma link delete nosuch0; }

ping_over() { rping_pair 40 "$1" 3; }

# on_netdev NAME ADDRESS [apart]: link add, traffic, link delete. "apart": it has another's MAC.
on_netdev() {
	ip link set "$1" up
	ip addr add "$2/24" dev "$1"
	add "$dev" "$1"
	rdma link show "$dev/1" | tee "$tmp/link"
	expect "netdev $1" "$tmp/link" 1
	[ "$driver" != weft ] || check_gid_0 "$dev" "$(<"/sys/class/net/$1/address")" "${3:-}"
	ping_over "$2"
	note_loopback
	rdma link delete "$dev"
}

on_vlan() {
	modprobe -q 8021q
	ip link add link wd0 name wd0.7 type vlan id 7
	on_netdev wd0.7 10.78.0.1 apart
	ip link delete wd0.7
}

on_bridge() {
	modprobe -q bridge
	ip link add wbr0 type bridge
	ip link add wd2 type dummy
	ip link set wd2 master wbr0
	ip link set wd2 up
	on_netdev wbr0 10.79.0.1 apart
	ip link delete wbr0
	ip link delete wd2
}

on_veth() {
	modprobe -q veth
	ip link add wv0 type veth peer name wv1
	ip link set wv1 up
	on_netdev wv0 10.80.0.1
	ip link delete wv0
}

# The connection manager looks devices up by MAC: lo has none at first, then one.
on_loopback() {
	ip link show lo >"$tmp/lo"
	expect 'link/loopback 00:00:00:00:00:00 ' "$tmp/lo"
	add "$dev" lo
	rdma link show "$dev/1"
	ping_over 127.0.0.1
	rdma link delete "$dev"
	ip link set lo address 02:00:00:00:77:01
	add "$dev" lo
	# Of the random bytes that stood in for a MAC none are left.
	[ "$(cat "/sys/class/infiniband/$dev/ports/1/gids/0")" = \
		0200:0000:7701:0000:0000:0000:0000:0000 ] || fail "GID 0 is more than the MAC"
	ping_over 127.0.0.1
	rdma link delete "$dev"
}

netdev_vanishes() {
	ip link add wd3 type dummy
	ip link set wd3 up
	add "$dev" wd3
	limit 20 ip link delete wd3
	rdma link show | tee "$tmp/links"
	assert_no_match "^link $dev/" "$tmp/links"
}

netdev_renamed() {
	ip link add wd4 type dummy
	add "$dev" wd4
	ip link set wd4 name wd5
	rdma link show "$dev/1" | tee "$tmp/links"
	expect 'netdev wd5' "$tmp/links" 1
	rdma link delete "$dev"
	ip link delete wd5
}

# A program that holds the device open must not hold up its deletion.
deleted_while_open() {
	add "$dev" wd0
	watch_events "$dev"
	limit 15 rdma link delete "$dev"
	rdma link show | tee "$tmp/links"
	assert_no_match "^link $dev/" "$tmp/links"
}

listener_survives_deletion() {
	add "$dev" wd0
	serve 7174 60 rping -s -P
	limit 15 rdma link delete "$dev"
	add "$dev" wd0
	ping_over_listener
	stop_server
	rdma link delete "$dev"
}

ping_over_listener() {
	client 20 rping -c -a "$saddr4" -v -C 3
	expect '^ping data: rdma-ping-' "$tmp/client.log" 3
}

ten_devices() {
	local i
	for i in $(seq 10); do
		ip link add "wx$i" type dummy
		add "${driver}x$i" "wx$i"
	done
	[ "$(rdma link show | grep -c "^link ${driver}x")" -eq 10 ] || fail "not ten"
	for i in $(seq 10); do
		rdma link delete "${driver}x$i"
		ip link delete "wx$i"
	done
}

# A thousand times in an emulated guest: no program is started without need, so that
# one that hangs falls to the guest's own time limit.
cycle() {
	local server
	add "$dev" wd0
	rping -s -a "$saddr4" -C 1 >"$tmp/s" 2>&1 &
	server=$!
	until listening 7174; do
		kill -0 "$server" || { cat "$tmp/s"; return 1; }
		read -rt 0.02 <>"$tmp/never_written" || true
	done
	rping -c -a "$saddr4" -C 1 >"$tmp/c" 2>&1 || { cat "$tmp/c"; return 1; }
	wait "$server" || rping_raced_at_exit "$tmp/s" || { cat "$tmp/s"; return 1; }
	rdma link delete "$dev"
}

# slabs: active objects per cache, once everything that can go has gone. Address ranges that
# vmalloc() has freed wait by the thousand, until 64 MB and more of them are freed; drop_caches
# takes those away that newer kernels keep for reuse. TIME_WAIT lasts a minute, and each CPU keeps
# objects of each cache.
slabs() {
	local cache end=$((SECONDS + 90))
	while [ -n "$(ss -tnH state time-wait)" ] && [ "$SECONDS" -lt "$end" ]; do sleep 1; done
	sysctl -qw net.core.rps_sock_flow_entries=33554432
	sysctl -qw net.core.rps_sock_flow_entries=0
	for _ in 1 2 3; do
		sync
		echo 3 >/proc/sys/vm/drop_caches
		sleep 1
	done
	for cache in /sys/kernel/slab/*/shrink; do echo 1 >"$cache"; done
	awk 'NR > 2 { print $1, $2 }' /proc/slabinfo | sort
}

# One object leaked per cycle stands out in whichever cache it is.
grown() {
	join "$tmp/slabs.before" "$tmp/slabs.after" |
		awk -v least="$((cycles * 8 / 10))" '$3 - $2 >= least { print $1, $2, $3 }'
}

many_cycles() {
	local i
	mkfifo "$tmp/never_written"
	for i in $(seq 10); do cycle; done
	[ "$cycles" -lt 200 ] || slabs >"$tmp/slabs.before"
	for i in $(seq "$cycles"); do
		cycle || fail "cycle $i"
		[ $((i % 50)) -ne 0 ] || echo "lifecycle: $i cycles" >/dev/kmsg
	done
	[ "$cycles" -ge 200 ] || return 0
	slabs >"$tmp/slabs.after"
	grown | tee "$tmp/grown"
	[ ! -s "$tmp/grown" ] || fail "slab caches have grown by an object per cycle"
}

module_goes_and_comes() {
	[ "$driver" = weft ] || skip "only for weft"
	limit 20 rmmod weft
	[ ! -e /sys/module/weft ] || fail "still loaded"
	# The core loads the module of a type that it does not know.
	add "$dev" wd0
	ping_over "$saddr4"
	rdma link delete "$dev"
}

# A thread of its own each, that works on when no memory is left for others. What a worker does
# stands behind its name.
queues_have_rescuers() {
	local queue
	[ "$driver" = weft ] || skip "only for weft"
	add "$dev" wd0
	for queue in weft_cm weft_user weft_kernel; do
		grep -qsE "^(kworker/R-)?$queue([-+]|\$)" /proc/[0-9]*/comm ||
			fail "$queue has no rescuer"
	done
	rdma link delete "$dev"
}

only_plugins "$driver"
netdev
t "no such netdev" no_such_netdev
t "a netdev that is not Ethernet" unsuitable_netdev
t "the same name twice" same_name
t "the same netdev twice" same_netdev
t "the same netdev by many at once" same_netdev_at_once
t "deleting what is not there" delete_missing
t "on a VLAN" on_vlan
t "on a bridge" on_bridge
t "on a veth" on_veth
t "on the loopback netdev" on_loopback
t "ten devices" ten_devices
t "the netdev is deleted" netdev_vanishes
t "the netdev is renamed" netdev_renamed
t "deleted while a program has it open" deleted_while_open
t "a listener on the wildcard outlives the device" listener_survives_deletion
compared=
[ "$cycles" -lt 200 ] || compared=', no slab cache grows by an object per cycle'
t "queues of work have rescuers" queues_have_rescuers
t "$cycles cycles of link add, rping, link delete$compared" many_cycles
t "the module is unloaded and loaded again" module_goes_and_comes
finish
