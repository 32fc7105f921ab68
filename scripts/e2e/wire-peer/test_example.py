# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The test that CONTRIBUTING.md shows, as it stands there."""

from harness import pattern, test


@test("RDMAP-001")                          # rows of Documentation/protocol-coverage.tsv
def three_sends_arrive(f):
    link = f.running(recv=3)                # the program has posted three receives
    for n in range(3):
        link.peer.send(pattern(100, n))     # the peer sends
        link.received(pattern(100, n))      # the oldest receive completes, with that payload
