#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Mixed load in shifts, with a rest after each in which nothing is left: memory does not
# grow from rest to rest. Called by scripts/soak.
#
# SOAK_SECONDS is how long all shifts take together (default 60).
. "$(dirname "$0")/lib.sh"

suite soak <<'TOPOLOGY'
  processes with everything --- wd0 (dummy, 10.77.0.1) --- lo
  others, whose device goes --- wd1 (dummy, 10.78.0.1) --- lo
TOPOLOGY

total=${SOAK_SECONDS:-60}
shifts=10
shift_seconds=$(((total + shifts - 1) / shifts))
other=${driver}1 other_addr=10.78.0.1

# What of the kernel's memory grows if something of weft's is not given back.
fields='SUnreclaim|KernelStack|PageTables|VmallocUsed|Percpu'
# kB that the rest of the kernel may need more of from the second rest to the last.
slack=${SOAK_SLACK_KB:-8192}

second_device() {
	ip link add wd1 type dummy
	ip link set wd1 up
	ip addr add "$other_addr/24" dev wd1
	rdma link add "$other" type "$driver" netdev wd1
}

# The link goes at times; once in a shift, so that most of the work is with one.
goes() {
	nap $((shift_seconds / 2))
	rdma link delete "$other"
	rdma link add "$other" type "$driver" netdev wd1
}

work() {
	local option=$1 file=$2
	shift 2
	# shellcheck disable=SC2086
	start "$((shift_seconds + 120))" "$file" "$races" $option "$@"
}

# One shift of everything at once; its processes end in order.
one_shift() {
	local pid pids=() file
	work '' "$tmp/work.1" "$dev" "$addr4" "$shift_seconds" traffic streams polls arms resizes \
		moderates connections kills
	pids+=("$started")
	work '' "$tmp/work.2" "$dev" "$addr4" "$shift_seconds" traffic pds cqs qps srqs mrs mws \
		channels contexts dumps statistics sysfs
	pids+=("$started")
	work -g "$tmp/work.3" "$other" "$other_addr" "$shift_seconds" traffic connections qps cqs
	pids+=("$started")
	goes
	for pid in "${pids[@]}"; do
		wait "$pid" || { cat "$tmp"/work.?; fail "a process of shift $1 failed"; }
	done
	for file in "$tmp"/work.?; do sed "s/^/shift $1, ${file##*.}: /" "$file"; done
}

# rest: all that can be given back is; then the sum of the fields, in kB.
rest() {
	idle >&2
	for _ in 1 2 3; do
		echo 3 >/proc/sys/vm/drop_caches
		nap 1
	done
	awk -F'[: ]+' -v fields="^($fields)\$" '$1 ~ fields { sum += $2 } END { print sum }' \
		/proc/meminfo
}

# caches FILE: how many objects each slab cache has.
caches() { awk 'NR > 2 { print $1, $2, $4 }' /proc/slabinfo | sort >"$1"; }

# What has grown most between two such files, in kB: where to look for a leak.
grown() {
	join "$1" "$2" | awk '{ kb = ($4 - $2) * $3 / 1024; if (kb >= 16) print int(kb), $1, $2, $4 }' |
		sort -rn | head -n 8 | sed 's/^/grown by kB, cache, objects before and after: /'
}

memory_is_flat() {
	local n kb first='' last
	for n in $(seq "$shifts"); do
		one_shift "$n"
		kb=$(rest)
		echo "after shift $n: $kb kB" | tee /dev/kmsg
		[ "$n" -ne 2 ] || { first=$kb; caches "$tmp/caches.first"; }
		last=$kb
	done
	caches "$tmp/caches.last"
	grown "$tmp/caches.first" "$tmp/caches.last"
	echo "from the second rest to the last: $((last - first)) kB"
	[ $((last - first)) -le "$slack" ] || fail "memory grows"
}

topology_dummy
second_device
races=$(compile races) || { echo "Bail out! $races"; exit 1; }
t "$total s of mixed load, and memory is flat" memory_is_flat
sed -n '/^after shift\|^from the\|^grown/s/^/# /p' "$tmp/test.log"
finish
