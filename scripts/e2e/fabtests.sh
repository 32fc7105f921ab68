#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# libfabric's own tests, on Debian's library, by their own script: quick ones over the verbs
# provider, and over ofi_rxm on top of it. DAILY=$(scripts/daily-programs fabtests) says where they
# were built. fabtests.tsv lists those that come to something else than "Pass", and why.
. "$(dirname "$0")/lib.sh"

suite fabtests <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

root=${DAILY:?}/fabtests
params=/sys/class/infiniband/$dev/params
pcp=/proc/sys/vm/percpu_pagelist_high_fraction

# judge PROVIDER SET OUTPUT: each test has the result it must have, and says what it must say. One
# that is not listed passes, or the provider says that it cannot do that ("Notrun").
judge() {
	awk -F '\t' -v provider="$1" -v set="$2" '
	NR == FNR {
		if ($1 == provider && $2 == set) { due[$3] = $4; says[$3] = $5 }
		next
	}
	/^- name: / { name = $0; sub(/^- name: */, "", name); sub(/ -p ".*/, "", name); next }
	/^  result: / { result[name] = substr($0, 11); next }
	{ text[name] = text[name] $0 "\n" }
	function wrong(name, what) { print name ": " what; bad = 1 }
	END {
		for (name in result) {
			want = name in due ? due[name] : "Pass"
			if (result[name] == "Excluded")
				continue
			if (result[name] == "Pass" && want ~ /^Pass/)
				continue
			sub(/^Pass or /, "", want)
			if (result[name] != want && (name in due || result[name] != "Notrun"))
				wrong(name, result[name] ", expected: " want)
			else if (name in says && says[name] != "-" && text[name] !~ says[name])
				wrong(name, want " as expected, but without: " says[name])
		}
		for (name in due)
			if (!(name in result))
				wrong(name, "listed, but not run")
		exit bad
	}' "$here/fabtests.tsv" "$3"
}

# A test fills 64 buffers of the largest size to send and 64 to receive before it does anything, in
# each of two processes. By default that size is 8 MiB, although no test sends more than 1 MiB. In
# User-Mode Linux the page faults of 1 GiB take ten seconds and more. Each test of the set "short"
# takes a range of sizes; some of the others do not, so each has the script's two minutes.
sizes='-S r:64,262128,1048576'

# outcome PROVIDER SET LEAST EXCLUDED [OPTION]: all come to what they must, and at least so many
# pass. The tests get the option.
outcome() {
	local sent ended=0
	sent=$(counted tx_messages)
	cd "$tmp"
	limit 1200 bash "$root/bin/runfabtests.sh" -vv -T $((120 * slow)) -t "$2" -p "$root/bin" \
		-e "$4" -L "${5:-}" -C "${5:-}" -s "$addr4" -c "$addr4" "$1" >"$tmp/out" 2>&1 || ended=$?
	cat "$tmp/out"
	grep -E '^- name|^  (result|time):' "$tmp/out" | paste - - - | sed 's/^- name: *//'
	[ "$ended" -ne 124 ] || fail "they do not come to their end"
	judge "$1" "$2" "$tmp/out" || fail "other results than in fabtests.tsv"
	[ "$(grep -c 'result: Pass' "$tmp/out")" -ge "$3" ] || fail "too few passed"
	[ "$2" = unit ] || [ $(($(counted tx_messages) - sent)) -ge 100 ] ||
		fail "they did not go over $dev"
}

# The rest fill 1 GiB in each process. In User-Mode Linux pages that come in falling order are a
# mapping of the host each, and a process may have 65530 (vm.max_map_count): then its page faults
# never end. Linux gives out first what was freed last, from lists that take an eighth of the
# memory: in a guest of 4 GB 62302 pages for each CPU. Here they are short.
[ ! -e "$pcp" ] || echo 1000 >"$pcp"
plain_ps
topology_dummy
# A sender of fi_bw -e msg sends while its peer sleeps for a second, with no receive posted: as long
# as a message waits by default, and longer on a busy machine.
[ ! -e "$params" ] || echo 10000 >"$params/rnr_timeout_ms"
# ofi_rxm looks for events that often, after the completion queue. One that finds a disconnect there
# loses a message that came in between (Documentation/programs.md): at 10 ms, its default, one run
# in ten hangs where six run at once.
export FI_OFI_RXM_CM_PROGRESS_INTERVAL=300000
# fi_cq_test makes as many completion queues as the device has, 65536: minutes, and more mappings
# than a process may have.
t "unit tests over verbs" outcome verbs unit 4 'dgram,rdm,fi_cq_test'
t "functional tests over verbs" outcome verbs functional 5 'dgram,rdm'
t "short tests over verbs" outcome verbs short 5 'dgram,rdm' "$sizes"
t "functional tests over ofi_rxm" outcome 'verbs;ofi_rxm' functional 10 'dgram,msg'
t "short tests over ofi_rxm" outcome 'verbs;ofi_rxm' short 15 'dgram,msg' "$sizes"
finish
