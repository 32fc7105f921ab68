# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Debian's own kernels, unpacked into the cache (never installed): image with
# modules, and headers made usable as KERNELDIR where they lie. NAME is a series, 6.1, or one
# for another architecture, 6.1-arm64.
# Sourced after log.sh, cache.sh, apt-suite.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# distro_codename: of this machine's release.
distro_codename() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release; }

# distro_own: the kernel series of this machine's release; KERNEL= chooses another one.
distro_own() {
	case ${KERNEL:-$(distro_codename)} in
	bookworm) echo 6.1 ;;
	trixie) echo 6.12 ;;
	6.1 | 6.12) echo "$KERNEL" ;;
	*) die "KERNEL=${KERNEL:-} on '$(distro_codename)': the choice is KERNEL=6.1 or KERNEL=6.12" ;;
	esac
}

# distro_arch NAME: the architecture of a kernel.
distro_arch() { case $1 in *-*) echo "${1#*-}" ;; *) host_arch ;; esac; }

# distro_suites NAME: where a kernel series is looked for. 6.12 is the one for this machine's
# compiler: Debian 13's own, or its backport to Debian 12.
distro_suites() {
	local suites suite arch=
	case $1 in *-*) arch=:${1#*-} ;; esac
	case ${1%-*} in
	6.1) suites="bookworm-security bookworm" ;;
	6.12) case $(distro_codename) in
		trixie) suites="trixie-security trixie" ;;
		*) suites=bookworm-backports ;;
		esac ;;
	*) return 1 ;;
	esac
	for suite in $suites; do echo "$suite$arch"; done
}

# _distro_ask NAME: "SUITE IMAGE VERSION" of the newest image of a series.
_distro_ask() {
	local regex suites series=${1%-*}
	regex="linux-image-${series//./\\.}\\.[0-9]+(-[0-9]+|\\+[a-z0-9.]+)-$(distro_arch "$1")"
	mapfile -t suites < <(distro_suites "$1")
	suite_best "$regex" "${suites[@]}" | sed -n 1p
}

# _distro_resolve NAME MEMO: ask at most weekly, keep the old answer offline.
_distro_resolve() {
	local found
	[ -z "${WEFT_REFRESH:-}" ] && fresh "$2" 7 && return 0
	found=$(_distro_ask "$1") || true
	if [ -n "$found" ]; then
		printf '%s\n' "$found" >"$2"
	elif [ -s "$2" ]; then
		warn "the archive cannot be asked; using $(cat "$2")"
		touch "$2"
	else
		warn "no suite offers a $1 kernel image"
		return 1
	fi
}

# _distro_headers SUITE HEADERS: that package and all it needs of the kernel.
_distro_headers() {
	local depends
	printf '%s\n' "$2"
	depends=$(suite_field "$1" "$2" Depends) || return 1
	tr ',' '\n' <<<"$depends" | sed -n 's/^ *\(linux-\(headers\|kbuild\)-[^ ]*\).*/\1/p'
}

# _distro_relocate ROOT: the headers name each other by absolute paths.
_distro_relocate() {
	local root=$1 file
	find "$root/usr/src" -maxdepth 2 -name Makefile -type f | while read -r file; do
		sed -i -E "s#/usr/(src|lib)/linux-#$root/usr/\1/linux-#g" "$file"
	done
}

# The programs of kbuild are those of this machine, whichever architecture they build for.
_distro_unpack() {
	local suite=$1 image=$2 root=$3 release=${2#linux-image-} package from deb
	for package in "$image" $(_distro_headers "$suite" "linux-headers-$release"); do
		from=$suite
		case $package in linux-kbuild-*) from=${suite%:*} ;; esac
		deb=$(suite_fetch "$from" "$package") || return 1
		echo "unpacking $package"
		dpkg-deb -x "$deb" "$root.part" || return 1
	done
	if [ -d "$root.part/usr/lib/modules/$release" ]; then
		mkdir -p "$root.part/lib/modules"
		cp -al "$root.part/usr/lib/modules/$release" "$root.part/lib/modules/"
	fi
	rm -f "$root.part/lib/modules/$release"/{build,source}
	depmod -b "$root.part" "$release" || return 1
	mv "$root.part" "$root"
	_distro_relocate "$root"
}

_distro_make() {
	local name=$1 suite=$2 image=$3 version=$4 root=$5
	[ -e "$root/.weft-complete" ] && return 0
	rm -rf "$root" "$root.part"
	mkdir -p "$root.part"
	step "unpacking Debian's $name kernel ($version)" "$root.log" \
		_distro_unpack "$suite" "$image" "$root" || return 1
	printf '%s\n' "${image#linux-image-}" >"$root/.weft-complete"
}

# distro_root NAME: the directory with boot/, lib/modules/ and usr/src/.
distro_root() {
	local name=$1 memo found root
	memo=$(cache_dir kernels)/newest-$name
	[ -z "${WEFT_REFRESH:-}" ] && fresh "$memo" 7 ||
		with_lock "newest-$name" _distro_resolve "$name" "$memo" || return 1
	read -r -a found <"$memo"
	root=$(cache_dir kernels)/$name-${found[2]//[:~]/_}
	[ -e "$root/.weft-complete" ] ||
		with_lock "kernel-$name" _distro_make "$name" "${found[@]}" "$root" ||
		return 1
	printf '%s\n' "$root"
}

