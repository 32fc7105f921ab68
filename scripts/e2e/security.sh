#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What Documentation/security.md says about other parts of the kernel: WireGuard as on the
# page, netfilter, BPF programs of cgroups, Landlock, memory cgroups. On Debian's kernels.
. "$(dirname "$0")/lib.sh"

suite security <<'TOPOLOGY'
  wa: va (10.77.0.1) weft on it --- veth --- wb: vb (10.77.0.2) weft on it
  and, as the recipe has it, wg0 (10.99.0.1) weft on it --- WireGuard --- wg0 (10.99.0.2)
TOPOLOGY

page=$here/../../Documentation/security.md
# Not below /sys: ip mounts another one for each namespace.
group=/run/weft-security/group
# shellcheck disable=SC2016  # for that shell
in_group=(bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"')

# recipe WORDS: the commands of the page between the comment with these words and the end
# of the block.
recipe() {
	sed -n "/^<!-- recipe: $1 -->\$/,/^<!-- end -->\$/s/^    //p" "$page"
}

# follow NAMESPACE WORDS [NAME=VALUE]...: as an administrator would, in a directory of the host.
follow() {
	local ns=$1 words=$2
	shift 2
	recipe "$words" >"$tmp/$words.sh"
	[ -s "$tmp/$words.sh" ] || fail "the page has no recipe called $words"
	mkdir -p "$tmp/$ns"
	(cd "$tmp/$ns" && limit 20 ip netns exec "$ns" env "$@" sh -eux "$tmp/$words.sh")
}

# record NAMESPACE NETDEV FILE
record() {
	ip netns exec "$1" timeout 120 tcpdump -i "$2" -s 0 --immediate-mode -U -w "$3" \
		>"$3.log" 2>&1 &
	for _ in $(seq $((100 * slow))); do
		grep -q 'listening on' "$3.log" && return
		sleep_nofork 0.1
	done
	cat "$3.log"
	fail "no capture of $2"
}

end_records() {
	sleep_nofork 1
	pkill -INT -x tcpdump
	while pgrep -x tcpdump >/dev/null; do sleep_nofork 0.1; done
}

over_wireguard() {
	modprobe -q wireguard || skip "this kernel has no WireGuard"
	follow wa keys
	follow wb keys
	follow wa tunnel link="${driver}wga" own=10.99.0.1 peer=10.99.0.2 host="$peer4" \
		key="$(cat "$tmp/wb/public.key")"
	follow wb tunnel link="${driver}wgb" own=10.99.0.2 peer=10.99.0.1 host="$addr4" \
		key="$(cat "$tmp/wa/public.key")"
	record wa va "$tmp/outside"
	record wa wg0 "$tmp/inside"
	rping_pair 60 10.99.0.1 3 # data that are easy to find in a capture
	end_records
	grep -aq 'rdma-ping-' "$tmp/inside" || fail "the tunnel did not carry it"
	grep -aq 'MPA ID Req Frame' "$tmp/inside" || fail "the tunnel did not carry the start"
	! grep -aqE 'rdma-ping-|MPA ID' "$tmp/outside" || fail "it can be read on the wire"
	tcpdump -nr "$tmp/outside" 'udp port 51820' >"$tmp/packets" 2>"$tmp/reading"
	expect 'UDP' "$tmp/packets"
	only_from_the_tunnel
	ip -n wa link delete wg0
	ip -n wb link delete wg0
}

# past_the_tunnel: does a host beside it connect?
past_the_tunnel() {
	"${cli[@]}" python3 -c 'import socket
socket.create_connection(("10.99.0.1", 7174), timeout=3)'
}

only_from_the_tunnel() {
	serve 7174 60 rping -s -P -a 10.99.0.1
	ip -n wb addr del 10.99.0.2/24 dev wg0
	ip -n wb route add 10.99.0.1/32 via "$addr4" dev vb
	past_the_tunnel || fail "not even without the rule"
	follow wa rule own=10.99.0.1
	! past_the_tunnel || fail "it is reached without the tunnel"
	ip -n wb route del 10.99.0.1/32 via "$addr4" dev vb
	ip -n wb addr add 10.99.0.2/24 dev wg0
	client 60 rping -c -a 10.99.0.1 -v -C 3
	stop_server
	"${srv[@]}" nft delete table inet weft
}

# refused: the client gets no connection.
refused() {
	local rc=0
	limit 60 "${cli[@]}" rping -c -a "$saddr4" -v -C 3 >"$tmp/refused" 2>&1 || rc=$?
	cat "$tmp/refused"
	[ "$rc" -ne 0 ] || fail "it connected"
	[ "$rc" -ne 124 ] || fail "it hung"
}

# denied WHAT COMMAND...: that call fails with EPERM. (When rdma_connect() does, rping waits for
# its other thread, which has no reason to end.)
denied() {
	local what=$1 end=$((SECONDS + 30 * slow))
	shift
	start 60 "$tmp/denied" "$@"
	until grep -q "^$what: Operation not permitted" "$tmp/denied"; do
		[ "$SECONDS" -lt "$end" ] || { cat "$tmp/denied"; fail "$what did not fail with EPERM"; }
		sleep_nofork 0.2
	done
	kill "$started" 2>/dev/null || true
	wait "$started" || true
}

netfilter_sees_it() {
	serve 7174 100 rping -s -P -a "$saddr4"
	"${cli[@]}" nft -f - <<-'RULES'
		table ip weft {
			counter connections { }
			chain out {
				type filter hook output priority 0; policy accept;
				tcp dport 7174 tcp flags & (syn | ack) == syn counter name connections
			}
		}
	RULES
	client 30 rping -c -a "$saddr4" -v -C 3
	"${cli[@]}" nft list counter ip weft connections | tee "$tmp/counter"
	expect 'packets 1 ' "$tmp/counter" 1
	"${cli[@]}" nft add rule ip weft out tcp dport 7174 reject with tcp reset
	refused
	"${cli[@]}" nft delete table ip weft
	client 30 rping -c -a "$saddr4" -v -C 3
	stop_server
}

cgroups() {
	mkdir -p "${group%/*}"
	mountpoint -q "${group%/*}" || mount -t cgroup2 cgroup2 "${group%/*}"
	mkdir -p "$group"
}

# The sockets of a process that connects are in its cgroup, and so is a listener's.
bpf_sees_connect() {
	cgroups
	serve 7174 100 rping -s -P -a "$saddr4"
	denied rdma_connect "${cli[@]}" "$here/progs/confine.py" bpf connect4 "$group" rping -c \
		-a "$saddr4" -v -C 3
	client 30 rping -c -a "$saddr4" -v -C 3
	stop_server
	rmdir "$group"
}

bpf_sees_bind() {
	cgroups
	denied rdma_listen "${srv[@]}" "$here/progs/confine.py" bpf bind4 "$group" rping -s \
		-a "$saddr4" -v -C 3
	rmdir "$group"
}

# kept NAME: bytes of socket buffers that are charged to a memory cgroup.
kept() { awk '$1 == "sock" { print $2 }' "$group/$1/memory.stat"; }

# Its buffers are the initiator's, at this end; at the other end they are TCP's alone.
connections_are_charged() {
	local most end=$((SECONDS + 10 * slow))
	cgroups
	grep -qw memory "${group%/*}/cgroup.controllers" || skip "this kernel has no memory cgroups"
	echo +memory >"${group%/*}/cgroup.subtree_control"
	echo +memory >"$group/cgroup.subtree_control"
	mkdir "$group/asks" "$group/accepts"
	serve 7174 60 "${in_group[@]}" "$group/accepts" rping -s -a "$saddr4" -C 1000000 -S 60000
	start 60 "$tmp/client.log" "${cli[@]}" "${in_group[@]}" "$group/asks" rping -c \
		-a "$saddr4" -C 1000000 -S 60000
	until most=$(kept asks) && [ "$most" -gt 0 ]; do
		[ "$SECONDS" -lt "$end" ] || fail "nothing is charged"
		sleep_nofork 0.1
	done
	echo "$most bytes"
	[ "$(kept accepts)" -eq 0 ] || fail "what is accepted is charged"
	pkill -KILL -x rping
	wait "$server" "$started" 2>/dev/null || true
	idle
	rmdir "$group/asks" "$group/accepts" "$group"
}

# The page says what they do not see, so that no administrator relies on it.
landlock_does_not_see_it() {
	local rc=0
	serve 7174 60 rping -s -a "$saddr4" -v -C 3
	limit 60 "${cli[@]}" "$here/progs/confine.py" landlock rping -c -a "$saddr4" -v -C 3 \
		>"$tmp/client.log" 2>&1 || rc=$?
	cat "$tmp/client.log"
	[ "$rc" -ne 77 ] || { stop_server; skip "$(tail -n 1 "$tmp/client.log")"; }
	expect '^ping data: rdma-ping-' "$tmp/client.log" 3
	wait_server
}

topology_veth
t "weft over WireGuard, as the page describes" over_wireguard
t "netfilter counts and refuses connections" netfilter_sees_it
t "a BPF program of a cgroup refuses to connect" bpf_sees_connect
t "a BPF program of a cgroup refuses to listen" bpf_sees_bind
t "buffers of a connection are charged to the cgroup of its initiator" connections_are_charged
t "Landlock's rules for TCP do not apply" landlock_does_not_see_it
finish
