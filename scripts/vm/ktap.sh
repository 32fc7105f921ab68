# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Reads KTAP, as KUnit prints it: keeps its plan, counts its leaves.
# Sourced after log.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# ktap_count LOG: "passed failed skipped broken". Suites and parameters nest by
# four spaces; a result line after deeper ones sums those up and is no test
# itself. broken counts the plans that were not met.
ktap_count() {
	awk '
	function depth(line) { match(line, /^ */); return int(RLENGTH / 4) }
	function close_plan(d) {
		if (d in plan && seen[d] != plan[d]) broken++
		delete plan[d]; seen[d] = 0; bad[d] = 0
	}
	/^ *KTAP version/ { next }
	/^ *1\.\.[0-9]+/ {
		d = depth($0)
		close_plan(d)
		sub(/^ *1\.\./, "")
		plan[d] = $0 + 0
		next
	}
	/^ *(not )?ok [0-9]+/ {
		d = depth($0)
		seen[d]++
		below = seen[d + 1] + 0
		below_bad = bad[d + 1] + 0
		close_plan(d + 1)
		if ($0 ~ /^ *not ok/) bad[d]++
		if (below && !($0 ~ /^ *not ok/ && !below_bad)) next
		if ($0 ~ /# SKIP/) skipped++
		else if ($0 ~ /^ *not ok/) failed++
		else passed++
	}
	END {
		for (d = 0; d < 9; d++) close_plan(d)
		print passed + 0, failed + 0, skipped + 0, broken + 0
	}' "$1"
}

# ktap_verdict LOG STATUS: print the KTAP and the counts; STATUS is the guest's.
ktap_verdict() {
	local passed failed skipped broken
	grep -aE '^ *(KTAP|TAP|1\.\.|ok |not ok |#)' "$1" || true
	read -r passed failed skipped broken < <(ktap_count "$1")
	if [ "$broken" -gt 0 ]; then
		say "FAIL: $broken KTAP plan(s) not met: tests are missing from the log"
		failed=$((failed + broken))
	fi
	if [ $((passed + failed + skipped)) -eq 0 ]; then
		say "FAIL: no test ran"
		cat "$1" >&2
		failed=1
	fi
	if [ "$2" -ne 0 ] && [ "$failed" -eq 0 ]; then
		say "FAIL: the guest ended with status $2"
		failed=1
	fi
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}
