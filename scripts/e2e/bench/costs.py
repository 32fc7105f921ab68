# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a message costs: CPU time and system calls. A program's start and end cost as well;
so a short run is taken from a long one, and what is left belongs to the messages."""

import tempfile

import perftest
import tcp
from programs import Failure, port

MESSAGE = 65536
SHORT, LONG = 1000, 41000	# messages
FEWEST, MOST = 1000, 100000	# more of them in a long run
SECONDS = 1.5			# that a long run is to take longer
GB = 1e9


def _spent(world, work, count):
    """CPU seconds of each machine, and the bytes per second that the program printed."""
    before = world.busy()
    speed = work(count)
    after = world.busy()
    return {part: after[part] - before[part] for part in after}, speed


def _per_gigabyte(world, work):
    short, speed = _spent(world, work, SHORT)
    more = int(min(max(speed * SECONDS / MESSAGE, FEWEST), MOST))
    spent, _ = _spent(world, work, SHORT + more)
    spent = {part: spent[part] - short[part] for part in spent}
    if min(spent.values()) <= 0:
        raise Failure("the long run took no more CPU time than the short one", again=True)
    return {part: seconds / (more * MESSAGE / GB) for part, seconds in spent.items()}


def cpu(world, job):
    """CPU seconds per GB of messages of 64 KiB."""
    def messages(count):
        words = [*job.case.words, "-n", str(count)]
        return perftest.rates(perftest.pair(world, job.peer, words, seconds=40))["-"] * tcp.MIB
    return _per_gigabyte(world, messages)


def cpu_tcp(world, job):
    def messages(count):
        told = tcp.iperf(world, port(), "-n", str(count * MESSAGE), *job.case.words)
        return told["sum_received"]["bits_per_second"] / 8
    return _per_gigabyte(world, messages)


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
