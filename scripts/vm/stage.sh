# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Builds weft for a guest's kernel from a private copy of the sources, so that
# one working tree serves several kernels and several users at once, and
# installs it into a staging tree which later overlays the guest's root.
# Sourced after log.sh, cache.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# _stage_copy TARGET: sources as they are now, uncommitted ones included. Only
# files whose content differs are touched, so that make rebuilds just those.
_stage_copy() {
	mkdir -p "$1"
	rsync -rlp --checksum --delete \
		--exclude=/.git --filter=':- .gitignore' \
		--exclude='*.o' --exclude='*.gcno' --exclude='*.ko' --exclude='*.mod' --exclude='*.mod.c' \
		--exclude='.*.cmd' --exclude='.*.d' --exclude=/build \
		--exclude=Module.symvers --exclude=modules.order --exclude='*.so' \
		"$weft_top/" "$1/"
}

# kernel_make SRC ARGS...: make in SRC with the variables of a kernel, which is the one
# that kernel_describe (kernels.sh) was asked for. Always with W=1, so that linters,
# unit tests and guests build it once.
kernel_make() {
	local src=$1
	shift
	make -C "$src" -j"$(nproc)" W=1 KERNELDIR="$kernel_dir" "${kernel_words[@]}" "$@"
}

# Debian's root has /lib and /sbin as links into /usr; an overlay directory of
# that name would hide the link.
_stage_merge_usr() {
	local dir
	for dir in lib lib64 bin sbin; do
		if [ ! -d "$1/$dir" ] || [ -L "$1/$dir" ]; then continue; fi
		mkdir -p "$1/usr/$dir"
		cp -al --remove-destination "$1/$dir/." "$1/usr/$dir/"
		rm -rf "${1:?}/$dir"
	done
}

# _stage_base ROOT: the kernel's own modules, as hard links.
_stage_base() {
	local target=$1/usr/lib/modules
	[ -d "$target/$kernel_release" ] && return 0
	rm -rf "$1"
	mkdir -p "$target"
	cp -al "$kernel_modules" "$target/$kernel_release.part"
	rm -f "$target/$kernel_release.part"/{build,source}
	# depmod writes these anew; they must not be the originals.
	rm -f "$target/$kernel_release.part"/modules.{dep,alias,symbols,softdep,devname}*
	mv "$target/$kernel_release.part" "$target/$kernel_release"
}

# _stage_depmod ROOT: only when a module changed since the last time.
_stage_depmod() {
	local dir=$1/usr/lib/modules/$kernel_release
	[ -s "$dir/modules.dep" ] &&
		[ -z "$(find "$dir/updates" -newer "$dir/modules.dep" 2>/dev/null)" ] &&
		return 0
	# depmod insists on ROOT/lib/modules
	ln -sfn usr/lib "$1/lib"
	depmod -b "$1" "$kernel_release"
	rm -f "$1/lib"
}

_stage_install() {
	local fresh=$1
	rm -rf "$fresh"
	kernel_make "$kernel_build/src" || return 1
	kernel_make "$kernel_build/src" install DESTDIR="$fresh"
}

# _stage_weft ROOT: build, install aside, and copy over what changed.
_stage_weft() {
	[ -e "$weft_top/Makefile" ] ||
		die "there is no Makefile to build weft with (try --no-weft)"
	_stage_copy "$kernel_build/src"
	step "building weft for $kernel_name ($kernel_release)" "$kernel_build/build.log" \
		_stage_install "$kernel_build/installed" || die "weft does not build"
	[ -d "$kernel_build/installed" ] || die "'make install' installed nothing"
	_stage_merge_usr "$kernel_build/installed"
	rsync -rlp --checksum --keep-dirlinks "$kernel_build/installed/" "$1/"
}

# stage_run WANT-WEFT SNAPSHOT: bring the kernel's staging tree up to date and
# make a private snapshot of it for one run.
_stage_run() {
	local root=$kernel_build/root
	_stage_base "$root"
	if [ "$1" = yes ]; then _stage_weft "$root"; fi
	_stage_depmod "$root"
	cp -al "$root" "$2"
}

stage_run() {
	mkdir -p "$kernel_build"
	with_lock "build-${kernel_build##*/}" _stage_run "$@"
}
