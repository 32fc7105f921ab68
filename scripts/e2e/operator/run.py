#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Runs the tests of this directory, one TAP line each."""

import argparse
import importlib
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "wire-peer"), os.path.join(HERE, "..", "..")]

import world as worlds  # noqa: E402  pylint: disable=wrong-import-position

GROUPS = ("counters", "resource", "attributes", "tcp", "trace", "memory", "figures")


def run_one(world, function):
    """What went wrong, or why it cannot be run here, or neither."""
    error = skip = None
    try:
        function(world)
    except worlds.Skip as reason:
        skip = str(reason)
    except Exception:  # pylint: disable=broad-except
        error = traceback.format_exc()
    log = world.agent.log[-20:]
    try:
        world.restore()
    except Exception:  # pylint: disable=broad-except
        error = (error or "") + "afterwards:\n" + traceback.format_exc()
    return error and error + "the agent:\n" + "\n".join(log), skip


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--dev")
    options.add_argument("--addr")
    options.add_argument("--addr6")
    options.add_argument("--slow", type=int, default=1)
    options.add_argument("--only", default="")
    options.add_argument("agent", nargs="+")
    args = options.parse_args()
    for group in GROUPS:
        importlib.import_module("test_" + group)
    world = worlds.World(args)
    failed, number = 0, 0
    for function in worlds.TESTS:
        name = function.__name__.replace("_", " ")
        if args.only not in name:
            continue
        number += 1
        began = time.monotonic()
        error, skip = run_one(world, function)
        took = time.monotonic() - began
        print("%sok %d - operator: %s%s" % ("not " if error else "", number, name,
                                            " # SKIP " + skip if skip else ""))
        if error:
            failed += 1
            for text in error.rstrip().split("\n"):
                print("#   " + text[:300])
            world.start_agent()
        if took > 5:
            print("#   took %.1f s" % took)
        sys.stdout.flush()
    print("1..%d" % number)
    world.agent.close()
    return bool(failed or not number)


if __name__ == "__main__":
    sys.exit(main())
