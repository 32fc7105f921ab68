#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# librpma: a client and a server of our own, progs/rpma.c, on the unmodified library.
#
# fio's librpma engines are not among them: Debian's fio is built without.
. "$(dirname "$0")/lib.sh"

suite rpma <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

port=7204

# flushed MODE ADDRESS: all operations, and weft's counters prove that it carried them.
flushed() {
	local writes reads bytes
	writes=$(counted tx_writes)
	reads=$(counted tx_read_requests)
	bytes=$(counted rx_bytes)
	serve "$port" 60 "$program" server "$2" "$port" "$1"
	client 50 "$program" client "$2" "$port" "$1"
	wait_server
	expect '^on-demand paging: 1$' "$tmp/client.log" 1
	expect '^on-demand paging: 1$' "$tmp/server.log" 1
	expect '^done$' "$tmp/client.log" 1
	expect '^done$' "$tmp/server.log" 1
	[ $(($(counted tx_writes) - writes)) -ge 1603 ]
	[ $(($(counted tx_read_requests) - reads)) -ge 55 ]
	[ $(($(counted rx_bytes) - bytes)) -ge $((1600 * 1024 + 5 * 128 * 1024)) ]
}

program=$(compile rpma -lrpma) || exit 1
topology_dummy
t "flushes, atomic Writes, immediate data, messages" flushed plain "$addr4"
t "the same over IPv6" flushed plain "$addr6"
t "receives complete at a queue of their own" flushed rcq "$addr4"
t "one channel for both queues" flushed shared "$addr4"
t "the server's receives are shared" flushed srq "$addr4"
finish
