#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The life of a network device: connections survive what TCP survives, and the
# port's state and events follow the link.
. "$(dirname "$0")/lib.sh"

suite netdev <<'TOPOLOGY'
  wa: va (10.77.0.1) --- veth --- wb: vb (10.77.0.2); also bonds and VLANs on top
TOPOLOGY
only_plugins "$driver"

port=7174

# load: an rping that runs until it is stopped; each ping is compared.
load() {
	: >"$tmp/client.log"
	serve "$port" 100 rping -s -a "$saddr4" -V -C 100000000
	start 100 "$tmp/client.log" "${cli[@]}" stdbuf -oL rping -c -a "$saddr4" -v -V -C 100000000
	load=$started
	progresses "$load" 10
}

stop_load() {
	kill -TERM "$load" "$server" 2>/dev/null || true
	wait "$load" "$server" 2>/dev/null || true
	assert_no_match 'mismatch|error|fail' "$tmp/client.log"
}

mtu_changes() {
	local mtu
	load
	for mtu in 9000 576 1500 65535 1500; do
		ip -n wa link set va mtu "$mtu"
		ip -n wb link set vb mtu "$mtu"
		progresses "$load" 15
	done
	stop_load
}

# TCP keeps a route in mind and asks again when it fails.
link_flaps() {
	load
	ip -n wb link set vb down
	sleep 3
	ip -n wb link set vb up
	ip -n wb addr add "$peer6/64" dev vb nodad
	progresses "$load" 20
	stop_load
}

address_goes_and_comes() {
	load
	ip -n wb addr del "$peer4/24" dev vb
	sleep 2
	ip -n wb addr add "$peer4/24" dev vb
	progresses "$load" 20
	stop_load
}

state() { rdma link show "$1/1" | sed -n 's/.* state \([A-Z]*\) .*/\1/p'; }

# reaches STATE: the port of the client does.
reaches() {
	for _ in $(seq 50); do
		[ "$(state "${driver}b")" = "$1" ] && return
		sleep 0.1
	done
	fail "the port is $(state "${driver}b"), not $1"
}

# raised KIND COUNT: so many events of this kind have come.
raised() {
	until_true 10 has_raised "$@" || { cat "$tmp/events"; fail "no event $1 number $2"; }
}
has_raised() { [ "$(grep -c "IBV_EVENT_PORT_$1 " "$tmp/events")" -ge "$2" ]; }

# follows COUNT NAMESPACE NETDEV: down and up, each with one event.
follows() {
	ip -n "$2" link set "$3" down
	reaches DOWN
	raised ERR "$1"
	ip -n "$2" link set "$3" up
	reaches ACTIVE
	raised ACTIVE "$1"
}

# First our own end of the cable, then the other one.
port_follows_link() {
	watch_events "${driver}b"
	reaches ACTIVE
	follows 1 wb vb
	follows 2 wa va
	sleep 1
	kill "$started"
	cat "$tmp/events"
	expect IBV_EVENT_PORT_ERR "$tmp/events" 2
	expect IBV_EVENT_PORT_ACTIVE "$tmp/events" 2
	ip -n wa addr add "$addr6/64" dev va nodad
	ip -n wb addr add "$peer6/64" dev vb nodad
}

# bond_end NAMESPACE LETTER ADDRESS: an active-backup bond of two veth ends.
bond_end() {
	ip -n "$1" link add bond0 type bond mode active-backup miimon 50
	ip -n "$1" link set "x$2" master bond0
	ip -n "$1" link set "y$2" master bond0
	ip -n "$1" link set bond0 up
	ip -n "$1" addr add "$3/24" dev bond0
	make_link "${driver}bond$2" bond0 ip netns exec "$1"
}

# tells_of_its_link DEVICE: on the bond, or on one of its members, whose link changes: once each.
tells_of_its_link() {
	watch_events "$1"
	ip -n wb link set xb down
	raised ERR 1
	ip -n wb link set xb up
	raised ACTIVE 1
	sleep 1
	kill "$started"
	expect IBV_EVENT_PORT_ERR "$tmp/events" 1
	expect IBV_EVENT_PORT_ACTIVE "$tmp/events" 1
}

bond_fails_over() {
	modprobe -q bonding || skip "no bonding"
	ip link add xa netns wa type veth peer name xb netns wb
	ip link add ya netns wa type veth peer name yb netns wb
	bond_end wa a 10.78.0.1
	bond_end wb b 10.78.0.2
	saddr4=10.78.0.1
	sleep 1
	load
	ip -n wa link set xa down
	progresses "$load" 20
	[ "$(state "${driver}bonda")" = ACTIVE ] || fail "the bond's port is down"
	ip -n wa link set xa up
	sleep 1
	ip -n wb link set yb down
	progresses "$load" 20
	stop_load
	tells_of_its_link "${driver}bondb"
	make_link "${driver}xb" xb ip netns exec wb
	tells_of_its_link "${driver}xb"
	rdma link delete "${driver}xb"
	ip -n wa link delete bond0
	ip -n wb link delete bond0
	ip -n wa link delete xa
	ip -n wa link delete ya
}

# names_its_netdev DEVICE NETDEV GIDS: by every GID that it has. Scripts (ibdev2netdev, Valkey's
# test runner) find the address of a device by that.
# A table is updated by a worker of ib_core.
names_its_netdev() {
	local try
	for ((try = 0; try < 50; try++)); do
		! (gids_name "$@") >"$tmp/gids" || return 0
		sleep 0.2
	done
	cat "$tmp/gids"
	return 1
}

gids_name() {
	local port=/sys/class/infiniband/$1/ports/1 file gid netdev gids=0
	for file in "$port"/gids/*; do
		gid=$(<"$file")
		[[ $gid =~ [1-9a-f] ]] || continue
		netdev=$(<"$port/gid_attrs/ndevs/${file##*/}") || fail "GID $gid names no netdev"
		[ "$netdev" = "$2" ] || fail "GID $gid names $netdev, not $2"
		gids=$((gids + 1))
	done
	[ "$gids" -ge "$3" ] || fail "$1 has $gids GIDs, not $3"
}

gids_name_the_netdev() {
	case $(uname -r) in
	6.[1-4].*) skip "ib_core keeps the netdev for RoCE only, up to Linux 6.4" ;;
	esac
	ip link add nd0 type dummy
	ip link set nd0 up
	ip addr add 10.79.0.1/24 dev nd0
	rdma link add "${driver}shown" type "$driver" netdev nd0
	names_its_netdev "${driver}shown" nd0 2
	ip link set nd0 down
	ip link set nd0 name nd1
	ip link set nd1 address 02:00:00:00:79:01
	ip link set nd1 up
	ip addr add 10.79.0.2/24 dev nd1
	names_its_netdev "${driver}shown" nd1 3
	ip link delete nd1
}

vlan_connects() {
	local ns
	ip -n wa link add link va name va.5 type vlan id 5
	ip -n wb link add link vb name vb.5 type vlan id 5
	ip -n wa addr add 10.79.0.1/24 dev va.5
	ip -n wb addr add 10.79.0.2/24 dev vb.5
	ip -n wa link set va.5 up
	ip -n wb link set vb.5 up
	make_link "${driver}va" va.5 ip netns exec wa
	make_link "${driver}vb" vb.5 ip netns exec wb
	saddr4=10.79.0.1
	load
	# The port of a VLAN follows the device below it.
	ip -n wb link set vb down
	for _ in $(seq 50); do [ "$(state "${driver}vb")" = DOWN ] && break; sleep 0.1; done
	[ "$(state "${driver}vb")" = DOWN ] || fail "the VLAN's port stays up"
	ip -n wb link set vb up
	ip -n wb addr add "$peer6/64" dev vb nodad
	progresses "$load" 20
	stop_load
	for ns in wa wb; do ip -n "$ns" link delete "v${ns#w}.5"; done
}

topology_veth
t "MTU changes under load" mtu_changes
t "the link goes down for three seconds under load" link_flaps
t "the address is removed for two seconds under load" address_goes_and_comes
t "the port's state and events follow the link" port_follows_link
t "each GID names the netdev, under its new name too" gids_name_the_netdev
t "a bond fails over under load" bond_fails_over
t "a VLAN carries a link, and its port follows the device below" vlan_connects
finish
