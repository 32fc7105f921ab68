#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# libfabric's own tests, on Debian's library, by their own script: quick ones over the verbs
# provider, and over ofi_rxm on top of it. DAILY=$(scripts/daily-programs fabtests) says where they
# were built.
. "$(dirname "$0")/lib.sh"

suite fabtests <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

root=${DAILY:?}/fabtests

# pass PROVIDER TESTS LEAST EXCLUDED: at least so many pass, and none fails. What the provider
# says it cannot do is "Notrun".
pass() {
	local sent ended=0
	sent=$(counted tx_messages)
	cd "$tmp"
	limit 300 bash "$root/bin/runfabtests.sh" -v -T 30 -t "$2" -p "$root/bin" -e "$4" \
		-s "$addr4" -c "$addr4" "$1" >"$tmp/out" 2>&1 || ended=$?
	cat "$tmp/out"
	grep -E '^- name|^  (result|time)' "$tmp/out" | paste - - - | sed 's/^- name: *//'
	[ "$ended" -ne 124 ] || fail "they do not come to their end"
	assert_no_match 'result: Fail' "$tmp/out"
	[ "$(grep -c 'result: Pass' "$tmp/out")" -ge "$3" ] || fail "too few passed"
	[ "$2" = unit ] || [ $(($(counted tx_messages) - sent)) -ge 100 ] ||
		fail "they did not go over $dev"
}

plain_ps
topology_dummy
# fi_cq_test makes as many completion queues as the device has, 65536: minutes, and more mappings
# than a process may have.
t "unit tests over verbs" pass verbs unit 4 'dgram,rdm,fi_cq_test'
t "functional tests over verbs" pass verbs functional 5 'dgram,rdm'
t "short tests over verbs" pass verbs short 5 'dgram,rdm'
t "functional tests over ofi_rxm" pass 'verbs;ofi_rxm' functional 5 'dgram,msg'
t "short tests over ofi_rxm" pass 'verbs;ofi_rxm' short 5 'dgram,msg'
finish
