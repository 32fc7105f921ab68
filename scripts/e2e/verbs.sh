#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Work requests, good and bad, through libibverbs: what each completes with.
. "$(dirname "$0")/lib.sh"

suite verbs <<'TOPOLOGY'
  one program, both ends --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

# BIG=1 adds the 4 GiB message: half a minute where code runs natively.
case_() { limit "${2:-60}" "$tmp/verbs" "$saddr4" "$1"; }

without_ipc_lock() {
	command -v capsh >/dev/null || skip "no capsh"
	(
		ulimit -l 256
		limit 60 capsh --drop=cap_ipc_lock -- -c "'$tmp/verbs' '$saddr4' memlock"
	)
}

calls() { awk '$NF == "ioctl" || $NF == "write" || $NF == "read" { n += $4 } END { print n + 0 }' "$1"; }

# A perftest server posts a receive, polls and arms nothing for each message:
# its system calls must not grow with their number.
server_calls() {
	serve 18515 90 strace -f -c -o "$tmp/calls.$1" ib_send_bw -R -d "$dev" -F -s 64 -n "$1"
	client 90 ib_send_bw -R -d "$dev" -F -s 64 -n "$1" "$saddr4" >/dev/null
	served
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
compile verbs
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
for name in qp_types too_large query_qp; do
	t "objects: $name" case_ "$name"
done
t "objects: RLIMIT_MEMLOCK without CAP_IPC_LOCK" without_ipc_lock
t "posting receives and polling make no system call" no_system_calls
finish
