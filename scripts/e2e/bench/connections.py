# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Connections: how fast they come, what they cost while idle."""

import glob
import os
import tempfile
import time

from programs import Failure, Server, port, run

HERE = os.path.dirname(os.path.abspath(__file__))
_built = []


def _program():
    """idle_conns, compiled once."""
    if not _built:
        target = os.path.join(tempfile.mkdtemp(), "idle_conns")
        sources = [os.path.join(HERE, "idle_conns", name) for name in ("main.c", "tcp.c", "rdma.c")]
        run("cc", "-O1", "-Wall", "-Werror", "-o", target, *sources, "-lrdmacm", "-libverbs",
            timeout=60)
        _built.append(target)
    return _built[0]


def _idle_conns(world, job):
    kind = "tcp" if job.peer == "tcp" else "rdma"
    count = int(job.case.words[0])
    text = run(_program(), kind, world.address(job.peer), str(port()), str(count), timeout=100)
    seconds, available, slab = map(float, text.split())
    return count / seconds, available, slab


def rate(world, job):
    """Connections per second, both ends in one process."""
    return {"-": _idle_conns(world, job)[0]}


def _settle():
    """What earlier runs left in the slabs would be had for nothing."""
    time.sleep(1)
    for path in glob.glob("/sys/kernel/slab/*/shrink"):
        with open(path, "w", encoding="ascii") as file:
            file.write("1")


def memory(world, job):
    """KiB per idle connection, both ends, and how much of it is slab."""
    _settle()
    _, available, slab = _idle_conns(world, job)
    if available <= 0:
        raise Failure("memory grew by %g KiB per connection" % -available, again=True)
    return {"-": available, "slab": slab}


def cmtime(world, job):
    """Connections per second by cmtime's account of all steps up to "connect". What it
    could not connect it only complains of, and counts."""
    number = port()
    with Server(["cmtime", "-p", str(number)], number, tcp=job.peer != "rxe") as server:
        text = run("cmtime", "-s", world.address(job.peer), "-p", str(number), *job.case.words,
                   timeout=60, silent=True)
        server.kill()
    total, steps = 0.0, 0
    for line in text.split("\n"):
        name, colon, rest = line.partition(":")
        if colon and name.strip() in ("create id", "resolve addr", "resolve route", "create qp",
                                      "connect"):
            total += float(rest.split()[0])
            steps += 1
    if steps != 5 or total <= 0:
        raise Failure("cmtime said: %s" % text[-200:])
    count = int(job.case.words[job.case.words.index("-c") + 1])
    return {"-": count / (total / 1000)}
