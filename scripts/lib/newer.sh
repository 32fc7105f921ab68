# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# A perftest newer than the machine's, with the C library and all others that it
# wants beside it: unpacked into the cache, never installed.
# Sourced after log.sh, cache.sh, apt-suite.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

newer_suite=trixie
newer_packages="perftest libibverbs1 ibverbs-providers librdmacm1t64 libibumad3 libpci3 libudev1 libnl-3-200
	libnl-route-3-200 libc6 zlib1g libcap2"

_newer_unpack() {
	local package deb
	for package in $newer_packages; do
		deb=$(suite_fetch "$newer_suite" "$package") || return 1
		echo "unpacking $deb"
		dpkg-deb -x "$deb" "$1.part" || return 1
	done
}

# A program finds its libraries by the loader that starts it. The plugin of weft
# is the machine's own: it fits every libibverbs of its private ABI number.
_newer_wrap() {
	local root=$1 program lib loader
	lib=usr/lib/$(gcc -print-multiarch)
	loader=$(basename "$root.part/$lib"/ld-linux-*.so.*)
	mkdir -p "$root.part/bin"
	for program in "$root.part"/usr/bin/*; do
		cat >"$root.part/bin/${program##*/}" <<-EOF
			#!/bin/sh
			root=$root
			exec "\$root/$lib/$loader" \\
				--library-path "\$root/$lib" \\
				"\$root/usr/bin/${program##*/}" "\$@"
		EOF
		chmod +x "$root.part/bin/${program##*/}"
	done
}

_newer_make() {
	local root=$1
	[ -d "$root/bin" ] && return 0
	rm -rf "$root.part"
	mkdir -p "$root.part"
	step "unpacking the perftest of $newer_suite" "$root.log" _newer_unpack "$root" || return 1
	_newer_wrap "$root"
	mv "$root.part" "$root"
}

# newer_perftest: the directory with its programs.
newer_perftest() {
	local root
	root=$(cache_dir newer)/perftest-$newer_suite-$(hash_of "$newer_packages")
	with_lock newer _newer_make "$root" || return 1
	printf '%s\n' "$root/bin"
}

_program_make() {
	local deb root=$1
	[ -d "$root" ] && return 0
	deb=$(suite_fetch bookworm "$2") || return 1
	rm -rf "$root.part"
	dpkg-deb -x "$deb" "$root.part" && mv "$root.part" "$root"
}

# These are programs of one file, taken from the oldest release that has weft.
node_exporter() {
	local root
	root=$(cache_dir newer)/node-exporter-bookworm
	with_lock newer _program_make "$root" prometheus-node-exporter || return 1
	printf '%s\n' "$root/usr/bin/prometheus-node-exporter"
}

# kubernetes_client: the directory of kubectl. (Debian's package cannot be installed beside
# Kubernetes' own.)
kubernetes_client() {
	local root
	root=$(cache_dir newer)/kubernetes-client-bookworm
	with_lock newer _program_make "$root" kubernetes-client || return 1
	printf '%s\n' "$root/usr/bin"
}
