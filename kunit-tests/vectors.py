#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Byte-exact iWARP test vectors (MPA / DDP / RDMAP / RFC 7306), printed as JSON.

Plain Python 3, standard library only.  The encoder and the decoder below are
written separately on purpose: every vector that is printed has been decoded
again, marker by marker, and compared with what went in.  `python3 vectors.py`
prints the JSON; a failed self-check raises before anything is printed.

Conventions
  * all multi-byte protocol fields are big endian;
  * the CRC32c is the reflected (iSCSI style) CRC and its four bytes travel
    least significant byte first, so the stored bytes are
    struct.pack('<I', crc32c(data));
  * a "stream" starts at position 0 = the first byte of full operation phase
    in one direction; when markers are on, a marker starts at every position
    that is a multiple of 512.
"""
import json
import struct

# --------------------------------------------------------------------------
# CRC32c
# --------------------------------------------------------------------------
_TAB = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ (0x82F63B78 if _c & 1 else 0)
    _TAB.append(_c)


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for b in data:
        crc = (crc >> 8) ^ _TAB[(crc ^ b) & 0xFF]
    return crc ^ 0xFFFFFFFF


def crc32c_bitwise(data):
    """Second, table-free implementation (MSB-first register, reflected at
    the edges) used only to cross-check the table version."""
    def rev(x, n):
        r = 0
        for k in range(n):
            if x >> k & 1:
                r |= 1 << (n - 1 - k)
        return r
    reg = 0xFFFFFFFF
    for b in data:
        reg ^= rev(b, 8) << 24
        for _ in range(8):
            reg = ((reg << 1) ^ 0x1EDC6F41 if reg & 0x80000000 else reg << 1)
            reg &= 0xFFFFFFFF
    return rev(reg, 32) ^ 0xFFFFFFFF


# --------------------------------------------------------------------------
# MPA start-up frames
# --------------------------------------------------------------------------
KEY_REQ = b"MPA ID Req Frame"
KEY_REP = b"MPA ID Rep Frame"
F_M, F_C, F_R, F_S = 0x80, 0x40, 0x20, 0x10


def mpa_frame(reply, m, c, r, rev, pdata=b"", s=0):
    flags = (F_M if m else 0) | (F_C if c else 0) | (F_R if r else 0) | (F_S if s else 0)
    return ((KEY_REP if reply else KEY_REQ)
            + struct.pack(">BBH", flags, rev, len(pdata)) + pdata)


def enhanced(a, b, ird, c, d, ord_):
    return struct.pack(">HH", a << 15 | b << 14 | ird, c << 15 | d << 14 | ord_)


# --------------------------------------------------------------------------
# MPA FPDU framing
# --------------------------------------------------------------------------
class Framer:
    """One direction of one connection."""

    def __init__(self, markers=False, crc=True, pos=0):
        self.markers, self.crc, self.pos = markers, crc, pos
        self.marker_log = []            # (position, fpduptr)

    def fpdu(self, ulpdu):
        body = struct.pack(">H", len(ulpdu)) + ulpdu
        body += bytes(-len(body) % 4)                   # PAD
        out = bytearray()
        hdr_pos = None

        def put(word):
            nonlocal hdr_pos
            if self.markers and self.pos % 512 == 0:
                ptr = 0 if hdr_pos is None else self.pos - hdr_pos
                self.marker_log.append((self.pos, ptr))
                out.extend(struct.pack(">HH", 0, ptr))
                self.pos += 4
            if hdr_pos is None:
                hdr_pos = self.pos
            out.extend(word)
            self.pos += 4

        for i in range(0, len(body), 4):
            put(body[i:i + 4])
        # the CRC is the last word; a marker may land right before it and is
        # then covered by the CRC as well.
        if self.markers and self.pos % 512 == 0:
            ptr = self.pos - hdr_pos
            self.marker_log.append((self.pos, ptr))
            out.extend(struct.pack(">HH", 0, ptr))
            self.pos += 4
        out.extend(struct.pack("<I", crc32c(bytes(out))) if self.crc else bytes(4))
        self.pos += 4
        return bytes(out)


def deframe(stream, markers, crc=True, pos=0):
    """Independent receiver: byte by byte, returns the list of ULPDUs."""
    res, i, p = [], 0, pos
    while i < len(stream):
        covered, plain = bytearray(), bytearray()
        start = None
        need = None
        while True:
            if markers and p % 512 == 0:
                mk = stream[i:i + 4]
                rsv, ptr = struct.unpack(">HH", mk)
                want = 0 if start is None else p - start
                assert rsv == 0 and ptr == want and ptr % 4 == 0, (p, ptr, want)
                covered += mk
                i += 4
                p += 4
                continue
            if need is not None and len(plain) == need:
                break
            if start is None:
                start = p
            plain.append(stream[i])
            covered.append(stream[i])
            i += 1
            p += 1
            if len(plain) == 2:
                ln = plain[0] << 8 | plain[1]
                need = (2 + ln + 3) // 4 * 4
        got = struct.unpack("<I", stream[i:i + 4])[0]
        if crc:
            assert got == crc32c_bitwise(bytes(covered)), "crc"
        i += 4
        p += 4
        assert not any(plain[2 + ln:])
        res.append(bytes(plain[2:2 + ln]))
    return res


def mulpdu(emss, markers):
    v = emss - (6 + (4 * ((emss + 511) // 512) if markers else 0) + emss % 4)
    return max(128, min(v, 64768))


# --------------------------------------------------------------------------
# DDP and RDMAP headers
# --------------------------------------------------------------------------
OP = dict(WRITE=0, RREQ=1, RRESP=2, SEND=3, SEND_INV=4, SEND_SE=5,
          SEND_SE_INV=6, TERM=7, IMM=8, IMM_SE=9, AREQ=10, ARESP=11)


def ctrl(t, l, op):
    ddp = t << 7 | l << 6 | 1           # DV = 01b
    rdmap = 1 << 6 | op                 # RV = 01b
    return bytes((ddp, rdmap))


def tagged(op, stag, to, payload=b"", last=1):
    return ctrl(1, last, OP[op]) + struct.pack(">IQ", stag, to) + payload


def untagged(op, qn, msn, mo, payload=b"", last=1, inv=0):
    return ctrl(0, last, OP[op]) + struct.pack(">IIII", inv, qn, msn, mo) + payload


def rreq_hdr(sink_stag, sink_to, size, src_stag, src_to):
    return struct.pack(">IQIIQ", sink_stag, sink_to, size, src_stag, src_to)


def areq_hdr(aop, reqid, stag, to, data, mask, cmpd, cmpm):
    return struct.pack(">IIIQQQQQ", aop, reqid, stag, to, data, mask, cmpd, cmpm)


def aresp_hdr(reqid, val):
    return struct.pack(">IQ", reqid, val)


def term_hdr(layer, etype, code, m, d, r, seglen=None, ddp=b"", rdmap=b""):
    w = layer << 28 | etype << 24 | code << 16 | m << 15 | d << 14 | r << 13
    out = struct.pack(">I", w)
    if m or d:
        out += struct.pack(">H", seglen) + ddp + rdmap
    return out


# --------------------------------------------------------------------------
# Atomic semantics
# --------------------------------------------------------------------------
M64 = (1 << 64) - 1


def fetch_add(orig, add, mask):
    res, carry = 0, 0
    for bit in range(64):
        s = (orig >> bit & 1) + (add >> bit & 1) + carry
        res |= (s & 1) << bit
        carry = (s >> 1) & (0 if mask >> bit & 1 else 1)
    return res


def cmp_swap(orig, cmpd, cmpm, swap, swapm):
    if (orig ^ cmpd) & cmpm:
        return orig
    return (orig & ~swapm & M64) | (swap & swapm)


# --------------------------------------------------------------------------
# Assemble
# --------------------------------------------------------------------------
V = []


def add(name, kind, data, note, **fields):
    assert name not in {v["name"] for v in V}
    V.append(dict(name=name, kind=kind, length=len(data), hex=data.hex(), note=note,
                  fields={k: (x.hex() if isinstance(x, (bytes, bytearray)) else x)
                          for k, x in fields.items()}))
    return data


def add_fpdu(name, ulpdu, note, crc=True, **fields):
    f = Framer(crc=crc)
    b = f.fpdu(ulpdu)
    assert deframe(b, False, crc) == [ulpdu]
    return add(name, "fpdu", b, note, markers=False, crc_enabled=crc, ulpdu=ulpdu,
               ulpdu_length=len(ulpdu), pad=-(len(ulpdu) + 2) % 4,
               crc_bytes=b[-4:], **fields)


def pat(n, seed=0):
    return bytes((seed + i) & 0xFF for i in range(n))


# ---- start-up frames ------------------------------------------------------
add("mpa_req_r1_crc", "mpa", mpa_frame(0, 0, 1, 0, 1, b"hello-mpa"),
    "Revision 1 request; M=0 C=1; 9 bytes of private data (no padding is added)",
    M=0, C=1, R=0, S=0, rev=1, pd_length=9)
add("mpa_rep_r1_crc", "mpa", mpa_frame(1, 0, 1, 0, 1, b"ok"),
    "Revision 1 accepting reply; M=0 C=1", M=0, C=1, R=0, S=0, rev=1, pd_length=2)
add("mpa_req_r1_markers", "mpa", mpa_frame(0, 1, 1, 0, 1),
    "Revision 1 request; M=1: responder must insert markers; no private data",
    M=1, C=1, R=0, S=0, rev=1, pd_length=0)
add("mpa_rep_r1_markers", "mpa", mpa_frame(1, 1, 1, 0, 1),
    "Revision 1 reply; M=1: initiator must insert markers", M=1, C=1, R=0, S=0, rev=1, pd_length=0)
add("mpa_rep_r1_reject", "mpa", mpa_frame(1, 0, 1, 1, 1, b"busy"),
    "Revision 1 rejecting reply (R=1) with private data", M=0, C=1, R=1, S=0, rev=1, pd_length=4)
add("mpa_req_r1_nocrc", "mpa", mpa_frame(0, 0, 0, 0, 1),
    "Revision 1 request, neither markers nor CRC wanted", M=0, C=0, R=0, S=0, rev=1, pd_length=0)
add("mpa_req_r1_pd512", "mpa", mpa_frame(0, 0, 1, 0, 1, pat(512)),
    "Largest legal private data (512)", M=0, C=1, R=0, S=0, rev=1, pd_length=512)
add("mpa_req_bad_pd513", "mpa", mpa_frame(0, 0, 1, 0, 1, pat(513)),
    "ILLEGAL: private data length 513; receiver closes TCP and reports error 4",
    M=0, C=1, R=0, S=0, rev=1, pd_length=513)
add("mpa_req_r2_p2p", "mpa",
    mpa_frame(0, 0, 1, 0, 2, enhanced(1, 1, 16, 1, 1, 8) + b"ulp!", s=1),
    "Revision 2 enhanced request: S=1, peer-to-peer, all three RTR kinds offered, IRD=16 ORD=8, "
    "then 4 bytes of consumer private data",
    M=0, C=1, R=0, S=1, rev=2, pd_length=8, A=1, B=1, IRD=16, Cflag=1, D=1, ORD=8)
add("mpa_rep_r2_p2p_write", "mpa",
    mpa_frame(1, 0, 1, 0, 2, enhanced(1, 0, 8, 1, 0, 16), s=1),
    "Revision 2 enhanced reply: A=1, zero-length RDMA Write chosen (C flag), IRD=8 ORD=16",
    M=0, C=1, R=0, S=1, rev=2, pd_length=4, A=1, B=0, IRD=8, Cflag=1, D=0, ORD=16)
add("mpa_req_r2_client_server", "mpa",
    mpa_frame(0, 0, 1, 0, 2, enhanced(0, 0, 4, 0, 0, 4), s=1),
    "Revision 2 enhanced request, client-server model: A=B=C=D=0, IRD=ORD=4",
    M=0, C=1, R=0, S=1, rev=2, pd_length=4, A=0, B=0, IRD=4, Cflag=0, D=0, ORD=4)
add("mpa_req_r2_no_negotiation", "mpa",
    mpa_frame(0, 0, 1, 0, 2, enhanced(0, 0, 0x3FFF, 0, 0, 0x3FFF), s=1),
    "Revision 2 enhanced request with IRD=ORD=0x3FFF: the consumer negotiates depths by itself",
    M=0, C=1, R=0, S=1, rev=2, pd_length=4, A=0, B=0, IRD=0x3FFF, Cflag=0, D=0, ORD=0x3FFF)
add("mpa_rep_r2_no_negotiation", "mpa",
    mpa_frame(1, 0, 1, 0, 2, enhanced(0, 0, 0x3FFF, 0, 0, 0x3FFF), s=1),
    "Reply to the previous one: both fields must come back as 0x3FFF",
    M=0, C=1, R=0, S=1, rev=2, pd_length=4, A=0, B=0, IRD=0x3FFF, Cflag=0, D=0, ORD=0x3FFF)

# ---- single FPDUs, no markers --------------------------------------------
for n in range(4):
    add_fpdu("send_pad%d" % (-(18 + n + 2) % 4), untagged("SEND", 0, 1 + n, 0, pat(n, 0xA0)),
             "Send, %d byte payload: shows %d byte(s) of PAD" % (n, -(18 + n + 2) % 4),
             op=3, qn=0, msn=1 + n, mo=0, L=1, T=0)
add_fpdu("send_24", untagged("SEND", 0, 1, 0, pat(24)), "Send with 24 bytes of payload",
         op=3, qn=0, msn=1, mo=0, L=1, T=0)
add_fpdu("send_24_crc_off", untagged("SEND", 0, 1, 0, pat(24)),
         "Same Send when CRC is disabled in both start-up frames: the field is still there; "
         "any value is acceptable, zero shown", crc=False, op=3, qn=0, msn=1, mo=0, L=1, T=0)
add_fpdu("send_inv", untagged("SEND_INV", 0, 2, 0, b"inval", inv=0x00C0DE01),
         "Send with Invalidate of STag 0x00c0de01", op=4, qn=0, msn=2, mo=0, inv_stag=0x00C0DE01)
add_fpdu("send_se", untagged("SEND_SE", 0, 3, 0, b"solicited"), "Send with Solicited Event",
         op=5, qn=0, msn=3, mo=0)
add_fpdu("send_se_inv", untagged("SEND_SE_INV", 0, 4, 0, b"", inv=0x00C0DE02),
         "Zero-length Send with Solicited Event and Invalidate", op=6, qn=0, msn=4, mo=0,
         inv_stag=0x00C0DE02)
add_fpdu("write_16", tagged("WRITE", 0x11223344, 0x0000000100002000, pat(16, 0x30)),
         "RDMA Write, 16 bytes to STag 0x11223344 offset 0x100002000", op=0, T=1, L=1,
         stag=0x11223344, to=0x100002000)
add_fpdu("write_rtr", tagged("WRITE", 0, 0), "Zero-length RDMA Write as used for the RTR "
         "indication; STag and TO are not checked", op=0, T=1, L=1, stag=0, to=0)
RR = rreq_hdr(0xAAAA0001, 0x1000, 4096, 0xBBBB0002, 0x20000)
add_fpdu("rreq_4096", untagged("RREQ", 1, 1, 0, RR), "RDMA Read Request, 4096 bytes",
         op=1, qn=1, msn=1, mo=0, sink_stag=0xAAAA0001, sink_to=0x1000, size=4096,
         src_stag=0xBBBB0002, src_to=0x20000)
add_fpdu("rresp_32", tagged("RRESP", 0xAAAA0001, 0x1000, pat(32, 0x40)),
         "Final (here only) RDMA Read Response segment, 32 bytes", op=2, T=1, L=1,
         stag=0xAAAA0001, to=0x1000)
add_fpdu("rreq_rtr", untagged("RREQ", 1, 1, 0, rreq_hdr(0, 0, 0, 0, 0)),
         "Zero-length RDMA Read Request (RTR or plain): source STag/TO must not be validated",
         op=1, qn=1, msn=1, mo=0, size=0)
add_fpdu("rresp_zero", tagged("RRESP", 0, 0), "Zero-length RDMA Read Response", op=2, T=1, L=1,
         stag=0, to=0)

# ---- terminate -----------------------------------------------------------
bad_rr = untagged("RREQ", 1, 1, 0, rreq_hdr(0xAAAA0001, 0x1000, 4096, 0xDEAD0000, 0))
add_fpdu("term_rreq_invalid_stag",
         untagged("TERM", 2, 1, 0, term_hdr(0, 1, 0x00, 1, 1, 1, len(bad_rr), bad_rr[:18], bad_rr[18:])),
         "Terminate: RDMAP / Remote Protection / Invalid STag, caused by an RDMA Read Request; "
         "M=D=R=1; DDP segment length 46, 18-byte DDP header, 28-byte RDMAP header",
         op=7, qn=2, msn=1, layer=0, etype=1, code=0, M=1, D=1, R=1, seglen=46)
bad_wr = tagged("WRITE", 0x11223344, 0xFFFFFFFFFFFFFFF8, pat(16))
add_fpdu("term_ddp_to_wrap",
         untagged("TERM", 2, 1, 0, term_hdr(1, 1, 0x03, 1, 1, 0, len(bad_wr), bad_wr[:14])),
         "Terminate: DDP / Tagged Buffer / TO wrap, caused by a 16-byte RDMA Write; M=D=1 R=0; "
         "14-byte DDP header", op=7, qn=2, msn=1, layer=1, etype=1, code=3, M=1, D=1, R=0, seglen=30)
bad_snd = untagged("SEND", 0, 1, 0, pat(24))
add_fpdu("term_ddp_no_buffer",
         untagged("TERM", 2, 1, 0, term_hdr(1, 2, 0x02, 1, 1, 0, len(bad_snd), bad_snd[:18])),
         "Terminate: DDP / Untagged Buffer / no buffer for this MSN", op=7, qn=2, msn=1,
         layer=1, etype=2, code=2, M=1, D=1, R=0, seglen=42)
add_fpdu("term_mpa_crc", untagged("TERM", 2, 1, 0, term_hdr(2, 0, 0x02, 0, 0, 0)),
         "Terminate: LLP (MPA) / CRC error; no headers attached", op=7, qn=2, msn=1,
         layer=2, etype=0, code=2, M=0, D=0, R=0)
add_fpdu("term_mpa_ird", untagged("TERM", 2, 1, 0, term_hdr(2, 0, 0x06, 0, 0, 0)),
         "Terminate: MPA / insufficient IRD resources", op=7, qn=2, msn=1, layer=2, etype=0, code=6)
add_fpdu("term_mpa_rtr", untagged("TERM", 2, 1, 0, term_hdr(2, 0, 0x07, 0, 0, 0)),
         "Terminate: MPA / no matching RTR option", op=7, qn=2, msn=1, layer=2, etype=0, code=7)
add_fpdu("term_opcode",
         untagged("TERM", 2, 1, 0, term_hdr(0, 2, 0x06, 1, 1, 0, 18, untagged("SEND", 0, 1, 0)[:1] + b"\x4f" + untagged("SEND", 0, 1, 0)[2:18])),
         "Terminate: RDMAP / Remote Operation / Unexpected OpCode (0xF was received)",
         op=7, qn=2, msn=1, layer=0, etype=2, code=6, M=1, D=1, R=0, seglen=18)
add_fpdu("term_local_catastrophic", untagged("TERM", 2, 1, 0, term_hdr(0, 0, 0, 0, 0, 0)),
         "Terminate: RDMAP / Local Catastrophic; nothing attached", op=7, qn=2, msn=1,
         layer=0, etype=0, code=0)
mis = untagged("AREQ", 1, 1, 0, areq_hdr(0, 7, 0x55660001, 0x1004, 1, 0, 0, M64))
add_fpdu("term_atomic_misaligned",
         untagged("TERM", 2, 1, 0, term_hdr(0, 2, 0x07, 1, 1, 0, len(mis), mis[:18])),
         "Terminate for a misaligned Atomic Request: RDMAP / Remote Operation / catastrophic, "
         "localized to the stream; DDP header only", op=7, qn=2, msn=1, layer=0, etype=2, code=7,
         M=1, D=1, R=0, seglen=70)

# ---- RFC 7306 ------------------------------------------------------------
add_fpdu("atomic_fetchadd_req",
         untagged("AREQ", 1, 2, 0, areq_hdr(0, 0x00000007, 0x55660001, 0x1008, 5, 0, 0, M64)),
         "FetchAdd: add 5, add mask 0 (one 64-bit field), compare data 0, compare mask all ones; "
         "52-byte header on QN 1", op=10, qn=1, msn=2, aop=0, reqid=7, stag=0x55660001, to=0x1008,
         add_data="0x5", add_mask="0x0", cmp_data="0x0", cmp_mask="0xffffffffffffffff")
add_fpdu("atomic_fetchadd_resp", untagged("ARESP", 3, 1, 0, aresp_hdr(7, 37)),
         "Atomic Response: original value 37; 12-byte header on QN 3", op=11, qn=3, msn=1,
         reqid=7, original="0x25")
add_fpdu("atomic_cmpswap_req",
         untagged("AREQ", 1, 3, 0, areq_hdr(2, 8, 0x55660001, 0x1010, 0x1111222233334444, M64,
                                            0x5555666677778888, M64)),
         "CmpSwap with full masks", op=10, qn=1, msn=3, aop=2, reqid=8, stag=0x55660001, to=0x1010,
         swap_data="0x1111222233334444", swap_mask="0xffffffffffffffff",
         cmp_data="0x5555666677778888", cmp_mask="0xffffffffffffffff")
add_fpdu("atomic_cmpswap_resp", untagged("ARESP", 3, 2, 0, aresp_hdr(8, 0x5555666677778888)),
         "Atomic Response for the CmpSwap (comparison matched)", op=11, qn=3, msn=2, reqid=8,
         original="0x5555666677778888")
add_fpdu("imm_data", untagged("IMM", 0, 5, 0, bytes.fromhex("0102030405060708")),
         "Immediate Data, 8 bytes, QN 0 (shares the Send MSN space)", op=8, qn=0, msn=5, mo=0)
add_fpdu("imm_data_se", untagged("IMM_SE", 0, 6, 0, bytes.fromhex("1122334400000000")),
         "Immediate Data with Solicited Event; 32-bit verbs immediate in the first four bytes",
         op=9, qn=0, msn=6, mo=0)
add_fpdu("imm_bad_len7", untagged("IMM", 0, 5, 0, bytes(7)),
         "ILLEGAL: Immediate Data with 7 bytes; the receiver must notice", op=8, qn=0, msn=5, mo=0)

# ---- segmentation --------------------------------------------------------


def segment_untagged(op, qn, msn, payload, mul, inv=0):
    step, res, off = mul - 18, [], 0
    while True:
        chunk = payload[off:off + step]
        last = off + len(chunk) == len(payload)
        res.append(untagged(op, qn, msn, off, chunk, int(last), inv))
        off += len(chunk)
        if last:
            return res


def segment_tagged(op, stag, to, payload, mul):
    step, res, off = mul - 14, [], 0
    while True:
        chunk = payload[off:off + step]
        last = off + len(chunk) == len(payload)
        res.append(tagged(op, stag, to + off, chunk, int(last)))
        off += len(chunk)
        if last:
            return res


def add_stream(name, ulpdus, note, markers, crc=True, **fields):
    f = Framer(markers, crc)
    parts = [f.fpdu(u) for u in ulpdus]
    s = b"".join(parts)
    assert deframe(s, markers, crc) == ulpdus
    starts, p = [], 0
    for x in parts:
        starts.append(p)
        p += len(x)
    add(name, "stream", s, note, markers=markers, crc_enabled=crc,
        fpdu_lengths=[len(x) for x in parts], fpdu_positions=starts,
        ulpdu_lengths=[len(u) for u in ulpdus],
        marker_positions_and_fpduptr=[list(x) for x in f.marker_log], **fields)
    return s


u = segment_untagged("SEND", 0, 1, pat(2048), 1500)
assert [len(x) - 18 for x in u] == [1482, 566]
add_stream("seg_send_2048_mulpdu1500", u, "Send of 2048 bytes at MULPDU 1500: MO 0 / 1482, "
           "payload 1482 / 566", False)
u = segment_tagged("WRITE", 0x11223344, 16384, pat(2048), 1500)
assert [len(x) - 14 for x in u] == [1486, 562]
add_stream("seg_write_2048_mulpdu1500", u, "RDMA Write of 2048 bytes at MULPDU 1500: TO 16384 / "
           "17870, payload 1486 / 562", False)

# ---- markers -------------------------------------------------------------
fig5 = untagged("SEND", 0, 1, 0, bytes(24))
s = add_stream("mk_first_fpdu", [fig5], "First FPDU of a marked stream: marker with FPDUPTR 0 in "
               "front, 42-byte ULPDU, CRC covers the marker", True)
assert s.hex().endswith("52239983") and len(s) == 52, s[-4:].hex()
f = Framer(True)
first = untagged("SEND", 0, 1, 0, bytes(492 - 4 - 6 - 18))
a = f.fpdu(first)
assert len(a) == 492
b = f.fpdu(untagged("SEND", 0, 2, 0, bytes(24)))
assert b.hex().endswith("84925898") and len(b) == 52 and f.marker_log[-1] == (512, 20)
assert deframe(a + b, True) == [first, untagged("SEND", 0, 2, 0, bytes(24))]
add("mk_inside_second_fpdu", "fpdu", b, "Second FPDU of a marked stream, starting at position 492 "
    "(the first one, with its leading marker, is 492 bytes): marker at position 512 points 20 back",
    markers=True, start_position=492, marker_positions_and_fpduptr=[[512, 20]])
add_stream("mk_three_markers", [untagged("SEND", 0, 1, 0, pat(1400))],
           "One large FPDU holding several markers: all point at the same length field; FPDUPTR "
           "counts marker bytes too (508, 1020)", True)
# FPDU whose CRC is directly preceded by a marker: positions 0 marker, 4..511 length+ULPDU+PAD, 512 marker, 516 CRC
u1 = untagged("SEND", 0, 1, 0, pat(508 - 2 - 18))
u2 = untagged("SEND", 0, 2, 0, pat(4))
add_stream("mk_before_crc", [u1, u2], "Marker lands between the last ULPDU/PAD byte and the CRC "
           "(FPDUPTR 508): it belongs to this FPDU and is covered by its CRC", True)
# FPDU that ends exactly at 512: next starts with a zero marker
u1 = untagged("SEND", 0, 1, 0, pat(504 - 2 - 18))
add_stream("mk_between_fpdus", [u1, u2], "First FPDU ends at position 512: marker FPDUPTR 0 is the "
           "first thing of the second FPDU and is covered by the second CRC", True)
# marker right behind the length word: header word at 508
u1 = untagged("SEND", 0, 1, 0, pat(500 - 2 - 18))
add_stream("mk_after_length_word", [u1, u2], "Second FPDU starts at 508: its first word (length + "
           "DDP/RDMAP control) is followed at once by a marker with FPDUPTR 4", True)
add_stream("mk_crc_off", [fig5, u2], "Markers on, CRC off: field present, contents ignored", True, crc=False)
# Figure 4 shape: ULPDU of 16 bytes, marker 12 bytes behind the length field.
f = Framer(True, pos=500)
x = f.fpdu(bytes(range(16)))
assert len(x) == 28 and f.marker_log == [(512, 12)]
add("mk_example_16", "fpdu", x, "Raw 16-byte ULPDU starting at position 500: marker after 10 ULPDU "
    "bytes with FPDUPTR 0x000c, two PAD bytes (not a valid DDP segment, framing test only)",
    markers=True, start_position=500, ulpdu=bytes(range(16)),
    marker_positions_and_fpduptr=[[512, 12]])

# exhaustive framing self-check: every start alignment, many lengths
for start in range(0, 1024, 4):
    for ln in (18, 19, 20, 21, 25, 42, 500, 505, 510, 1030):
        if Framer(True, pos=start).markers:
            f = Framer(True, pos=start)
            d = pat(ln, start)
            assert deframe(f.fpdu(d), True, True, start) == [d]

# ---- semantic tables -----------------------------------------------------
fa = []
for o, a_, m in ((37, 5, 0), (M64, 1, 0), (0x00000000FFFFFFFF, 1, 0x0000000080000000),
                 (0xFFFFFFFFFFFFFFFF, 0x0000000100000001, 0x8000000080000000),
                 (0x00FF00FF00FF00FF, 0x0001000100010001, 0x8080808080808080),
                 (0xA5A5A5A5A5A5A5A5, 0xFFFFFFFFFFFFFFFF, M64), (0x10, 0, 0)):
    fa.append(dict(original="0x%016x" % o, add="0x%016x" % a_, mask="0x%016x" % m,
                   result="0x%016x" % fetch_add(o, a_, m)))
assert fetch_add(37, 5, 0) == 42 and fetch_add(M64, 1, 0) == 0
assert fetch_add(0xFFFFFFFF, 1, 0x80000000) == 0
assert fetch_add(0xA5A5, 0xFFFF, M64) == 0xA5A5 ^ 0xFFFF     # all boundaries = XOR
cs = []
for o, c1, c2, s1, s2 in ((0x5555666677778888, 0x5555666677778888, M64, 0x1111222233334444, M64),
                          (0x5555666677778889, 0x5555666677778888, M64, 0x1111222233334444, M64),
                          (0x5555666677778889, 0x5555666677778888, 0xFFFFFFFFFFFFFF00,
                           0x00000000000000EE, 0x00000000000000FF),
                          (0x0123456789ABCDEF, 0, 0, 0xFFFFFFFFFFFFFFFF, 0x00000000FFFF0000)):
    cs.append(dict(original="0x%016x" % o, compare="0x%016x" % c1, compare_mask="0x%016x" % c2,
                   swap="0x%016x" % s1, swap_mask="0x%016x" % s2,
                   result="0x%016x" % cmp_swap(o, c1, c2, s1, s2)))

crc_checks = [
    dict(name="check", input_hex=b"123456789".hex(), crc="0x%08x" % crc32c(b"123456789")),
    dict(name="zeros32", input_hex=bytes(32).hex(), crc="0x%08x" % crc32c(bytes(32))),
    dict(name="ones32", input_hex=(b"\xff" * 32).hex(), crc="0x%08x" % crc32c(b"\xff" * 32)),
    dict(name="inc32", input_hex=pat(32).hex(), crc="0x%08x" % crc32c(pat(32))),
    dict(name="dec32", input_hex=pat(32)[::-1].hex(), crc="0x%08x" % crc32c(pat(32)[::-1])),
]
assert crc_checks[0]["crc"] == "0xe3069283"
assert crc_checks[1]["crc"] == "0x8a9136aa" and crc_checks[2]["crc"] == "0x62a8ab43"
assert crc_checks[3]["crc"] == "0x46dd794e" and crc_checks[4]["crc"] == "0x113fdb5c"
for c_ in crc_checks:
    d = bytes.fromhex(c_["input_hex"])
    assert crc32c(d) == crc32c_bitwise(d)
    c_["bytes_on_the_wire"] = struct.pack("<I", crc32c(d)).hex()

out = dict(
    about="iWARP wire vectors; every hex string is exactly what TCP carries",
    crc32c=crc_checks,
    mulpdu=[dict(emss=e, no_markers=mulpdu(e, False), markers=mulpdu(e, True))
            for e in (128, 536, 1220, 1440, 1448, 1460, 8948, 8960, 65483, 65495)],
    fetch_add=fa, cmp_swap=cs, vectors=V)

if __name__ == "__main__":
    print(json.dumps(out, indent=1))
