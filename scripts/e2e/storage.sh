# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What the suites of the kernel's own consumers share: disks to export, disks
# that appear, I/O with verification, a network that loses everything.
# Sourced after lib.sh.
# shellcheck disable=SC2034,SC2154  # variables travel between the parts

nullb=/sys/kernel/config/nullb
nullb_made=()

# needs MODULE...: without them the suite has nothing to test.
needs() {
	local module
	for module; do
		[ ! -d "/sys/module/${module//-/_}" ] || continue
		modprobe -q "$module" && continue
		echo "# no module $module on $(uname -r)"
		echo "1..0 # SKIP no module $module"
		exit 0
	done
}

# configfs: where targets are made; the module is not there when a guest boots.
modprobe -q configfs
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config

# said WORDS: has the kernel, since the test began? (All is read: a write to a grep
# that has ended fails.)
said() { kernel_says | grep "$1" >/dev/null; }

# memory_disk NAME MEGABYTES: a null_blk disk that keeps what is written; its
# device in $disk.
memory_disk() {
	local dir=$nullb/$1
	modprobe -q null_blk nr_devices=0
	mkdir "$dir"
	echo 1 >"$dir/memory_backed"
	echo "$2" >"$dir/size"
	echo 512 >"$dir/blocksize"
	echo 1 >"$dir/power"
	nullb_made+=("$1")
	disk=/dev/nullb$(cat "$dir/index")
	[ -b "$disk" ] || disk=/dev/$1
}

memory_disks_gone() {
	local name
	for name in "${nullb_made[@]}"; do rmdir "$nullb/$name"; done
	nullb_made=()
}

# verified_io DISK SECONDS [OPTION]...: random writes of mixed sizes, each block
# read back and compared; other bytes each time.
verified_io() {
	local target=$1 seconds=$2
	shift 2
	limit "$seconds" fio --name=v --filename="$target" --rw=randwrite --bsrange=512-128k \
		--blocksize_unaligned=0 --bs_is_seq_rand=0 --randrepeat=0 --size=12m --verify=crc32c \
		--verify_fatal=1 --verify_state_save=0 --iodepth=8 --ioengine=libaio --direct=1 \
		--minimal "$@" >"$tmp/fio" 2>&1 || { cat "$tmp/fio"; return 1; }
}

# verified_load DISK SECONDS [OPTION]...: one pass after the other for as long. (fio's own
# clock would end the writes and leave out the reading.)
verified_load() {
	local target=$1 end=$((SECONDS + $2))
	shift 2
	until [ "$SECONDS" -ge "$end" ]; do
		verified_io "$target" 140 "$@" || return
	done
}

# start_load DISK SECONDS [OPTION]...: the same in the background; it is $started.
start_load() {
	mkdir -p "$tmp/l"
	start 150 "$tmp/load" bash -c "$(declare -f limit verified_io verified_load)
		slow=$slow tmp=$tmp/l; verified_load $*"
}

# same_disks DISK DISK: not as this host remembers either; a target writes past its
# memory of its own disk.
same_disks() {
	blockdev --flushbufs "$1"
	blockdev --flushbufs "$2"
	cmp "$1" "$2"
}

# refused_io SECONDS COMMAND...: it fails, and by itself.
refused_io() {
	local rc=0
	limit "$@" || rc=$?
	[ "$rc" -eq 1 ] || fail "status $rc from a device that is gone"
}

# idle_but_for_pools: the core keeps the CQs it shares out as long as the device.
idle_but_for_pools() {
	(
		objects() { rdma resource show | sed -nE "/^[0-9]+: $driver/s/ cq [0-9]+//p" |
			cut -d: -f2-; }
		idle
	)
}

# tree DIR: files of many sizes below DIR, the same ones each time.
tree() {
	mkdir -p "$1/sub/deeper"
	cp -r /usr/share/doc/rdma-core "$1/sub/deeper/doc"
	local size
	for size in 0 1 4095 4096 4097 65535 1000000 3000001; do
		head -c "$size" /dev/zero | openssl enc -aes-128-ctr -nosalt \
			-pass "pass:$size" -md sha256 2>/dev/null >"$1/sub/$size"
	done
}

# wire_down, wire_up: lo, where all connections go, loses every packet.
wire_down() { tc qdisc add dev lo root netem loss 100%; }
wire_up() { tc qdisc del dev lo root 2>/dev/null || true; }

# long NAME FUNCTION [ARG]...: a test that runs only with LONG=1.
long() { [ -z "${LONG:-}" ] || t "$@"; }

# Targets keep their listeners from test to test.
after_test() { new_splats; }

# tree_survives: what is copied to $sd is there after a logout and a login. The
# suite has login, which sets $sd, and logout.
tree_survives() {
	login
	mkfs.ext4 -q "$sd"
	mkdir -p "$tmp/mnt" "$tmp/tree"
	tree "$tmp/tree"
	mount "$sd" "$tmp/mnt"
	cp -r "$tmp/tree/." "$tmp/mnt/"
	limit 60 umount "$tmp/mnt"
	logout
	login
	mount "$sd" "$tmp/mnt"
	diff -r "$tmp/tree/sub" "$tmp/mnt/sub"
	limit 60 umount "$tmp/mnt"
	e2fsck -fn "$sd"
	logout
}

# What an operator may remove by mistake, and how it is restored.
link_goes() { limit 30 rdma link delete "$dev"; }
link_back() { make_link "$dev" wd0; }
netdev_goes() { limit 30 ip link delete wd0; }
netdev_back() { topology_dummy; }
module_goes() { limit 30 rmmod "$driver"; }
module_back() { modprobe "$driver" && link_back; }

# gone_under_mount THING [SECONDS]: it goes under a mounted file system, which gets
# errors, not a hang; what was synced is there when THING and target are back. The suite
# has login, which sets $sd, logout, host_gives_up and target_back.
gone_under_mount() {
	login
	mkfs.ext4 -q "$sd"
	mkdir -p "$tmp/mnt" "$tmp/tree2"
	tree "$tmp/tree2"
	mount "$sd" "$tmp/mnt"
	cp -r "$tmp/tree2/." "$tmp/mnt/"
	sync -f "$tmp/mnt"
	"$1_goes"
	refused_io "${2:-30}" dd if=/dev/zero of="$tmp/mnt/lost" bs=64k count=16 conv=fsync
	limit 60 umount "$tmp/mnt"
	host_gives_up
	"$1_back"
	target_back
	login
	e2fsck -fp "$sd" || [ $? -eq 1 ]
	e2fsck -fn "$sd"
	mount "$sd" "$tmp/mnt"
	diff -r "$tmp/tree2/sub" "$tmp/mnt/sub"
	limit 60 umount "$tmp/mnt"
	logout
}
