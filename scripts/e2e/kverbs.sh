#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What storage consumers ask of a device, one thing after the other: a kernel
# module that connects to itself.
#
# KVERBS is the module: scripts/kmod KERNEL kernel_verbs
. "$(dirname "$0")/lib.sh"

suite kverbs <<'TOPOLOGY'
  kernel_verbs.ko, both ends --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

all_cases() {
	local lines
	lines=$(dmesg | wc -l)
	insmod "$KVERBS" address="$saddr4" || { dmesg | grep kernel_verbs; fail "see above"; }
	dmesg | tail -n +"$((lines + 1))" >"$tmp/log"
	rmmod kernel_verbs
	expect 'kernel_verbs: 13 cases as expected, in 8 rounds' "$tmp/log" 1
}

# The client sends first, and the server has local requests before that.
without_p2p() {
	local rc=0
	echo 0 >"/sys/class/infiniband/$dev/weft/p2p"
	(all_cases) || rc=$?
	echo 1 >"/sys/class/infiniband/$dev/weft/p2p"
	return "$rc"
}

topology_dummy
[ -e "${KVERBS:?}" ] || exit 1
t "registration, invalidation, draining, in all contexts and on two vectors" all_cases
t "the same without the peer-to-peer mode" without_p2p
finish
