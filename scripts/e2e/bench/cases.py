# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What is measured: the rows of cases.tsv, each with every MTU and CRC setting it wants."""

import collections
import os

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ("weft", "loopback", "siw", "rxe", "tcp")
# What a page calls them, where that is another name.
TITLES = {"loopback": "weft (loopback)", "tcp": "TCP"}
MTUS = ("1500", "9000", "65536")
CRCS = ("off", "on")
# Without TCP in between neither matters, so one world is enough.
LOOPBACK_WORLD = ("65536", "off")

Case = collections.namedtuple("Case", "name groups tool words unit better peers mtus crcs "
                              "rounds tcp title")
# One thing to measure in each round: a case in one world.
Job = collections.namedtuple("Job", "case mtu crc peer")


def rows(name):
    """The lines of a table beside this file, as lists of cells."""
    with open(os.path.join(HERE, name), encoding="ascii") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                yield [cell.strip() for cell in line.rstrip("\n").split("\t") if cell]


def load(table="cases.tsv"):
    """All cases by name, in the order of the table."""
    cases = {}
    for row in rows(table):
        case = Case(*row)
        lists = {field: tuple(getattr(case, field).split(","))
                 for field in ("groups", "peers", "mtus", "crcs")}
        cases[case.name] = case._replace(words=tuple(case.words.split()), **lists)
    return cases


def chosen(cases, only):
    """Those whose name or group is asked for, and the TCP cases they are held against."""
    if not only:
        return list(cases.values())
    known = set(cases) | {group for case in cases.values() for group in case.groups}
    for word in only:
        if word not in known:
            raise SystemExit("no case or group is called %s; there are: %s"
                             % (word, " ".join(sorted(known))))
    names = {case.name for case in cases.values() if {case.name, *case.groups} & set(only)}
    names |= {cases[name].tcp for name in names}
    if any("on" in cases[name].crcs for name in names if name in cases):
        names.add("crc_speed")
    return [case for case in cases.values() if case.name in names]


def wanted(case, turn, rounds):
    """Is the case measured in this round (from 0)? Plots are content with fewer."""
    return turn < {"all": rounds, "two": min(2, rounds), "once": 1}[case.rounds]


def jobs(cases, turn, rounds, mtus=MTUS):
    """The jobs of one round, world by world, the peers of a case in turns."""
    for mtu in mtus:
        for crc in CRCS:
            for case in cases:
                if mtu not in case.mtus or crc not in case.crcs or not wanted(case, turn, rounds):
                    continue
                for peer in case.peers:
                    if peer != "loopback" or (mtu, crc) == LOOPBACK_WORLD:
                        yield Job(case, mtu, crc, peer)
