#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The examples of librpma, on Debian's library, by their own script.
# DAILY=$(scripts/daily-programs rpma-examples) says where they were built.
. "$(dirname "$0")/lib.sh"

suite rpma-examples <<'TOPOLOGY'
  servers and clients --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

root=${DAILY:?}/rpma-examples

# succeed NAME...: all but those, which are moved to directories of their own.
succeed() {
	local example bin=$tmp/bin reads all=("$root"/bin/*)
	reads=$(counted tx_read_requests)
	mkdir -p "$bin"
	cp -r "$root"/bin/* "$bin"
	for example; do rm -r "${bin:?}/$example"; done
	cd "$tmp"
	limit 240 bash "$root/examples/run-all-examples.sh" "$bin" "$addr4" 7204 >"$tmp/out" 2>&1 || {
		cat "$tmp/out"
		fail "see above"
	}
	expect '^All examples succeeded' "$tmp/out" 1
	expect '^\*\*\* Running example' "$tmp/out" "$((${#all[@]} - $#))"
	[ $(($(counted tx_read_requests) - reads)) -ge 10 ] || fail "they did not go over $dev"
}

# refused EXAMPLE: its Send has immediate data, which no iWARP RFC knows.
refused() {
	serve 7204 20 "$root/bin/$1/server" "$addr4" 7204
	limit 20 "$root/bin/$1/client" "$addr4" 7204 1234 1st_word >"$tmp/out" 2>&1 &&
		fail "the client succeeded"
	cat "$tmp/out"
	expect 'Operation not supported|Provider error|failed' "$tmp/out"
	stop_server
}

plain_ps
topology_dummy
t "all but Send with immediate data" succeed 10-send-with-imm
t "Send with immediate data is refused" refused 10-send-with-imm
finish
