# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the same TCP does without RDMA on top: iperf3 and qperf."""

import json

from programs import Failure, port, run

MIB = 1 << 20


def iperf(world, number, *words):
    """One stream; iperf3's own account of it."""
    address = world.address("tcp")
    with world.server(["iperf3", "-s", "-1", "-B", address, "-p", str(number)], number):
        text = run("iperf3", "-c", address, "-p", str(number), "-J", *words)
    try:
        told = json.loads(text)["end"]
        if told["sum_received"]["bytes"] <= 0:
            raise Failure("iperf3 received nothing", again=True)
    except (ValueError, KeyError) as why:
        raise Failure("iperf3's report: %r" % why, again=True) from None
    return told


def bandwidth(world, job):
    """MiB/s, as the receiver saw it."""
    told = iperf(world, port(), "-t", "1", *job.case.words)
    return {"-": told["sum_received"]["bits_per_second"] / 8 / MIB}


def latency(world, job):
    """qperf's tcp_lat: half a round trip, in microseconds, like perftest's."""
    number = port()
    with world.server(["qperf", "-lp", str(number)], number) as server:
        text = run("qperf", "-lp", str(number), "-t", "1", "-uu", *job.case.words,
                   world.address("tcp"), "tcp_lat")
        server.kill()
    for line in text.split("\n"):
        words = line.split()
        if words[:2] == ["latency", "="]:
            scale = {"ns": 1e-3, "us": 1, "ms": 1e3, "sec": 1e6}[words[3]]
            return {"-": float(words[2].replace(",", "")) * scale}
    raise Failure("qperf printed no latency")
