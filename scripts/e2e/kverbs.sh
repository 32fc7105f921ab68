#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The operations of storage consumers, one after the other: a kernel module that connects to
# itself. And what netlink shows of objects while they are destroyed, those of the module and
# of a process.
#
# KVERBS is the module: scripts/kmod KERNEL kernel_verbs
# LATE_DUMP another: scripts/kmod KERNEL late_dump
. "$(dirname "$0")/lib.sh"

suite kverbs <<'TOPOLOGY'
  kernel_verbs.ko, both ends --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY
only_plugins "$driver"

all_cases() {
	local lines
	lines=$(dmesg | wc -l)
	insmod "$KVERBS" address="$saddr4" || { dmesg | grep kernel_verbs; fail "see above"; }
	dmesg | tail -n +"$((lines + 1))" >"$tmp/log"
	rmmod kernel_verbs
	expect 'kernel_verbs: 28 cases as expected, in 8 rounds' "$tmp/log" 1
}

# The client sends first, and the server has local requests before that.
without_p2p() {
	local rc=0
	echo 0 >"/sys/class/infiniband/$dev/params/mpa_p2p"
	(all_cases) || rc=$?
	echo 1 >"/sys/class/infiniband/$dev/params/mpa_p2p"
	return "$rc"
}

parameter() { cat "/sys/module/late_dump/parameters/$1"; }

# The module asks in the place of a dump, and counts what it should not have found.
late_dumps() {
	local name
	insmod "$LATE_DUMP" device="$dev"
	trap 'rmmod late_dump' EXIT
	insmod "$KVERBS" address="$saddr4"
	rmmod kernel_verbs
	for name in srq_limit_event srq_resize cq_resize queue_pairs_end_amid_writes window2; do
		limit 60 "$verbs" "$saddr4" "$name"
	done
	VERBS_QPN=$(parameter idle_qpn) limit 60 "$verbs" "$saddr4" connects_the_qp_of_another
	for name in answered late looked_up early bound late_bound held; do
		echo "$name: $(parameter "$name")" | tee -a "$tmp/late"
	done
	expect '^late: 0$' "$tmp/late" 1
	expect '^early: 0$' "$tmp/late" 1
	expect '^late_bound: 0$' "$tmp/late" 1
	expect '^bound: [0-9][0-9]' "$tmp/late" 1
	expect '^answered: [0-9][0-9]' "$tmp/late" 1
	expect '^looked_up: [1-9]' "$tmp/late" 1
	expect '^held: [1-9]' "$tmp/late" 1
}

topology_dummy
[ -e "${KVERBS:?}" ] || exit 1
[ -e "${LATE_DUMP:?}" ] || exit 1
verbs=$(compile verbs) || { echo "Bail out! $verbs"; exit 1; }
t "registration, invalidation, draining, in all contexts and on two vectors" all_cases
t "the same without the peer-to-peer mode" without_p2p
t "objects that are destroyed while, and after, they are dumped" late_dumps
finish
