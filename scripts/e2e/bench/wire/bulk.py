# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Latency beside a bulk stream between the same hosts. With one CPU each, processes that
poll would wait for each other's ticks; so all of them sleep until something comes."""

import subprocess
import time

import perftest
import tcp
from programs import Failure, port
from wire import counted

MESSAGES = 3000
STREAM_SECONDS = 30		# longer than what is measured beside it
START = 0.5			# seconds until the stream is at speed


class Stream:
    """iperf3's, from the requester to the responder, for as long as it is needed."""

    def __init__(self, world, address):
        self.world, self.address, self.number = world, address, port()

    def __enter__(self):
        words = ["iperf3", "-s", "-1", "-B", self.address, "-p", str(self.number)]
        # pylint: disable=consider-using-with
        self.server = self.world.server(words, self.number)
        self.server.__enter__()
        self.client = subprocess.Popen(["iperf3", "-c", self.address, "-p", str(self.number), "-t",
                                        str(STREAM_SECONDS), "-l", "64K"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(START)
        return self

    def flows(self):
        return self.client.poll() is None

    def __exit__(self, kind, *_):
        self.client.kill()
        self.client.wait()
        self.server.kill()
        self.server.__exit__(None)


def _beside(world, job, work):
    """What the work gives, if the stream flowed until its end."""
    with Stream(world, world.address(job.peer)) as stream:
        found = work()
        if not stream.flows():
            raise Failure("the bulk stream ended before", again=True)
    return found


def latency(world, job):
    """Microseconds by percentile, by perftest's words of the case."""
    words = [*job.case.words, "-n", str(MESSAGES)]
    return _beside(world, job, lambda: counted.parts_of(
        perftest.pair(world, job.peer, words, seconds=counted.DEADLINE)))


def latency_tcp(world, job):
    """The same by qperf, which has no percentiles."""
    return _beside(world, job, lambda: tcp.latency(world, job))
