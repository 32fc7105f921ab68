#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# perftest: bandwidth and latency programs of Send, Write, Read and atomics, in their modes;
# and tests of qperf that post their receives while the messages arrive. -R is needed on every
# iWARP device. NEWER_PERFTEST is where the programs of scripts/fetch perftest are: they have
# --write_with_imm.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
attempts=2

suite perftest <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY
only_plugins "$driver"

# both PROGRAM OPTION...: run a pair; the table is in client.log.
both() {
	local program=$1
	shift
	perftest 120 "$program" "$dev" "$dev" "$@"
	assert_no_match "[Ff]ailed|Couldn't|error" "$tmp/client.log"
}

# row SIZE ITERATIONS: the table has that line. Its figures are not judged: on
# a busy machine perftest fails to calibrate its clock and prints 0.00.
row() {
	awk -v size="$1" -v n="$2" '$1 == size && $2 == n && NF >= 5 { ok = 1 }
		END { exit !ok }' "$tmp/client.log" ||
		fail "no measurement of $2 messages of $1 bytes"
}

bw() {
	local program=$1 size=$2 count=$3
	shift 3
	both "$program" -s "$size" -n "$count" "$@"
	row "$size" "$((count * ${qps:-1}))"
}

# All sizes from 2 bytes to 8 MB.
all_sizes() {
	both "$1" -a -n 5
	row 2 5
	row 65536 5
	row 8388608 5
}

eight_qps() { qps=8 bw "$1" 4096 100 -q 8; }

lat() {
	both "$1" -s 64 -n 200
	row 64 200
}

lat_all_sizes() {
	both "$1" -a -n 5
	row 2 5
	row 8388608 5
}

lat_events() {
	both "$1" -s 64 -n 100 -e
	row 64 100
}

# Atomics have one size, that of the word.
atomic_bw() { bw ib_atomic_bw 8 500 -A "$@"; }

atomic_lat() {
	both ib_atomic_lat -n 200 -A "$1"
	row 8 200
}

qps_of_atomics() { qps=8 atomic_bw FETCH_AND_ADD -q 8; }

newer() {
	[ -x "${NEWER_PERFTEST:-}/ib_write_bw" ] || skip "NEWER_PERFTEST names no newer perftest"
	"$@"
}

imm_bw() {
	bw "$NEWER_PERFTEST/ib_write_bw" "$1" 200 --write_with_imm "${@:2}"
	expect 'RDMA_Write.*[Ii]mm|[Ww]rite.*[Ii]mm' "$tmp/client.log"
}

imm_lat() {
	both "$NEWER_PERFTEST/ib_write_lat" -s 64 -n 200 --write_with_imm
	row 64 200
}

# What buffers() changes, whether it passed or not.
before_test() { ip link set lo mtu 65536; }

# buffers MTU MOST PROGRAM SIZE COUNT OPTION...: a message takes no more than MOST hundredths
# of a call into TCP.
buffers() {
	local mtu=$1 most=$2 size=$4 count=$5 before calls
	shift 2
	ip link set lo mtu "$mtu"
	before=$(counted tx_socket_sends)
	bw "$@"
	sleep 0.1	# the core refreshes its counters with a delay
	calls=$(($(counted tx_socket_sends) - before))
	echo "# MTU $mtu: $calls calls for $count messages of $size bytes"
	((calls * 100 <= most * count)) || fail "that is more than $most of 100 for each"
}

# measured TEST...: qperf, whose two ends both send before all of their receives are posted.
measured() {
	command -v qperf >/dev/null || fail "no qperf"
	serve 19765 60 qperf
	client 50 qperf -t 2 -cm1 "$saddr4" "$@"
	stop_server
	assert_no_match 'failed|error' "$tmp/client.log"
	expect '(bw|latency) +=' "$tmp/client.log" $#
}

topology_dummy
for verb in send write read; do
	t "ib_${verb}_bw of 64 KiB" bw "ib_${verb}_bw" 65536 50
	t "ib_${verb}_bw -a" all_sizes "ib_${verb}_bw"
	t "ib_${verb}_bw -b" bw "ib_${verb}_bw" 4096 100 -b
	t "ib_${verb}_bw -q 8" eight_qps "ib_${verb}_bw"
	t "ib_${verb}_bw -l 16" bw "ib_${verb}_bw" 4096 160 -l 16
	# An odd number: otherwise a quick sender of Sends waits for ever for its last credit
	# (scripts/e2e/direct.sh).
	[ "$verb" = write ] || t "ib_${verb}_bw -e" bw "ib_${verb}_bw" 4096 101 -e
	t "ib_${verb}_lat of 64 bytes" lat "ib_${verb}_lat"
	# One kind is enough: a message of any size goes both ways, as all of bw -a go one way.
	[ "$verb" != send ] || t "ib_send_lat -a" lat_all_sizes ib_send_lat
	[ "$verb" = write ] || t "ib_${verb}_lat -e" lat_events "ib_${verb}_lat"
done
for mtu in 1450 9001; do
	t "MTU $mtu, long buffers" buffers $mtu 2500 ib_write_bw 1048576 50 -t 16
done
t "MTU 1500, many messages share buffers" buffers 1500 20 ib_send_bw 1024 4000
for mtu in 1500 65536; do
	t "MTU $mtu, tails share buffers" buffers $mtu 150 ib_write_bw 65536 1000
done
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
	t "ib_atomic_bw, $kind" atomic_bw "$kind"
	t "ib_atomic_lat, $kind" atomic_lat "$kind"
done
t "ib_atomic_bw, 8 QPs" qps_of_atomics
t "ib_atomic_bw, 16 outstanding" atomic_bw FETCH_AND_ADD -o 16
t "ib_write_bw --write_with_imm of 64 bytes" newer imm_bw 64
t "ib_write_bw --write_with_imm of 64 KiB" newer imm_bw 65536 -b
t "ib_write_lat --write_with_imm" newer imm_lat
t "ib_send_bw of one byte, old post functions" bw ib_send_bw 1 200 --use_old_post_send
t "qperf rc_bi_bw" measured rc_bi_bw
t "qperf rc_bw, rc_lat" measured rc_bw rc_lat
t "ib_send_bw, short queues" bw ib_send_bw 4096 100 -t 8 -r 8
finish
