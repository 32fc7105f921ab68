# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The path becomes narrower and wider in the middle of a message. RFC 5044, 4.5, 5."""

import itertools
import time
import zlib

from harness import pattern, test
from netdev import Tap, frag_needed, packet_too_big, weft_netns
from wirepeer import mpa, rdmap

PORT6 = 7476
NARROW, WIDE = 1300, 1500
LONG = 8 << 20
# IP, TCP with timestamps
HEADERS = {4: 52, 6: 72}


class Path:
    """A link over IPv4 or IPv6, and how many bytes go through it."""

    def __init__(self, f, family, markers):
        self.f, self.family, self.markers = f, family, markers
        listener, where = None, {}
        if family == 6:
            listener = f.listen6(PORT6)
            where = dict(address=f.world.weft6, port=PORT6)
        self.tap = Tap(where.get("port", f.world.port))
        self.link = f.running(rev=1, m=markers, recv=0, wire=f.connect(rcvbuf=65536, **where),
                              listener=listener)
        f.undo.append(self.tap.sock.close)

    def full(self, mtu):
        """ULPDUs as long as may be, but for a rounding to whole words."""
        due = mpa.mulpdu(mtu - HEADERS[self.family], self.markers)
        return range(due - 3, due + 1)

    def device(self, mtu):
        weft_netns("ip", "link", "set", "va", "mtu", str(mtu))

    def router(self, mtu):
        """Reports of a router; a wider path is found when the route is forgotten."""
        if mtu == WIDE:
            weft_netns("ip", "-%d" % self.family, "route", "flush", "cache")
            return
        seq, length = self.tap.segments()[-1]
        report = frag_needed if self.family == 4 else packet_too_big
        report(self.link.peer, seq + length & 0xFFFFFFFF, mtu)


class Reader:
    """Takes a Send segment by segment."""

    def __init__(self, link):
        self.link, self.payload, self.ended = link, bytearray(), False

    def next(self):
        s = self.link.peer.segment(20)
        assert s.opcode == rdmap.SEND and not self.ended, s
        self.payload += s.payload
        self.ended = s.last
        return len(s.ulpdu)

    def turns(self, old, new):
        """After bytes that were queued, FPDUs have another length, and keep it."""
        while True:
            length = self.next()
            assert not self.ended, "still %d" % length
            if length in new:
                break
            assert length in old, (length, old, new)
        for _ in range(100):
            length = self.next()
            assert length in new and not self.ended, (length, new)


@test("MPA-051", "MPA-050", "MPA-047", "DDP-001", "MPA-071", "MPA-024",
      each=itertools.product(("device", "router"), (4, 6), (0, 1)))
def the_path_changes_in_mid_message(f, case):
    """What is queued when it becomes narrow is longer than a segment may be then, and
    still arrives; what is cut afterwards fits, whichever way it changed."""
    who, family, markers = case
    path = Path(f, family, markers)
    change = getattr(path, who)
    f.undo.append(lambda: change(WIDE))
    wide, narrow = path.full(WIDE), path.full(NARROW)
    out = f.mr(LONG)
    for n in range(LONG >> 16):
        out.fill(n + 1, n << 16, 1 << 16)
    out.poke(pattern(1 << 15), LONG // 2)
    wr = path.link.post("send", sge=out.sge())
    reader = Reader(path.link)
    assert reader.next() in wide
    time.sleep(0.1)         # until nothing more fits
    change(NARROW)
    reader.turns(wide, narrow)
    change(WIDE)
    reader.turns(narrow, wide)
    while not reader.ended:
        reader.next()
    path.link.wc(wr=wr, timeout=20)
    assert len(reader.payload) == LONG and zlib.crc32(reader.payload) == out.crc32()
