#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# rdma-core's own test suite, as Debian packages it, unmodified. pyverbs/expected.tsv lists what an
# iWARP device must pass, what it must refuse, which the suite turns into a skip, and what no such
# device can pass. PYTEST_ADDOPTS has the options of pytest: -k names, modules or results.
. "$(dirname "$0")/lib.sh"

suite pyverbs <<'TOPOLOGY'
  all tests --- eth0 (virtio-net, 10.77.0.1): the suite looks for the address of
  the device's parent, which dummy netdevs do not have
TOPOLOGY

topology_parent() {
	ip addr flush dev eth0
	ip addr add "$addr4/24" dev eth0
	ip link set eth0 up
	make_link "$dev" eth0
}

modprobe -q virtio_net
if [ ! -e /sys/class/net/eth0 ]; then
	echo "1..0 # SKIP no network device with a parent in this guest"
	exit 0
fi
topology_parent
cp -r /usr/share/doc/rdma-core/tests "$tmp/tests"
find "$tmp/tests" -name '*.gz' -exec gunzip {} +
export PYTHONPATH=$tmp:$tmp/tests
run_pytest pyverbs --
