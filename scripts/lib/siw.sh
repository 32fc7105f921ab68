# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# siw, the peer, as a module: unmodified, and in kinds that differ in one choice
# which its authors fixed at compile time. Built from the kernel's own source in
# the cache; nothing of it is kept here. Sourced after kernels.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

siw_kinds=(plain crc nocrc rev1 p2p p2p-write p2p-read)

# siw_edits KIND: what sed does to siw_main.c and siw_cm.c.
siw_edits() {
	local p2p='s/^const bool peer_to_peer;/const bool peer_to_peer = true;/'
	case $1 in
	plain) ;;
	# asks for CRC, and refuses a reply without
	crc) echo 's/^const bool mpa_crc_required;/const bool mpa_crc_required = true;/' ;;
	# refuses CRC
	nocrc) echo 's/^const bool mpa_crc_strict;/const bool mpa_crc_strict = true;/' ;;
	# asks with revision 1; that it refused revision 2 is not to be had: its listener
	# does not survive a request it refuses (an underflow of its references)
	rev1) echo '/^u_char mpa_version/s/MPA_REVISION_2/MPA_REVISION_1/' ;;
	# asks for peer-to-peer mode, offering an empty Write, an empty Read, or both
	p2p) echo "$p2p" ;;
	p2p-write)
		echo "$p2p"
		echo '/^static __be16 rtr_type/s/= .*;/= MPA_V2_RDMA_WRITE_RTR;/'
		;;
	p2p-read)
		echo "$p2p"
		echo '/^static __be16 rtr_type/s/= .*;/= MPA_V2_RDMA_READ_RTR;/'
		;;
	*) die "no kind of siw is called $1" ;;
	esac
}

# _siw_edit DIR KIND: every edit has to find its line.
_siw_edit() {
	local edit before
	while IFS= read -r edit; do
		before=$(cat "$1"/siw_main.c "$1"/siw_cm.c | sha256sum)
		sed -i -e "$edit" "$1/siw_main.c" "$1/siw_cm.c"
		if [ "$before" = "$(cat "$1"/siw_main.c "$1"/siw_cm.c | sha256sum)" ]; then
			echo "siw has no line for: $edit"
			return 1
		fi
	done < <(siw_edits "$2")
}

# All kinds are built in one directory, so that only two files are compiled anew.
_siw_build() {
	local src=$1/drivers/infiniband/sw/siw work=$2.build target=$2 kind=$3
	if [ ! -d "$work" ]; then
		cp -r "$src" "$work.part"
		mv "$work.part" "$work"
	fi
	cp "$src"/siw_main.c "$src"/siw_cm.c "$work"
	_siw_edit "$work" "$kind" || return 1
	make -C "$kernel_dir" "${kernel_words[@]}" M="$work" CONFIG_RDMA_SIW=m \
		-j"$(nproc)" modules || return 1
	mkdir -p "$target/$kind"
	cp "$work/siw.ko" "$target/$kind/siw.ko.part"
	mv "$target/$kind/siw.ko.part" "$target/$kind/siw.ko"
}

_siw_make() {
	[ -s "$2/$3/siw.ko" ] ||
		step "building siw ($3) for $kernel_release" "$2.log" _siw_build "$@"
}

# kernel_siw NAME KIND...: builds those siw modules (Debian's kernels come without
# any) and sets siw_dir to the directory with KIND/siw.ko.
kernel_siw() {
	local src kind
	kernel_describe "$1"
	shift
	siw_dir=$(cache_dir siw)/$kernel_name-$(hash_of "$kernel_dir" "$weft_lib/siw.sh")
	for kind; do
		[ ! -s "$siw_dir/$kind/siw.ko" ] || continue
		src=$(kernel_source "$kernel_name") || die "no source of siw for $kernel_name"
		with_lock "siw-$kernel_name" _siw_make "$src" "$siw_dir" "$kind" ||
			die "no siw ($kind) for $kernel_name"
	done
}
