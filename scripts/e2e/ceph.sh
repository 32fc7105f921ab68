#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Ceph, with its messenger over RDMA in the iWARP mode: one monitor, one OSD that keeps objects in
# memory, and clients, each with its own connections.
. "$(dirname "$0")/lib.sh"

suite ceph <<'TOPOLOGY'
  mon.a, osd.0 and clients --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

fsid=6f9ad5a7-0f1e-4c76-9a5e-0d2f6d1f7a11
buffers=${CEPH_BUFFERS:-512}

# configure TYPE: ms_type. Buffers are of 128 KiB; the default is 32768 of them a process.
configure() {
	cat >"$tmp/ceph.conf" <<-EOF
		[global]
		fsid = $fsid
		mon host = v2:$addr4:3300
		public addr = $addr4
		auth cluster required = none
		auth service required = none
		auth client required = none
		ms type = $1
		ms async rdma type = iwarp
		ms async rdma cm = true
		ms async rdma device name = $dev
		ms async rdma receive buffers = $buffers
		ms async rdma send buffers = $buffers
		ms async rdma receive queue len = $((buffers / 2))
		ms async rdma polling us = ${CEPH_POLLING:-0}
		osd pool default size = 1
		osd pool default min size = 1
		mon allow pool size one = true
		osd crush chooseleaf type = 0
		osd objectstore = memstore
		memstore device bytes = 2147483648
		mon data = $tmp/mon
		osd data = $tmp/osd
		run dir = $tmp
		admin socket = $tmp/\$name.asok
		log file = $tmp/\$name.log
		pid file = $tmp/\$name.pid
		mon data avail warn = 1
		mon data avail crit = 1
		ms crc data = ${CEPH_CRC:-true}
	EOF
}

cluster() { limit "$1" env CEPH_CONF="$tmp/ceph.conf" "${@:2}"; }

# daemon NAME COMMAND...
daemon() {
	start 400 "$tmp/$1.out" env CEPH_CONF="$tmp/ceph.conf" "${@:2}"
	daemons+=("$started")
}

# bring_up TYPE: until the OSD is in and a pool takes objects.
bring_up() {
	local uuid
	uuid=$(</proc/sys/kernel/random/uuid)
	daemons=()
	configure "$1"
	rm -rf "$tmp/mon" "$tmp/osd"
	mkdir -p "$tmp/osd"
	cluster 20 monmaptool --create --fsid "$fsid" --addv a "[v2:$addr4:3300]" --clobber \
		"$tmp/monmap"
	cluster 30 ceph-mon --mkfs -i a --monmap "$tmp/monmap"
	daemon mon ceph-mon -i a -f
	cluster 60 ceph osd new "$uuid"
	cluster 30 ceph-osd -i 0 --mkfs --osd-uuid "$uuid"
	daemon osd ceph-osd -i 0 -f
	cluster 60 ceph osd pool create p 8
	for _ in $(seq 20); do
		! cluster 20 ceph osd stat | grep -q '1 up' || return 0
		sleep 1
	done
	tail -n 25 "$tmp/osd.0.log" "$tmp/osd.out"
	fail "the OSD does not come up"
}

tear_down() {
	kill -TERM "${daemons[@]}" 2>/dev/null || true
	wait "${daemons[@]}" 2>/dev/null || true
}

# bench SECONDS MODE: prints MB/s.
bench() {
	cluster $(($1 + 30)) rados bench -p p "$1" "$2" "${@:3}" --no-cleanup >"$tmp/bench" 2>&1 ||
		{ cat "$tmp/bench"; fail "rados bench $2"; }
	awk '/^Bandwidth/ { print $3 }' "$tmp/bench"
}

put_get_bench() {
	local before writes reads
	before=$(counted tx_bytes)
	bring_up "$1"
	head -c 5000000 /dev/urandom >"$tmp/in"
	cluster 30 rados -p p put object "$tmp/in"
	cluster 30 rados -p p get object "$tmp/out"
	cmp "$tmp/in" "$tmp/out"
	writes=$(bench 5 write -b 65536)
	reads=$(bench 5 rand)
	tear_down
	echo "# rados bench over $1, 64 KiB: $writes MB/s written, $reads read" | tee -a "$tmp/figures"
	awk -v w="$writes" -v r="$reads" 'BEGIN { exit !(w > 0 && r > 0) }'
	case $1 in *rdma) [ $(($(counted tx_bytes) - before)) -ge 10000000 ] ||
		fail "it did not go over $dev" ;;
	esac
}

ulimit -l unlimited
topology_dummy
t "put, get, and rados bench over RDMA" put_get_bench async+rdma
t "the same over TCP, to compare with" put_get_bench async+posix
cat "$tmp/figures"
finish
