#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The fault matrix: under each condition Sends, Writes, Reads and atomics bring the right
# data, or end with an error that says so; another process is not affected; nothing is left
# behind. Documentation/testing.md lists the rows that other suites cover.
#
# FAULTS_SECONDS is how long each row lasts (default 1), SILENT_CONNS how many connections are
# silent (default 2000).
. "$(dirname "$0")/lib.sh"

suite faults <<'TOPOLOGY'
  processes with traffic --- wd0 (dummy, 10.77.0.1) --- lo, to which the fault is done
  namespace wb: a neighbour --- wd1 (dummy, 10.78.0.1) --- lo of its own
TOPOLOGY

seconds=${FAULTS_SECONDS:-1}
conns=${SILENT_CONNS:-2000}
other=${driver}1 other_addr=10.78.0.1
debugfs=/sys/kernel/debug
# In which the work is, if it exists.
group=/sys/fs/cgroup/weft-faults

# NAME|condition and its arguments|activities of progs/races on wd0
rows() {
	cat <<'ROWS'
1 % of the packets are lost|netem loss 1%|traffic
10 % of the packets are lost|netem loss 10%|traffic
packets arrive in another order|netem delay 2ms reorder 60% 50%|traffic
packets arrive twice|netem duplicate 25%|traffic
packets are corrupt, and TCP's checksum tells|netem corrupt 2%|traffic
packets are late, each by another time|netem delay 20ms 15ms|traffic
lost, late, twice, corrupt, in another order|netem delay 2ms 1ms loss 2% duplicate 5% corrupt 1% reorder 20%|traffic
a queue of two packets|netem limit 2 delay 1ms|traffic
100 Mbit/s, and a queue of hardly more than a packet|tbf rate 100mbit burst 70kb limit 80kb|traffic
the MTU goes from 576 to 65535 and back|mtus|traffic
bits turn where no checksum of TCP tells|pedit|cut
all packets are lost, and TCP gives up|lost retries|cut
all packets are lost, for longer than tcp_user_timeout_ms|lost user_timeout|cut
the network device goes down for good|down|cut
a tenth of the pages that may not wait cannot be allocated|pages 10|traffic
1 % of the objects that may not wait cannot be allocated|objects 1|traffic
each allocation of each call fails|every_one|shortages
an allocation of any task fails while a process connects|any_task|shots
the rdma cgroup is at its limit|rdma_cgroup|traffic
the memory cgroup is at its limit|memory_cgroup|traffic
a process gets 10 % of a CPU|cpu_cgroup|traffic
ROWS
}

# --- conditions ------------------------------------------------------------------
#
# can_X skips what this kernel has not; begin_X sets it up, before the traffic; cut_X
# comes when "cut" is under way; turn_X is done over and over; end_X undoes it all.

begin_netem() { tc qdisc add dev lo root netem "$@"; }
begin_tbf() { tc qdisc add dev lo root tbf "$@"; }

turn_mtus() {
	local mtu
	for mtu in 576 1500 9000 65535 1280 4000 576 65535; do
		ip link set lo mtu "$mtu"
		sleep_nofork 0.1
	done
}

# Behind TCP's checksum, which is not computed on lo: only the CRC is left.
can_pedit() {
	if ! modprobe -q act_pedit || ! modprobe -q cls_u32; then
		skip "this kernel has no act_pedit"
	fi
	tc qdisc add dev lo clsact || skip "this kernel has no clsact"
}

cut_pedit() {
	tc filter add dev lo egress protocol ip u32 match ip protocol 6 0xff \
		action pedit munge offset 1000 u8 invert
}

judge_pedit() {
	ended "$1" "$tmp/work"
	sleep_nofork 0.1	# the core refreshes its counters with a delay
	[ "$(counted rx_crc_errors)" -gt 0 ] || fail "no CRC was wrong"
}

begin_lost() { "begin_lost_$1"; }
begin_lost_retries() { sysctl -qw net.ipv4.tcp_retries2=3; probe_peer; }
begin_lost_user_timeout() {
	echo 1500 >"/sys/class/infiniband/$dev/params/tcp_user_timeout_ms"
	probe_peer
}

# An end may have sent all that it has, and wait for an answer: no retransmission tells it.
probe_peer() {
	local params=/sys/class/infiniband/$dev/params
	echo 2 >"$params/tcp_keepalive_idle_s"
	echo 1 >"$params/tcp_keepalive_interval_s"
	echo 3 >"$params/tcp_keepalive_probes"
}
cut_lost() { tc qdisc add dev lo root netem loss 100%; }

begin_down() { begin_lost_retries; }
cut_down() { ip link set lo down; }

can_pages() { has_fault_injection; }
can_objects() { has_fault_injection; }
can_every_one() { has_fault_injection; }
can_any_task() { has_fault_injection; }

# lack DIRECTORY WAIT PROBABILITY: what may wait for memory is spared unless WAIT is N.
lack() {
	local at=$debugfs/$1
	[ ! -e "$at/min-order" ] || echo 0 >"$at/min-order"
	echo 0 >"$at/verbose"
	echo 0 >"$at/space"
	echo "$2" >"$at/ignore-gfp-wait"
	echo -1 >"$at/times"
	echo "$3" >"$at/probability"
}

begin_pages() { lack fail_page_alloc Y "$1"; }
begin_objects() { lack failslab Y "$1"; }
no_shortage_yet() {
	lack fail_page_alloc N 0
	lack failslab N 0
}

# Long enough for each allocation of a registration, and some of each other call.
begin_every_one() {
	no_shortage_yet
	[ "$seconds" -ge 3 ] || seconds=3
}
begin_any_task() { no_shortage_yet; }

# limited CONTROLLER FILE VALUE: the cgroup exists and has that limit, or a skip.
limited() {
	local root=${group%/*}
	[ -e "$root/cgroup.controllers" ] || mount -t cgroup2 cgroup2 "$root"
	grep -qw "$1" "$root/cgroup.controllers" || skip "this kernel has no cgroups for $1"
	echo "+$1" >"$root/cgroup.subtree_control"
	mkdir -p "$group"
	[ -e "$group/$2" ] || skip "this kernel has no $2"
	echo "$3" >"$group/$2"
}

can_rdma_cgroup() { limited rdma rdma.max "$dev hca_handle=2 hca_object=3"; }
can_memory_cgroup() { limited memory memory.max 4M; }
can_cpu_cgroup() { limited cpu cpu.max "10000 100000"; }

undo() {
	local at
	for at in "$debugfs/failslab" "$debugfs/fail_page_alloc"; do
		[ ! -e "$at" ] || lack "${at##*/}" Y 0
	done
	tc qdisc del dev lo root
	tc qdisc del dev lo clsact
	ip link set lo mtu 65536 up
	sysctl -qw net.ipv4.tcp_retries2=15
	echo 0 >"/sys/class/infiniband/$dev/params/tcp_user_timeout_ms"
	echo 0 >"/sys/class/infiniband/$dev/params/tcp_keepalive_idle_s"
	[ ! -d "$group" ] || rmdir "$group"
	return 0
}

# --- traffic -------------------------------------------------------------------------

# activities FILE PREFIX... -- DEVICE ADDRESS ACTIVITY...
activities() {
	local file=$1 prefix=()
	shift
	while [ "$1" != -- ]; do
		prefix+=("$1")
		shift
	done
	start "$((seconds + 90))" "$file" "${prefix[@]}" "$races" "$2" "$3" "$seconds" "${@:4}"
}

# failed PROCESS FILE: it did not hang.
failed() {
	local rc=0
	wait "$1" || rc=$?
	cat "$2"
	[ "$rc" -ne 0 ] || fail "it came through"
	[ "$rc" -ne 124 ] || fail "it hung"
	assert_no_match hangs "$2"
}

defined() { [ "$(type -t "$1")" = function ]; }

# perhaps FUNCTION [ARG]...
perhaps() { ! defined "$1" || "$@"; }

neighbour() {
	activities "$tmp/neighbour" ip netns exec wb -- "$other" "$other_addr" traffic
	neighbour=$started
}

# begin_work ACTIVITY...: in the cgroup, if there is one.
begin_work() {
	local prefix=()
	# shellcheck disable=SC2016  # for that shell
	[ ! -d "$group" ] || prefix=(bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group")
	activities "$tmp/work" "${prefix[@]}" -- "$dev" "$addr4" "$@"
	work=$started
}

# change WHAT [ARG]...: what comes while there is traffic.
change() {
	local until=$((SECONDS + seconds))
	if defined "cut_$1"; then
		until_said "$tmp/work" 'under way' "$work"
		"cut_$1" "${@:2}"
	fi
	while defined "turn_$1" && [ "$SECONDS" -lt "$until" ]; do "turn_$1"; done
}

# under CONDITION ACTIVITY...: what follows is as if nothing had been.
under() {
	local condition neighbour=''
	read -r -a condition <<<"$1"
	shift
	perhaps "can_${condition[0]}"
	[ "${condition[0]}" = any_task ] || neighbour
	perhaps "begin_${condition[0]}" "${condition[@]:1}"
	begin_work "$@"
	change "${condition[@]}"
	if defined "judge_${condition[0]}"; then
		"judge_${condition[0]}" "$work"
	else
		ended "$work" "$tmp/work"
	fi
	[ -z "$neighbour" ] || ended "$neighbour" "$tmp/neighbour"
	undo 2>/dev/null || true
	idle
	seconds=0 activities "$tmp/next" -- "$dev" "$addr4" traffic
	ended "$started" "$tmp/next"
}

# The limit is reported by an errno.
judge_rdma_cgroup() {
	failed "$1" "$tmp/work"
	expect 'Resource temporarily unavailable' "$tmp/work"
}

# What it asks for is refused, or it is killed.
judge_memory_cgroup() { failed "$1" "$tmp/work"; }

before_test() { undo; }

# --- what the table has no place for -------------------------------------------------

# Some of them half-open: TCP's queue is full.
silent_connections() {
	local silent good
	serve 7174 200 rping -s -P -a "$addr4"
	activities "$tmp/work" -- "$dev" "$addr4" traffic
	good=$started
	start 200 "$tmp/silent" python3 "$here/progs/hostile.py" initiator stays "$addr4" 7174 150 \
		"$conns"
	silent=$started
	until_said "$tmp/silent" connected "$silent"
	client 100 rping -c -a "$addr4" -v -C 3
	expect '^ping data: rdma-ping-' "$tmp/client.log" 3
	ended "$good" "$tmp/work"
	kill "$silent"
	client 60 rping -c -a "$addr4" -v -C 3
	stop_server
}

# A process that does not run holds up its peer, and no other process.
stopped_process() {
	local program pinging
	serve 7174 100 rping -s -a "$addr4" -V -C 100000000
	start 100 "$tmp/client.log" stdbuf -oL rping -c -d -a "$addr4" -v -V -C 100000000
	pinging=$started
	progresses "$pinging"
	program=$(pgrep -P "$server")
	kill -STOP "$program"
	activities "$tmp/work" -- "$dev" "$addr4" traffic
	ended "$started" "$tmp/work"
	kill -CONT "$program"
	progresses "$pinging"
	kill -STOP "$program"
	kill -KILL "$program"
	wait "$pinging" || true
	expect 'RDMA_CM_EVENT_DISCONNECTED' "$tmp/client.log" 1
	assert_no_match 'mismatch' "$tmp/client.log"
}

# Nothing of it is in use then, so it goes at once.
module_starts_short_of_memory() {
	has_fault_injection
	[ "$driver" = weft ] || skip "only for weft"
	rdma link delete "$dev"
	ip netns exec wb rdma link delete "$other"
	limit 20 rmmod weft
	no_shortage_yet
	python3 "$here/progs/load.py" "$(modinfo -F filename weft)"
	modprobe weft
	make_link "$dev" wd0
	make_link "$other" wd1 ip netns exec wb
	seconds=0 activities "$tmp/next" -- "$dev" "$addr4" traffic
	ended "$started" "$tmp/next"
}

topology() {
	topology_dummy
	ip netns add wb
	ip -n wb link set lo up
	ip -n wb link add wd1 type dummy
	ip -n wb link set wd1 up
	ip -n wb addr add "$other_addr/24" dev wd1
	make_link "$other" wd1 ip netns exec wb
	modprobe -q sch_netem
	modprobe -q sch_tbf
	mkdir -p "${group%/*}"
}

topology
races=$(compile races) || { echo "Bail out! $races"; exit 1; }
while IFS='|' read -r -u 9 name condition activities; do
	# shellcheck disable=SC2086
	t "$name" under "$condition" $activities
done 9< <(rows)
t "$conns connections that are silent, or half-open" silent_connections
t "a process is stopped, continued, and killed while stopped" stopped_process
t "the module starts while something cannot be allocated" module_starts_short_of_memory
before_test >/dev/null 2>&1
finish
