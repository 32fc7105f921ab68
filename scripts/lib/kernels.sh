# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The kernels that tests run on, by name. Sourced after log.sh, cache.sh,
# apt-suite.sh, source.sh, distro.sh, userland.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# shellcheck disable=SC2034  # the results are for the sourcing scripts
# kernel_describe NAME: make the kernel available and set
#   kernel_name kernel_release kernel_dir (KERNELDIR) kernel_image
#   kernel_modules (lib/modules/RELEASE) kernel_arch (empty or um)
#   kernel_build (where weft is built and staged for it)
#   kernel_cpu (the architecture, as Debian calls it); and for one that is not this machine's
#   kernel_cross (CROSS_COMPILE) kernel_userland (the root of its guests), which else are empty
#   kernel_words (what make is told besides KERNELDIR)
# Where WEFT_COVERAGE is set, uml is a kernel that counts what code of modules runs
# (scripts/coverage).
kernel_describe() {
	local name=${1%"-$(host_arch)"}
	kernel_name=$name
	kernel_cpu=$(host_arch) kernel_cross='' kernel_userland=''
	case $name in
	6.1 | 6.12) _kernel_distro "$name" ;;
	6.1-arm64 | 6.12-arm64) _kernel_foreign "$name" aarch64-linux-gnu- ;;
	uml)
		_kernel_uml "uml${WEFT_COVERAGE:+-gcov}" "$weft_fragments/uml.config" \
			${WEFT_COVERAGE:+"$weft_fragments/uml-gcov.config"}
		;;
	uml-debug)
		_kernel_uml uml-debug "$weft_fragments/uml.config" \
			"$weft_fragments/uml-debug.config"
		;;
	uml-kcsan)
		_kernel_uml uml-kcsan "$weft_fragments/uml.config" \
			"$weft_fragments/uml-kcsan.config"
		;;
	uml-consumers)
		_kernel_uml uml-consumers "$weft_fragments/uml.config" \
			"$weft_fragments/uml-consumers.config"
		;;
	uml-wire)
		_kernel_uml uml-wire "$weft_fragments/uml.config" "$weft_fragments/uml-wire.config"
		;;
	*) die "unknown kernel '$1': 6.1, 6.12, 6.1-arm64, 6.12-arm64, uml, uml-debug, uml-kcsan," \
		"uml-consumers, uml-wire" ;;
	esac
	kernel_words=(${kernel_arch:+"ARCH=$kernel_arch"}
		${kernel_cross:+"CROSS_COMPILE=$kernel_cross" "SYSROOT=$kernel_userland"})
	[ "$name:${WEFT_COVERAGE:+counts}" != uml:counts ] || kernel_words+=(GCOV_PROFILE=y)
	kernel_build=$weft_cache/build/$kernel_name-$(hash_of "$kernel_dir" "$weft_top")
}

_kernel_distro() {
	local root
	root=$(distro_root "$1") || die "no $1 kernel"
	kernel_release=$(cat "$root/.weft-complete")
	kernel_dir=$root/usr/src/linux-headers-$kernel_release
	kernel_image=$root/boot/vmlinuz-$kernel_release
	kernel_modules=$root/lib/modules/$kernel_release
	kernel_arch=
}

# _kernel_foreign NAME CROSS: Debian's kernel for another CPU, which QEMU emulates.
_kernel_foreign() {
	kernel_cpu=$(distro_arch "$1")
	deps_satisfy "$kernel_cpu"
	kernel_cross=$2
	kernel_userland=$(userland "$kernel_cpu") || die "no programs for $kernel_cpu"
	_kernel_distro "$1"
}

_kernel_uml() {
	[ "$(host_arch)" = amd64 ] || die "User-Mode Linux runs on amd64 only, not on $(host_arch)"
	kernel_dir=$(uml_tree "$@") || exit 1
	kernel_release=$(cat "$kernel_dir/include/config/kernel.release")
	kernel_image=$kernel_dir/linux
	kernel_modules=$kernel_dir/$uml_installed/lib/modules/$kernel_release
	kernel_arch=um
}

# kernel_source NAME: the source tree it is made of (for checkpatch, siw).
kernel_source() {
	local found suites series=${1%-*}
	case $1 in
	6.1 | 6.12 | *-arm64)
		mapfile -t suites < <(distro_suites "$1")
		found=$(suite_best "linux-source-${series//./\\.}" "${suites[@]}" | sed -n 1p)
		;;
	*) found=$(source_newest) ;;
	esac
	[ -n "$found" ] || die "no suite offers the source of $1"
	read -r -a found <<<"$found"
	source_tree "${found[@]}"
}
