#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Hosts with many addresses: which device a connection belongs to. Each row of the tables below
# is a server, an address that the client connects to, and the expected result.
. "$(dirname "$0")/lib.sh"

# Two network devices in one subnet: either can be reached through both. wb's static neighbours
# decide which one brings a packet.
suite addresses <<'TOPOLOGY'
  wa: va (10.77.0.1, fd77::1) weftA --- vb --- br0 (10.77.0.2, fd77::2) weftB :wb
      vc (10.77.0.3, fd77::3) weftC --- vd ----+
TOPOLOGY
only_plugins "$driver" rxe siw

a=${driver}A b=${driver}B c=${driver}C
mac_a=02:00:00:00:77:0a mac_c=02:00:00:00:77:0c
port=7174

srv=(ip netns exec wa) cli=(ip netns exec wb)
wa() { ip -n wa "$@"; }
wb() { ip -n wb "$@"; }

# link NETDEV DEVICE [TYPE]: in the namespace of the server.
link() { driver=${3:-$driver} make_link "$2" "$1" "${srv[@]}"; }

# It is made anew for each test, by few programs: an emulated CPU takes its time to start one.
topology() {
	local ns
	for ns in wa wb; do
		ip netns add $ns
		ip netns exec $ns sysctl -qw net.ipv4.conf.all.rp_filter=0 \
			net.ipv4.conf.default.rp_filter=0 net.ipv6.conf.all.accept_dad=0 \
			net.ipv6.conf.default.accept_dad=0
	done
	ip -batch - <<-EOF
		link add va netns wa address $mac_a type veth peer name vb netns wb
		link add vc netns wa address $mac_c type veth peer name vd netns wb
	EOF
	wb -batch - <<-EOF
		link set lo up
		link add br0 type bridge
		link set vb master br0
		link set vd master br0
		link set vb up
		link set vd up
		link set br0 up
		addr add 10.77.0.2/24 dev br0
		addr add fd77::2/64 dev br0 nodad
	EOF
	wa -batch - <<-EOF
		link set lo up
		link set va up
		link set vc up
		addr add 10.77.0.1/24 dev va
		addr add 10.77.0.3/24 dev vc
		addr add fd77::1/64 dev va nodad
		addr add fd77::3/64 dev vc nodad
	EOF
	link va "$a"
	link vc "$c"
	make_link "$b" br0 "${cli[@]}"
}

# through ADDRESS MAC: wb sends what is for that address there.
through() { wb neigh replace "$1" lladdr "$2" dev br0; }

# --- what a row says -------------------------------------------------------------

# served_by DEVICE: the last connection was accepted, and counted there.
declare -A count_before
remember_counts() {
	local dir name
	for dir in "/sys/class/infiniband/$driver"*; do
		name=${dir##*/}
		count_before[$name]=$(counted connections_passive "$name")
	done
}

served_by() {
	[ "$(counted connections_passive "$1")" -gt "${count_before[$1]}" ] ||
		fail "it was not $1 that accepted"
}

# reach BIND TARGET DEVICE [SOURCE]: a server on BIND is reached at TARGET, by DEVICE ("any": by
# whichever), data compared.
reach() {
	local source=()
	[ -z "${4:-}" ] || source=(-I "$4")
	remember_counts
	serve "$port" 60 rping -s -a "$1" -V -C 2
	client 60 rping -c -a "$2" "${source[@]}" -V -C 2
	wait_server
	[ "$3" = any ] || served_by "$3"
}

# fails_at_once TARGET PATTERN: the client of a server that was started ends at once, and says why.
fails_at_once() {
	local rc=0 began=$SECONDS
	limit 60 "${cli[@]}" rping -c -a "$1" -V -C 2 >"$tmp/client.log" 2>&1 || rc=$?
	cat "$tmp/client.log"
	[ "$rc" -ne 0 ] || fail "it is accepted"
	expect "$2" "$tmp/client.log"
	[ $((SECONDS - began)) -lt $((10 * slow)) ] || fail "it takes $((SECONDS - began)) s"
	stop_server
}

# refused BIND TARGET: the client is refused at once, which is long before TCP gives up.
refused() {
	serve "$port" 60 rping -s -a "$1" -V -C 2
	fails_at_once "$2" 'REJECTED|error -?111|refused'
}

# --- addresses of several network devices -----------------------------------------

for_the_other_netdev() {
	through 10.77.0.3 "$mac_a"
	through fd77::3 "$mac_a"
	through 10.77.0.1 "$mac_c"
	reach "$1" "$2" "$3"
}

elsewhere() {
	wa addr add 10.88.0.1/32 dev "$1"
	wb route replace 10.88.0.1 via 10.77.0.1
	through 10.77.0.1 "$mac_a"	# no seconds of ARP
}

on_lo_without_weft() {
	elsewhere lo
	refused 0.0.0.0 10.88.0.1
}

on_lo_with_weft() {
	elsewhere lo
	link lo "${driver}L"
	reach "$1" 10.88.0.1 "${driver}L"
}

on_dummy() {
	modprobe -q dummy
	wa link add dummy7 type dummy
	wa link set dummy7 up
	elsewhere dummy7
	link dummy7 "${driver}D"
	reach "$1" 10.88.0.1 "${driver}D"
}

# A wildcard follows the address, and so does a new listener on it.
floats() {
	wa addr add 10.77.0.9/24 dev va
	through 10.77.0.9 "$mac_a"
	reach 0.0.0.0 10.77.0.9 "$a"
	wa addr del 10.77.0.9/24 dev va
	wa addr add 10.77.0.9/24 dev vc
	through 10.77.0.9 "$mac_c"
	reach 0.0.0.0 10.77.0.9 "$c"
	reach 10.77.0.9 10.77.0.9 "$c"
}

# rdma_cm has given the listener to one device, and gives the connection to the other. The first QP
# of either has the same number; that of the listener's device is of another program.
floats_under_a_listener() {
	local other
	start 60 "$tmp/other" "${srv[@]}" stdbuf -oL ibv_rc_pingpong -d "$a" -g 1 -p 18600
	other=$started
	until_said "$tmp/other" 'local address' "$other"
	wa addr add 10.77.0.9/24 dev va
	serve "$port" 60 rping -s -a 10.77.0.9 -V -C 2
	wa addr del 10.77.0.9/24 dev va
	wa addr add 10.77.0.9/24 dev vc
	through 10.77.0.9 "$mac_c"
	fails_at_once 10.77.0.9 'REJECTED|refused'
	kill "$other"
	wait "$other" || true
}

# --- routes that differ there and back ----------------------------------------------

# What comes in by va is answered by vc, which is the only one that leads there.
another_way_back() {
	wb addr add 10.99.0.2/32 dev br0
	wa route add 10.99.0.2/32 dev vc
	through 10.77.0.1 "$mac_a"
	reach 0.0.0.0 10.77.0.1 "$a" 10.99.0.2
	reach 10.77.0.1 10.77.0.1 "$a" 10.99.0.2
}

policy_routing() {
	wb addr add 10.99.0.2/32 dev br0
	wa rule add from 10.77.0.1 lookup 177 || skip "this kernel has no policy routing"
	wa route add 10.99.0.2/32 dev vc table 177
	through 10.77.0.1 "$mac_a"
	reach 0.0.0.0 10.77.0.1 "$a" 10.99.0.2
	reach 10.77.0.1 10.77.0.1 "$a" 10.99.0.2
}

# Translated on its way, both addresses.
nat() {
	"${cli[@]}" tc qdisc add dev br0 clsact
	"${cli[@]}" tc filter add dev br0 egress protocol ip flower dst_ip 10.66.0.1 \
		action nat ingress 10.66.0.1/32 10.77.0.1 pipe \
		action nat egress 10.77.0.2/32 10.66.0.2 ||
		skip "this kernel translates no addresses"
	"${cli[@]}" tc filter add dev br0 ingress protocol ip flower dst_ip 10.66.0.2 \
		action nat ingress 10.66.0.2/32 10.77.0.2 pipe \
		action nat egress 10.77.0.1/32 10.66.0.1
	wb route add 10.66.0.1/32 dev br0
	wb neigh replace 10.66.0.1 lladdr "$mac_a" dev br0
	wa route add 10.66.0.2/32 dev va
	wa neigh replace 10.66.0.2 lladdr "$(wb -br link show br0 | awk '{ print $3 }')" dev va
	reach 0.0.0.0 10.66.0.1 "$a"
	reach 10.77.0.1 10.66.0.1 "$a"
}

# --- network devices with one MAC ---------------------------------------------------

# twin NAME ADDRESS: a network device above or below another one, with an address of its own.
twin() {
	wa link set "$1" up
	wa addr add "$2/24" dev "$1"
	link "$1" "${driver}T"
}

# Both ends of a connection in wa, to and from one address: what travels by lo.
at_home() {
	local cli=("${srv[@]}")
	reach "$1" "$2" "$3" "$2"
}

guid() { cat "/sys/class/infiniband/$1/node_guid"; }

# works_beside NETDEV ADDRESS DEVICE OTHER-ADDRESS OTHER-DEVICE
each_is_its_own() {
	local upper=${driver}T lower=$3
	# librdmacm tells them apart by it.
	[ "$(guid "$upper")" != "$(guid "$lower")" ] || fail "they have the same GUID"
	if lenient; then upper=any lower=any; fi
	at_home "$1" "$1" "$upper"
	at_home 0.0.0.0 "$1" "$upper"
	at_home 0.0.0.0 "$2" "$lower"
	at_home "$2" "$2" "$lower"
}

# For an address of a VLAN, or of what is below it, rdma_cm has since 6.5 taken the device that
# was added first.
lenient() {
	local major minor
	IFS=. read -r major minor _ < <(uname -r)
	[ "$major$(printf %03d "${minor%%[!0-9]*}")" -ge 6005 ] &&
		wa -d link show twin0 | grep -q ' vlan '
}

# made_on TYPE [WORD]...: a network device of that type on va.
made_on() {
	wa link add link va name twin0 type "$@" || skip "this kernel has no $1"
	twin twin0 10.71.0.1
	each_is_its_own 10.71.0.1 10.77.0.1 "$a"
}

# The other way round: what is below comes second.
below_comes_second() {
	"${srv[@]}" rdma link delete "$a"
	wa link add link va name twin0 type "$@" || skip "this kernel has no $1"
	twin twin0 10.71.0.1
	link va "$a"
	each_is_its_own 10.71.0.1 10.77.0.1 "$a"
}

# A member gets the MAC of the bond when both have a device already.
bond() {
	modprobe -q bonding max_bonds=0
	modprobe -q dummy
	wa link add twin0 type bond mode active-backup
	wa link add dummy8 address 02:00:00:00:77:08 type dummy
	wa link add dummy9 address 02:00:00:00:77:09 type dummy
	wa link set dummy8 master twin0
	link dummy9 "${driver}M"
	twin twin0 10.71.0.1
	wa link set dummy9 master twin0
	wa addr add 10.72.0.1/24 dev dummy9
	each_is_its_own 10.71.0.1 10.72.0.1 "${driver}M"
}

# --- IPv6 link-local ------------------------------------------------------------------

link_local() { ip -n "$1" -6 -o addr show dev "$2" scope link | sed 's,.* \(fe80[^/]*\)/.*,\1,'; }

scoped() {
	local there
	there=$(link_local wa va)
	through "$there" "$mac_a"
	reach "$there%va" "$there%br0" "$a"
	reach :: "$there%br0" "$a"
}

# A VLAN has the link-local address of the network device below.
scoped_twice() {
	local there
	wa link add link va name twin0 type vlan id 7
	twin twin0 10.71.0.1
	wb link add link br0 name br0.7 type vlan id 7
	wb link set br0.7 up
	there=$(link_local wa twin0)
	reach :: "$there%br0.7" any
	reach :: "$there%br0" any
}

# --- other drivers beside -------------------------------------------------------------

# beside DRIVER ORDER: the same network devices have both, at either end.
beside() {
	local other=$1 order=$2
	modprobe -q "rdma_$other" || modprobe -q "$other" || skip "this kernel has no $other"
	if [ "$order" = first ]; then
		"${srv[@]}" rdma link delete "$a"
		"${cli[@]}" rdma link delete "$b"
	fi
	link va otherA "$other"
	"${cli[@]}" rdma link add otherB type "$other" netdev br0
	wb link add br1 type bridge	# the last of all is one without it
	if [ "$order" = first ]; then
		link va "$a"
		make_link "$b" br0 "${cli[@]}"
	fi
	through 10.77.0.1 "$mac_a"
	by_hand
	everybody_listens
	[ "$order" = first ] || reach 10.77.0.1 10.77.0.1 "$a"
}

# rdma_cm gives up if one device cannot listen for a wildcard.
everybody_listens() {
	serve "$port" 60 rping -s -a 0.0.0.0 -V -C 2
	sleep_nofork 0.5
	kill -0 "$server" || fail_server "it does not go on"
	stop_server
}

# weft itself, without rdma_cm's choice.
by_hand() {
	serve 18515 60 ibv_rc_pingpong -d "$a" -g "$(gid_of "$a" 0a4d:0001)" -n 10
	client 60 ibv_rc_pingpong -d "$b" -g "$(gid_of "$b" 0a4d:0002)" -n 10 10.77.0.1
	wait_server
}

gid_of() {
	local i
	for i in $(seq 127); do
		[[ $(cat "/sys/class/infiniband/$1/ports/1/gids/$i") != *"$2" ]] || break
	done
	echo "$i"
}

# --- ports ------------------------------------------------------------------------------

# occupy NAMESPACE ADDRESS: a TCP server has the port there.
occupy() {
	start 60 "$tmp/occupied" ip netns exec "$1" python3 -c '
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
print("listens", flush=True)
s.accept()' "$2" "$port"
	occupier=$started
	until_said "$tmp/occupied" listens "$occupier"
}

# tcp_sockets: that are not freed, of all namespaces, also those of the kernel.
tcp_sockets() { sed -n 's/^TCP: .* alloc \([0-9]*\) .*/\1/p' /proc/net/sockstat; }

# A listener that cannot be leaves no socket.
in_use() {
	local before
	occupy wa "$1"
	before=$(tcp_sockets)
	! limit 20 "${srv[@]}" rping -s -a "$2" -V -C 2 >"$tmp/server.log" 2>&1 ||
		fail "it listens"
	cat "$tmp/server.log"
	expect 'rdma_listen: Address already in use' "$tmp/server.log"
	[ "$(tcp_sockets)" -le "$before" ] || fail "$before sockets of TCP, and $(tcp_sockets) afterwards"
}

# The port of a wildcard is that of its own namespace, and of no other one.
each_namespace_its_own() {
	occupy wb 0.0.0.0
	reach_in_wa
	kill "$occupier"
	wait "$occupier" || true
	serve "$port" 60 rping -s -a 0.0.0.0 -V -C 2
	occupy wb 0.0.0.0
	kill "$occupier"
	stop_server
}

# Programs of two namespaces listen at one port, each on the devices of its own.
each_namespace_listens() {
	local in_wa=("${srv[@]}") in_wb=("${cli[@]}") srv cli first
	srv=("${in_wa[@]}") cli=("${in_wb[@]}")
	serve "$port" 60 rping -s -a 0.0.0.0 -V -C 2
	first=$server
	srv=("${in_wb[@]}") cli=("${in_wa[@]}")
	serve "$port" 60 rping -s -a 0.0.0.0 -V -C 2
	client 60 rping -c -a 10.77.0.2 -V -C 2
	wait_server
	srv=("${in_wa[@]}") cli=("${in_wb[@]}") server=$first
	client 60 rping -c -a 10.77.0.1 -V -C 2
	wait_server
}

reach_in_wa() { at_home 0.0.0.0 10.77.0.1 "$a"; }

two_wildcards() {
	local cli=("${srv[@]}")
	serve "$port" 60 rping -s -a 0.0.0.0 -V -C 2
	! limit 20 "${srv[@]}" rping -s -a 0.0.0.0 -V -C 2 || fail "two listen"
	! limit 20 "${srv[@]}" rping -s -a 10.77.0.3 -V -C 2 || fail "two listen"
	client 60 rping -c -a 10.77.0.1 -V -C 2
	wait_server
}

# A device that comes and goes under a wildcard takes part while it is there.
comes_and_goes() {
	"${srv[@]}" rdma link delete "$c"
	serve "$port" 60 rping -s -P -a 0.0.0.0 -V
	through 10.77.0.3 "$mac_c"
	! limit 20 "${cli[@]}" rping -c -a 10.77.0.3 -V -C 2 || fail "accepted by whom?"
	link vc "$c"
	client 60 rping -c -a 10.77.0.3 -V -C 2
	"${srv[@]}" rdma link delete "$a"
	client 60 rping -c -a 10.77.0.3 -V -C 2
	link va "$a"
	client 60 rping -c -a 10.77.0.1 -V -C 2
	stop_server
}

before_test() {
	cleanup
	topology
}

after_test() {
	idle || return 1
	new_splats
}

for module in veth ipv6 bridge; do modprobe -q $module; done
t "one subnet: a wildcard, v4" for_the_other_netdev 0.0.0.0 10.77.0.3 "$c"
t "one subnet: a wildcard, v6" for_the_other_netdev :: fd77::3 "$c"
t "one subnet: an address, v4" for_the_other_netdev 10.77.0.3 10.77.0.3 "$c"
t "one subnet: an address, v6" for_the_other_netdev fd77::3 fd77::3 "$c"
t "an address on lo, without a device there" on_lo_without_weft
t "an address on lo, with one: a wildcard" on_lo_with_weft 0.0.0.0
t "an address on lo, with one: the address" on_lo_with_weft 10.88.0.1
t "an address on a dummy: a wildcard" on_dummy 0.0.0.0
t "an address on a dummy: the address" on_dummy 10.88.0.1
t "an address that moves" floats
t "an address that moves to another device under its listener" floats_under_a_listener
t "another way back" another_way_back
t "policy routing" policy_routing
t "translated addresses" nat
t "one MAC: VLAN" made_on vlan id 7
t "one MAC: VLAN, below is added second" below_comes_second vlan id 7
t "one MAC: macvlan passthru" made_on macvlan mode passthru
t "one MAC: macvlan passthru, below is added second" below_comes_second macvlan mode passthru
t "one MAC: ipvlan" made_on ipvlan mode l3
t "one MAC: macsec" made_on macsec
t "one MAC: a bond and its member" bond
t "link-local addresses" scoped
t "one link-local address on two network devices" scoped_twice
for other in rxe siw; do
	for order in first second; do
		t "beside $other, which is added $order" beside $other $order
	done
done
t "ports: a wildcard that a wildcard occupies" in_use 0.0.0.0 0.0.0.0
t "ports: a wildcard that an address occupies" in_use 10.77.0.3 0.0.0.0
t "ports: an address that a wildcard occupies" in_use 0.0.0.0 10.77.0.3
t "ports: an address that it occupies itself" in_use 10.77.0.3 10.77.0.3
t "ports: v6" in_use :: fd77::1
t "ports: each namespace has its own" each_namespace_its_own
t "ports: two namespaces listen at one" each_namespace_listens
t "ports: two wildcards" two_wildcards
t "a device is added and removed under a wildcard" comes_and_goes
cleanup
finish
