#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# QEMU's live migration over RDMA, of an emulated guest that keeps changing its memory.
#
# IPv4 only: QEMU refuses IPv6, which it considers broken over RoCE and iWARP.
. "$(dirname "$0")/lib.sh"

suite migration <<'TOPOLOGY'
  source and destination (QEMU, TCG) --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

port=4444
machine=(-accel tcg -machine pc -m 32 -nodefaults -vga none -display none)

boot_sector() {
	cc -m32 -nostdlib -static -Wl,--build-id=none,-Ttext=0x7c00,--oformat=binary \
		-o "$tmp/disk" "$here/progs/dirty_memory.S"
	truncate -s 1M "$tmp/disk"
}

# machine NAME [OPTION]...: start one; its monitor answers when this returns.
machine() {
	local end=$((SECONDS + 20 * slow))
	rm -f "$tmp/$1.monitor"
	start 150 "$tmp/$1.log" qemu-system-x86_64 "${machine[@]}" \
		-drive "file=$tmp/disk,format=raw,if=ide,snapshot=on" \
		-qmp "unix:$tmp/$1.monitor,server=on,wait=off" "${@:2}"
	until tell "$1" info status >"$tmp/status" 2>&1; do
		kill -0 "$started" 2>/dev/null || { cat "$tmp/$1.log"; fail "no machine $1"; }
		[ "$SECONDS" -lt "$end" ] || fail "the monitor of $1 does not answer"
		sleep 0.2
	done
}

# tell NAME WORDS...: to its monitor.
tell() {
	/usr/bin/python3 "$here/progs/monitor.py" "$tmp/$1.monitor" "${@:2}"
}

# until_says NAME PATTERN WORDS...: ask until the answer matches.
until_says() {
	local end=$((SECONDS + 40 * slow))
	until tell "$1" "${@:3}" >"$tmp/answer" && grep -qE -e "$2" "$tmp/answer"; do
		if [ "$SECONDS" -ge "$end" ]; then
			cat "$tmp/answer" "$tmp"/*.log
			fail "$1 never said '$2' to '${*:3}'"
		fi
		sleep 0.3
	done
}

# word NAME ADDRESS: four bytes of its guest's memory.
word() { tell "$1" "xp /1xw $2" | sed -n 's/^[0-9a-f]*: 0x//p'; }

# passes NAME: how often its guest has been through its memory.
passes() { echo $((16#$(word "$1" 0x8000))); }

# dirties NAME: its guest runs, and changes memory.
dirties() {
	local before
	before=$(passes "$1")
	[[ $(tell "$1" info status) == *running* ]] || fail "$1 does not run"
	sleep 0.5
	[ "$(passes "$1")" -gt "$before" ] || fail "the guest of $1 stands still at $before"
}

# source_up: its guest has filled its memory.
source_up() {
	machine src
	source=$started
	until_says src '0x0*[1-9a-f][0-9a-f]*' xp /1xw 0x8000
	dirties src
}

# destination_up PIN: it waits, and does not run its guest by itself.
destination_up() {
	machine dst -S -incoming defer
	destination=$started
	tell src migrate_set_capability rdma-pin-all "$1"
	tell dst migrate_set_capability rdma-pin-all "$1"
	tell dst migrate_incoming "rdma:$saddr4:$port"
}

# under_way: the migration has sent more than the first megabytes, and the guest changes
# more in the meantime than it may leave for the end: there is none before one is asked for.
under_way() {
	tell src migrate_set_parameter max-bandwidth 16M
	tell src migrate_set_parameter downtime-limit 1
	tell src migrate -d "rdma:$saddr4:$port"
	until_says src 'normal: [1-9][0-9]{3,} pages' info migrate
	expect 'Migration status: active' "$tmp/answer" 1
}

same_memory() {
	local name
	for name in src dst; do tell "$name" "pmemsave 0 0x2000000 \"$tmp/$name.memory\""; done
	[ "$(stat -c %s "$tmp/src.memory")" -eq 33554432 ]
	cmp "$tmp/src.memory" "$tmp/dst.memory"
	[ "$(tr -d '\0' <"$tmp/src.memory" | wc -c)" -gt 8000000 ] || fail "an empty guest"
}

over() {
	local name
	for name in "$@"; do tell "$name" quit; done
	wait
}

# over_weft BYTES WRITES: so much of it went there since then. siw does not count.
over_weft() {
	[ "$driver" = weft ] || return 0
	local bytes=$(($(counted tx_bytes) - $1)) writes=$(($(counted tx_writes) - $2))
	echo "$bytes bytes, $writes Writes"
	[ "$bytes" -gt 12582912 ] || fail "only $bytes bytes went over the device"
	[ "$writes" -gt 10 ] || fail "only $writes Writes"
}

# The guest's 12 MiB are no zeros, so that all of them have to travel.
migrates() {
	local bytes=0 writes=0
	[ "$driver" != weft ] || { bytes=$(counted tx_bytes) writes=$(counted tx_writes); }
	source_up
	destination_up "$1"
	under_way
	tell src migrate_set_parameter max-bandwidth 1G
	tell src migrate_set_parameter downtime-limit 20000
	until_says src 'Migration status: (completed|failed)' info migrate
	expect 'Migration status: completed' "$tmp/answer" 1
	until_says dst 'paused$' info status
	same_memory
	over_weft "$bytes" "$writes"
	tell dst cont
	dirties dst
	over src dst
}

# destination_gives_up: QEMU 7.2 ends; 10, told by the monitor to expect a migration, says that it
# has failed and waits for the next command.
destination_gives_up() {
	local end=$((SECONDS + 40 * slow))
	while kill -0 "$destination" 2>/dev/null; do
		if [ "$SECONDS" -ge "$end" ]; then
			cat "$tmp/dst.log"
			fail "the destination waits on"
		fi
		if tell dst info migrate 2>/dev/null | grep -q 'Migration status: failed'; then
			tell dst quit || true
			break
		fi
		sleep_nofork 0.3
	done
	wait "$destination" || true
	expect 'RDMA|rdma migration|load of migration failed' "$tmp/dst.log"
}

# The guest goes on where it is, and can be migrated after all.
cancelled() {
	source_up
	destination_up "$1"
	under_way
	tell src migrate_cancel
	until_says src 'Migration status: cancelled' info migrate
	dirties src
	destination_gives_up
	destination_up "$1"
	tell src stop
	tell src migrate_set_parameter max-bandwidth 1G
	tell src migrate -d "rdma:$saddr4:$port"
	until_says src 'Migration status: completed' info migrate
	until_says dst 'paused$' info status
	same_memory
	over src dst
}

destination_dies() {
	source_up
	destination_up "$1"
	under_way
	pkill -KILL -P "$destination" qemu
	until_says src 'Migration status: failed' info migrate
	dirties src
	over src
}

source_dies() {
	source_up
	destination_up "$1"
	under_way
	pkill -KILL -P "$source" qemu
	wait "$source" || true
	destination_gives_up
}

topology_dummy
boot_sector
t "the guest is the same afterwards, memory registered in pieces" migrates off
t "the guest is the same afterwards, all memory pinned" migrates on
t "cancelled, then completed" cancelled off
t "the destination is killed: the guest keeps running" destination_dies on
t "the source is killed: the destination ends" source_dies off
finish
