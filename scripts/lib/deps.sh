# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Missing Debian packages: named, then installed. Sourced by all.sh. The lists are
# packages/<group>.list.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

deps_lists=$weft_top/scripts/lib/packages

# deps_of GROUP...: the packages of those groups, one a line; some are of one release, or of one
# architecture, only.
deps_of() {
	local group list codename arch
	codename=$(distro_codename)
	arch=$(host_arch)
	for group; do
		[ -r "$deps_lists/$group.list" ] || die "no package group '$group'"
		for list in "$deps_lists/$group"{,"-$codename","-$arch"}.list; do
			[ ! -r "$list" ] || sed '/^#/d;/^$/d' "$list"
		done
	done | sort -u
}

_deps_installed() {
	dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null |
		sed -n 's/^ii  *//p' | sort -u
}

# deps_missing GROUP...: what is not installed, one a line.
deps_missing() { deps_of "$@" | comm -23 - <(_deps_installed); }

_as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		die "need root to install packages; run: sudo apt-get install" \
			"--no-install-recommends ${deps_wanted[*]}"
	fi
}

# The questions some packages would ask, answered: no capture for
# unprivileged users, no daemons started.
_deps_preseed() {
	_as_root debconf-set-selections <<-'EOF'
		wireshark-common wireshark-common/install-setuid boolean false
		iperf3 iperf3/start_daemon boolean false
	EOF
}

_deps_apt() {
	_as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q \
		-o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@"
}

# What is installed for the guests is not started here, unless this machine has
# a policy of its own.
_deps_quietly() {
	local policy=/usr/sbin/policy-rc.d status=0
	[ ! -e "$policy" ] || { "$@"; return; }
	printf '#!/bin/sh\nexit 101\n' | _as_root tee "$policy" >/dev/null
	_as_root chmod 755 "$policy"
	"$@" || status=$?
	_as_root rm -f "$policy"
	return "$status"
}

_deps_install() {
	_deps_preseed || return 1
	# A list that is there may be too old to download from: then refresh it.
	_deps_apt install --no-install-recommends "$@" && return 0
	_deps_apt update && _deps_apt install --no-install-recommends "$@"
}

_deps_satisfy() {
	local log=$weft_cache/deps.log
	mapfile -t deps_wanted < <(deps_missing "$@")
	[ "${#deps_wanted[@]}" -gt 0 ] || return 0
	say "missing Debian packages: ${deps_wanted[*]}"
	step "installing ${#deps_wanted[@]} packages" "$log" \
		_deps_quietly _deps_install "${deps_wanted[@]}" ||
		die "could not install: ${deps_wanted[*]}"
}

# deps_satisfy GROUP...: install what is missing of those groups.
deps_satisfy() {
	[ -n "${WEFT_NO_DEPS:-}" ] && return 0
	[ -z "$(deps_missing "$@")" ] || with_lock deps _deps_satisfy "$@"
}
