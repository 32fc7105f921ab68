#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What monitoring programs read of every RDMA device: counters in InfiniBand's units, and rate.
# And weft-top, which has to show the traffic.
. "$(dirname "$0")/lib.sh"

suite monitoring <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
  weft1 --- wv0 (veth), weft2 --- wd0.7 (VLAN)
TOPOLOGY

port=/sys/class/infiniband/$dev/ports/1

counter() { cat "$port/counters/$1"; }
stat_of() { cat "$port/hw_counters/$1"; }

# What is sent here is received here.
traffic() { perftest 90 ib_write_bw "$dev" "$dev" -n 100 -s 65536; }

every_counter_is_a_number() {
	local file n=0
	for file in "$port"/counters/*; do
		grep -qxE '[0-9]+' "$file" || fail "$file: $(cat "$file" 2>&1)"
		n=$((n + 1))
	done
	[ "$n" -ge 15 ] || fail "$n counters"
}

units_of_four_bytes() {
	traffic
	[ "$(counter port_xmit_data)" -ge $((100 * 65536 / 4)) ]
	[ "$(counter port_xmit_data)" -eq $(($(stat_of tx_bytes) / 4)) ]
	[ "$(counter port_rcv_data)" -eq $(($(stat_of rx_bytes) / 4)) ]
	[ "$(counter port_xmit_packets)" -eq "$(stat_of tx_segments)" ]
	[ "$(counter port_rcv_packets)" -eq "$(stat_of rx_segments)" ]
	[ "$(counter unicast_xmit_packets)" -eq "$(stat_of tx_segments)" ]
	[ "$(counter unicast_rcv_packets)" -eq "$(stat_of rx_segments)" ]
}

# QPs that are counted apart, while they are there and when they are gone.
counted_apart() {
	local before
	before=$(counter port_xmit_data)
	rdma statistic qp set link "$dev/1" auto type on
	traffic
	rdma statistic qp set link "$dev/1" auto off
	[ "$(counter port_xmit_data)" -ge $((before + 100 * 65536 / 4)) ]
	[ "$(counter port_xmit_data)" -eq $(($(stat_of tx_bytes) / 4)) ]
}

# Files that drivers of adapters have.
names_its_kind() {
	local file
	for file in hca_type board_id; do
		[ "$(<"/sys/class/infiniband/$dev/$file")" = weft ] || fail "$file"
	done
}

rate_is() { [ "$(cat "/sys/class/infiniband/$1/ports/1/rate")" = "$2" ]; }

rates_are_true_and_silent() {
	ip link add wv0 type veth peer name wv1
	ip link add link wd0 name wd0.7 type vlan id 7
	rdma link add weft1 type weft netdev wv0
	rdma link add weft2 type weft netdev wd0.7
	for _ in 1 2 3; do
		rate_is "$dev" '2.5 Gb/sec (1X SDR)'
		rate_is weft1 '10 Gb/sec (1X FDR10)'
		rate_is weft2 '2.5 Gb/sec (1X SDR)'
	done
	kernel_says >"$tmp/log"
	assert_no_match 'speed is unknown' "$tmp/log"
	ip link delete wd0.7
	ip link delete wv0
}

# A tap says what it was told. The rate is the first one that is not less.
speeds_have_rates() {
	local mbps rate
	command -v ethtool >/dev/null || skip "there is no ethtool"
	[ -c /dev/net/tun ] || modprobe -q tun || skip "this kernel has no tun"
	ip tuntap add wt0 mode tap
	rdma link add weft1 type weft netdev wt0
	while read -r mbps rate; do
		ethtool -s wt0 speed "$mbps" duplex full
		rate_is weft1 "$rate" || fail "$mbps: $(cat /sys/class/infiniband/weft1/ports/1/rate)"
	done <<-'END'
		10 2.5 Gb/sec (1X SDR)
		1000 2.5 Gb/sec (1X SDR)
		2500 2.5 Gb/sec (1X SDR)
		5000 5 Gb/sec (1X DDR)
		10000 10 Gb/sec (1X FDR10)
		20000 20 Gb/sec (4X DDR)
		25000 25 Gb/sec (1X EDR)
		40000 40 Gb/sec (4X FDR10)
		50000 50 Gb/sec (2X EDR)
		56000 56 Gb/sec (4X FDR)
		100000 100 Gb/sec (4X EDR)
		200000 200 Gb/sec (4X HDR)
		400000 400 Gb/sec (4X NDR)
		800000 800 Gb/sec (8X NDR)
	END
	ip link delete wt0
	# A bridge is as fast as its ports: without one it says that it does not know.
	modprobe -q bridge
	ip link add wbr1 type bridge
	ip link set wbr1 up
	[ "$(cat /sys/class/net/wbr1/speed)" = -1 ] || fail "the bridge has a speed"
	rdma link add weft1 type weft netdev wbr1
	rate_is weft1 '2.5 Gb/sec (1X SDR)' || fail "$(cat /sys/class/infiniband/weft1/ports/1/rate)"
	ip link delete wbr1
}

# scrape FILE: what node_exporter tells, when it answers.
scrape() {
	python3 - >"$1" <<-'END'
		import urllib.request
		with urllib.request.urlopen("http://127.0.0.1:9100/metrics") as page:
		    print(page.read().decode())
	END
}

# One device without a file that it expects, and it shows none of the host's.
node_exporter_shows_it() {
	local sent
	[ -x "${NODE_EXPORTER:-}" ] || skip "NODE_EXPORTER names no program"
	start 90 "$tmp/exporter.log" "$NODE_EXPORTER" --collector.disable-defaults \
		--collector.infiniband --web.listen-address=127.0.0.1:9100
	until_true 30 scrape "$tmp/metrics" || fail "$(cat "$tmp/exporter.log")"
	kill "$started"
	expect 'collector_success\{collector="infiniband"\} 1' "$tmp/metrics" 1
	expect "info\\{board_id=\"weft\",device=\"$dev\",.*hca_type=\"weft\"" "$tmp/metrics" 1
	sent=$(($(counter port_xmit_data) * 4))
	[ "$sent" -gt 0 ]
	[ "$(awk -v dev="device=\"$dev\"" '/^node_infiniband_port_data_transmitted/ &&
		index($1, dev) { printf "%d", $2 }' "$tmp/metrics")" -eq "$sent" ]
}

# top_begins OPTION...: a live view that is written to a file, its process id in $top.
top_begins() {
	start 120 "$tmp/top.log" "$here/../weft-top" -d "$dev" -b -i 0.2 "$@"
	top=$started
	top_looks 1
}

# top_looks N: wait until it has looked so often, from now on.
top_looks() {
	local end=$((SECONDS + 30 * slow)) want=$(($(grep -c ^device "$tmp/top.log") + $1))
	until [ "$(grep -c ^device "$tmp/top.log")" -ge "$want" ]; do
		kill -0 "$top" || fail "$(cat "$tmp/top.log")"
		[ "$SECONDS" -lt "$end" ] || fail "$(cat "$tmp/top.log")"
		sleep_nofork 0.1
	done
}

top_ends() {
	top_looks 2
	kill "$top"
	wait "$top" || fail "$(cat "$tmp/top.log")"
}

# top_sum LINES NAME: of all looks.
top_sum() {
	awk -v name="$2=" -v lines="^$1 " '$0 ~ lines {
		for (i = 1; i <= NF; i++) if (index($i, name) == 1) sum += substr($i, length(name) + 1)
	} END { printf "%d", sum }' "$tmp/top.log"
}

top_shows_the_device() {
	local before name
	before=$(stat_of tx_bytes)
	top_begins
	traffic
	top_ends
	for name in tx_bytes rx_bytes; do
		[ "$(top_sum "device $dev" "$name")" -eq $(($(stat_of "$name") - before)) ]
	done
	[ "$(top_sum "device $dev" tx_bytes)" -ge $((100 * 65536)) ]
}

# counter_of QPN NAME: what its own counter says.
counter_of() {
	rdma -j statistic qp show link "$dev/1" | python3 -c '
import json, sys
qpn, name = int(sys.argv[1]), sys.argv[2]
print([row[name] for row in json.load(sys.stdin) if row["lqpn"] == [qpn]][0])' "$@"
}

# What it shows of a queue pair is what the counter has that it has bound; the counters go with it.
top_shows_queue_pairs() {
	local qpn name
	serve 7174 120 rping -s -a "$saddr4" -S 4096 -C 100000000
	start 120 "$tmp/client.log" rping -c -a "$saddr4" -S 4096 -C 100000000
	until rdma resource show qp link "$dev/1" | grep -q 'state RTS'; do sleep_nofork 0.1; done
	top_begins -q
	top_looks 5
	pkill -STOP -x rping
	sleep_nofork 1
	top_looks 2
	for qpn in $(rdma resource show qp link "$dev/1" | sed -n 's/.*lqpn \([0-9]*\) .*/\1/p'); do
		for name in tx_bytes rx_bytes tx_messages rx_messages; do
			[ "$(counter_of "$qpn" "$name")" -gt 0 ]
			[ "$(top_sum "qp $dev lqpn=$qpn" "$name")" -eq "$(counter_of "$qpn" "$name")" ]
		done
	done
	[ -n "$qpn" ]
	top_ends
	[ -z "$(rdma statistic qp show link "$dev/1")" ] || fail "counters are left"
	pkill -KILL -x rping
}

# Without -q: the bytes that TCP was given, which rdma shows too.
top_shows_tcp_bytes() {
	local qpn='' number sent
	top_begins
	serve 7174 120 rping -s -a "$saddr4" -S 4096 -C 100000000
	start 120 "$tmp/client.log" rping -c -a "$saddr4" -S 4096 -C 100000000
	until rdma resource show qp link "$dev/1" | grep -q 'state RTS'; do sleep_nofork 0.1; done
	top_looks 5
	pkill -STOP -x rping
	sleep_nofork 1
	top_looks 2
	while read -r number sent; do
		qpn=$number
		[ "$sent" -gt 4096 ]
		[ "$(top_sum "qp $dev lqpn=$qpn" tx_bytes)" -eq "$sent" ]
	done < <(rdma -j -dd resource show qp link "$dev/1" | python3 -c '
import json, sys
for row in json.load(sys.stdin):
    print(row["lqpn"], row["drv_tx_sent_bytes"])')
	[ -n "$qpn" ]
	top_ends
	pkill -KILL -x rping
}

topology_dummy
modprobe -q veth
modprobe -q 8021q
t "every counter is a number" every_counter_is_a_number
t "data in units of four bytes, packets" units_of_four_bytes
t "with what QPs count apart" counted_apart
t "weft-top shows what the device sends and receives" top_shows_the_device
t "weft-top shows what each queue pair moves" top_shows_queue_pairs
t "weft-top shows what TCP was given" top_shows_tcp_bytes
t "the kind of device is in its files" names_its_kind
t "node_exporter shows the device" node_exporter_shows_it
t "rates are the netdev's, and nothing is logged" rates_are_true_and_silent
t "each speed of the netdev has its rate" speeds_have_rates
finish
