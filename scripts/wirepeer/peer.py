# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""An endpoint over an ordinary TCP socket, either role.

Correct unless told otherwise: every sending method takes the fields of its
header as keywords, and framing takes those of Framer.frame() in @fpdu.
"""

import select
import socket
import struct
import time

from . import Violation, ddp, mpa, rdmap


class Timeout(Exception):
    """Nothing came."""


class Closed(Exception):
    """FIN (reset False) or RST (reset True) instead of what was due."""

    def __init__(self, reset, rest=b""):
        super().__init__("RST" if reset else "FIN%s" % (" after %s" % rest.hex() if rest else ""))
        self.reset, self.rest = reset, rest


class Message:
    """A whole message of one or more segments."""

    def __init__(self, segments):
        first = segments[0]
        self.segments = segments
        self.opcode, self.stag, self.to = first.opcode, first.stag, first.to
        self.qn, self.msn = first.qn, first.msn
        self.payload = b"".join(s.payload for s in segments)

    def __repr__(self):
        return "Message(%s msn=%s stag=%#x to=%s %d bytes in %d)" % (
            rdmap.NAMES[self.opcode], self.msn, self.stag, self.to, len(self.payload),
            len(self.segments))


class Peer:
    """One TCP connection."""

    def __init__(self, sock, timeout=5.0):
        self.sock = sock
        self.timeout = timeout
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""
        self.ended = None           # None, "fin", "rst"
        self.tx = self.rx = None
        self.audit = rdmap.Audit()
        self.msn = {0: 1, 1: 1, 2: 1, 3: 1}
        self.open = {}
        self.held = []
        self.mulpdu = 1024
        self.request_frame = self.reply_frame = None

    # --- TCP -----------------------------------------------------------------

    @classmethod
    def connect(cls, address, port, timeout=5.0, source=None, rcvbuf=None, maxseg=None):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        if rcvbuf:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        if maxseg:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, maxseg)
        sock.settimeout(timeout)
        if source:
            sock.bind((source, 0))
        sock.connect((address, port))
        return cls(sock, timeout)

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def fin(self):
        """Close our direction; the other side may be gone already."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def rst(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def raw(self, data, piece=None, pause=0.0):
        """Send bytes; @piece bytes per TCP segment if given."""
        self.sock.settimeout(self.timeout)
        if not piece:
            self.sock.sendall(data)
            return
        for at in range(0, len(data), piece):
            self.sock.sendall(data[at:at + piece])
            if pause:
                time.sleep(pause)

    def _more(self, timeout):
        """Wait for bytes; False on a timeout, an end is noted in @ended."""
        if self.ended:
            return True
        ready, _, _ = select.select([self.sock], [], [], max(0, timeout))
        if not ready:
            return False
        try:
            data = self.sock.recv(1 << 18)
        except (ConnectionResetError, BrokenPipeError):
            self.ended = "rst"
            return True
        if not data:
            self.ended = "fin"
        elif self.rx:
            self.rx.feed(data)
        else:
            self.pending += data
        return True

    def exactly(self, count, timeout=None):
        """Exactly @count bytes outside of any FPDU."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while len(self.pending) < count:
            if self.ended:
                raise Closed(self.ended == "rst", self.pending)
            if not self._more(end - time.monotonic()):
                raise Timeout("%d of %d bytes: %s" % (
                    len(self.pending), count, self.pending.hex()))
        data, self.pending = self.pending[:count], self.pending[count:]
        return data

    def silent(self, seconds):
        """Nothing at all may come, not even an end."""
        self._more(seconds)
        if self.ended or self.pending or self.held or (self.rx and self.rx.buf):
            raise Violation("not silent: %s %s" % (
                self.ended, (bytes(self.rx.buf) if self.rx else self.pending).hex()))

    def expect_end(self, timeout=None, reset=None):
        """The other side closes, and nothing else comes. @reset None: either way."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while not self.ended:
            if not self._more(end - time.monotonic()):
                raise Timeout("not closed")
        if self.rx:
            segment = self._segment()
            if segment:
                raise Violation("%r instead of an end" % segment)
        rest = bytes(self.rx.buf) if self.rx else self.pending
        if rest:
            raise Violation("stray bytes before the end: %s" % rest.hex())
        if reset is not None and reset != (self.ended == "rst"):
            raise Violation("%s" % self.ended)
        return self.ended

    # --- start-up --------------------------------------------------------------

    def send_request(self, piece=None, **fields):
        self.request_frame = mpa.request(**fields)
        self.raw(self.request_frame.build(), piece)

    def send_reply(self, piece=None, extra=b"", **fields):
        self.reply_frame = mpa.reply(**fields)
        self.raw(self.reply_frame.build() + extra, piece)

    def _read_start(self, request, timeout):
        fixed = self.exactly(mpa.FIXED, timeout)
        rest = self.exactly(mpa.StartFrame.remaining(fixed), timeout)
        return mpa.StartFrame.parse(fixed + rest, request)

    def read_request(self, timeout=None):
        self.request_frame = self._read_start(True, timeout)
        return self.request_frame

    def read_reply(self, timeout=None):
        self.reply_frame = self._read_start(False, timeout)
        return self.reply_frame

    def full_operation(self, initiator):
        """Both frames are known: FPDUs from here on."""
        req, rep = self.request_frame, self.reply_frame
        crc = bool(req.c or rep.c)
        to_initiator, to_responder = bool(req.m), bool(rep.m)
        self.tx = mpa.Framer(to_responder if initiator else to_initiator, crc)
        self.rx = mpa.Deframer(to_initiator if initiator else to_responder, crc)
        self.rx.feed(self.pending)
        self.pending = b""

    def initiate(self, timeout=None, **fields):
        self.send_request(**fields)
        reply = self.read_reply(timeout)
        if not reply.r:
            self.full_operation(True)
        return reply

    def respond(self, timeout=None, **fields):
        request = self.read_request(timeout)
        self.send_reply(**fields)
        self.full_operation(False)
        return request

    # --- receiving ---------------------------------------------------------------

    def _segment(self):
        fpdu = self.rx.next()
        if not fpdu:
            return None
        segment = ddp.Segment(fpdu.ulpdu)
        segment.fpdu = fpdu
        self.audit.see(segment)
        return segment

    def segment(self, timeout=None):
        """The next segment, checked."""
        if self.held:
            return self.held.pop(0)
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            segment = self._segment()
            if segment:
                return segment
            if self.ended:
                raise Closed(self.ended == "rst", bytes(self.rx.buf))
            if not self._more(end - time.monotonic()):
                raise Timeout("no segment; %d bytes of one" % len(self.rx.buf))

    def message(self, timeout=None):
        """The next message. A tagged one may stand within an untagged one."""
        while True:
            s = self.segment(timeout)
            if s.opcode == rdmap.TERMINATE:
                return Message([s])
            key = "tagged" if s.tagged else s.qn
            parts = self.open.setdefault(key, [])
            parts.append(s)
            if s.last:
                del self.open[key]
                return Message(parts)

    def expect(self, opcode, timeout=None):
        message = self.message(timeout)
        if message.opcode != opcode:
            extra = (rdmap.Terminate.parse(message.payload)
                     if message.opcode == rdmap.TERMINATE else "")
            raise Violation("%r %s, due: %s" % (message, extra, rdmap.NAMES[opcode]))
        return message

    def expect_terminate(self, layer=None, etype=None, code=None, ulpdu=None, bits="MD",
                         rdmap_header=None, timeout=None, closes=True):
        """A Terminate of that kind, carrying what @ulpdu was, then FIN, no RST."""
        message = self.message(timeout)
        while message.opcode != rdmap.TERMINATE:
            message = self.message(timeout)
        term = rdmap.Terminate.parse(message.payload)
        if layer is not None and term.what != (layer, etype, code):
            raise Violation("%r, due: %d/%d/%02x" % (term, layer, etype, code))
        have = "".join(n for n, b in (("M", term.M), ("D", term.D), ("R", term.R))
                       if term.bits & b)
        if ulpdu is not None and have != bits:
            raise Violation("%r has %s, due: %s" % (term, have, bits))
        if ulpdu is not None and "D" in bits:
            size = ddp.TAGGED_LEN if ulpdu[0] & 0x80 else ddp.UNTAGGED_LEN
            if term.ddp_header != ulpdu[:size] or term.seglen != len(ulpdu):
                raise Violation("%r, due: seglen=%d %s" % (term, len(ulpdu), ulpdu[:size].hex()))
            if "R" in bits:
                due = ulpdu[size:size + 28] if rdmap_header is None else rdmap_header
                if term.rdmap_header != due:
                    raise Violation("%r, due: rdmap=%s" % (term, due.hex()))
        if closes:
            self.expect_end(timeout, reset=False)
        return term

    # --- sending ---------------------------------------------------------------

    def ulpdu(self, ulpdu, fpdu=None, piece=None, hold=False):
        """Frame and send; @hold only returns the bytes."""
        data = self.tx.frame(ulpdu, **(fpdu or {}))
        if not hold:
            self.raw(data, piece)
        return data

    def next_msn(self, qn):
        msn = self.msn[qn]
        self.msn[qn] = msn + 1 & 0xFFFFFFFF
        return msn

    def untagged(self, opcode, payload=b"", qn=None, msn=None, inv=0, cut=None, fpdu=None,
                 hold=False, piece=None, **fields):
        """A message; one segment if @payload fits @cut bytes of payload."""
        qn = rdmap.QN.get(opcode, 0) if qn is None else qn
        if msn is None:
            msn = self.next_msn(qn) if qn in self.msn else 1
        cut = cut or self.mulpdu - ddp.UNTAGGED_LEN
        self.last_ulpdu, out = None, b""
        for at in range(0, max(1, len(payload)), cut):
            part = payload[at:at + cut]
            args = dict(mo=at, last=at + len(part) >= len(payload))
            args.update(fields)
            self.last_ulpdu = ddp.untagged(opcode, qn, msn, inv=inv, payload=part, **args)
            out += self.ulpdu(self.last_ulpdu, fpdu, piece, hold)
        return out

    def tagged(self, opcode, stag, to, payload=b"", cut=None, fpdu=None, hold=False, piece=None,
               **fields):
        cut = cut or self.mulpdu - ddp.TAGGED_LEN
        self.last_ulpdu, out = None, b""
        for at in range(0, max(1, len(payload)), cut):
            part = payload[at:at + cut]
            args = dict(last=at + len(part) >= len(payload))
            args.update(fields)
            self.last_ulpdu = ddp.tagged(opcode, stag, to + at, part, **args)
            out += self.ulpdu(self.last_ulpdu, fpdu, piece, hold)
        return out

    def send(self, payload=b"", opcode=rdmap.SEND, **fields):
        return self.untagged(opcode, payload, **fields)

    def imm(self, data, opcode=rdmap.IMM, **fields):
        return self.untagged(opcode, data, **fields)

    def write(self, stag, to, payload=b"", **fields):
        return self.tagged(rdmap.WRITE, stag, to, payload, **fields)

    def read(self, src_stag, src_to, size, sink_stag=0x51A6, sink_to=0x1000, extra=b"",
             **fields):
        header = rdmap.read_request(sink_stag, sink_to, size, src_stag, src_to)
        return self.untagged(rdmap.READ_REQ, header + extra, **fields)

    def read_response(self, request, payload, **fields):
        return self.tagged(rdmap.READ_RESP, fields.pop("stag", request.sink_stag),
                           fields.pop("to", request.sink_to), payload, **fields)

    def atomic(self, code, stag, to, data=0, mask=0, compare=0, compare_mask=rdmap.ONES,
               req_id=1, rsvd=0, extra=b"", **fields):
        header = rdmap.atomic_request(code, req_id, stag, to, data, mask, compare, compare_mask,
                                      rsvd)
        return self.untagged(rdmap.ATOMIC_REQ, header + extra, **fields)

    def atomic_response(self, req_id, original, **fields):
        return self.untagged(rdmap.ATOMIC_RESP, rdmap.atomic_response(req_id, original), **fields)

    def terminate(self, layer, etype, code, seglen=None, ddp_header=b"", rdmap_header=b"",
                  bits=None, reserved=0, **fields):
        term = rdmap.Terminate(layer, etype, code, seglen, ddp_header, rdmap_header, bits,
                               reserved)
        return self.untagged(rdmap.TERMINATE, term.build(), **fields)


class Listener:
    """Accepts connections as Peers."""

    def __init__(self, address, port=0, timeout=5.0, maxseg=None, rcvbuf=None):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if maxseg:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, maxseg)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.bind((address, port))
        self.sock.listen(64)
        self.timeout = timeout
        self.port = self.sock.getsockname()[1]

    def accept(self, timeout=None):
        self.sock.settimeout(self.timeout if timeout is None else timeout)
        try:
            sock, _ = self.sock.accept()
        except socket.timeout:
            raise Timeout("no connection") from None
        return Peer(sock, self.timeout)

    def is_connecting(self, timeout):
        """Does a connection wait to be accepted?"""
        return bool(select.select([self.sock], [], [], timeout)[0])

    def close(self):
        self.sock.close()
