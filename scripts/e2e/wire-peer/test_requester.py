# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""weft as the requester: its messages, and answers that are wrong."""

import random
import time

from harness import (BAD_RESP, FLUSH, LOC_LEN, LOC_PROT, LOC_QP_OP, QP_ACCESS_ERR, QP_FATAL,
                     REM_ACCESS, REM_INV, REM_OP, WC_READ, AgentError, NotSeen, pattern, test)
from wirepeer import ddp, mpa, rdmap


def asked(link, size=None):
    """The Read Request that comes next."""
    message = link.peer.expect(rdmap.READ_REQ)
    request = rdmap.ReadRequest(message.payload)
    request.segment = message.segments[0]
    if size is not None:
        assert request.size == size, request.__dict__
    return request


def reading(f, size=64, count=1, **more):
    """A link with reads posted: (link, sink region, wr ids)."""
    link = f.running(rev=1, **more)
    sink = f.mr(max(1, size * count), access="l")
    wrs = [link.post("read", sge=sink.sge(n * size, size) if size else None, raddr=0x1000 + n,
                     rkey=0x4242) for n in range(count)]
    return link, sink, wrs


# --- messages ----------------------------------------------------------------------

@test("VERBS-025", "RDMAP-002", "RDMAP-005", "RDMAP-008", "RDMAP-009", "RDMAP-011", "DDP-010",
      "RDMAP-036", "RDMAP-030", "EXT-042", "EXT-025", "RDMAP-053", "EXT-005", "EXT-008")
def every_verbs_opcode_on_the_wire(f):
    link = f.running(rev=1)
    out = f.mr(64)
    out.poke(pattern(64))
    sge = out.sge(0, 16)
    due = [
        (dict(op="send", sge=sge), [rdmap.SEND]),
        (dict(op="send", sge=sge, flags="sS"), [rdmap.SEND_SE]),
        (dict(op="sendinv", sge=sge, inv=0xC0DE01), [rdmap.SEND_INV]),
        (dict(op="sendinv", sge=sge, inv=0xC0DE02, flags="sS"), [rdmap.SEND_SE_INV]),
        (dict(op="write", sge=sge, raddr=0x100, rkey=5), [rdmap.WRITE]),
        (dict(op="writeimm", sge=sge, raddr=0x100, rkey=5, imm=0x11223344),
         [rdmap.WRITE, rdmap.IMM]),
        (dict(op="writeimm", sge=sge, raddr=0x100, rkey=5, imm=0x55667788, flags="sS"),
         [rdmap.WRITE, rdmap.IMM_SE]),
    ]
    for fields, opcodes in due:
        wr = link.post(**fields)
        for opcode in opcodes:
            message = link.peer.expect(opcode)
            if opcode in (rdmap.SEND_INV, rdmap.SEND_SE_INV):
                assert message.stag == fields["inv"], message
            elif opcode == rdmap.WRITE:
                assert (message.stag, message.to) == (5, 0x100), message
            elif opcode in (rdmap.IMM, rdmap.IMM_SE):
                assert message.payload == fields["imm"].to_bytes(4, "big") + bytes(4), message
            if opcode not in (rdmap.IMM, rdmap.IMM_SE):
                assert message.payload == pattern(64)[:16]
        link.wc(wr=wr)
    link.no_wc()
    link.post("read", sge=sge, raddr=0x100, rkey=5)
    assert asked(link, 16).src_to == 0x100
    link.post("fadd", sge=out.sge(0, 8), raddr=0x108, rkey=5, add=1)
    assert rdmap.AtomicRequest(link.peer.expect(rdmap.ATOMIC_REQ).payload).code == 0


@test("VERBS-025")
def send_with_immediate_is_refused(f):
    link = f.running(rev=1)
    out = f.mr(8)
    try:
        wr = link.post("sendimm", sge=out.sge(), imm=7)
    except AgentError:
        return
    link.wc(wr=wr, status=LOC_QP_OP)


@test("DDP-058", each=("write", "writeimm"))
def a_write_beyond_the_last_address(f, op):
    """It may end there; one that would go on at 0 fails, and nothing of it is sent."""
    link = f.running(rev=1)
    out = f.mr(16)
    more = dict(imm=7) if op == "writeimm" else {}
    link.post(op, sge=out.sge(0, 16), raddr=2 ** 64 - 16, rkey=1, **more)
    assert link.peer.expect(rdmap.WRITE).to == 2 ** 64 - 16
    if more:
        link.peer.expect(rdmap.IMM)
    link.wc()
    wr = link.post(op, sge=out.sge(0, 16), raddr=2 ** 64 - 15, rkey=1, **more)
    link.wc(wr=wr, status=LOC_QP_OP)
    assert link.peer.message().opcode == rdmap.TERMINATE


def answered(link, message):
    """What tells a request from the others, after answering it."""
    if message.opcode == rdmap.SEND:
        return message.opcode, message.payload
    if message.opcode == rdmap.READ_REQ:
        request = rdmap.ReadRequest(message.payload)
        link.peer.read_response(request, bytes(8))
        return message.opcode, request.src_to
    if message.opcode == rdmap.ATOMIC_REQ:
        request = rdmap.AtomicRequest(message.payload)
        link.peer.atomic_response(request.req_id, 1)
        return message.opcode, request.to
    return message.opcode, message.to


@test("DDP-022", "DDP-021", "DDP-033", "RDMAP-033", "RDMAP-038", "RDMAP-051", "RDMAP-071",
      "DDP-023", "EXT-024", "RDMAP-036", each=("free", "blocked"))
def mixed_requests_leave_in_order(f, way):
    """All are posted before any is looked at. The peer's audit watches the four
    sequences of MSNs."""
    link = f.running(rev=1, ord=16, wire=f.connect(rcvbuf=4096) if way == "blocked" else None)
    out = f.mr(4096)
    out.poke(pattern(4096))
    sink = f.mr(4096, access="l")
    rng = random.Random(33)
    kinds = dict(send=rdmap.SEND, write=rdmap.WRITE, read=rdmap.READ_REQ, fadd=rdmap.ATOMIC_REQ)
    order = [rng.choice(list(kinds)) for _ in range(60)]
    pending = []
    if way == "blocked":
        # nothing behind it leaves before the last is posted
        plug = f.mr(2 << 20)
        pending.append(link.post("send", sge=plug.sge()))
    for n, op in enumerate(order):
        sge = (out if op in ("send", "write") else sink).sge(n * 8, 8)
        pending.append(link.post(op, sge=sge, raddr=n * 8, rkey=1, add=1))
    if way == "blocked":
        assert len(link.peer.expect(rdmap.SEND, 20).payload) == plug.len
    seen = [answered(link, link.peer.message()) for _ in order]
    due = [(kinds[op], pattern(4096)[n * 8:n * 8 + 8] if op == "send" else n * 8)
           for n, op in enumerate(order)]
    assert seen == due, "%s, due %s" % (seen, due)
    for wr in pending:
        found = link.wc()
        assert found["wr"] == wr, "%s, due %d" % (found, wr)
    assert link.peer.audit.msn[0] > 1 and link.peer.audit.msn[1] > 1


@test("RDMAP-034", "DDP-024", "RDMAP-040")
def empty_and_gathered_messages(f):
    link = f.running(rev=1)
    out = f.mr(4096)
    out.poke(pattern(4096))
    link.post("write", sge=None, raddr=1, rkey=2)
    assert link.peer.expect(rdmap.WRITE).payload == b""
    sges = ",".join(out.sge(n * 100, 7 + n) for n in range(4))
    link.post("write", sge=sges, raddr=1, rkey=2)
    due = b"".join(pattern(4096)[n * 100:n * 100 + 7 + n] for n in range(4))
    assert link.peer.expect(rdmap.WRITE).payload == due
    link.post("read", sge=None, raddr=1, rkey=2)
    request = asked(link, 0)
    link.peer.read_response(request, b"")
    link.wc(op=WC_READ)


@test("DDP-026")
def a_message_of_4_gib_is_refused(f):
    link = f.running(rev=1)
    region = f.mr(4096)
    sge = ",".join("@%d:0xffffffff:%d" % (region.addr, region.lkey) for _ in range(2))
    try:
        wr = link.post("send", sge=sge)
    except AgentError:
        return
    link.wc(wr=wr, status=LOC_LEN)    # not LOC_PROT, which the region's bounds would give


# --- reads -------------------------------------------------------------------------

@test("RDMAP-046", "RDMAP-078", "RDMAP-068", "VERBS-029", "RDMAP-076", "VERBS-028", "VERBS-017",
      "RDMAP-014", "DDP-009")
def a_read_completes_with_its_response(f):
    link, sink, wrs = reading(f, 3000)
    request = asked(link, 3000)
    time.sleep(0.2)
    link.no_wc()
    data = pattern(3000)
    link.peer.tagged(rdmap.READ_RESP, request.sink_stag, request.sink_to, data[:2000], cut=1000,
                     last=False)
    time.sleep(0.1)
    link.no_wc()
    link.peer.tagged(rdmap.READ_RESP, request.sink_stag, request.sink_to + 2000, data[2000:])
    found = link.wc(wr=wrs[0])
    assert found["op"] == WC_READ and found["len"] == 3000, found
    assert sink.peek() == data


@test("VERBS-028", "RDMAP-046")
def a_read_into_several_elements(f):
    link = f.running(rev=1)
    sink = f.mr(4096, access="l")
    wr = link.post("read", sge=",".join(sink.sge(n * 1000, 500) for n in range(4)), raddr=0,
                   rkey=1)
    data, at = pattern(2000), 0
    while at < 2000:
        request = asked(link)
        link.peer.read_response(request, data[at:at + request.size], cut=333)
        at += request.size
    link.wc(wr=wr)
    for n in range(4):
        assert sink.peek(n * 1000, 500) == data[n * 500:n * 500 + 500]


@test("RDMAP-082", "CM-072", "CM-056", "EXT-024", "VERBS-010", "RDMAP-081", "VERBS-019",
      each=(1, 2, 4))
def no_more_reads_than_agreed_on(f, limit):
    link = f.running(rev=1, ord=limit)
    assert link.state()["ord"] == limit
    sink = f.mr(8 * 20, access="l")
    wrs = [link.post("read" if n % 3 else "fadd", sge=sink.sge(n * 8, 8), raddr=n * 8, rkey=1,
                     add=n) for n in range(12)]
    outstanding, answered = [], 0
    while answered < 12:
        while len(outstanding) < min(limit, 12 - answered):
            outstanding.append(link.peer.message())
        link.peer.silent(0.05)
        oldest = outstanding.pop(0)
        if oldest.opcode == rdmap.READ_REQ:
            link.peer.read_response(rdmap.ReadRequest(oldest.payload), bytes(8))
        else:
            link.peer.atomic_response(rdmap.AtomicRequest(oldest.payload).req_id, 5)
        link.wc(wr=wrs[answered])
        answered += 1


@test("RDMAP-082", each=("read", "fadd"))
def a_depth_of_0_is_not_waited_for(f, op):
    link = f.running(rev=1, ord=0)
    sink = f.mr(8, access="l")
    wr = link.post(op, sge=sink.sge(), raddr=0, rkey=1, add=1)
    link.peer.expect_terminate(0, 0, 0, b"", "")
    link.peer.close()
    link.wc(wr=wr, status=LOC_QP_OP)
    link.dead(QP_FATAL)


@test("RDMAP-073", "VERBS-016", "VERBS-017")
def completions_keep_posting_order(f):
    link = f.running(rev=1)
    out = f.mr(64)
    first = link.post("read", sge=out.sge(0, 8), raddr=0, rkey=1)
    rest = [link.post("send", sge=out.sge(0, 8)), link.post("write", sge=out.sge(0, 8), rkey=1)]
    request = asked(link)
    link.peer.expect(rdmap.SEND)
    link.peer.expect(rdmap.WRITE)
    time.sleep(0.1)
    link.no_wc()
    link.peer.read_response(request, bytes(8))
    for wr in [first] + rest:
        assert link.wc()["wr"] == wr


@test("VERBS-016")
def unsignaled_requests_complete_silently(f):
    link = f.running(rev=1, recv=0)
    out = f.mr(64)
    signaled = []
    rng = random.Random(16)
    for n in range(60):
        flag = "s" if rng.random() < 0.3 or n == 59 else "n"
        wr = link.post("send", sge=out.sge(0, 8), flags=flag)
        if flag == "s":
            signaled.append(wr)
        link.peer.expect(rdmap.SEND)
    for wr in signaled:
        assert link.wc()["wr"] == wr
    link.no_wc()


@test("VERBS-018", "RDMAP-070", "EXT-049", each=("send", "write", "writeimm"))
def a_fence_waits_for_the_response(f, op):
    link = f.running(rev=1)
    out = f.mr(64)
    link.post("read", sge=out.sge(0, 8), raddr=0, rkey=1)
    link.post(op, sge=out.sge(8, 8), flags="sf", raddr=0, rkey=1)
    request = asked(link)
    link.peer.silent(0.3)
    link.peer.read_response(request, bytes(8))
    link.peer.expect(rdmap.SEND if op == "send" else rdmap.WRITE)


@test("VERBS-019", "RDMAP-082")
def a_blocked_read_holds_back_what_follows_but_not_our_responses(f):
    link = f.running(rev=1, ord=1, ird=16)
    out = f.mr(64)
    for _ in range(2):
        link.post("read", sge=out.sge(0, 8), raddr=0, rkey=1)
    link.post("send", sge=out.sge(0, 8))
    first = asked(link)
    link.peer.silent(0.2)
    link.peer.read(out.rkey, out.iova, 16)
    assert len(link.peer.expect(rdmap.READ_RESP).payload) == 16
    # nor many, after some of which the send queue has its turn
    link.peer.raw(b"".join(link.peer.read(out.rkey, out.iova, 16, hold=True) for _ in range(16)))
    for _ in range(16):
        assert len(link.peer.expect(rdmap.READ_RESP).payload) == 16
    link.peer.read_response(first, bytes(8))
    second = asked(link)
    link.peer.expect(rdmap.SEND)
    link.peer.read_response(second, bytes(8))


@test("RDMAP-072", "DDP-038", "VERBS-017")
def a_send_waits_for_tcp(f):
    """A peer that takes nothing: no completion before TCP has all bytes, more than it buffers."""
    wire = f.connect(rcvbuf=4096)
    link = f.running(rev=1, wire=wire)
    size = 8 << 20
    out = f.mr(size)
    wr = link.post("send", sge=out.sge())
    time.sleep(0.5)
    link.no_wc()
    assert len(link.peer.expect(rdmap.SEND, 60).payload) == size
    link.wc(wr=wr, timeout=20)


@test("VERBS-017", "MPA-042")
def the_buffer_is_free_after_the_completion(f):
    """Overwritten at once; the peer must get what was sent, with a good CRC."""
    wire = f.connect(rcvbuf=65536)
    link = f.running(rev=1, wire=wire)
    out = f.mr(60000)
    for n in range(10):
        data = pattern(60000, n)
        out.poke(data)
        wr = link.post("send", sge=out.sge())
        if n % 2:
            link.wc(wr=wr, timeout=20)
            out.fill(0xFF)
        assert link.peer.expect(rdmap.SEND, 20).payload == data
        if not n % 2:
            link.wc(wr=wr)


# --- responses that are wrong -------------------------------------------------------------

WRONG = {"stag": (1, 1, 0), "to": (1, 1, 1), "to in the middle": (1, 1, 1),
         "too long": (1, 1, 1), "too short": (1, 1, 1), "empty": (1, 1, 1),
         "unsolicited": (0, 2, 6), "twice": (0, 2, 6), "atomic response": (0, 2, 6)}


@test("RDMAP-047", "RDMAP-048", "VERBS-029", "RDMAP-092", "RDMAP-086", each=tuple(WRONG))
def a_read_response_that_does_not_fit(f, what):
    victim = f.mr(256, access="lwr")
    link, sink, wrs = reading(f, 64, count=0 if what == "unsolicited" else 1)
    if what == "unsolicited":
        link.peer.tagged(rdmap.READ_RESP, victim.rkey, victim.iova, bytes([9]) * 64)
    else:
        request = asked(link, 64)
        stag, to = request.sink_stag, request.sink_to
        if what == "stag":
            link.peer.tagged(rdmap.READ_RESP, victim.rkey, victim.iova, bytes([9]) * 64)
        elif what == "to":
            link.peer.tagged(rdmap.READ_RESP, stag, to + 8, bytes([9]) * 64)
        elif what == "to in the middle":
            link.peer.tagged(rdmap.READ_RESP, stag, to, bytes([7]) * 32, last=False)
            link.peer.tagged(rdmap.READ_RESP, stag, to + 40, bytes([9]) * 32)
        elif what == "too long":
            link.peer.tagged(rdmap.READ_RESP, stag, to, bytes([9]) * 65)
        elif what == "too short":
            link.peer.tagged(rdmap.READ_RESP, stag, to, bytes([7]) * 63)
        elif what == "empty":
            link.peer.tagged(rdmap.READ_RESP, stag, to, b"")
        elif what == "atomic response":
            link.peer.atomic_response(request.segment.msn, 9)
        else:
            link.peer.read_response(request, bytes([7]) * 64)
            link.wc(wr=wrs[0])
            link.peer.tagged(rdmap.READ_RESP, stag, to, bytes([9]) * 64)
    link.peer.expect_terminate(*WRONG[what], ulpdu=link.peer.last_ulpdu)
    link.peer.close()
    if wrs and what != "twice":
        link.wc(wr=wrs[0], status=BAD_RESP)
    link.over_by(*WRONG[what])
    assert victim.peek() == bytes(256)
    assert 9 not in sink.peek()


@test("RDMAP-048", "RDMAP-078")
def responses_out_of_order(f):
    link, sink, wrs = reading(f, 64, count=2)
    asked(link)
    second = asked(link)
    link.peer.read_response(second, bytes([9]) * 64)
    link.peer.expect_terminate(1, 1, 1, link.peer.last_ulpdu)
    link.peer.close()
    link.wc(wr=wrs[0], status=BAD_RESP)
    link.wc(wr=wrs[1], status=FLUSH)
    link.dead(QP_ACCESS_ERR)
    assert sink.peek() == bytes(128)


@test("VERBS-005", "VERBS-029", "RDMAP-047")
def a_deregistered_sink(f):
    link, sink, wrs = reading(f, 64)
    request = asked(link)
    sink.dereg(keep=True)
    link.peer.read_response(request, bytes([9]) * 64)
    link.peer.expect_terminate(0, 0, 0, b"", "")
    link.peer.close()
    link.wc(wr=wrs[0], status=LOC_PROT)
    link.dead(QP_FATAL)
    assert sink.peek() == bytes(64)


# --- responses to requests that the peer cannot know -------------------------------------

def accepted(link, wr):
    """Does TCP still take that Send?"""
    try:
        link.wc(wr=wr, timeout=0.5)
        return True
    except NotSeen:
        return False


def staged(f, op, count):
    """Requests behind a Send that TCP does not take now: (link, that Send, sink region, wr ids)."""
    link = f.running(rev=1, ird=16, ord=16, wire=f.connect(rcvbuf=4096))
    out = f.mr(200)
    sink = f.mr(8 * count, access="l")
    while True:
        blocked = link.post("send", sge=out.sge())
        if accepted(link, blocked):
            continue
        link.start_responder()     # whatever we send says how much we take
        if not accepted(link, blocked):
            break
    wrs = [link.post(op, sge=sink.sge(8 * n, 8), raddr=0x1000, rkey=0x4242)
           for n in range(count)]
    link.peer.read(out.rkey, out.iova, 8)   # only this makes weft look at its queue now
    return link, blocked, sink, wrs


def unsent(f, op, count):
    """TCP is full, and requests are staged behind what it does not take:
    (link, the Send that waits, sink region, wr ids)."""
    for _ in range(5):
        link, blocked, sink, wrs = staged(f, op, count)
        if not accepted(link, blocked):
            link.no_wc()
            return link, blocked, sink, wrs
        # A probe of the window came late and found room: another connection.
    raise AssertionError("TCP takes all")


@test("RDMAP-047", "RDMAP-048", "VERBS-029", "EXT-031", each=("read", "fadd"))
def responses_to_requests_that_were_not_sent(f, op):
    """Sink and number are easily guessed. The first one is refused, and that is all."""
    link, blocked, sink, wrs = unsent(f, op, 8)
    for n in range(8):
        if op == "read":
            link.peer.tagged(rdmap.READ_RESP, sink.lkey, sink.addr + 8 * n, bytes([9]) * 8)
        else:
            link.peer.atomic_response(n + 1, 0x0909090909090909)
        if not n:
            first = link.peer.last_ulpdu
    link.peer.expect_terminate(0, 2, 6, ulpdu=first, timeout=20)
    link.peer.close()
    link.wc(wr=blocked)
    link.wc(wr=wrs[0], status=BAD_RESP)
    for wr in wrs[1:]:
        link.wc(wr=wr, status=FLUSH)
    link.over_by(0, 2, 6)
    link.no_wc()
    assert sink.peek() == bytes(8 * 8)


@test("VERBS-023", "RDMAP-058")
def a_terminate_that_names_what_was_not_sent(f):
    link, blocked, _, wrs = unsent(f, "read", 4)
    header = rdmap.read_request(0, 0, 8, 0x4242, 0x1000)
    link.peer.terminate(0, 1, 0, seglen=46, rdmap_header=header,
                        ddp_header=ddp.untagged(rdmap.READ_REQ, 1, 1)[:ddp.UNTAGGED_LEN])
    link.wc(wr=blocked, status=FLUSH)
    for wr in wrs:
        link.wc(wr=wr, status=FLUSH)
    link.dead(QP_FATAL)
    link.no_wc()


# --- Terminates that name a request ---------------------------------------------------------

VERDICTS = (((0, 1, 0), REM_ACCESS), ((0, 1, 1), REM_ACCESS), ((0, 1, 2), REM_ACCESS),
            ((0, 1, 3), REM_ACCESS), ((0, 1, 4), REM_ACCESS), ((0, 2, 6), REM_INV),
            ((0, 2, 7), REM_OP), ((0, 0, 0), FLUSH))


@test("VERBS-023", "RDMAP-058", "RDMAP-087", "RDMAP-090", each=VERDICTS)
def a_terminate_names_the_read_that_failed(f, case):
    what, status = case
    link = f.running(rev=1)
    sink = f.mr(256, access="l")
    good = link.post("read", sge=sink.sge(0, 8), raddr=0, rkey=1)
    bad = link.post("read", sge=sink.sge(8, 8), raddr=0, rkey=2)
    after = link.post("send", sge=sink.sge(0, 8))
    first = asked(link)
    second = asked(link)
    link.peer.expect(rdmap.SEND)
    link.peer.read_response(first, bytes(8))
    header = second.segment.header
    if what[1] == 0:
        link.peer.terminate(*what)
    else:
        link.peer.terminate(*what, seglen=46, ddp_header=header,
                            rdmap_header=second.segment.payload if what[1] == 1 else b"")
    link.peer.fin()
    link.peer.expect_end(reset=False)
    link.peer.close()
    link.wc(wr=good)
    link.wc(wr=bad, status=status)      # without headers it names none
    link.wc(wr=after)
    link.dead(QP_FATAL)


@test("VERBS-023", "RDMAP-058", each=((1, 1, 0), (1, 1, 1), (1, 1, 2)))
def a_terminate_names_a_write(f, what):
    """The Write is long complete; the error is an event."""
    link = f.running(rev=1)
    out = f.mr(64)
    wr = link.post("write", sge=out.sge(0, 16), raddr=5, rkey=6)
    message = link.peer.expect(rdmap.WRITE)
    link.wc(wr=wr)
    link.peer.terminate(*what, seglen=30, ddp_header=message.segments[0].header)
    link.peer.fin()
    link.peer.expect_end(reset=False)
    link.peer.close()
    link.dead(QP_FATAL)


@test("VERBS-023", "EXT-001", "RDMAP-103")
def a_peer_without_atomics(f):
    link = f.running(rev=1)
    sink = f.mr(8)
    wr = link.post("fadd", sge=sink.sge(), raddr=0, rkey=2, add=0)
    message = link.peer.expect(rdmap.ATOMIC_REQ)
    link.peer.terminate(0, 2, 6, seglen=70, ddp_header=message.segments[0].header)
    link.peer.fin()
    link.peer.close()
    link.wc(wr=wr, status=REM_INV)
    link.dead(QP_FATAL)


@test("RDMAP-086", "VERBS-021", each=("fin", "rst"))
def the_peer_leaves_with_requests_outstanding(f, how):
    link, sink, wrs = reading(f, 8, count=3)
    for _ in range(3):
        asked(link)
    getattr(link.peer, how)()
    time.sleep(0.05)
    link.peer.close()
    for wr in wrs:
        link.wc(wr=wr, status=FLUSH)
    link.dead()
    assert sink.peek() == bytes(24)


@test("DDP-045")
def requests_go_out_on_a_half_closed_stream(f):
    """Whatever was handed over before the peer's FIN still leaves."""
    link = f.running(rev=1)
    out = f.mr(4096)
    wr = link.post("send", sge=out.sge())
    link.peer.fin()
    assert len(link.peer.expect(rdmap.SEND).payload) == 4096
    link.wc(wr=wr)
    link.peer.expect_end()


# --- a ready-to-receive Read, which is no request of the program ----------------------------

def behind_the_rtr(f):
    """A Read waits behind one that is not answered: (link, that Read Request, wr id)."""
    link = f.dialed()
    sink = f.mr(8, access="l")
    f.answer(link, mpa.Enhanced(16, 4, 1, 0, 0, 1))
    link.event("ESTABLISHED")
    rtr = asked(link, 0)
    wr = link.post("read", sge=sink.sge(), raddr=0, rkey=2)
    asked(link, 8)
    return link, rtr, wr


@test("VERBS-023", "RDMAP-087")
def a_terminate_that_names_the_rtr_names_no_request(f):
    link, rtr, wr = behind_the_rtr(f)
    link.peer.terminate(0, 1, 0, seglen=46, ddp_header=rtr.segment.header,
                        rdmap_header=rtr.segment.payload)
    link.peer.fin()
    link.peer.expect_end(reset=False)
    link.peer.close()
    link.wc(wr=wr, status=FLUSH)
    link.dead(QP_FATAL)


@test("RDMAP-048", "RDMAP-087")
def a_wrong_answer_to_the_rtr_names_no_request(f):
    link, rtr, wr = behind_the_rtr(f)
    link.peer.read_response(rtr, b"x")
    link.peer.expect_terminate(1, 1, 1, link.peer.last_ulpdu)
    link.peer.close()
    link.wc(wr=wr, status=FLUSH)
    link.over_by(1, 1, 1)


@test("CM-039", "CM-068")
def the_rtr_is_the_first_of_many(f):
    link = f.dialed()
    out = f.mr(64)
    f.answer(link, mpa.Enhanced(16, 4, 1, 1, 1, 1))
    link.event("ESTABLISHED")
    for _ in range(5):
        link.post("send", sge=out.sge(0, 8))
    assert link.peer.message().opcode == rdmap.WRITE
    for _ in range(5):
        link.peer.expect(rdmap.SEND)

