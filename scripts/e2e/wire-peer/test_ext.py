# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Atomics and Immediate Data. RFC 7306."""

import random
import struct
import time

from harness import (BAD_RESP, FLUSH, QP_FATAL, QP_REQ_ERR, REM_OP, WC_CSWAP, WC_FADD, WC_RECV_IMM,
                     WITH_IMM, AgentError, pattern, test)
from wirepeer import rdmap
from wirepeer.rdmap import CMP_SWAP, FETCH_ADD, ONES

FADDS = ((0x25, 5, 0), (ONES, 1, 0), (0xFFFFFFFF, 1, 0x80000000),
         (ONES, 0x100000001, 0x8000000080000000), (0x00FF00FF00FF00FF, 0x0001000100010001,
                                                   0x8080808080808080),
         (0xA5A5A5A5A5A5A5A5, ONES, ONES), (0x10, 0, 0))
SWAPS = ((0x5555666677778888, 0x5555666677778888, ONES, 0x1111222233334444, ONES),
         (0x5555666677778889, 0x5555666677778888, ONES, 0x1111222233334444, ONES),
         (0x5555666677778889, 0x5555666677778888, 0xFFFFFFFFFFFFFF00, 0xEE, 0xFF),
         (0x0123456789ABCDEF, 0, 0, ONES, 0xFFFF0000))


def native(value):
    return struct.pack("=Q", value)


def number(region, off=0):
    return struct.unpack("=Q", region.peek(off, 8))[0]


def result(link, req_id, original):
    answer = rdmap.AtomicResponse(link.peer.expect(rdmap.ATOMIC_RESP).payload)
    assert (answer.req_id, answer.original) == (req_id, original), answer.__dict__


# --- weft as the target --------------------------------------------------------------------

@test("EXT-002", "EXT-007", "EXT-015", "EXT-016", "EXT-027", "EXT-003", "EXT-004", "EXT-009",
      "EXT-011", "EXT-013", "EXT-026", "EXT-022", "EXT-030")
def fetch_and_add(f):
    target = f.mr(64)
    link = f.running(rev=1)
    rng = random.Random(7306)
    cases = list(FADDS) + [(rng.getrandbits(64), rng.getrandbits(64), rng.getrandbits(64))
                           for _ in range(50)]
    for n, (original, add, mask) in enumerate(cases):
        target.poke(native(original), 8)
        # compare data and mask of a FetchAdd are ignored: send garbage
        link.peer.atomic(FETCH_ADD, target.rkey, target.iova + 8, add, mask,
                         rng.getrandbits(64), rng.getrandbits(64), req_id=n * 77)
        result(link, n * 77, original)
        assert number(target, 8) == rdmap.fetch_add(original, add, mask), (original, add, mask)
    link.no_wc()
    assert target.peek(0, 8) == bytes(8) and target.peek(16, 8) == bytes(8)


@test("EXT-002", "EXT-017", "EXT-014", "EXT-016")
def compare_and_swap(f):
    target = f.mr(64)
    link = f.running(rev=1)
    rng = random.Random(17)
    cases = list(SWAPS)
    for _ in range(50):
        original = rng.getrandbits(64)
        cases.append((original, original ^ (1 << rng.randrange(64)), rng.getrandbits(64),
                      rng.getrandbits(64), rng.getrandbits(64)))
    for n, (original, compare, cmask, swap, smask) in enumerate(cases):
        target.poke(native(original), 8)
        link.peer.atomic(CMP_SWAP, target.rkey, target.iova + 8, swap, smask, compare, cmask,
                         req_id=n)
        result(link, n, original)
        assert number(target, 8) == rdmap.cmp_swap(original, compare, cmask, swap, smask)


@test("EXT-005", "EXT-008")
def reserved_fields_of_an_atomic_are_ignored(f):
    target = f.mr(64)
    link = f.running(rev=1)
    link.peer.atomic(FETCH_ADD, target.rkey, target.iova, 1, rsvd=0xFFFFFFF, inv=0xFFFFFFFF,
                     rsv=3, reserved=15)
    result(link, 1, 0)
    assert number(target) == 1
    link.peer.imm(bytes(8), inv=0xFFFFFFFF, rsv=3, reserved=15)
    link.wc(wr=link.posted[0])


@test("EXT-001", "EXT-002")
def a_harmless_probe(f):
    target = f.mr(64)
    target.poke(native(37))
    link = f.running(rev=1)
    link.peer.atomic(FETCH_ADD, target.rkey, target.iova, 0)
    result(link, 1, 37)
    assert number(target) == 37
    assert f.world.device["atomic_cap"] in (1, 2)


@test("EXT-010", "EXT-009", "EXT-052", each=(1, 3, 7, 15))
def an_unsupported_atomic(f, code):
    target = f.mr(64)
    target.poke(native(5))
    link = f.running(rev=1)
    link.peer.atomic(code, target.rkey, target.iova, 9, ONES, 5, ONES)
    link.refused(0, 2, 6)
    assert number(target) == 5


@test("EXT-018", "EXT-019", "EXT-051", "EXT-056", "EXT-020", "RDMAP-025", each=range(1, 8))
def a_misaligned_atomic(f, off):
    target = f.mr(64)
    link = f.running(rev=1)
    link.peer.atomic(FETCH_ADD, target.rkey, target.iova + off, ONES)
    link.refused(0, 2, 7)
    assert target.peek() == bytes(64)


@test("EXT-018")
def nothing_behind_a_misaligned_atomic(f):
    """It is refused when it is read, not when it is answered: what came with it is not taken."""
    target = f.mr(64)
    link = f.running(rev=1)
    both = link.peer.atomic(FETCH_ADD, target.rkey, target.iova + 4, ONES, hold=True)
    ulpdu = link.peer.last_ulpdu
    both += link.peer.send(b"too late", hold=True)
    link.peer.raw(both)
    link.refused(0, 2, 7, ulpdu=ulpdu)
    assert target.peek() == bytes(64)


@test("EXT-020", "EXT-018")
def alignment_is_that_of_the_memory(f):
    """A zero-based region whose memory starts four bytes into a word."""
    target = f.mr(64, access="lwraz", shift=4)
    link = f.running(rev=1)
    link.peer.atomic(FETCH_ADD, target.rkey, target.iova + 4, 3)
    result(link, 1, 0)
    assert number(target, 4) == 3
    link.peer.atomic(FETCH_ADD, target.rkey, target.iova, 3)
    link.refused(0, 2, 7)
    assert target.peek(0, 4) == bytes(4)


ATOMIC_FAULTS = {"unknown stag": (0, 1, 0), "wrong key": (0, 1, 0), "other domain": (0, 1, 3),
                 "no atomic right": (0, 1, 2), "below": (0, 1, 1), "beyond": (0, 1, 1),
                 "across the end": (0, 1, 1), "wrap": (0, 1, 4)}


@test("EXT-053", "EXT-051", "EXT-052", "RDMAP-024", "RDMAP-027", each=tuple(ATOMIC_FAULTS))
def an_atomic_that_may_not_be(f, what):
    target = f.mr(60, domain=f.domain() if what == "other domain" else "pd",
                  access="lwr" if what == "no atomic right" else "lwra")
    stag, to = target.rkey, target.iova
    if what == "unknown stag":
        stag = 0x31415900
    elif what == "wrong key":
        stag ^= 1
    elif what == "below":
        to -= 8
    elif what == "beyond":
        to += 64
    elif what == "across the end":
        to += 56
    elif what == "wrap":
        to = ONES - 3
    link = f.running(rev=1)
    link.peer.atomic(FETCH_ADD, stag, to, 1)
    link.refused(*ATOMIC_FAULTS[what])
    assert target.peek() == bytes(60)


@test("EXT-054", each=("code and stag", "msn and code", "stag and alignment",
                       "bounds and alignment"))
def two_faults_of_one_atomic(f, what):
    target = f.mr(64)
    link = f.running(rev=1)
    if what == "code and stag":
        link.peer.atomic(5, 0x1234500, 0, 1)
        link.refused(0, 2, 6)
    elif what == "msn and code":
        link.peer.atomic(5, target.rkey, target.iova, 1, msn=9)
        link.refused(1, 2, 3)
    elif what == "stag and alignment":
        link.peer.atomic(FETCH_ADD, 0x1234500, 1, 1)
        link.refused(0, 1, 0)
    else:
        link.peer.atomic(FETCH_ADD, target.rkey, target.iova + 61, 1)
        link.refused(0, 1, 1)


@test("EXT-024", "EXT-026", "EXT-032", "EXT-038", "EXT-039", "EXT-029", "RDMAP-039")
def atomics_and_reads_in_one_order(f):
    target = f.mr(8)
    link = f.running(rev=1, ird=16)
    data = b""
    for n in range(8):
        data += link.peer.atomic(FETCH_ADD, target.rkey, target.iova, 1, req_id=n, hold=True)
        data += link.peer.read(target.rkey, target.iova, 8, n + 1, 0, hold=True)
    link.peer.raw(data)
    for n in range(8):
        result(link, n, n)
        answer = link.peer.expect(rdmap.READ_RESP)
        assert (answer.stag, answer.payload) == (n + 1, native(n + 1)), answer


@test("EXT-038", "EXT-017")
def dependent_swaps_in_a_row(f):
    target = f.mr(8)
    link = f.running(rev=1, ird=16)
    link.peer.raw(b"".join(link.peer.atomic(CMP_SWAP, target.rkey, target.iova, n + 1, ONES, n,
                                            ONES, req_id=n, hold=True) for n in range(16)))
    for n in range(16):
        result(link, n, n)
    assert number(target) == 16


@test("EXT-034", "EXT-040", "EXT-035", "EXT-036")
def a_write_before_an_atomic(f):
    target = f.mr(8)
    link = f.running(rev=1, recv=20)
    for n in range(20):
        link.peer.raw(link.peer.write(target.rkey, target.iova, native(n * 100), hold=True) +
                      link.peer.send(b"s", hold=True) +
                      link.peer.atomic(FETCH_ADD, target.rkey, target.iova, 7, req_id=n,
                                       hold=True))
        result(link, n, n * 100)
        link.received(b"s")
        assert number(target) == n * 100 + 7


@test("EXT-021", "EXT-022")
def atomics_of_several_streams(f):
    target = f.mr(8)
    links = [f.running(rev=1, ird=16, recv=0) for _ in range(6)]
    rounds, seen = 12, []
    for _ in range(rounds):
        for link in links:
            link.peer.raw(b"".join(link.peer.atomic(FETCH_ADD, target.rkey, target.iova, 1,
                                                    hold=True) for _ in range(16)))
        for link in links:
            for _ in range(16):
                answer = rdmap.AtomicResponse(link.peer.expect(rdmap.ATOMIC_RESP).payload)
                seen.append(answer.original)
    # had two overlapped, both would have found the same
    assert sorted(seen) == list(range(len(links) * 16 * rounds))
    assert number(target) == len(seen)


@test("RDMAP-083", "EXT-029", "EXT-024")
def more_atomics_than_were_agreed_on(f):
    source = f.mr(1 << 20)
    link = f.running(rev=1, ird=2)
    link.peer.sock.setsockopt(1, 8, 4096)
    link.peer.raw(link.peer.read(source.rkey, source.iova, 1 << 20, hold=True) +
                  b"".join(link.peer.atomic(FETCH_ADD, source.rkey, source.iova, 1, hold=True)
                           for _ in range(3)))
    term = link.peer.expect_terminate(timeout=20)
    assert term.what == (1, 2, 2), term
    link.peer.close()
    link.dead(QP_REQ_ERR)


@test("RDMAP-103", "EXT-001", each=(4, 0))
def atomics_can_be_switched_off(f, depth):
    """The peer has sent what is unknown, not more than was agreed on."""
    f.policy("atomics", 0)
    target = f.mr(8)
    link = f.running(rev=1, ird=depth)
    link.peer.atomic(FETCH_ADD, target.rkey, target.iova, 0)
    link.refused(0, 2, 6)


# --- weft as the requester -------------------------------------------------------------------

@test("EXT-007", "EXT-013", "EXT-014", "EXT-025", "EXT-030", "EXT-016", "EXT-028", "EXT-037",
      "EXT-033", "VERBS-025")
def a_fetch_and_add_request(f):
    link = f.running(rev=1)
    sink = f.mr(8, access="l")
    wr = link.post("fadd", sge=sink.sge(), raddr=0x1008, rkey=0x55660001, add=5)
    message = link.peer.expect(rdmap.ATOMIC_REQ)
    req = rdmap.AtomicRequest(message.payload)
    assert (req.code, req.stag, req.to, req.data, req.mask, req.compare, req.compare_mask) == (
        0, 0x55660001, 0x1008, 5, 0, 0, ONES), req.__dict__
    time.sleep(0.2)
    link.no_wc()
    link.peer.atomic_response(req.req_id, 0x1122334455667788)
    found = link.wc(wr=wr)
    assert found["op"] == WC_FADD and found["len"] == 8, found
    assert number(sink) == 0x1122334455667788


@test("EXT-014", "EXT-030", "VERBS-025")
def a_compare_and_swap_request(f):
    link = f.running(rev=1)
    sink = f.mr(8, access="l")
    wr = link.post("cas", sge=sink.sge(), raddr=0x1010, rkey=0x55660001, compare=8, swap=4)
    req = rdmap.AtomicRequest(link.peer.expect(rdmap.ATOMIC_REQ).payload)
    assert (req.code, req.data, req.mask, req.compare, req.compare_mask) == (
        2, 4, ONES, 8, ONES), req.__dict__
    link.peer.atomic_response(req.req_id, 8)
    assert link.wc(wr=wr)["op"] == WC_CSWAP
    assert number(sink) == 8


@test("EXT-011", "EXT-028", "EXT-029")
def request_ids_differ(f):
    link = f.running(rev=1, ord=8)
    sink = f.mr(64, access="l")
    for n in range(8):
        link.post("fadd", sge=sink.sge(n * 8, 8), raddr=0, rkey=1, add=1)
    ids = [rdmap.AtomicRequest(link.peer.expect(rdmap.ATOMIC_REQ).payload).req_id
           for _ in range(8)]
    assert len(set(ids)) == 8, ids
    for n, req_id in enumerate(ids):
        link.peer.atomic_response(req_id, n)
        link.wc()
        assert number(sink, n * 8) == n


@test("EXT-012", "EXT-018")
def a_misaligned_request_comes_back_as_an_error(f):
    link = f.running(rev=1)
    sink = f.mr(8, access="l")
    try:
        wr = link.post("fadd", sge=sink.sge(), raddr=0x1001, rkey=1, add=1)
    except AgentError:
        return
    message = link.peer.message()
    if message.opcode == rdmap.TERMINATE:
        return
    link.peer.terminate(0, 2, 7, seglen=70, ddp_header=message.segments[0].header)
    link.peer.fin()
    link.peer.close()
    link.wc(wr=wr, status=REM_OP)
    link.dead(QP_FATAL)


# what is wrong with a response: (its Terminate, the status of the request it was for)
MISFITS = {"unsolicited": ((0, 2, 6), None), "wrong id": ((0, 2, 6), BAD_RESP),
           "wrong msn": ((1, 2, 3), FLUSH), "wrong queue": ((1, 2, 1), FLUSH),
           "to a read": ((0, 2, 6), BAD_RESP), "twice": ((0, 2, 6), None)}


@test("EXT-031", "EXT-028", "RDMAP-048", each=tuple(MISFITS))
def an_atomic_response_that_does_not_fit(f, what):
    link = f.running(rev=1)
    sink = f.mr(8, access="l")
    sink.fill(0x22)
    wr = None
    if what == "unsolicited":
        link.peer.atomic_response(1, 5)
    elif what == "to a read":
        wr = link.post("read", sge=sink.sge(), raddr=0, rkey=1)
        message = link.peer.expect(rdmap.READ_REQ)
        link.peer.atomic_response(message.msn, 5)
    else:
        wr = link.post("fadd", sge=sink.sge(), raddr=0, rkey=1, add=1)
        req = rdmap.AtomicRequest(link.peer.expect(rdmap.ATOMIC_REQ).payload)
        if what == "wrong id":
            link.peer.atomic_response(req.req_id ^ 0x55, 5)
        elif what == "wrong msn":
            link.peer.atomic_response(req.req_id, 5, msn=2)
        elif what == "wrong queue":
            link.peer.atomic_response(req.req_id, 5, qn=0, msn=1)
        else:
            link.peer.atomic_response(req.req_id, 5)
            link.wc(wr=wr)
            link.peer.atomic_response(req.req_id, 6)
    due, status = MISFITS[what]
    link.refused(*due)
    if status is not None:
        link.wc(wr=wr, status=status)
    link.no_wc()
    if what == "twice":
        assert number(sink) == 5
    else:
        assert sink.peek() == b"\x22" * 8


# --- Immediate Data ---------------------------------------------------------------------------

@test("EXT-041", "EXT-043", "EXT-044", "EXT-046", "VERBS-026", "VERBS-027", "EXT-048")
def immediate_data_and_sends_share_the_receives(f):
    target = f.mr(4096)
    link = f.running(rev=1, recv=40, size=64)
    for n in range(20):
        if n % 3 == 0:
            link.peer.send(pattern(n))
        elif n % 3 == 1:
            link.peer.imm(struct.pack(">II", n * 0x01010101, 0))
        else:
            link.peer.write(target.rkey, target.iova, pattern(100 + n, n))
            link.peer.imm(struct.pack(">II", n * 0x01010101, 0), opcode=rdmap.IMM_SE)
    for n in range(20):
        if n % 3 == 0:
            link.received(pattern(n))
            continue
        found = link.wc(wr=link.posted[0])
        assert found["op"] == WC_RECV_IMM and found["flags"] & WITH_IMM, found
        assert found["imm"] == n * 0x01010101, found
        assert found["len"] == (100 + n if n % 3 == 2 else 0), found
    assert target.peek(0, 117) == pattern(117, 17)


BEFORE = {"two writes": 300, "an empty write": 0, "an unread response": 200, "a send": 0,
          "a read request": 0, "an atomic request": 0, "immediate data": 0, "many segments": 20000}


@test("EXT-041", "VERBS-027", each=tuple(BEFORE))
def the_length_of_immediate_data_is_that_of_the_write_in_front_of_it(f, what):
    target = f.mr(32768)
    sink = f.mr(64)
    link = f.running(rev=1, recv=4, size=64)
    link.peer.write(target.rkey, target.iova, pattern(200))
    if what == "two writes":
        link.peer.write(target.rkey, target.iova, pattern(300))
    elif what == "an empty write":
        link.peer.write(target.rkey, target.iova)
    elif what == "an unread response":
        wr = link.post("read", sge=sink.sge(), raddr=0x1000, rkey=0x4242)
        request = rdmap.ReadRequest(link.peer.expect(rdmap.READ_REQ).payload)
        link.peer.read_response(request, pattern(64))
        link.wc(wr=wr)
    elif what == "a send":
        link.peer.send(pattern(8))
        link.received(pattern(8))
    elif what == "a read request":
        link.peer.read(target.rkey, target.iova, 16)
        link.peer.expect(rdmap.READ_RESP)
    elif what == "an atomic request":
        link.peer.atomic(FETCH_ADD, target.rkey, target.iova, 1)
        link.peer.expect(rdmap.ATOMIC_RESP)
    elif what == "immediate data":
        link.peer.imm(bytes(8))
        assert link.wc(wr=link.posted[0])["len"] == 200
    else:
        link.peer.write(target.rkey, target.iova, pattern(20000))
    link.peer.imm(bytes(8))
    found = link.wc(wr=link.posted[0])
    assert found["len"] == BEFORE[what], found


@test("EXT-042", "EXT-041", "VERBS-026")
def a_write_with_immediate_is_two_messages(f):
    link = f.running(rev=1)
    out = f.mr(3000)
    # Where the header of a request stood, the second half of the immediate is zero.
    wr = link.post("fadd", sge=out.sge(0, 8), raddr=0x1008, rkey=0x55660001, add=5)
    req = rdmap.AtomicRequest(link.peer.expect(rdmap.ATOMIC_REQ).payload)
    link.peer.atomic_response(req.req_id, 0)
    link.wc(wr=wr)
    out.poke(pattern(3000))
    wr = link.post("writeimm", sge=out.sge(), raddr=0x77, rkey=9, imm=0xCAFE0001)
    assert link.peer.expect(rdmap.WRITE).payload == pattern(3000)
    message = link.peer.expect(rdmap.IMM)
    assert message.payload == bytes.fromhex("cafe000100000000"), message.payload
    link.wc(wr=wr)
    link.no_wc()
    wr = link.post("writeimm", sge=None, raddr=0, rkey=0, imm=1)
    first = link.peer.message()
    if first.opcode == rdmap.WRITE:
        assert first.payload == b""
        first = link.peer.message()
    assert first.opcode == rdmap.IMM
    link.wc(wr=wr)


@test("RDMAP-052", "EXT-046", each=("send", "immediate"))
def only_a_solicited_message_wakes_a_solicited_consumer(f, what):
    cq = "q%d" % next(f.world.names)
    f.agent.cmd("cq", name=cq, depth=64)
    link = f.passive(rev=1, recv=0, qp=dict(rcq=cq))
    link.recv(4, 64)
    f.agent.cmd("arm", name=cq, solicited=1)
    plain, solicited = ((rdmap.SEND, rdmap.SEND_SE) if what == "send" else
                        (rdmap.IMM, rdmap.IMM_SE))
    link.peer.untagged(plain, bytes(8))
    link.wc(wr=link.posted[0])
    time.sleep(0.1)
    f.agent.none("cqevent", cq=cq)
    link.peer.untagged(solicited, bytes(8))
    link.wc(wr=link.posted[0])
    f.agent.wait("cqevent", 3, cq=cq)
    link.peer.close()
    f.agent.cmd("destroy", k=link.k)
    f.links.remove(link)
    f.agent.cmd("dropcq", name=cq)


@test("EXT-045", "EXT-006", "EXT-051", "EXT-052", each=(7, 9))
def immediate_data_of_another_length(f, length):
    link = f.running(rev=1, recv=1)
    link.peer.imm(bytes(length))
    link.refused(0, 2, 0xFF)


@test("EXT-052", "RDMAP-095", each=(rdmap.IMM, rdmap.IMM_SE, rdmap.ATOMIC_REQ, rdmap.ATOMIC_RESP))
def versions_of_the_new_messages(f, opcode):
    payload = bytes(rdmap.Audit.HEADER[opcode])
    link = f.running(rev=1)
    link.peer.untagged(opcode, payload, rv=0)
    link.refused(0, 2, 5)
    link = f.running(rev=1)
    link.peer.untagged(opcode, payload, dv=0)
    link.refused(1, 2, 6)

