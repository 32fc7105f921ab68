#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Work requests and objects, good and bad, through libibverbs: what each completes
# with, on both sides. VERBS_ONLY names the cases to run.
#
# ALL_STAGS=1 adds the case that makes every possible STag: a guest of 10 GB.
. "$(dirname "$0")/lib.sh"

suite verbs <<'TOPOLOGY'
  one program, both ends --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY
only_plugins "$driver"

# BIG=1 adds the 4 GiB message: half a minute where code runs natively.
case_() {
	[[ " ${VERBS_ONLY:-$1} " == *" $1 "* ]] || skip "not asked for"
	there_is VERBS_ONLY "$1"
	limit "${2:-120}" "$verbs" "$saddr4" "$1"
}

without_ipc_lock() {
	command -v capsh >/dev/null || skip "no capsh"
	(
		ulimit -l 256
		limit 60 capsh --drop=cap_ipc_lock -- -c "'$verbs' '$saddr4' memlock"
	)
}

# with_attributes CASE [NAME=VALUE]...: a case with other attributes, put back also if it fails.
with_attributes() {
	local dir=/sys/class/infiniband/$dev/params rc=0 name=$1 word before=()
	shift
	[ $# -gt 0 ] || { case_ "$name"; return; }
	for word; do
		before+=("${word%=*}=$(cat "$dir/${word%=*}")")
		echo "${word#*=}" >"$dir/${word%=*}"
	done
	(case_ "$name") || rc=$?
	for word in "${before[@]}"; do
		echo "${word#*=}" >"$dir/${word%=*}"
	done
	return "$rc"
}

# At MTU 1500 and without CRC: the segments of a long message are staged many at once.
in_batches() {
	local before rc=0
	before=$(counted tx_segments)
	ip link set lo mtu 1500
	with_attributes "$1" mpa_crc=0 loopback=0 || rc=$?
	ip link set lo mtu 65536
	[ "$rc" -eq 0 ] || return "$rc"
	sleep 0.1	# the core refreshes its counters with a delay
	echo "segments: $(($(counted tx_segments) - before))"
	[ "$(counted tx_segments)" -gt $((before + 700)) ] || fail "too few for a MiB at MTU 1500"
}

# with_mtu MTU CASE: the same case while the netdev has another MTU.
with_mtu() {
	local rc=0
	ip link set wd0 mtu "$1"
	(case_ "$2") || rc=$?
	ip link set wd0 mtu 1500
	return "$rc"
}

# The same for what ends early.
in_short_batches() {
	local rc=0
	ip link set lo mtu 1500
	with_attributes "$1" mpa_crc=0 loopback=0 || rc=$?
	ip link set lo mtu 65536
	return "$rc"
}

# TCP starts counting again with each connection, and its counts are added to the counters.
lives_that_lose_packets() {
	local before retransmitted rc=0
	modprobe -q sch_netem
	before=$(counted tcp_retransmits)
	tc qdisc add dev lo root netem loss 10%
	(case_ lives_after_a_disconnect) || rc=$?
	tc qdisc del dev lo root
	[ "$rc" -eq 0 ] || return "$rc"
	sleep 0.1	# the core refreshes its counters with a delay
	retransmitted=$(($(counted tcp_retransmits) - before))
	echo "retransmitted: $retransmitted"
	[ "$retransmitted" -ge 1 ] || fail "none"
	[ "$retransmitted" -lt 100000 ] || fail "more than there were packets"
}

# KERNEL_CONSUMER is what scripts/kmod KERNEL masked_atomics builds.
kernel_consumer() {
	[ -e "${KERNEL_CONSUMER:-}" ] || skip "KERNEL_CONSUMER names no module"
	insmod "$KERNEL_CONSUMER" address="$saddr4" || { dmesg | tail -n 20; fail "see above"; }
	rmmod masked_atomics
	dmesg | tail -n 20 >"$tmp/consumer.log"
	expect 'masked_atomics: 12 operations as expected' "$tmp/consumer.log" 1
}

# It overwrites its queues all the time, until its device is removed.
device_goes_from_a_corrupt_ring() {
	start 60 "$tmp/corrupter" "$verbs" "$saddr4" corrupts_its_queues_until_its_device_goes
	for _ in $(seq 100); do
		! grep -q '^ready' "$tmp/corrupter" || break
		sleep 0.1
	done
	expect '^ready' "$tmp/corrupter" 1
	sleep 0.3
	limit 10 rdma link delete "$dev"
	wait "$started" || fail "the program ended with status $?"
	make_link "$dev" wd0
}

calls() { awk '$NF == "ioctl" || $NF == "write" || $NF == "read" { n += $4 } END { print n + 0 }' "$1"; }

# A perftest server posts a receive, polls and arms nothing for each message:
# its system calls must not grow with their number.
server_calls() {
	tracer=(strace -f -c -o "$tmp/calls.$1")
	perftest 90 ib_send_bw "$dev" "$dev" -s 64 -n "$1"
}

no_system_calls() {
	local few many
	command -v strace >/dev/null || skip "no strace"
	server_calls 200
	server_calls 3000
	few=$(calls "$tmp/calls.200") many=$(calls "$tmp/calls.3000")
	echo "system calls of the receiver: $few for 200 messages, $many for 3000"
	[ $((many - few)) -lt 200 ] || fail "they grow with the number of messages"
}

topology_dummy
verbs=$(compile verbs) || { echo "Bail out! $verbs"; exit 1; }
modprobe -q udmabuf || modprobe -q vgem
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug || true
while IFS=$'\t' read -r group name attributes; do
	case $group in
	atomics | late | 'on demand') title=${name#*_} ;;
	*) title=$name ;;
	esac
	# shellcheck disable=SC2086  # several
	t "$group: $title" with_attributes "$name" $attributes
done < <("$verbs" --list)
[ -z "${BIG:-}" ] || t "good: largest_message, 4 GiB less one byte" case_ largest_message 200
t "atomics: a peer that supports none" with_attributes atomic_unknown_to_peer atomics=0
t "atomics: masked, of a kernel consumer" kernel_consumer
t "states: lives that lose packets" lives_that_lose_packets
[ -z "${ALL_STAGS:-}" ] || t "limits: every_stag, 16777215" case_ every_stag 2400
t "modify: query_tells_what_holds, at MTU 9000" with_mtu 9000 query_tells_what_holds
t "reuse: with CRC" with_attributes memory_is_used_again_at_once mpa_crc=1
t "reuse: with markers" with_attributes memory_is_used_again_at_once mpa_crc=0 mpa_rx_markers=1
for name in memory_is_used_again_at_once a_list_arrives_whole a_bad_element_fails_in_its_turn \
	bulk_both_ways bulk_and_the_end long_messages_arrive_whole write_with_imm_after_writes \
	srq_of_another_domain reads_of_any_length_complete_in_order; do
	t "in batches: $name" in_batches "$name"
done
for name in odp_every_operation odp_long_send_into_nothing odp_write_to_nothing \
	odp_remapped_amid_traffic odp_no_table_is_left_by_a_write; do
	t "on demand, in batches: ${name#odp_}" in_short_batches "$name"
done
t "objects: RLIMIT_MEMLOCK without CAP_IPC_LOCK" without_ipc_lock
t "posting receives and polling make no system call" no_system_calls
t "streams: the device of a process that corrupts its queues is removed" device_goes_from_a_corrupt_ring
finish
