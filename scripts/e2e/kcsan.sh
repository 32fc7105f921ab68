#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Check that KCSAN works. Deliberate races must be reported, by the names of the functions that
# race; the same accesses with the right marks must not. Otherwise a run of the other suites
# without a report would prove nothing.
#
# DATA_RACE is the module data_race, built by scripts/kmod for the kernel that runs.
. "$(dirname "$0")/lib.sh"

suite kcsan <<'TOPOLOGY'
  two threads of a module of its own, on two CPUs; weft has no part in it
TOPOLOGY

state=/sys/kernel/debug/kcsan
races=/sys/module/data_race/parameters/rounds

# begin KIND
begin() {
	insmod "$DATA_RACE" kind="$1"
	trap 'rmmod data_race' EXIT
}

# seen FUNCTION: both sides of the report are that function.
seen() { [[ $(kernel_says) == *"BUG: KCSAN: data-race in $1 [data_race] / $1 [data_race]"* ]]; }

is_on() {
	local counters
	mountpoint -q "${state%/*}" || mount -t debugfs debugfs "${state%/*}"
	counters=$(cat "$state")
	echo "$counters"
	[[ $counters == *'enabled: 1'* ]] || fail "KCSAN is not enabled"
	[[ $counters == *'blacklisted functions: none'* ]] || fail "some functions are left out"
}

is_reported() {
	begin "$1"
	until_true 60 seen "race_$1" || { kernel_says; cat "$races"; fail "no report names it"; }
}

# As many rounds of both threads as bring dozens of reports of the others.
is_not_reported() {
	local end=$((SECONDS + 100 * slow)) a b
	begin "$1"
	while IFS=, read -r a b <"$races" && [[ $a -lt 100000 || $b -lt 100000 ]]; do
		[ "$SECONDS" -lt "$end" ] || fail "only $a and $b rounds"
		sleep_nofork 0.2
	done
	! kernel_says | grep "KCSAN.*race_$1" || fail "it is reported"
}

[ -f "${DATA_RACE:-}" ] || { echo "Bail out! DATA_RACE names no module"; exit 1; }
t "KCSAN is on, for every function" is_on
t "plain accesses at the same time are reported" is_reported unmarked
t "the same, marked, are not" is_not_reported marked
t "turns that no barrier hands over are reported" is_reported unordered
t "the same, by release and acquire, are not" is_not_reported ordered
finish
