# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""More small segments than the receive buffer has room for, behind something large: TCP
must bear what weft does with its buffers."""

import time

from harness import pattern, test

SECONDS = 3


@test("MPA-056")
def small_segments_overrun_the_receive_buffer(f):
    """Each costs TCP many times its bytes, so that it runs out of memory and collapses
    its queue, from which the reader has taken the first buffers."""
    f.policy("tcp_rcvbuf", 32768)
    link = f.running(rev=1)
    target = f.mr(65536)
    small = [link.peer.write(target.rkey, target.iova + 4 * n, pattern(4), hold=True)
             for n in range(40)]
    large = [link.peer.write(target.rkey, target.iova, pattern(size), hold=True)
             for size in range(16384, 65536, 4096)]
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for data in large:
            link.peer.raw(data)
            for few in small:
                link.peer.raw(few)
    data = pattern(1000, 7)
    link.peer.send(data)
    link.received(data, timeout=20)
