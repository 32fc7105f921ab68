# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What is kept of incomplete FPDUs counts as TCP's memory."""

import os
import re

from harness import eventually, pattern, test

LINKS, COMPLETED = 120, 20
LENGTH = 60000
PAGES_EACH = LENGTH // os.sysconf("SC_PAGE_SIZE")
# What TCP counts it hands out to CPUs in portions of a megabyte.
INEXACT = 300 * os.cpu_count()


def pages_of_tcp():
    with open("/proc/net/sockstat", encoding="ascii") as file:
        return int(re.search(r"^TCP:.* mem (\d+)", file.read(), re.M).group(1))


@test()
def fpdus_in_pieces_are_charged(f):
    target = f.mr(65536)
    links = [f.running(rev=1, recv=0) for _ in range(LINKS)]
    before = pages_of_tcp()
    fpdus = [link.peer.write(target.rkey, target.iova, pattern(LENGTH), cut=LENGTH, hold=True)
             for link in links]
    for link, fpdu in zip(links, fpdus):
        link.peer.raw(fpdu[:-4])
    eventually(f, lambda: pages_of_tcp() - before > LINKS * PAGES_EACH - INEXACT,
               lambda: "%d pages are charged" % (pages_of_tcp() - before))
    for link, fpdu in zip(links[:COMPLETED], fpdus):
        link.peer.raw(fpdu[-4:])
    for link in links[COMPLETED:]:
        link.peer.rst()
    for link in links[COMPLETED:]:
        link.dead()
    eventually(f, lambda: pages_of_tcp() - before < INEXACT,
               lambda: "%d pages are still charged" % (pages_of_tcp() - before))
    assert target.peek(0, LENGTH) == pattern(LENGTH)
