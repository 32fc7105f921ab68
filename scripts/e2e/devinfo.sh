#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What the device reports: every field is there, and right.
. "$(dirname "$0")/lib.sh"

suite devinfo <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

info=$tmp/devinfo
read_info() { ibv_devinfo -v -d "$dev" >"$info"; }

# value FIELD: what ibv_devinfo prints behind "FIELD:".
value() { sed -nE "s/^[[:space:]]*$1:[[:space:]]*//p" "$info" | head -n 1; }

is() {
	[ "$(value "$1")" = "$2" ] || fail "$1 is '$(value "$1")', expected '$2'"
}

at_least() {
	local got
	got=$(value "$1" | awk '{ print $1 }')
	[ $((got)) -ge "$2" ] || fail "$1 is '$got', expected at least $2"
}

mac_hex() { tr -d : </sys/class/net/wd0/address; }

names_itself() {
	is vendor_id 0x776674
	is vendor_part_id 1
	is hw_ver 0x0
	is fw_ver "$(cat "$here/../../VERSION").0"
}

complete() {
	limit 30 ibv_devinfo -v -d "$dev" >"$info"
	cat "$info"
	is transport "iWARP (1)"
	is phys_port_cnt 1
	is link_layer Ethernet
	is state "PORT_ACTIVE (4)"
	at_least vendor_id 1
	value fw_ver | grep -q . || fail "no fw_ver"
	[ "$driver" != weft ] || names_itself
	# The plugin's word, and the module's.
	[ "$(value fw_ver)" = "$(<"/sys/class/infiniband/$dev/fw_ver")" ] || fail "fw_ver in sysfs"
}

guids() {
	read_info
	for field in node_guid sys_image_guid; do
		value "$field" | grep -qE '^[0-9a-f]{4}(:[0-9a-f]{4}){3}$' ||
			fail "$field is '$(value "$field")'"
		[ "$(value "$field")" != 0000:0000:0000:0000 ] || fail "$field is zero"
	done
	[ "$(value sys_image_guid)" = "$(value node_guid)" ] || fail "they differ"
	[ "$driver" != weft ] || guid_is_marked
}

# "wf" stands between the halves of the MAC, whose bit for local ones is turned: other drivers have
# fffe there.
guid_is_marked() {
	local mac want
	mac=$(mac_hex)
	want=$(printf '%02x' $((16#${mac:0:2} ^ 2)))${mac:2:4}7766${mac:6}
	[ "$(value node_guid | tr -d :)" = "$want" ] || fail "it is $(value node_guid), not $want"
}

# The connection manager finds an iWARP device by this value alone.
gid_is_the_mac() {
	local want gid
	want=$(mac_hex)00000000000000000000
	gid=$(tr -d : <"/sys/class/infiniband/$dev/ports/1/gids/0")
	[ "$gid" = "$want" ] || fail "GID 0 is $gid, expected $want"
}

limits() {
	read_info
	at_least max_qp 64
	at_least max_qp_wr 1024
	at_least max_sge 4
	at_least max_sge_rd 1
	at_least max_cq 64
	at_least max_cqe 1024
	at_least max_mr 64
	at_least max_pd 64
	at_least max_qp_rd_atom 1
	at_least max_qp_init_rd_atom 1
	is max_msg_sz 0xffffffff
	is max_mcast_grp 0
	is max_raw_ipv6_qp 0
	is max_ah 0
}

mtu_follows_the_netdev() {
	read_info
	is active_mtu "1024 (3)"
	# A dummy names no largest MTU. siw tells the current one.
	[ "$driver" != weft ] || is max_mtu "4096 (5)"
	ip link set wd0 mtu 9000
	read_info
	is active_mtu "4096 (5)"
	ip link set wd0 mtu 1500
}

# A dummy tells no speed: the slowest there is stands for that.
speed_is_known() {
	local rate=/sys/class/infiniband/$dev/ports/1/rate
	read_info
	[ "$driver" != weft ] || [ "$(<"$rate")" = '2.5 Gb/sec (1X SDR)' ] ||
		fail "rate is '$(<"$rate")'"
	value active_width | grep -qE '^(1|2|4|8|12)X' || fail "width: $(value active_width)"
	value active_speed | grep -qE '^[0-9.]+ Gbps' || fail "speed: $(value active_speed)"
}

port_follows_the_netdev() {
	local phys_state=/sys/class/infiniband/$dev/ports/1/phys_state
	watch_events "$dev"
	ip link set wd0 down
	sleep 0.5
	read_info
	is state "PORT_DOWN (1)"
	[ "$(<"$phys_state")" = '3: Disabled' ] || fail "phys_state is '$(<"$phys_state")'"
	ip link set wd0 up
	sleep 0.5
	read_info
	is state "PORT_ACTIVE (4)"
	[ "$(<"$phys_state")" = '5: LinkUp' ] || fail "phys_state is '$(<"$phys_state")'"
	# Addresses go with "down" for IPv6.
	ip addr add "$saddr6/64" dev wd0 nodad
	cat "$tmp/events"
	expect 'PORT_ERR' "$tmp/events" 1
	expect 'PORT_ACTIVE' "$tmp/events" 1
}

# As rdma-ndd does it. One that fills its field is shown without what follows the field.
node_description_is_set() {
	local file=/sys/class/infiniband/$dev/node_desc long
	[ "$driver" != weft ] || [ "$(<"$file")" = 'weft software RNIC' ] ||
		fail "at first it is '$(<"$file")'"
	printf 'a host, %s' "$dev" >"$file"
	[ "$(<"$file")" = "a host, $dev" ] || fail "it is '$(<"$file")'"
	long=$(printf '%064d' 7)
	printf '%sand more' "$long" >"$file"
	[ "$(<"$file")" = "$long" ] || fail "a long one is '$(<"$file")'"
	printf 'short' >"$file"
	[ "$(<"$file")" = short ] || fail "it is '$(<"$file")' now"
}

rdma_dev_shows_it() {
	rdma dev show "$dev" | tee "$tmp/out"
	expect "^[0-9]+: $dev: node_type rnic " "$tmp/out" 1
	expect 'node_guid [0-9a-f:]+ sys_image_guid [0-9a-f:]+' "$tmp/out"
	rdma link show "$dev/1" | tee "$tmp/out"
	expect "^link $dev/1 state ACTIVE physical_state LINK_UP netdev wd0" "$tmp/out" 1
}

# Objects of a living connection, then none.
rdma_resource_shows_objects() {
	serve 7174 120 rping -s -P -a "$saddr4"
	start 100 "$tmp/client.log" rping -c -a "$saddr4" -C 1000000
	for _ in $(seq 100); do
		rdma resource show qp >"$tmp/qp"
		[ "$(grep -c 'state RTS' "$tmp/qp")" -ge 2 ] && break
		sleep 0.2
	done
	cat "$tmp/qp"
	expect "link $dev/1 lqpn [0-9]+ .*type RC state RTS .*comm rping" "$tmp/qp" 2
	rdma resource show cm_id | tee "$tmp/cm"
	expect "state LISTEN ps TCP pid [0-9]+ comm rping src-addr $saddr4:7174" "$tmp/cm" 1
	expect "state CONNECT ps TCP .*dst-addr $saddr4:7174" "$tmp/cm" 1
	rdma resource show mr dev "$dev" | tee "$tmp/mr"
	expect 'comm rping' "$tmp/mr"
	rdma resource show cq dev "$dev" | tee "$tmp/cq"
	expect 'comm rping' "$tmp/cq" 2
	rdma resource show pd dev "$dev" | tee "$tmp/pd"
	expect 'comm rping' "$tmp/pd"
}

counters() { rdma statistic show link "$dev/1" | tr ' ' '\n' | grep -A1 -x "$1" | tail -n 1; }

# As many in as out; but what came before may have been killed with a message on its way.
counters_count() {
	local sent received
	sent=$(counters tx_messages)
	received=$(counters rx_messages)
	serve 7174 60 rping -s -a "$saddr4" -C 5
	client 60 rping -c -a "$saddr4" -C 5
	wait_server
	rdma statistic show link "$dev/1"
	# 5 rounds: two Sends each way, one Read, one Write and what goes with it.
	sent=$(($(counters tx_messages) - sent))
	received=$(($(counters rx_messages) - received))
	[ "$sent" -ge 30 ] || fail "tx_messages hardly moved"
	[ "$received" = "$sent" ] || fail "rx and tx differ: $received and $sent"
	[ "$(counters connections_active)" -ge 1 ] || fail "connections_active"
	[ "$(counters rx_crc_errors)" = 0 ] || fail "rx_crc_errors"
}

topology_dummy
t "ibv_devinfo -v is complete" complete
t "GUIDs are there" guids
t "GID 0 is the MAC" gid_is_the_mac
t "limits are stated" limits
t "active MTU follows the netdev" mtu_follows_the_netdev
t "width and speed are known" speed_is_known
t "port state follows the netdev, with events" port_follows_the_netdev
t "the node description is what was written" node_description_is_set
t "rdma dev and rdma link show the device" rdma_dev_shows_it
t "rdma resource shows the objects of a connection" rdma_resource_shows_objects
t "rdma statistic counts messages" counters_count
finish
