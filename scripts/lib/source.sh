# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Kernel source trees from Debian's linux-source packages, and what is built
# of them: User-Mode Linux kernels and siw, the peer, as a module.
# Sourced after log.sh, cache.sh, apt-suite.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

weft_fragments=$weft_top/scripts/kernel-config
# Where below a UML kernel's directory its modules are installed.
uml_installed=root

# source_newest: "SUITE PACKAGE VERSION" of the newest linux-source there is.
# The answer is kept for a week, so that a running project does not rebuild
# its kernels daily; WEFT_REFRESH=1 asks again.
source_newest() {
	local memo
	memo=$(cache_dir kernels)/newest-source
	if [ -n "${WEFT_REFRESH:-}" ] || ! fresh "$memo" 7; then
		with_lock newest-source _source_newest_ask "$memo"
	fi
	[ -s "$memo" ] || die "no suite offers a linux-source package"
	cat "$memo"
}

_source_newest_ask() {
	local found
	[ -z "${WEFT_REFRESH:-}" ] && fresh "$1" 7 && return 0
	found=$(suite_best 'linux-source-[0-9.]+' sid trixie-backports trixie \
		bookworm-backports) || true
	while read -r suite package version; do
		[ -n "$package" ] || continue
		source_tree "$suite" "$package" "$version" >/dev/null || continue
		printf '%s %s %s\n' "$suite" "$package" "$version" >"$1"
		return 0
	done <<<"$found"
	if [ -s "$1" ]; then
		warn "the archive cannot be asked; using $(cat "$1")"
		touch "$1"
	fi
}

_source_unpack() {
	local deb=$1 target=$2 work=$2.part
	rm -rf "$work"
	mkdir -p "$work"
	dpkg-deb -x "$deb" "$work" &&
		tar -C "$work" -xf "$work"/usr/src/linux-source-*.tar.* &&
		rm -rf "${work:?}/usr" &&
		mv "$work"/linux-source-* "$target" &&
		rm -rf "$work"
}

_source_tree() {
	local suite=$1 package=$2 version=$3 target=$4 deb
	[ -e "$target/Makefile" ] && return 0
	deb=$(suite_fetch "$suite" "$package") || return 1
	step "unpacking $package $version" "$target.log" \
		_source_unpack "$deb" "$target"
}

# source_tree SUITE PACKAGE VERSION: unpacked once; prints the directory.
source_tree() {
	local target
	target=$(cache_dir src)/${2}_${3//:/_}
	[ -e "$target/Makefile" ] ||
		with_lock "src-$2" _source_tree "$1" "$2" "$3" "$target" || return 1
	printf '%s\n' "$target"
}

# --- User-Mode Linux ---------------------------------------------------------

# _uml_patch SRC: small mends that the suites need time and again; one that
# does not fit a newer source is left out. None changes what a kernel does, but that an
# idle one loses no interrupt. A kernel that was built before one came stays as it is.
_uml_patch() {
	local mend
	for mend in "$weft_fragments"/uml-*.patch; do
		if patch -d "$1" -p1 -R -s -f --dry-run <"$mend" >/dev/null; then
			echo "$mend: applied before"
		elif patch -d "$1" -p1 -N -s -f --dry-run <"$mend" >/dev/null; then
			patch -d "$1" -p1 -N -s -f <"$mend"
		else
			echo "$mend: does not fit, left out"
		fi
	done
}

_uml_configure() {
	local src=$1 out=$2 fragment
	shift 2
	mkdir -p "$out"
	_uml_patch "$src"
	make -C "$src" O="$out" ARCH=um SUBARCH=x86_64 defconfig
	cat "$@" >"$out/weft.config"
	"$src/scripts/kconfig/merge_config.sh" -m -O "$out" "$out/.config" \
		"$out/weft.config"
	make -C "$src" O="$out" ARCH=um SUBARCH=x86_64 olddefconfig
	for fragment in CONFIG_INFINIBAND_USER_ACCESS CONFIG_RDMA_SIW CONFIG_MODULES \
		$(grep -ohE '^CONFIG_(K[AC]SAN|GCOV_KERNEL)' "$out/weft.config"); do
		grep -q "^$fragment=" "$out/.config" || {
			echo "$fragment did not survive the configuration"
			return 1
		}
	done
}

_uml_build() {
	local src=$1 out=$2
	# Module.symvers is complete only after both targets.
	make -C "$src" O="$out" ARCH=um SUBARCH=x86_64 -j"$(nproc)" linux modules &&
		make -C "$src" O="$out" ARCH=um SUBARCH=x86_64 \
			INSTALL_MOD_PATH="$out/$uml_installed" modules_install
}

_uml_make() {
	local src=$1 out=$2 name=$3 log=$2.log
	shift 3
	[ -e "$out/.weft-complete" ] && return 0
	step "configuring $name ($(basename "$src"))" "$log" \
		_uml_configure "$src" "$out" "$@" || return 1
	step "building $name: five to twenty minutes on two CPUs, once" "$log" \
		_uml_build "$src" "$out" || return 1
	touch "$out/.weft-complete"
}

# uml_tree NAME FRAGMENT...: the build tree of the newest kernel as UML with
# these config fragments. One kernel is built at a time: each takes all CPUs.
uml_tree() {
	local name=$1 found src key out
	shift
	found=$(source_newest)
	read -r -a found <<<"$found"
	src=$(source_tree "${found[@]}") || die "cannot get ${found[1]}"
	key=$(hash_of "${found[*]:1}" "$@" "$(gcc -dumpfullversion)")
	out=$(cache_dir kernels)/$name-${found[1]#linux-source-}-$key
	if [ ! -e "$out/.weft-complete" ]; then
		with_lock build-kernel _uml_make "$src" "$out" "$name" "$@" ||
			die "no $name kernel"
	fi
	printf '%s\n' "$out"
}
