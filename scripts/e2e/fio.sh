#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# fio's RDMA engine, both ends.
#
# Its Sends are not among them: they come whether or not the server has posted a
# receive. Where that is InfiniBand's to retry, it ends an iWARP connection
# (RFC 5041, 7.1): siw's as well.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
attempts=2

suite fio <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

port=18515

# moved VERB COUNTER BLOCK DEPTH [OPTION]...: a file's length of blocks, by one verb.
moved() {
	local verb=$1 counter=$2 block=$3 depth=$4 before bytes
	before=$(counted "$counter")
	bytes=$(counted rx_bytes)
	cd "$tmp"
	serve "$port" 60 fio --name=server --ioengine=rdma --port="$port" --hostname="$saddr4" \
		--rw=read --bs="$block" --iodepth="$depth" --size=16m
	client 50 fio --name=client --ioengine=rdma --port="$port" --hostname="$saddr4" \
		--rw=write --verb="$verb" --bs="$block" --iodepth="$depth" --size=16m "${@:5}"
	served
	expect 'client: .* err= 0:' "$tmp/client.log" 1
	expect 'WRITE: bw=.* io=16.0MiB' "$tmp/client.log" 1
	[ $(($(counted "$counter") - before)) -ge $((16 * 1024 / ${block%k})) ]
	[ $(($(counted rx_bytes) - bytes)) -ge $((16 << 20)) ]
}

topology_dummy
t "Writes of 4 KiB, one at a time" moved write tx_writes 4k 1
t "Writes of 64 KiB, 16 at a time" moved write tx_writes 64k 16
t "Writes of 1 MiB, 4 at a time" moved write tx_writes 1024k 4
t "Reads of 4 KiB, one at a time" moved read tx_read_requests 4k 1
t "Reads of 64 KiB, 16 at a time" moved read tx_read_requests 64k 16
t "Reads of 1 MiB, 4 at a time" moved read tx_read_requests 1024k 4
finish
