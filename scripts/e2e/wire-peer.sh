#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Every requirement that can be seen on the wire, against a peer that shares no
# code with the module: scripts/wirepeer, over TCP, correct and broken.
# pytest runs wire-peer/test_*.py. PYTEST_ADDOPTS has its options: -k names or ids of
# requirements; --first-cases runs every test only with the first of its cases, since
# emulated CPUs are slow.
. "$(dirname "$0")/lib.sh"

suite wire-peer <<'TOPOLOGY'
  verbs agent, weft0 - va (wa, 10.77.0.1) === veth === vb (wb, 10.77.0.2) - plain TCP
TOPOLOGY

topology_wire() {
	modprobe -q veth
	modprobe -q sch_netem
	ip netns add wa
	ip netns add wb
	ip link add va netns wa mtu 1500 type veth peer name vb netns wb mtu 1500
	netns_end wa va "$addr4" "$addr6" "$dev" "$driver"
	netns_end wb vb "$peer4" "$peer6"
}

topology_wire
agent=$(compile agent) || { echo "Bail out! $agent"; exit 1; }
# Not "ip netns exec": that hides what /sys says of the device.
run_pytest wire-peer nsenter --net=/run/netns/wb -- --own="$peer4" \
	--agent="nsenter --net=/run/netns/wa $agent"
