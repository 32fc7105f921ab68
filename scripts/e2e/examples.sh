#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The programs of Documentation/examples: built as their head comments say, and run.
#
# ECHO is the kernel's example: scripts/kmod KERNEL rdma_echo
. "$(dirname "$0")/lib.sh"

suite examples <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

examples=$here/../../Documentation/examples

build() { cc -Wall -Wextra -Werror -O2 -o "$tmp/$1" "$examples/$1.c" -lrdmacm -libverbs; }

kv() { limit 60 "$tmp/kv" "$@"; }

keys_and_values() {
	local i
	serve 7777 120 "$tmp/kv" serve "$saddr4"
	kv put "$saddr4" colour blue
	[ "$(kv get "$saddr4" colour)" = blue ]
	kv put "$saddr4" colour red
	[ "$(kv get "$saddr4" colour)" = red ]
	[ "$(kv hits "$saddr4" colour)" = 2 ]
	if kv get "$saddr4" shape; then fail "a key that was never put"; fi
	# Many at once: each asks for a lock, and none may be lost.
	for i in 1 2 3 4 5 6; do kv put "$saddr4" "key$i" "value$i" & done
	for i in 1 2 3 4 5 6; do wait -n; done
	for i in 1 2 3 4 5 6; do [ "$(kv get "$saddr4" "key$i")" = "value$i" ]; done
	stop_server
}

copies() {
	head -c "$1" /dev/urandom >"$tmp/from"
	serve 7778 60 "$tmp/copy" receive "$saddr4" "$tmp/to"
	client 60 "$tmp/copy" send "$saddr4" "$tmp/from"
	wait_server
	cmp "$tmp/from" "$tmp/to"
}

echoed() { limit 60 "$tmp/echo" "$saddr4"; }

# Lines of all lengths, more of them than the module has buffers; then several clients at once.
messages_come_back() {
	local i
	insmod "$ECHO"
	trap 'rmmod rdma_echo' EXIT
	for ((i = 0; i < 100; i++)); do printf '%0*d\n' $((i * 40 + 1)) "$i"; done >"$tmp/lines"
	echoed <"$tmp/lines" >"$tmp/back"
	cmp "$tmp/lines" "$tmp/back"
	for i in 1 2 3 4 5 6; do echoed <"$tmp/lines" >"$tmp/back$i" & done
	for i in 1 2 3 4 5 6; do wait -n; done
	for i in 1 2 3 4 5 6; do cmp "$tmp/lines" "$tmp/back$i"; done
}

# connected: a client that waits for its next line, which never comes.
connected() {
	(echo hello; sleep_nofork 60) | echoed >"$tmp/back" 2>&1 &
	until_said "$tmp/back" '^hello$' $!
}

has_no_qp() { ! rdma resource show qp link "$dev/1" | grep -q 'comm \[rdma_echo\]'; }

# Its objects are those of a process and the module's; all of the latter go.
ends_under_a_client() {
	insmod "$ECHO"
	connected
	"$@"
	until_true 30 has_no_qp || fail "$(rdma resource show qp)"
	! grep -q rdma_echo /proc/modules || rmmod rdma_echo
}

device_goes_and_comes() {
	rdma link delete "$dev"
	rdma link add "$dev" type weft netdev wd0
	echo again | echoed | grep -x again
}

topology_dummy
[ -e "${ECHO:?}" ] || exit 1
t "kv is built" build kv
t "copy is built" build copy
t "echo is built" build echo
t "a kernel consumer that sends messages back" messages_come_back
t "the kernel consumer is unloaded under a client" ends_under_a_client rmmod rdma_echo
t "the device is removed under the kernel consumer and added again" ends_under_a_client device_goes_and_comes
t "a key-value store by Reads and atomics" keys_and_values
for size in 0 1 1048576 9000001; do
	t "a file of $size bytes by Writes with immediate" copies $size
done
finish
