# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Guest side of the verdict: after the job, everything must go away again.
# Sourced by scripts/vm/init, whose problem() and $job it uses.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# What the test scripts left running: everything but this shell goes.
kill_leftovers() {
	kill -TERM -1 2>/dev/null
	sleep 0.3
	kill -KILL -1 2>/dev/null
	sleep 0.1
}

# resources_left: lines of `rdma resource` with a count other than zero.
resources_left() { rdma resource show 2>/dev/null | grep -E ' [1-9][0-9]*( |$)'; }

check_resources() {
	local left
	for _ in $(seq 50); do
		left=$(resources_left) || return 0
		sleep 0.1
	done
	problem "resources left after the job: $left"
	rdma resource show qp >>"$job/problems" 2>&1
	rdma resource show cm_id >>"$job/problems" 2>&1
}

delete_links() {
	local name
	for name in $(rdma link show | sed -n 's,^link \([^/]*\)/.*,\1,p' | sort -u); do
		timeout -k 1 20 rdma link delete "$name" ||
			problem "rdma link delete $name: failed or not done after 20 s"
	done
}

loaded() { grep -q "^$1 " /proc/modules; }

unload() {
	local module=$1 users
	loaded "$module" || return 0
	users=$(awk -v m="$module" '$1 == m { print $3 }' /proc/modules)
	[ "$users" = 0 ] || problem "$module still has $users users"
	timeout -k 1 20 rmmod "$module" ||
		problem "rmmod $module: failed or not done after 20 s"
}

delete_namespaces() {
	local ns
	for ns in /run/netns/*; do
		[ -e "$ns" ] && ip netns delete "${ns##*/}"
	done
}

# kmemleak_report: suspects, without what the kernel itself leaked while booting
# (allocated by the idle or init thread before there was any user space).
kmemleak_report() {
	awk '/^unreferenced object/ { record = $0; getline; boot = /comm "swapper/
			if (!boot) print record }
		!boot' /sys/kernel/debug/kmemleak
}

# kmemleak_scan WHEN: objects count as leaked once they are five seconds old
# and two scans have found no pointer to them.
kmemleak_scan() {
	local file=/sys/kernel/debug/kmemleak found
	[ -w "$file" ] || return 0
	echo scan >"$file"
	sleep 6
	echo scan >"$file"
	found=$(kmemleak_report)
	[ -n "$found" ] || return 0
	problem "kmemleak $1:"
	head -n 200 <<<"$found" >>"$job/problems"
	echo clear >"$file"
}

tear_down() {
	local ko
	kill_leftovers
	check_resources
	delete_links
	kmemleak_scan "before unloading (with symbols)"
	[ -e "$job/weft" ] && unload weft
	while read -r ko; do
		unload "$(basename "$ko" .ko | tr - _)"
	done <"$job/modules"
	delete_namespaces
	[ -s "$job/modules" ] || [ -e "$job/weft" ] || return 0
	kmemleak_scan "after unloading"
}
