# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What the end-to-end suites share: TAP, topologies, programs with deadlines.
# Sourced by scripts/e2e/*.sh, which run as root in a temporary guest.
#
# A suite sources this file, calls "suite", builds a topology, runs its tests
# with "t NAME FUNCTION [ARG]..." and ends with "finish". A test function runs
# in a subshell under set -e: the first failing command fails it. Its output is
# shown only then. Every test must also leave no RDMA object, no
# process and no complaint of the kernel behind.
#
# DRIVER names the link type, so that the scripts can be proven with siw.

set -uo pipefail

driver=${DRIVER:-weft}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../vm/complaints.sh"
. "$here/selection.sh"
tmp=$(mktemp -d)
dev=${driver}0
tests=0 failures=0 again=0
unclean=99
srv=() cli=()
# Emulated CPUs are slow: one factor stretches every deadline.
slow=${E2E_SLOW:-1}
# cmtime and many clients at once need descriptors by the hundred.
ulimit -n 65536

# --- TAP ---------------------------------------------------------------------

suite() {
	suite_name=$1
	echo "TAP version 13"
	echo "# suite $suite_name on $(uname -r), driver $driver"
	sed 's/^/# /'
	cleanup >/dev/null 2>&1
	follow_kernel_log
	trap suite_exit EXIT
	trap 'exit 143' TERM INT
}

# Outside a test nothing else would notice: a test whose line names no function is no test.
command_not_found_handle() {
	[ "$BASH_SUBSHELL" -gt 0 ] || echo "Bail out! $suite_name: $1: command not found"
	echo "$1: command not found" >&2
	return 127
}

suite_exit() {
	cleanup >"$tmp/cleanup" 2>&1
	[ ! -d "$tmp/plugins" ] || umount /etc/libibverbs.d
	kill "$listener"
	rm -rf "$tmp"
}

finish() {
	[ "$tests" -eq 0 ] || [ "${LOOPBACK:-0}" = 0 ] ||
		finding "LOOPBACK=$LOOPBACK: some went without TCP" went_without_tcp
	echo "1..$tests"
	[ "$tests" -gt 0 ] || { no_such_test "$suite_name" "${E2E_CASE:-${E2E_ONLY:-}}"; exit 1; }
	[ "$again" -eq 0 ] || echo "# $suite_name: $again of them at the second attempt"
	[ "$failures" -eq 0 ]
	exit
}

# run_pytest SUITE [WRAPPER]... -- OPTION...: in place of tests and "finish"; conftest.py prints the
# results. A test that hangs fails, and the others run. The log is looked at once more, for what
# objects say that go at the end.
run_pytest() {
	local suite=$1 status=0 wrapper=()
	for ((; $# > 1; )); do
		shift
		[ "$1" != -- ] || break
		wrapper+=("$1")
	done
	skip_kernel_log
	cd "$here/$suite" || exit 1
	# Each value behind a "=": pytest takes a word that is a path for the tests', at first.
	PYTHONDONTWRITEBYTECODE=1 "${wrapper[@]}" /usr/bin/python3 -m pytest -c "$here/pytest.ini" \
		--rootdir="$here" --dev="$dev" --addr="$addr4" --addr6="$addr6" --slow="$slow" \
		--timeout=$((150 * slow)) "${@:2}" || status=$?
	[ "$status" -le 1 ] || echo "Bail out! $suite: pytest ended with status $status"
	note_loopback
	(went_without_tcp) || status=1
	idle || status=1
	new_splats || status=1
	exit "$status"
}

diagnose() { sed 's/^/#   /' | tail -n 60; }

_verdict() {
	local rc=$1 name=$2 seconds=$3
	tests=$((tests + 1))
	if [ "$rc" -eq 77 ]; then
		echo "ok $tests - $suite_name: $name # SKIP $(tail -n 1 "$tmp/test.log")"
	elif [ "$rc" -eq 0 ]; then
		echo "ok $tests - $suite_name: $name"
		[ "$seconds" -lt 5 ] || echo "#   took $seconds s"
	else
		failures=$((failures + 1))
		echo "not ok $tests - $suite_name: $name"
		echo "#   status $rc after $seconds s"
		diagnose <"$tmp/test.log"
	fi
}

# skip REASON: from within a test.
skip() {
	echo "$*"
	exit 77
}

# finding NAME FUNCTION [ARG]...: a test that only looks at what another one found.
finding() {
	local name=$1 rc
	shift
	(
		set -e
		"$@"
	) >"$tmp/test.log" 2>&1 </dev/null
	rc=$?
	_verdict "$rc" "$name" 0
}

# t NAME FUNCTION [ARG]...: run one test. E2E_ONLY is a regular expression for names; E2E_CASE is
# one name, or a function, or the first argument of functions that have several cases.
#
# Suites of unmodified programs set attempts=2: what they race for among themselves
# comes out wrong once in hundreds of runs on busy, emulated CPUs. Objects left behind and
# complaints of the kernel are never given another. Programs of our own have one attempt.
# So has perftest elsewhere, unless it says that it could not measure the speed of its clock.
t() {
	local name=$1 rc=1 began=$SECONDS attempt most=${attempts:-1}
	there_is E2E_ONLY "$name"
	[[ $name =~ ${E2E_ONLY:-} ]] || return 0
	case ${E2E_CASE:-$name} in "$name" | "$2" | "${3:-$2}") ;; *) return 0 ;; esac
	shift
	for ((attempt = 1; rc != 0 && attempt <= most; attempt++)); do
		[ "$attempt" -eq 1 ] || _show_failed_attempt "$name" "$rc"
		# Not "|| rc=$?": that would switch set -e off in all of the test.
		_attempt "$@"
		rc=$?
		if [ "$rc" -eq 77 ] || [ "$rc" -eq "$unclean" ]; then break; fi
		[ "$rc" -eq 0 ] || ! grep -qs "Can't produce a report" "$tmp/test.log" || most=2
	done
	[ "$rc" -ne 0 ] || [ "$attempt" -le 2 ] || again=$((again + 1))
	_verdict "$rc" "$name" $((SECONDS - began))
}

# A second attempt hides nothing: what the first one said is printed.
_show_failed_attempt() {
	echo "# \"$1\" failed with status $2, and is tried once more; it said:"
	tail -n 20 "$tmp/test.log" | cut -c1-200 | sed 's/^/#   /'
}

_attempt() {
	local rc
	skip_kernel_log
	before_test >/dev/null 2>&1
	(
		trap 'jobs -p >"$tmp/jobs"; [ ! -s "$tmp/jobs" ] || kill_jobs 2>/dev/null' EXIT
		set -e
		"$@"
	) >"$tmp/test.log" 2>&1 </dev/null
	rc=$?
	note_loopback
	loopback_is "${LOOPBACK:-0}"
	if [ "$rc" -eq 0 ]; then
		after_test >>"$tmp/test.log" 2>&1 || rc=$unclean
	fi
	return "$rc"
}

# fail REASON: from within a test.
fail() {
	echo "FAILED: $*"
	exit 1
}

# kill_jobs: what a test left running. TERM, because timeout passes it on.
kill_jobs() {
	set +e
	pkill -TERM -P "$BASHPID"
	sleep_nofork 0.2
	pkill -KILL -P "$BASHPID"
	kill_traced
	wait
}

# kill_traced: a tracer that ends only lets go of its program.
kill_traced() { pkill -KILL -x 'ib_[a-z_]*' || true; }

# For suites to override: what every test starts from.
before_test() { :; }

after_test() {
	idle || return 1
	new_splats
}

# new_splats: fails when the kernel complained since the test began.
new_splats() {
	local line said=()
	read_kernel_log || return 1
	# Whose race it is shows in the whole report, which the host reads: scripts/vm/verdict.sh.
	for line in "${kernel_lines[@]}"; do
		[[ $line == *KCSAN* ]] || said+=("$line")
	done
	[[ ${said[*]} =~ $complaints ]] || return 0
	echo "FAILED: the kernel complained:"
	printf '%s\n' "${kernel_lines[@]}"
	return 1
}

# --- What the kernel says ------------------------------------------------------

# A process writes it all to a file, so that a look at it starts no program: a test takes
# several, and on emulated CPUs each program takes a tenth of a second.
kernel_lines=() kernel_lines_seen=0

follow_kernel_log() {
	: >"$tmp/kernel"
	dmesg --follow-new >>"$tmp/kernel" &
	listener=$!
	disown
	exec {never}<> <(:)
	read_kernel_log
}

# read_kernel_log: what it has said since the last skip_kernel_log, in ${kernel_lines[@]}.
# Up to now: what we say ourselves comes last. (Anew, as the listener may just have begun.)
read_kernel_log() {
	local try look="a look, $BASHPID.$SRANDOM"
	for ((try = 0; try < 4000; try++)); do
		[ $((try % 200)) -ne 0 ] || echo "<7>e2e: $look" >/dev/kmsg
		mapfile -t -s "$kernel_lines_seen" kernel_lines <"$tmp/kernel"
		[[ ${kernel_lines[*]: -1} != *"$look" ]] || return 0
		sleep_nofork 0.005
	done
	echo "FAILED: the kernel's log cannot be read"
	return 1
}

skip_kernel_log() {
	read_kernel_log
	kernel_lines_seen=$((kernel_lines_seen + ${#kernel_lines[@]}))
}

# kernel_says: what it has said since the test began.
kernel_says() {
	read_kernel_log
	printf '%s\n' "${kernel_lines[@]}"
}

# sleep_nofork SECONDS: sleep, without starting a program.
sleep_nofork() { read -rt "$1" -u "$never" || true; }

# --- RDMA objects --------------------------------------------------------------

# objects: "NAME pd 0 cq 0 ..." of every device of the driver. Suites may leave some out.
objects() {
	local line
	rdma resource show >"$tmp/resources" 2>/dev/null || true
	while IFS= read -r line; do
		[[ ! $line =~ ^[0-9]+:\ (${driver}[^:]*):\ (.*) ]] ||
			echo "${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
	done <"$tmp/resources"
}

# idle: wait until no device has any object left. By way of a file, since "$(objects)" starts a process
# more: it is done after each test, and in a guest takes as long as some tests.
idle() {
	local end=$((SECONDS + 10 * slow)) in_use
	while
		objects >"$tmp/objects"
		mapfile -t in_use <"$tmp/objects"
		[[ ${in_use[*]} =~ \ [1-9] ]]
	do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "FAILED: objects left behind:"
			objects
			rdma resource show cm_id
			rdma resource show qp
			return 1
		fi
		sleep_nofork 0.2
	done
}

# counted NAME [DEVICE]: a counter of a device.
counted() {
	local value
	read -r value <"/sys/class/infiniband/${2:-$dev}/ports/1/hw_counters/$1"
	echo "$value"
}

# note_loopback: after each test, and before a test deletes its devices.
note_loopback() {
	local file segments
	[ "${LOOPBACK:-0}" != 0 ] || return 0
	for file in /sys/class/infiniband/*/ports/1/hw_counters/loopback_tx_segments; do
		[ ! -e "$file" ] || read -r segments <"$file" || continue
		[ "${segments:-0}" = 0 ] || : >"$tmp/without_tcp"
	done
}

# by_tcp COMMAND...: for a test about what TCP does, whatever LOOPBACK says.
by_tcp() {
	loopback_is 0
	"$@"
}

loopback_is() {
	local file
	[ "${LOOPBACK:-0}" != 0 ] || return 0
	for file in "/sys/class/infiniband/$driver"*/params/loopback; do
		[ ! -e "$file" ] || echo "$1" >"$file"
	done
}

# went_without_tcp: where LOOPBACK asks for it. The same tests pass with TCP, and would show nothing.
went_without_tcp() {
	[ "${LOOPBACK:-0}" = 0 ] || [ -e "$tmp/without_tcp" ] || fail "LOOPBACK=$LOOPBACK: all went by TCP"
}

# --- Topologies ------------------------------------------------------------------

addr4=10.77.0.1
addr6=fd77::1
peer4=10.77.0.2
peer6=fd77::2

# Scripts that look for processes by ps: it ends with "Unable to get system boot time" in
# User-Mode Linux.
plain_ps() {
	mkdir -p "$tmp/path"
	cat >"$tmp/path/ps" <<-'EOF'
		#!/bin/bash
		[ "$1" != -p ] || { kill -0 "$2"; exit; }
		for dir in /proc/[0-9]*; do
			mapfile -d '' -t words <"$dir/cmdline"
			case $1 in
			-eo) echo "${words[0]##*/} ${dir#/proc/}" ;;
			*) echo "root ${dir#/proc/} ${words[*]}" ;;
			esac
		done 2>/dev/null
	EOF
	chmod +x "$tmp/path/ps"
	PATH=$tmp/path:$PATH
}

# make_link DEVICE NETDEV [COMMAND...]: in the namespace that COMMAND enters. LOOPBACK is its attribute
# of that name: 0 unless asked for, since most suites are about what goes through TCP.
make_link() {
	local attribute=/sys/class/infiniband/$1/params/loopback
	"${@:3}" rdma link add "$1" type "$driver" netdev "$2" || return 1
	[ ! -e "$attribute" ] || echo "${LOOPBACK:-0}" >"$attribute"
}

# topology_dummy: one device; client and server in one namespace, their bytes
# travel through TCP over lo.
topology_dummy() {
	modprobe -q dummy
	modprobe -q ipv6
	ip link add wd0 type dummy
	ip link set wd0 up
	ip addr add "$addr4/24" dev wd0
	ip addr add "$addr6/64" dev wd0 nodad
	make_link "$dev" wd0
	srv=() cli=()
	saddr4=$addr4 saddr6=$addr6
}

# topology_veth: two namespaces, one device in each, joined by a veth pair.
topology_veth() {
	modprobe -q veth
	modprobe -q ipv6
	ip netns add wa
	ip netns add wb
	ip link add va netns wa mtu 1500 type veth peer name vb netns wb mtu 1500
	netns_end wa va "$addr4" "$addr6" "${driver}a" "$driver"
	netns_end wb vb "$peer4" "$peer6" "${driver}b" "$driver"
	srv=(ip netns exec wa) cli=(ip netns exec wb)
	# shellcheck disable=SC2034  # for the suites
	saddr4=$addr4 saddr6=$addr6
}

# check_gid_0 DEVICE MAC [apart]: rdma_cm compares it. It begins with the MAC, which may be shorter
# than six bytes. Behind that it has zeros; where other network devices may have the same MAC, or
# none ("apart"), something else.
check_gid_0() {
	local mac=${2//:/} gid is=
	gid=$(tr -d : <"/sys/class/infiniband/$1/ports/1/gids/0")
	[[ $gid = "$mac"* ]] || fail "GID 0 of $1 is $gid, and its MAC $mac"
	[[ ${gid#"$mac"} =~ ^0*$ ]] || is=apart
	[ "$is" = "${3:-}" ] || fail "GID 0 of $1 is $gid"
}

# has_fault_injection: or a skip.
has_fault_injection() {
	[ -e /sys/kernel/debug/failslab ] || skip "this kernel cannot make allocations fail"
}

# netns_mode MODE: the kernel takes it only when no other namespace is left, and they go in their
# own time.
netns_mode() { until_true 20 rdma system set netns "$1"; }

# netns_end NAMESPACE NETDEV ADDR4 ADDR6 [DEVICE TYPE]
netns_end() {
	ip -n "$1" link set lo up
	ip -n "$1" link set "$2" up
	ip -n "$1" addr add "$3/24" dev "$2"
	ip -n "$1" addr add "$4/64" dev "$2" nodad
	[ -n "${5:-}" ] || return 0
	driver=$6 make_link "$5" "$2" ip netns exec "$1"
}

# cleanup: everything any topology or test made.
cleanup() {
	local name ns
	pkill -KILL -x 'rping|ucmatose|cmtime|rstream|riostream|rcopy|tcpdump' 2>/dev/null
	for name in $(rdma link show | sed -n 's,^link \([^/]*\)/.*,\1,p'); do
		timeout 20 rdma link delete "$name"
	done
	ip link show type dummy | sed -n 's/^[0-9]*: \([^:@]*\).*/\1/p' |
		while read -r name; do ip link delete "$name"; done
	ip addr flush dev eth0 2>/dev/null
	ip link set eth0 down 2>/dev/null
	for ns in wa wb; do ip netns delete "$ns" 2>/dev/null; done
}

# only_plugins DRIVER...: until the end of the suite. libibverbs loads the plugins of all drivers, with
# Debian's seventeen, whenever a program starts; on an emulated CPU that takes a quarter of a second.
# (smoke, devinfo and the suites of other projects' programs have them all.)
only_plugins() {
	local dir=/etc/libibverbs.d name
	mkdir "$tmp/plugins"
	for name; do [ ! -e "$dir/$name.driver" ] || cp "$dir/$name.driver" "$tmp/plugins/"; done
	mount -t tmpfs plugins "$dir"
	cp "$tmp/plugins/"* "$dir/"
}

# --- Programs with deadlines -------------------------------------------------------

# short_timeouts DEVICE: a process that is killed while it connects to itself cannot end before
# iw_cm has its answer: that a timeout of the connection's setup has run out.
short_timeouts() {
	local params=/sys/class/infiniband/$1/params file
	for file in "$params/"{tcp_connect,mpa_request,accept,mpa_reply}_timeout_ms; do
		[ ! -e "$file" ] || echo $((2000 * slow)) >"$file"
	done
}

# limit SECONDS COMMAND...: it ends by then, or fails with status 124.
limit() { timeout --foreground -k 2 "$(($1 * slow))" "${@:2}"; }

# start SECONDS FILE COMMAND...: the same in the background, its output in FILE,
# its process id in $started. (A function call in the background would put a
# shell between us and the program. The file is emptied here: what the last one said
# must not be taken for this one.)
start() {
	: >"$2"
	timeout --foreground -k 2 "$(($1 * slow))" "${@:3}" >"$2" 2>&1 &
	started=$!
}

# ended PROCESS FILE: it ends by itself, with status 0. What it said is in FILE.
ended() {
	local rc=0
	wait "$1" || rc=$?
	cat "$2"
	[ "$rc" -ne 0 ] || return 0
	kernel_says | tail -n 20
	fail "status $rc"
}

# progresses PROCESS [SECONDS]: the pings of an rping, a line each in client.log, go on.
progresses() {
	local before now end=$((SECONDS + ${2:-20} * slow))
	before=$(wc -l <"$tmp/client.log")
	for ((now = before; now <= before + 20; )); do
		kill -0 "$1" || { tail -n 3 "$tmp/client.log"; fail "the connection broke"; }
		[ "$SECONDS" -lt "$end" ] || fail "the connection does not go on"
		sleep_nofork 0.1
		now=$(wc -l <"$tmp/client.log")
	done
}

# listening PORT [PROCESS]: does anything listen there, in the server's namespace? It is that of what
# PROCESS runs, which "start" has started. (A program takes its time to start in an emulated guest,
# so there is none where none is needed.)
listening() {
	local table line child
	printf -v line ':%04X [0-9A-F]+:0000 0A ' "$1"
	if [ ${#srv[@]} -eq 0 ]; then
		table=$(</proc/net/tcp)$(</proc/net/tcp6)
	elif [ -n "${2:-}" ] && read -r child _ <"/proc/$2/task/$2/children"; then
		table=$(<"/proc/$child/net/tcp")$(<"/proc/$child/net/tcp6")
	else
		table=$("${srv[@]}" cat /proc/net/tcp /proc/net/tcp6)
	fi 2>/dev/null
	[[ $table =~ $line ]]
}

# until_true SECONDS COMMAND...: wait for it. By "sleep": dead-host.sh sends this function to a shell
# that has no sleep_nofork.
until_true() {
	local end=$((SECONDS + $1 * slow))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "still not true: $*"
			return 1
		fi
		sleep 0.2
	done
}

# until_said FILE PATTERN PROCESS: until its output has a line that matches.
until_said() {
	local end=$((SECONDS + 30 * slow))
	until grep -qE -e "$2" "$1"; do
		kill -0 "$3" 2>/dev/null || { cat "$1"; fail "it ended without '$2'"; }
		[ "$SECONDS" -lt "$end" ] || { cat "$1"; fail "no '$2'"; }
		sleep_nofork 0.05
	done
}

# watch_events DEVICE: from now on, in $tmp/events; $started watches.
watch_events() {
	start $((60 * slow)) "$tmp/events" stdbuf -oL ibv_asyncwatch -d "$1"
	until_said "$tmp/events" 'async event' "$started"
}

# serve PORT SECONDS COMMAND...: start a server and wait until it listens.
# Its output goes to $tmp/server.log, its process id to $server.
serve() {
	local port=$1 seconds=$2 end=$((SECONDS + 15 * slow))
	shift 2
	start "$seconds" "$tmp/server.log" "${srv[@]}" "$@"
	server=$started
	until listening "$port" "$server"; do
		kill -0 "$server" 2>/dev/null || fail_server "it ended before it listened"
		[ "$SECONDS" -lt "$end" ] || fail_server "it does not listen on port $port"
		sleep_nofork 0.1
	done
}

fail_server() {
	echo "server: $1; it said:"
	cat "$tmp/server.log"
	fail "server: $1"
}

# rping_raced_at_exit LOG: was it rping whose second thread asked for one more event when the first
# one, at the end of main(), had destroyed the channel? Its status says so; all is done.
rping_raced_at_exit() { grep -qx 'rdma_get_cm_event: Bad file descriptor' "$1"; }

# wait_server: the server started last has to end by itself, with status 0.
wait_server() {
	local rc=0
	wait "$server" || rc=$?
	[ "$rc" -eq 0 ] || rping_raced_at_exit "$tmp/server.log" || fail_server "status $rc"
}

# stop_server: end a persistent one.
stop_server() {
	kill -TERM "$server" 2>/dev/null || true
	wait "$server" 2>/dev/null || true
}

# client SECONDS COMMAND...: run a client, output shown and kept in client.log.
client() {
	local seconds=$1 rc=0
	shift
	limit "$seconds" "${cli[@]}" "$@" >"$tmp/client.log" 2>&1 || rc=$?
	printf '%s\n' "$(<"$tmp/client.log")"
	[ "$rc" -ne 0 ] || return 0
	[[ $1 != rping ]] || ! rping_raced_at_exit "$tmp/client.log" || ! all_pings "$@" || return 0
	echo "client: status $rc; the server said:"
	cat "$tmp/server.log"
	return "$rc"
}

# all_pings rping OPTION...: are there as many pings in client.log as -v -C COUNT asks for?
all_pings() {
	[[ " $* " =~ \ -v\ .*-C\ ([0-9]+)\  ]] &&
		[ "$(grep -c '^ping data: rdma-ping-' "$tmp/client.log")" -eq "${BASH_REMATCH[1]}" ]
}

# rping_pair SECONDS ADDRESS COUNT [OPTION]...: a server and a client, and as many pings as asked for.
rping_pair() {
	serve 7174 "$1" rping -s -a "$2" -v -C "$3" "${@:4}"
	client "$1" rping -c -a "$2" -v -C "$3" "${@:4}"
	wait_server
	expect '^ping data: rdma-ping-' "$tmp/client.log" "$3"
}

# perftest SECONDS PROGRAM SERVER-DEVICE CLIENT-DEVICE OPTION...: run a pair, the table is in
# client.log. The words in $tracer are put before the server's.
#
# perftest's server does not listen between the connection that carries the options and
# the one that is measured; its client does not wait for that, and crashes when it is
# refused, by an event or, with siw, by rdma_connect() itself. Such an attempt came to
# nothing before there was anything to judge.
refused='RDMA_CM_EVENT_REJECTED; error: -111|ERRNO: Connection refused'
tracer=()
perftest() {
	local seconds=$1 program=$2 sdev=$3 cdev=$4 try
	shift 4
	for try in {1..10}; do
		serve 18515 "$seconds" "${tracer[@]}" "$program" -R -d "$sdev" -F "$@"
		if client "$seconds" "$program" -R -d "$cdev" -F "$@" "$saddr4"; then
			wait_server
			return
		fi
		grep -qE "$refused" "$tmp/client.log" ||
			fail "see the client"
		echo "attempt $try: between the server's two times of listening"
		stop_server
		kill_traced
	done
	fail "no attempt came through"
}

# expect PATTERN FILE [COUNT]: lines that match; without COUNT at least one.
expect() {
	local n
	n=$(grep -cE -e "$1" "$2") || true
	if [ -z "${3:-}" ]; then
		[ "$n" -gt 0 ] && return 0
		echo "no line matches '$1' in $(basename "$2"):"
	else
		[ "$n" -eq "$3" ] && return 0
		echo "$n lines match '$1' in $(basename "$2"), expected $3:"
	fi
	tail -n 40 "$2"
	fail "output is not as expected"
}

assert_no_match() {
	! grep -nE -e "$1" "$2" || fail "'$1' must not stand in $(basename "$2")"
}

# compile NAME [LIBRARY]...: build a program of scripts/e2e/progs and print its path.
# PROGRAMS is where scripts/programs has built some before.
compile() {
	[ ! -x "${PROGRAMS:-}/$1" ] || { echo "$PROGRAMS/$1"; return; }
	[ -x "$tmp/$1" ] || "$here/progs/build" "$1" "$tmp/$1" "${@:2}" || fail "cannot compile $1"
	echo "$tmp/$1"
}
