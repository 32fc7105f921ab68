# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Holds what was measured against demands.tsv. Nothing here knows a figure."""

import collections

from cases import CRCS, MTUS, rows

Demand = collections.namedtuple("Demand", "title cases mtus crcs factor reference")
# One comparison: weft's figure, the limit, what the limit comes from, and the verdict.
Verdict = collections.namedtuple("Verdict", "demand case mtu crc weft limit ratio verdict")
REACHED, MISSED, OPEN = "reached", "missed", "not known"
ALONE = "reached, siw fails"
GOOD = (REACHED, ALONE)


def load():
    for title, names, mtus, crcs, factor, reference in rows("demands.tsv"):
        yield Demand(title, names.split(","), mtus.split(","), crcs.split(","), float(factor),
                     reference)


def ahead_of_siw():
    """The same cases, each once, asking only for more than siw has."""
    seen = set()
    for demand in load():
        names = [name for name in demand.cases if name not in seen]
        seen.update(names)
        if names:
            own = demand.reference.startswith("siw:")
            yield demand._replace(title=demand.title.split(",")[0] + ", of siw", cases=names,
                                  mtus=MTUS, crcs=CRCS, factor=1.0,
                                  reference=demand.reference if own else "siw")


class Judge:
    """The samples, the cases and how to find a reference's figure."""

    def __init__(self, samples, cases):
        self.samples, self.cases = samples, cases

    def _median(self, case, mtu, crc, peer):
        figure = self.samples.get(case, mtu, crc, peer)
        return figure.median if figure else None

    def _tcp(self, case, mtu):
        """TCP's own case, or the same case where TCP is one of its peers."""
        if "tcp" in self.cases[case].peers:
            return self._median(case, mtu, "off", "tcp")
        return self._median(self.cases[case].tcp, mtu, "off", "tcp")

    def _crc(self, mtu):
        speed = self._median("crc_speed", mtu, "off", "machine")
        return None if speed is None else speed / 2

    def _limit(self, demand, case, mtu, crc):
        """The figure to reach, None when a part of it is missing; and its base."""
        reference, _, other = demand.reference.partition(":")
        if reference == "none":
            return demand.factor, 1.0
        if reference.startswith("tcp+"):
            base, extra = self._tcp(case, mtu), float(reference[4:])
            return (None, None) if base is None else (demand.factor * base + extra, base)
        if reference in ("tcp", "tcp|crc"):
            found = [self._tcp(case, mtu)] + ([self._crc(mtu)] if "crc" in reference else [])
            base = None if None in found else min(found)
        else:
            base = self._median(other or case, mtu, crc, reference)
        return (None, None) if base is None else (demand.factor * base, base)

    def _siw_fails(self, demand, case, mtu, crc):
        """siw was asked in every round, and never gave a figure where weft did."""
        peer, _, other = demand.reference.partition(":")
        figure = self.samples.get(other or case, mtu, crc, peer)
        return peer == "siw" and figure is not None and figure.failures > 0

    def verdict(self, demand, case, mtu, crc):
        """None when weft was not measured in that case."""
        if not self.samples.get(case, mtu, crc, "weft"):
            return None
        weft = self._median(case, mtu, crc, "weft")
        limit, base = self._limit(demand, case, mtu, crc)
        if weft is None:
            return Verdict(demand, case, mtu, crc, None, limit, None, MISSED)
        if limit is None:
            word = ALONE if self._siw_fails(demand, case, mtu, crc) else OPEN
            return Verdict(demand, case, mtu, crc, weft, None, None, word)
        good = weft >= limit if self.cases[case].better == "more" else weft <= limit
        return Verdict(demand, case, mtu, crc, weft, limit, weft / base,
                       REACHED if good else MISSED)

    def verdicts(self, demands):
        for demand in demands:
            for case in demand.cases:
                for mtu in demand.mtus:
                    for crc in demand.crcs:
                        found = case in self.cases and self.verdict(demand, case, mtu, crc)
                        if found:
                            yield found
