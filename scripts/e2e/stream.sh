#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# rsockets over every size rstream knows, data verified: 14 GB in some millions
# of messages. Takes minutes at native speed, and a multiple of that in an emulated guest.
. "$(dirname "$0")/lib.sh"

suite stream <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

all_sizes() {
	serve 7471 1500 rstream -T v -S all
	client 1480 rstream -s "$saddr4" -T v -S all
	wait_server
	expect '^64_lat' "$tmp/client.log"
	expect '^6m_bw' "$tmp/client.log"
	assert_no_match 'verification failed|rsend|rrecv|rconnect' "$tmp/client.log"
}

topology_dummy
t "rstream -T v -S all" all_sizes
finish
