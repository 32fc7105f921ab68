#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Valkey with its RDMA module: the project's own RDMA test, by its own runner, and a server that
# is killed under load. DAILY=$(scripts/daily-programs valkey) says where they were built.
. "$(dirname "$0")/lib.sh"

# The runner gives its server a second to start, and its client gives up after less.
# shellcheck disable=SC2034  # for lib.sh
attempts=2

suite valkey <<'TOPOLOGY'
  server and clients --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

root=${DAILY:?}/valkey

# messages: how many the device has sent. No message, no RDMA.
messages() { counted tx_messages; }

# The runner finds the address of the device by the netdev that its GIDs name, and ends with 0
# whatever came out. It gives its client a minute for tens of thousands of requests, one after the
# other; User-Mode Linux takes 40 s of it, and all of it where the machine is busy. Then the same
# client is told to do it again, with the time that it takes.
own_test() {
	local before
	before=$(messages)
	limit 120 python3 -u "$root/tests/rdma/run.py" >"$tmp/out" 2>&1 || true
	cat "$tmp/out"
	expect "Valkey Over RDMA test prepare $dev <$addr4> \\[OK\\]" "$tmp/out" 1
	assert_no_match FAILED "$tmp/out"
	if grep -q 'TimeoutExpired: .*rdma-test' "$tmp/out"; then
		echo "the runner's minute was not enough"
		pkill -KILL -x 'valkey-server|rdma-test' || true
		idle
		own_client
	else
		expect "Valkey Over RDMA test over $addr4 \\[OK\\]" "$tmp/out" 1
	fi
	[ $(($(messages) - before)) -ge 1000 ] || fail "it did not go over $dev"
}

own_client() {
	serve_valkey
	rdma_test 4 400 | tee "$tmp/client.log"
	expect '^Valkey Over RDMA test \[OK\]' "$tmp/client.log" 1
	pkill -TERM -P "$server"
	wait "$server" 2>/dev/null || true
}

# serve_valkey: port 6379, over RDMA only.
serve_valkey() {
	mkdir -p "$tmp/data"
	start 450 "$tmp/server.log" "$root/src/valkey-server" --port 0 --save '' \
		--protected-mode no --dir "$tmp/data" --loadmodule "$root/src/valkey-rdma.so" \
		port=6379 "bind=$addr4"
	server=$started
	for _ in $(seq 100); do
		rdma resource show cm_id | grep -q 'state LISTEN' && return
		sleep 0.1
	done
	fail_server "it does not listen"
}

# rdma_test THREADS SECONDS
rdma_test() { limit "$2" "$root/tests/rdma/rdma-test" --thread "$1" -h "$addr4"; }

# Clients get an error from a dead server, and the next one serves.
server_is_killed() {
	serve_valkey
	start 60 "$tmp/client.log" "$root/tests/rdma/rdma-test" --thread 4 -h "$addr4"
	sleep 0.5
	pkill -KILL -P "$server" || fail_server "it has ended"
	wait "$server" 2>/dev/null || true
	wait "$started" && fail "the clients noticed nothing"
	serve_valkey
	rdma_test 2 100
	pkill -TERM -P "$server"
	wait "$server" 2>/dev/null || true
}

# The runner leaves its server behind when its client takes more than a minute.
before_test() { pkill -KILL -x valkey-server || true; }

topology_dummy
t "Valkey's own test, by its runner" own_test
t "clients notice a killed server, and continue with the next one" server_is_killed
finish
