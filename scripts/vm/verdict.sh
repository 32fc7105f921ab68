# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Host side of the verdict: reads what a guest left behind and decides.
# Sourced after log.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/complaints.sh"

# _plain: kernel log lines without time stamps, numbers and addresses.
_plain() {
	sed -E 's/^(<[0-9]+>)?(\[[^]]*\] ?)*//; s/0x[0-9a-f]+|[0-9a-f]{8,}/ADDR/g; s/[0-9]+/N/g'
}

# The kernel's own races below functions of weft, with the reason of each.
races_known=$(dirname "${BASH_SOURCE[0]}")/races.tsv

# races WHOSE LOG: of KCSAN's reports, WHOSE=ours: the log without those in which no function
# of weft stands, or which are known; WHOSE=others: the titles of these.
races() {
	awk -v whose="$1" -v table="$races_known" '
		BEGIN {
			while ((getline line <table) > 0)
				if (line !~ /^#/) known[substr(line, 1, index(line, "\t") - 1)]
		}
		function is_known(name) {
			for (name in known) if (title ~ name) return 1
			return 0
		}
		function tell() {
			if (whose == "others" && !ours) print title
			if (whose == "ours" && ours) printf "%s", report
			report = ""
		}
		/BUG: KCSAN: / {
			if (report) tell()
			title = substr($0, index($0, "BUG: KCSAN: "))
			ours = 0
			report = $0 "\n"
			next
		}
		report {
			report = report $0 "\n"
			if (/\[weft\]/ && !is_known()) ours = 1
			if (/==========/) tell()
			next
		}
		whose == "ours"
		END { if (report) tell() }' "$2"
}

# _tell_races LOG: how often the kernel alone raced, and where most often.
_tell_races() {
	local titles
	titles=$(races others "$1" | tr -d '\r')
	[ -n "$titles" ] || return 0
	say "$(wc -l <<<"$titles") reports of KCSAN name no function of weft; most often:"
	sort <<<"$titles" | uniq -c | sort -rn | head -n 10 >&2
}

# splats LOG [BASELINE]: the suspicious lines of a console log which do not
# stand in the log of a boot without weft.
splats() {
	local log=$1 baseline=${2:-/dev/null} line
	grep -aE "$complaints" "$log" | while IFS= read -r line; do
		grep -aE "$complaints" "$baseline" | _plain |
			grep -qxF -e "$(_plain <<<"$line")" || printf '%s\n' "$line"
	done
}

# _around LOG LINE: a splat with what follows it, as a reader wants to see it.
_around() { grep -aF -A 35 -m 1 -e "$2" "$1" | tr -d '\r'; }

# judge JOBDIR LOG BASELINE: print what is wrong, return the run's status:
# the job's own, 124 timed out, 125 verdict failed, 126 did not boot.
judge() {
	local job=$1 log=$2 found status=126 bad=
	_tell_races "$log"
	races ours "$log" >"$job/judged.log"
	log=$job/judged.log
	found=$(splats "$log" "$3")
	if [ -n "$found" ]; then
		say "FAIL: the kernel complained:"
		_around "$log" "$(head -n 1 <<<"$found")" >&2
		say "all suspicious lines:"
		printf '%s\n' "$found" | head -n 20 >&2
		bad=1
	fi
	if [ -s "$job/problems" ]; then
		say "FAIL: the guest was not clean:"
		cat "$job/problems" >&2
		bad=1
	fi
	[ -s "$job/status" ] && status=$(cat "$job/status")
	if [ -e "$job/timed-out" ]; then
		say "FAIL: timed out after $(cat "$job/timeout") s; processes left:"
		grep -v '\]$' "$job/ps" >&2 || true
		return 124
	elif [ ! -e "$job/booted" ]; then
		say "FAIL: the guest did not boot; end of its console:"
		tail -n 20 "$log" | tr -d '\r' >&2
		return 126
	elif [ ! -e "$job/done" ]; then
		say "FAIL: the guest did not finish (hung or crashed); end of its console:"
		tail -n 20 "$log" | tr -d '\r' >&2
		bad=1
	fi
	if [ "$status" -ne 0 ] && [ "$status" -ne 126 ]; then
		return "$status"
	fi
	[ -z "$bad" ] && return "$status"
	return 125
}
