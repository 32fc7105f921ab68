#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# NFS over RDMA: the kernel's server and client, versions 4.1 and 3, every byte
# compared, through silence, restarts and a deleted device.
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"
. "$here/share.sh"

suite nfs <<'TOPOLOGY'
  client (rpcrdma) and nfsd --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

server_up() {
	mount -t tmpfs nfs /var/lib/nfs
	mkdir -p "$export_dir" /var/lib/nfs/{rpc_pipefs,v4recovery,sm,sm.bak} "$mnt"
	touch /var/lib/nfs/{etab,rmtab,state}
	mount -t tmpfs -o size=256m export "$export_dir"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	pgrep -x rpcbind >/dev/null || rpcbind -w
	exportfs -o rw,sync,insecure,no_root_squash,no_subtree_check,fsid=0 "10.77.0.0/24:$export_dir"
	rpc.mountd
	nfsd_up
}

nfsd_up() {
	rpc.nfsd -U -T -N 4.2 4 2>/dev/null || rpc.nfsd 4
	echo 'rdma 20049' >/proc/fs/nfsd/portlist
	# There are no locks to reclaim.
	echo Y >/proc/fs/nfsd/v4_end_grace
}

nfsd_down() { rpc.nfsd 0; }

# mount_share VERSION [OPTION]: as hard as mounts are by default.
mount_share() {
	local path=/ extra=
	[ "$1" = 4.1 ] || path=$export_dir extra=,nolock,mountproto=tcp
	limit 60 mount -t nfs -o "vers=$1,proto=rdma,port=20049$extra${2:+,$2}" "$addr4:$path" "$mnt"
	grep " $mnt " /proc/mounts | tee "$tmp/mounts"
	expect "vers=$1.*proto=rdma" "$tmp/mounts" 1
}

verified() {
	mount_share "$1" "${2:-}"
	verified_io "$mnt/file" 120
	# And through the page cache, where reads and writes have other sizes.
	limit 120 fio --name=c --filename="$mnt/cached" --rw=randrw --bsrange=1k-300k --size=8m \
		--ioengine=psync --verify=crc32c --verify_fatal=1 --verify_state_save=0 \
		--fsync=16 --minimal
	cmp "$mnt/file" "$export_dir/file"
	same_over_the_wire cached
	umount_share
}

rx_bytes() { rdma -j statistic show link "$dev/1" | grep -o '"rx_bytes":[0-9]*' | cut -d: -f2; }

# same_over_the_wire FILE: not as the client remembers it.
same_over_the_wire() {
	local before
	sync -f "$mnt"
	echo 3 >/proc/sys/vm/drop_caches
	before=$(rx_bytes)
	cmp "$mnt/$1" "$export_dir/$1"
	[ $(($(rx_bytes) - before)) -ge "$(stat -c %s "$export_dir/$1")" ] ||
		fail "it was not read again"
}

server_restarts() {
	nfsd_down
	sleep 3
	nfsd_up
}

# The operator's mistake, and his repentance. The server listens on whatever
# device there is, so it need not be told.
replaced() {
	"$1_goes"
	sleep 2
	"$1_back"
}

# A mount that need not wait for ever gets an error from a device that is gone.
gone_for_good() {
	mount_share 4.1 soft,timeo=20,retrans=1
	echo before >"$mnt/file"
	"$1_goes"
	refused_io 60 dd if=/dev/zero of="$mnt/file" bs=4k count=1 conv=fsync
	limit 60 umount -f "$mnt"
	"$1_back"
	mount_share 4.1
	expect '^before$' "$mnt/file" 1
	umount_share
}

nothing_left() {
	nfsd_down
	idle_but_for_pools
	limit 20 rdma link delete "$dev"
}

needs rpcrdma nfsd nfsv4 nfsv3 sch_netem
topology_dummy
server_up >"$tmp/server_up" 2>&1 || diagnose <"$tmp/server_up"
t "version 4.1: a tree is copied there and back" copy_tree 4.1
t "version 4.1: blocks of mixed sizes are written and verified" verified 4.1
t "version 3: a tree is copied there and back" copy_tree 3
long "version 3: blocks of mixed sizes are written and verified" verified 3
long "pages by the megabyte: rsize and wsize of 1 MiB" verified 4.1 rsize=1048576,wsize=1048576
t "ten seconds of silence on the wire under load" by_tcp load_through 4.1 silent_wire
long "the server is restarted under load" load_through 4.1 server_restarts
t "the device is deleted and added again under load" load_through 3 replaced link
long "the netdev is deleted and added again under load" load_through 4.1 replaced netdev
long "the module is unloaded and loaded again under load" load_through 4.1 replaced module
t "the device is deleted for good: a soft mount gets errors" gone_for_good link
long "the netdev is deleted for good: a soft mount gets errors" gone_for_good netdev
t "nothing is left of client and server" nothing_left
finish
