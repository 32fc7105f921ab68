#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# weft against siw, the kernel's own software iWARP, unmodified and in the variants
# of scripts/lib/siw.sh: Debian's programs, in both directions.
#
#   scripts/uml env SIW=$(scripts/kernel uml --siw-kinds) scripts/e2e/run interop
#   scripts/guest-pair                  # two guests, Debian's 6.1
#
# SIW is the directory with the kinds. REMOTE is set by scripts/guest-pair: where
# the other guest takes commands.
. "$(dirname "$0")/lib.sh"

siw_modules=${SIW:?the directory of the siw modules, from scripts/kernel --siw-kinds}
weft_dev=wefta siw_dev=siwb
weft_end=() siw_end=()
current_kind=

# --- topologies ------------------------------------------------------------------

# Both ends in one guest. Every end is alone in its network namespace with its RDMA
# device, or rdma_cm would listen on both, and siw open a socket in weft's namespace.
topology_interop_veth() {
	modprobe -q veth
	modprobe -q ipv6
	modprobe -q sch_netem
	rdma system set netns exclusive
	ip netns add wa
	ip link add va netns wa type veth peer name vb
	weft_end=(ip netns exec wa)
	netdevs=(va vb)
	afar=10ms
	netns_end wa va "$addr4" "$addr6" "$weft_dev" weft
	rdma dev set "$weft_dev" netns wa
	ip link set vb up
	ip addr add "$peer4/24" dev vb
}

# This guest has weft, the other one siw; their cards are joined by a cable.
topology_interop_guests() {
	local end=$((SECONDS + 60 * slow))
	siw_end=("$here/progs/remote.py" "$REMOTE")
	netdevs=(eth0 eth0)
	afar=100ms
	modprobe -q virtio_net
	modprobe -q ipv6
	ip link set eth0 up
	ip addr add "$addr4/24" dev eth0
	modprobe -q sch_netem
	rdma link add "$weft_dev" type weft netdev eth0
	until "${siw_end[@]}" true >/dev/null; do
		[ "$SECONDS" -lt "$end" ] || { echo "Bail out! no other guest"; exit 1; }
		sleep 1
	done
}

leave() {
	siw_unload
	"${weft_end[@]}" rdma link delete "$weft_dev"
	if [ -n "${REMOTE:-}" ]; then
		"${siw_end[@]}" --stop
	else
		ip netns delete wa
		rdma system set netns shared || true
	fi
}

mtu() {
	"${weft_end[@]}" ip link set "${netdevs[0]}" mtu "$1"
	"${siw_end[@]}" ip link set "${netdevs[1]}" mtu "$1"
}

siw_unload() {
	[ -n "$current_kind" ] || return 0
	"${siw_end[@]}" timeout 20 rdma link delete "$siw_dev"
	"${siw_end[@]}" timeout 20 rmmod siw
	current_kind=
}

# siw KIND: that siw takes the place of the one before.
siw() {
	local dep
	siw_unload
	for dep in libcrc32c $(modinfo -F depends "$siw_modules/$1/siw.ko" | tr ',' ' '); do
		"${siw_end[@]}" modprobe -q "$dep" || true
	done
	"${siw_end[@]}" insmod "$siw_modules/$1/siw.ko"
	"${siw_end[@]}" rdma link add "$siw_dev" type siw netdev "${netdevs[1]}"
	current_kind=$1
}

# policy NAME VALUE: of weft's device.
policy() {
	"${weft_end[@]}" sh -c "echo $2 >/sys/class/infiniband/$weft_dev/params/$1"
}

# cable LENGTH: how long what weft sends is under way to siw.
#
# As responder siw is deaf between sending its reply and taking over the socket, and does
# not look what came meanwhile. If that is all the initiator sends before it wants an
# answer (RTR and first Send), both wait forever, and when they give up, iw_cm stops
# siw's kernel (BUG in cm_close_handler). Slow CPUs make that gap wide, and emulated ones
# that share a processor more so: connections to siw are made from @afar.
cable() {
	"${weft_end[@]}" tc qdisc replace dev "${netdevs[0]}" root netem delay "$1"
}

# serves weft|siw: the responder of the tests that follow.
serves() {
	responder=$1
	if [ "$1" = weft ]; then
		cable 0
		srv=("${weft_end[@]}") cli=("${siw_end[@]}")
		saddr4=$addr4 sdev=$weft_dev cdev=$siw_dev
	else
		cable "$afar"
		srv=("${siw_end[@]}") cli=("${weft_end[@]}")
		saddr4=$peer4 sdev=$siw_dev cdev=$weft_dev
	fi
}

# weft's end; what siw still holds, its rmmod tells.
objects() {
	"${weft_end[@]}" rdma resource show 2>/dev/null | sed -nE "s/^[0-9]+: ($weft_dev): /\1 /p"
}

# --- programs --------------------------------------------------------------------

run_rping() { rping_pair 40 "$saddr4" 10 -V -S 4000; }

# rping between ends that cannot agree: both learn it, and soon.
run_refused() {
	serve 7174 20 rping -s -a "$saddr4" -v -C 1
	! client 15 rping -c -a "$saddr4" -v -C 1 || fail "it must not connect"
	stop_server
	assert_no_match '^ping data' "$tmp/client.log"
	expect 'connect error|REJECTED|CONNECT_ERROR|UNREACHABLE' "$tmp/client.log"
}

# The server is the last to send, then disconnects. siw then closes its socket in both
# directions while its TCP still has bytes to send; whatever the peer sends from there on
# (credits of rsockets, mostly) TCP answers with a reset, and what was not sent yet is
# lost, though siw has completed it (RFC 5040, 6.2, and TcpExtTCPAbortOnData). rrecv then
# returns 0, for which rstream has no case: it tries again forever. So siw serves in short
# turns, whose last one TCP sends at once.
run_rstream() {
	local size=65536 turns=20
	if [ "$responder" = siw ]; then size=16384 turns=40; fi
	serve 7471 60 rstream -b "$saddr4" -T v -S "$size" -C 1 -I "$turns"
	client 60 rstream -s "$saddr4" -T v -S "$size" -C 1 -I "$turns"
	wait_server
	expect "^custom +$((size >> 10))k +1 +$turns " "$tmp/client.log" 1
	assert_no_match 'verification failed|rsend|rrecv|rconnect' "$tmp/client.log"
}

# run_bw PROGRAM SIZE COUNT
run_bw() {
	perftest 60 "$1" "$sdev" "$cdev" -s "$2" -n "$3"
	expect "^ *$2 +$3 +[0-9.inf]+ +[0-9.inf]+" "$tmp/client.log" 1
}

# Here the passive side sends first. An initiator without peer-to-peer mode makes a
# responder wait that follows RFC 5044, unless an attribute says otherwise.
run_ucmatose() {
	local early=0
	if [ "$responder" = weft ]; then
		case $current_kind in p2p*) ;; *) early=1 ;; esac
	fi
	policy responder_early_send "$early"
	serve 7471 40 ucmatose -b "$saddr4" -c 2 -C 10 -S 4096
	client 40 ucmatose -s "$saddr4" -c 2 -C 10 -S 4096
	wait_server
	policy responder_early_send 0
	expect 'return status 0' "$tmp/client.log" 1
	expect 'return status 0' "$tmp/server.log" 1
}

# --- tests -----------------------------------------------------------------------

# one NAME FUNCTION [ARG]...: a test, with the direction in its name.
one() {
	local name="$1, weft -> siw"
	[ "$responder" = siw ] || name="$1, siw -> weft"
	[[ $name =~ ${E2E_ONLY:-} ]] || return 0
	t "$name" "${@:2}"
	[ -z "${REMOTE:-}" ] || [ "$failures" -eq 0 ] || still_there
}

# Without its peer every other test would come to the end of its time.
still_there() {
	if timeout $((20 * slow)) "${siw_end[@]}" true >/dev/null; then return; fi
	echo "Bail out! the other guest does not answer any more"
	exit 1
}

both_ways() {
	serves siw
	"$@"
	serves weft
	"$@"
}

mix() {
	one "rping, $1" run_rping
	one "rstream, $1" run_rstream
	one "ib_send_bw, $1" run_bw ib_send_bw 65536 20
	one "ib_write_bw, $1" run_bw ib_write_bw 65536 20
	one "ib_read_bw, $1" run_bw ib_read_bw 65536 20
	one "ucmatose, $1" run_ucmatose
}

kind_mix() {
	siw "$1"
	both_ways mix "siw of kind $1"
}

# siw as initiator takes CRC to be on only if the reply says so, too, though RFC 5044
# has one wish suffice; as responder it repeats what the request says.
kinds_of_crc() {
	siw crc
	both_ways mix "siw wants CRC, weft wants CRC"
	policy mpa_crc 0
	serves siw
	one "rping, siw wants CRC, weft does not" run_rping
	serves weft
	one "refused: rping, siw wants CRC, weft does not" run_refused
	policy mpa_crc 1
	siw nocrc
	both_ways one "refused: rping, siw refuses CRC, weft wants it" run_refused
	policy mpa_crc 0
	both_ways one "rping, siw refuses CRC, weft wants none" run_rping
	policy mpa_crc 1
}

# Nothing but revision 1. As responder siw tells its consumer a depth of 0 then, so
# what it serves must not have it read.
kinds_of_revision() {
	siw rev1
	serves weft
	mix "revision 1"
	serves siw
	policy mpa_revision 1
	one "rstream, revision 1" run_rstream
	one "ib_send_bw, revision 1" run_bw ib_send_bw 65536 20
	one "ib_write_bw, revision 1" run_bw ib_write_bw 65536 20
	one "ucmatose, revision 1" run_ucmatose
	policy mpa_revision 2
}

# The kinds weft offers as initiator. An empty Send siw does not take, and when the
# initiator then leaves before its RTR, siw makes iw_cm stop the kernel.
kinds_of_rtr() {
	siw plain
	serves siw
	policy mpa_rtr_types 2
	one "ucmatose, weft offers an empty Write" run_ucmatose
	policy mpa_rtr_types 4
	one "ucmatose, weft offers an empty Read" run_ucmatose
	policy mpa_rtr_types 7
	policy mpa_p2p 0
	one "ucmatose, weft offers no peer-to-peer mode" run_ucmatose
	policy mpa_p2p 1
}

full() {
	local size
	siw plain
	for size in 1500 9000; do
		mtu "$size"
		both_ways mix "MTU $size, CRC"
		policy mpa_crc 0
		both_ways mix "MTU $size, no CRC"
		policy mpa_crc 1
	done
	mtu 1500
	kinds_of_crc
	kinds_of_revision
	kind_mix p2p
	kind_mix p2p-write
	kind_mix p2p-read
	kinds_of_rtr
}

# What emulated CPUs have time for: every program with CRC and without, both ways, and of
# each kind of siw what makes it different.
core() {
	local kind
	siw plain
	both_ways mix "MTU 1500, CRC"
	mtu 9000
	policy mpa_crc 0
	both_ways mix "MTU 9000, no CRC"
	policy mpa_crc 1
	mtu 1500
	kinds_of_rtr
	siw crc
	both_ways one "rping, siw wants CRC, weft wants CRC" run_rping
	for kind in p2p p2p-write p2p-read; do
		siw "$kind"
		serves weft
		one "ucmatose, siw of kind $kind" run_ucmatose
	done
	siw rev1
	serves weft
	one "rping, revision 1" run_rping
	serves siw
	policy mpa_revision 1
	one "ib_send_bw, revision 1" run_bw ib_send_bw 65536 20
	policy mpa_revision 2
}

if [ -n "${REMOTE:-}" ]; then
	suite interop <<'TOPOLOGY'
  this guest                           the other guest
  weft, 10.77.0.1                      siw, 10.77.0.2
  eth0 ------------- cable ------------- eth0
TOPOLOGY
	topology_interop_guests
	"${INTEROP:-core}"
else
	suite interop <<'TOPOLOGY'
  namespace wa                         init's namespace
  weft, 10.77.0.1                      siw, 10.77.0.2
  va ------- veth, MTU 1500 or 9000 ------- vb
TOPOLOGY
	topology_interop_veth
	"${INTEROP:-full}"
fi
t "siw and weft release everything" leave
finish
