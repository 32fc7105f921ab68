#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# fio's RDMA engine, both ends.
#
# Its Sends arrive whether or not the server has posted a receive; then they wait for one. It can
# verify only Sends: it does not check the data of its Writes and Reads. It does not support
# IPv6: the client resolves names by gethostbyname().
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
	wait_server
	expect 'client: .* err= 0:' "$tmp/client.log" 1
	expect 'WRITE: bw=.* io=16.0MiB' "$tmp/client.log" 1
	[ $(($(counted "$counter") - before)) -ge $((16 * 1024 / ${block%k})) ]
	[ $(($(counted rx_bytes) - bytes)) -ge $((16 << 20)) ]
}

# verified DEPTH [OPTION]...: Sends to a server with DEPTH receives, which looks at their checksums.
verified() {
	local before depth=$1
	shift
	before=$(counted tx_sends)
	cd "$tmp"
	serve "$port" 60 fio --name=server --ioengine=rdma --port="$port" --hostname="$saddr4" \
		--rw=read --verify=crc32c --bs=16k --iodepth="$depth" --size=1m
	client 50 fio --name=client --ioengine=rdma --port="$port" --hostname="$saddr4" \
		--rw=write --verb=send "$@" --bs=16k --iodepth=8 --size=1m
	expect 'client: .* err= 0:' "$tmp/client.log" 1
	expect 'WRITE: bw=.* io=1024KiB' "$tmp/client.log" 1
	[ $(($(counted tx_sends) - before)) -ge 64 ]
}

good_data() {
	verified "$1" --verify=crc32c
	wait_server
	expect 'server: .* err= 0:' "$tmp/server.log" 1
	expect 'READ: bw=.* io=1024KiB' "$tmp/server.log" 1
}

# Without checksums in the data: else the test above could not fail.
other_data() {
	verified 64
	wait "$server" || true
	expect 'verify: bad magic header' "$tmp/server.log" 64
}

# Each job has a port and a connection of its own; both are under way at once.
two_jobs() {
	local both=(--ioengine=rdma --hostname="$saddr4" --bs=64k --iodepth=8 --size=16m)
	local writes reads
	writes=$(counted tx_writes)
	reads=$(counted tx_read_requests)
	cd "$tmp"
	serve "$port" 60 fio --name=one "${both[@]}" --port="$port" --rw=read \
		--name=two "${both[@]}" --port=$((port + 1)) --rw=read
	until listening $((port + 1)); do
		kill -0 "$server" || fail_server "its second job does not listen"
		sleep 0.1
	done
	client 50 fio --name=one "${both[@]}" --port="$port" --rw=write --verb=write \
		--name=two "${both[@]}" --port=$((port + 1)) --rw=write --verb=read
	wait_server
	expect '(one|two): .* err= 0:' "$tmp/client.log" 2
	expect 'WRITE: bw=.* io=32.0MiB' "$tmp/client.log" 1
	[ $(($(counted tx_writes) - writes)) -ge 256 ]
	[ $(($(counted tx_read_requests) - reads)) -ge 256 ]
}

topology_dummy
t "Writes of 4 KiB, one at a time" moved write tx_writes 4k 1
t "Writes of 64 KiB, 16 at a time" moved write tx_writes 64k 16
t "Writes of 1 MiB, 4 at a time" moved write tx_writes 1024k 4
t "Reads of 4 KiB, one at a time" moved read tx_read_requests 4k 1
t "Reads of 64 KiB, 16 at a time" moved read tx_read_requests 64k 16
t "Reads of 1 MiB, 4 at a time" moved read tx_read_requests 1024k 4
t "Writes of 4 KiB, 64 at a time" moved write tx_writes 4k 64
t "Reads of 4 KiB, 64 at a time" moved read tx_read_requests 4k 64
t "Sends of 16 KiB, verified" good_data 64
t "Sends of 16 KiB, verified, a receive for each eighth" good_data 8
t "Sends of 16 KiB, verified, one receive" good_data 1
t "Sends of 16 KiB that do not verify" other_data
t "two jobs at once, Writes and Reads" two_jobs
finish
