#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Gloo, the collective operations of machine learning, over its transport ibverbs: progs/gloo.cc on
# the unmodified library.
. "$(dirname "$0")/lib.sh"

suite gloo <<'TOPOLOGY'
  ranks --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
  wa: va (10.77.0.1, fd77::1) weft on it --- veth --- wb: vb (10.77.0.2, fd77::2) weft on it
TOPOLOGY

# rank NUMBER RANKS STORE DEVICE GID [COMMAND]...: in the background.
rank() {
	timeout $((40 * slow)) "${@:6}" "$program" "${@:1:5}" >"$3/log.$1" 2>&1 &
	ranks+=($!)
}

# A rank that meets another's end, or its own, does not end well: Gloo aborts.
all_end_well() {
	local pid bad=
	for pid in "${ranks[@]}"; do wait "$pid" || bad=$?; done
	tail -n 5 "$1"/log.*
	[ -z "$bad" ] || fail "a rank ended with status $bad"
	[ "$(cat "$1"/log.* | grep -cx 'done')" -eq "${#ranks[@]}" ]
}

# on_one_device RANKS GID
on_one_device() {
	local store i writes ranks=()
	store=$(mktemp -d "$tmp/store.XXXXXX")
	writes=$(counted tx_writes)
	for ((i = 0; i < $1; i++)); do rank "$i" "$1" "$store" "$dev" "$2"; done
	all_end_well "$store"
	[ $(($(counted tx_writes) - writes)) -ge $(($1 * 100)) ]
}

between_namespaces() {
	local store ranks=()
	store=$(mktemp -d "$tmp/store.XXXXXX")
	rank 0 2 "$store" "${driver}a" "$1" ip netns exec wa
	rank 1 2 "$store" "${driver}b" "$1" ip netns exec wb
	all_end_well "$store"
}

program=$(compile gloo -lgloo -lhiredis) || exit 1
topology_dummy
t "four ranks" on_one_device 4 1
cleanup >/dev/null 2>&1
topology_veth
t "two ranks between namespaces" between_namespaces 1
t "the same over IPv6" between_namespaces 2
finish
