# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Messages and progress, shared by every script. Sourced, never run.
# Everything goes to stderr: stdout belongs to what a script prints as result.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

say()  { printf 'weft: %s\n' "$*" >&2; }
warn() { printf 'weft: warning: %s\n' "$*" >&2; }
die()  { printf 'weft: error: %s\n' "$*" >&2; exit 1; }

# need_value OPTION COUNT: for option parsers, is there a word after OPTION?
need_value() { [ "$2" -ge 2 ] || die "$1 needs a value"; }

# usage FILE: print the header comment of FILE from its "Usage:" line on.
usage() { sed -n '/^# Usage:/,/^$/{/^# shellcheck/q;/^$/q;s/^# \{0,1\}//p}' "$1"; }

# _heartbeat TITLE LOG: one line every 20 s for as long as a step runs.
_heartbeat() {
	local began=$SECONDS
	while sleep 20 >/dev/null 2>&1 9>&-; do
		say "  ... $1: $((SECONDS - began)) s, $(wc -l <"$2") lines of log"
	done
}

# step TITLE LOG COMMAND...: run COMMAND quietly into LOG, show life signs,
# print the end of LOG when it fails. Returns COMMAND's status.
step() {
	local title=$1 log=$2 beat rc=0 began=$SECONDS
	shift 2
	mkdir -p "$(dirname "$log")"
	: >"$log"
	say "$title"
	_heartbeat "$title" "$log" </dev/null &
	beat=$!
	"$@" >"$log" 2>&1 </dev/null || rc=$?
	kill "$beat" 2>/dev/null || true
	wait "$beat" 2>/dev/null || true
	if [ "$rc" -ne 0 ]; then
		tail -n 40 "$log" >&2
		warn "failed after $((SECONDS - began)) s ($title); whole log: $log"
	elif [ $((SECONDS - began)) -ge 20 ]; then
		say "  done in $((SECONDS - began)) s"
	fi
	return "$rc"
}
