#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The commands of README.md, Documentation/operating.md and debugging.md, as written there, on a
# device with a connection that is in use; each prints what is expected. A new one needs a line in
# expected(). Commands for a host are not run here: scripts/check-docs checks that make targets and
# scripts exist, .ci/quickstart installs and builds.
. "$(dirname "$0")/lib.sh"

suite commands <<'TOPOLOGY'
  client and server --- weft0 --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

top=$(cd "$here/../.." && pwd)
traces=/sys/kernel/tracing/events

# commands_of PAGE: its indented lines, without their remarks; two on a line are two.
commands_of() {
	sed -n 's/^    \([^ ].*\)/\1/p' "$top/Documentation/$1" | sed 's/  *# .*//; s/; /\n/g'
}

# expected COMMAND: a regular expression for what it prints. Status 1: it is no command for here;
# 2: not known.
expected() {
	case $1 in
	weft0:*) return 1 ;; # lines of the log
	make* | 'sudo make '* | 'sudo apt '*) return 1 ;; # for the host
	'sudo modprobe'*) echo '^$' ;;
	'sudo rdma link add'*) echo '^$' ;;
	ibv_devinfo*) echo 'state:[[:space:]]+PORT_ACTIVE' ;;
	rping*) echo 'ping data: rdma-ping-9' ;;
	scripts/*) return 1 ;; # guests, which are no place in a guest
	*sudo*) return 1 ;; # systemd, which a guest has not
	'rdma statistic show'*) echo 'tx_messages [1-9]' ;;
	'rdma statistic qp show'*) echo 'cntn [0-9]+ .*LQPN: <' ;;
	'rdma statistic qp '*) echo '^$' ;;
	'rdma resource show qp -dd'*) echo 'drv_stream_state rts' ;;
	weft-top*-q*) echo '  [0-9]+ [0-9]+/rping +[0-9.]+ .* rts ' ;;
	weft-top*) echo 'weft0 +[0-9.]+ +[0-9.]+ .*/rping ' ;;
	'perf trace'*) echo 'weft:weft_' ;;
	'perf stat'*) echo '[0-9] +weft:weft_' ;;
	bpftrace*count*) echo 'Attaching' ;;
	bpftrace*) echo '@\[[0-9]+\]' ;;
	echo*) echo '^$' ;;
	cat*trace_pipe) echo 'weft_message_sent: ifindex=[0-9]+ qpn=[0-9]+ opcode=' ;;
	tcpdump*) echo '[1-9][0-9]* packets captured' ;;
	tshark*) echo 'RDMA|DDP' ;;
	*wire.py\ decode*) echo "packets with data, .*'fpdu'" ;;
	*wire.py\ crcs_good*) echo "^\{'good': [1-9][0-9]*\}" ;;
	*) return 2 ;;
	esac
}

# What a command needs is not in every kernel or guest.
needs() {
	local program=${1%% *}
	[ "$program" != weft-top ] || program=$top/scripts/weft-top
	command -v "$program" >/dev/null || skip "no $program"
	case $program in
	perf | bpftrace)
		[ -e /proc/sys/kernel/perf_event_paranoid ] || skip "this kernel has no perf events"
		;;
	esac
}

# The line as a shell runs it, but that it ends, with the number of a QP that there is.
run_line() {
	local line=${1/lqpn 17/lqpn $lqpn}
	line=${line#sudo } line=${line/eth0/wd0} line=${line/192.0.2.1/$addr4}
	line=${line/cntn 1/cntn $cntn}
	case $line in
	*trace_pipe) line="timeout $((3 * slow)) $line | head -n 500" ;;
	tcpdump* | bpftrace*) line="timeout -s INT $((6 * slow)) $line || [ \$? -eq 124 ]" ;;
	'rping -s'*) line="$line -C 10" ;;
	weft-top*) line="$top/scripts/$line -n 2" ;;
	*scripts/*) line=${line/scripts/$top/scripts} ;;
	esac
	(cd "$tmp" && limit 60 bash -c "$line") 2>&1
}

# A connection that moves data until it is stopped.
traffic_begins() {
	serve 7174 200 rping -s -a "$addr4" -C 100000000
	start 200 "$tmp/client.log" rping -c -a "$addr4" -C 100000000
	client=$started
	until lqpn=$(rdma resource show qp link "$dev/1" | sed -n 's/.*lqpn \([0-9]*\) .*state RTS.*/\1/p' | head -n 1) &&
		[ -n "$lqpn" ]; do
		kill -0 "$client" || fail "$(cat "$tmp/client.log")"
		sleep_nofork 0.1
	done
}

# A capture has to begin before the connection does.
short_connection() {
	sleep_nofork 1
	serve 7200 20 rping -s -a "$addr4" -p 7200 -C 20
	limit 20 rping -c -a "$addr4" -p 7200 -C 20
	wait_server
}

bind_counter() {
	rdma statistic qp bind link "$dev/1" lqpn "$lqpn"
	cntn=$(rdma statistic qp show link "$dev/1" | sed -n 's/.*cntn \([0-9]*\) .*/\1/p' | head -n 1)
}

# What a command finds when it comes.
prepare() {
	case $1 in
	tcpdump*) short_connection >/dev/null & ;;
	*'link add'*) rdma link delete "$dev" ;;
	'rping -s'*) (until listening 7174; do sleep_nofork 0.1; done
		limit 20 rping -c -a "$addr4" -C 10) & ;;
	'rping -c'*) serve 7174 30 rping -s -a "$addr4" -C 10 ;;
	tshark* | python3*) ;;
	*) traffic_begins ;;
	esac
	case $1 in
	*'qp show'* | *'qp unbind'*) bind_counter ;;
	*trace_pipe) echo 1 >"$traces/weft/enable" ;;
	esac
}

restore() {
	echo 0 >"$traces/weft/enable"
	echo 0 >"$traces/weft/filter"
	rdma statistic qp set link "$dev/1" auto off
	[ -z "$client" ] || kill "$client" "$server" 2>/dev/null || true
	wait
}

as_written() {
	local said lqpn=0 cntn=1 client=''
	needs "$1"
	prepare "$1"
	said=$(run_line "$1") || said+=" (status $?)"
	restore
	echo "$said" | tail -n 40
	[[ $said =~ $2 ]] || fail "it does not print '$2'"
}

topology_dummy
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
for page in ../README.md operating.md debugging.md; do
	while IFS= read -r line; do
		status=0
		want=$(expected "$line") || status=$?
		case $status in
		0) t "${page#../}: $line" as_written "$line" "$want" ;;
		2) t "${page#../}: $line" fail "this suite does not know what it prints" ;;
		esac
	done < <(commands_of "$page")
done
finish
