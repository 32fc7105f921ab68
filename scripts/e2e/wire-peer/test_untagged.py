# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Untagged segments towards weft: queue, message number, offset, length. RFC 5041, 7.1."""

from harness import FLUSH, LOC_LEN, pattern, test
from wirepeer import ddp, rdmap


@test("DDP-048", "RDMAP-010", "EXT-004", "EXT-055", "DDP-063",
      each=((rdmap.SEND, 1), (rdmap.SEND, 2), (rdmap.SEND, 3), (rdmap.SEND, 4),
            (rdmap.SEND, 0xFFFFFFFF), (rdmap.READ_REQ, 0), (rdmap.READ_REQ, 2),
            (rdmap.IMM, 1), (rdmap.ATOMIC_REQ, 0), (rdmap.ATOMIC_RESP, 1)))
def the_wrong_queue(f, case):
    opcode, qn = case
    size = rdmap.Audit.HEADER.get(opcode, 5)
    link = f.running(rev=1)
    link.peer.untagged(opcode, bytes(size), qn=qn, msn=1)
    link.refused(1, 2, 1)


@test("DDP-053", "DDP-021", "DDP-070", "DDP-063", each=(0, 2, 5, 0xFFFFFFFF))
def the_wrong_msn(f, msn):
    for payload in (b"x", b""):
        link = f.running(rev=1)
        link.peer.send(payload, msn=msn)
        link.refused(1, 2, 3)


@test("DDP-053", "DDP-022", each=(0, 1, 3))
def an_msn_again_or_too_soon(f, msn):
    link = f.running(rev=1)
    link.peer.send(b"1")
    link.received(b"1")
    link.peer.send(b"2", msn=msn)
    link.refused(1, 2, 3)


@test("DDP-053", "RDMAP-036", each=(0, 2, 77))
def the_wrong_msn_of_a_read_request(f, msn):
    source = f.mr(64)
    link = f.running(rev=1)
    link.peer.read(source.rkey, source.iova, 8, msn=msn)
    link.refused(1, 2, 3)


@test("DDP-053")
def another_msn_within_a_message(f):
    link = f.running(rev=1, size=4096)
    link.peer.ulpdu(ddp.untagged(rdmap.SEND, 0, 1, 0, bytes(500), last=False))
    link.peer.last_ulpdu = ddp.untagged(rdmap.SEND, 0, 2, 500, bytes(500))
    link.peer.ulpdu(link.peer.last_ulpdu)
    link.refused(1, 2, 3)


@test("DDP-049", "DDP-050", "DDP-063", "EXT-047", "RDMAP-092", "DDP-060",
      each=("send", "empty send", "immediate"))
def no_receive_is_posted(f, what):
    f.receives_in_time()
    link = f.running(rev=1, recv=0)
    if what == "immediate":
        link.peer.imm(bytes(8))
    else:
        link.peer.send(b"x" if what == "send" else b"")
    link.refused(1, 2, 2)


@test("DDP-049", "DDP-070", "RDMAP-049")
def receives_run_out(f):
    f.receives_in_time()
    link = f.running(rev=1, recv=3)
    for n in range(3):
        link.peer.send(bytes([n]))
    link.peer.send(b"one too many")
    for n in range(3):
        link.received(bytes([n]))
    link.refused(1, 2, 2)


@test("DDP-051", "DDP-023", "DDP-063", each=(1, 4, 0xFFFFFFFF))
def a_message_that_does_not_begin_at_0(f, mo):
    link = f.running(rev=1, size=64)
    link.peer.send(b"x", mo=mo)
    link.refused(1, 2, 4)


@test("DDP-051", "DDP-023", "DDP-063",
      each=("read request", "atomic request", "atomic response", "immediate"))
def a_message_of_one_segment_that_does_not_begin_at_0(f, what):
    target = f.mr(64, access="lwra")
    link = f.running(rev=1)
    wr = None
    if what == "read request":
        link.peer.read(target.rkey, target.iova, 8, mo=4)
    elif what == "atomic request":
        link.peer.atomic(rdmap.FETCH_ADD, target.rkey, target.iova, 1, mo=4)
    elif what == "immediate":
        link.peer.imm(bytes(8), mo=4)
    else:
        wr = link.post("fadd", sge=target.sge(0, 8), raddr=0, rkey=2, add=0)
        link.peer.expect(rdmap.ATOMIC_REQ)
        link.peer.atomic_response(1, 5, mo=4)
    link.peer.expect_terminate(1, 2, 4, link.peer.last_ulpdu)
    link.peer.close()
    if wr:
        link.wc(wr=wr, status=FLUSH)
    link.over_by(1, 2, 4)
    assert target.peek() == bytes(64)


@test("DDP-051", "DDP-032", "DDP-059", each=(499, 501, 0, 5000))
def a_gap_or_overlap_in_a_message(f, mo):
    link = f.running(rev=1, recv=1, size=4096)
    region = link.slots[link.posted[0]][0]
    region.fill(0x33)
    link.peer.ulpdu(ddp.untagged(rdmap.SEND, 0, 1, 0, bytes(500), last=False))
    link.peer.last_ulpdu = ddp.untagged(rdmap.SEND, 0, 1, mo, bytes(500))
    link.peer.ulpdu(link.peer.last_ulpdu)
    link.refused(1, 2, 4)
    assert region.peek(500) == b"\x33" * (4096 - 500)


@test("DDP-052", "VERBS-022", "RDMAP-050", "DDP-060", each=((64, 65), (64, 5000), (0, 1)))
def a_send_longer_than_its_receive(f, case):
    size, sent = case
    link = f.running(rev=1, recv=1, size=size)
    if size:
        link.slots[link.posted[0]][0].fill(0x44)
    link.peer.send(pattern(sent))
    space = link.peer.mulpdu - ddp.UNTAGGED_LEN
    first = ddp.untagged(rdmap.SEND, 0, 1, 0, pattern(sent)[:space], last=sent <= space)
    link.refused(1, 2, 5, ulpdu=first, oldest=LOC_LEN)


@test("DDP-019")
def another_opcode_within_a_message(f):
    link = f.running(rev=1, size=4096)
    link.peer.ulpdu(ddp.untagged(rdmap.SEND, 0, 1, 0, bytes(500), last=False))
    link.peer.last_ulpdu = ddp.untagged(rdmap.SEND_SE, 0, 1, 500, bytes(500))
    link.peer.ulpdu(link.peer.last_ulpdu)
    link.refused(0, 2, 6)
