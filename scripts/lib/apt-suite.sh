# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Debian packages of suites that the machine is not set up for, through an apt
# configuration of our own in the cache: nothing under /etc is edited, nothing
# is installed. Sourced after log.sh and cache.sh. Works without root.
# A SUITE is that of this machine's architecture; bookworm:arm64 is that of another one.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

weft_mirror=${WEFT_MIRROR:-http://deb.debian.org/debian}
weft_security_mirror=${WEFT_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
suite_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# host_arch: this machine's architecture, as Debian calls it.
host_arch() { dpkg --print-architecture; }

# suite_arch SUITE: the architecture of its packages.
suite_arch() { case $1 in *:*) echo "${1#*:}" ;; *) host_arch ;; esac; }

# suite_entry SUITE KEYRING: the line of a suite in a list of sources. With -src at its end it is
# the suite's source packages, which have a package list of their own.
suite_entry() {
	local mirror=$weft_mirror name=${1%:*} suite type=deb
	suite=${name%-src}
	case $suite in *-security) mirror=$weft_security_mirror ;; esac
	[ "$suite" = "$name" ] || type="deb-src"
	printf '%s [signed-by=%s] %s %s main\n' "$type" "$2" "$mirror" "$suite"
}

# suite_apt SUITE TOOL ARGS...: apt-get or apt-cache that sees only SUITE.
suite_apt() {
	local root=$weft_cache/apt/$1 tool=$2 arch
	arch=$(suite_arch "$1")
	shift 2
	"$tool" -q \
		-o Dir::Etc::sourcelist="$root/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferences=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null \
		-o Dir::State="$root/state" \
		-o Dir::State::lists="$root/lists" \
		-o Dir::State::status="$root/status" \
		-o Dir::Cache="$root/cache" \
		-o APT::Sandbox::User="$(id -un)" \
		-o APT::Architecture="$arch" -o APT::Architectures::="$arch" \
		-o Acquire::Languages=none \
		-o Acquire::Retries=3 \
		-o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false \
		"$@"
}

_suite_update() {
	local suite=$1 ring=$2 root=$weft_cache/apt/$1
	mkdir -p "$root"/{state,lists/partial,cache/archives/partial,debs}
	: >"$root/status"
	suite_entry "$suite" "$ring" >"$root/sources.list"
	step "reading the package list of $suite" "$root/update.log" \
		suite_apt "$suite" apt-get -o APT::Update::Error-Mode=any update
}

# suite_newer_keyring: the archive keys of later releases, for a machine whose
# own keyring package is too old to know them. It is fetched from bookworm's
# own suites, hence verified with keys the machine already trusts.
suite_newer_keyring() {
	local dir=$weft_cache/apt/keyring suite deb
	local ring=$dir/usr/share/keyrings/debian-archive-keyring.gpg
	for suite in bookworm-updates bookworm; do
		[ -s "$ring" ] && break
		deb=$(suite_fetch "$suite" debian-archive-keyring) || continue
		dpkg-deb -x "$deb" "$dir"
	done
	[ -s "$ring" ] && printf '%s\n' "$ring"
}

# suite_ready SUITE: have a package list at most a day old (any age will do
# when the archive cannot be reached).
suite_ready() {
	_suite_fresh "$1" || with_lock "apt-lists-$1" _suite_refresh "$1"
}

_suite_fresh() { [ -z "${WEFT_REFRESH:-}" ] && fresh "$weft_cache/apt/$1/updated" 1; }

_suite_refresh() {
	local suite=$1 root=$weft_cache/apt/$1 ring
	_suite_fresh "$suite" && return 0
	if ! _suite_update "$suite" "$suite_keyring"; then
		case ${suite%:*} in bookworm | bookworm-updates | bookworm-security) ring= ;;
		*) ring=$(suite_newer_keyring) || ring= ;; esac
		if [ -z "$ring" ] || ! _suite_update "$suite" "$ring"; then
			warn "no new package list for $suite"
			[ -e "$root/updated" ]
			return
		fi
	fi
	touch "$root/updated"
}

# suite_names SUITE REGEX: package names in SUITE, oldest version number first.
suite_names() {
	suite_ready "$1" || return 0
	suite_apt "$1" apt-cache pkgnames | grep -E "^($2)\$" | sort -V || true
}

# suite_version SUITE PACKAGE: the candidate's version, or failure.
suite_version() {
	suite_ready "$1" || return 1
	suite_apt "$1" apt-cache show --no-all-versions "$2" 2>/dev/null |
		sed -n 's/^Version: //p' | grep -m1 .
}

# suite_field SUITE PACKAGE FIELD: a control field of the candidate.
suite_field() {
	suite_ready "$1" || return 1
	suite_apt "$1" apt-cache show --no-all-versions "$2" 2>/dev/null |
		sed -n "s/^$3: //p" | grep -m1 .
}

_suite_download() {
	cd "$weft_cache/apt/$1/debs" && suite_apt "$1" apt-get download "$2"
}

# suite_fetch SUITE PACKAGE: download once, print the path of the .deb.
suite_fetch() {
	local suite=$1 package=$2 debs=$weft_cache/apt/$1/debs version deb arch
	arch=$(suite_arch "$suite")
	version=$(suite_version "$suite" "$package") || return 1
	deb=$debs/${package}_${version//:/%3a}
	if [ ! -s "${deb}_$arch.deb" ] && [ ! -s "${deb}_all.deb" ]; then
		with_lock "apt-$suite" step "downloading $package $version ($suite)" \
			"$debs/$package.log" _suite_download "$suite" "$package" || return 1
	fi
	if [ -s "${deb}_$arch.deb" ]; then
		printf '%s\n' "${deb}_$arch.deb"
	elif [ -s "${deb}_all.deb" ]; then
		printf '%s\n' "${deb}_all.deb"
	else
		return 1
	fi
}

# suite_best REGEX SUITE...: "SUITE PACKAGE VERSION" of the newest matches in
# those suites, the best first: by the number in the name, then the version.
suite_best() {
	local regex=$1 suite name version
	shift
	for suite; do
		for name in $(suite_names "$suite" "$regex" | tail -n 3); do
			version=$(suite_version "$suite" "$name") || continue
			printf '%s %s %s\n' "$suite" "$name" "$version"
		done
	done | sort -k2,2Vr -k3,3Vr
}

# What upstream released, without Debian's patches.
_suite_unpack() {
	rm -rf "${3%/*}"
	mkdir -p "$3"
	cd "${3%/*}" &&
		suite_apt "$1-src" apt-get source --download-only --tar-only "$2" &&
		tar -x --strip-components 1 -C "$3" -f "$2"_*.orig.tar.* && touch "$3"
}

# suite_source SUITE PACKAGE: fetch and unpack upstream's source once a day, print its directory.
suite_source() {
	local dir
	suite_ready "$1-src" || return 1
	dir=$(cache_dir src)/$2-$1/tree
	fresh "$dir" 1 || with_lock "apt-$1-src" step "fetching the source of $2 ($1)" \
		"${dir%/*}.log" _suite_unpack "$1" "$2" "$dir" || return 1
	printf '%s\n' "$dir"
}
