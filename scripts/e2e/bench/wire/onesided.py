# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Reads, Writes and atomics while the responder's process is idle, spins, or is stopped:
scripts/e2e/bench/onesided/onesided.c at both ends."""

import os
import tempfile

from programs import Failure, port, run
from wire import counted

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                      "onesided", "onesided.c")
PARTS = ("min", "p50", "avg", "p99", "p99.9", "max")
MIB = 1 << 20
_counts = {}


def build():
    """The program, compiled; in each guest by itself, since they share no files."""
    target = os.path.join(tempfile.mkdtemp(), "onesided")
    run("cc", "-O2", "-Wall", "-Werror", "-o", target, SOURCE, "-lrdmacm", "-libverbs",
        timeout=60)
    return target


def _measure(world, job, count):
    """Bytes per second and the latencies of a run."""
    state, verb, size, depth = job.case.words
    number, address = str(port()), world.address(job.peer)
    serve = [world.far_program("onesided"), "serve", address, number,
             {"busy": "idle"}.get(state, state)]
    world.far.spin(state == "busy")
    try:
        with world.server(serve, int(number), tcp=job.peer != "rxe") as server:
            text = run(world.near_program("onesided"), "measure", address, number, verb, size,
                       str(count), depth, timeout=counted.DEADLINE)
            if state != "idle":
                server.kill()
    finally:
        world.far.spin(False)
    figures = [float(word) for word in text.split()]
    if len(figures) != 1 + len(PARTS) or min(figures) <= 0:
        raise Failure("onesided printed: %s" % text, again=True)
    return figures[0], dict(zip(PARTS, figures[1:]))


def latency(world, job):
    """Microseconds of a whole round trip."""
    if job not in _counts:
        _, parts = _measure(world, job, counted.PROBED_LATENCIES)
        _counts[job] = counted.latencies(parts["avg"])
    _, parts = _measure(world, job, _counts[job])
    return {"-": parts["p50"], **parts}


def bandwidth(world, job):
    """MiB/s with so many outstanding as the case says."""
    size = int(job.case.words[2])
    if job not in _counts:
        speed, _ = _measure(world, job, 2 * int(job.case.words[3]))
        _counts[job] = max(int(speed * counted.SECONDS / size), counted.PROBED_LATENCIES)
    return {"-": _measure(world, job, _counts[job])[0] / MIB}
