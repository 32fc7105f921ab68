#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Malicious local processes: random writes to every mapped page, while the engine works and
# while objects are destroyed; mutated system calls, without privileges. They may harm
# themselves. The kernel does not complain, they can be killed, and other processes are not
# affected: on the same device, and on one whose counters are checked.
#
# FUZZ_SECONDS is how long each test lasts (default 5). FUZZ_SEED makes it begin with the
# same numbers again (default: another one each time).
. "$(dirname "$0")/lib.sh"

suite fuzz <<'TOPOLOGY'
  fuzzers, a neighbour --- wd0 (dummy, 10.77.0.1) --- lo
  another neighbour    --- wd1 (dummy, 10.78.0.1) --- lo
TOPOLOGY

seconds=${FUZZ_SECONDS:-5}
seed=${FUZZ_SEED:-$((RANDOM + 1))}
other=${driver}1 other_addr=10.78.0.1

# neighbour FILE DEVICE ADDRESS: as long as the fuzzers run.
neighbour() { start "$((seconds + 60))" "$1" "$races" "$2" "$3" "$seconds" traffic; }

# Messages that its two QPs have sent, and nothing that went wrong. Its initiator begins
# with an empty Write, the RTR message.
looked_at() {
	local rounds kind errors made
	rounds=$(sed -n 's/^traffic: \([0-9]*\) rounds/\1/p' "$tmp/other")
	for kind in tx_sends tx_writes tx_read_requests rx_read_responses; do
		made=$(($(counted "$kind" "$other") - before[$kind]))
		[ "$kind" != tx_writes ] || made=$((made - 1))
		[ "$made" -eq "$rounds" ] || fail "$rounds rounds, and $made more $kind"
	done
	for kind in "${faults[@]}"; do
		errors=$(counted "$kind" "$other")
		[ "$errors" -eq 0 ] || fail "$kind is $errors"
	done
}

faults=(rx_protocol_errors rx_crc_errors tx_terminates rx_terminates cq_overflows wr_errors
	connections_lost)

# besieged FUZZER...: they run, with two neighbours beside them.
besieged() {
	local same another kind
	local -A before
	for kind in tx_sends tx_writes tx_read_requests rx_read_responses; do
		before[$kind]=$(counted "$kind" "$other")
	done
	neighbour "$tmp/same" "$dev" "$addr4"
	same=$started
	neighbour "$tmp/other" "$other" "$other_addr"
	another=$started
	echo "seed $seed"
	limit "$((seconds + 60))" "$races" -s "$seed" "$dev" "$addr4" "$seconds" "$@"
	ended "$same" "$tmp/same"
	ended "$another" "$tmp/other"
	sleep_nofork 0.1 # the core refreshes its counters with a delay
	looked_at
}

# The engine has read what was written there, and did not like it.
# On a slow machine a process may be killed before that.
pages_are_read() {
	local errors try
	errors=$(counted wr_errors)
	for ((try = 0; try < 5 * slow; try++)); do
		besieged "$@"
		[ "$(counted wr_errors)" -eq "$errors" ] || return 0
	done
	fail "no request was any different"
}

topology_dummy
ip link add wd1 type dummy
ip link set wd1 up
ip addr add "$other_addr/24" dev wd1
make_link "$other" wd1
short_timeouts "$dev"
races=$(compile races) || { echo "Bail out! $races"; exit 1; }
echo "# seed $seed, $seconds s each"
t "random writes to every mapped page" pages_are_read pages pages
t "mutated system calls of an unprivileged process" besieged calls calls
t "both at once, and the objects are shown" besieged pages calls dumps statistics sysfs
finish
