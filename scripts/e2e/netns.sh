#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Network namespaces: where sockets are, devices that move, namespaces that end
# under load.
. "$(dirname "$0")/lib.sh"

suite netns <<'TOPOLOGY'
  wa: va (10.77.0.1) weft on it --- veth --- wb: vb (10.77.0.2) weft on it
TOPOLOGY
only_plugins "$driver"

# fresh MODE: the topology again, in that mode.
fresh() {
	ip netns delete wc 2>/dev/null || true
	cleanup || true
	netns_mode "$1"
	topology_veth || true
	[ "$1" = shared ] || give
}

# A new device is in the first namespace, wherever its netdev is: the operator
# gives it away.
give() {
	rdma dev set "${driver}a" netns wa
	rdma dev set "${driver}b" netns wb
}

before_test() { fresh shared; }

# In exclusive mode a device is seen in its own namespace only.
idle_everywhere() {
	local ns
	idle || return 1
	for ns in wa wb; do
		! ip netns pids "$ns" >/dev/null 2>&1 ||
			(rdma() { ip netns exec "$ns" rdma "$@"; }; idle) || return 1
	done
}

after_test() {
	idle_everywhere || return 1
	new_splats
}

# socket_in NAMESPACE PORT: is there a TCP socket with this port?
socket_in() { ip netns exec "$1" cat /proc/net/tcp | grep -qE ":$(printf %04X "$2") "; }

sockets_live_where_the_netdev_is() {
	serve 7174 60 rping -s -a "$saddr4" -C 200000
	start 60 "$tmp/client.log" "${cli[@]}" rping -c -a "$saddr4" -C 200000
	for _ in $(seq 50); do
		socket_in wb 7174 && break
		sleep 0.1
	done
	socket_in wa 7174 || fail "no socket in the server's namespace"
	socket_in wb 7174 || fail "no socket in the client's namespace"
	# Not one that an earlier connection has left in TIME_WAIT.
	if grep -E ":$(printf %04X 7174) .* (01|0A) " /proc/net/tcp; then
		fail "a socket in the first namespace"
	fi
}

# In shared mode rdma_cm has every device listen for a wildcard, also that of wb.
wildcard_listens_beside_others() {
	start 60 "$tmp/other" "${cli[@]}" python3 -c '
import socket
listener = socket.create_server(("", 7174))
print("listens", flush=True)
listener.accept()'
	for _ in $(seq 50); do grep -q listens "$tmp/other" && break; sleep 0.1; done
	serve 7174 60 rping -s -a 0.0.0.0 -v -C 3
	client 60 rping -c -a "$saddr4" -v -C 3
	wait_server
	# In one's own namespace it is an error as ever.
	if limit 20 "${cli[@]}" rping -s -a 0.0.0.0 -v -C 3; then fail "two listen"; fi
}

# rdma_cm has each device listen for it, wherever that is: the loopback of another namespace is
# another one.
loopback_listens_at_home() {
	make_link "${driver}l" lo "${cli[@]}"
	make_link "${driver}L" lo "${srv[@]}"
	# Neither has a MAC to be told apart by.
	[ "$(cd /sys/class/infiniband && cat "${driver}"[lL]/node_guid | sort -u | wc -l)" -eq 2 ] ||
		fail "they have the same GUID"
	serve 7174 60 rping -s -a 127.0.0.1
	if socket_in wb 7174; then fail "a socket in the other namespace"; fi
	stop_server
}

ping_between() {
	serve 7174 60 rping -s -a "$saddr4" -v -C 3
	client 60 rping -c -a "$saddr4" -v -C 3
	wait_server
}

shared_devices_are_seen_by_all() {
	"${srv[@]}" rdma link | tee "$tmp/links"
	expect "^link ${driver}[ab]/1" "$tmp/links" 2
}

exclusive() {
	fresh exclusive
	"${srv[@]}" rdma link | tee "$tmp/links"
	expect "^link ${driver}a/1" "$tmp/links" 1
	assert_no_match "^link ${driver}b/1" "$tmp/links"
	"${srv[@]}" ibv_devices | tee "$tmp/devices"
	assert_no_match "${driver}b" "$tmp/devices"
	ping_between
}

# Back in the namespace of its netdev it works as before.
device_moves() {
	fresh exclusive
	ip netns add wc
	"${srv[@]}" rdma dev set "${driver}a" netns wc
	ip netns exec wc rdma dev | tee "$tmp/there"
	expect "${driver}a" "$tmp/there" 1
	"${srv[@]}" rdma dev | tee "$tmp/here"
	assert_no_match "${driver}a" "$tmp/here"
	ip netns exec wc rdma dev set "${driver}a" netns wa
	ping_between
	ip netns delete wc
}

moved_in_use() {
	fresh exclusive
	ip netns add wc
	start 60 "$tmp/user" "${srv[@]}" "$tmp/removed" "$saddr4"
	local user=$started rc=0
	for _ in $(seq 100); do
		grep -q '^ready' "$tmp/user" && break
		sleep 0.1
	done
	limit 20 "${srv[@]}" rdma dev set "${driver}a" netns wc
	wait "$user" || rc=$?
	cat "$tmp/user"
	[ "$rc" -eq 0 ] || fail "its user ended with status $rc"
	ip netns delete wc
}

# The netdev goes to another namespace: for the link that is its end.
netdev_moves() {
	ip netns add wc
	limit 20 ip -n wa link set va netns wc
	for _ in $(seq 50); do rdma link | grep -q "^link ${driver}a/" || break; sleep 0.1; done
	rdma link | tee "$tmp/links"
	assert_no_match "^link ${driver}a/" "$tmp/links"
	ip netns delete wc
}

# gone NAME: neither devices nor namespace are left behind by something hidden.
# (In exclusive mode the one of wb can be seen only there.)
gone() {
	local links
	links=$(rdma link; ip netns exec wb rdma link 2>/dev/null) || true
	! grep -qE "^link ${driver}[ab]/" <<<"$links"
}

# deleted_under_load MODE
deleted_under_load() {
	fresh "$1"
	serve 7174 60 rping -s -a "$saddr4" -C 1000000
	start 60 "$tmp/client.log" "${cli[@]}" rping -c -a "$saddr4" -C 1000000
	local client=$started
	sleep 1
	ip netns delete wa
	# The name is gone; the namespace lives as long as a process is in it.
	sleep 1
	kill -0 "$client" || fail "the client ended with the name"
	pkill -KILL -x rping
	wait 2>/dev/null || true
	local end=$((SECONDS + 20 * slow))
	until gone; do
		[ "$SECONDS" -lt "$end" ] || { rdma link; fail "the namespace's device stays"; }
		sleep 0.2
	done
}

# deleted_while_sockets_linger MODE
deleted_while_sockets_linger() {
	fresh "$1"
	serve 7174 60 rping -s -a "$saddr4" -C 1000000
	start 60 "$tmp/client.log" "${cli[@]}" rping -c -a "$saddr4" -C 1000000
	sleep 1
	ip -n wa link set va down
	pkill -KILL -x rping
	wait 2>/dev/null || true
	ip netns delete wa
	ip netns delete wb
	# TCP keeps sending to a peer that does not answer, and then gives up.
	local end=$((SECONDS + 20 * slow))
	until gone; do
		[ "$SECONDS" -lt "$end" ] && sleep 0.5 && continue
		rdma link
		fail "a dead peer keeps the namespace"
	done
}

# deleted_after_use NAMESPACE: where an attribute was tried, and QPs were connected by hand. The
# other one stays: without it this one's netdev would go as well.
deleted_after_use() {
	local name
	fresh shared
	for name in a b; do
		echo reno >"/sys/class/infiniband/$driver$name/params/tcp_congestion_control"
	done
	serve 18515 60 ibv_rc_pingpong -d "${driver}a" -g 1 -n 10
	client 60 ibv_rc_pingpong -d "${driver}b" -g 1 -n 10 "$saddr4"
	wait_server
	ip netns delete "$1"
	until_true 20 gone || { rdma link; fail "a device stays"; }
}

compile removed >/dev/null
t "sockets live in the namespace of the netdev" sockets_live_where_the_netdev_is
t "shared mode: devices are seen everywhere" shared_devices_are_seen_by_all
t "shared mode: a wildcard listens though another namespace has the port" \
	wildcard_listens_beside_others
t "shared mode: an address of the loopback is that of its namespace" loopback_listens_at_home
t "exclusive mode: each namespace has its own, and they communicate" exclusive
t "rdma dev set netns, there and back" device_moves
t "rdma dev set netns moves a device that is in use" moved_in_use
t "the netdev moves: its link ends" netdev_moves
t "shared mode: the namespace of the end that connects is deleted after use" deleted_after_use wa
t "shared mode: the namespace of the end that accepts is deleted after use" deleted_after_use wb
for netns in shared exclusive; do
	t "$netns mode: a namespace is deleted under load" deleted_under_load "$netns"
	t "$netns mode: a namespace is deleted while its connections are cut" \
		deleted_while_sockets_linger "$netns"
done
cleanup
netns_mode shared
finish
