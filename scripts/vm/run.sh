# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What scripts/guest and scripts/uml have in common on the host side: options,
# the job directory, staging, the time limit, cleaning up, the verdict.
# Sourced after lib/all.sh; the caller provides vm_boot RUNDIR.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

vm_dir=$weft_top/scripts/vm
. "$vm_dir/stage.sh"
. "$vm_dir/verdict.sh"

opt_timeout=300 opt_smp=2 opt_mem='' opt_keep='' opt_weft=yes opt_staged='' opt_results=''
opt_modules=() opt_command=()

# vm_option WORDS...: take one common option; sets vm_used to the number of
# words taken, 0 when it is none of ours.
vm_option() {
	vm_used=2
	case $1 in
	--timeout | --smp | --mem | --module | --staged | --results) need_value "$1" $# ;;
	esac
	case $1 in
	--timeout) opt_timeout=$2 ;;
	--smp) opt_smp=$2 ;;
	--mem) opt_mem=$2 ;;
	--results) opt_results=$2 ;;
	--staged) opt_staged=$2 ;;
	--module) opt_modules+=("$(realpath -e "$2")") ;;
	--keep) opt_keep=1 vm_used=1 ;;
	--no-weft) opt_weft=no vm_used=1 ;;
	*) vm_used=0 ;;
	esac
}

vm_cleanup() {
	if [ -n "${vm_pid:-}" ]; then
		kill -KILL -- "-$vm_pid" 2>/dev/null || true
		wait "$vm_pid" 2>/dev/null || true
	fi
	[ -n "${vm_run:-}" ] && [ -d "$vm_run" ] || return 0
	if [ -n "$opt_keep" ]; then
		say "kept: $vm_run (console.log, results/)"
	else
		rm -rf "$vm_run"
	fi
}

vm_mhz() { awk -F': ' '/^cpu MHz/ { print $2; exit }' /proc/cpuinfo; }

# vm_command WORD...: the script's path may be relative, or a program's name.
vm_command() {
	local script=$1
	shift
	[ -f "$script" ] && script=$(realpath "$script")
	opt_command=("$script" "$@")
}

# vm_prepare OUTPUT: the run directory with the job description in it.
vm_prepare() {
	local job ko
	vm_run=$(mktemp -d "$(cache_dir runs)/$kernel_name.XXXXXX")
	trap vm_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	job=$vm_run/results/.job
	mkdir -p "$job"
	printf '%s\n' "$vm_dir/init" >"$job/init"
	printf '%s\0' "${opt_command[@]}" >"$job/command"
	printf '%s\n' "$PWD" >"$job/cwd"
	printf '%s\n' "$opt_timeout" >"$job/timeout"
	printf '%s\n' "$1" >"$job/output"
	vm_mhz >"$job/mhz"
	# For a guest that does not see all of this machine's files.
	[ -z "$kernel_userland" ] || printf '%s\n' "$weft_top" "$weft_cache" >"$job/shared"
	: >"$job/modules"
	for ko in "${opt_modules[@]}"; do printf '%s\n' "$ko" >>"$job/modules"; done
	if [ "$opt_weft" = yes ]; then touch "$job/weft"; fi
	if [ -n "$opt_staged" ]; then
		cp -al "$opt_staged" "$vm_run/stage"
	else
		stage_run "$opt_weft" "$vm_run/stage"
	fi
}

# vm_watch LIMIT: wait for the guest; kill it when LIMIT seconds have passed,
# which only happens when its own time limit no longer works.
vm_watch() {
	# Without stderr, for the shell would report a crash as "Aborted" there.
	_vm_wait "$1" 2>/dev/null
	vm_pid=
	[ ! -e "$vm_run/killed" ] ||
		warn "the guest did not come to an end; killed after $1 s"
}

_vm_wait() {
	local end=$((SECONDS + $1))
	while kill -0 "$vm_pid"; do
		if [ "$SECONDS" -ge "$end" ]; then
			: >"$vm_run/killed"
			kill -KILL -- "-$vm_pid" || true
			break
		fi
		sleep 0.2 9>&-
	done
	wait "$vm_pid" || true
}

# vm_finish BASELINE: verdict, results, exit status.
vm_finish() {
	local status=0
	judge "$vm_run/results/.job" "$vm_run/console.log" "${1:-/dev/null}" || status=$?
	[ -e "$vm_run/killed" ] && status=124
	if [ -n "${WEFT_COVERAGE:-}" ] && [ -d "$vm_run/results/gcov" ]; then
		mkdir -p "$WEFT_COVERAGE/${vm_run##*/}"
		cp -r "$vm_run/results/gcov" "$WEFT_COVERAGE/${vm_run##*/}/"
	fi
	if [ -n "$opt_results" ]; then
		mkdir -p "$opt_results"
		cp -r "$vm_run/results/." "$opt_results/"
		rm -rf "${opt_results:?}/.job"
		cp "$vm_run/console.log" "$opt_results/console.log"
	fi
	exit "$status"
}
