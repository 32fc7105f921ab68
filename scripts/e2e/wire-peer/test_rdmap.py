# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""RDMAP towards weft as a target: reads, invalidation, Terminates. RFC 5040."""

import random
import time

from harness import (FLUSH, LOC_PROT, QP_ACCESS_ERR, QP_FATAL, QP_REQ_ERR, REM_ACCESS, WITH_INV,
                     AgentError, pattern, test)
from wirepeer import ddp, peer, rdmap

MAX64 = 2 ** 64


def take_read(link, size, data, sink_stag=0x51A6, sink_to=0x1000):
    """The response to a read, addressed as it must be."""
    answer = link.peer.expect(rdmap.READ_RESP, 20)
    assert (answer.stag, answer.to) == (sink_stag, sink_to & (MAX64 - 1)), answer
    assert len(answer.payload) == size, answer
    assert answer.payload == data
    return answer


# --- reads -------------------------------------------------------------------------

@test("RDMAP-014", "RDMAP-015", "RDMAP-016", "RDMAP-035", "RDMAP-037", "RDMAP-039", "RDMAP-043",
      "DDP-029", "RDMAP-017")
def reads_of_all_sizes_and_offsets(f):
    source = f.mr(70000)
    data = pattern(70000)
    source.poke(data)
    link = f.running(rev=1)
    rng = random.Random(15)
    for size in (0, 1, 2, 3, 4, 5, 1433, 1434, 1435, 4096, 65536):
        off = rng.randrange(0, 70001 - size)
        stag, to = rng.getrandbits(32), rng.getrandbits(64)
        link.peer.read(source.rkey, source.iova + off, size, stag, to)
        answer = take_read(link, size, data[off:off + size], stag, to)
        assert sum(s.last for s in answer.segments) == 1
    link.no_wc()


@test("RDMAP-015", "DDP-029")
def the_sink_offset_of_a_response_may_wrap(f):
    """SinkTO belongs to the requester and is only echoed."""
    source = f.mr(4096)
    source.poke(pattern(4096))
    link = f.running(rev=1)
    link.peer.read(source.rkey, source.iova, 4096, 0xFFFFFFFF, MAX64 - 1000)
    take_read(link, 4096, pattern(4096), 0xFFFFFFFF, MAX64 - 1000)


@test("RDMAP-040", "RDMAP-041", "CM-072", "DDP-030")
def a_read_of_nothing_is_not_checked(f):
    link = f.running(rev=1)
    for stag, to in ((0, 0), (0xFFFFFFFF, MAX64 - 1), (0xDEAD, 7)):
        link.peer.read(stag, to, 0, 0xABCD, 77)
        take_read(link, 0, b"", 0xABCD, 77)


@test("RDMAP-039", "RDMAP-044", "RDMAP-045", "RDMAP-077", "EXT-026")
def pipelined_reads_are_answered_in_order(f):
    source = f.mr(20000)
    data = pattern(20000)
    source.poke(data)
    link = f.running(rev=1, ird=16)
    rng = random.Random(39)
    for _ in range(6):
        sizes = [rng.choice((0, 1, 100, 3000, 9000)) for _ in range(16)]
        link.peer.raw(b"".join(link.peer.read(source.rkey, source.iova + n, size, n + 1, n,
                                              hold=True) for n, size in enumerate(sizes)))
        for n, size in enumerate(sizes):
            take_read(link, size, data[n:n + size], n + 1, n)


@test("RDMAP-083", "RDMAP-044", "CM-072")
def more_reads_than_were_agreed_on(f):
    source = f.mr(1 << 20)
    link = f.running(rev=1, ird=2)
    state = link.state()
    assert state["ird"] == 2, state
    link.peer.sock.setsockopt(1, 8, 4096)
    link.peer.raw(b"".join(link.peer.read(source.rkey, source.iova, 1 << 20, n, 0, hold=True)
                           for n in range(4)))
    term = link.peer.expect_terminate(timeout=20, closes=False)
    assert term.what == (1, 2, 2), term
    link.peer.close()
    link.dead(QP_REQ_ERR)


READ_FAULTS = {
    "unknown stag": ((0, 1, 0), "RDMAP-097"),
    "wrong key": ((0, 1, 0), "RDMAP-097"),
    "other domain": ((0, 1, 3), "RDMAP-098"),
    "below the base": ((0, 1, 1), "RDMAP-099"),
    "beyond the end": ((0, 1, 1), "RDMAP-100"),
    "far beyond": ((0, 1, 1), "RDMAP-100"),
    "wrap": ((0, 1, 4), "RDMAP-101"),
    "no read right": ((0, 1, 2), "RDMAP-102"),
    "4 GiB": ((0, 1, 1), "RDMAP-100"),
}


@test("RDMAP-024", "RDMAP-042", "RDMAP-093", "RDMAP-097", "RDMAP-098", "RDMAP-099", "RDMAP-100",
      "RDMAP-101", "RDMAP-102", "RDMAP-020", "RDMAP-021", "RDMAP-026", "RDMAP-027", "RDMAP-028",
      "RDMAP-018", each=tuple(READ_FAULTS))
def a_read_that_may_not_be(f, what):
    source = f.mr(100, domain=f.domain() if what == "other domain" else "pd",
                  access="lw" if what == "no read right" else "lr")
    stag, to, size = source.rkey, source.iova, 100
    if what == "unknown stag":
        stag = 0x7E57AB00
    elif what == "wrong key":
        stag ^= 0x80
    elif what == "below the base":
        to -= 1
    elif what == "beyond the end":
        size = 101
    elif what == "far beyond":
        to += 1 << 40
    elif what == "wrap":
        to = MAX64 - 50
    elif what == "4 GiB":
        size = 0xFFFFFFFF
    link = f.running(rev=1)
    link.peer.read(stag, to, size)
    link.refused(*READ_FAULTS[what][0], bits="MDR")


@test("RDMAP-094", "RDMAP-061", "RDMAP-045", "RDMAP-060")
def a_bad_read_behind_good_ones(f):
    source = f.mr(3000)
    data = pattern(3000)
    source.poke(data)
    link = f.running(rev=1)
    reads = b"".join(link.peer.read(source.rkey, source.iova, 3000, n, 0, hold=True)
                     for n in (1, 2))
    reads += link.peer.read(0x12345600, 0, 8, 3, 0, hold=True)
    bad = link.peer.last_ulpdu
    reads += link.peer.read(source.rkey, source.iova, 3000, 4, 0, hold=True)
    link.peer.raw(reads)
    take_read(link, 3000, data, 1, 0)
    take_read(link, 3000, data, 2, 0)
    link.refused(0, 1, 0, bits="MDR", ulpdu=bad)


@test("RDMAP-026", "VERBS-005", "RDMAP-021")
def a_source_deregistered_while_it_is_read(f):
    """What was sent and what the returned header says is left make the whole."""
    size = 8 << 20
    source = f.mr(size)
    link = f.running(rev=1)
    link.peer.sock.setsockopt(1, 8, 8192)
    link.peer.read(source.rkey, source.iova, size, 0x11, 0x5000)
    ulpdu = link.peer.last_ulpdu
    got = len(link.peer.segment().payload)
    time.sleep(0.3)
    source.dereg(keep=True)
    while True:
        s = link.peer.segment(20)
        if s.opcode != rdmap.READ_RESP:
            break
        got += len(s.payload)
    assert s.opcode == rdmap.TERMINATE, s
    term = rdmap.Terminate.parse(s.payload)
    assert term.what == (0, 1, 0) and term.ddp_header == ulpdu[:18], term
    left = rdmap.ReadRequest(term.rdmap_header)
    assert left.size == size - got and left.sink_to == 0x5000 + got, (left.__dict__, got)
    assert left.src_to == source.iova + got and left.src_stag == source.rkey
    link.peer.expect_end()
    link.peer.close()
    link.dead(QP_ACCESS_ERR)


@test("RDMAP-069", "RDMAP-079", "EXT-040")
def a_read_sees_the_write_before_it(f):
    target = f.mr(4096)
    link = f.running(rev=1, ird=4)
    for n in range(30):
        link.peer.raw(link.peer.write(target.rkey, target.iova, pattern(4096, n), hold=True) +
                      link.peer.read(target.rkey, target.iova, 4096, n, 0, hold=True))
        take_read(link, 4096, pattern(4096, n), n, 0)


@test("RDMAP-075", "RDMAP-070", "VERBS-020", "RDMAP-064", "RDMAP-017")
def a_send_overtakes_a_large_read(f):
    source = f.mr(4 << 20)
    link = f.running(rev=1)
    link.peer.sock.setsockopt(1, 8, 8192)
    link.peer.read(source.rkey, source.iova, 4 << 20)
    time.sleep(0.1)
    link.peer.send(b"not held up")
    link.received(b"not held up")
    take_read(link, 4 << 20, bytes(4 << 20))


@test("VERBS-020", "RDMAP-043")
def responses_and_sends_share_the_wire(f):
    source = f.mr(300000)
    source.poke(pattern(300000))
    link = f.running(rev=1, ird=8)
    sends = [link.post("send", sge=source.sge(0, 50000)) for _ in range(8)]
    link.peer.raw(b"".join(link.peer.read(source.rkey, source.iova, 40000, n, 0, hold=True)
                           for n in range(8)))
    seen = {rdmap.SEND: 0, rdmap.READ_RESP: 0}
    for _ in range(16):
        message = link.peer.message(20)
        seen[message.opcode] += 1
        assert message.payload == pattern(300000)[:len(message.payload)]
    assert seen == {rdmap.SEND: 8, rdmap.READ_RESP: 8}, seen
    for wr in sends:
        link.wc(wr=wr)


@test("VERBS-020", "RDMAP-064")
def a_send_is_not_kept_waiting_by_responses(f):
    """It has its turn after some of them, though the others were asked for before."""
    source = f.mr(100000)
    link = f.running(rev=1, ird=16)
    link.peer.sock.setsockopt(1, 8, 4096)
    link.peer.raw(b"".join(link.peer.read(source.rkey, source.iova, source.len, n, 0, hold=True)
                           for n in range(16)))
    time.sleep(0.2)
    wr = link.post("send", sge=source.sge(0, 10))
    seen = [link.peer.message(20).opcode for _ in range(17)]
    assert seen.count(rdmap.READ_RESP) == 16 and seen.index(rdmap.SEND) <= 10, seen
    link.wc(wr=wr)


# --- Send with Invalidate --------------------------------------------------------------

def bound(f, link, region, access="wr"):
    """A type 2 window bound to all of @region; its key."""
    name, rkey = f.window(2)
    rkey = (rkey & 0xFFFFFF00) | (rkey + 1 & 0xFF)
    wr = link.post("bind", mw=name, mr=region.name, rkey=rkey, access=access)
    link.wc(wr=wr)
    return rkey


@test("RDMAP-053", "RDMAP-054", "RDMAP-055", "RDMAP-096", "DDP-041",
      each=(rdmap.SEND_INV, rdmap.SEND_SE_INV))
def an_invalidation_of_a_window(f, opcode):
    target = f.mr(64, access="lwrb")
    link = f.running(rev=1)
    rkey = bound(f, link, target)
    link.peer.write(rkey, target.iova, b"written!")
    link.peer.send(b"inval", opcode=opcode, inv=rkey)
    found = link.received(b"inval")
    assert found["flags"] & WITH_INV and found["inv"] == rkey, found
    link.peer.write(rkey, target.iova, b"too late")
    link.refused(1, 1, 0)
    assert target.peek(0, 8) == b"written!"


@test("RDMAP-054", "RDMAP-096", "VERBS-006", "RDMAP-024",
      each=("plain region", "unknown", "wrong key", "other domain", "zero"))
def what_cannot_be_invalidated(f, what):
    target = f.mr(64, domain=f.domain() if what == "other domain" else "pd")
    stag = {"plain region": target.rkey, "unknown": 0x55AA5500, "wrong key": target.rkey ^ 9,
            "other domain": target.rkey, "zero": 0}[what]
    link = f.running(rev=1, recv=1, size=64)
    link.peer.send(b"inval", opcode=rdmap.SEND_INV, inv=stag)
    link.refused(0, 1, 9, oldest=REM_ACCESS)
    if what == "plain region":
        again = f.running(rev=1)
        again.peer.write(target.rkey, target.iova, b"usable")
        again.peer.send(b"")
        again.received(b"")
        assert target.peek(0, 6) == b"usable"


@test("VERBS-002", "RDMAP-054", "DDP-065")
def a_window_of_another_stream(f):
    target = f.mr(64, access="lwrb")
    owner, other = f.running(rev=1), f.running(rev=1)
    rkey = bound(f, owner, target)
    target.fill(0)
    other.peer.write(rkey, target.iova, b"stolen")
    other.refused(1, 1, 2)
    assert target.peek(0, 6) == bytes(6)
    third = f.running(rev=1)
    third.peer.send(b"", opcode=rdmap.SEND_INV, inv=rkey)
    third.refused(0, 1, 9, oldest=REM_ACCESS)
    owner.peer.write(rkey, target.iova, b"mine")
    owner.peer.send(b"")
    owner.received(b"")
    assert target.peek(0, 4) == b"mine"


# --- Terminates from us ---------------------------------------------------------------------

@test("RDMAP-057", "RDMAP-058", "RDMAP-062", "RDMAP-019", "RDMAP-087", "RDMAP-090", "RDMAP-018",
      "RDMAP-022", "RDMAP-023",
      each=((0, 0, 0), (0, 1, 0), (0, 2, 6), (1, 1, 3), (1, 2, 2), (2, 0, 2), (2, 0, 5),
            (3, 15, 255)))
def a_terminate_ends_the_stream(f, what):
    link = f.running(rev=1, recv=4)
    link.peer.terminate(*what, reserved=0x1FFF)
    link.peer.fin()
    link.peer.expect_end(reset=False)
    link.peer.close()
    link.dead(QP_FATAL)


@test("RDMAP-057", "RDMAP-058")
def a_terminate_needs_no_receive(f):
    link = f.running(rev=1, recv=0)
    link.peer.terminate(1, 2, 2)
    link.peer.fin()
    link.peer.expect_end(reset=False)
    link.peer.close()
    link.dead(QP_FATAL)


@test("RDMAP-059", "RDMAP-056", each=("msn 2", "mo 4", "qn 1", "truncated", "empty", "two segments",
                                      "huge", "headers cut short"))
def an_invalid_terminate(f, what):
    link = f.running(rev=1)
    term = rdmap.Terminate(1, 2, 2).build()
    if what == "msn 2":
        link.peer.untagged(7, term, msn=2)
    elif what == "mo 4":
        link.peer.untagged(7, term, mo=4)
    elif what == "qn 1":
        link.peer.untagged(7, term, qn=1)
    elif what == "truncated":
        link.peer.untagged(7, term[:3])
    elif what == "empty":
        link.peer.untagged(7, b"")
    elif what == "two segments":
        link.peer.ulpdu(ddp.untagged(7, 2, 1, 0, term[:2], last=False))
        link.peer.ulpdu(ddp.untagged(7, 2, 1, 2, term[2:]))
    elif what == "huge":
        link.peer.untagged(7, term + bytes(900))
    else:
        link.peer.untagged(7, rdmap.Terminate(0, 1, 0, bits=0xE000).build() + b"\0\x2e\x41")
    link.peer.fin()
    try:
        message = link.peer.message(5)
        raise AssertionError("answered: %r %r" % (message,
                                                  rdmap.Terminate.parse(message.payload)))
    except peer.Closed as end:
        assert not end.reset
    link.peer.close()
    link.dead(QP_FATAL)


@test("RDMAP-062", "RDMAP-087", "RDMAP-061", "VERBS-021")
def queued_sends_flush_when_a_terminate_comes(f):
    out = f.mr(1 << 20)
    link = f.running(rev=1)
    link.peer.sock.setsockopt(1, 8, 4096)
    wrs = [link.post("send", sge=out.sge()) for _ in range(8)]
    link.peer.terminate(0, 2, 7)
    link.peer.fin()
    time.sleep(0.1)
    link.peer.close()
    seen = [link.wc(wr=wr, status=None)["status"] for wr in wrs]
    assert seen[-1] == FLUSH and set(seen) <= {0, FLUSH}, seen
    assert seen == sorted(seen), "out of order: %s" % seen
    link.dead(QP_FATAL)


@test("VERBS-021", "RDMAP-087", "RDMAP-060", "RDMAP-090")
def everything_posted_completes_after_a_fault(f):
    link = f.running(rev=1, recv=100, size=16)
    link.peer.write(1, 2, b"bad")
    link.peer.expect_terminate(1, 1, 0)
    link.peer.close()
    link.dead(QP_ACCESS_ERR)
    late = [link.post("recv", sge=None), link.post("send", sge=None)]
    for wr in late:
        link.wc(wr=wr, status=FLUSH)


# --- local errors ---------------------------------------------------------------------------

@test("RDMAP-091", "RDMAP-023", "RDMAP-027", "EXT-050",
      each=("send", "write", "read", "fadd"))
def a_work_request_with_a_bad_local_key(f, op):
    link = f.running(rev=1)
    wr = link.post(op, sge="@0x1000:8:0x12345", raddr=0, rkey=1, add=1)
    term = link.peer.expect_terminate()
    assert (term.layer, term.etype, term.bits) == (0, 0, 0), term
    link.peer.close()
    link.wc(wr=wr, status=LOC_PROT)
    link.dead(QP_FATAL)


@test("RDMAP-091", "RDMAP-027", "EXT-050", each=("read", "fadd", "cas"))
def an_answer_that_may_not_be_stored_is_not_asked_for(f, op):
    """The peer does nothing for a request whose buffer may only be read."""
    sink = f.mr(64, access="r")
    link = f.running(rev=1)
    wr = link.post(op, sge=sink.sge(0, 8), raddr=0, rkey=1, add=1)
    link.peer.expect_terminate(0, 0, 0, b"", "")
    link.peer.close()
    link.wc(wr=wr, status=LOC_PROT)
    link.dead(QP_FATAL)


@test("RDMAP-091", "VERBS-001")
def a_work_request_with_a_key_of_another_domain(f):
    foreign = f.mr(64, domain=f.domain())
    link = f.running(rev=1)
    wr = link.post("send", sge=foreign.sge(0, 8))
    term = link.peer.expect_terminate()
    assert (term.layer, term.etype, term.bits) == (0, 0, 0), term
    link.peer.close()
    link.wc(wr=wr, status=LOC_PROT)


@test("RDMAP-091", "VERBS-001")
def a_receive_whose_buffer_is_not_ours(f):
    foreign = f.mr(64, domain=f.domain())
    link = f.running(rev=1, recv=0)
    wr = link.post("recv", sge=foreign.sge())
    link.peer.send(b"where to?")
    link.peer.expect_terminate(0, 0, 0, b"", "")
    link.peer.close()
    link.wc(wr=wr, status=LOC_PROT)
    link.dead(QP_FATAL)
    assert foreign.peek() == bytes(64)


# --- teardown -------------------------------------------------------------------------------

@test("DDP-043", "VERBS-024", "RDMAP-085", "RDMAP-080")
def a_disconnect_lets_everything_out_first(f):
    out = f.mr(20000)
    out.poke(pattern(20000))
    link = f.running(rev=1)
    wrs = [link.post("send", sge=out.sge()) for _ in range(50)]
    f.agent.cmd("disconnect", k=link.k)
    for _ in range(50):
        assert link.peer.expect(rdmap.SEND, 20).payload == pattern(20000)
    link.peer.expect_end(reset=False)
    link.peer.fin()
    for wr in wrs:
        link.wc(wr=wr)
    link.dead()
    try:
        late = link.post("send", sge=out.sge(0, 1))
        link.wc(wr=late, status=FLUSH)
    except AgentError:
        pass


@test("VERBS-024", "MPA-064")
def an_abort_by_the_consumer(f):
    link = f.running(rev=1)
    f.agent.cmd("modify", k=link.k, state="err")
    link.peer.expect_end()
    link.peer.close()
    link.dead()


@test("RDMAP-061", "RDMAP-086", "RDMAP-085", "DDP-047", "RDMAP-020")
def a_terminate_during_a_long_transmission(f):
    """A Send is half out when the fault is found: the Terminate still comes."""
    out = f.mr(4 << 20)
    link = f.running(rev=1)
    link.peer.sock.setsockopt(1, 8, 16384)
    link.post("send", sge=out.sge())
    time.sleep(0.1)
    link.peer.write(0xBAD00000, 0, b"x")
    ulpdu = link.peer.last_ulpdu
    while True:
        s = link.peer.segment(20)
        if s.opcode == rdmap.TERMINATE:
            break
    term = rdmap.Terminate.parse(s.payload)
    assert term.what == (1, 1, 0) and term.ddp_header == ulpdu[:14], term
    link.peer.expect_end(reset=False)


@test("RDMAP-088", "RDMAP-059")
def a_terminate_in_answer_to_a_terminate(f):
    """Both directions fail at once: one Terminate each, no more."""
    link = f.running(rev=1)
    data = link.peer.write(1, 2, b"bad", hold=True) + link.peer.terminate(2, 0, 2, hold=True)
    link.peer.raw(data)
    link.peer.fin()
    link.peer.expect_terminate(1, 1, 0)
    link.dead(QP_ACCESS_ERR)

