# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Selections of tests that name one which does not exist, as after it was renamed: they fail.
# Sourced by scripts/e2e/run and lib.sh.
#
# lib.sh and verbs.sh write what there is to the file $E2E_TITLES, a line "VARIABLE<tab>NAME"
# each; scripts/e2e/run looks at it once all suites are done, since a selection may name tests
# of several.

# there_is VARIABLE NAME
there_is() { [ -z "${E2E_TITLES:-}" ] || printf '%s\t%s\n' "$1" "$2" >>"$E2E_TITLES"; }

# alternatives REGEX: what it says with "|", one a line, in parentheses too.
alternatives() {
	local part parts group='^(.*)\(([^()]*\|[^()]*)\)(.*)$'
	if [[ $1 =~ $group ]]; then
		local before=${BASH_REMATCH[1]} after=${BASH_REMATCH[3]}
		IFS='|' read -ra parts <<<"${BASH_REMATCH[2]}"
		for part in "${parts[@]}"; do alternatives "$before$part$after"; done
	else
		tr '|' '\n' <<<"$1"
	fi | sort -u
}

# among VARIABLE REGEX: does $E2E_TITLES have a name that matches?
among() {
	local variable name
	[ -n "$2" ] || return 0
	while IFS=$'\t' read -r variable name; do
		[[ $variable != "$1" || ! $name =~ $2 ]] || return 0
	done <"$E2E_TITLES"
	return 1
}

# selections_are_met: is there a test for each alternative of E2E_ONLY and each word of
# VERBS_ONLY? Tells those that name none.
selections_are_met() {
	local each missing=0
	while IFS= read -r each; do
		among E2E_ONLY "$each" || { no_such_test E2E_ONLY "$each"; missing=1; }
	done < <(alternatives "${E2E_ONLY:-}")
	for each in ${VERBS_ONLY:-}; do
		among VERBS_ONLY "^$each\$" || { no_such_test VERBS_ONLY "$each"; missing=1; }
	done
	return "$missing"
}

no_such_test() { echo "Bail out! $1: no test is called '$2'"; }
