# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""RDMAP messages of RFC 5040 and RFC 7306: opcodes, headers, Terminate."""

import struct

from . import Violation, ddp

(WRITE, READ_REQ, READ_RESP, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERMINATE, IMM, IMM_SE,
 ATOMIC_REQ, ATOMIC_RESP) = range(12)
NAMES = ("Write", "ReadReq", "ReadResp", "Send", "SendInv", "SendSE", "SendSEInv", "Terminate",
         "Imm", "ImmSE", "AtomicReq", "AtomicResp")
TAGGED_OPS = (WRITE, READ_RESP)
QN = {READ_REQ: 1, SEND: 0, SEND_INV: 0, SEND_SE: 0, SEND_SE_INV: 0, TERMINATE: 2, IMM: 0,
      IMM_SE: 0, ATOMIC_REQ: 1, ATOMIC_RESP: 3}
FETCH_ADD, CMP_SWAP = 0, 2
ONES = 0xFFFFFFFFFFFFFFFF


def read_request(sink_stag, sink_to, size, src_stag, src_to):
    return struct.pack(">IQIIQ", sink_stag, sink_to & ONES, size, src_stag, src_to & ONES)


class ReadRequest:
    def __init__(self, payload):
        if len(payload) != 28:
            raise Violation("Read Request header of %d bytes" % len(payload))
        (self.sink_stag, self.sink_to, self.size, self.src_stag,
         self.src_to) = struct.unpack(">IQIIQ", payload)


def atomic_request(code, req_id, stag, to, data, mask, compare, compare_mask, reserved=0):
    return struct.pack(">IIIQQQQQ", reserved << 4 | code, req_id, stag, to & ONES, data & ONES,
                       mask & ONES, compare & ONES, compare_mask & ONES)


class AtomicRequest:
    def __init__(self, payload):
        if len(payload) != 52:
            raise Violation("Atomic Request header of %d bytes" % len(payload))
        (word, self.req_id, self.stag, self.to, self.data, self.mask, self.compare,
         self.compare_mask) = struct.unpack(">IIIQQQQQ", payload)
        if word >> 4:
            raise Violation("Atomic Request: reserved bits %#x" % word)
        self.code = word & 15


def atomic_response(req_id, original):
    return struct.pack(">IQ", req_id, original & ONES)


class AtomicResponse:
    def __init__(self, payload):
        if len(payload) != 12:
            raise Violation("Atomic Response header of %d bytes" % len(payload))
        self.req_id, self.original = struct.unpack(">IQ", payload)


def fetch_add(original, add, mask):
    """RFC 7306, 5.1.1: a mask bit is the top of a field, no carry leaves it."""
    result, carry = 0, 0
    for bit in range(64):
        total = (original >> bit & 1) + (add >> bit & 1) + carry
        result |= (total & 1) << bit
        carry = 0 if mask >> bit & 1 else total >> 1
    return result


def cmp_swap(original, compare, compare_mask, swap, swap_mask):
    """RFC 7306, 5.1.2."""
    if (compare ^ original) & compare_mask:
        return original
    return (original & ~swap_mask & ONES) | (swap & swap_mask)


class Terminate:
    """What a Terminate says; @parse is strict, @build is not."""

    M, D, R = 0x8000, 0x4000, 0x2000

    def __init__(self, layer, etype, code, seglen=None, ddp_header=b"", rdmap_header=b"",
                 bits=None, reserved=0):
        self.layer, self.etype, self.code = layer, etype, code
        self.seglen, self.ddp_header, self.rdmap_header = seglen, ddp_header, rdmap_header
        self.bits, self.reserved = bits, reserved

    @property
    def what(self):
        return self.layer, self.etype, self.code

    def build(self):
        bits = self.bits
        if bits is None:
            bits = ((self.M if self.seglen is not None else 0) |
                    (self.D if self.ddp_header else 0) | (self.R if self.rdmap_header else 0))
        out = struct.pack(">BBH", self.layer << 4 | self.etype, self.code, bits | self.reserved)
        if self.seglen is not None:
            out += struct.pack(">H", self.seglen)
        return out + self.ddp_header + self.rdmap_header

    @classmethod
    def parse(cls, payload):
        if len(payload) < 4:
            raise Violation("Terminate of %d bytes" % len(payload))
        first, code, word = struct.unpack(">BBH", payload[:4])
        if word & 0x1FFF:
            raise Violation("Terminate: reserved bits %#06x" % word)
        bits = word & 0xE000
        term = cls(first >> 4, first & 15, code, bits=bits)
        if term.layer > 2:
            raise Violation("Terminate: layer %d" % term.layer)
        rest = payload[4:]
        if bool(bits & cls.M) != bool(bits & cls.D):
            raise Violation("Terminate: M and D differ: %#06x" % word)
        if bits & cls.R and not bits & cls.D:
            raise Violation("Terminate: R without D")
        if bits & cls.D:
            term.seglen, rest = struct.unpack(">H", rest[:2])[0], rest[2:]
            size = ddp.TAGGED_LEN if rest[0] & ddp.TAGGED else ddp.UNTAGGED_LEN
            term.ddp_header, rest = rest[:size], rest[size:]
            if len(term.ddp_header) != size:
                raise Violation("Terminate: DDP header cut short")
        if bits & cls.R:
            term.rdmap_header, rest = rest[:28], rest[28:]
            if len(term.rdmap_header) != 28:
                raise Violation("Terminate: RDMAP header cut short")
        if rest:
            raise Violation("Terminate: %d bytes too many" % len(rest))
        return term

    def __repr__(self):
        return "Terminate(%d/%d/%02x seglen=%s ddp=%s rdmap=%s)" % (
            self.layer, self.etype, self.code, self.seglen, self.ddp_header.hex() or "-",
            self.rdmap_header.hex() or "-")


class Audit:
    """Follows one direction of a stream and objects to what is out of order.

    Independent of who the sender is: MSN and MO order per queue, one L per
    message, constant fields, tagged offsets without gap, reserved fields, a
    Terminate as the last thing.
    """

    HEADER = {READ_REQ: 28, IMM: 8, IMM_SE: 8, ATOMIC_REQ: 52, ATOMIC_RESP: 12}

    def __init__(self):
        self.msn = {0: 1, 1: 1, 2: 1, 3: 1}
        self.untagged = {}
        self.tagged = None
        self.terminated = False
        self.segments = 0
        self.longest = 0

    def see(self, s):
        if self.terminated:
            raise Violation("%r after a Terminate" % s)
        if s.opcode > ATOMIC_RESP:
            raise Violation("opcode %d" % s.opcode)
        if s.tagged != (s.opcode in TAGGED_OPS):
            raise Violation("%s with T=%d" % (NAMES[s.opcode], s.tagged))
        self.segments += 1
        self.longest = max(self.longest, len(s.ulpdu))
        if s.tagged:
            self._see_tagged(s)
        else:
            self._see_untagged(s)

    def _see_tagged(self, s):
        if not s.payload and not s.last:
            raise Violation("empty segment that is not the last: %r" % s)
        if self.tagged:
            opcode, stag, to = self.tagged
            if (s.opcode, s.stag, s.to) != (opcode, stag, to):
                raise Violation("%r, due: op=%d stag=%#x to=%#x" % (s, opcode, stag, to))
        self.tagged = None if s.last else (s.opcode, s.stag, s.to + len(s.payload) & ONES)

    def _see_untagged(self, s):
        if s.qn != QN[s.opcode]:
            raise Violation("%s on queue %d" % (NAMES[s.opcode], s.qn))
        if s.msn != self.msn[s.qn]:
            raise Violation("queue %d: MSN %d, due %d" % (s.qn, s.msn, self.msn[s.qn]))
        if s.stag and s.opcode not in (SEND_INV, SEND_SE_INV):
            raise Violation("Invalidate STag %#x in %s" % (s.stag, NAMES[s.opcode]))
        opcode, inv, mo = self.untagged.get(s.qn, (s.opcode, s.stag, 0))
        if (s.opcode, s.stag, s.mo) != (opcode, inv, mo):
            raise Violation("%r, due: op=%d inv=%#x mo=%d" % (s, opcode, inv, mo))
        due = self.HEADER.get(s.opcode)
        if due is not None and (len(s.payload) != due or not s.last):
            raise Violation("%s with %d bytes" % (NAMES[s.opcode], len(s.payload)))
        if s.last:
            self.untagged.pop(s.qn, None)
            self.msn[s.qn] = self.msn[s.qn] + 1 & 0xFFFFFFFF
        else:
            if not s.payload:
                raise Violation("empty segment that is not the last: %r" % s)
            self.untagged[s.qn] = (s.opcode, s.stag, s.mo + len(s.payload))
        if s.opcode == TERMINATE:
            if not s.last:
                raise Violation("Terminate of several segments")
            Terminate.parse(s.payload)
            self.terminated = True
