# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What was settled for each direction: markers and CRC. RFC 5044, 4.3, 4.4, 7.1."""

from harness import pattern, test
from wirepeer import rdmap


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
        f.policy("markers", 1)
    link = f.passive(rev=1, m=ours, recv=8, size=4096)
    assert link.reply.m == theirs, link.reply
    both_ways(f, link)
    assert link.peer.rx.markers == bool(ours)


@test("CM-009", "CM-010", "MPA-022", each=MATRIX)
def markers_per_direction_as_initiator(f, case):
    ours, theirs = case
    if theirs:
        f.policy("markers", 1)
    link = f.active(reply=dict(m=ours), recv=8, size=4096)
    assert link.request.m == theirs, link.request
    both_ways(f, link)


@test("CM-011", "CM-012", "MPA-037", "MPA-041", "MPA-035", each=MATRIX)
def crc_matrix(f, case):
    ours, theirs = case
    if not theirs:
        f.policy("crc", 0)
    link = f.passive(rev=1, c=ours, recv=8, size=4096)
    assert link.reply.c == theirs, link.reply
    both_ways(f, link)
    bad = dict(crc_xor=4)
    if ours or theirs:
        link.peer.send(b"spoilt", fpdu=bad)
        link.terminated(2, 0, 2)
    else:
        link.peer.send(b"anything", fpdu=dict(crc_field=b"\xde\xad\xbe\xef"))
        link.received(b"anything")


@test("CM-011", "CM-012", "MPA-037", each=MATRIX)
def crc_matrix_as_initiator(f, case):
    ours, theirs = case
    if not theirs:
        f.policy("crc", 0)
    link = f.active(reply=dict(c=ours), recv=8, size=4096)
    assert link.request.c == theirs, link.request
    both_ways(f, link)
    if ours or theirs:
        link.peer.send(b"spoilt", fpdu=dict(crc_xor=4))
        link.terminated(2, 0, 2)
