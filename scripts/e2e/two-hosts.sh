#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# QPs that programs connect themselves, between two hosts: libibverbs' examples, perftest
# without -R, and pyverbs (progs/direct_pair.py). Both guests run this script; the responder has
# the servers, one after the other.
#
#   scripts/uml-pair --mem 2600 scripts/e2e/run two-hosts
. "$(dirname "$0")/lib.sh"

suite two-hosts <<'TOPOLOGY'
  requester: vec0 (10.77.0.2, fd77::2) weft0 --- cable, MTU 1500 --- vec0 (10.77.0.1, fd77::1) weft0 :responder
TOPOLOGY

role=${WIRE_ROLE:?set by scripts/uml-pair}

host() {
	local number=1
	[ "$role" = responder ] || number=2
	ip link set vec0 up
	ip addr add 10.77.0.$number/24 dev vec0
	ip addr add fd77::$number/64 dev vec0 nodad
	rdma link add "$dev" type "$driver" netdev vec0
	until ping -c 1 -W 1 10.77.0.$((3 - number)) >/dev/null; do
		[ "$SECONDS" -lt $((60 * slow)) ] || { echo "Bail out! no other guest"; exit 1; }
	done
}

# Not yet: the server before this one has ended, and the next one does not listen.
early="Couldn't connect to|Connection refused|couldn't connect"

ask() {
	local end=$((SECONDS + 60 * slow)) rc
	while :; do
		rc=0
		limit 60 "$@" 10.77.0.1 >"$tmp/client.log" 2>&1 || rc=$?
		if [ "$rc" -eq 0 ] || ! grep -qE "$early" "$tmp/client.log"; then break; fi
		[ "$SECONDS" -lt "$end" ] || break
		cat "$tmp/client.log"
		sleep_nofork 0.1
	done
	cat "$tmp/client.log"
	return "$rc"
}

# either PROGRAM [WORD]...: this guest's end.
either() {
	if [ "$role" = responder ]; then limit 90 "$@"; else ask "$@"; fi
}

messages() { counted tx_messages; }

# between PROGRAM OPTION...: a pair, measured or counted, over the device.
between() {
	local before
	before=$(messages)
	either "$@" | tee "$tmp/out"
	[ "$role" = responder ] ||
		awk 'NF >= 5 && $1 ~ /^[0-9]+$/ { ok = 1 } /iters in/ { ok = 1 } END { exit !ok }' \
			"$tmp/out" || fail "no measurement"
	[ "$role" = responder ] || [ $(($(messages) - before)) -ge 50 ] ||
		fail "it did not go over $dev"
}

# Perftest 4.5 complains at its end, after a good measurement: see send_bw() of direct.sh.
send_bw() {
	local before rc=0
	before=$(messages)
	either ib_send_bw -d "$dev" -x "$index" -F -s 65536 -n 200 >"$tmp/out" 2>&1 || rc=$?
	cat "$tmp/out"
	[ "$rc" -eq 0 ] || expect "Failed to deallocate PD" "$tmp/out" 1
	assert_no_match "Completion with error|Couldn't (read|write|modify)" "$tmp/out"
	awk '$1 == 65536 && NF >= 5 { ok = 1 } END { exit !ok }' "$tmp/out" || fail "no measurement"
	[ $(($(messages) - before)) -ge 1 ] || fail "it did not go over $dev"
}

# pair CASE: of progs/direct_pair.py.
pair() {
	either /usr/bin/python3 "$here/progs/direct_pair.py" --device "$dev" --gid "$index" "$@"
}

host
for index in 1 2; do
	t "ibv_rc_pingpong, GID $index" between ibv_rc_pingpong -d "$dev" -g $index
	t "ibv_rc_pingpong -e, GID $index" between ibv_rc_pingpong -d "$dev" -g $index -e -n 200
	t "ibv_srq_pingpong, GID $index" between ibv_srq_pingpong -d "$dev" -g $index -n 200
	t "ib_send_bw, GID $index" send_bw
	for program in ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw \
		ib_atomic_lat; do
		t "$program, GID $index" between $program -d "$dev" -x $index -F -n 200
	done
done
t "ib_write_bw, 16 QPs, both ways" between ib_write_bw -d "$dev" -x 1 -F -n 200 -q 16 -b
for index in 1 2; do
	t "each operation both ways, two lives, GID $index" pair operations
	t "the peer destroys its QP, GID $index" pair peer_destroys
done
# The last one: the cable stays as it is.
t "the cable is pulled" pair host_goes
cleanup
finish
