#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Runs the tests of the wire peer; prints TAP.

Usage: run.py --dev weft0 --weft ADDR --own ADDR --weft6 ADDR [--only PATTERN] [--group NAME]...
              [--first-cases] [--list] -- AGENT...
With --first-cases a test that has a table of cases is run with the first only.
"""

import argparse
import fnmatch
import importlib
import os
import re
import sys
import time
import traceback

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "..")]

import harness  # noqa: E402

GROUPS = ("start", "initiator", "backlog", "held", "answers", "ports", "close", "negotiation", "mpa",
          "sizes", "paths", "ddp", "untagged", "tagged", "batches", "rdmap", "requester",
          "mid_message", "many_conns", "faults", "ext", "verbs", "late")


def complaints():
    """What the kernel says when something is wrong: one pattern for all that scripts/vm has."""
    with open(os.path.join(here, "..", "..", "vm", "complaints.tsv"), encoding="ascii") as rows:
        return re.compile("|".join(row.split("\t")[0] for row in rows if row[0] != "#"))


class KernelLog:
    """Lines of the kernel since the last look."""

    def __init__(self):
        try:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.fd, 0, os.SEEK_END)
        except OSError:
            self.fd = -1
        self.pattern = complaints()

    def complaints(self):
        found = []
        while self.fd >= 0:
            try:
                text = os.read(self.fd, 8192).decode(errors="replace")
            except BlockingIOError:
                break
            except OSError:
                continue
            # Whose race it is shows in the whole report, which the host reads: scripts/vm/verdict.sh.
            if "KCSAN" not in text and self.pattern.search(text):
                found.append(text.partition(";")[2].strip())
        return found


def name_of(rows, function, case):
    words = function.__name__.replace("_", " ")
    return "%s%s%s" % (" ".join(rows) + ": " if rows else "", words,
                       "" if case is None else " [%s]" % (case,))


def run_one(world, log, function, case):
    """None, or what went wrong."""
    fixture = harness.Fixture(world)
    error = skip = None
    try:
        if case is None:
            function(fixture)
        else:
            function(fixture, case)
    except harness.Skip as reason:
        skip = str(reason)
    except Exception:  # pylint: disable=broad-except
        error = traceback.format_exc()
    log_from = world.agent.log[-30:]
    for step in (fixture.guards, fixture.take_away, world.healthy):
        try:
            step()
        except Exception:  # pylint: disable=broad-except
            error = (error or "") + "after the test, in %s:\n%s" % (
                step.__name__, traceback.format_exc())
    complaints = log.complaints()
    if complaints:
        error = (error or "") + "the kernel complained:\n" + "\n".join(complaints)
    if error:
        error += "\nthe agent:\n" + "\n".join(log_from)
    return error, skip


def restart(world):
    """After a failure nothing the agent holds can be trusted."""
    try:
        world.agent.close()
        world.start_agent()
        return True
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc(file=sys.stdout)
        return False


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--dev", default="weft0")
    options.add_argument("--weft")
    options.add_argument("--own")
    options.add_argument("--weft6")
    options.add_argument("--only", action="append")
    options.add_argument("--group", action="append")
    options.add_argument("--first-cases", action="store_true")
    options.add_argument("--list", action="store_true")
    options.add_argument("--slow", type=int, default=1)
    options.add_argument("agent", nargs="*")
    args = options.parse_args()
    for group in args.group or GROUPS:
        importlib.import_module("test_" + group)
    chosen = [t for t in harness.TESTS
              if not args.only or any(fnmatch.fnmatch(name_of(*t), "*%s*" % p)
                                      for p in args.only)]
    if args.first_cases:
        seen = set()
        chosen = [t for t in chosen if not (t[1] in seen or seen.add(t[1]))]
    if args.list:
        for rows, function, _ in chosen:
            print("%s\t%s" % (function.__name__, " ".join(rows)))
        return 0
    world = harness.World(args.dev, args.weft, args.own, args.weft6, args.agent, args.slow)
    log = KernelLog()
    failed, in_a_row, summary = 0, 0, {}
    for number, (rows, function, case) in enumerate(chosen, 1):
        began = time.monotonic()
        error, skip = run_one(world, log, function, case)
        name = name_of(rows, function, case)
        took = time.monotonic() - began
        in_a_row = in_a_row + 1 if error else 0
        if error:
            failed += 1
            print("not ok %d - wire-peer: %s" % (number, name))
            for text in error.rstrip().split("\n"):
                print("#   " + text[:400])
            for row in rows:
                summary.setdefault(row, []).append(function.__name__)
            if in_a_row == 12 or not restart(world):
                print("Bail out! nothing works any more")
                return 1
        elif skip:
            print("ok %d - wire-peer: %s # SKIP %s" % (number, name, skip))
        else:
            print("ok %d - wire-peer: %s" % (number, name))
        if took > 5:
            print("#   took %.1f s" % took)
        sys.stdout.flush()
    print("1..%d" % len(chosen))
    if summary:
        print("# rows with a failure: %s" % " ".join(sorted(summary)))
    world.agent.close()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
