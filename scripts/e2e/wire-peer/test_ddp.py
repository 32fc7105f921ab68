# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""DDP segments towards weft: what is taken, what is refused and how. RFC 5041."""

import time
import zlib

from harness import WC_RECV, pattern, test, untouched
from wirepeer import ddp, mpa, rdmap


# --- good --------------------------------------------------------------------------

@test("DDP-005", "DDP-018", "DDP-027", "DDP-041", "RDMAP-003", "RDMAP-049", "RDMAP-050")
def sends_of_all_lengths(f):
    link = f.running(rev=1, recv=40, size=4096)
    for n in list(range(20)) + [100, 1005, 1006, 1007, 2048, 4095, 4096]:
        link.peer.send(pattern(n, n))
        found = link.received(pattern(n, n))
        assert found["op"] == WC_RECV and found["flags"] & 3 == 0, found


@test("DDP-011", "DDP-010", "RDMAP-007", each=range(16))
def reserved_ddp_bits_are_ignored(f, bits):
    target = f.mr(64)
    link = f.running(rev=1)
    link.peer.write(target.rkey, target.iova, b"tagged", reserved=bits)
    link.peer.send(b"untagged", reserved=bits, rsv=bits & 3)
    link.received(b"untagged")
    assert target.peek(0, 6) == b"tagged"


@test("RDMAP-012", "DDP-019", each=(rdmap.SEND, rdmap.SEND_SE))
def the_invalidate_stag_of_a_plain_send_is_ignored(f, opcode):
    target = f.mr(64)
    link = f.running(rev=1)
    link.peer.send(b"x", opcode=opcode, inv=target.rkey)
    assert link.received(b"x")["flags"] == 0
    link.peer.send(b"x", opcode=opcode, inv=0xDEADBEEF)
    link.received(b"x")
    link.peer.write(target.rkey, target.iova, b"still valid")
    link.peer.send(b"")
    link.received(b"")
    assert target.peek(0, 11) == b"still valid"


@test("DDP-037", "DDP-009", "DDP-036")
def a_write_between_the_segments_of_a_send(f):
    target = f.mr(4096)
    link = f.running(rev=1, size=4096)
    data, write = pattern(3000), pattern(2000, 9)
    for at in range(0, 3000, 1000):
        segment = ddp.untagged(rdmap.SEND, 0, 1, at, data[at:at + 1000], last=at == 2000)
        link.peer.ulpdu(segment)
        if at < 2000:
            tagged = ddp.tagged(rdmap.WRITE, target.rkey, target.iova + at,
                                write[at:at + 1000], last=at == 1000)
            link.peer.ulpdu(tagged)
    link.received(data)
    assert target.peek(0, 2000) == write


@test("DDP-039", "RDMAP-074")
def a_send_completes_with_its_last_segment(f):
    link = f.running(rev=1, size=4096)
    data = pattern(3000)
    for at in (0, 1000):
        link.peer.ulpdu(ddp.untagged(rdmap.SEND, 0, 1, at, data[at:at + 1000], last=False))
    time.sleep(0.1)
    link.no_wc()
    link.peer.ulpdu(ddp.untagged(rdmap.SEND, 0, 1, 2000, data[2000:]))
    link.received(data)


@test("DDP-024", "DDP-036", "DDP-039")
def an_empty_segment_ends_no_send(f):
    """Only the bit for it does, at the beginning as well as within the message."""
    link = f.running(rev=1, size=4096)
    data = pattern(1000)
    for at, end in (0, 0), (0, 500), (500, 500), (500, 1000):
        link.peer.ulpdu(ddp.untagged(rdmap.SEND, 0, 1, at, data[at:end], last=end == 1000))
    link.peer.next_msn(0)
    link.received(data)
    link.peer.send(b"next")
    link.received(b"next")


@test("DDP-024", "DDP-036")
def an_empty_segment_ends_no_write(f):
    target = f.mr(4096)
    link = f.running(rev=1)
    data, before = pattern(1000), f.counted("rx_writes")
    for at, end in (0, 0), (0, 500), (500, 500), (500, 1000):
        link.peer.ulpdu(ddp.tagged(rdmap.WRITE, target.rkey, target.iova + at, data[at:end],
                                   last=end == 1000))
    link.peer.send(b"")
    link.received(b"")
    assert target.peek(0, 1000) == data
    assert before is None or f.counted("rx_writes") == before + 1


@test("DDP-024", "DDP-036", "DDP-039")
def an_empty_segment_ends_no_read(f):
    sink, data = f.mr(1000), pattern(1000)
    link = f.running(rev=2, enhanced=mpa.Enhanced(4, 4))
    wr = link.post("read", sge=sink.sge(), raddr=0x1000, rkey=0x77)
    request = rdmap.ReadRequest(link.peer.expect(rdmap.READ_REQ).payload)
    for at, end in (0, 0), (0, 500), (500, 500), (500, 1000):
        link.peer.read_response(request, data[at:end], to=request.sink_to + at, last=end == 1000)
    link.wc(wr=wr)
    assert sink.peek() == data


@test("DDP-009", "DDP-036", "RDMAP-051", "RDMAP-067", "RDMAP-074")
def sends_are_delivered_in_order_with_the_writes_before_them(f):
    target = f.mr(8192)
    link = f.running(rev=1, recv=200, size=16)
    for n in range(200):
        link.peer.raw(link.peer.write(target.rkey, target.iova, pattern(8192, n), hold=True) +
                      link.peer.send(n.to_bytes(4, "big"), hold=True))
    for n in range(200):
        link.received(n.to_bytes(4, "big"))
    assert target.peek() == pattern(8192, 199)


@test("RDMAP-067", "EXT-048", "MPA-032")
def a_large_write_is_placed_before_the_send_behind_it(f):
    size = 1 << 20
    target = f.mr(size)
    link = f.running(rev=1, recv=4)
    link.peer.mulpdu = 16000
    for n in range(3):
        data = pattern(size, n)
        link.peer.write(target.rkey, target.iova, data)
        link.peer.send(b"!")
        link.received(b"!", timeout=20)
        assert target.crc32() == zlib.crc32(data)


# --- versions and opcodes --------------------------------------------------------------

@test("DDP-013", "DDP-063", "DDP-012", "DDP-060", each=(0, 2, 3))
def another_ddp_version(f, dv):
    link = f.running(rev=1)
    link.peer.send(b"x", dv=dv)
    link.refused(1, 2, 6)
    link = f.running(rev=1)
    link.peer.write(0, 0, b"x", dv=dv)
    link.refused(1, 1, 4)


@test("RDMAP-095", "RDMAP-025", "RDMAP-092", "RDMAP-027", each=(0, 2, 3))
def another_rdmap_version(f, rv):
    target = f.mr(64)
    for action in (lambda p: p.send(b"x", rv=rv),
                   lambda p: p.write(target.rkey, target.iova, b"x", rv=rv),
                   lambda p: p.read(target.rkey, target.iova, 8, rv=rv)):
        link = f.running(rev=1)
        action(link.peer)
        link.refused(0, 2, 5)
    untouched(target)


@test("RDMAP-095", "RDMAP-103", "RDMAP-008", "RDMAP-025", "EXT-052", each=range(12, 16))
def an_unassigned_opcode(f, opcode):
    link = f.running(rev=1)
    link.peer.untagged(opcode, b"", qn=0)
    link.refused(0, 2, 6)
    link = f.running(rev=1)
    link.peer.tagged(opcode, 1, 2, b"abcd")
    link.refused(0, 2, 6)


@test("DDP-006", "RDMAP-009", "EXT-003", each=(0, 1, 2, 3, 4, 7, 8, 10, 11))
def the_wrong_kind_of_header(f, opcode):
    target = f.mr(64)
    link = f.running(rev=1)
    if opcode in rdmap.TAGGED_OPS:
        link.peer.untagged(opcode, b"payload", qn=0)
    else:
        link.peer.tagged(opcode, target.rkey, target.iova, b"payload")
    link.refused(0, 2, 6)
    untouched(target)


# --- too short for a header -----------------------------------------------------------------

@test("DDP-069", "MPA-005", each=(0, 1, 2, 5, 13, 14, 17))
def a_ulpdu_shorter_than_its_header(f, length):
    for first in (0x41, 0xC1):
        if length >= 14 and first == 0xC1:
            continue
        ulpdu = bytes([first, 0x43 if first == 0x41 else 0x40] + [0] * 30)[:length]
        link = f.running(rev=1)
        link.peer.ulpdu(ulpdu)
        link.terminated(2, 0, 3)


@test("DDP-069", "RDMAP-013", "RDMAP-014", "EXT-006", "EXT-045",
      each=((rdmap.READ_REQ, 27), (rdmap.READ_REQ, 0), (rdmap.READ_REQ, 29),
            (rdmap.READ_REQ, 400), (rdmap.ATOMIC_REQ, 51), (rdmap.ATOMIC_REQ, 53),
            (rdmap.ATOMIC_REQ, 0), (rdmap.IMM, 7), (rdmap.IMM, 9), (rdmap.IMM, 0),
            (rdmap.IMM_SE, 7), (rdmap.ATOMIC_RESP, 11), (rdmap.ATOMIC_RESP, 13)))
def a_header_of_the_wrong_length(f, case):
    opcode, length = case
    link = f.running(rev=1)
    link.peer.untagged(opcode, bytes(length))
    link.refused(0, 2, 0xFF)


@test("RDMAP-013", "RDMAP-056", each=(rdmap.READ_REQ, rdmap.IMM, rdmap.ATOMIC_REQ))
def a_header_in_two_segments(f, opcode):
    link = f.running(rev=1)
    size = rdmap.Audit.HEADER[opcode]
    first = ddp.untagged(opcode, rdmap.QN[opcode], 1, 0, bytes(size // 2), last=False)
    link.peer.ulpdu(first)
    link.peer.ulpdu(ddp.untagged(opcode, rdmap.QN[opcode], 1, size // 2, bytes(size - size // 2)))
    link.refused(0, 2, 0xFF, ulpdu=first)
