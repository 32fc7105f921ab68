#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# libfabric's own tests, on Debian's library, by their own script: quick ones over the verbs
# provider, and over ofi_rxm upon it. DAILY=$(scripts/daily-programs fabtests) says where they
# were built.
. "$(dirname "$0")/lib.sh"

suite fabtests <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

root=${DAILY:?}/fabtests

# pass PROVIDER LEAST EXCLUDED: at least so many pass, and none fails. What the provider says it
# cannot do is "Notrun".
pass() {
	local sent
	sent=$(counted tx_messages)
	cd "$tmp"
	limit 280 bash "$root/bin/runfabtests.sh" -v -T 30 -t quick -p "$root/bin" -e "$3" \
		-s "$addr4" -c "$addr4" "$1" >"$tmp/out" 2>&1 || true
	grep -E '^- name|^  result' "$tmp/out" | paste - - | sed 's/^- name: *//'
	assert_no_match 'result: Fail' "$tmp/out"
	[ "$(grep -c 'result: Pass' "$tmp/out")" -ge "$2" ] || fail "too few passed"
	[ $(($(counted tx_messages) - sent)) -ge 1000 ] || fail "they did not go over $dev"
}

plain_ps
topology_dummy
t "quick tests over verbs" pass verbs 20 'dgram,rdm'
t "quick tests over ofi_rxm" pass 'verbs;ofi_rxm' 20 'dgram,msg'
finish
