# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""DDP segments. RFC 5041, 4."""

import struct

from . import Violation

TAGGED, LAST, RESERVED, DV_MASK, DV = 0x80, 0x40, 0x3C, 0x03, 1
TAGGED_LEN, UNTAGGED_LEN = 14, 18
RV_MASK, RV, RDMAP_RESERVED, OPCODE_MASK = 0xC0, 0x40, 0x30, 0x0F


def control(tagged, last=True, dv=DV, reserved=0):
    return (TAGGED if tagged else 0) | (LAST if last else 0) | (reserved << 2) | dv


def rdmap_control(opcode, rv=1, rsv=0):
    return rv << 6 | rsv << 4 | opcode


def tagged(opcode, stag, to, payload=b"", last=True, dv=DV, reserved=0, rv=1, rsv=0, t=True):
    """The bytes of a tagged segment; with @t False its header claims to be untagged."""
    return struct.pack(">BBIQ", control(t, last, dv, reserved), rdmap_control(opcode, rv, rsv),
                       stag & 0xFFFFFFFF, to & 0xFFFFFFFFFFFFFFFF) + payload


def untagged(opcode, qn, msn, mo=0, payload=b"", last=True, inv=0, dv=DV, reserved=0, rv=1,
             rsv=0, t=False):
    return struct.pack(">BBIIII", control(t, last, dv, reserved), rdmap_control(opcode, rv, rsv),
                       inv & 0xFFFFFFFF, qn & 0xFFFFFFFF, msn & 0xFFFFFFFF,
                       mo & 0xFFFFFFFF) + payload


class Segment:
    """A segment that was received, taken apart strictly."""

    def __init__(self, ulpdu):
        if len(ulpdu) < TAGGED_LEN:
            raise Violation("ULPDU of %d bytes" % len(ulpdu))
        self.ulpdu = ulpdu
        first, second = ulpdu[0], ulpdu[1]
        self.tagged, self.last = bool(first & TAGGED), bool(first & LAST)
        self.opcode = second & OPCODE_MASK
        if first & RESERVED:
            raise Violation("DDP reserved bits: %#04x" % first)
        if first & DV_MASK != DV:
            raise Violation("DV: %#04x" % first)
        if second & RV_MASK != RV or second & RDMAP_RESERVED:
            raise Violation("RDMAP control: %#04x" % second)
        self.stag = struct.unpack(">I", ulpdu[2:6])[0]
        self.qn = self.msn = self.mo = self.to = None
        if self.tagged:
            self.to = struct.unpack(">Q", ulpdu[6:14])[0]
            self.header = ulpdu[:TAGGED_LEN]
        else:
            if len(ulpdu) < UNTAGGED_LEN:
                raise Violation("untagged ULPDU of %d bytes" % len(ulpdu))
            self.qn, self.msn, self.mo = struct.unpack(">III", ulpdu[6:18])
            self.header = ulpdu[:UNTAGGED_LEN]
        self.payload = ulpdu[len(self.header):]

    def __repr__(self):
        where = ("stag=%#010x to=%#x" % (self.stag, self.to) if self.tagged else
                 "qn=%d msn=%d mo=%d inv=%#x" % (self.qn, self.msn, self.mo, self.stag))
        return "Segment(op=%d last=%d %s payload=%d)" % (
            self.opcode, self.last, where, len(self.payload))
