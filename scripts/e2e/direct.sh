#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# QPs that programs connect themselves, by ibv_modify_qp() with an address vector: the examples
# of libibverbs and perftest without -R, all unmodified; and progs/direct.py.
. "$(dirname "$0")/lib.sh"

suite direct <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
  wa: va (10.77.0.1, fd77::1) weft on it --- veth --- wb: vb (10.77.0.2, fd77::2) weft on it
TOPOLOGY
only_plugins "$driver"

direct=$here/progs/direct.py
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing

# --- the GID table ---

gid() { cat "/sys/class/infiniband/${2:-$dev}/ports/1/gids/$1"; }

# await_gid INDEX GID: address notifiers come in their own time.
await_gid() { until_true 5 gid_is "$1" "$2" || fail "GID $1 is $(gid "$1"), not $2"; }
gid_is() { [ "$(gid "$1")" = "$2" ]; }

mapped=0000:0000:0000:0000:0000:ffff
none=0000:0000:0000:0000:0000:0000:0000:0000

gids_are_addresses() {
	[ "$(gid 0)" != "$none" ] || fail "GID 0 is empty"
	await_gid 1 "$mapped:0a4d:0001"
	grep -qx fd77:0000:0000:0000:0000:0000:0000:0001 \
		"/sys/class/infiniband/$dev/ports/1/gids/"*
	ibv_devinfo -v -d "$dev" | tee "$tmp/info"
	expect 'GID\[ *1\]:.*ffff:0a4d:0001' "$tmp/info"
}

# An address keeps its index; one that goes leaves a hole, which the next one takes.
gids_follow_addresses() {
	local free=1 first
	first=$(gid 0)
	while [ "$(gid "$free")" != "$none" ]; do free=$((free + 1)); done
	ip addr add 10.78.0.1/24 dev wd0
	await_gid "$free" "$mapped:0a4e:0001"
	ip addr add 10.78.0.2/24 dev wd0
	await_gid $((free + 1)) "$mapped:0a4e:0002"
	ip addr del 10.78.0.2/24 dev wd0
	ip addr add fd78::1/64 dev wd0 nodad
	await_gid $((free + 1)) fd78:0000:0000:0000:0000:0000:0000:0001
	ip addr del fd78::1/64 dev wd0
	ip addr del 10.78.0.1/24 dev wd0
	await_gid "$free" "$none"
	await_gid $((free + 1)) "$none"
	[ "$(gid 0)" = "$first" ]
	await_gid 1 "$mapped:0a4d:0001"
}

# A GID is the own address; a point-to-point link names that of the peer beside it.
peer_is_no_gid() {
	local free=1
	while [ "$(gid "$free")" != "$none" ]; do free=$((free + 1)); done
	ip addr add 10.78.9.1 peer 10.78.9.2/32 dev wd0
	await_gid "$free" "$mapped:0a4e:0901"
	await_gid $((free + 1)) "$none"
	ip addr del 10.78.9.1 peer 10.78.9.2/32 dev wd0
	await_gid "$free" "$none"
}

# An address that a netdev has twice is one GID.
address_twice() {
	ip link add wd7 type dummy
	ip -batch - <<-'EOF'
		addr add 10.78.0.1/32 dev wd7
		addr add 10.78.0.1/31 dev wd7
		addr add 10.78.0.2/32 dev wd7
	EOF
	rdma link add weft7 type weft netdev wd7
	[ "$(gid 1 weft7) $(gid 2 weft7) $(gid 3 weft7)" = \
		"$mapped:0a4e:0001 $mapped:0a4e:0002 $none" ] || fail "$(gid 1 weft7) $(gid 2 weft7)"
	rdma link delete weft7
	ip link delete wd7
}

# IPv4 needs an MTU of 68, and IPv6 one of 1280.
neither_ipv4_nor_ipv6() {
	ip link add wd7 type dummy
	ip link set wd7 mtu 67 up
	rdma link add weft7 type weft netdev wd7
	[ "$(gid 0 weft7)" != "$none" ] || fail "GID 0 is empty"
	has_no_address weft7 || fail "there are GIDs of addresses"
	ip link set wd7 mtu 1500
	ip addr add 10.78.0.1/32 dev wd7
	until_true 5 grep -qx "$mapped:0a4e:0001" /sys/class/infiniband/weft7/ports/1/gids/*
	ip link set wd7 mtu 67
	until_true 5 has_no_address weft7 || fail "GIDs are left"
	rdma link delete weft7
	ip link delete wd7
}
has_no_address() { ! grep -qvx "$none" "/sys/class/infiniband/$1/ports/1/gids/"[1-9]*; }

# GID 0 is made of the MAC; rdma_cm finds the device by it.
mac_is_followed() {
	local was
	was=$(cat /sys/class/net/wd0/address)
	ip link set wd0 address 02:00:00:00:79:02
	await_gid 0 0200:0000:7902:0000:0000:0000:0000:0000
	ip link set wd0 address "$was"
}

# Programs get the event after the table has changed.
gid_event() {
	watch_events "$dev"
	ip addr add 10.79.0.1/24 dev wd0
	until_said "$tmp/events" 'event_type .*GID' "$started"
	ip addr del 10.79.0.1/24 dev wd0
	kill "$started" 2>/dev/null || true
}

many_addresses() {
	local i
	# More than a full table has space for, and more than that once more.
	for i in {1..4}.{1..100}; do echo "addr add 10.80.$i/32 dev wd0"; done | ip -batch -
	sleep_nofork 0.5
	[ "$(gid 2)" = fd77:0000:0000:0000:0000:0000:0000:0001 ] || fail "an address lost its GID"
	[ "$(gid 127)" != "$none" ] || fail "the table does not fill"
	pingpong ibv_rc_pingpong -n 100
	for i in {1..4}.{1..100}; do echo "addr del 10.80.$i/32 dev wd0"; done | ip -batch -
	await_gid 127 "$none"
}

# --- libibverbs' own examples ---

# pingpong PROGRAM OPTION...: a pair, over the device and GID of this topology.
pingpong() {
	local program=$1
	shift
	serve 18515 60 "$program" -d "$sdev" -g "$index" "$@"
	client 60 "$program" -d "$cdev" -g "$index" "$@" "$saddr4"
	wait_server
	expect 'iters in' "$tmp/client.log"
	expect 'iters in' "$tmp/server.log"
}

without_a_gid() {
	serve 18515 60 ibv_rc_pingpong -d "$sdev"
	! limit 30 "${cli[@]}" ibv_rc_pingpong -d "$cdev" "$saddr4" >"$tmp/client.log" 2>&1 ||
		fail "it works"
	stop_server
	cat "$tmp/client.log"
	cat "$tmp/server.log" >>"$tmp/client.log"
	expect 'Failed to modify QP to RTR' "$tmp/client.log"
	kernel_says >"$tmp/log"
	expect 'name it by a GID' "$tmp/log"
}

# --- perftest ---

# bench PROGRAM OPTION...: a pair that connects by hand.
bench() {
	local program=$1
	shift
	serve 18515 120 "$program" -d "$sdev" -x "$index" -F "$@"
	client 120 "$program" -d "$cdev" -x "$index" -F "$@" "$saddr4"
	wait_server
	assert_no_match "[Ff]ailed|Couldn't|error" "$tmp/client.log"
	awk 'NF >= 5 && $1 ~ /^[0-9]+$/ { ok = 1 } END { exit !ok }' "$tmp/client.log" ||
		fail "no measurement"
}

# On an iWARP device, perftest has a flow control of its own for Sends: the receiver tells by a
# Write how many it has got, and the sender stops when as many are outstanding as there are
# receives (-r, 512). Perftest 4.5 without -R never deregisters the word for that, and ends with a
# complaint of its own after a good measurement; the newer one does not. And with -e the sender
# waits for an event also when it has stopped, which a Write does not raise: one that is quicker
# than the receiver waits for ever for its last credit. There are no more receives than messages,
# but perftest rounds them up to an even number, so an odd number of messages needs no credit.
send_bw() {
	serve 18515 120 ib_send_bw -d "$sdev" -x "$index" -F "$@"
	limit 120 "${cli[@]}" ib_send_bw -d "$cdev" -x "$index" -F "$@" "$saddr4" \
		>"$tmp/client.log" 2>&1 || expect "Failed to deallocate PD" "$tmp/client.log" 1
	cat "$tmp/client.log"
	wait "$server" || expect "Failed to deallocate PD" "$tmp/server.log" 1
	assert_no_match "Completion with error|Couldn't (read|write|modify)" "$tmp/client.log"
	awk '$1 == size && NF >= 5 { ok = 1 } END { exit !ok }' size="$2" "$tmp/client.log" ||
		fail "no measurement"
}

newer() {
	[ -x "${NEWER_PERFTEST:-}/ib_write_bw" ] || skip "NEWER_PERFTEST names no newer perftest"
	bench "$NEWER_PERFTEST/$1" "${@:2}"
}

# --- our own ---

case_of() { limit 100 "${cli[@]}" /usr/bin/python3 "$direct" --device "$sdev" --peer "$cdev" \
	--gid "$index" "$@"; }

# cases TITLE CASE...
cases() {
	local name
	for name in "${@:2}"; do t "$1: $name" case_of "$name"; done
}

# What depends on addresses, on the device that connects, and on the way of the data.
hand_cases() {
	cases "$1" both_orders posts_wait one_way many attributes depths second_life refused_requests \
		error_and_destroy bad_attributes psn_known_late anothers_qp
}

port_without_memory() {
	has_fault_injection
	case_of port_without_memory
}

# What waits for deadlines. They run from what is posted and what has arrived, wherever the peer
# is, so one topology is enough.
patient_cases() {
	cases "$1" late_receive no_receive no_peer retries_count attempts_are_spaced peer_goes wrong_psn
}

# Only one of two devices connects, and that with the smaller GID.
both_ends_are_counted() {
	local before
	before=$(connections)
	case_of pair
	[ "$(connections)" = "$((${before% *} + 1)) $((${before#* } + 1))" ] ||
		fail "$before before, $(connections) after"
}
connections() {
	echo "$(counted connections_active "$sdev") $(counted connections_passive "$cdev")"
}

topology_dummy
sdev=$dev cdev=$dev index=1
t "GIDs are the addresses" gids_are_addresses
t "GIDs follow the addresses" gids_follow_addresses
t "the peer of a point-to-point link has no GID" peer_is_no_gid
t "an address twice is one GID" address_twice
t "a netdev with neither IPv4 nor IPv6" neither_ipv4_nor_ipv6
t "GID 0 follows the MAC" mac_is_followed
t "programs get an event" gid_event
t "the event follows the table" case_of event_follows_the_table
t "more addresses than GIDs" many_addresses

t "ibv_rc_pingpong" pingpong ibv_rc_pingpong
t "ibv_rc_pingpong -e" pingpong ibv_rc_pingpong -e
t "ibv_rc_pingpong -c" pingpong ibv_rc_pingpong -c
t "ibv_rc_pingpong -t" pingpong ibv_rc_pingpong -t -n 100
t "ibv_rc_pingpong -N" pingpong ibv_rc_pingpong -N -n 100
for size in 1 4096 1000000; do
	t "ibv_rc_pingpong of $size bytes" pingpong ibv_rc_pingpong -s $size -n 100
done
for mtu in 256 512 1024 2048 4096; do
	t "ibv_rc_pingpong -m $mtu" pingpong ibv_rc_pingpong -m $mtu -n 100
done
t "ibv_rc_pingpong -r 16 -l 3 -i 1" pingpong ibv_rc_pingpong -r 16 -l 3 -i 1 -n 100
t "ibv_rc_pingpong without a GID" without_a_gid
t "ibv_srq_pingpong" pingpong ibv_srq_pingpong
t "ibv_srq_pingpong -e" pingpong ibv_srq_pingpong -e
t "ibv_srq_pingpong of 16 QPs" pingpong ibv_srq_pingpong -q 16 -r 500 -n 500
t "ibv_srq_pingpong -m 2048 -s 100000" pingpong ibv_srq_pingpong -m 2048 -s 100000 -n 100

t "ib_send_bw" send_bw -s 65536 -n 200
t "ib_send_bw -b" send_bw -s 4096 -n 200 -b
t "ib_send_bw -e" send_bw -s 4096 -n 501 -e
t "ib_send_bw -q 8" send_bw -s 4096 -n 100 -q 8
t "ib_send_lat" bench ib_send_lat -s 64 -n 200
for verb in write read; do
	t "ib_${verb}_bw" bench "ib_${verb}_bw" -s 65536 -n 200
	t "ib_${verb}_bw -b" bench "ib_${verb}_bw" -s 4096 -n 200 -b
	t "ib_${verb}_bw -q 8" bench "ib_${verb}_bw" -s 4096 -n 100 -q 8
	t "ib_${verb}_lat" bench "ib_${verb}_lat" -s 64 -n 200
done
t "ib_send_lat -e" bench ib_send_lat -s 64 -n 100 -e
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
	t "ib_atomic_bw $kind" bench ib_atomic_bw -n 200 -A $kind
	t "ib_atomic_lat $kind" bench ib_atomic_lat -n 200 -A $kind
done
for program in ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat \
	ib_atomic_bw ib_atomic_lat; do
	t "the newer $program" newer $program -n 200
done
hand_cases "one device"
patient_cases "one device"
t "a QP connected to itself" case_of itself
t "switched off" case_of switched_off
t "what operator and program choose" case_of choices
t "what the operator chooses for others" case_of consumers_choices
t "another port" case_of another_port
t "a port beside another" case_of ports_beside_each_other
t "each address" case_of each_address
t "a peer falls silent" by_tcp case_of silent_peer
t "the port is in use" case_of port_in_use
t "Send with immediate" case_of immediate
t "a peer that knows no Send with immediate" case_of peer_without_immediate
t "strangers at the port" case_of strangers
t "the right numbers from a wrong address" case_of wrong_address
t "the right numbers at a wrong address" case_of another_address
t "the right numbers at the end that connects" case_of at_the_end_that_connects
t "an answer with wrong numbers" case_of wrong_answer
t "a request without an answer" case_of no_answer
t "the port finds no memory for a connection" port_without_memory
t "a flood at the port" case_of flood
t "connections at the port are bounded" case_of flood_is_bounded
t "the oldest connection at the port makes room" case_of oldest_goes_first
t "requests that are held are bounded" case_of held_is_bounded
t "one of two whose requests are held" case_of held_for_another
t "half a handshake" case_of half_a_handshake
t "its PSN is known before the peer is ready" case_of psn_known_before_ready

index=2
t "IPv6: pingpong" pingpong ibv_rc_pingpong
hand_cases "IPv6"
t "IPv6: a QP connected to itself" case_of itself
t "IPv6: the port is in use" case_of port_in_use

cleanup >/dev/null 2>&1
topology_veth
# shellcheck disable=SC2154  # of lib.sh
sdev=${driver}a cdev=${driver}b
for index in 1 2; do
	t "namespaces, GID $index: ibv_rc_pingpong" pingpong ibv_rc_pingpong
	t "namespaces, GID $index: ib_send_bw" send_bw -s 65536 -n 200
	t "namespaces, GID $index: ib_write_bw" bench ib_write_bw -s 65536 -n 200
	hand_cases "namespaces, GID $index"
	t "namespaces, GID $index: both ends are counted" both_ends_are_counted
done
finish
