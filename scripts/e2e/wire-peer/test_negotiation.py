# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What was negotiated: markers and CRC of each direction, depths, the first message.
RFC 5044, 4.3, 4.4, 7.1; RFC 6581, 9."""

import itertools
from errno import EPROTO

from harness import pattern, test
from wirepeer import mpa, rdmap

DEPTH = mpa.NOT_NEGOTIATED


def both_ways(f, link, sizes=(0, 1, 3, 500, 3000)):
    """Sends in both directions, contents compared."""
    for n in sizes:
        link.peer.send(pattern(n, n))
        link.received(pattern(n, n))
    out = f.mr(4096)
    out.poke(pattern(4096))
    for n in sizes:
        wr = link.post("send", sge=out.sge(0, n) if n else None)
        assert link.peer.expect(rdmap.SEND).payload == pattern(4096)[:n]
        link.wc(wr=wr)


MATRIX = tuple((ours, theirs) for ours in (0, 1) for theirs in (0, 1))


@test("CM-009", "CM-010", "MPA-034", "MPA-022", "MPA-032", each=MATRIX)
def markers_per_direction(f, case):
    ours, theirs = case
    if theirs:
        f.policy("mpa_rx_markers", 1)
    link = f.passive(rev=1, m=ours, recv=8, size=4096)
    assert link.reply.m == theirs, link.reply
    both_ways(f, link)
    assert link.peer.rx.markers == bool(ours)


@test("CM-009", "CM-010", "MPA-022", each=MATRIX)
def markers_per_direction_as_initiator(f, case):
    ours, theirs = case
    if theirs:
        f.policy("mpa_rx_markers", 1)
    link = f.active(reply=dict(m=ours), recv=8, size=4096)
    assert link.request.m == theirs, link.request
    both_ways(f, link)


@test("CM-011", "CM-012", "MPA-037", "MPA-041", "MPA-035", each=MATRIX)
def crc_matrix(f, case):
    ours, theirs = case
    if not theirs:
        f.policy("mpa_crc", 0)
    link = f.passive(rev=1, c=ours, recv=8, size=4096)
    assert link.reply.c == theirs, link.reply
    both_ways(f, link)
    bad = dict(crc_xor=4)
    if ours or theirs:
        link.peer.send(b"broken", fpdu=bad)
        link.terminated(2, 0, 2)
    else:
        link.peer.send(b"anything", fpdu=dict(crc_field=b"\xde\xad\xbe\xef"))
        link.received(b"anything")


@test("CM-011", "CM-012", "MPA-037", each=MATRIX)
def crc_matrix_as_initiator(f, case):
    ours, theirs = case
    if not theirs:
        f.policy("mpa_crc", 0)
    link = f.active(reply=dict(c=ours), recv=8, size=4096)
    assert link.request.c == theirs, link.request
    both_ways(f, link)
    if ours or theirs:
        link.peer.send(b"broken", fpdu=dict(crc_xor=4))
        link.terminated(2, 0, 2)


@test("CM-009", "CM-010", "CM-011", "MPA-034", "MPA-015", each=MATRIX)
def markers_without_crc(f, case):
    ours, theirs = case
    f.policy("mpa_crc", 0)
    f.policy("mpa_rx_markers", theirs)
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4), m=ours, c=0, recv=8, size=4096)
    assert (link.reply.m, link.reply.c) == (theirs, 0), link.reply
    both_ways(f, link)
    link = f.active(reply=dict(m=ours, c=0), recv=8, size=4096)
    assert (link.request.m, link.request.c) == (theirs, 0), link.request
    both_ways(f, link)


# --- the enhanced block ----------------------------------------------------------------

FLAGS = tuple(itertools.product((0, 1), repeat=4))
KINDS = (rdmap.SEND, rdmap.WRITE, rdmap.READ_REQ)


@test("CM-048", "CM-049", "CM-063", "CM-064", "CM-065", "CM-066", "CM-067", "CM-071", each=FLAGS)
def flags_of_a_request(f, flags):
    """Mirrored as far as they have a meaning; each kind in the reply starts the stream."""
    a, *kinds = flags
    due = [0, 0, 0] if not a else kinds if any(kinds) else [1, 1, 1]
    for n in [n for n in range(3) if due[n]] or [None]:
        link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, *flags))
        e = link.reply.enhanced
        assert (e.a, [e.b, e.c, e.d]) == (a, due), e
        if n == 0:
            link.peer.send(b"")
        elif n == 2:
            link.peer.read(0, 0, 0)
            assert link.peer.expect(rdmap.READ_RESP).payload == b""
        else:
            link.start_responder()
        link.event("ESTABLISHED")
        both_ways(f, link, (5,))


@test("CM-048", "CM-049", "CM-064", "CM-068", "CM-069", each=FLAGS)
def flags_of_a_reply(f, flags):
    """A Write rather than a Read, a Read rather than a Send; without any, the end."""
    a, *kinds = flags
    link = f.dialed()
    f.answer(link, mpa.Enhanced(16, 4, *flags))
    if not a or not any(kinds):
        link.peer.expect_terminate(2, 0, 7, b"", "")
        link.peer.close()
        link.connect_fails("CONNECT_ERROR", EPROTO)
        return
    first = link.peer.message()
    due = rdmap.WRITE if kinds[1] else rdmap.READ_REQ if kinds[2] else rdmap.SEND
    assert first.opcode == due, first
    if due == rdmap.READ_REQ:
        link.peer.read_response(rdmap.ReadRequest(first.payload), b"")
    link.event("ESTABLISHED")
    both_ways(f, link, (5,))


DEPTHS = (0, 1, 4, 5, 9, 1024, 1025, DEPTH - 1, DEPTH)
MOST = 1024


@test("CM-050", "CM-051", "CM-052", "CM-053", "CM-059", "CM-060", each=DEPTHS)
def depths_of_a_request(f, ird):
    """weft has an IRD of 4 and an ORD of 6: it lowers its ORD and raises its IRD."""
    for ord in DEPTHS:
        link = f.passive(ird=4, ord=6, recv=0, rev=2, enhanced=mpa.Enhanced(ird, ord))
        e = link.reply.enhanced
        own_ord = 6 if ird == DEPTH else min(6, ird)
        own_ird = 4 if ord == DEPTH else max(4, min(ord, MOST))
        assert e.ord == (DEPTH if ird == DEPTH else own_ord), (ord, e)
        assert e.ird == (DEPTH if ord == DEPTH else own_ird), (ord, e)
        link.start_responder()
        told = link.event("ESTABLISHED")
        wanted = own_ird if ord == DEPTH else min(own_ird, ord)
        assert (told["ird"], told["ord"]) == (min(wanted, 255), own_ord), (ord, told)
        state = link.state()
        # the consumer gets what fits its eight bits
        assert (state["ird"], state["ord"]) == (min(own_ird, 255), own_ord), (ord, state)
        link.peer.close()


@test("CM-051", "CM-056", "CM-057", "CM-061", each=DEPTHS)
def depths_of_a_reply(f, ird):
    for ord in DEPTHS:
        link = f.dialed(ird=4, ord=6, recv=0)
        f.answer(link, mpa.Enhanced(ird, ord, 1, 0, 1, 0))
        if MOST < ord < DEPTH:
            link.peer.expect_terminate(2, 0, 6, b"", "")
            link.peer.close()
            continue
        link.event("ESTABLISHED")
        state = link.state()
        due = (4 if ord == DEPTH else min(max(4, ord), 255), 6 if ird == DEPTH else min(6, ird))
        assert (state["ird"], state["ord"]) == due, (ord, state)
        link.peer.close()
