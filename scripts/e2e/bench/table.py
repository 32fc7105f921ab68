# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The Markdown page: first the targets, then every figure."""

import itertools

from cases import CRCS, PEERS, TITLES
from targets import ALONE, MISSED, OPEN, REACHED

HEAD = {"bandwidth": "Bandwidth, polling", "crc": "CRC on", "events": "Completion events",
        "msgrate": "Messages per second", "latency": "Latency",
        "tail": "Latency beside a bulk stream",
        "onesided": "One-sided operations, by what the responder's process does",
        "sizes": "Over sizes", "qps": "Queue pairs", "costs": "Costs",
        "storage": "NVMe over Fabrics", "connections": "Connections",
        "vectors": "Completion vectors of a kernel consumer", "machine": "The machine itself"}
PARTS = ("min", "p50", "avg", "p99", "p99.9")


def number(value):
    """Three significant digits or so, readable."""
    if value is None:
        return "-"
    if abs(value) >= 10000:
        return f"{value:,.0f}".replace(",", " ")
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def cell(figure):
    if figure is None:
        return "-"
    if figure.median is None:
        return "failed"
    text = number(figure.median)
    if figure.count > 1:
        text += f" ({number(figure.low)}-{number(figure.high)})"
    if figure.failures:
        text += f", {figure.failures} failed"
    return text


def _line(words):
    return "| " + " | ".join(words) + " |"


def _of_mtus(names):
    """The heading of a column: the links of a cable have names."""
    return "MTU" if all(name.isdigit() for name in names) else "link"


def target_table(verdicts, cases):
    """One line per comparison."""
    links = _of_mtus(found.mtu for found in verdicts)
    yield _line(["target", "case", links, "CRC", "unit", "weft", "limit", "needed", "is", ""])
    yield "|---" * 10 + "|"
    for found in verdicts:
        name, _, part = found.case.partition("/")
        case = cases[name]
        sign = "at least" if case.better == "more" else "at most"
        reference = found.target.reference
        needed = f"{sign} {found.target.factor:g}"
        if reference != "none":
            needed += " x " + reference
        ratio = "-" if found.ratio is None else f"{found.ratio:.3g}"
        yield _line([found.target.title, case.title + (part and ", " + part), found.mtu,
                     found.crc, case.unit,
                     number(found.weft) if found.weft is not None else "failed",
                     number(found.limit), needed.replace("|", " or "), ratio, found.verdict])


def _columns(samples):
    """The peers that a page has a column for: two hosts have no loopback."""
    return [peer for peer in PEERS if peer != "loopback" or samples.has(peer)]


def _figures(case, mtu, crc, samples):
    """One figure per column, or nothing where the case was not measured."""
    peers = ("machine",) if case.peers == ("machine",) else _columns(samples)
    found = [samples.get(case.name, mtu, crc, peer) for peer in peers]
    if any(found) and found[-1] is None and case.tcp != "-":
        found[-1] = samples.get(case.tcp, mtu, "off", "tcp")
    return found if any(found) else []


def group_table(group, cases, samples):
    """Every case of the group in every world it was measured in."""
    lines = []
    for case, mtu, crc in itertools.product(cases, samples.mtus(), CRCS):
        figures = _figures(case, mtu, crc, samples) if case.groups[0] == group else []
        if figures:
            lines.append(_line([case.title, mtu, crc, case.unit] + list(map(cell, figures))))
    if lines:
        columns = ["figure"] if group == "machine" else [TITLES.get(peer, peer)
                                                         for peer in _columns(samples)]
        yield f"## {HEAD[group]}"
        yield ""
        yield _line(["case", _of_mtus(samples.mtus()), "CRC", "unit"] + columns)
        yield "|---" * (4 + len(columns)) + "|"
        yield from lines
        yield ""


def percentile_table(cases, samples):
    """The parts of each latency."""
    lines = []
    for case, mtu, crc, peer in itertools.product(cases, samples.mtus(), CRCS, PEERS):
        parts = samples.parts(case.name, mtu, crc, peer)
        if "p99" in parts:
            lines.append(_line([case.title, mtu, crc, TITLES.get(peer, peer)] +
                               [cell(parts.get(part)) for part in PARTS]))
    if lines:
        yield "## Percentiles of the latency, us"
        yield ""
        yield _line(["case", _of_mtus(samples.mtus()), "CRC", ""] + list(PARTS))
        yield "|---" * (4 + len(PARTS)) + "|"
        yield from lines
        yield ""


def ends_table(cases, samples):
    """CPU time of either end, where the ends are not one machine."""
    lines = []
    for case, mtu, peer in itertools.product(cases, samples.mtus(), PEERS):
        parts = samples.parts(case.name, mtu, "off", peer)
        if "responder" in parts:
            lines.append(_line([case.title, mtu, peer, case.unit, cell(parts["-"]),
                                cell(parts["responder"])]))
    if lines:
        yield "## CPU time of each end"
        yield ""
        yield _line(["case", _of_mtus(samples.mtus()), "", "unit", "requester", "responder"])
        yield "|---" * 6 + "|"
        yield from lines
        yield ""


def failures(samples):
    """Why there is no figure, or fewer than rounds."""
    lines = []
    for key, figure in samples.figures.items():
        if figure.failures:
            case, mtu, crc, peer, _ = key
            lines.append(f"- {peer}, {case}, MTU {mtu}, CRC {crc}: {figure.failures} of "
                         f"{figure.failures + figure.count}: {figure.reason}")
    if lines:
        yield "## Failures"
        yield ""
        yield from lines
        yield ""


def summary(verdicts):
    words = [found.verdict for found in verdicts]
    return ", ".join(f"{words.count(word)} {word}" for word in (REACHED, ALONE, MISSED, OPEN)
                     if word in words)


def page(facts, cases, samples, verdicts, plots):
    """The lines of the page."""
    where = ", two hosts on a cable" if facts.get("hosts") else ""
    yield f"# Side by side on Linux {facts['kernel']}{where}"
    yield ""
    boots = facts.get("boots", 1)
    boots = "One boot" if boots == 1 else f"{boots} boots, each of links of its own"
    yield (f"{boots}, {facts['cpus']} CPUs ({facts['model']}), {facts['date']}, up to "
           f"{facts['rounds']} rounds in turns; medians, lowest and highest in brackets. How to "
           "read and repeat it: [README](README.md).")
    yield ""
    yield f"## Targets: {summary(verdicts)}"
    yield ""
    yield from target_table(verdicts, cases)
    yield ""
    for plot in plots:
        yield f"![{plot}]({plot})"
    if plots:
        yield ""
    for group in HEAD:
        yield from group_table(group, cases.values(), samples)
    yield from ends_table(cases.values(), samples)
    yield from percentile_table(cases.values(), samples)
    yield from failures(samples)
