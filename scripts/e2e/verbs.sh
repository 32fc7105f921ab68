#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Work requests and objects, good and bad, through libibverbs: what each completes
# with, on both sides. VERBS_ONLY names the cases to run.
#
# ALL_STAGS=1 adds the case that makes every STag there is: a guest of 10 GB.
. "$(dirname "$0")/lib.sh"

suite verbs <<'TOPOLOGY'
  one program, both ends --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

# BIG=1 adds the 4 GiB message: half a minute where code runs natively.
case_() {
	[[ " ${VERBS_ONLY:-$1} " == *" $1 "* ]] || skip "not asked for"
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
	sleep 0.1	# the core reads its counters afresh by and by
	echo "segments: $(($(counted tx_segments) - before))"
	[ "$(counted tx_segments)" -gt $((before + 700)) ] || fail "too few for a MiB at MTU 1500"
}

# The same for what ends early.
in_short_batches() {
	local rc=0
	ip link set lo mtu 1500
	with_attributes "$1" mpa_crc=0 loopback=0 || rc=$?
	ip link set lo mtu 65536
	return "$rc"
}

# TCP counts anew in each life, and what is added to the counters is what it counts.
lives_that_lose_packets() {
	local before retransmitted rc=0
	modprobe -q sch_netem
	before=$(counted tcp_retransmits)
	tc qdisc add dev lo root netem loss 10%
	(case_ lives_after_a_disconnect) || rc=$?
	tc qdisc del dev lo root
	[ "$rc" -eq 0 ] || return "$rc"
	sleep 0.1	# the core reads its counters afresh by and by
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

# It scribbles over its queues all the time, and then has no device any more.
device_goes_from_a_corrupt_ring() {
	start 60 "$tmp/scribbler" "$verbs" "$saddr4" corrupts_its_queues_until_its_device_goes
	for _ in $(seq 100); do
		! grep -q '^ready' "$tmp/scribbler" || break
		sleep 0.1
	done
	expect '^ready' "$tmp/scribbler" 1
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
for name in inline_data inline_capability several_elements zero_length unsignalled fence \
	solicited around_the_rings; do
	t "good: $name" case_ "$name"
done
[ -z "${BIG:-}" ] || t "good: largest_message, 4 GiB less one octet" case_ largest_message 200
for name in send_bad_lkey send_beyond_region send_of_another_domain receive_too_short \
	receive_bad_lkey no_receive_posted write_bad_rkey write_without_right \
	write_beyond_region read_bad_rkey read_without_right read_beyond_region \
	refused_at_posting full_queues disconnect_flushes; do
	t "bad: $name" case_ "$name"
done
for name in qp_types too_large query_qp rereg_translation rereg_access rereg_zero_based \
	rereg_domain rereg_in_another_process rereg_refused advise parent_domain \
	parent_of_a_parent_domain parent_domain_refused import_objects \
	device_memory_refused unknown_requests_are_refused other_users_cannot_connect_my_qp; do
	t "objects: $name" case_ "$name"
done
modprobe -q udmabuf || modprobe -q vgem
t "objects: dmabuf" case_ dmabuf
for name in atomic_capability atomic_fetch_add atomic_cmp_swap atomic_misaligned_fadd \
	atomic_misaligned_cswap atomic_out_of_bounds atomic_across_the_end atomic_without_right \
	atomic_wrong_key atomic_key_of_nothing atomic_of_another_domain atomic_short_answer \
	atomic_answer_bad_lkey atomic_hammer; do
	t "atomics: ${name#atomic_}" case_ "$name"
done
t "atomics: a peer that knows none" with_attributes atomic_unknown_to_peer atomics=0
t "atomics: masked, of a kernel consumer" kernel_consumer
for name in write_with_imm write_with_imm_after_writes empty_write_with_imm \
	write_with_imm_after_send write_with_imm_no_receive send_with_imm_refused; do
	t "immediate: $name" case_ "$name"
done
for name in late_receives late_receive_of_another_thread late_receives_both_ways late_immediate \
	late_long_messages late_peer_disconnects late_disconnect_here late_destroy late_storm \
	late_srq late_srq_changes late_srq_storm; do
	t "late: ${name#late_}" with_attributes "$name" rnr_timeout_ms=600000
done
for name in late_never late_peer_disconnects_for_nothing; do
	t "late: ${name#late_}" with_attributes "$name" rnr_timeout_ms=600
done
t "late: not_allowed" with_attributes late_not_allowed rnr_timeout_ms=0
for name in window1 window2 window_after_local_invalidate window_after_remote_invalidate \
	window_bound_again window_bound_twice window_over_another_qp window_beyond_region window_after_its_qp \
	dereg_while_written; do
	t "windows: $name" case_ "$name"
done
for name in srq_limit_event srq_resize srq_run_dry srq_of_another_domain \
	srq_buffer_of_the_qp srq_buffer_of_the_peer destroying_is_silent last_wqe_reached \
	cq_overrun cq_resize cq_moderation cq_ex_reads qp_ex_every_opcode qp_ex_mistakes; do
	t "queues: $name" case_ "$name"
done
for name in reset_empties_the_receive_queue reset_empties_the_send_queue reset_makes_room \
	reset_leaves_the_srq_alone lives_after_a_disconnect a_life_after_an_error \
	a_connected_qp_is_reset a_connected_qp_with_an_srq_is_reset \
	a_window_ends_with_the_life_it_was_bound_in lives_amid_posts; do
	t "states: $name" case_ "$name"
done
t "states: lives that lose packets" lives_that_lose_packets
for name in a_refused_modify_changes_nothing a_modify_heeds_the_current_state \
	a_qp_without_a_connection what_is_not_done_is_refused rtr_without_a_path_is_refused \
	query_tells_what_holds a_disconnect_never_fails; do
	t "modify: $name" case_ "$name"
done
for name in rdma_cm_restricts_nothing a_qp_without_write a_qp_without_read \
	a_qp_without_atomics a_closed_qp_is_no_worse_off rights_come_and_go \
	own_flags_outlast_rdma_cm a_right_goes_amid_a_read; do
	t "access flags: $name" case_ "$name"
done
for name in limits_named limits_used largest_srq many_regions; do
	t "limits: $name" case_ "$name"
done
[ -z "${ALL_STAGS:-}" ] || t "limits: every_stag, 16777215" case_ every_stag 2400
for name in no_mapping_is_left_behind queue_memory_is_in_no_core_dump \
	qp_numbers_are_not_given_again_at_once destroying_forgets_its_own_completions_only \
	a_region_that_wraps_is_refused pds_are_counted_down; do
	t "resources: $name" case_ "$name"
done
for name in a_stream_of_posts_makes_few_calls a_polling_process_needs_no_worker unpolled_post_goes_out \
	a_post_before_sleeping_goes_out arming_announces_what_was_posted \
	a_post_before_destroying_goes_out corrupt_rings_are_isolated \
	endless_posts_are_isolated endless_deferral_is_isolated; do
	t "streams: $name" case_ "$name"
done
t "streams: a_post_beside_a_ringing_thread_goes_out" \
	with_attributes a_post_beside_a_ringing_thread_goes_out sq_poll_interval_us=10000
for name in arming_beside_resizing arming_amid_a_poll a_poll_that_waits_for_a_resize_sleeps \
	cq_resize_without_room srq_resize_without_room arming_again_before_the_event; do
	t "threads: $name" case_ "$name"
done
# TCP takes all at once, so a doorbell takes its time.
t "threads: destroying_beside_polling" \
	with_attributes destroying_beside_polling tcp_sndbuf=50000000 tcp_rcvbuf=50000000 sq_poll_interval_us=10000
for name in a_daemon_goes_on a_daemon_with_shared_memory_goes_on a_daemon_accepts \
	a_daemon_disconnects a_child_destroys_what_it_inherited a_child_has_objects_of_its_own \
	a_child_closes_the_device forks_beside_traffic a_lock_of_a_thread_is_not_inherited \
	privileges_dropped_after_opening; do
	t "processes: $name" case_ "$name"
done
for name in bulk_both_ways bulk_and_the_end; do
	t "bulk: $name" case_ "$name"
done
for name in long_messages_arrive_whole stopped_process_delays_no_other \
	kill_isolated queue_pairs_end_amid_writes \
	queue_pairs_end_amid_reads; do
	t "long messages: $name" case_ "$name"
done
for name in reads_from_a_polling_process reads_from_polling_threads \
	reads_from_a_process_waiting_for_events reads_from_a_sleeping_process \
	a_reader_may_wait_for_events reads_delay_no_other_message \
	a_stopped_process_is_read_from a_killed_process_ends_its_connection \
	a_bad_read_fails_after_good_ones readers_go_one_after_the_other \
	readers_exit_amid_a_read several_pairs_read; do
	t "one word: $name" case_ "$name"
done
for name in reads_of_any_length_complete_in_order few_reads_at_a_time_complete_in_order \
	readers_go_amid_their_reads; do
	t "reads: $name" case_ "$name"
done
for name in memory_is_used_again_at_once a_list_arrives_whole a_bad_element_fails_in_its_turn \
	long_messages_end_with_their_connection queue_pairs_go_while_they_write; do
	t "reuse: $name" with_attributes "$name" mpa_crc=0
done
t "reuse: with CRC" with_attributes memory_is_used_again_at_once mpa_crc=1
t "reuse: with markers" with_attributes memory_is_used_again_at_once mpa_crc=0 mpa_rx_markers=1
for name in memory_is_used_again_at_once a_list_arrives_whole a_bad_element_fails_in_its_turn \
	bulk_both_ways bulk_and_the_end long_messages_arrive_whole write_with_imm_after_writes \
	srq_of_another_domain reads_of_any_length_complete_in_order; do
	t "in rows: $name" in_batches "$name"
done
for name in odp_capabilities odp_registration odp_every_operation odp_whole_address_space \
	odp_in_a_list odp_send_of_nothing odp_long_send_into_nothing odp_receive_into_nothing \
	odp_write_to_nothing odp_read_of_nothing odp_atomic_on_nothing \
	odp_no_address_of_a_process odp_write_to_what_is_read_only odp_secret_memory \
	odp_follows_the_address odp_written_memory_is_kept odp_rereg odp_prefetch \
	odp_prefetch_of_nothing odp_unmapped_amid_advice odp_remapped_amid_traffic \
	odp_copied_on_write_amid_traffic odp_collapsed_amid_traffic odp_unmapped_amid_traffic \
	odp_destroyed_amid_faults odp_window odp_window_on_nothing; do
	t "on demand: ${name#odp_}" case_ "$name"
done
for name in odp_every_operation odp_long_send_into_nothing odp_write_to_nothing \
	odp_remapped_amid_traffic; do
	t "on demand, in rows: ${name#odp_}" in_short_batches "$name"
done
t "objects: RLIMIT_MEMLOCK without CAP_IPC_LOCK" without_ipc_lock
t "posting receives and polling make no system call" no_system_calls
t "streams: the device goes from a process that scribbles" device_goes_from_a_corrupt_ring
finish
