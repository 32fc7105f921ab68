#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Programs without RDMA support, with librspreload in front of their sockets.
#
# Not every program can. With siw as with weft, socat crashes and iperf3 moves no data, though
# not in the same way. With weft, nc of OpenBSD cannot accept, and python3 listens to plain TCP.
. "$(dirname "$0")/lib.sh"

suite preload <<'TOPOLOGY'
  curl or wget, and nc.traditional as their server --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

library=$(echo /usr/lib/*/rsocket/librspreload.so)
port=5558

# page: a response of HTTP whose body cannot be had in any other way.
page() {
	head -c 5000000 /dev/urandom >"$tmp/body"
	printf 'HTTP/1.0 200 OK\r\nContent-Length: 5000000\r\n\r\n' | cat - "$tmp/body" >"$tmp/page"
}

# offer: serve the page to one client.
offer() {
	serve "$port" 40 sh -c "LD_PRELOAD=$library exec nc.traditional \
		-l -p $port -q 3 <$tmp/page"
}

# fetched_by COMMAND...: it gets the page, and by the device.
fetched_by() {
	local before=0
	[ "$driver" != weft ] || before=$(counted tx_bytes)
	page
	rm -f "$tmp/fetched"
	offer
	client 20 env LD_PRELOAD="$library" "$@" "http://$saddr4:$port/page"
	cmp "$tmp/body" "$tmp/fetched"
	wait_server
	expect '^GET /page HTTP' "$tmp/server.log" 1
	[ "$driver" = weft ] || return 0
	[ $(($(counted tx_bytes) - before)) -gt 5000000 ] || fail "it went another way"
}

# by_curl: newer ones (8.14 of Debian 13) ask socket() for SOCK_NONBLOCK. rsocket() refuses that,
# so librspreload gives them a socket of TCP. The listener resets what begins without MPA, as
# that of siw does.
by_curl() {
	strace -f -e trace=socket -o "$tmp/sockets" env LD_PRELOAD="$library" \
		curl -sS -m 10 "http://$saddr4:$port/" >"$tmp/refused" 2>&1 || true
	! grep -E 'AF_INET, SOCK_STREAM\|SOCK_NONBLOCK' "$tmp/sockets" ||
		skip "$(curl -V | head -n 1 | cut -d ' ' -f 1-2) wants SOCK_NONBLOCK of socket()," \
			"which librspreload leaves to TCP"
	fetched_by curl -sS -o "$tmp/fetched"
}

topology_dummy
t "curl" by_curl
t "wget" fetched_by wget -nv -O "$tmp/fetched"
finish
