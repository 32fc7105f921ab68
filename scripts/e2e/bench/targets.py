# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Holds what was measured against targets.tsv. Nothing here knows a figure."""

import collections

from cases import CRCS, MTUS, rows

Target = collections.namedtuple("Target", "title cases mtus crcs factor reference peer")
# One comparison: the figure of weft, or of its loopback, the limit, what the limit comes from, and the verdict.
Verdict = collections.namedtuple("Verdict", "target case mtu crc weft limit ratio verdict")
REACHED, MISSED, OPEN = "reached", "missed", "not known"
ALONE = "reached, siw fails"
GOOD = (REACHED, ALONE)


def load(table="targets.tsv"):
    """The targets of a table."""
    for title, names, mtus, crcs, factor, reference, *peer in rows(table):
        yield Target(title, names.split(","), mtus.split(","), crcs.split(","), float(factor),
                     reference, *(peer or ["weft"]))


def ahead_of_siw():
    """The same cases, each once, asking only for more than siw has."""
    seen = set()
    for target in load():
        if target.peer != "weft":
            continue
        names = [name for name in target.cases if name not in seen]
        seen.update(names)
        if names:
            own = target.reference.startswith("siw:")
            yield target._replace(title=target.title.split(",")[0] + ", of siw", cases=names,
                                  mtus=MTUS, crcs=CRCS, factor=1.0,
                                  reference=target.reference if own else "siw")


class Verdicts:
    """The samples, the cases and how to find a reference's figure."""

    def __init__(self, samples, cases):
        self.samples, self.cases = samples, cases

    def _median(self, case, mtu, crc, peer):
        """Of a case, or of a part of it: CASE/PART."""
        figure = self.samples.get(*self._place(case, mtu, crc, peer))
        return figure.median if figure else None

    @staticmethod
    def _place(case, mtu, crc, peer):
        case, _, part = case.partition("/")
        return case, mtu, crc, peer, part or "-"

    def _case(self, name):
        return self.cases[name.partition("/")[0]]

    def _tcp(self, case, mtu, part=""):
        """TCP's own case, or the same case where TCP is one of its peers."""
        name = case if "tcp" in self._case(case).peers else self._case(case).tcp
        return self._median(name + part, mtu, "off", "tcp")

    def _crc(self, mtu):
        speed = self._median("crc_speed", mtu, "off", "machine")
        return None if speed is None else speed / 2

    def _base(self, reference, case, mtu, crc):
        """What the factor is for; None when it, or a part of it, is missing."""
        peer, _, other = reference.partition(":")
        if peer == "best":
            found = [self._median(name, mtu, "off", "tcp") for name in other.split(",")]
            return None if None in found else max(found)
        if peer in ("tcp", "tcp|crc") or peer.startswith("tcp+"):
            found = [self._tcp(case, mtu)] + ([self._crc(mtu)] if "crc" in peer else [])
            return None if None in found else min(found)
        if peer.startswith("tcp/"):
            return self._tcp(case, mtu, peer[3:])
        return self._median(other or case, mtu, crc, peer)

    def _limit(self, target, case, mtu, crc):
        """The figure to reach, None when a part of it is missing; and its base."""
        if target.reference == "none":
            return target.factor, 1.0
        base = self._base(target.reference, case, mtu, crc)
        if base is None:
            return None, None
        extra = target.reference.partition("+")[2]
        return target.factor * base + float(extra or 0), base

    def _siw_fails(self, target, case, mtu, crc):
        """siw was asked in every round, and never gave a figure where weft did."""
        peer, _, other = target.reference.partition(":")
        figure = self.samples.get(*self._place(other or case, mtu, crc, peer))
        return peer == "siw" and figure is not None and figure.failures > 0

    def verdict(self, target, case, mtu, crc):
        """None when the target's peer was not measured in that case."""
        if not self.samples.get(case.partition("/")[0], mtu, crc, target.peer):
            return None
        weft = self._median(case, mtu, crc, target.peer)
        limit, base = self._limit(target, case, mtu, crc)
        if weft is None:
            return Verdict(target, case, mtu, crc, None, limit, None, MISSED)
        if limit is None:
            word = ALONE if self._siw_fails(target, case, mtu, crc) else OPEN
            return Verdict(target, case, mtu, crc, weft, None, None, word)
        good = weft >= limit if self._case(case).better == "more" else weft <= limit
        return Verdict(target, case, mtu, crc, weft, limit, weft / base,
                       REACHED if good else MISSED)

    def verdicts(self, targets):
        for target in targets:
            for case in target.cases:
                for mtu in target.mtus:
                    for crc in target.crcs:
                        known = case.partition("/")[0] in self.cases
                        found = known and self.verdict(target, case, mtu, crc)
                        if found:
                            yield found
