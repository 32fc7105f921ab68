#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The device is removed while programs use it: within seconds, with an event for each
# program, and nothing left behind.
. "$(dirname "$0")/lib.sh"

suite removal <<'TOPOLOGY'
  a program that is both ends --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY
only_plugins "$driver"

before_test() {
	modprobe -q "$driver"
	ip link show wd0 || topology_dummy
	rdma link show "$dev/1" || make_link "$dev" wd0
}

# user N: a program in the middle of everything, its output in $tmp/user.N.
user() {
	start 60 "$tmp/user.$1" "$tmp/removed" "$addr4"
	users[$1]=$started
	for _ in $(seq 100); do
		grep -q '^ready' "$tmp/user.$1" && { note_loopback; return; }
		sleep 0.1
	done
	cat "$tmp/user.$1"
	fail "the program did not get ready"
}

# ended_in_order N: it got the event of the removal and ended in order.
ended_in_order() {
	local rc=0
	wait "${users[$1]}" || rc=$?
	cat "$tmp/user.$1"
	[ "$rc" -eq 0 ] || fail "the program ended with status $rc"
	expect '^event: local catastrophic error' "$tmp/user.$1" 1
}

# removed_by MS COMMAND...: it takes so long at least, and no longer than a few seconds.
removed_by() {
	local began took
	user 1
	began=${EPOCHREALTIME/[.,]/}
	limit 20 "${@:2}"
	took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
	[ "$took" -ge "$1" ] || fail "it took no more than $took ms"
	[ "$took" -le $(((5 + slow) * 1000)) ] || fail "it took $took ms"
	ended_in_order 1
	rdma link show | tee "$tmp/links"
	assert_no_match "$dev/" "$tmp/links"
}

# Open devices and connections do not hold the module.
module_removed() {
	user 1
	limit 20 rmmod "$driver"
	ended_in_order 1
	[ ! -e "/sys/module/$driver" ] || fail "still loaded"
}

# A program that sleeps through it all, and only then looks.
stopped_program() {
	user 1
	pkill -STOP -P "${users[1]}"
	limit 20 rdma link delete "$dev"
	make_link "$dev" wd0
	pkill -CONT -P "${users[1]}"
	ended_in_order 1
}

# died: the program was killed; one that had got the event before has ended in order.
died() {
	local rc=0
	wait "${users[1]}" || rc=$?
	cat "$tmp/user.1"
	case $rc in 137 | "${1:-137}") ;; *) fail "the program ended with status $rc" ;; esac
}

killed_before() {
	user 1
	pkill -KILL -P "${users[1]}"
	limit 20 rdma link delete "$dev"
	died
}

killed_meanwhile() {
	local deleting
	user 1
	start 20 "$tmp/deleting" rdma link delete "$dev"
	deleting=$started
	pkill -KILL -P "${users[1]}" || true
	wait "$deleting"
	died 0
}

topology_dummy
compile removed >/dev/null
t "rdma link delete under a program that writes and waits" removed_by 0 rdma link delete "$dev"
# A netdev that goes gives consumers a second to let go of their connections.
leave=900
[ "$driver" = weft ] || leave=0
t "the netdev is deleted under it" removed_by "$leave" ip link delete wd0
t "a stopped program gets the event when it continues" stopped_program
t "the program has just been killed" killed_before
t "the program is killed at the same time" killed_meanwhile
[ "$driver" != weft ] || t "rmmod under the same program" module_removed
finish
