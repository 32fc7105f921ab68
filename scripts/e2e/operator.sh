#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What an operator sees and steers: counters, resource tracking, traces, attributes.
# Each claim of Documentation/operating.md is tried. OPERATOR_ONLY chooses tests
# by a part of their names.
. "$(dirname "$0")/lib.sh"

suite operator <<'TOPOLOGY'
  one agent, both ends --- weft0 --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

topology_dummy
modprobe -q sch_netem
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
agent=$(compile agent) || { echo "Bail out! $agent"; exit 1; }

export PYTHONDONTWRITEBYTECODE=1
skip_kernel_log
/usr/bin/python3 "$here/operator/run.py" --dev "$dev" --addr "$addr4" --addr6 "$addr6" \
	--slow "$slow" --only "${OPERATOR_ONLY:-}" -- "$agent"
status=$?
idle || status=1
new_splats || status=1
exit "$status"
