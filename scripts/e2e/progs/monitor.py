#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Say words to the monitor of a QEMU and print what it answers.

Usage: monitor.py SOCKET WORDS...
"""
import json
import socket
import sys


def ask(stream, command, **arguments):
    """One command over QMP; its answer, events left out."""
    stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    stream.flush()
    for line in stream:
        answer = json.loads(line)
        if "error" in answer:
            sys.exit(answer["error"]["desc"])
        if "return" in answer:
            return answer["return"]
    sys.exit("the monitor is gone")


def main():
    """Connect, agree on nothing special, ask."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(sys.argv[1])
        stream = sock.makefile("rw", encoding="utf-8")
        stream.readline()
        ask(stream, "qmp_capabilities")
        words = " ".join(sys.argv[2:])
        answer = ask(stream, "human-monitor-command", **{"command-line": words})
        print(answer.replace("\r", ""), end="")


main()
