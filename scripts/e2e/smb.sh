#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# SMB Direct: the kernel's server and client, every byte compared, through silence and
# a device that is deleted. For iWARP they use port 5445.
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"
. "$here/share.sh"

suite smb <<'TOPOLOGY'
  client (cifs) and ksmbd --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

server_up() {
	mkdir -p "$export_dir" "$mnt"
	mount -t tmpfs -o size=256m,mode=777 export "$export_dir"
	cat >"$tmp/ksmbd.conf" <<-EOF
		[global]
			map to guest = never
		[share]
			path = $export_dir
			writeable = yes
			valid users = weft
	EOF
	ksmbd.adduser -c "$tmp/ksmbd.conf" -i "$tmp/users" -a weft -p secret
	ksmbd.mountd -c "$tmp/ksmbd.conf" -u "$tmp/users"
	until_true 20 listening 5445
}

mount_share() {
	limit 60 mount -t cifs -o "rdma,vers=3.1.1,user=weft,pass=secret,noperm" \
		"//$addr4/share" "$mnt"
	grep " $mnt " /proc/mounts | tee "$tmp/mounts"
	expect 'cifs.*[ ,]rdma[ ,]' "$tmp/mounts" 1
}

verified() {
	mount_share
	verified_io "$mnt/file" 120
	cmp "$mnt/file" "$export_dir/file"
	umount_share
}

# The server reads what the client has to write, and writes what it wants to read.
remote_memory() {
	local reads writes
	sleep 0.1	# the core refreshes its counters with a delay
	reads=$(counted tx_read_requests) writes=$(counted tx_writes)
	mount_share
	dd if=/dev/urandom of="$tmp/data" bs=1M count=32
	dd if="$tmp/data" of="$mnt/data" bs=4M oflag=direct
	dd if="$mnt/data" of="$tmp/back" bs=4M iflag=direct
	umount_share
	cmp "$tmp/data" "$tmp/back"
	cmp "$tmp/data" "$export_dir/data"
	sleep 0.1
	reads=$(($(counted tx_read_requests) - reads)) writes=$(($(counted tx_writes) - writes))
	echo "RDMA Reads: $reads, Writes: $writes"
	[ "$reads" -ge 8 ] || fail "the server did not read"
	[ "$writes" -ge 8 ] || fail "the server did not write"
}

nothing_left() {
	ksmbd.control -s
	until_true 20 rmmod ksmbd
	rmmod cifs
	idle_but_for_pools
	limit 20 rdma link delete "$dev"
}

needs ksmbd cifs sch_netem
topology_dummy
server_up >"$tmp/server_up" 2>&1 || diagnose <"$tmp/server_up"
t "a tree is copied there and back" copy_tree
t "blocks of mixed sizes are written and verified" verified
t "long requests go by remote memory" remote_memory
t "ten seconds of silence on the wire under load" load_through '' silent_wire
t "nothing is left of client and server" nothing_left
finish
