#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# A receiver that also sends has its socket locked while bytes arrive. When it has read
# them all its window must not stay shut, or the sender waits 200 ms for its persist timer.
# And what a receiver without GRO gets in a burst is acknowledged once.
. "$(dirname "$0")/lib.sh"

suite window <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1) --- lo, MTU 1500
  server --- va (10.77.0.1) === vb (10.77.0.2) --- client, MTU 1500, without offload
TOPOLOGY
only_plugins "$driver"

runs=8

# look: the bytes acknowledged to a sender that has waited for 100 ms, with its persist
# timer, although its receiver has nothing to read and nothing to receive.
look() {
	ss -tnmoiH state established '( sport = :18515 or dport = :18515 )' | awk '
		!/skmem/ { receiver = $3 ~ /:18515$/; waits = /timer:\(persist/; next }
		receiver { busy = busy || !/skmem:\(r0,/ || !/,bl0,/ }
		waits && /lastack:[1-9][0-9][0-9]/ && match($0, /bytes_acked:[0-9]+/) {
			stuck = substr($0, RSTART, RLENGTH)
		}
		END { if (stuck && !busy) print stuck }'
}

# watch FILE: adds a line for each such wait.
watch() {
	local now told=''
	while sleep 0.02; do
		now=$(look)
		if [ "${now:-$told}" != "$told" ]; then
			echo "$now" >>"$1"
			told=$now
		fi
	done
}

opens_again() {
	local watcher k
	: >"$tmp/stalls"
	watch "$tmp/stalls" &
	watcher=$!
	for ((k = 0; k < runs; k++)); do
		perftest 30 ib_send_bw "$dev" "$dev" -s 65536 -D 1 || break
	done
	kill "$watcher"
	[ "$k" -eq "$runs" ] || fail "run $k"
	echo "stalls:"
	cat "$tmp/stalls"
	# Some may be a CPU that was preempted just before it sent the update; without updates
	# there is more than one in each run.
	[ "$(wc -l <"$tmp/stalls")" -le 3 ] || fail "the window stays shut"
}

# segments NAMESPACE: that its TCP has sent.
segments() {
	ip netns exec "$1" cat /proc/net/snmp |
		awk '$1 == "Tcp:" && $12 + 0 == $12 { print $12 }'
}

# TCP acknowledges every second segment that is read at once; a burst is one of ten and more here.
# What was sent before the data is counted as well: it is little.
burst_acked_once() {
	local program=$1 sent acks
	sent=$(segments wb) acks=$(segments wa)
	perftest 60 "$program" wefta weftb -s 65536 -n 1000
	sent=$(($(segments wb) - sent)) acks=$(($(segments wa) - acks))
	echo "$sent segments, $acks ACKs"
	[ "$sent" -gt 45000 ] || fail "they were not sent one by one"
	[ "$((acks * 4))" -lt "$sent" ] || fail "more than one ACK for four segments"
}

topology_veth
for end in "wa va" "wb vb"; do
	# shellcheck disable=SC2086  # namespace and device
	ip netns exec ${end% *} ethtool -K "${end#* }" tso off gso off gro off
done
# Packets that are delayed come in bursts, as a network card delivers them.
modprobe -q sch_netem
tc -n wb qdisc add dev vb root netem delay 1ms limit 10000
t "a burst of Sends without GRO is acknowledged once" burst_acked_once ib_send_bw
t "a burst of Writes without GRO is acknowledged once" burst_acked_once ib_write_bw

topology_dummy
ip link set lo mtu 1500
# A window that does not grow: some batches behind the lock shut it.
sysctl -qw net.ipv4.tcp_rmem='4096 131072 1000000'
t "a window that is shut while the receiver sends opens again" opens_again
finish
