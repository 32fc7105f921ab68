#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Two ends on one host, without TCP in between: data of each operation, sudden ends, receives
# that come late, and an attribute that changes while data flows.
. "$(dirname "$0")/lib.sh"

# VERBS are cases of the suite verbs that run here with the attribute set.
suite loopback <<'TOPOLOGY'
  one program, both ends --- wd0 (dummy, 10.77.0.1, fd77::1) --- no TCP but for start and end
  or: wa, va (10.77.0.1) weft on it --- veth --- wb, vb (10.77.0.2) weft on it
TOPOLOGY
only_plugins "$driver"

set_attribute() { echo "$2" >"/sys/class/infiniband/${3:-$dev}/params/$1"; }

# direct: segments that did not go by TCP. The core refreshes its counters with a delay.
direct() {
	sleep 0.1
	counted loopback_tx_segments
}

# grows COMMAND...: it hands segments over.
grows() {
	local before
	before=$(direct)
	"$@" || return 1
	[ "$(direct)" -gt "$before" ] || fail "all went by TCP"
}

# stays COMMAND...: it hands none over.
stays() {
	local before
	before=$(direct)
	"$@" || return 1
	[ "$(direct)" -eq "$before" ] || fail "$(($(direct) - before)) segments did not go by TCP"
}

verbs_case() { limit 120 "$verbs" "$saddr4" "$1"; }

# verbs_with CASE ATTRIBUTE VALUE DEFAULT: messages that find no receive go by TCP, perhaps all.
verbs_with() {
	local rc=0
	set_attribute "$2" "$3"
	verbs_case "$1" || rc=$?
	set_attribute "$2" "$4"
	return "$rc"
}

# QPs that a program connects itself: they have a reason for each request that fails.
direct_case() {
	limit 60 /usr/bin/python3 "$here/progs/direct.py" --device "$dev" --peer "$dev" \
		--gid "$1" "$2"
}

# pings COUNT SIZE [ADDRESS]: Sends both ways, a Read and a Write per round, data compared.
pings() {
	rping_pair 100 "${3:-$saddr4}" "$1" -V -S "$2"
	assert_no_match 'error|mismatch|corrupt|fail' "$tmp/client.log"
}

# running: rping without end; its processes are in $server and $client, and rounds have begun.
running() {
	serve 7174 60 rping -s -a "$saddr4" -V -S 4000
	start 60 "$tmp/client.log" "${cli[@]}" stdbuf -oL rping -c -v -V -a "$saddr4" -S 4000 -C 1000000
	client=$started
	until [ "$(rounds)" -gt 10 ]; do
		kill -0 "$client" || { cat "$tmp/client.log"; fail "the client ended"; }
		sleep 0.1
	done
}

rounds() { grep -c rdma-ping "$tmp/client.log" || true; }

# goes_on: a hundred rounds more, with good data.
goes_on() {
	local from
	from=$(rounds)
	until [ "$(rounds)" -gt $((from + 100)) ]; do
		kill -0 "$client" || { tail "$tmp/client.log"; fail "the client ended"; }
		sleep 0.1
	done
	assert_no_match 'error|mismatch|corrupt|fail' "$tmp/client.log"
}

end_both() {
	kill "$client" "$server" 2>/dev/null || true
	wait "$client" "$server" || true
}

# Back and forth: each change finds messages of all kinds on their way.
attribute_changes_amid_traffic() {
	local i
	running
	for i in 0 1 0 2 1 0 1 0 1; do
		set_attribute loopback "$i"
		goes_on
	done
	set_attribute loopback 0
	goes_on
	stays goes_on
	set_attribute loopback 1
	grows goes_on
	end_both
}

# Each round reads what is pinged, and writes it back.
bytes_are_counted() {
	local before
	before=$(counted loopback_tx_bytes)
	pings 40 1000
	sleep 0.1
	[ "$(counted loopback_tx_bytes)" -gt $((before + 40000)) ] ||
		fail "$(($(counted loopback_tx_bytes) - before)) bytes"
}

# Between namespaces it is TCP again as soon as one end does not allow more than its own, be it the
# one that was there first or the other.
narrowed() {
	local end
	running
	grows goes_on
	for end in a b; do
		set_attribute loopback 1 "$driver$end"
		goes_on
		stays goes_on
		set_attribute loopback 2 "$driver$end"
		grows goes_on
	done
	end_both
}

# The other end gets an event, and no object stays (after_test).
killed() {
	local victim=$1 other=$2 i
	running
	victim=${!victim} other=${!other}
	pkill -KILL -P "$victim" || true
	for ((i = 0; i < 100; i++)); do
		kill -0 "$other" 2>/dev/null || return 0
		sleep 0.1
	done
	fail "the other end goes on"
}

link_goes() {
	running
	limit 10 rdma link delete "$dev"
	wait "$client" "$server" || true
	LOOPBACK=1 make_link "$dev" wd0
}

# What is local in a VRF goes by its device, not by lo.
in_a_vrf() {
	modprobe -q vrf || skip "this kernel has no VRF"
	ip link add wv6 type vrf table 77
	ip link add wd6 type dummy
	ip link set wd6 master wv6
	ip link set wv6 up
	ip link set wd6 up
	ip addr add 10.86.0.1/24 dev wd6
	ip route add 10.86.0.1/32 dev wv6
	sysctl -qw net.ipv4.ip_nonlocal_bind=1 net.ipv4.tcp_l3mdev_accept=1
	LOOPBACK=1 make_link "${driver}v" wd6
	dev=${driver}v grows direct_case 1 one_way
	rdma link delete "${driver}v"
	ip link delete wd6
	ip link delete wv6
	sysctl -qw net.ipv4.ip_nonlocal_bind=0 net.ipv4.tcp_l3mdev_accept=0
}

# Each end sees the other at an address that is translated: the sequence numbers are the same.
translated() {
	modprobe -q tun || skip "this kernel has no tun"
	ip netns exec wa ip tuntap add ka mode tun
	ip netns exec wb ip tuntap add kb mode tun
	start 60 "$tmp/forward" python3 "$here/progs/tun_forward.py" wa ka wb kb \
		10.88.0.1=10.66.0.1 10.66.0.2=10.88.0.2
	local forwarder=$started
	until_said "$tmp/forward" ready "$forwarder"
	netns_end wa ka 10.88.0.1 fd88::1 "${driver}ka" "$driver"
	netns_end wb kb 10.88.0.2 fd88::2 "${driver}kb" "$driver"
	ip -n wa route add 10.66.0.2/32 dev ka
	ip -n wb route add 10.66.0.1/32 dev kb
	set_attribute loopback 2 "${driver}ka"
	set_attribute loopback 2 "${driver}kb"
	serve 7174 60 rping -s -a 10.88.0.1 -V -C 20
	client 60 rping -c -a 10.66.0.1 -V -C 20
	wait_server
	sleep 0.1
	[ "$(counted loopback_tx_segments "${driver}kb")" -eq 0 ] ||
		fail "$(counted loopback_tx_segments "${driver}kb") segments did not go by TCP"
	rdma link delete "${driver}ka"
	rdma link delete "${driver}kb"
	kill "$forwarder"
	ip -n wa link delete ka
	ip -n wb link delete kb
}

topology_dummy
verbs=$(compile verbs) || { echo "Bail out! $verbs"; exit 1; }
set_attribute loopback 0
t "attribute: 0 is TCP" stays verbs_case inline_data
set_attribute loopback 1
for name in inline_data several_elements zero_length unsignalled fence solicited around_the_rings \
	atomic_fetch_add atomic_cmp_swap atomic_hammer write_with_imm send_with_imm_refused \
	read_beyond_region write_beyond_region receive_too_short receive_bad_lkey \
	atomic_misaligned_fadd window_after_remote_invalidate dereg_while_written \
	odp_every_operation; do
	t "verbs: $name" grows verbs_case "$name"
done
set_attribute close_timeout_ms 1000
for name in late_receives_both_ways late_long_messages late_peer_disconnects late_destroy late_srq; do
	t "late: ${name#late_}" verbs_with "$name" rnr_timeout_ms 600000 1000
done
set_attribute close_timeout_ms 5000
t "late: never" verbs_with late_never rnr_timeout_ms 600 1000
for index in 1 2; do
	for name in no_receive refused_requests; do
		t "direct, GID $index: $name" grows direct_case "$index" $name
	done
done
t "data: rounds of rping" grows pings 300 60000
t "data: IPv6" grows pings 20 60000 "$saddr6"
t "data: bytes are counted" bytes_are_counted
t "attribute: changes amid traffic" attribute_changes_amid_traffic
t "killed: client" killed client server
t "killed: server" killed server client
t "removal: link" link_goes
t "a VRF" in_a_vrf
cleanup >/dev/null 2>&1

topology_veth
for word in 0 1 2; do set_attribute loopback "$word" "${driver}b"; done
dev="${driver}b"
for word in 0 1; do
	set_attribute loopback "$word" "${driver}a"
	t "namespaces: $word is TCP" stays pings 20 5000
done
set_attribute loopback 2 "${driver}a"
t "namespaces: 2 is not" grows pings 300 60000
t "namespaces: 2 at one end becomes 1" narrowed
t "namespaces: 2, and addresses are translated" translated
set_attribute loopback 1 "${driver}b"
t "namespaces: 2 at one end only is TCP" stays pings 20 5000
finish
