# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Operations while the responder's process is idle, spins, is stopped, or echoes:
scripts/e2e/bench/roundtrip/roundtrip.c at both ends. The words of a case: what the
responder does, operation, poll or sleep, size, how many are outstanding."""

import os
import tempfile

from programs import Failure, port, run
from wire import counted

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                      "roundtrip", "roundtrip.c")
PARTS = ("min", "p50", "avg", "p99", "p99.9", "max")
MIB = 1 << 20
_counts = {}


def build():
    """The program, compiled; in each guest by itself, since they share no files."""
    target = os.path.join(tempfile.mkdtemp(), "roundtrip")
    run("cc", "-O2", "-Wall", "-Werror", "-o", target, SOURCE, "-lrdmacm", "-libverbs",
        timeout=60)
    return target


def _measure(world, job, count):
    """Bytes per second and the latencies of a run."""
    state, verb, wait, size, depth = job.case.words
    number, address = str(port()), world.address(job.peer)
    serve = [world.far_program("roundtrip"), "serve", address, number,
             {"busy": "idle"}.get(state, state)]
    world.far.spin(state == "busy")
    try:
        with world.server(serve, int(number), tcp=job.peer != "rxe") as server:
            text = run(world.near_program("roundtrip"), "measure", address, number, verb, wait,
                       size, str(count), depth, timeout=counted.DEADLINE)
            server.kill()
    finally:
        world.far.spin(False)
    figures = [float(word) for word in text.split()]
    if len(figures) != 1 + len(PARTS) or min(figures) <= 0:
        raise Failure("roundtrip printed: %s" % text, again=True)
    return figures[0], dict(zip(PARTS, figures[1:]))


def latency(world, job):
    """Microseconds of a whole round trip; of a send half of one, as perftest has it."""
    if job not in _counts:
        _, parts = _measure(world, job, counted.PROBED_LATENCIES)
        _counts[job] = counted.latencies(parts["avg"])
    _, parts = _measure(world, job, _counts[job])
    if job.case.words[1] == "send":
        parts = {part: value / 2 for part, value in parts.items()}
    return {"-": parts["p50"], **parts}


def bandwidth(world, job):
    """MiB/s with so many outstanding as the case says."""
    size, depth = map(int, job.case.words[3:])
    if job not in _counts:
        speed, _ = _measure(world, job, 2 * depth)
        _counts[job] = max(int(speed * counted.SECONDS / size), counted.PROBED_LATENCIES)
    return {"-": _measure(world, job, _counts[job])[0] / MIB}
