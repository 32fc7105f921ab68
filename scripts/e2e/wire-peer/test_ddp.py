# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""DDP segments towards weft: what is taken, what is refused and how. RFC 5041."""

import random
import time
import zlib

from harness import LOC_LEN, WC_RECV, AgentError, pattern, test
from wirepeer import ddp, rdmap

MAX64 = 2 ** 64


def untouched(region, octet=0):
    seen = region.peek()
    assert seen == bytes([octet]) * len(seen), "the region was written to"


# --- good --------------------------------------------------------------------------

@test("DDP-005", "DDP-018", "DDP-027", "DDP-041", "RDMAP-003", "RDMAP-049", "RDMAP-050")
def sends_of_all_lengths(f):
    link = f.running(rev=1, recv=40, size=4096)
    for n in list(range(20)) + [100, 1005, 1006, 1007, 2048, 4095, 4096]:
        link.peer.send(pattern(n, n))
        found = link.received(pattern(n, n))
        assert found["op"] == WC_RECV and found["flags"] & 3 == 0, found


@test("DDP-014", "DDP-017", "DDP-016", "DDP-027", "RDMAP-030", "MPA-032")
def writes_to_every_offset(f):
    target = f.mr(4096)
    link = f.running(rev=1)
    due = bytearray(4096)
    for off in range(64):
        link.peer.write(target.rkey, target.iova + off * 33 + off, pattern(off + 1, off))
        due[off * 34:off * 34 + off + 1] = pattern(off + 1, off)
    link.peer.send(b"")
    link.received(b"")
    assert target.peek() == bytes(due)


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


@test("DDP-031", "DDP-030", "RDMAP-034")
def a_zero_length_write_is_not_checked(f):
    link = f.running(rev=1)
    for stag, to in ((0, 0), (0xFFFFFFFF, MAX64 - 1), (1, 5)):
        link.peer.write(stag, to, b"")
    link.peer.send(b"ok")
    link.received(b"ok")


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


@test("RDMAP-031", "RDMAP-033")
def writes_are_silent(f):
    target = f.mr(64)
    link = f.running(rev=1, recv=1)
    for n in range(300):
        link.peer.write(target.rkey, target.iova, pattern(64, n))
    time.sleep(0.1)
    link.no_wc()
    link.peer.send(b"only this")
    link.received(b"only this")
    assert target.peek() == pattern(64, 299)


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


# --- untagged: QN, MSN, MO, length ---------------------------------------------------------

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
    link = f.running(rev=1, recv=0)
    if what == "immediate":
        link.peer.imm(bytes(8))
    else:
        link.peer.send(b"x" if what == "send" else b"")
    link.refused(1, 2, 2)


@test("DDP-049", "DDP-070", "RDMAP-049")
def receives_run_out(f):
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
    room = link.peer.mulpdu - ddp.UNTAGGED_LEN
    first = ddp.untagged(rdmap.SEND, 0, 1, 0, pattern(sent)[:room], last=sent <= room)
    link.refused(1, 2, 5, ulpdu=first, oldest=LOC_LEN)


@test("DDP-019")
def another_opcode_within_a_message(f):
    link = f.running(rev=1, size=4096)
    link.peer.ulpdu(ddp.untagged(rdmap.SEND, 0, 1, 0, bytes(500), last=False))
    link.peer.last_ulpdu = ddp.untagged(rdmap.SEND_SE, 0, 1, 500, bytes(500))
    link.peer.ulpdu(link.peer.last_ulpdu)
    link.refused(0, 2, 6)


# --- tagged: STag, association, rights, bounds, wrap ----------------------------------------

@test("DDP-054", "DDP-063", "DDP-060", "RDMAP-032", "RDMAP-092", "RDMAP-020", "RDMAP-021",
      "RDMAP-027", "RDMAP-028", each=("unknown", "key", "zero", "ones", "deregistered"))
def an_invalid_stag(f, what):
    target = f.mr(64)
    stag = dict(unknown=0x7F123400, key=target.rkey ^ 1, zero=0, ones=0xFFFFFFFF,
                deregistered=target.rkey)[what]
    if what == "deregistered":
        target.dereg(keep=True)
    link = f.running(rev=1)
    link.peer.write(stag, target.iova, b"0123456789abcdef")
    link.refused(1, 1, 0)
    untouched(target)


@test("DDP-054", "DDP-065", "VERBS-001", "DDP-063")
def an_stag_of_another_domain(f):
    other = f.domain()
    target = f.mr(64, domain=other)
    link = f.running(rev=1)
    link.peer.write(target.rkey, target.iova, b"x")
    link.refused(1, 1, 2)
    untouched(target)


@test("DDP-055", "VERBS-004", each=("l", "lr", "la", ""))
def a_region_without_remote_write(f, access):
    target = f.mr(64, access=access)
    link = f.running(rev=1)
    link.peer.write(target.rkey, target.iova, b"x")
    link.refused(1, 1, 0)       # DDP has no code for a right that is not granted
    untouched(target)


@test("DDP-056", "DDP-057", "DDP-067", "VERBS-003", "DDP-063",
      each=((-1, 1), (-1, 100), (100, 1), (99, 2), (0, 101), (5000, 1), (-4096, 4096)))
def outside_of_the_region(f, case):
    off, length = case
    target = f.mr(100)
    link = f.running(rev=1)
    link.peer.mulpdu = 8192
    link.peer.write(target.rkey, target.iova + off, b"\xEE" * length)
    link.refused(1, 1, 1)
    untouched(target)


@test("DDP-067", "DDP-056", "DDP-057")
def the_first_and_the_last_octet_are_inside(f):
    target = f.mr(100)
    link = f.running(rev=1)
    link.peer.write(target.rkey, target.iova, b"\x01")
    link.peer.write(target.rkey, target.iova + 99, b"\x02")
    link.peer.send(b"")
    link.received(b"")
    assert target.peek(0, 1) == b"\x01" and target.peek(99, 1) == b"\x02"


@test("DDP-057", "DDP-059")
def a_later_segment_crosses_the_end(f):
    target = f.mr(1500)
    target.fill(0x11)
    link = f.running(rev=1)
    link.peer.ulpdu(ddp.tagged(rdmap.WRITE, target.rkey, target.iova, bytes(1000), last=False))
    link.peer.last_ulpdu = ddp.tagged(rdmap.WRITE, target.rkey, target.iova + 1000, bytes(501))
    link.peer.ulpdu(link.peer.last_ulpdu)
    link.refused(1, 1, 1)
    assert target.peek(1000) == b"\x11" * 500


@test("DDP-058", "DDP-062", "DDP-063", each=((MAX64 - 8, 16), (MAX64 - 1, 2), (MAX64 - 1, 100)))
def the_offset_wraps(f, case):
    to, length = case
    target = f.mr(64)
    link = f.running(rev=1)
    link.peer.write(target.rkey, to, bytes(length))
    link.refused(1, 1, 3)
    untouched(target)


@test("DDP-062", "DDP-058")
def the_end_of_all_offsets_is_no_wrap(f):
    target = f.mr(64)
    link = f.running(rev=1)
    link.peer.write(target.rkey, MAX64 - 16, bytes(16))
    link.refused(1, 1, 1)


@test("DDP-062", "RDMAP-094", each=("stag and wrap", "domain and bounds", "access and bounds"))
def two_faults_of_one_segment(f, what):
    link = f.running(rev=1)
    if what == "stag and wrap":
        link.peer.write(0x12345678, MAX64 - 8, bytes(16))
        link.refused(1, 1, 0)
    elif what == "domain and bounds":
        target = f.mr(64, domain=f.domain())
        link.peer.write(target.rkey, target.iova + 4096, b"x")
        link.refused(1, 1, 2)
    else:
        target = f.mr(64, access="lr")
        link.peer.write(target.rkey, target.iova + 4096, b"x")
        link.refused(1, 1, 0)


@test("DDP-059", "DDP-061", "DDP-003", "RDMAP-061", "DDP-047")
def a_good_write_behind_a_bad_one(f):
    target = f.mr(64)
    link = f.running(rev=1)
    bad = link.peer.write(target.rkey ^ 3, target.iova, b"bad", hold=True)
    ulpdu = link.peer.last_ulpdu
    good = link.peer.write(target.rkey, target.iova, b"good", hold=True)
    link.peer.raw(bad + good * 3)
    link.refused(1, 1, 0, ulpdu=ulpdu)
    untouched(target)


@test("VERBS-003", "DDP-057")
def random_writes_against_a_model(f):
    rng = random.Random(8)
    size = 3000
    target = f.mr(size, shift=123)
    model = bytearray(size)
    link = f.running(rev=1)
    for n in range(120):
        off, length = rng.randint(-40, size + 40), rng.choice((1, 2, 7, 64, 900))
        data = pattern(length, n)
        link.peer.write(target.rkey, target.iova + off, data)
        if 0 <= off and off + length <= size:
            model[off:off + length] = data
        else:
            link.refused(1, 1, 1)
            link = f.running(rev=1, recv=1, size=8)
    link.peer.send(b"")
    link.received(b"")
    assert target.peek() == bytes(model)


@test("DDP-054", "VERBS-003")
def a_message_whose_stag_changes(f):
    """Not a fault the sink must find: each segment is judged and placed by itself."""
    one, two = f.mr(2000), f.mr(2000)
    link = f.running(rev=1)
    link.peer.ulpdu(ddp.tagged(rdmap.WRITE, one.rkey, one.iova, b"\x77" * 1000, last=False))
    link.peer.ulpdu(ddp.tagged(rdmap.WRITE, two.rkey, two.iova, b"\x78" * 1000))
    link.peer.send(b"")
    link.received(b"")
    assert one.peek() == b"\x77" * 1000 + bytes(1000)
    assert two.peek() == b"\x78" * 1000 + bytes(1000)


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


# --- revoking ------------------------------------------------------------------------------

@test("DDP-068", "VERBS-005", "DDP-067")
def deregistered_under_a_flood_of_writes(f):
    target = f.mr(65536)
    link = f.running(rev=1)
    flood = b"".join(link.peer.write(target.rkey, target.iova + n * 1000, bytes([n]) * 1000,
                                     hold=True) for n in range(64))
    link.peer.sock.setblocking(False)
    for _ in range(20):
        try:
            link.peer.sock.send(flood)
        except BlockingIOError:
            break
    target.dereg(keep=True)
    target.fill(0xEE)
    time.sleep(0.2)
    untouched(target, 0xEE)


@test("VERBS-004", "DDP-067")
def rights_change_with_a_reregistration(f):
    target = f.mr(64, access="lw")
    link = f.running(rev=1)
    link.peer.write(target.rkey, target.iova, b"one")
    link.peer.send(b"")
    link.received(b"")
    fields = f.agent.cmd("rereg", name=target.name, access="lr")
    link.peer.write(fields["rkey"], target.iova, b"two")
    link.refused(1, 1, 0)
    assert target.peek(0, 3) == b"one"


@test("VERBS-015", "VERBS-012")
def read_only_memory_cannot_be_registered_for_writing(f):
    try:
        f.mr(64, access="lw", prot="r")
    except AgentError:
        return
    raise AssertionError("registered read-only pages for remote write")

