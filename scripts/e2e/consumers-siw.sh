#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The kernel's own consumers with siw at the other side of the connection.
#
# Usage: scripts/guest --module "$(scripts/kernel 6.1 --siw)" scripts/e2e/run consumers-siw
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"

suite consumers-siw <<'TOPOLOGY'
  NVMe: wd0 (10.77.0.1) weft, wd1 (10.81.0.1) siw, both dummy
  NFS: first namespace: vs (10.80.0.1) siw --- veth --- wb: vw (10.80.0.2) weft
TOPOLOGY

nvmet=/sys/kernel/config/nvmet
mnt=$tmp/mnt
export_dir=/srv/weft

topology_nvme() {
	topology_dummy
	ip link add wd1 type dummy
	ip link set wd1 up
	ip addr add 10.81.0.1/24 dev wd1
	rdma link add siw1 type siw netdev wd1
}

# nfsd listens on every device it may use, which makes siw open a second socket for
# the same port: each device is alone in its namespace. (Debian's nfsd 6.1.192 does
# not survive a listener that fails.)
topology_nfs() {
	cleanup
	rdma system set netns exclusive
	ip netns add wb
	ip link add vs type veth peer name vw netns wb
	ip link set vs up
	ip addr add 10.80.0.1/24 dev vs
	ip -n wb link set lo up
	ip -n wb link set vw up
	ip -n wb addr add 10.80.0.2/24 dev vw
	rdma link add siw0 type siw netdev vs
	ip netns exec wb rdma link add weft1 type weft netdev vw
	rdma dev set weft1 netns wb
	rdma dev show
	ip netns exec wb rdma dev show
}

# nvme_between TARGET-ADDRESS HOST-ADDRESS DEVICES: which devices carry it is
# seen from where the queue pairs are.
nvme_between() {
	local port=$nvmet/ports/1 dir=$nvmet/subsystems/t1 ns=
	memory_disk weftsiw 32
	mkdir -p "$dir/namespaces/1" "$port"
	echo 1 >"$dir/attr_allow_any_host"
	echo "$disk" >"$dir/namespaces/1/device_path"
	echo 1 >"$dir/namespaces/1/enable"
	echo rdma >"$port/addr_trtype"
	echo ipv4 >"$port/addr_adrfam"
	echo "$1" >"$port/addr_traddr"
	echo 4420 >"$port/addr_trsvcid"
	ln -s "$dir" "$port/subsystems/t1"
	limit 60 nvme connect -t rdma -a "$1" -s 4420 --host-traddr="$2" -n t1 --nr-io-queues=2
	until_true 20 ls /dev/nvme*n1
	ns=$(echo /dev/nvme*n1)
	rdma resource show qp | tee "$tmp/qps"
	expect '^link weft0/.*state RTS' "$tmp/qps"
	expect '^link siw1/' "$tmp/qps"
	verified_io "$ns" 120
	same_disks "$ns" "$disk"
	limit 60 nvme disconnect -n t1
	rm "$port/subsystems/t1"
	rmdir "$port" "$dir/namespaces/1" "$dir"
	memory_disks_gone
}

# nfs_server ADDRESS-OF-CLIENT, nfs_client ADDRESS: in the namespace of the caller.
nfs_server() {
	set -e
	mount -t tmpfs nfs /var/lib/nfs
	mkdir -p "$export_dir" /var/lib/nfs/{rpc_pipefs,v4recovery,sm,sm.bak}
	touch /var/lib/nfs/{etab,rmtab,state}
	mount -t tmpfs -o size=128m export "$export_dir"
	mount -t nfsd nfsd /proc/fs/nfsd
	exportfs -o rw,sync,insecure,no_root_squash,no_subtree_check,fsid=0 "$1:$export_dir"
	rpc.mountd
	# In a namespace nfsd remembers no clients, and then cannot be told to wait for
	# none: its time for them is as short as it may be.
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	rpc.nfsd -N 3 2 || true
	echo 'rdma 20049' >/proc/fs/nfsd/portlist
}

nfs_client() {
	set -e
	mkdir -p "$mnt"
	limit 60 mount -t nfs -o vers=4.1,proto=rdma,port=20049 "$1:/" "$mnt"
	tree "$tmp/tree"
	cp -r "$tmp/tree" "$mnt/copy"
	verified_io "$mnt/file" 120
	limit 60 umount "$mnt"
	limit 60 mount -t nfs -o vers=4.1,proto=rdma,port=20049 "$1:/" "$mnt"
	diff -r "$tmp/tree" "$mnt/copy"
	limit 60 umount "$mnt"
}

# in_wb FUNCTION ARG: with mounts of its own, which end with it.
in_wb() {
	nsenter --net=/run/netns/wb unshare --mount bash -c "set -uo pipefail
		$(declare -f "$1" limit tree verified_io)
		slow=$slow tmp=$tmp mnt=$mnt export_dir=$export_dir; $1 $2; ${3:-}"
}

nfs_server_on_siw() {
	unshare --mount bash -c "set -uo pipefail
		$(declare -f nfs_server); export_dir=$export_dir; nfs_server 10.80.0.0/24"
	in_wb nfs_client 10.80.0.1
	unshare --mount bash -c 'mount -t nfsd nfsd /proc/fs/nfsd; rpc.nfsd 0'
	pkill -x rpc.mountd
}

nfs_server_on_weft() {
	in_wb nfs_server 10.80.0.0/24
	nfs_client 10.80.0.2
	in_wb true '' 'mount -t nfsd nfsd /proc/fs/nfsd; rpc.nfsd 0'
	pkill -x rpc.mountd
}

needs siw nvmet-rdma nvme-rdma null_blk rpcrdma nfsd nfsv4
topology_nvme
t "NVMe: target on siw, host on weft" nvme_between 10.81.0.1 10.77.0.1
t "NVMe: target on weft, host on siw" nvme_between 10.77.0.1 10.81.0.1
topology_nfs >/dev/null
t "NFS: server on siw, client on weft" nfs_server_on_siw
t "NFS: server on weft, client on siw" nfs_server_on_weft
finish
