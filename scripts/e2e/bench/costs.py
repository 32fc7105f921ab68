# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a message costs: CPU time and system calls. A program's start and end cost as well;
so a short run is taken from a long one, and what is left belongs to the messages."""

import os
import tempfile

import perftest
import tcp
from programs import Failure, port

MESSAGE = 65536
SHORT, LONG = 1000, 41000	# messages
FEWEST, MOST = 1000, 100000	# more of them in a long run
SECONDS = 1.5			# that a long run is to take longer
GB = 1e9


def _busy_seconds():
    """CPU time of the whole machine: whoever works for a message is counted. All that is
    not idle is busy; ticks, which the other columns are counted in, are too coarse."""
    with open("/proc/uptime", encoding="ascii") as file:
        up, idle = map(float, file.read().split())
    return up * os.cpu_count() - idle


def _spent(work, count):
    """CPU seconds, and the bytes per second that the program printed."""
    before = _busy_seconds()
    speed = work(count)
    return _busy_seconds() - before, speed


def _per_gigabyte(work):
    short, speed = _spent(work, SHORT)
    more = int(min(max(speed * SECONDS / MESSAGE, FEWEST), MOST))
    spent = _spent(work, SHORT + more)[0] - short
    if spent <= 0:
        raise Failure("the long run took no more CPU time than the short one", again=True)
    return {"-": spent / (more * MESSAGE / GB)}


def cpu(world, job):
    """CPU seconds per GB of messages of 64 KiB."""
    def messages(count):
        words = [*job.case.words, "-n", str(count)]
        return perftest.rates(perftest.pair(world, job.peer, words, seconds=40))["-"] * tcp.MIB
    return _per_gigabyte(messages)


def cpu_tcp(world, job):
    def messages(count):
        told = tcp.iperf(world, port(), "-n", str(count * MESSAGE), *job.case.words)
        return told["sum_received"]["bits_per_second"] / 8
    return _per_gigabyte(messages)


# perftest compares two clocks when it starts, for as many calls as that takes, and
# User-Mode Linux has no vDSO that would answer them.
CLOCK = "gettimeofday"


def _calls(world, job, count):
    """System calls of the client, by strace's summary."""
    with tempfile.NamedTemporaryFile("r") as told:
        perftest.pair(world, job.peer, [*job.case.words, "-n", str(count)],
                      wrap=("strace", "-f", "-c", "-o", told.name), seconds=60)
        rows = [line.split() for line in told]
    calls = {row[-1]: int(row[3]) for row in rows if len(row) > 4 and row[3].isdigit()}
    if "total" not in calls:
        raise Failure("strace counted nothing")
    return calls["total"] - calls.get(CLOCK, 0)


def system_calls(world, job):
    """Per posted request."""
    more = _calls(world, job, LONG) - _calls(world, job, SHORT)
    return {"-": max(more, 0) / (LONG - SHORT)}
