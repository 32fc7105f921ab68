#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Medians of benchmark samples as a table; fails when weft is behind siw.

Usage: medians.py SAMPLES.tsv KERNEL ROUNDS TABLE.md
"""

import collections
import statistics
import sys

WHO = ("weft", "siw", "rxe", "tcp")
TESTS = [("send_bw", "ib_send_bw, 64 KiB", "MiB/s"), ("write_bw", "ib_write_bw, 64 KiB", "MiB/s"),
         ("read_bw", "ib_read_bw, 64 KiB", "MiB/s"), ("send_lat", "ib_send_lat, 64 B", "us"),
         ("write_lat", "ib_write_lat, 64 B", "us"), ("read_lat", "ib_read_lat, 64 B", "us")]


def load(path):
    samples = collections.defaultdict(list)
    with open(path, encoding="ascii") as f:
        for line in f:
            who, what, figure = line.split("\t")
            samples[who, what].append(float(figure))
    return samples


def figure(samples, who, what):
    values = samples.get((who, what))
    return statistics.median(values) if values else None


def advantage(weft, siw, unit):
    """How many times as good weft is."""
    return weft / siw if unit == "MiB/s" else siw / weft


def row(samples, what, title, unit):
    values = {who: figure(samples, who, what) for who in WHO}
    shown = ["-" if values[w] is None else f"{values[w]:.2f}" for w in WHO]
    if values["weft"] is None or values["siw"] is None:
        return f"| {title} | {unit} | " + " | ".join(shown) + " | - |", False
    ratio = advantage(values["weft"], values["siw"], unit)
    line = f"| {title} | {unit} | " + " | ".join(shown) + f" | {ratio:.2f} |"
    return line, ratio >= 1


def main(path, kernel, rounds, table):
    samples = load(path)
    lines = ["| test | unit | weft | siw | rxe | TCP | weft : siw |",
             "|---|---|---|---|---|---|---|"]
    good = True
    for what, title, unit in TESTS:
        line, ok = row(samples, what, title, unit)
        lines.append(line)
        good &= ok
    text = (f"Linux {kernel}, one boot, medians of {rounds} rounds in turns, CRC off on weft and "
            "siw, dummy\nnetdevs (MTU of lo: 65536). TCP: iperf3 and qperf tcp_lat. The last "
            "column is how many times\nas good weft is.\n\n")
    with open(table, "w", encoding="ascii") as f:
        f.write(text + "\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
