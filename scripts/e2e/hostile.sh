#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Bad peers and sudden ends: connections close within their deadlines, others on
# the same listener are not delayed, each side gets one event of the end, and
# nothing is left behind.
. "$(dirname "$0")/lib.sh"

suite hostile <<'TOPOLOGY'
  namespace wa                      namespace wb
  server, 10.77.0.1, fd77::1        client or bad peer, 10.77.0.2, fd77::2
  va ----------- veth, MTU 1500 ------------ vb
TOPOLOGY
only_plugins "$driver"

# Frames that are wrong need no deadline. Else the listener waits as long as mpa_request_timeout_ms
# says.
prompt=$((4 * slow)) deadline=$((8 * slow))
hostile=$here/progs/hostile.py

# A good client, while something else goes on.
others_are_served() {
	local began=$SECONDS
	client 30 rping -c -a "$saddr4" -v -C 3
	expect '^ping data: rdma-ping-' "$tmp/client.log" 3
	[ $((SECONDS - began)) -le $((6 * slow)) ] || fail "a good client was delayed"
}

bad_initiator() {
	local case=$1 limit=$2
	serve 7174 100 rping -s -P -a "$saddr4"
	start 60 "$tmp/bad" "${cli[@]}" python3 "$hostile" initiator "$case" "$saddr4" 7174 "$limit"
	local bad=$started
	for _ in {1..50}; do [[ $(<"$tmp/bad") != *connected* ]] || break; sleep_nofork 0.1; done
	others_are_served
	wait "$bad" || { cat "$tmp/bad"; fail "not closed within $limit s"; }
	cat "$tmp/bad"
	others_are_served
	stop_server
}

many_connect() {
	serve 7174 100 rping -s -P -a "$saddr4"
	limit 60 "${cli[@]}" python3 "$hostile" initiator "$1" "$saddr4" 7174
	others_are_served
	stop_server
}

# The other way round: the peer we connect to misbehaves. ucmatose ends with the
# event it got.
bad_responder() {
	local rc=0
	start 60 "$tmp/bad" "${srv[@]}" python3 "$hostile" responder "$1" "$saddr4" 7471
	local bad=$started
	until listening 7471 "$bad"; do sleep_nofork 0.1; done
	limit 50 "${cli[@]}" ucmatose -s "$saddr4" >"$tmp/out" 2>&1 || rc=$?
	cat "$tmp/out"
	[ "$rc" -ne 0 ] || fail "connected to a bad peer"
	[ "$rc" -ne 124 ] || fail "the client hung"
	expect 'EVENT_(REJECTED|UNREACHABLE|CONNECT_ERROR)' "$tmp/out" 1
	wait "$bad" || { cat "$tmp/bad"; fail "the connection was not closed"; }
	cat "$tmp/bad"
}

# --- sudden ends of living connections ------------------------------------------

# living_pair: an rping server and client that would go on for ever.
living_pair() {
	serve 7174 60 stdbuf -oL rping -s -d -a "$saddr4"
	start 60 "$tmp/client.log" "${cli[@]}" stdbuf -oL rping -c -d -a "$saddr4" -C 1000000
	client_pid=$started
	for _ in $(seq 100); do
		grep -q 'recv completion' "$tmp/client.log" && return
		sleep 0.1
	done
	tail "$tmp/client.log" "$tmp/server.log"
	fail "no traffic"
}

# program PID: the program that timeout (with that PID) runs.
program() { pgrep -P "$1"; }

# ended FILE PID: that side has ended by itself; the last of what it said.
ended() {
	local file=$1 pid=$2 i
	for ((i = 0; i < 200 * slow; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep_nofork 0.1
	done
	tail -n 5 "$file"
	! kill -0 "$pid" 2>/dev/null || fail "it did not end"
}

# disconnected_once FILE PID: that side got one DISCONNECTED event, and ended.
disconnected_once() {
	ended "$1" "$2"
	expect 'cma_event type RDMA_CM_EVENT_DISCONNECTED' "$1" 1
}

killed_client() {
	living_pair
	kill -KILL "$(program "$client_pid")"
	disconnected_once "$tmp/server.log" "$server"
}

killed_server() {
	living_pair
	kill -KILL "$(program "$server")"
	disconnected_once "$tmp/client.log" "$client_pid"
}

reset_connection() {
	living_pair
	"${cli[@]}" ss -K dst "$saddr4" dport = 7174 >"$tmp/ss" 2>&1 || true
	cat "$tmp/ss"
	grep -q 7174 "$tmp/ss" || skip "this kernel does not destroy sockets on request"
	disconnected_once "$tmp/server.log" "$server"
	disconnected_once "$tmp/client.log" "$client_pid"
}

# The cable is cut for good: the user stops the client, the server's TCP cannot
# know. Both can be ended at once.
silent_network() {
	living_pair
	ip -n wb link set vb down
	sleep 1
	kill -KILL "$(program "$client_pid")" "$(program "$server")"
	wait 2>/dev/null || true
	idle
	ip -n wb link set vb up
	ip -n wb addr add "$peer6/64" dev vb nodad
}

link_deleted_in_use() {
	living_pair
	limit 20 "${srv[@]}" rdma link delete "${driver}a"
	removal "$tmp/server.log" "$server"
	disconnected_once "$tmp/client.log" "$client_pid"
	make_link "${driver}a" va "${srv[@]}"
}

# rping ends before it looks at events if it learns of the removal from a post.
removal() {
	ended "$1" "$2"
	grep -qE 'EVENT_(DEVICE_REMOVAL|DISCONNECTED)|post send error' "$1" ||
		fail "it got no event"
	[ "$(grep -c EVENT_DISCONNECTED "$1")" -le 1 ] || fail "told twice"
}

# Last: it removes both ends of the pair.
netdev_deleted_in_use() {
	living_pair
	limit 20 ip -n wa link delete va
	removal "$tmp/server.log" "$server"
	removal "$tmp/client.log" "$client_pid"
	rdma link show | tee "$tmp/links"
	assert_no_match "${driver}[ab]" "$tmp/links"
}

# set_timeout DEVICE ATTRIBUTE MS
set_timeout() { [ "$driver" != weft ] || echo "$3" >"/sys/class/infiniband/$1/params/$2"; }

topology_veth
for case in garbage wrong-key reply-instead-of-request unknown-revision \
	oversized-private-data largest-length web-browser; do
	t "request: $case, closed at once" bad_initiator "$case" "$prompt"
done
set_timeout "${driver}a" mpa_request_timeout_ms 3000
for case in silence half-a-key half-a-request private-data-missing one-byte-a-second; do
	t "request: $case, closed at the deadline" bad_initiator "$case" "$deadline"
done
t "a good request, then an FPDU with a bad CRC" bad_initiator bad-crc "$prompt"
t "connections closed at once, by the dozen" many_connect connect-and-close
t "connections reset at once, by the dozen" many_connect connect-and-reset
# They must not use up the listener.
t "twenty silent peers at once" bad_initiator silent-conns "$deadline"
set_timeout "${driver}a" mpa_request_timeout_ms 10000
set_timeout "${driver}b" mpa_reply_timeout_ms 3000
for case in garbage wrong-key unknown-revision oversized-private-data half-a-reply \
	close-at-once reset-at-once; do
	t "reply: $case" bad_responder "$case"
done
set_timeout "${driver}b" mpa_reply_timeout_ms 30000
t "a killed client: the server gets one event" killed_client
t "a killed server: the client gets one event" killed_server
t "a reset TCP connection: both get one event" reset_connection
t "a dead network: both processes can be killed" silent_network
t "a link deleted in use: both sides get an event" link_deleted_in_use
t "a netdev deleted in use: both sides get an event" netdev_deleted_in_use
finish
