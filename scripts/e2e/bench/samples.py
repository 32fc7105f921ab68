# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What was measured: a file of lines, and the medians over its rounds."""

import collections
import statistics

FAILED = "failed"
Figure = collections.namedtuple("Figure", "median low high count failures reason")


class Writer:
    """Appends samples; what is there survives a crash of the guest."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8", buffering=1)

    def add(self, job, part, value, reason=""):
        shown = FAILED if value is None else "%.6g" % value
        print(job.case.name, job.mtu, job.crc, job.peer, part or "-", shown,
              " ".join(reason.split()) or "-", sep="\t", file=self.file)


    def close(self):
        self.file.close()


class Samples:
    """By case, MTU, CRC, peer and part ("-" is the case's own figure)."""

    def __init__(self, *paths):
        values = collections.defaultdict(list)
        self.reasons = {}
        links = collections.defaultdict(set)
        for path in paths:
            for key, value, reason in self._lines(path):
                links[key[1]].add(path)
                values[key].append(None if value == FAILED else float(value))
                if value == FAILED:
                    self.reasons.setdefault(key, reason)
        mixed = [link for link, boots in links.items() if len(boots) > 1]
        if mixed:
            raise ValueError("measured in more than one boot: " + " ".join(mixed))
        self.figures = {key: self._figure(key, found) for key, found in values.items()}

    @staticmethod
    def _lines(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                *key, value, reason = line.rstrip("\n").split("\t")
                yield tuple(key), value, reason

    def _figure(self, key, found):
        good = [value for value in found if value is not None]
        failures = len(found) - len(good)
        reason = self.reasons.get(key, "")
        if not good:
            return Figure(None, None, None, 0, failures, reason)
        return Figure(statistics.median(good), min(good), max(good), len(good), failures, reason)

    def get(self, case, mtu, crc, peer, part="-"):
        """The figure, or None when it was not asked for."""
        return self.figures.get((case, mtu, crc, peer, part))

    def has(self, peer):
        """Was it measured at all?"""
        return any(key[3] == peer for key in self.figures)

    def mtus(self):
        """The MTUs, or links, that something was measured with, in that order."""
        return list(dict.fromkeys(key[1] for key in self.figures))

    def parts(self, case, mtu, crc, peer):
        return {key[4]: figure for key, figure in self.figures.items()
                if key[:4] == (case, mtu, crc, peer)}
