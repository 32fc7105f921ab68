# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How long FPDUs are: EMSS, path MTU, the largest, TCP segments. RFC 5044, 3, 4.5, 5."""

import socket

from harness import LOC_PROT, pattern, send_out, test
from netdev import Tap, frag_needed, own_netns, set_mtu, weft_netns, widen
from wirepeer import ddp, mpa, rdmap

SENDS = 25


def bulk(f, link, markers):
    """A Send and a Write, cut into FPDUs as long as may be and no longer."""
    emss = link.peer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    due = mpa.mulpdu(emss, markers)
    size = 300000
    data = pattern(size)
    out = f.mr(size)
    out.poke(data)
    for op, kind in (("send", rdmap.SEND), ("write", rdmap.WRITE)):
        wr = link.post(op, sge=out.sge(), raddr=0x10000, rkey=0x77)
        message = link.peer.expect(kind, 20)
        assert message.payload == data
        lengths = [len(s.ulpdu) for s in message.segments]
        assert max(lengths) <= due, "ULPDU of %d, MULPDU %d" % (max(lengths), due)
        # as large as possible: full ones but for a rounding to whole words
        assert min(lengths[:-1]) >= due - 4, sorted(set(lengths))
        link.wc(wr=wr, timeout=20)

@test("MPA-001", "MPA-002", "MPA-003", "MPA-050", "MPA-047", "MPA-048", "MPA-053", "DDP-025",
      "DDP-028", "DDP-029", "DDP-007", "DDP-008", "DDP-015", "DDP-016", "DDP-020", "DDP-021",
      "DDP-034", "RDMAP-001", "RDMAP-030", each=(0, 1))
def bulk_data_is_cut_by_mulpdu(f, markers):
    bulk(f, f.running(rev=1, m=markers), markers)


@test("MPA-001", "MPA-003", "MPA-047", "MPA-048", "MPA-050", each=(0, 1))
def bulk_data_over_an_mtu_of_9000(f, markers):
    set_mtu(9000)
    try:
        bulk(f, f.running(rev=1, m=markers), markers)
    finally:
        set_mtu(1500)


@test("DDP-025", "DDP-007", "DDP-030", "DDP-024")
def messages_around_the_mulpdu(f):
    link = f.running(rev=1)
    emss = link.peer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    space = mpa.mulpdu(emss, False) - ddp.UNTAGGED_LEN
    for n in (0, 1, space - 1, space, space + 1, 2 * space - 1, 2 * space, 2 * space + 1):
        message = send_out(f, link, pattern(n))
        assert [s.last for s in message.segments] == [False] * (len(message.segments) - 1) + [True]
        assert len(message.segments) == max(1, -(-n // space)), (n, message)


def longest_of(link, region):
    """Of the FPDUs of a Send, whose data must be as it was."""
    wr = link.post("send", sge=region.sge())
    message = link.peer.expect(rdmap.SEND, 30)
    link.wc(wr=wr, timeout=20)
    assert message.payload == pattern(region.len)
    return max(len(s.ulpdu) for s in message.segments)


@test("MPA-001", "MPA-002", "MPA-004", each=(0, 1))
def segments_of_64_kib(f, markers):
    """More space than a ULPDU may take, once the window is twice as wide as a segment."""
    set_mtu(65535)
    try:
        link = f.running(rev=1, m=markers)
        out = f.mr(400000)
        out.poke(pattern(out.len))
        longest = [longest_of(link, out) for _ in range(6)]
        assert max(longest) == mpa.ULPDU_MAX, longest
    finally:
        set_mtu(1500)


@test("RDMAP-091")
def nothing_of_a_request_goes_out_whose_second_element_is_bad(f):
    """It has been put together for the most part, right behind a good one, before that shows. Both
    wait for a response, and the FPDU is longer than what is allocated at once."""
    set_mtu(65535)
    f.undo.append(lambda: set_mtu(1500))
    link = f.running(rev=1)
    out, sink = f.mr(400000), f.mr(64)
    out.poke(pattern(out.len))
    assert max(longest_of(link, out) for _ in range(6)) == mpa.ULPDU_MAX
    read = link.post("read", sge=sink.sge(), raddr=0x1000, rkey=0x4242)
    request = rdmap.ReadRequest(link.peer.expect(rdmap.READ_REQ).payload)
    good = link.post("send", sge=out.sge(0, 64), flags="sf")
    bad = link.post("send", sge=out.sge(0, 40000) + ",@0x1000:8:0x12345")
    link.peer.read_response(request, pattern(64))
    link.wc(wr=read)
    assert link.peer.expect(rdmap.SEND).payload == pattern(64)
    link.peer.expect_terminate(0, 0, 0)
    link.peer.close()
    link.wc(wr=good)
    link.wc(wr=bad, status=LOC_PROT)


@test("MPA-051", "DDP-001", "MPA-071", "MPA-032", each=(0, 1))
def a_smaller_mtu_means_smaller_fpdus(f, markers):
    link = f.running(rev=1, m=markers)
    out = f.mr(400000)
    out.poke(pattern(out.len))
    before = longest_of(link, out)
    assert before > 900
    weft_netns("ip", "link", "set", "va", "mtu", "900")
    try:
        longest_of(link, out)       # some of it may be planned already
        assert longest_of(link, out) <= mpa.mulpdu(900 - 40, markers)
    finally:
        widen(1500, f.world.weft6)
    longest_of(link, out)
    assert longest_of(link, out) == before


@test("MPA-051", "DDP-001", "MPA-071", each=(0, 1))
def a_router_asks_for_smaller_packets(f, markers):
    """The path MTU changes, and no netdev does; then the route is forgotten."""
    link = f.running(rev=1, m=markers)
    tap = Tap(f.world.port)
    out = f.mr(100000)
    out.poke(pattern(out.len))
    before = longest_of(link, out)
    seq, length = tap.segments()[-1]
    tap.sock.close()
    try:
        frag_needed(link.peer, seq + length & 0xFFFFFFFF, 1000)
        longest_of(link, out)
        due = mpa.mulpdu(1000 - 52, markers)    # IP, TCP, timestamps
        assert longest_of(link, out) in range(due - 3, due + 1)
    finally:
        weft_netns("ip", "route", "flush", "cache")
    longest_of(link, out)
    assert longest_of(link, out) == before


@test("MPA-052", "MPA-053", each=(88, 200, 536))
def a_small_segment_size(f, maxseg):
    link = f.active(maxseg=maxseg)
    emss = link.peer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    message = send_out(f, link, pattern(5000))
    lengths = [len(s.ulpdu) for s in message.segments]
    assert max(lengths) <= mpa.mulpdu(maxseg, False), (lengths[:3], emss)
    assert min(lengths[:-1]) >= min(128, maxseg - 40) - 4, lengths[:3]


@test("MPA-053", "MPA-048")
def without_timestamps_fpdus_are_longer(f):
    own_netns("sysctl", "-q", "-w", "net.ipv4.tcp_timestamps=0")
    try:
        link = f.running(rev=1)
        message = send_out(f, link, pattern(20000))
        assert max(len(s.ulpdu) for s in message.segments) in range(1450, 1455)
    finally:
        own_netns("sysctl", "-q", "-w", "net.ipv4.tcp_timestamps=1")


def a_write_fills(f, ulpdu):
    """One FPDU with a ULPDU of that many bytes."""
    target = f.mr(65536)
    link = f.running(rev=1)
    link.peer.mulpdu = ulpdu
    data = pattern(ulpdu - ddp.TAGGED_LEN)
    link.peer.write(target.rkey, target.iova, data)
    link.peer.send(b"")
    link.received(b"")
    assert target.peek(0, len(data)) == data


@test("MPA-005")
def the_largest_ulpdu(f):
    a_write_fills(f, mpa.ULPDU_MAX)


@test("MPA-005", "MPA-069")
def a_ulpdu_length_of_65535(f):
    a_write_fills(f, 0xFFFF)


@test("MPA-003", "MPA-049", "MPA-052")
def rests_of_segments_are_filled(f):
    """By messages that go out together, as they had to wait behind a long one."""
    link = f.running(rev=1)
    emss = link.peer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    due = mpa.mulpdu(emss, False)
    out, data = f.mr(4000000), pattern(1000)
    out.poke(data)
    link.post("write", sge=out.sge(), raddr=0x10000, rkey=0x77)
    for _ in range(SENDS):
        link.post("send", sge=out.sge(0, len(data)))
    messages = [link.peer.expect(rdmap.WRITE, 30)]
    for _ in range(SENDS):
        messages.append(link.peer.expect(rdmap.SEND, 20))
        assert messages[-1].payload == data
    for wr in list(link.requests):
        link.wc(wr=wr, timeout=20)
    every = [len(s.ulpdu) for m in messages for s in m.segments]
    parts = [len(s.ulpdu) for m in messages for s in m.segments if not s.last]
    assert max(every) <= due, "ULPDU of %d, MULPDU %d" % (max(every), due)
    assert min(parts) >= mpa.MULPDU_MIN, "cut after %d" % min(parts)
    cut = sum(len(m.segments) > 1 for m in messages[1:])
    assert cut > SENDS // 5, "only %d messages fill the segment before" % cut


@test("MPA-053", "MPA-054", "MPA-055", each=(1500, 1450))
def tcp_segments_begin_with_fpdus(f, mtu):
    """Also where segments are no multiple of four bytes."""
    set_mtu(mtu)
    try:
        segments_begin_with_fpdus(f)
    finally:
        set_mtu(1500)


@test("MPA-053", "MPA-054")
def tcp_segments_begin_with_marked_fpdus(f):
    """They are not cut to fill the rest of a segment: one that does not fit begins the next."""
    segments_begin_with_fpdus(f, 1)


def segments_begin_with_fpdus(f, markers=0):
    """Less than the first window of a wide buffer: a full one would cut segments anywhere."""
    link = f.running(rev=1, m=markers, wire=f.connect(rcvbuf=1 << 18))
    tap = Tap(f.world.port)
    out = f.mr(50000)
    wr = link.post("send", sge=out.sge())
    message = link.peer.expect(rdmap.SEND, 20)
    link.wc(wr=wr, timeout=20)
    seen = tap.segments()
    tap.sock.close()
    starts = {s.fpdu.position - message.segments[0].fpdu.position for s in message.segments}
    base = min(seq for seq, _ in seen)
    aligned = sum((seq - base) & 0xFFFFFFFF in starts for seq, _ in seen)
    assert aligned == len(seen), "%d of %d TCP segments begin with an FPDU" % (aligned, len(seen))
