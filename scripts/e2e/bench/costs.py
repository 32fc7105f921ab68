# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a message costs: CPU time and system calls. A program's start and end cost as well;
so a short run is taken from a long one, and what is left belongs to the messages."""

import os
import tempfile

import perftest
import tcp
from programs import Failure, port

MESSAGE = 65536
SHORT, LONG = 1000, 11000
GB = 1e9


def _busy_seconds():
    """CPU time of the whole machine: whoever works for a message is counted."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _spent(work, *args):
    before = _busy_seconds()
    work(*args)
    return _busy_seconds() - before


def cpu(world, job):
    """CPU seconds per GB of messages of 64 KiB."""
    def messages(count):
        perftest.pair(world, job.peer, [*job.case.words, "-n", str(count)], seconds=40)
    return _per_gigabyte(messages)


def cpu_tcp(world, job):
    def messages(count):
        tcp.iperf(world, port(), "-n", str(count * MESSAGE), *job.case.words)
    return _per_gigabyte(messages)


def _per_gigabyte(messages):
    spent = _spent(messages, LONG) - _spent(messages, SHORT)
    if spent <= 0:
        raise Failure("the long run took no more CPU time than the short one", again=True)
    return {"-": spent / ((LONG - SHORT) * MESSAGE / GB)}


def _calls(world, job, count):
    """System calls of the client, by strace's summary."""
    with tempfile.NamedTemporaryFile("r") as told:
        perftest.pair(world, job.peer, [*job.case.words, "-n", str(count)],
                      wrap=("strace", "-f", "-c", "-o", told.name), seconds=60)
        for line in told:
            words = line.split()
            if words and words[-1] == "total":
                return int(words[3])
    raise Failure("strace counted nothing")


def system_calls(world, job):
    """Per posted request."""
    more = _calls(world, job, LONG) - _calls(world, job, SHORT)
    return {"-": max(more, 0) / (LONG - SHORT)}
