# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""SVG plots by gnuplot: bandwidth over size for each MTU, percentiles of the latency,
bandwidth over queue pairs, Reads by what the responder's process does."""

import os
import re
import subprocess

from cases import PEERS, TITLES

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
PARTS = ("min", "p50", "p99", "p99.9")
FEWEST_SIZES = 4	# that make a curve
QUEUE_PAIRS = {"send_bw_q": "64 KiB", "send_1K_q": "1 KiB"}
# What the responder's process does, by the ends of cases' names.
STATES = {"idle": "idle", "stop": "stopped", "spin": "spinning", "busy": "idle, another spins"}
COLOURS = {"weft": "#c02020", "siw": "#2050c0", "rxe": "#208040", "tcp": "#808080",
           "loopback": "#e08020"}
HEAD = """set terminal svg size {width},{height} font 'sans,12' background 'white'
set output '{path}'
set grid
set key top left
"""


def size_of(name):
    """Bytes, of a case whose name ends so: send_bw_64K."""
    found = re.search(r"_bw_(\d+)([KM]?)$", name)
    return int(found[1]) * UNITS[found[2]] if found else None


def _block(name, points):
    return "$%s << END\n%s\nEND\n" % (name, "\n".join(" ".join(map(str, p)) for p in points))


def _curves(curves, style="linespoints lw 2 pt 7 ps 0.5"):
    """Data blocks, and the plot command, of {peer: points}."""
    drawn = {peer: points for peer, points in curves.items() if len(points) > 1}
    if not drawn:
        return ""
    blocks = "".join(_block(peer, points) for peer, points in drawn.items())
    words = ", ".join("$%s using 1:2 with %s lc rgb '%s' title '%s'" %
                      (peer, style, COLOURS[peer], TITLES.get(peer, peer)) for peer in drawn)
    return blocks + "plot " + words + "\n"


def _over_size(samples, cases, verb, mtu):
    curves = {peer: [] for peer in PEERS}
    for case in cases.values():
        size = size_of(case.name)
        if size is None or case.name.split("_")[0] not in (verb, "tcp"):
            continue
        for peer in case.peers:
            figure = samples.get(case.name, mtu, "off", peer)
            if figure and figure.median:
                curves[peer].append((size, figure.median))
    if len(curves["weft"]) < FEWEST_SIZES:
        return ""
    return _curves({peer: sorted(points) for peer, points in curves.items()})


def _bandwidth(samples, cases, mtu):
    panels = [(verb, _over_size(samples, cases, verb, mtu)) for verb in ("send", "write", "read")]
    if not all(plot for _, plot in panels):
        return None
    text = ("set logscale xy\nset xrange [48:*]\nset format x '%.0b %BB'\nset ylabel 'MiB/s'\n"
            "set logscale x 2\nset xtics 64,16\n"
            "set key bottom right\nset multiplot layout 1,3 title 'MTU " + mtu + ", CRC off'\n")
    return text + "".join("set title '%s'\n%s" % panel for panel in panels) + "unset multiplot\n"


def _percentiles(samples, verb, mtu):
    curves = {}
    for peer in PEERS:
        parts = samples.parts(verb + "_lat", mtu, "off", peer)
        curves[peer] = [(at, parts[part].median) for at, part in enumerate(PARTS)
                        if part in parts and parts[part].median]
    return _curves(curves)


def _latency(samples, _cases, mtu):
    panels = [(verb, _percentiles(samples, verb, mtu)) for verb in ("send", "write", "read")]
    if not all(plot for _, plot in panels):
        return None
    ticks = ", ".join("'%s' %d" % (part, at) for at, part in enumerate(PARTS))
    text = ("set logscale y\nset xtics (%s)\nset xrange [-0.3:%.1f]\nset ylabel 'us'\n"
            "set multiplot layout 1,3 title '64 B latency, polling, MTU %s, CRC off'\n"
            % (ticks, len(PARTS) - 0.7, mtu))
    return text + "".join("set title '%s'\n%s" % panel for panel in panels) + "unset multiplot\n"


def _over_queue_pairs(samples, cases, mtu, prefix):
    curves = {peer: [] for peer in PEERS}
    for case in cases.values():
        if not case.name.startswith(prefix):
            continue
        for peer in case.peers:
            figure = samples.get(case.name, mtu, "off", peer)
            if figure and figure.median:
                curves[peer].append((int(case.name[len(prefix):]), figure.median))
    return _curves(curves)


def _queue_pairs(samples, cases, mtu):
    for prefix, size in QUEUE_PAIRS.items():
        plot = _over_queue_pairs(samples, cases, mtu, prefix)
        if plot:
            return ("set logscale x 2\nset yrange [0:*]\nset xlabel 'queue pairs'\n"
                    "set ylabel 'MiB/s'\nset title 'send, %s, MTU %s, CRC off'\n" % (size, mtu) +
                    plot)
    return None


def _onesided(samples, _cases, mtu):
    """A column for each peer and state; a figure that is missing leaves a gap."""
    figures = {peer: [samples.get("read_lat_" + state, mtu, "off", peer) for state in STATES]
               for peer in ("weft", "siw", "rxe")}
    drawn = {peer: row for peer, row in figures.items() if any(f and f.median for f in row)}
    if "weft" not in drawn:
        return None
    blocks = "".join(_block(peer, [(found.median if found and found.median else "NaN",)
                                   for found in row]) for peer, row in drawn.items())
    ticks = ", ".join("'%s' %d" % (text, at) for at, text in enumerate(STATES.values()))
    columns = ", ".join("$%s using 1 lc rgb '%s' title '%s'" % (peer, COLOURS[peer], peer)
                        for peer in drawn)
    return ("set style data histogram\nset style fill solid\nset logscale y\n"
            "set yrange [10:*]\nset ylabel 'us'\nset xtics (%s)\n"
            "set title '64 B Read by what the responder does, MTU %s, CRC off'\n" % (ticks, mtu) +
            blocks + "plot " + columns + "\n")


KINDS = {"bandwidth": (_bandwidth, 1200, 420), "latency": (_latency, 1200, 420),
         "qps": (_queue_pairs, 600, 420), "onesided": (_onesided, 700, 420)}


def draw(samples, cases, directory, name):
    """Draws what there are figures for; gives the names of the files."""
    files = []
    for kind, (text_of, width, height) in KINDS.items():
        for mtu in samples.mtus():
            text = text_of(samples, cases, mtu)
            if not text:
                continue
            file = "%s-%s-%s.svg" % (name, kind, mtu)
            head = HEAD.format(width=width, height=height, path=os.path.join(directory, file))
            subprocess.run(["gnuplot"], input=head + text, text=True, check=True)
            files.append(file)
    return files
