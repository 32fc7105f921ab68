# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""MPA: start frames of all revisions, FPDU framing. RFC 5044; RFC 6581."""

import struct

from . import Violation, crc32c

KEY_REQUEST = b"MPA ID Req Frame"
KEY_REPLY = b"MPA ID Rep Frame"
FIXED = 20
PD_MAX = 512
FLAG_M, FLAG_C, FLAG_R, FLAG_S = 0x80, 0x40, 0x20, 0x10
BIT_A, BIT_B, BIT_C, BIT_D = 0x8000, 0x4000, 0x8000, 0x4000
NOT_NEGOTIATED = 0x3FFF
MARKER_EVERY = 512
ULPDU_MAX = 64768
MULPDU_MIN = 128


def mulpdu(emss, markers):
    """RFC 5044, 4.5."""
    overhead = 6 + emss % 4
    if markers:
        overhead += 4 * ((emss + MARKER_EVERY - 1) // MARKER_EVERY)
    return max(MULPDU_MIN, min(ULPDU_MAX, emss - overhead))


class Enhanced:
    """The block of RFC 6581, 9: one word in front of the private data."""

    def __init__(self, ird=0, ord=0, a=0, b=0, c=0, d=0):
        self.ird, self.ord = ird, ord
        self.a, self.b, self.c, self.d = a, b, c, d

    def build(self):
        left = self.ird | (BIT_A if self.a else 0) | (BIT_B if self.b else 0)
        right = self.ord | (BIT_C if self.c else 0) | (BIT_D if self.d else 0)
        return struct.pack(">HH", left, right)

    @classmethod
    def parse(cls, data):
        left, right = struct.unpack(">HH", data)
        return cls(left & 0x3FFF, right & 0x3FFF, int(bool(left & BIT_A)), int(bool(left & BIT_B)),
                   int(bool(right & BIT_C)), int(bool(right & BIT_D)))

    def __repr__(self):
        return "Enhanced(ird=%d ord=%d a=%d b=%d c=%d d=%d)" % (
            self.ird, self.ord, self.a, self.b, self.c, self.d)


class StartFrame:
    """A request or a reply, in fields that may all be wrong."""

    def __init__(self, key, m=0, c=1, r=0, rev=1, pd=b"", enhanced=None, s=None, reserved=0,
                 pd_length=None):
        self.key, self.m, self.c, self.r, self.rev = key, m, c, r, rev
        self.s = int(enhanced is not None) if s is None else s
        self.reserved = reserved
        self.enhanced = enhanced
        self.pd = pd
        self.pd_length = pd_length

    def build(self):
        body = (self.enhanced.build() if self.enhanced else b"") + self.pd
        length = len(body) if self.pd_length is None else self.pd_length
        flags = ((FLAG_M if self.m else 0) | (FLAG_C if self.c else 0) |
                 (FLAG_R if self.r else 0) | (FLAG_S if self.s else 0) | self.reserved)
        return self.key + struct.pack(">BBH", flags, self.rev, length) + body

    @staticmethod
    def remaining(fixed):
        """Bytes that follow the fixed part."""
        return struct.unpack(">H", fixed[18:20])[0]

    @classmethod
    def parse(cls, data, request):
        """A frame that was received; strict, as a sender has to be."""
        key = KEY_REQUEST if request else KEY_REPLY
        flags, rev, length = struct.unpack(">BBH", data[16:FIXED])
        if data[:16] != key:
            raise Violation("key %r" % data[:16])
        if flags & 0x0F:
            raise Violation("reserved flag bits %#x" % flags)
        if length > PD_MAX or length != len(data) - FIXED:
            raise Violation("PD_Length %d, %d bytes there" % (length, len(data) - FIXED))
        if request and flags & FLAG_R:
            raise Violation("R in a request")
        frame = cls(key, int(bool(flags & FLAG_M)), int(bool(flags & FLAG_C)),
                    int(bool(flags & FLAG_R)), rev, data[FIXED:])
        if flags & FLAG_S:
            frame.s = 1
            if rev < 2 or length < 4:
                raise Violation("S with revision %d and %d bytes" % (rev, length))
            frame.enhanced = Enhanced.parse(data[FIXED:FIXED + 4])
            frame.pd = data[FIXED + 4:]
            e = frame.enhanced
            if not e.a and (e.b or e.c or e.d):
                raise Violation("B, C or D without A: %r" % e)
        elif rev not in (1, 2):
            raise Violation("revision %d" % rev)
        return frame

    def __repr__(self):
        return "StartFrame(m=%d c=%d r=%d s=%d rev=%d pd=%d bytes, %r)" % (
            self.m, self.c, self.r, self.s, self.rev, len(self.pd), self.enhanced)


def request(**fields):
    return StartFrame(fields.pop("key", KEY_REQUEST), **fields)


def reply(**fields):
    return StartFrame(fields.pop("key", KEY_REPLY), **fields)


class Framer:
    """Makes FPDUs of one direction; keeps the stream position."""

    def __init__(self, markers=False, crc=True, pos=0):
        self.markers, self.crc, self.pos = markers, crc, pos

    def frame(self, ulpdu, length=None, pad=None, crc_xor=0, crc_field=None, marker_hook=None):
        """One FPDU.

        length: another ULPDU_Length; pad: bytes instead of zeros;
        crc_xor: corrupts the CRC; crc_field: four bytes instead of it;
        marker_hook(value, index): another 32-bit word for a marker, before the
        CRC is computed.
        """
        head = struct.pack(">H", len(ulpdu) if length is None else length)
        want = -(2 + len(ulpdu)) % 4
        body = head + ulpdu + (bytes(want) if pad is None else pad[:want])
        out = bytearray()
        pos, at, index = self.pos, 0, 0

        def marker(value):
            nonlocal index
            if marker_hook:
                value = marker_hook(value, index)
            index += 1
            return struct.pack(">I", value)

        if self.markers and pos % MARKER_EVERY == 0:
            out += marker(0)
            pos += 4
        start = pos
        while at < len(body):
            if self.markers and pos % MARKER_EVERY == 0:
                out += marker(pos - start)
                pos += 4
            take = len(body) - at
            if self.markers:
                take = min(take, MARKER_EVERY - pos % MARKER_EVERY)
            out += body[at:at + take]
            at += take
            pos += take
        if self.markers and pos % MARKER_EVERY == 0:
            out += marker(pos - start)
            pos += 4
        if crc_field is not None:
            out += crc_field
        elif self.crc:
            out += struct.pack("<I", crc32c.crc32c(out) ^ crc_xor)
        else:
            out += bytes(4)
        self.pos = pos + 4
        return bytes(out)


class Fpdu:
    def __init__(self, ulpdu, position, wire, markers, crc_good):
        self.ulpdu, self.position, self.wire = ulpdu, position, wire
        self.markers, self.crc_good = markers, crc_good


class Deframer:
    """Takes a stream apart by ULPDU_Length alone and checks everything."""

    def __init__(self, markers=False, crc=True, pos=0):
        self.markers, self.crc, self.pos = markers, crc, pos
        self.buf = bytearray()
        self.crc_bad = 0

    def feed(self, data):
        self.buf += data

    def _span(self, at, length):
        """Bytes of the stream from @at (in the buffer) that hold @length bytes of content."""
        if not self.markers:
            return length
        pos, total = self.pos + at, 0
        while length:
            if pos % MARKER_EVERY == 0:
                total += 4
                pos += 4
            take = min(length, MARKER_EVERY - pos % MARKER_EVERY)
            length -= take
            total += take
            pos += take
        return total

    def _content(self, raw, start, first):
        """Content and markers of raw[first:], whose length field is at @start."""
        content, marks, at = bytearray(), [], first
        while at < len(raw):
            pos = self.pos + at
            if self.markers and pos % MARKER_EVERY == 0:
                word = struct.unpack(">I", raw[at:at + 4])[0]
                marks.append((pos, word, pos - (self.pos + start)))
                at += 4
                continue
            take = len(raw) - at
            if self.markers:
                take = min(take, MARKER_EVERY - pos % MARKER_EVERY)
            content += raw[at:at + take]
            at += take
        return bytes(content), marks

    def next(self):
        """The next whole FPDU, or None."""
        lead = 4 if self.markers and self.pos % MARKER_EVERY == 0 else 0
        if len(self.buf) < lead + 2:
            return None
        length = struct.unpack(">H", self.buf[lead:lead + 2])[0]
        total = 2 + length
        total += -total % 4
        end = lead + self._span(lead, total)
        if self.markers and (self.pos + end) % MARKER_EVERY == 0:
            end += 4
        end += 4
        if len(self.buf) < end:
            return None
        raw = bytes(self.buf[:end])
        body, marks = self._content(raw[:-4], lead, lead)
        if lead:
            marks.insert(0, (self.pos, struct.unpack(">I", raw[:4])[0], 0))
        self._check_markers(marks)
        if length > ULPDU_MAX:
            raise Violation("ULPDU_Length %d" % length)
        if any(body[2 + length:]):
            raise Violation("PAD is not zero: %s" % body[2 + length:].hex())
        good = crc32c.wire_bytes(raw[:-4]) == raw[-4:]
        if self.crc and not good:
            self.crc_bad += 1
            raise Violation("CRC is %s, of %s" % (raw[-4:].hex(), raw[:64].hex()))
        fpdu = Fpdu(body[2:2 + length], self.pos, raw, marks, good)
        del self.buf[:end]
        self.pos += end
        return fpdu

    @staticmethod
    def _check_markers(marks):
        for pos, word, due in marks:
            if word >> 16:
                raise Violation("marker at %d: reserved half %#x" % (pos, word >> 16))
            if word != due:
                raise Violation("marker at %d: FPDUPTR %#x, due %#x" % (pos, word, due))
