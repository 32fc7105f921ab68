# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Completion vectors: a kernel module is the consumer, and measures while it is loaded."""

import os

from programs import run


def spread(world, job):
    """The figure that the case names, with so many vectors (all: one for each CPU)."""
    vectors, digest, figure = job.case.words
    if vectors == "all":
        vectors = str(os.cpu_count())
    run("insmod", os.environ["BENCH_VECTOR_SPREAD"], "address=" + world.address(job.peer),
        "vectors=" + vectors, "digest=" + digest)
    try:
        path = "/sys/module/vector_spread/parameters/" + figure
        with open(path, encoding="ascii") as file:
            return {"-": float(file.read())}
    finally:
        run("rmmod", "vector_spread")
