# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The one list of what the kernel says when something is wrong, as a regular expression in
# $complaints. Sourced by the guest's suites and by the host's verdict; starts no program.

complaints=
while IFS=$'\t' read -r complaint _; do
	case $complaint in '' | '#'*) ;; *) complaints+=${complaints:+|}$complaint ;; esac
done <"$(dirname "${BASH_SOURCE[0]}")/complaints.tsv"
unset complaint
