# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Everything that can be found wrong on a stream, one action each."""

from harness import LOC_LEN, REM_ACCESS
from wirepeer import rdmap

MAX64 = 2 ** 64


class Target:
    """What the faults below are aimed at: regions, and a link to commit them on."""

    def __init__(self, f):
        self.f = f
        f.receives_in_time()
        self.region = f.mr(64)
        self.foreign = f.mr(64, domain=f.domain())
        self.unreadable = f.mr(64, access="lw")

    def on(self, link):
        self.link, self.peer = link, link.peer
        return self

    def untouched(self):
        for region in (self.region, self.foreign, self.unreadable):
            assert region.peek() == bytes(64)

    def write(self, region=None, off=0, **more):
        region = region or self.region
        self.peer.write(region.rkey, region.iova + off, b"x", **more)

    def read(self, region=None, off=0, **more):
        region = region or self.region
        self.peer.read(region.rkey, region.iova + off, 8, **more)


# what is found: (what is done, its Terminate, the headers in it)
FOUND = {
    "no such stag": (lambda t: t.peer.write(0xBAD00000, 0, b"x"), (1, 1, 0), "MD"),
    "write out of bounds": (lambda t: t.write(off=64), (1, 1, 1), "MD"),
    "write to another domain": (lambda t: t.write(t.foreign), (1, 1, 2), "MD"),
    "write that wraps": (lambda t: t.peer.write(t.region.rkey, MAX64 - 1, b"xy"), (1, 1, 3), "MD"),
    "tagged version": (lambda t: t.write(dv=2), (1, 1, 4), "MD"),
    "queue": (lambda t: t.peer.untagged(rdmap.SEND, b"x", qn=4, msn=1), (1, 2, 1), "MD"),
    "no receive": (lambda t: t.peer.send(b"x"), (1, 2, 2), "MD"),
    "msn": (lambda t: t.peer.send(b"x", msn=9), (1, 2, 3), "MD"),
    "mo": (lambda t: (t.link.recv(1, 64), t.peer.send(b"x", mo=4)), (1, 2, 4), "MD"),
    "too long": (lambda t: (t.link.recv(1, 64), t.peer.send(bytes(65))), (1, 2, 5), "MD"),
    "untagged version": (lambda t: t.peer.send(b"x", dv=2), (1, 2, 6), "MD"),
    "read of no stag": (lambda t: t.peer.read(0xBAD00000, 0, 8), (0, 1, 0), "MDR"),
    "read out of bounds": (lambda t: t.read(off=60), (0, 1, 1), "MDR"),
    "read without the right": (lambda t: t.read(t.unreadable), (0, 1, 2), "MDR"),
    "read of another domain": (lambda t: t.read(t.foreign), (0, 1, 3), "MDR"),
    "read that wraps": (lambda t: t.peer.read(t.region.rkey, MAX64 - 4, 8), (0, 1, 4), "MDR"),
    "invalidation": (lambda t: (t.link.recv(1, 64), t.peer.send(
        b"", opcode=rdmap.SEND_INV, inv=t.region.rkey)), (0, 1, 9), "MD"),
    "rdmap version": (lambda t: t.peer.send(b"x", rv=2), (0, 2, 5), "MD"),
    "opcode": (lambda t: t.peer.untagged(12, b"", qn=0), (0, 2, 6), "MD"),
    "misaligned atomic": (lambda t: t.peer.atomic(0, t.region.rkey, t.region.iova + 4, 1),
                          (0, 2, 7), "MD"),
    "header too short": (lambda t: t.peer.untagged(rdmap.IMM, bytes(7)), (0, 2, 0xFF), "MD"),
    "crc": (lambda t: t.write(fpdu=dict(crc_xor=1)), (2, 0, 2), ""),
    "no header at all": (lambda t: t.peer.ulpdu(b"\x41"), (2, 0, 3), ""),
    "a local fault": (lambda t: t.link.post("send", sge="@0x1000:8:0x12345"), (0, 0, 0), ""),
}
# The oldest receive fails by name.
PAYS = {"too long": LOC_LEN, "invalidation": REM_ACCESS}
