# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""perftest: bandwidth, message rate, latency. It reads the CPU's clock by sampling, and on
a busy machine prints 0.00 or inf: such a run is worth another try."""

import math
import re

from programs import SLOW, Failure, last_line, on_cpu, port, subprocess

# What a counted run is made to take, and how many messages find out how many that are.
SECONDS = 0.8
PROBE = 512
LATENCY_PARTS = {"min": 2, "p50": 4, "avg": 5, "p99": 7, "p99.9": 8}
REFUSED = re.compile(r"refused|REJECTED; error: (-111|8)\b")
# What went wrong, above whatever else it prints.
EVENT = re.compile(r"Event: (.*)")
_counts = {}


def number(text):
    value = float(text)
    if not math.isfinite(value) or value <= 0:
        raise Failure("perftest printed %s" % text, again=True)
    return value


def _table_row(text):
    """The line of figures below the heading."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.strip().startswith("#bytes"):
            for row in lines[at + 1:]:
                words = row.split()
                if words and words[0].isdigit():
                    return words
    return None


def pair(world, peer, words, wrap=(), seconds=12, server_wrap=()):
    """Server and client; gives the client's row of figures."""
    number = port()
    words = [words[0], "-R", "-F", "-d", peer + "0", "-p", str(number), *words[1:]]
    with world.server([*server_wrap, *words], number, tcp=peer != "rxe") as server:
        try:
            done = subprocess.run([*wrap, *words, world.address(peer)], capture_output=True,
                                  text=True, timeout=seconds * SLOW, start_new_session=True)
        except subprocess.TimeoutExpired:
            raise Failure("no end after %d s" % (seconds * SLOW)) from None
        row = _table_row(done.stdout)
        if done.returncode or row is None:
            # A listener of all devices is there before it has reached each of them, and
            # perftest's does not listen between its two connections.
            event = EVENT.search(done.stdout + done.stderr)
            raise Failure("status %d: %s; server: %s" %
                          (done.returncode, event[1] if event else last_line(done),
                           server.said()),
                          again=bool(REFUSED.search(done.stdout + done.stderr)))
    return row


def rates(row):
    """MiB/s, and messages per second."""
    return {"-": number(row[3]), "messages": number(row[4]) * 1e6}


def _count(job, row, multiple):
    """As many messages as will take SECONDS, by the row of a shorter run."""
    per_second = number(row[4]) * 1e6
    fewest = max(64, multiple)
    count = max(fewest, int(per_second * SECONDS))
    _counts[job] = (count + multiple - 1) // multiple * multiple
    return _counts[job]


def counted_words(world, job, words, multiple=16):
    """The words of a run of about SECONDS that is bounded by a number of messages."""
    if job not in _counts:
        _count(job, pair(world, job.peer, [*words, "-n", str(PROBE)]), multiple)
    return [*words, "-n", str(_counts[job])]


def bandwidth(world, job):
    """MiB/s, for a second of polling."""
    return rates(pair(world, job.peer, [*job.case.words, "-D", "1"]))


def bandwidth_counted(world, job):
    """MiB/s with completion events, which do not go with a duration."""
    return rates(pair(world, job.peer, counted_words(world, job, job.case.words)))


def rate(world, job):
    """Messages per second."""
    return {"-": bandwidth(world, job)["messages"]}


def rate_counted(world, job):
    return {"-": bandwidth_counted(world, job)["messages"]}


def _latency(world, job, client=(), server=()):
    row = pair(world, job.peer, job.case.words, client, server_wrap=server)
    parts = {part: number(row[at]) for part, at in LATENCY_PARTS.items()}
    return {"-": parts["p50"], **parts}


def latency(world, job):
    """Microseconds: the typical one, which is the median, and percentiles."""
    return _latency(world, job)


def latency_pinned(world, job):
    """The same with a CPU for each end: no matter where the scheduler would put them."""
    return _latency(world, job, on_cpu(0), on_cpu(1))
