#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What an operator can see and set: counters, resource tracking, traces, attributes.
# Each claim of Documentation/operating.md is tested. pytest runs operator/test_*.py;
# PYTEST_ADDOPTS has its options: -k names.
. "$(dirname "$0")/lib.sh"

suite operator <<'TOPOLOGY'
  one agent, both ends --- weft0 --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

topology_dummy
modprobe -q sch_netem
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
agent=$(compile agent) || { echo "Bail out! $agent"; exit 1; }

run_pytest operator -- --agent="$agent"
