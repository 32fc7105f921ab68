# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The files of a guest whose CPU is not this machine's: Debian packages, unpacked into the cache.
# None of their scripts runs; the little of their work that a guest needs is done here.
# Sourced after log.sh, cache.sh, deps.sh, apt-suite.sh, distro.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# _userland_download SUITE: the packages of the list, with what they depend on.
_userland_download() {
	local packages
	mapfile -t packages < <(deps_of userland)
	suite_apt "$1" apt-get -y --no-install-recommends --download-only install "${packages[@]}"
}

# A package has files in /bin, which is a link into /usr.
_userland_links() {
	local dir
	for dir in bin lib lib64 sbin; do
		mkdir -p "$1/usr/$dir"
		ln -s "usr/$dir" "$1/$dir"
	done
}

# What packages leave to their scripts: users, hosts, alternatives.
_userland_settle() {
	local kind
	mkdir -p "$1"/{dev,etc,proc,root,run,sys,tmp,var/tmp}
	for kind in passwd group; do
		cp "$1/usr/share/base-passwd/$kind.master" "$1/etc/$kind"
	done
	echo '127.0.0.1 localhost' >"$1/etc/hosts"
	ln -sf mawk "$1/usr/bin/awk"
	[ -e "$1/usr/bin/sh" ] || ln -s dash "$1/usr/bin/sh"
}

_userland_unpack() {
	local suite=$1 root=$2 deb
	_userland_download "$suite" || return 1
	_userland_links "$root"
	for deb in "$weft_cache/apt/$suite"/cache/archives/*.deb; do
		echo "unpacking ${deb##*/}"
		dpkg-deb --fsys-tarfile "$deb" |
			tar -C "$root" -x --numeric-owner --keep-directory-symlink || return 1
	done
	_userland_settle "$root"
}

_userland_make() {
	local suite=$1 root=$2
	[ ! -d "$root" ] || return 0
	rm -rf "$root.part"
	# Only what this list asks for is unpacked.
	rm -f "$weft_cache/apt/$suite"/cache/archives/*.deb
	mkdir -p "$root.part"
	step "unpacking the programs of ${suite#*:} guests" "$root.log" \
		_userland_unpack "$suite" "$root.part" || return 1
	mv "$root.part" "$root"
}

# userland ARCH: the root of guests of that architecture, of this machine's release.
userland() {
	local suite root
	suite=$(distro_codename):$1
	root=$(cache_dir roots)/${suite/:/-}-$(hash_of "$weft_lib/userland.sh" "$(deps_of userland)")
	if [ ! -d "$root" ]; then
		suite_ready "$suite" || return 1
		with_lock "root-$suite" _userland_make "$suite" "$root" || return 1
	fi
	printf '%s\n' "$root"
}
