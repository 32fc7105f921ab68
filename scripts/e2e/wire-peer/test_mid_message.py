# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A stream ends while it is busy: every Terminate in the middle of a transmission,
and Terminates about requests that are not complete."""

import socket
import sys

from faults import FOUND, PAYS, Target
from harness import FLUSH, LOC_PROT, OK, QP_FATAL, REM_ACCESS, REM_INV, REM_OP, pattern, test
from wirepeer import ddp, rdmap

LONG = 2 << 20


# These have their turn behind what is being sent; the others break in.
BEHIND = ("read ", "misaligned", "a local")


def narrow(f, **more):
    """A link over which little goes at a time, so that something is always left."""
    link = f.running(rev=1, recv=0, wire=f.connect(rcvbuf=4096), **more)
    link.peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return link


@test("RDMAP-020", "RDMAP-025", "RDMAP-061", "RDMAP-086", "DDP-047", "DDP-060", "DDP-063",
      each=tuple((busy, found) for busy in ("sending", "answering") for found in FOUND))
def a_terminate_comes_though_much_is_being_sent(f, case):
    busy, found = case
    act, what, bits = FOUND[found]
    link = narrow(f)
    target = Target(f).on(link)
    source = f.mr(LONG)
    if busy == "sending":
        link.post("send", sge=source.sge())
    else:
        link.peer.read(source.rkey, source.iova, LONG)
    got = len(link.peer.segment().payload)
    act(target)
    ulpdu = link.peer.last_ulpdu
    while True:
        s = link.peer.segment(20)
        if s.opcode == rdmap.TERMINATE:
            break
        got += len(s.payload)
    assert (got == LONG) == found.startswith(BEHIND), got
    term = rdmap.Terminate.parse(s.payload)
    head = ulpdu[:ddp.TAGGED_LEN if ulpdu[0] & 0x80 else ddp.UNTAGGED_LEN] if bits else b""
    assert term.what == what, term
    assert (term.ddp_header, term.seglen) == (head, len(ulpdu) if bits else None), term
    assert term.rdmap_header == (ulpdu[18:46] if "R" in bits else b""), term
    link.peer.expect_end(reset=False)
    link.peer.close()
    link.over_by(*what, oldest=PAYS.get(found, FLUSH))
    target.untouched()


# --- the first of several faults --------------------------------------------------------

def good_request(link, target, kind):
    """Its bytes, held back. It changes nothing."""
    if kind == "read":
        return link.peer.read(target.rkey, target.iova, 8, hold=True)
    return link.peer.atomic(ATOMICS[kind], target.rkey, target.iova, hold=True)


def bad_request(link, kind):
    """Its bytes, held back, and its ULPDU: no region has that STag."""
    if kind == "read":
        data = link.peer.read(0xBAD00000, 0, 8, hold=True)
    else:
        data = link.peer.atomic(ATOMICS[kind], 0xBAD00000, 0, 1, hold=True)
    return data, link.peer.last_ulpdu


ATOMICS = {"fadd": rdmap.FETCH_ADD, "cas": rdmap.CMP_SWAP}
REQUESTS = ("read", "fadd", "cas")


def refused_request(link, kind, ulpdu):
    """The Terminate names that request, and nothing behind it counts."""
    link.refused(0, 1, 0, bits="MDR" if kind == "read" else "MD", ulpdu=ulpdu)
    assert not link.posted
    link.no_wc()


@test("RDMAP-094", "DDP-003", "RDMAP-089", each=REQUESTS)
def a_bad_request_comes_before_a_bad_write(f, kind):
    link = f.running(rev=1)
    data, ulpdu = bad_request(link, kind)
    link.peer.raw(data + link.peer.write(0xDEAD0000, 0, b"bad too", hold=True) +
                  link.peer.send(b"x", msn=99, hold=True))
    refused_request(link, kind, ulpdu)


@test("RDMAP-094", "DDP-003", "RDMAP-089", each=REQUESTS)
def nothing_is_taken_behind_a_bad_request(f, kind):
    target = f.mr(64)
    link = f.running(rev=1)
    data, ulpdu = bad_request(link, kind)
    link.peer.raw(data + link.peer.write(target.rkey, target.iova, b"good", hold=True) +
                  link.peer.send(b"good", hold=True))
    refused_request(link, kind, ulpdu)
    assert target.peek() == bytes(64)


@test("RDMAP-094", "DDP-003", "RDMAP-089", each=REQUESTS)
def a_good_request_before_a_bad_one_is_answered(f, kind):
    target = f.mr(64)
    target.poke(pattern(64))
    link = f.running(rev=1)
    good = good_request(link, target, kind)
    data, ulpdu = bad_request(link, kind)
    link.peer.raw(good + data + link.peer.write(0xDEAD0000, 0, b"bad too", hold=True))
    if kind == "read":
        assert link.peer.expect(rdmap.READ_RESP).payload == pattern(8)
    else:
        answer = link.peer.expect(rdmap.ATOMIC_RESP).payload
        original = rdmap.AtomicResponse(answer).original
        assert original == int.from_bytes(pattern(8), sys.byteorder), original
    refused_request(link, kind, ulpdu)
    assert target.peek() == pattern(64)


# --- Terminates about requests that are not complete ---------------------------------

UNFINISHED = (("write", (1, 1, 0), REM_ACCESS), ("write", (1, 1, 1), REM_ACCESS),
              ("write", (1, 1, 2), REM_ACCESS), ("write", (1, 1, 3), REM_ACCESS),
              ("write", (1, 1, 4), REM_INV), ("writeimm", (1, 1, 0), REM_ACCESS),
              ("send", (1, 2, 2), REM_OP), ("send", (1, 2, 5), REM_INV),
              ("send", (0, 2, 6), REM_INV), ("sendinv", (1, 2, 2), REM_OP))


@test("VERBS-023", "RDMAP-058", "RDMAP-087", "VERBS-021", each=UNFINISHED)
def a_terminate_names_what_is_half_sent(f, case):
    op, what, status = case
    link = narrow(f)
    out = f.mr(LONG)
    before = link.post("send", sge=out.sge(0, 8))
    assert len(link.peer.expect(rdmap.SEND).payload) == 8
    wr = link.post(op, sge=out.sge(), raddr=0x10000, rkey=7, inv=9)
    after = link.post("send", sge=out.sge(0, 8))
    first = link.peer.segment()
    link.peer.terminate(*what, seglen=len(first.ulpdu), ddp_header=first.header)
    link.peer.fin()
    link.peer.close()
    link.wc(wr=before)
    link.wc(wr=wr, status=status)
    link.wc(wr=after, status=FLUSH)
    link.dead(QP_FATAL)


def behind_a_read(f):
    """Sent and taken, yet not complete: a Read before them is not answered."""
    link = f.running(rev=1)
    out = f.mr(64)
    wrs = {"read": link.post("read", sge=out.sge(0, 8), raddr=0, rkey=1)}
    seen = {"read": link.peer.message()}
    for name, op, where in (("one", "send", 0), ("two", "sendinv", 0), ("low", "write", 100),
                            ("high", "write", 116), ("imm", "writeimm", 200)):
        wrs[name] = link.post(op, sge=out.sge(0, 16), raddr=where, rkey=6, inv=5)
        seen[name] = link.peer.message()
    seen["late"] = link.peer.message()      # of "imm"
    link.no_wc()
    return link, wrs, {name: message.segments[0] for name, message in seen.items()}


NAMED = (("one", "one", (1, 2, 2), REM_OP), ("two", "two", (1, 2, 2), REM_OP),
         ("low", "low", (1, 1, 0), REM_ACCESS), ("high", "high", (1, 1, 1), REM_ACCESS),
         ("imm", "imm", (1, 1, 2), REM_ACCESS), ("late", "imm", (1, 2, 2), REM_OP),
         ("read", "read", (0, 1, 2), REM_ACCESS))


@test("VERBS-023", "RDMAP-058", "VERBS-016", each=NAMED)
def a_terminate_names_one_of_many(f, case):
    segment, name, what, status = case
    link, wrs, seen = behind_a_read(f)
    link.peer.terminate(*what, seglen=len(seen[segment].ulpdu), ddp_header=seen[segment].header)
    link.peer.fin()
    link.peer.close()
    due = dict.fromkeys(wrs, OK)
    due["read"] = FLUSH
    due[name] = status
    for other, wr in wrs.items():
        assert link.wc(status=due[other])["wr"] == wr, other
    link.dead(QP_FATAL)


@test("VERBS-023", "RDMAP-019",
      each=("another msn", "another stag", "behind the end", "a response"))
def a_terminate_names_nothing_of_ours(f, what):
    link, wrs, seen = behind_a_read(f)
    if what == "another msn":
        header = ddp.untagged(rdmap.SEND, 0, 77)[:18]
    elif what == "a response":
        header = ddp.tagged(rdmap.READ_RESP, seen["low"].stag, seen["low"].to)[:14]
    else:
        to = seen["high"].to + (16 if what == "behind the end" else 0)
        header = ddp.tagged(rdmap.WRITE, 6 if what == "behind the end" else 66, to)[:14]
    link.peer.terminate(1, 1, 0, seglen=30, ddp_header=header)
    link.peer.fin()
    link.peer.close()
    for name, wr in wrs.items():
        link.wc(wr=wr, status=FLUSH if name == "read" else OK)
    link.dead(QP_FATAL)


@test("VERBS-023", each=("fadd", "cas"))
def a_terminate_names_an_atomic(f, op):
    link = f.running(rev=1)
    sink = f.mr(8)
    sink.poke(pattern(8))
    wr = link.post(op, sge=sink.sge(), raddr=0, rkey=2, add=1)
    segment = link.peer.expect(rdmap.ATOMIC_REQ).segments[0]
    link.peer.terminate(0, 1, 2, seglen=len(segment.ulpdu), ddp_header=segment.header)
    link.peer.fin()
    link.peer.close()
    link.wc(wr=wr, status=REM_ACCESS)
    link.dead(QP_FATAL)
    assert sink.peek() == pattern(8)


@test("VERBS-023", "RDMAP-091")
def our_own_fault_is_not_the_peers(f):
    """A request that failed here keeps its status, whatever the peer says of it."""
    link = f.running(rev=1)
    wr = link.post("send", sge="@0x1000:8:0x12345")
    header = ddp.untagged(rdmap.SEND, 0, 1)[:18]
    link.peer.terminate(1, 2, 2, seglen=26, ddp_header=header)
    link.peer.fin()
    link.wc(wr=wr, status=LOC_PROT)
    link.peer.close()
    link.dead(QP_FATAL)
