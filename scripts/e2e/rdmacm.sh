#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The other programs of rdmacm-utils: connection storms, rsockets, and a
# passive side that sends first.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
attempts=2

suite rdmacm <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY
only_plugins "$driver"

# The passive side sends first: needs the peer-to-peer start-up, or buffering.
passive_side_first() {
	serve 7471 120 ucmatose -c 4 -C 20 -S 4096
	client 120 ucmatose -s "$saddr4" -c 4 -C 20 -S 4096
	wait_server
	expect 'data transfers complete' "$tmp/client.log" 1
	expect 'test complete' "$tmp/client.log" 1
	expect 'return status 0' "$tmp/client.log" 1
	expect 'return status 0' "$tmp/server.log" 1
}

ucmatose_defaults() {
	serve 7471 120 ucmatose
	client 120 ucmatose -s "$saddr4"
	wait_server
	expect 'return status 0' "$tmp/client.log" 1
}

client_and_server() {
	serve 7471 60 rdma_server -p 7471
	client 60 rdma_client -s "$saddr4" -p 7471
	wait_server
	expect 'end 0' "$tmp/client.log" 1
	expect 'end 0' "$tmp/server.log" 1
	assert_no_match 'inline' "$tmp/client.log"
}

xserver() {
	serve 7471 60 rdma_xserver -c r
	client 60 rdma_xclient -s "$saddr4" -c r
	wait_server
	expect 'end 0' "$tmp/client.log" 1
	expect 'end 0' "$tmp/server.log" 1
}

# wants_tcp: the server of rdma-core 56 opens a socket of TCP at the address and port of its RDMA
# listener, which a software RNIC has taken from the host. It ends without a word.
wants_tcp() {
	[[ $(cmtime -h 2>&1) == *base_qpn* ]] || return 1
	limit 20 strace -f -e trace=bind -o "$tmp/binds" cmtime >"$tmp/server.log" 2>&1 || true
	grep -E '^[0-9]+ +bind\(.*AF_INET,.*htons\(7471\).* = -1 EADDRINUSE' "$tmp/binds"
}

# The server has no end of its own for all versions: stop it.
connection_storm() {
	! wants_tcp || skip "cmtime, since rdma-core 56, wants its RDMA listener's port for TCP too"
	serve 7471 200 cmtime
	client 180 cmtime -s "$saddr4" -c "$1" -t 20000
	stop_server
	expect '^connect +:' "$tmp/client.log" 1
	expect '^disconnect +:' "$tmp/client.log" 1
	assert_no_match 'fail|error|timed out|REJECTED' "$tmp/client.log"
}

# stream PROGRAM: sizes from a short message to many segments, data verified, one at a time each way
# and many in one way. By default and for all sizes (-S all) it moves up to 14 GB in millions of
# messages, too much for an emulated CPU: scripts/e2e/stream.sh.
stream() {
	local size bytes count rounds options
	while read -r size bytes count rounds; do
		options=(-T v -S "$bytes" -C "${count/k/000}" -I "${rounds/k/000}")
		serve 7471 100 "$1" "${options[@]}"
		client 90 "$1" -s "$saddr4" "${options[@]}"
		wait_server
		expect "^custom +$size +$count +$rounds " "$tmp/client.log" 1
		assert_no_match 'verification failed|rsend|rrecv|rconnect' "$tmp/client.log"
	done <<-'EOF'
		64 64 1 500
		1m 1048576 1 10
		64 64 5k 1
		4k 4096 500 1
		1m 1048576 20 1
	EOF
}

# stream_with OPTION...: small runs in every calling style of rsockets.
stream_with() {
	serve 7471 60 rstream -S 4096 -C 50 "$@"
	client 60 rstream -s "$saddr4" -S 4096 -C 50 "$@"
	wait_server
	expect '4k' "$tmp/client.log"
}

# A client that polls takes it for a failure (16, POLLHUP) when the last data and
# the close come together, as they do from a fast server: so judge the server.
stream_async() {
	serve 7471 60 rstream -S 4096 -C 50 -T a
	client 60 rstream -s "$saddr4" -S 4096 -C 50 -T a || [ "$?" -eq 16 ]
	wait_server
	expect '^custom +4k +50 ' "$tmp/server.log" 1
}

copy_5_megabytes() {
	head -c 5000000 /dev/urandom >"$tmp/original"
	serve 7427 120 rcopy
	client 100 rcopy "$tmp/original" "$saddr4:$tmp/copy"
	stop_server
	cmp "$tmp/original" "$tmp/copy"
}

topology_dummy
t "ucmatose: the passive side sends first" passive_side_first
t "ucmatose with its defaults" ucmatose_defaults
t "rdma_server and rdma_client, inline" client_and_server
t "rdma_xserver -c r" xserver
t "cmtime: 200 connections" connection_storm 200
# More than its server's backlog, and than any process's may be (net.rdma_ucm.max_backlog).
t "cmtime: 4000 connections" connection_storm 4000
t "rstream -T v" stream rstream
t "riostream -T v" stream riostream
t "rstream, blocking" stream_with -T b
t "rstream, non-blocking" stream_with -T n
t "rstream, asynchronous accept and connect" stream_async
t "rstream without inline data" stream_with -i 0
t "rcopy of 5 MB" copy_5_megabytes
finish
