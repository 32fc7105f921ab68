#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Open MPI over libfabric: the only path to weft that Debian's build has. Its BTL openib was
# built without rdma_cm, which every iWARP card needs; UCX does not support iWARP; BTL ofi
# makes no connection, whatever its provider.
. "$(dirname "$0")/lib.sh"

suite mpi <<'TOPOLOGY'
  all ranks --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash HOME=$tmp

# ranks N FLOOR CASE...: N of them run these cases, without shared memory between them,
# and the device carries at least so many bytes.
# osc pt2pt, or ranks on one machine reach into each other through shared memory.
ranks() {
	local n=$1 floor=$2 before name
	shift 2
	before=$(counted tx_bytes)
	limit 90 mpirun -n "$n" --oversubscribe --mca mpi_yield_when_idle 1 --mca pml cm \
		--mca mtl ofi --mca mtl_ofi_provider_include verbs --mca osc pt2pt \
		"$(compile mpi)" "$@" >"$tmp/ranks.log" 2>&1 || {
		cat "$tmp/ranks.log"
		fail "see the ranks"
	}
	cat "$tmp/ranks.log"
	for name; do expect "^$name: passed" "$tmp/ranks.log" 1; done
	[ $(($(counted tx_bytes) - before)) -ge "$floor" ] ||
		fail "$(($(counted tx_bytes) - before)) bytes of $floor went over $dev"
}

topology_dummy
CC=mpicc compile mpi >/dev/null
t "messages of all sizes" ranks 2 40000000 messages
t "messages that cross" ranks 2 4000000 crossing
t "64 MiB" ranks 2 134217728 large
t "Put, Get, Accumulate, Compare_and_swap" ranks 2 12000000 put_and_get accumulate swap
t "collectives" ranks 2 2000000 all_to_all collectives
t "four ranks" ranks 4 10000000 crossing put_and_get accumulate swap all_to_all collectives
finish
