# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Where everything that takes long to make is kept, outside the repository:
# package lists, unpacked kernels, User-Mode Linux trees, staged builds.
# Sourced after log.sh. Removing the directory is always safe.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

weft_cache=${WEFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft}
# shellcheck disable=SC2034  # used by the sourcing scripts
weft_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# cache_dir SUB...: make a directory below the cache and print its path.
cache_dir() {
	local dir=$weft_cache/$1
	mkdir -p "$dir" || die "cannot create the cache directory $dir"
	printf '%s\n' "$dir"
}

# with_lock NAME COMMAND...: run COMMAND in a subshell, one at a time per NAME.
# The lock's descriptor is not inherited by what COMMAND starts in background.
with_lock() {
	local name=$1 lock
	shift
	lock=$(cache_dir locks)/$name
	(
		exec 9>"$lock"
		if ! flock -n 9; then
			say "waiting for another run that holds '$name'"
			flock 9
		fi
		"$@"
	)
}

# hash_of FILE-OR-WORD...: a short key over words and the contents of files.
hash_of() {
	local item
	for item; do
		if [ -f "$item" ]; then cat "$item"; else printf '%s\n' "$item"; fi
	done | sha256sum | cut -c1-12
}

# fresh FILE DAYS: was FILE written less than DAYS days ago?
fresh() { [ -e "$1" ] && [ -n "$(find "$1" -mtime "-$2")" ]; }
