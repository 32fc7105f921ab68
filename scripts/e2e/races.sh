#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Concurrent activities must not harm each other: objects made, changed, shown and
# destroyed; queues used by several threads; connections that begin and end; devices,
# netdevs, names and CPUs that come and go. Another process compares its data meanwhile.
#
# RACES_SECONDS is how long each test lasts (default 1, times E2E_SLOW). By default all of a row's
# activities run at once; with RACES_EACH=1 each of its left side beside each of its
# right side, and with RACES_SECONDS=60 for a minute: hours.
. "$(dirname "$0")/lib.sh"

suite races <<'TOPOLOGY'
  a process, or some --- wd0 (dummy, 10.77.0.1) --- lo: stays, and has the neighbour
  another            --- wd1 (dummy, 10.78.0.1) --- lo: comes and goes
TOPOLOGY

seconds=${RACES_SECONDS:-${E2E_SLOW:-1}}
other=${driver}1 other_addr=10.78.0.1

# NAME|what goes on in the shell|activities of progs/races|more of them
# Without the second, all of it uses the device that stays.
rows() {
	cat <<'ROWS'
shown beside objects||dumps raw_dumps statistics sysfs|pds cqs qps srqs mrs mws channels contexts
QPs shown beside QPs||dump_qps dump_qps|qps qps qps streams
CQs shown beside CQs||dump_cqs dump_cqs|cqs cqs cqs
SRQs shown beside SRQs||dump_srqs dump_srqs|srqs srqs srqs
MRs shown beside MRs||dump_mrs dump_mrs|mrs mrs mrs mws
connections shown beside connections||dump_cm_ids dump_qps|connections connections kills
shown beside queues||dumps statistics|streams polls arms resizes moderates
shown beside connections||dumps statistics sysfs|connections kills
objects beside objects||pds cqs qps srqs mrs mws|qps cqs srqs mrs channels contexts
objects beside queues||cqs qps srqs mrs mws|streams polls arms resizes
queues beside queues||streams polls arms|streams polls arms resizes moderates async_events
connections beside objects||connections kills|pds cqs qps srqs mrs contexts
connections beside queues||connections kills connections|streams polls arms resizes
counters are bound|binds|dumps statistics|qps streams polls connections
links come and go|links|dumps statistics sysfs|traffic connections qps cqs srqs mrs
links are renamed|names|dumps statistics sysfs|traffic connections qps contexts
netdevs go up and down|ups|dumps statistics|traffic connections kills
netdevs come and go|netdevs|dumps statistics sysfs|traffic connections qps srqs mrs
netdevs move|moves|dumps statistics|traffic connections qps
devices move|gifts|dumps statistics|traffic connections qps
CPUs come and go|cpus|dumps|connections kills streams polls arms qps cqs
processes are frozen|freezes|dumps|connections kills streams polls qps cqs
ROWS
}

# --- what goes on in the shell: once around ---------------------------------------

add_link() { make_link "$other" wd1 && short_timeouts "$other"; }

# A device whose netdev has left for another namespace goes in its own time.
give_link() {
	local try
	for ((try = 0; try < 100; try++)); do
		! add_link 2>"$tmp/adding" || return 0
		sleep_nofork 0.05
	done
	cat "$tmp/adding"
	return 1
}

give_netdev() {
	ip link show wd1 >/dev/null 2>&1 || ip link add wd1 type dummy
	ip link set wd1 up
	ip addr replace "$other_addr/24" dev wd1
}

links() {
	rdma link delete "$other"
	add_link
	sleep_nofork "0.$((RANDOM % 3))"
}

names() {
	rdma dev set "$other" name "${driver}9"
	rdma dev set "${driver}9" name "$other"
	sleep_nofork 0.05
}

ups() {
	ip link set wd1 down
	sleep_nofork "0.0$((RANDOM % 10))"
	ip link set wd1 up
	ip addr replace "$other_addr/24" dev wd1
	sleep_nofork "0.$((RANDOM % 3))"
}

netdevs() {
	ip link delete wd1
	give_netdev
	add_link
	sleep_nofork "0.$((RANDOM % 3))"
}

# To another namespace and back: the device there is another one, or none.
moves() {
	ip link set wd1 netns wn
	ip -n wn link set wd1 up
	ip -n wn link set wd1 netns 1
	give_netdev
	give_link
	sleep_nofork "0.$((RANDOM % 5))"
}

# The namespace ends, in its own time, and gives back what it was given.
gifts() {
	local try
	ip netns add wg
	rdma dev set "$other" netns wg
	ip netns delete wg
	for ((try = 0; try < 500; try++)); do
		! rdma dev show "$other" >/dev/null 2>&1 || break
		sleep_nofork 0.02
	done
	rdma dev show "$other" >/dev/null
	sleep_nofork "0.$((RANDOM % 3))"
}

# The core refuses to change this while a QP is counted by itself.
binds() {
	rdma statistic qp set link "$dev/1" auto type on 2>/dev/null || true
	sleep_nofork 0.1
	rdma statistic qp set link "$dev/1" auto off 2>/dev/null || true
}

cpus() {
	local online
	for online in /sys/devices/system/cpu/cpu[1-9]*/online; do
		echo 0 >"$online"
		sleep_nofork 0.1
		echo 1 >"$online"
		sleep_nofork 0.1
	done
}

# As far as suspend-to-idle goes before it stops devices, among them the guest's disk.
freezes() { echo freeze >/sys/power/state; }

# can WHAT: skip what this kernel has not.
can() {
	case $1 in
	cpus)
		[ -e /sys/devices/system/cpu/cpu1/online ] || skip "this kernel's CPUs do not go"
		;;
	freezes)
		grep -qs freezer /sys/power/pm_test || skip "this kernel cannot be suspended so far"
		echo freezer >/sys/power/pm_test
		echo 1 >/sys/module/suspend/parameters/pm_test_delay
		;;
	gifts) netns_mode exclusive || fail "no namespace may have devices of its own" ;;
	moves)
		ip netns add wn
		;;
	esac
}

# around WHAT: until the time is over; a step that fails is a failure.
around() {
	local until=$((SECONDS + seconds)) turns=0
	while [ "$SECONDS" -lt "$until" ]; do
		"$1"
		turns=$((turns + 1))
	done
	echo "$1: $turns times"
}

# --- tests ------------------------------------------------------------------------

before_test() {
	local ns
	for ns in wn wg; do ip netns delete "$ns"; done
	[[ $(rdma system show) != *exclusive* ]] || netns_mode shared
	[ ! -e /sys/power/pm_test ] || echo none >/sys/power/pm_test
	rdma statistic qp set link "$dev/1" auto off
	give_netdev
	rdma link show "$other/1" || give_link
}

# activities DEVICE ADDRESS OPTION ACTIVITY...: its output in the named file.
activities() {
	local file=$1 device=$2 addr=$3 option=$4
	shift 4
	# shellcheck disable=SC2086
	start "$((seconds + 60))" "$file" "$races" $option "$device" "$addr" "$seconds" "$@"
}

# at_once WHAT ACTIVITY...: beside a good neighbour.
at_once() {
	local what=$1 device=$other addr=$other_addr option=-g neighbour work turning
	shift
	case $what in '' | binds) device=$dev addr=$addr4 option='' ;; esac
	can "$what"
	activities "$tmp/neighbour" "$dev" "$addr4" '' traffic
	neighbour=$started
	activities "$tmp/work" "$device" "$addr" "$option" "$@"
	work=$started
	if [ -n "$what" ]; then
		around "$what" >"$tmp/turning" 2>&1 &
		turning=$!
		ended "$turning" "$tmp/turning"
	fi
	ended "$work" "$tmp/work"
	ended "$neighbour" "$tmp/neighbour"
}

calls() { at_once '' "calls_on_$1"; }

# Only this process counts, and it has ended.
counts_stay() {
	local before after online=/sys/devices/system/cpu/cpu1/online
	can cpus
	start "$((seconds + 60))" "$tmp/work" taskset -c 1 "$races" "$dev" "$addr4" "$seconds" traffic
	ended "$started" "$tmp/work"
	sleep 0.1	# the core refreshes its counters with a delay
	before=$(counted tx_messages)
	echo 0 >"$online"
	sleep 0.1
	after=$(counted tx_messages)
	echo 1 >"$online"
	[ "$after" -ge "$before" ] || fail "$before messages, and $after afterwards"
}

run_row() {
	local name=$1 what=$2 left=$3 right=$4 a b
	if [ -z "${RACES_EACH:-}" ]; then
		# shellcheck disable=SC2086
		t "$name" at_once "$what" $left $right
		return
	fi
	for a in $left; do
		for b in $right; do
			t "$name: $a beside $b" at_once "$what" "$a" "$b"
		done
	done
}

topology_dummy
ip link set lo up
short_timeouts "$dev"
races=$(compile races) || { echo "Bail out! $races"; exit 1; }
for object in cq qp srq mr channel; do
	t "two threads call on one object: $object" calls "$object"
done
while IFS='|' read -r -u 9 name what left right; do
	run_row "$name" "$what" "$left" "$right"
done 9< <(rows)
t "CPUs go, and what they have counted stays" counts_stay
before_test >/dev/null 2>&1
finish
