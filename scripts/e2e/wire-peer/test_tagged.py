# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tagged segments towards weft: STag, domain, rights, bounds, wrap. RFC 5041, 7.1."""

import random
import time

from harness import AgentError, pattern, test, untouched
from wirepeer import ddp, rdmap

MAX64 = 2 ** 64


# --- good --------------------------------------------------------------------------

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


@test("DDP-031", "DDP-030", "RDMAP-034")
def a_zero_length_write_is_not_checked(f):
    link = f.running(rev=1)
    for stag, to in ((0, 0), (0xFFFFFFFF, MAX64 - 1), (1, 5)):
        link.peer.write(stag, to, b"")
    link.peer.send(b"ok")
    link.received(b"ok")


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


# --- refused ------------------------------------------------------------------------------

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
def the_first_and_the_last_byte_are_inside(f):
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
