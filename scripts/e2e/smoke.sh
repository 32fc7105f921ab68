#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The shortest test: rping and ib_send_bw on one device.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
attempts=2

suite smoke <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

link_shows_up() {
	rdma link show "$dev/1" | tee "$tmp/link"
	expect "link $dev/1 state ACTIVE .*netdev wd0" "$tmp/link"
}

rping_runs() {
	serve 7174 60 rping -s -a "$saddr4" -v -V -C 10
	client 60 rping -c -a "$saddr4" -v -V -C 10
	wait_server
	expect 'ping data: rdma-ping-9' "$tmp/client.log" 1
	expect 'server ping data: rdma-ping-9' "$tmp/server.log" 1
}

send_bw_runs() {
	perftest 90 ib_send_bw "$dev" "$dev" -n 200 -s 4096
	expect '^ *4096 +200 +[0-9.]+ +[0-9.]+' "$tmp/client.log" 1
}

link_delete() {
	rdma link delete "$dev"
	rdma link show | tee "$tmp/links"
	assert_no_match "$dev" "$tmp/links"
}

topology_dummy
t "the link is there and active" link_shows_up
t "rping" rping_runs
t "ib_send_bw" send_bw_runs
t "the link can be deleted" link_delete
finish
