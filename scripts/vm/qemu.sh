# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Booting one of Debian's kernels in QEMU. Sourced after run.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

qemu_modules="virtio_pci virtio_console 9pnet_virtio 9p overlay"

# What to emulate of a CPU: the largest without what is slower to emulate than to do without.
# On amd64 that is page tables of five levels, copies by REP MOVSB (byte by byte), CRC32 (a loop
# over bits); on arm64 pointer authentication and SVE, which this one has not.
qemu_cpu_amd64=max,la57=off,erms=off,fsrm=off,sse4.2=off
qemu_cpu_arm64=neoverse-n1

# qemu_describe: for the CPU of the kernel that kernel_describe was asked for, set
#   qemu_program qemu_console qemu_cpu (what is emulated) qemu_machine (words)
qemu_describe() {
	qemu_machine=()
	case $kernel_cpu in
	amd64) qemu_program=qemu-system-x86_64 qemu_console=ttyS0 qemu_cpu=$qemu_cpu_amd64 ;;
	arm64)
		qemu_program=qemu-system-aarch64 qemu_console=ttyAMA0 qemu_cpu=$qemu_cpu_arm64
		qemu_machine=(-machine virt)
		;;
	*) die "no guests on $kernel_cpu: amd64 and arm64 only" ;;
	esac
}

_initramfs_modules() {
	local dir=$1 root=${kernel_modules%/lib/modules/*} m path
	mkdir -p "$dir/modules"
	for m in $qemu_modules; do
		modprobe -d "$root" -S "$kernel_release" --show-depends "$m"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
		while read -r path; do
			m=$(basename "$path")
			case $m in
			*.xz) xz -dc "$path" >"$dir/modules/${m%.xz}" ;;
			*) cp "$path" "$dir/modules/" ;;
			esac
			printf '%s\n' "${m%.xz}" >>"$dir/modules.order"
		done
}

_initramfs_make() {
	local target=$1 dir=$1.dir
	[ -s "$target" ] && return 0
	rm -rf "$dir"
	mkdir -p "$dir"/{bin,dev}
	cp "$kernel_userland/bin/busybox" "$dir/bin/"
	cp "$vm_dir/initramfs-init" "$dir/init"
	chmod 755 "$dir/init"
	_initramfs_modules "$dir"
	(cd "$dir" && find . | cpio -o -H newc --quiet -R 0:0) >"$target.part"
	mv "$target.part" "$target"
	rm -rf "$dir"
}

# initramfs: path of the first-stage file system, made once per kernel.
initramfs() {
	local target
	target=$(cache_dir initramfs)/$kernel_name-$(hash_of "$kernel_image" \
		"$vm_dir/initramfs-init" "$qemu_modules").cpio
	[ -s "$target" ] || with_lock initramfs _initramfs_make "$target"
	printf '%s\n' "$target"
}

# _kvm_probe ANSWER: does a guest reach user space under KVM? Some machines
# have a /dev/kvm under which guests hang.
_kvm_probe() {
	local log=$1.log
	[ -s "$1" ] && return 0
	say "trying KVM, once (up to 25 s)"
	timeout -k 1 25 "$qemu_program" "${qemu_machine[@]}" -nodefaults -no-user-config \
		-display none -no-reboot -accel kvm -cpu host -m 512 -kernel "$kernel_image" \
		-initrd "$(initramfs)" -serial "file:$log" \
		-append "console=$qemu_console panic=-1 weft.probe" </dev/null >/dev/null 2>&1 || true
	if grep -aq 'weft-probe: user space reached' "$log"; then
		echo kvm >"$1"
	else
		echo tcg >"$1"
		say "KVM does not work here; emulating (slower)"
	fi
}

# qemu_accel: the -accel and -cpu words for this machine.
qemu_accel() {
	local answer=tcg memo
	if [ -z "$kernel_cross" ] && [ -r /dev/kvm ] && [ -w /dev/kvm ]; then
		memo=$(cache_dir kvm)/$(hash_of "$(uname -r)" "$kernel_release" \
			"$("$qemu_program" --version)" "$(grep -m1 -E 'model name|CPU part' /proc/cpuinfo)")
		[ -s "$memo" ] || with_lock kvm _kvm_probe "$memo"
		answer=$(cat "$memo")
	fi
	if [ "$answer" = kvm ]; then
		echo "-accel kvm -cpu host"
	else
		echo "-accel tcg,thread=multi -cpu $qemu_cpu"
	fi
}

_share() {
	printf '%s\n' -fsdev "local,id=$1,path=$2,security_model=none,multidevs=remap${3:+,$3}" \
		-device "virtio-9p-pci,fsdev=$1,mount_tag=$1"
}

# _lan OWN,OTHER: a cable between two guests, as datagrams between two sockets, with
# a MAC address made of the socket's name. Without an argument the network card leads
# nowhere: it is there because some programs look for the netdev that an RDMA device
# shares its PCI function with.
_lan() {
	local own=${1%,*} other=${1#*,}
	if [ -z "$1" ]; then
		printf '%s\n' -netdev hubport,id=lan,hubid=0 \
			-device virtio-net-pci,netdev=lan,romfile=
		return
	fi
	printf '%s\n' -netdev "dgram,id=lan,local.type=unix,local.path=$own,\
remote.type=unix,remote.path=$other" \
		-device "virtio-net-pci,netdev=lan,romfile=,mac=52:54:00:$(hash_of "$own" |
			sed -E 's/(..)(..)(..).*/\1:\2:\3/')"
}

# qemu_boot RUNDIR [LAN]: start the guest in the background; sets vm_pid.
qemu_boot() {
	local run=$1 words initrd append
	qemu_describe
	initrd=$(initramfs)
	read -r -a words <<<"$(qemu_accel)"
	mapfile -t -O "${#words[@]}" words < <(
		_share host "${kernel_userland:-/}" readonly=on
		[ -z "$kernel_userland" ] || _share own / readonly=on
		_share stage "$run/stage" readonly=on
		_share results "$run/results"
		_lan "${2:-}"
	)
	append="console=$qemu_console ignore_loglevel oops=panic panic=-1 mitigations=off"
	append+=" nokaslr tsc=reliable net.ifnames=0"
	# On a busy machine an emulated CPU may not run for seconds. One that is stuck for
	# minutes is so for good.
	append+=" watchdog_thresh=60 softlockup_panic=1 rcupdate.rcu_cpu_stall_timeout=120"
	: >"$run/console.log"
	# The port counts as connected only while stdin has not ended.
	mkfifo "$run/stdin"
	setsid "$qemu_program" "${qemu_machine[@]}" -nodefaults -no-user-config -display none \
		-no-reboot "${words[@]}" -smp "$opt_smp" -m "${opt_mem:-2048}" \
		-kernel "$kernel_image" -initrd "$initrd" -append "$append" \
		-serial "file:$run/console.log" \
		-device virtio-serial-pci -chardev stdio,id=out,signal=off \
		-device virtserialport,chardev=out,name=weft.out \
		-device virtio-rng-pci \
		<>"$run/stdin" 2>"$run/qemu.log" 9>&- &
	vm_pid=$!
}
