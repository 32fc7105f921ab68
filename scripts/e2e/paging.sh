#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# On-demand paging where a kernel has swap, huge pages, memory that is secret, and memory cgroups:
# Debian's, User-Mode Linux has none of them.
#
#   scripts/guest --kernel 6.12 env PROGRAMS=$(scripts/programs) scripts/e2e/run paging
. "$(dirname "$0")/lib.sh"

suite paging <<'TOPOLOGY'
  one program, both ends --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

case_() { limit 60 "$verbs" "$saddr4" "$1"; }

# must CASE: it may not be skipped.
must() {
	local rc=0
	case_ "$1" || rc=$?
	[ "$rc" -ne 77 ] || fail "what it needs is not there"
	return "$rc"
}

swap_on() {
	modprobe zram
	echo 64M >/sys/block/zram0/disksize
	mkswap -q /dev/zram0
	swapon /dev/zram0
}

huge_pages_on() { echo 8 >/proc/sys/vm/nr_hugepages; }

# in_a_cgroup CASE
in_a_cgroup() {
	local group=/sys/fs/cgroup/weft-paging rc=0
	[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir "$group"
	(
		echo "$BASHPID" >"$group/cgroup.procs"
		must "$1"
	) || rc=$?
	rmdir "$group"
	return "$rc"
}

topology_dummy
verbs=$(compile verbs) || { echo "Bail out! $verbs"; exit 1; }
(set -e; swap_on; huge_pages_on) || { echo "Bail out! neither swap nor huge pages"; exit 1; }
t "swap" must odp_swapped_out
t "swap, amid traffic" must odp_swapped_out_amid_traffic
t "huge pages" must odp_huge_pages
t "a window" must odp_window
t "memory of memfd_secret()" must odp_secret_memory
t "charged to the process" in_a_cgroup odp_is_charged_to_the_process
swapoff /dev/zram0
finish
