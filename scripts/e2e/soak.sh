#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Mixed load in shifts, with a pause after each in which no object is left: memory does not
# grow from pause to pause. Called by scripts/soak.
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
# kB that the rest of the kernel may need more of from the second rest to the last: a few
# more workers have stacks, and the files of this suite have inodes; 200 were seen. An object
# lost in every round of an activity makes many times as much in an hour. What kmemleak and
# KASAN keep for themselves differs by 4 MB from rest to rest, up and down.
slack=1024
[ ! -e /sys/kernel/debug/kmemleak ] || slack=8192
slack=${SOAK_SLACK_KB:-$slack}

second_device() {
	ip link add wd1 type dummy
	ip link set wd1 up
	ip addr add "$other_addr/24" dev wd1
	make_link "$other" wd1
}

# A process that is killed while it connects to itself cannot end before iw_cm has its
# answer, which is that the request was not accepted in time.
short_deadlines() {
	local file
	for file in "/sys/class/infiniband/$1/params/"{mpa_request,accept,mpa_reply}_timeout_ms; do
		[ ! -e "$file" ] || echo $((5000 * slow)) >"$file"
	done
}

# The link goes at times; once in a shift, so that most of the work is with one.
goes() {
	sleep_nofork $((shift_seconds / 2))
	rdma link delete "$other"
	make_link "$other" wd1
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

# What is free in slab caches, KASAN's quarantine among it, goes back to the kernel.
shrink_caches() {
	local file
	for file in /sys/kernel/slab/*/shrink; do
		echo 1 >"$file"
	done
}

# rest NAME: all that can be given back is; then what there is, in files of that name.
rest() {
	idle
	for _ in 1 2 3; do
		echo 3 >/proc/sys/vm/drop_caches
		shrink_caches
		sleep_nofork 1
	done
	awk -F'[: ]+' -v fields="^($fields)\$" '$1 ~ fields { print $1, $2 }' /proc/meminfo |
		sort >"$tmp/$1.fields"
	awk 'NR > 2 { print $1, $2 * $4 / 1024, $2 }' /proc/slabinfo | sort >"$tmp/$1.caches"
	awk '{ sum[$3] += $2; n[$3]++ }
		END { for (who in sum) print who, sum[who] / 1024, n[who] }' /proc/vmallocinfo |
		sort >"$tmp/$1.vmalloc"
}

sum() { awk '{ sum += $2 } END { print sum }' "$tmp/$1.fields"; }

# grown FIRST LAST: what has grown most, in kB: where to look for a leak.
grown() {
	local what
	for what in fields caches vmalloc; do
		join -a 2 -o 0,1.2,2.2,1.3,2.3 -e 0 "$tmp/$1.$what" "$tmp/$2.$what" |
			awk '{ kb = $3 - $2; if (kb >= 4) print int(kb), $0 }' | sort -rn |
			head -n 12 | sed "s/^/grown, $what: /"
	done
}

memory_is_flat() {
	local n kb first='' last
	for n in $(seq "$shifts"); do
		one_shift "$n"
		rest "$n"
		kb=$(sum "$n")
		echo "after shift $n: $kb kB: $(tr '\n' ' ' <"$tmp/$n.fields")" | tee /dev/kmsg
		[ "$n" -ne 2 ] || first=$kb
		last=$kb
	done
	grown 2 "$shifts"
	echo "from the second rest to the last: $((last - first)) kB"
	[ $((last - first)) -le "$slack" ] || fail "memory grows"
}

topology_dummy
second_device
short_deadlines "$dev"
races=$(compile races) || { echo "Bail out! $races"; exit 1; }
t "$total s of mixed load, and memory is flat" memory_is_flat
sed -n '/^after shift\|^from the\|^grown/s/^/# /p' "$tmp/test.log"
finish
