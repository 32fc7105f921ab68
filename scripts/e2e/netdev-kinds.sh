#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Each kind of network device that carries TCP carries a link: rping compares the data over IPv4
# and IPv6, and ib_send_bw moves messages of many segments.
. "$(dirname "$0")/lib.sh"

suite netdev-kinds <<'TOPOLOGY'
  wa: ka (10.88.0.1, fd88::1), of a kind --- on va --- veth --- vb --- wb: kb (10.88.0.2, fd88::2)
TOPOLOGY
only_plugins "$driver"

# KIND|module that this kernel may lack|what "ip link add" gets at the end on top of @below, whose
# peer has the address @remote; or nothing, when a function make_KIND does it.
kinds() {
	cat <<'KINDS'
lo||
veth||
vlan|8021q|link @below type vlan id 88
bridge|bridge|
bond|bonding|
macvlan|macvlan|link @below type macvlan mode bridge
ipvlan|ipvlan|link @below type ipvlan mode l2
vxlan|vxlan|type vxlan id 88 dstport 4789 dev @below remote @remote
geneve|geneve|type geneve id 88 remote @remote
ipip|ipip|type ipip remote @remote local @local
sit|sit|type sit remote @remote local @local
gre|ip_gre|type gre remote @remote local @local
tun|tun|
wireguard|wireguard|
KINDS
}

# from_table WORDS: both ends by "ip link add".
from_table() {
	local words
	words=${1//@below/va} words=${words//@remote/$peer4} words=${words//@local/$addr4}
	# shellcheck disable=SC2086
	ip -n wa link add ka $words
	words=${1//@below/vb} words=${words//@remote/$addr4} words=${words//@local/$peer4}
	# shellcheck disable=SC2086
	ip -n wb link add kb $words
}

make_veth() { ip link add ka netns wa type veth peer name kb netns wb; }

# A veth pair of their own, with an end below each.
ports() {
	ip link add pa netns wa type veth peer name pb netns wb
	ip -n wa link set pa master ka
	ip -n wb link set pb master kb
	ip -n wa link set pa up
	ip -n wb link set pb up
}

make_bridge() {
	ip -n wa link add ka type bridge
	ip -n wb link add kb type bridge
	ports
}

make_bond() {
	ip -n wa link add ka type bond mode active-backup miimon 50
	ip -n wb link add kb type bond mode active-backup miimon 50
	ports
}

# A process carries the packets, as with any VPN in user space.
make_tun() {
	ip netns exec wa ip tuntap add ka mode tun
	ip netns exec wb ip tuntap add kb mode tun
	start 120 "$tmp/forward" python3 "$here/progs/tun_forward.py" wa ka wb kb
	forwarder=$started
	until_said "$tmp/forward" ready "$forwarder"
}

# wireguard_end NAMESPACE NETDEV KEY PEER_KEY PEER_ADDRESS
wireguard_end() {
	ip -n "$1" link add "$2" type wireguard
	ip netns exec "$1" wg set "$2" listen-port 51820 private-key "$3" \
		peer "$(wg pubkey <"$4")" allowed-ips 0.0.0.0/0,::/0 endpoint "$5:51820"
}

make_wireguard() {
	wg genkey >"$tmp/key.a"
	wg genkey >"$tmp/key.b"
	wireguard_end wa ka "$tmp/key.a" "$tmp/key.b" "$peer4"
	wireguard_end wb kb "$tmp/key.b" "$tmp/key.a" "$addr4"
}

remove() {
	local device
	for device in "${driver}ka" "${driver}kb" "${driver}lo"; do
		! rdma link show "$device/1" >/dev/null 2>&1 || rdma link delete "$device"
	done
	ip -n wa link delete ka 2>/dev/null || true
	ip -n wb link delete kb 2>/dev/null || true
	ip -n wa link delete pa 2>/dev/null || true
	[ -z "$forwarder" ] || kill "$forwarder" 2>/dev/null || true
	forwarder=
}

# A bridge or bond whose ports have just come up drops what comes first.
reachable() {
	local try
	for ((try = 0; try < 20 * slow; try++)); do
		! "${cli[@]}" ping -c 1 -W 1 "$1" >"$tmp/ping" 2>&1 || return 0
		sleep_nofork 0.1
	done
	cat "$tmp/ping"
	fail "TCP/IP does not reach $1"
}

# pings ADDRESS: rping says by its status whether the data were the same.
pings() {
	reachable "$1"
	serve 7174 60 rping -s -a "$1" -V -C 5 -S 30000
	client 60 rping -c -a "$1" -V -C 5 -S 30000
	wait_server
	assert_no_match 'error|mismatch|corrupt|fail' "$tmp/client.log"
}

messages() {
	perftest 60 ib_send_bw "$1" "$2" -s 65536 -n 100
	expect '^ *65536 +100 ' "$tmp/client.log" 1
}

# tells_apart NETDEV KIND: these have no MAC, or one that other network devices have as well.
tells_apart() {
	local due=
	case $2 in
	lo | vlan | bridge | ipvlan | ipip | sit | gre | tun | wireguard) due=apart ;;
	esac
	check_gid_0 "$driver$1" "$("${srv[@]}" cat "/sys/class/net/$1/address")" "$due"
}

carries() {
	local kind=$1 module=$2 words=$3
	[ -z "$module" ] || modprobe -q "$module" || skip "this kernel has no $module"
	if [ "$kind" = lo ]; then
		make_link "${driver}lo" lo ip netns exec wa
		tells_apart lo "$kind"
		saddr4=127.0.0.1 cli=("${srv[@]}")
		pings 127.0.0.1
		pings ::1
		messages "${driver}lo" "${driver}lo"
		return
	fi
	if [ -n "$words" ]; then from_table "$words"; else "make_$kind"; fi
	netns_end wa ka 10.88.0.1 fd88::1 "${driver}ka" "$driver"
	tells_apart ka "$kind"
	netns_end wb kb 10.88.0.2 fd88::2 "${driver}kb" "$driver"
	saddr4=10.88.0.1
	[ "$kind" = ipip ] || pings fd88::1 # it carries IPv4 only
	[ "$kind" != sit ] || return 0      # it carries IPv6 only
	pings 10.88.0.1
	messages "${driver}ka" "${driver}kb"
}

forwarder=
before_test() { remove; }

topology_veth
while IFS='|' read -r -u 9 kind module words; do
	t "$kind carries a link" carries "$kind" "$module" "$words"
done 9< <(kinds)
remove
finish
