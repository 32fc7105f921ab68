#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# iSCSI over RDMA without the kernel: tgtd as the target, libiscsi as the initiator.
. "$(dirname "$0")/lib.sh"

suite tgt <<'TOPOLOGY'
  libiscsi and tgtd --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

target=iqn.2026-01.org.weft:t2
initiator=iqn.2026-01.org.weft:host
export TGT_IPC_SOCKET=$tmp/tgtd

admin() { tgtadm --lld iser "$@"; }

# A software RNIC has no ports of its own: TCP has to listen elsewhere. Over iSER tgtd
# refuses an initiator of which it knows only the address: it has to know the name as well.
target_up() {
	mkdir -p /var/run/tgtd
	truncate -s 8M "$tmp/disk"
	serve 3260 90 tgtd -f --iser pool_sz_mb=64 --iscsi portal=127.0.0.1:3261
	admin --op new --mode target --tid 1 -T "$target"
	admin --op new --mode logicalunit --tid 1 --lun 1 -b "$tmp/disk"
	admin --op bind --mode target --tid 1 -I ALL
	admin --op bind --mode target --tid 1 -Q "$initiator"
}

target_down() {
	tgtadm --op delete --mode system --force || stop_server
	wait "$server" || true
}

lun=iser://$addr4:3260/$target/1

capacity() {
	target_up
	client 20 iscsi-inq -i "$initiator" "$lun"
	expect '^Vendor:IET' "$tmp/client.log" 1
	client 20 iscsi-readcapacity16 -i "$initiator" "$lun"
	expect 'Total size:8388608' "$tmp/client.log" 1
	target_down
}

# The target fetches what is written with RDMA Reads, and brings what is read with Writes.
there_and_back() {
	local reads=0 writes=0
	[ "$driver" != weft ] || { reads=$(counted tx_read_requests) writes=$(counted tx_writes); }
	target_up
	client 60 /usr/bin/python3 "$here/progs/initiator.py" "$initiator" "$addr4:3260" \
		"$target" 1 "$tmp/image" "$@"
	target_down
	cmp -n 4194304 "$tmp/image" "$tmp/disk"
	[ "$driver" = weft ] || return 0
	[ "$(counted tx_read_requests)" -gt $((reads + 10)) ] || fail "no RDMA Reads"
	[ "$(counted tx_writes)" -gt $((writes + 10)) ] || fail "no RDMA Writes"
}

topology_dummy
t "iscsi-inq and iscsi-readcapacity16" capacity
t "4 MiB written and read in blocks of mixed sizes" there_and_back 1 8 256 3 128 17
finish
