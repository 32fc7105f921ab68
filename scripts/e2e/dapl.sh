#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# uDAPL: the programs of Debian's dapl2-utils over its provider for rdma_cm.
#
# dtestx is not among them: that provider has its extensions for InfiniBand only.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
attempts=2

suite dapl <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

export DAT_OVERRIDE=$tmp/dat.conf
ia=weft-ia
port=62000

# pair PORT PROGRAM OPTION...: both ends of a program that ends by itself.
pair() {
	serve "$1" 60 "${@:2}" -P "$ia"
	client 50 "${@:2}" -P "$ia" -h "$saddr4"
	wait_server
}

# Without -B it registers 900 MB.
dtest_() {
	local writes reads
	writes=$(counted tx_writes)
	reads=$(counted tx_read_requests)
	pair 15828 dtest "$@"
	expect 'DAPL Test Complete. PASSED' "$tmp/client.log" 1
	expect 'DAPL Test Complete. PASSED' "$tmp/server.log" 1
	[ "$(counted tx_writes)" -gt "$writes" ]
	[ "$(counted tx_read_requests)" -gt "$reads" ]
}

srq() {
	pair 45248 dtestsrq
	expect 'DAPL RC SRQ Test Complete' "$tmp/client.log" 1
	expect 'DAPL RC SRQ Test Complete' "$tmp/server.log" 1
}

thousand_connections() {
	pair 45248 dtestcm
	expect 'Connections: .*Num=1000' "$tmp/client.log" 1
}

# ask TEST OPTION...: what dapltest's server is asked for; then it is asked to end.
ask() {
	serve "$port" 90 dapltest -T S -D "$ia"
	client 60 dapltest -T "$1" -s "$saddr4" -D "$ia" "${@:2}"
	limit 20 dapltest -T Q -s "$saddr4" -D "$ia"
	wait_server
	expect 'End of Work -- Client Exiting' "$tmp/client.log" 1
	assert_no_match 'DAT_[A-Z]+_|rror|ailed' "$tmp/client.log"
}

transactions() {
	ask T -i 100 -t 2 -w 4 -V client SR 4096 2 server SR 25600 \
		client RW 4096 server RR 8192 client SR 100 server SR 100
	expect '2 threads, 4 EPs' "$tmp/client.log" 1
	assert_no_match 'Total (Send|Recv|RDMA Read|RDMA Write) +: +0.00 MB' "$tmp/client.log"
}

performance() {
	ask P -i 1024 -p 64 "$@"
	expect '^raw: ' "$tmp/client.log" 1
}

# It makes objects until that fails, and frees all of them.
limits() {
	client 60 dapltest -T L -D "$ia" -w 8 -m 100 limit_ia limit_pz limit_evd limit_ep \
		limit_lmr limit_rpost
	expect 'recv buffers posted per EP' "$tmp/client.log"
	assert_no_match 'destroy.*fails|free.*fails' "$tmp/client.log"
}

topology_dummy
echo "$ia u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"wd0 0\" \"\"" >"$DAT_OVERRIDE"
t "dtest: Sends, Writes and Reads of 64 bytes" dtest_ -B 10 -b 64
t "dtest: the same, polling" dtest_ -B 10 -b 64 -p
t "dtest: of 1 MiB" dtest_ -B 10 -b 1048576
t "dtestsrq" srq
t "dtestcm: 1000 connections" thousand_connections
t "dapltest: transactions of two threads, verified" transactions
t "dapltest: Writes, polling" performance -m p RW 4096 2
t "dapltest: Reads, blocking" performance -m b RR 8192 2
t "dapltest: limits" limits
finish
