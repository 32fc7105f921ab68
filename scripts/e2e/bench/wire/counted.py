# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""perftest over the cable, always with a number of messages: as many as take so long, by
shorter runs before, since what it prints of a duration may be 0.00."""

import perftest

SECONDS = 0.8		# that a run is to take
# Messages of the runs that find out; the second, if the first is short. Large ones are
# fewer, and so at the least are those that are measured.
PROBES, LARGE_PROBES = (64, 2048), (16, 64)
LARGE = 1 << 18		# bytes
LONG_ENOUGH = 0.1	# seconds
FEWEST_LATENCIES, MOST_LATENCIES = 1000, 20000
PROBED_LATENCIES = 100
LONGEST = 6.0		# seconds for latencies, even if they are then too few for 99.9 %
MULTIPLE = 16		# of receives that perftest posts at a time
DEADLINE = 25
_counts = {}


def _queue_pairs(words):
    return int(words[words.index("-q") + 1]) if "-q" in words else 1


def probes(words):
    """By the size of the messages."""
    size = int(words[words.index("-s") + 1]) if "-s" in words else 0
    return LARGE_PROBES if size >= LARGE else PROBES


def _rounded(count):
    return -(-int(count) // MULTIPLE) * MULTIPLE


def _deadline(words):
    """Many queue pairs take long to connect."""
    return DEADLINE + _queue_pairs(words) // 20


def row_of(world, job, count):
    words = list(job.case.words)
    return perftest.pair(world, job.peer, [*words, "-n", str(count)], seconds=_deadline(words))


def messages(world, job):
    """How many to send on each queue pair; found out once for a job."""
    if job not in _counts:
        pairs = _queue_pairs(job.case.words)
        for probe in probes(job.case.words):
            per_second = perftest.rates(row_of(world, job, probe))["messages"]
            if pairs > 1 or probe * pairs / per_second > LONG_ENOUGH:
                break
        _counts[job] = max(_rounded(per_second * SECONDS / pairs), probes(job.case.words)[0])
    return _counts[job]


def bandwidth(world, job):
    """MiB/s, and messages per second."""
    return perftest.rates(row_of(world, job, messages(world, job)))


def rate(world, job):
    """Messages per second."""
    return {"-": bandwidth(world, job)["messages"]}


def latencies(microseconds):
    """How many operations of that length are measured."""
    fitting = SECONDS * 1e6 / microseconds
    return int(min(max(fitting, FEWEST_LATENCIES), MOST_LATENCIES,
                   max(LONGEST * 1e6 / microseconds, PROBED_LATENCIES)))


def parts_of(row):
    parts = {part: perftest.number(row[at]) for part, at in perftest.LATENCY_PARTS.items()}
    return {"-": parts["p50"], **parts}


def latency(world, job):
    """Microseconds by percentile; the median is the figure."""
    if job not in _counts:
        _counts[job] = latencies(parts_of(row_of(world, job, PROBED_LATENCIES))["avg"])
    return parts_of(row_of(world, job, _counts[job]))
