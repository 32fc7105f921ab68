# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Latency beside a bulk stream between the same hosts. With one CPU each, processes that
poll would wait for each other's ticks; so all of them sleep until something comes."""

import subprocess
import time

import tcp
from programs import Failure, port
from wire import roundtrip

START = 0.5		# seconds until the stream is at speed
MIB = 1 << 20
SLOWEST = 1.0		# MiB/s of what still is a stream
# Longer than what is measured beside it: seconds, and messages of 64 KiB.
TCP_STREAM = ("iperf3", "-t", "60", "-l", "64K")
RDMA_STREAM = ("ib_send_bw", "-e", "-s", "65536", "-n", "2000000", "-N")


class Stream:
    """From the requester to the responder, for as long as it is needed: iperf3's, or one of
    the device under test."""

    def __init__(self, world, peer, kind):
        self.world, address, number = world, world.address(peer), port()
        if kind == "tcp":
            server = ["iperf3", "-s", "-1", "-B", address, "-p", str(number)]
            self.words = [*TCP_STREAM, "-c", address, "-p", str(number)]
        else:
            server = [*RDMA_STREAM, "-R", "-F", "-d", peer + "0", "-p", str(number)]
            self.words = [*server, address]
        self.server = world.server(server, number, tcp=peer != "rxe" or kind == "tcp")

    def _sent(self):
        path = "/sys/class/net/%s/statistics/tx_bytes" % self.world.near.card
        with open(path, encoding="ascii") as file:
            return int(file.read())

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.server.__enter__()
        self.client = subprocess.Popen(self.words, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        time.sleep(START)
        self.before, self.began = self._sent(), time.monotonic()
        return self

    def speed(self):
        """MiB/s since its start; a failure if it is none."""
        found = (self._sent() - self.before) / (time.monotonic() - self.began) / MIB
        if self.client.poll() is not None or found < SLOWEST:
            raise Failure("the bulk stream did not flow")
        return found

    def __exit__(self, *_):
        self.client.kill()
        self.client.wait()
        self.server.kill()
        self.server.__exit__(None)


def _beside(world, job, work):
    """What the work gives with the words of the case, without the first, which is whose
    the stream is: tcp or own."""
    kind, *words = job.case.words
    job = job._replace(case=job.case._replace(words=tuple(words)))
    with Stream(world, job.peer, kind) as stream:
        found = work(world, job)
        found["stream, MiB/s"] = stream.speed()
    return found


def latency(world, job):
    """Microseconds by percentile. perftest cannot calibrate its clock beside a stream."""
    return _beside(world, job, roundtrip.latency)


def latency_tcp(world, job):
    """The same of qperf, which has no percentiles."""
    return _beside(world, job, tcp.latency)
