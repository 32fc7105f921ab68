# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Runs what prints TAP or KTAP, and judges it. Sourced after log.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# tap_run LOG COMMAND...: its output goes to LOG, too. Leaves $tap_status, $tap_passed,
# $tap_failed, $tap_skipped.
tap_run() {
	local log=$1
	shift
	tap_status=0
	"$@" </dev/null | tee "$log" || tap_status=$?
	read -r tap_passed tap_failed tap_skipped < <("$weft_top/scripts/tap-sum" "$log")
}

# tap_verdict NAME: the last word about what tap_run has run: a test that failed, a bad status,
# or no test at all, are failures.
tap_verdict() {
	echo "$tap_passed passed, $tap_failed failed, $tap_skipped skipped"
	if [ "$tap_failed" -gt 0 ] || [ "$tap_status" -ne 0 ]; then
		say "FAIL: $1"
		return 1
	fi
	[ "$tap_passed" -gt 0 ] || { say "FAIL: $1: no test of that name ran to its end"; return 1; }
}
