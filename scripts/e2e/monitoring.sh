#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What monitoring programs read of every RDMA device: counters in InfiniBand's units, and rate.
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
	local end=$((SECONDS + 30 * slow)) sent
	[ -x "${NODE_EXPORTER:-}" ] || skip "NODE_EXPORTER names no program"
	start 90 "$tmp/exporter.log" "$NODE_EXPORTER" --collector.disable-defaults \
		--collector.infiniband --web.listen-address=127.0.0.1:9100
	until scrape "$tmp/metrics" 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || fail "$(cat "$tmp/exporter.log")"
		sleep_nofork 0.2
	done
	kill "$started"
	expect 'collector_success\{collector="infiniband"\} 1' "$tmp/metrics" 1
	expect "info\\{board_id=\"weft\",device=\"$dev\",.*hca_type=\"weft\"" "$tmp/metrics" 1
	sent=$(($(counter port_xmit_data) * 4))
	[ "$sent" -gt 0 ]
	[ "$(awk -v dev="device=\"$dev\"" '/^node_infiniband_port_data_transmitted/ &&
		index($1, dev) { printf "%d", $2 }' "$tmp/metrics")" -eq "$sent" ]
}

topology_dummy
modprobe -q veth
modprobe -q 8021q
t "every counter is a number" every_counter_is_a_number
t "data in units of four bytes, packets" units_of_four_bytes
t "with what QPs count apart" counted_apart
t "node_exporter shows the device" node_exporter_shows_it
t "rates are the netdev's, and nothing is logged" rates_are_true_and_silent
finish
