#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Open MPI over libfabric: the only path to weft that Debian's build has. BTL openib of 4.1 was
# built without rdma_cm, which every iWARP card needs, and 5 has none. UCX does not support iWARP.
# BTL ofi of 4.1 makes no connection, whatever its provider; that of 5 refuses ofi_rxm.
. "$(dirname "$0")/lib.sh"

suite mpi <<'TOPOLOGY'
  all ranks --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash HOME=$tmp

started_by=(mpirun --oversubscribe --mca mpi_yield_when_idle 1)
osc=()

# ranks N FLOOR CASE...: N of them run these cases, without shared memory between them,
# and the device carries at least so many bytes.
ranks() {
	local n=$1 floor=$2 before name
	shift 2
	before=$(counted tx_bytes)
	limit 90 "${started_by[@]}" -n "$n" --mca pml cm --mca mtl ofi \
		--mca mtl_ofi_provider_include verbs "${osc[@]}" \
		"$(compile mpi)" "$@" >"$tmp/ranks.log" 2>&1 || {
		cat "$tmp/ranks.log"
		fail "see the ranks"
	}
	cat "$tmp/ranks.log"
	for name; do expect "^$name: passed" "$tmp/ranks.log" 1; done
	[ $(($(counted tx_bytes) - before)) -ge "$floor" ] ||
		fail "$(($(counted tx_bytes) - before)) bytes of $floor went over $dev"
}

# one_sided N FLOOR CASE...: by osc pt2pt, or ranks on one machine reach into each other through
# shared memory. Open MPI 5 has lost it. Its osc rdma wants a BTL, and BTL ofi takes no provider
# over ofi_rxm. On verbs libfabric has reliable datagrams by that alone, so plain TCP is left,
# whatever the card.
one_sided() {
	if [[ $(ompi_info --parsable) == *mca:osc:pt2pt:* ]]; then
		osc=(--mca osc pt2pt)
		ranks "$@"
		return
	fi
	! limit 60 "${started_by[@]}" -n 2 --mca pml ob1 --mca btl ofi,self --mca osc rdma \
		--mca btl_base_verbose 100 --mca opal_common_ofi_provider_include verbs \
		"$(compile mpi)" put_and_get >"$tmp/ranks.log" 2>&1 || fail "BTL ofi works: use it"
	expect 'init of component ofi returned failure' "$tmp/ranks.log"
	skip "$(mpirun --version | sed -n '1s/[()]//g; 1s/^mpirun //p'):" \
		"no osc pt2pt, and BTL ofi takes no provider over ofi_rxm"
}

topology_dummy
CC=mpicc compile mpi >/dev/null
t "messages of all sizes" ranks 2 40000000 messages
t "messages that cross" ranks 2 4000000 crossing
t "64 MiB" ranks 2 134217728 large
t "Put, Get, Accumulate, Compare_and_swap" one_sided 2 12000000 put_and_get accumulate swap
t "collectives" ranks 2 2000000 all_to_all collectives
t "four ranks" ranks 4 10000000 crossing all_to_all collectives
t "four ranks: Put, Get, Accumulate, Compare_and_swap" \
	one_sided 4 4000000 put_and_get accumulate swap
finish
