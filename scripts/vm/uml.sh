# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Booting a User-Mode Linux kernel. Sourced after run.sh.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

# UML keeps its memory in a file: best one that never reaches a disk.
_uml_memory_dir() {
	local free
	free=$(df -m --output=avail /dev/shm 2>/dev/null | tail -n 1)
	if [ -w /dev/shm ] && [ "${free:-0}" -gt "$1" ]; then
		echo /dev/shm
	else
		echo "$2"
	fi
}

# A guest's processes are processes of this machine beside its kernel's. On one CPU the
# scheduler would give a process that polls half of it, whatever its kernel has to do; on a
# real CPU an interrupt comes first. So the kernel's threads are real-time ones and the
# processes, which it clones, are not. What may not do that is told so by uml-pair.
uml_first=(chrt --reset-on-fork --fifo 1)

# uml_boot RUNDIR MEGABYTES CPU [WORD...]: start the guest in the background, on that CPU
# unless it is empty, with these words for its kernel; sets vm_pid.
uml_boot() {
	local run=$1 mem=$2 cpu=$3 shm pin=()
	shift 3
	if [ -n "$cpu" ]; then
		pin=(taskset -c "$cpu")
		if "${uml_first[@]}" true 2>/dev/null; then pin+=("${uml_first[@]}"); fi
	fi
	shm=$(_uml_memory_dir "$mem" "$run")
	: >"$run/console.log"
	TMPDIR=$shm setsid "${pin[@]}" "$kernel_image" mem="${mem}M" ncpus="$opt_smp" seccomp=auto \
		umid=guest uml_dir="$run/" \
		"$@" root=/dev/root rootfstype=hostfs rootflags=/ ro \
		init="$vm_dir/uml-init" weft.run="$run" \
		printk.time=1 log_buf_len=8M ignore_loglevel oops=panic panic=-1 \
		con=null con0=null,fd:3 ssl=null ssl0=null,fd:4 console=tty0 \
		3>>"$run/console.log" 4>&1 \
		</dev/null >>"$run/console.log" 2>&1 9>&- &
	vm_pid=$!
}

# uml_baseline: the console log of a boot of this kernel without weft; made
# once. What it complains about then is not weft's doing.
uml_baseline() {
	local file=$kernel_dir/.weft-baseline dir
	if [ ! -s "$file" ]; then
		say "booting $kernel_name once without weft, to know its own complaints"
		dir=$(mktemp -d "$(cache_dir runs)/baseline.XXXXXX")
		WEFT_BASELINE=1 "$weft_top/scripts/uml" --kernel "$kernel_name" --no-weft \
			--results "$dir" --timeout 60 true >&2 || true
		if [ -s "$dir/console.log" ]; then mv "$dir/console.log" "$file"; fi
		rm -rf "$dir"
	fi
	[ ! -s "$file" ] || printf '%s\n' "$file"
}
