#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# On-demand paging where a kernel has swap, huge pages, memory that is secret, memory cgroups, and
# filesystems that can be frozen: Debian's, User-Mode Linux has none of them.
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

# A file whose pages can be held up.
file_to_freeze() {
	modprobe -q loop || true
	modprobe -q ext4 || true
	mkdir "$tmp/disk"
	truncate -s 16M "$tmp/disk.image"
	mkfs.ext4 -q "$tmp/disk.image"
	mount -o loop "$tmp/disk.image" "$tmp/disk"
	truncate -s 4096 "$tmp/disk/page"
}

# rmmod removes all but what the fault still needs, and waits for its worker.
waits_for_a_worker() { grep -q weft_odp_module_exit "/proc/$(pgrep -x rmmod)/stack"; }

module_goes_amid_a_fault() {
	local program removing
	file_to_freeze
	trap 'fsfreeze -u "$tmp/disk" || true; umount "$tmp/disk"' EXIT
	start 60 "$tmp/program" env VERBS_FILE="$tmp/disk/page" "$verbs" "$saddr4" odp_fault_that_hangs
	program=$started
	until_said "$tmp/program" ready "$program"
	start 60 "$tmp/rmmod" rmmod weft
	removing=$started
	until_true 20 waits_for_a_worker || fail "rmmod waits for no worker"
	pkill -USR1 -P "$program"
	ended "$removing" "$tmp/rmmod"
	ended "$program" "$tmp/program"
	modprobe weft
	make_link "$dev" wd0
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
t "the module is removed amid a fault" module_goes_amid_a_fault
swapoff /dev/zram0
finish
