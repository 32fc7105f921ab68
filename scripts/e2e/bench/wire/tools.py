# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The tools that wire/cases.tsv names: functions of the cable and the job, which give
figures by part ("-" for the case's own)."""

import costs
import machine
import tcp
from wire import bulk, counted, roundtrip, storage

TOOLS = {
    "bw": counted.bandwidth,
    "rate": counted.rate,
    "lat": counted.latency,
    "roundtrip-lat": roundtrip.latency,
    "roundtrip-bw": roundtrip.bandwidth,
    "iperf3": tcp.bandwidth,
    "qperf": tcp.latency,
    "cpu": costs.cpu,
    "cpu-tcp": costs.cpu_tcp,
    "bulk-lat": bulk.latency,
    "bulk-qperf": bulk.latency_tcp,
    "nvme-bw": storage.bandwidth,
    "nvme-lat": storage.latency,
    "crc-speed": machine.crc_speed,
}
