#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The programs of Documentation/examples: built as their heads say, and run.
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

topology_dummy
t "kv is built" build kv
t "copy is built" build copy
t "a key-value store by Reads and atomics" keys_and_values
for size in 0 1 1048576 9000001; do
	t "a file of $size bytes by Writes with immediate" copies $size
done
finish
