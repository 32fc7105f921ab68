#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# UCX opens every device, and does not use one of iWARP.
. "$(dirname "$0")/lib.sh"

suite ucx <<'TOPOLOGY'
  ucx_info and ucx_perftest --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

# UCX 1.13 has a memory domain without transports for it. 1.18 looks at the type first: none.
looked_at() {
	limit 20 ucx_info -d >"$tmp/info"
	limit 20 env UCX_LOG_LEVEL=debug ucx_info -d >"$tmp/debug" 2>&1
	if grep -E "device uverbs[0-9]+ of type iWARP is not supported" "$tmp/debug"; then
		assert_no_match "$dev" "$tmp/info"
		return
	fi
	expect "^# Memory domain: $dev\$" "$tmp/info" 1
	expect "initialized device '$dev' \\(iWARP NIC\\) with 1 ports" "$tmp/debug" 1
	expect "iWarp device $dev is not supported" "$tmp/debug"
}

# With all to choose from it takes TCP. One that was built with MPI is told to do without.
goes_by_tcp() {
	local options=(-p 13400 -t tag_bw -n 100 -s 65536)
	[[ $(ucx_perftest -h 2>&1) != *'-P <0|1>'* ]] || options+=(-P 0)
	serve 13400 20 ucx_perftest "${options[@]}"
	client 20 ucx_perftest "${options[@]}" "$saddr4"
	wait_server
	expect '^Final: +100 ' "$tmp/client.log" 1
}

topology_dummy
t "ucx_info: the device is seen, and ignored" looked_at
t "ucx_perftest finds another path" goes_by_tcp
finish
