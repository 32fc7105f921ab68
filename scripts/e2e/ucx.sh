#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# UCX opens every device, and does not use one of iWARP.
. "$(dirname "$0")/lib.sh"

suite ucx <<'TOPOLOGY'
  ucx_info and ucx_perftest --- wd0 (dummy, 10.77.0.1) --- lo
TOPOLOGY

looked_at() {
	limit 20 ucx_info -d >"$tmp/info"
	expect "^# Memory domain: $dev\$" "$tmp/info" 1
	limit 20 env UCX_LOG_LEVEL=debug ucx_info -d >"$tmp/debug" 2>&1
	expect "initialized device '$dev' \\(iWARP NIC\\) with 1 ports" "$tmp/debug" 1
	expect "iWarp device $dev is not supported" "$tmp/debug"
}

# With all to choose from it takes TCP.
goes_by_tcp() {
	serve 13400 20 ucx_perftest -p 13400 -t tag_bw -n 100 -s 65536
	client 20 ucx_perftest -p 13400 -t tag_bw -n 100 -s 65536 "$saddr4"
	wait_server
	expect '^Final: +100 ' "$tmp/client.log" 1
}

topology_dummy
t "ucx_info: the device is opened, and ignored" looked_at
t "ucx_perftest finds another path" goes_by_tcp
finish
