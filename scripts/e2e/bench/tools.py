# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The tools that cases.tsv names: functions of the world and the job, which give figures
by part ("-" for the case's own)."""

import connections
import costs
import machine
import perftest
import tcp
import vectors

TOOLS = {
    "bw": perftest.bandwidth,
    "bw-counted": perftest.bandwidth_counted,
    "rate": perftest.rate,
    "rate-counted": perftest.rate_counted,
    "lat": perftest.latency,
    "lat-pinned": perftest.latency_pinned,
    "iperf3": tcp.bandwidth,
    "qperf": tcp.latency,
    "cpu": costs.cpu,
    "cpu-tcp": costs.cpu_tcp,
    "syscalls": costs.system_calls,
    "cmtime": connections.cmtime,
    "idle-conns-rate": connections.rate,
    "idle-conns-memory": connections.memory,
    "crc-speed": machine.crc_speed,
    "vectors": vectors.spread,
}
