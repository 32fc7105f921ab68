#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# rping: Sends both ways, a Read and a Write per round, data compared (-V).
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
attempts=2

suite rping <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY
only_plugins "$driver"

# rounds ADDRESS SIZE COUNT
rounds() {
	rping_pair 120 "$1" "$3" -V -S "$2"
	expect '^server ping data: rdma-ping-' "$tmp/server.log" "$3"
	assert_no_match 'error|mismatch|corrupt|fail' "$tmp/client.log"
}

established() { rdma resource show qp | grep -c 'state RTS'; }

# A persistent server makes a thread per connection. Its requests come one after
# the other, for rping itself loses one of two that come together; then all
# eight are connected at once. They stand still while others connect and while their output is
# looked at, for one client alone keeps emulated CPUs busy.
eight_at_once() {
	local i all='' pids=() before=()
	serve 7174 150 rping -s -P -a "$saddr4" -S 4096
	for i in 1 2 3 4 5 6 7 8; do
		start 120 "$tmp/c$i" "${cli[@]}" stdbuf -oL \
			rping -c -a "$saddr4" -v -V -C 100000 -S 4096
		pids+=("$started")
		all+=${all:+,}$started
		until [[ $(<"$tmp/c$i") == *rdma-ping-1:* ]]; do
			kill -0 "$started" || { cat "$tmp/c$i"; fail "client $i ended"; }
			sleep_nofork 0.1
		done
		pkill -STOP -P "$started"
	done
	rdma resource show qp
	[ "$(established)" -eq 16 ] || fail "not eight connections at once"
	for i in 1 2 3 4 5 6 7 8; do before+=("$(wc -l <"$tmp/c$i")"); done
	pkill -CONT -P "$all"
	sleep_nofork 2
	pkill -STOP -P "$all"
	for i in 1 2 3 4 5 6 7 8; do
		kill -0 "${pids[i - 1]}" || { tail "$tmp/c$i"; fail "client $i ended early"; }
		assert_no_match 'mismatch|error|fail' "$tmp/c$i"
		expect '^ping data: rdma-ping-[0-9]' "$tmp/c$i"
		[ "$(wc -l <"$tmp/c$i")" -gt "${before[i - 1]}" ] || fail "client $i stands still"
	done
	kill "${pids[@]}"
	pkill -CONT -P "$all" || true
	wait "${pids[@]}" || true
	stop_server
}

one_after_another() {
	serve 7174 100 rping -s -P -a "$saddr4" -v -V
	for _ in 1 2 3; do
		client 60 rping -c -a "$saddr4" -v -V -C 5
		expect '^ping data: rdma-ping-' "$tmp/client.log" 5
	done
	stop_server
}

bound_source() {
	serve 7174 60 rping -s -a "$saddr4" -C 3
	client 60 rping -c -a "$saddr4" -I "$saddr4" -v -C 3
	wait_server
}

wildcard_listener() {
	serve 7174 60 rping -s -C 3
	client 60 rping -c -a "$saddr4" -v -C 3
	wait_server
}

wildcard_listener6() {
	serve 7174 60 rping -s -a :: -C 3
	client 60 rping -c -a "$saddr6" -v -C 3
	wait_server
}

# rping itself hangs when it cannot connect; ucmatose says why and ends.
no_listener() {
	local rc=0
	limit 30 "${cli[@]}" ucmatose -s "$saddr4" -p 7999 >"$tmp/out" 2>&1 || rc=$?
	cat "$tmp/out"
	[ "$rc" -ne 0 ] || fail "connected without a listener"
	[ "$rc" -ne 124 ] || fail "the client hung"
	expect 'EVENT_(REJECTED|UNREACHABLE|CONNECT_ERROR)|[Cc]onnection refused' "$tmp/out" 1
}

topology_dummy
t "100 rounds of 64 bytes" rounds "$saddr4" 64 100
t "100 rounds of 4096 bytes" rounds "$saddr4" 4096 100
t "100 rounds of 65000 bytes" rounds "$saddr4" 65000 100
t "IPv6" rounds "$saddr6" 4096 20
t "a persistent server, one client after the other" one_after_another
t "a persistent server, eight clients at once" eight_at_once
t "a client bound to a source address" bound_source
t "a server on the IPv4 wildcard" wildcard_listener
t "a server on the IPv6 wildcard" wildcard_listener6
t "without a listener the client gets an error" no_listener
finish
