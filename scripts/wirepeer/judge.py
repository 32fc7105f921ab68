# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a receiver has to do with bytes, by the RFCs: accept them as what, or refuse them as what.

The parsers of this package are those of a strict sender. A receiver ignores reserved bits, PAD
and whatever a revision does not have, so those are blanked here before they parse. The verdicts
are in the words of the fuzz targets (kunit-tests/host/fuzz), for scripts/fuzz --compare.
"""

import struct

from . import Violation, crc32c, ddp, mpa, rdmap

RECV_SPACE = 1 << 20      # of every receive


class Input:
    """Consumed from the front; zeros once nothing is left."""

    def __init__(self, data):
        self.data, self.at = data, 0

    @property
    def rest(self):
        return self.data[self.at:]

    def take(self, count):
        part = self.data[self.at:self.at + count]
        self.at += len(part)
        return int.from_bytes(part + bytes(count - len(part)), "big")

    def cut(self, count):
        part = self.data[self.at:self.at + count]
        self.at += len(part)
        return part


# --- start frames -------------------------------------------------------------------


def blank_start(wire, request):
    """Without what RFC 5044, 7.1 and RFC 6581, 9 have a receiver ignore."""
    wire = bytearray(wire)
    wire[16] &= mpa.FLAG_M | mpa.FLAG_C | (0 if request else mpa.FLAG_R) | (
        mpa.FLAG_S if wire[17] >= 2 else 0)
    if wire[16] & mpa.FLAG_S and len(wire) >= mpa.FIXED + 4 and not wire[20] & 0x80:
        wire[20] &= 0x3F
        wire[22] &= 0x3F
    return bytes(wire)


def mpa_start(data):
    fields = Input(data)
    request = bool(fields.take(1) & 1)
    fields.take(12)
    wire = fields.rest
    if len(wire) < mpa.FIXED or wire[17] not in (1, 2):
        return "refused"
    try:
        f = mpa.StartFrame.parse(blank_start(wire, request), request)
    except Violation:
        return "refused"
    e = f.enhanced or mpa.Enhanced()
    rtr = e.b | e.c << 1 | e.d << 2 if e.a else 0
    return "rev=%d m=%d c=%d r=%d s=%d a=%d rtr=%d ird=%d ord=%d pd=%s" % (
        f.rev, f.m, f.c, f.r, f.s, e.a, rtr, e.ird, e.ord, f.pd.hex())


# --- framing ------------------------------------------------------------------------


class LenientDeframer(mpa.Deframer):
    """CRC first, then markers, of which only the pointer counts; PAD may be anything."""

    def next(self):
        lead = 4 if self.markers and self.pos % mpa.MARKER_EVERY == 0 else 0
        if len(self.buf) < lead + 2:
            return None
        length = struct.unpack(">H", self.buf[lead:lead + 2])[0]
        total = 2 + length + -(2 + length) % 4
        end = lead + self._span(lead, total)
        if self.markers and (self.pos + end) % mpa.MARKER_EVERY == 0:
            end += 4
        if len(self.buf) < end + 4:
            return None
        raw = bytes(self.buf[:end + 4])
        body, marks = self._content(raw[:-4], lead, lead)
        if lead:
            marks.append((self.pos, struct.unpack(">I", raw[:4])[0], 0))
        if self.crc and crc32c.wire_bytes(raw[:-4]) != raw[-4:]:
            raise Violation("MPA_CRC")
        if any((word ^ due) & 0xFFFC for _, word, due in marks):
            raise Violation("MPA_MARKER")
        del self.buf[:end + 4]
        self.pos += end + 4
        return body[2:2 + length]


def mpa_rx(data):
    fields = Input(data)
    choices = fields.take(1)
    fields.take(2)
    deframer = LenientDeframer(bool(choices & 2), bool(choices & 1))
    deframer.feed(fields.rest)
    out = ""
    while True:
        try:
            ulpdu = deframer.next()
        except Violation as fault:
            return out + str(fault)
        if ulpdu is None:
            return out
        out += "%d:%08x " % (len(ulpdu), crc32c.crc32c(ulpdu))


# --- segments -----------------------------------------------------------------------


def blank_segment(ulpdu):
    return bytes([ulpdu[0] & ~ddp.RESERVED, ulpdu[1] & ~ddp.RDMAP_RESERVED]) + ulpdu[2:]


QUEUES = dict(rdmap.QN)
QUEUES.update({12: 0, 13: 0})       # Send with immediate of directly connected QPs
FIXED = dict(rdmap.Audit.HEADER)


class Receiver:
    """RFC 5041, 7.1 and RFC 5040, 7: the order of checks."""

    def __init__(self):
        self.msn = {0: 1, 1: 1, 2: 1, 3: 1}
        self.mo = {0: 0, 1: 0, 2: 0, 3: 0}
        self.open = {}

    def header(self, ulpdu):
        if not ulpdu:
            raise Violation("MPA_MARKER")
        tagged = bool(ulpdu[0] & ddp.TAGGED)
        if len(ulpdu) < (ddp.TAGGED_LEN if tagged else ddp.UNTAGGED_LEN):
            raise Violation("MPA_MARKER")
        if ulpdu[0] & ddp.DV_MASK != ddp.DV:
            raise Violation("TAGGED_VERSION" if tagged else "UNTAGGED_VERSION")
        if ulpdu[1] & ddp.RV_MASK != ddp.RV:
            raise Violation("RDMAP_VERSION")
        return ddp.Segment(blank_segment(ulpdu))

    def message(self, s):
        """Is it one, whenever it comes?"""
        if s.opcode > 13 or s.tagged != (s.opcode in rdmap.TAGGED_OPS):
            raise Violation("RDMAP_OPCODE")
        if not s.tagged and s.qn != QUEUES[s.opcode]:
            raise Violation("UNTAGGED_QN")
        size = len(s.payload)
        if s.opcode in FIXED and (size != FIXED[s.opcode] or not s.last):
            raise Violation("RDMAP_OPERATION")
        if s.opcode == rdmap.TERMINATE and (size < 4 or not s.last):
            raise Violation("RDMAP_OPERATION")

    def turn(self, s):
        """May it come now?"""
        if not s.tagged and s.msn != self.msn[s.qn]:
            raise Violation("UNTAGGED_MSN")
        key = "tagged" if s.tagged else s.qn
        if key in ("tagged", 0) and self.open.get(key, s.opcode) != s.opcode:
            raise Violation("RDMAP_OPCODE")
        if not s.tagged and s.mo != self.mo[s.qn]:
            raise Violation("UNTAGGED_MO")
        if not s.tagged and s.mo + len(s.payload) > RECV_SPACE:
            raise Violation("UNTAGGED_TOO_LONG")

    def advance(self, s):
        key = "tagged" if s.tagged else s.qn
        self.open.pop(key, None)
        if not s.last:
            self.open[key] = s.opcode
        if not s.tagged:
            self.mo[s.qn] = 0 if s.last else s.mo + len(s.payload)
            self.msn[s.qn] = self.msn[s.qn] + s.last & 0xFFFFFFFF

    def take(self, ulpdu):
        s = self.header(ulpdu)
        self.message(s)
        self.turn(s)
        self.advance(s)
        return s


def segment(data):
    fields, receiver, out = Input(data), Receiver(), ""
    while fields.rest:
        size = fields.take(2)
        fields.take(2)
        try:
            s = receiver.take(fields.cut(size))
        except Violation as fault:
            return out + str(fault) + " "
        out += "op=%d t=%d l=%d stag=%x to=%x qn=%x msn=%x mo=%x len=%d " % (
            s.opcode, s.tagged, s.last, s.stag, s.to or 0, s.qn or 0, s.msn or 0, s.mo or 0,
            len(s.payload))
    return out


def term(data):
    payload = data[2:]
    if len(payload) < 4:
        return "refused"
    out = "%d/%d/%02x" % (payload[0] >> 4, payload[0] & 15, payload[1])
    header = payload[6:]
    if not payload[2] & 0x40 or not header:
        return out
    if header[0] & ddp.DV_MASK != ddp.DV:
        return out
    tagged = bool(header[0] & ddp.TAGGED)
    if len(header) < (ddp.TAGGED_LEN if tagged else ddp.UNTAGGED_LEN):
        return out
    # Its RDMAP version is not looked at: it is a copy of what was sent.
    s = ddp.Segment(bytes([header[0] & ~ddp.RESERVED, ddp.RV | header[1] & 15]) + header[2:])
    if tagged:
        return out + " op=%d stag=%x to=%x" % (s.opcode, s.stag, s.to)
    return out + " op=%d inv=%x qn=%x msn=%x" % (s.opcode, s.stag, s.qn, s.msn)


# --- private data of directly connected QPs: Documentation/protocol.md ------------------


REASONS = ("accepted", "malformed private data", "another version",
           "no such QP, or it has another peer", "wrong PSN", "busy")


def psn_wrong(a, b):
    return a["known"] and a["sq"] != b["rq"]


def direct(data):
    fields = Input(data)
    own = {n: fields.take(4) & 0xFFFFFF for n in ("qpn", "peer", "rq", "sq")}
    own["known"] = fields.take(1) & 1
    wire = fields.rest
    head = len(wire) >= 8 and wire[:4] == b"WFTQ"
    version = head and wire[4] == 1
    reason = wire[5] if head and 1 <= wire[5] < len(REASONS) else 1
    reject = " reject=" + REASONS[reason]
    if head and not version:
        return REASONS[2] + reject
    if not head or len(wire) < 24:
        return REASONS[1] + reject
    ext, qpn, peer, rq, sq = struct.unpack(">HIIII", wire[6:24])
    if max(qpn, peer, rq, sq) > 0xFFFFFF:
        return REASONS[1] + reject
    other = {"qpn": qpn, "peer": peer, "rq": rq, "sq": sq, "known": wire[5] & 1}
    if own["qpn"] != peer or own["peer"] != qpn:
        match = REASONS[3]
    elif psn_wrong(own, other) or psn_wrong(other, own):
        match = REASONS[4]
    else:
        match = REASONS[0]
    return "accepted qpn=%x peer=%x rq=%x sq=%x/%d ext=%x %s%s" % (
        qpn, peer, rq, sq, other["known"], ext & 1, match, reject)


# --- what a whole stream has sent -------------------------------------------------------


def stream(data, sent):
    """The audit's objection to segments in hexadecimal, "" if it has none."""
    immediates = bool(data[:1] and data[0] & 32)
    for connection in sent.split("|"):
        audit = rdmap.Audit()
        for ulpdu in connection.split():
            raw = bytearray.fromhex(ulpdu)
            if immediates and raw[1] & 15 in (12, 13):
                raw[1] = 0x40 | (rdmap.SEND if raw[1] & 15 == 12 else rdmap.SEND_SE)
                raw[2:6] = bytes(4)
                if audit.untagged.get(0, (raw[1] & 15,))[0] != raw[1] & 15:
                    return "another opcode within a message"
            try:
                audit.see(ddp.Segment(bytes(raw)))
            except Violation as objection:
                return "%s: %s" % (objection, ulpdu[:80])
    return ""


TARGETS = {"mpa_start": mpa_start, "mpa_rx": mpa_rx, "segment": segment, "term": term,
           "direct": direct, "stream": None}
