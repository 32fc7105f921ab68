# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The tools that wire/cases.tsv names: functions of the cable and the job, which give
figures by part ("-" for the case's own)."""

import costs
import tcp
from wire import counted, onesided

TOOLS = {
    "bw": counted.bandwidth,
    "rate": counted.rate,
    "lat": counted.latency,
    "onesided-lat": onesided.latency,
    "onesided-bw": onesided.bandwidth,
    "iperf3": tcp.bandwidth,
    "qperf": tcp.latency,
    "cpu": costs.cpu,
    "cpu-tcp": costs.cpu_tcp,
}
