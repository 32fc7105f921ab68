# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a fault's Terminate looks like whatever was negotiated for the stream, and that a
second fault changes nothing. RFC 5040, 4.8, 5.4, 7.1; RFC 5041, 7.1."""

import itertools
import socket
import time

from faults import FOUND, PAYS, Target
from harness import FLUSH, QP_ACCESS_ERR, NotSeen, filling, pattern, send_out, test, up_to_a_marker
from wirepeer import ddp, rdmap

# --- framing -----------------------------------------------------------------------------

# markers both ways, CRC
FRAMINGS = {"markers": (1, 1), "markers, no crc": (1, 0), "no crc": (0, 0)}
# bytes of an FPDU in front of a marker: all, the length, within either header, most of it
PLACES = (0, 4, 12, 28, 44)


def marker_within(link, place):
    """weft's next FPDU, too, will start that many bytes before a marker."""
    send_out(link.f, link, pattern(filling(link.peer.rx, ddp.UNTAGGED_LEN, place)))


@test("RDMAP-020", "RDMAP-021", "RDMAP-028", "RDMAP-092", "RDMAP-093", "DDP-060", "MPA-024",
      "MPA-038", "MPA-057", "CM-011", each=itertools.product(FOUND, FRAMINGS))
def a_terminate_in_every_framing(f, case):
    """Its type and headers, byte for byte; a marker in every part of what is wrong,
    and of the Terminate."""
    act, what, bits = FOUND[case[0]]
    markers, crc = FRAMINGS[case[1]]
    f.policy("mpa_crc", crc)
    f.policy("mpa_rx_markers", markers)
    if case[0] == "crc" and not crc:
        link = f.running(rev=1, m=markers, c=0)
        link.peer.send(b"anything", fpdu=dict(crc_xor=1))
        link.received(b"anything")
        return
    target, space = Target(f), f.mr(1024)
    for place in PLACES if markers else (None,):
        link = f.running(rev=1, m=markers, c=crc, recv=0)
        assert link.peer.tx.markers == link.peer.rx.markers == bool(markers)
        assert link.peer.tx.crc == link.peer.rx.crc == bool(crc)
        if markers:
            marker_within(link, place)
            up_to_a_marker(link, space, place)
        act(target.on(link))
        ulpdu = link.peer.last_ulpdu if bits else b""
        link.refused(*what, bits=bits, ulpdu=ulpdu, oldest=PAYS.get(case[0], FLUSH))
    target.untouched()


# --- a fault behind a fault --------------------------------------------------------------

SECONDS = {
    "queue": lambda p: p.untagged(rdmap.SEND, b"x", qn=9, msn=1),
    "msn": lambda p: p.send(b"x", msn=77),
    "msn of a read": lambda p: p.read(1, 2, 8, msn=0),
    "mo": lambda p: p.send(b"x", mo=8),
    "too long": lambda p: p.send(bytes(1400)),
    "header too short": lambda p: p.untagged(rdmap.ATOMIC_REQ, bytes(51)),
    "stag": lambda p: p.write(0xBAD10000, 0, b"x"),
    "read": lambda p: p.read(0xBAD10000, 0, 8),
    "crc": lambda p: p.send(b"x", fpdu=dict(crc_xor=1)),
    "no header at all": lambda p: p.ulpdu(b"\xc1"),
    "a terminate": lambda p: p.terminate(2, 0, 2),
}
# one of ours comes when it comes
THEIRS = tuple(name for name in FOUND if name != "a local fault")


def cork(link, on):
    link.peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, on)


@test("RDMAP-094", "RDMAP-061", "DDP-003", "DDP-059", "RDMAP-089", "DDP-063", each=THEIRS)
def a_fault_behind_a_fault(f, first):
    """One Terminate, that of the first, with its headers; one event; nothing else."""
    act, what, bits = FOUND[first]
    target = Target(f)
    for second in SECONDS.values():
        link = f.running(rev=1, recv=0)
        cork(link, 1)
        act(target.on(link))
        ulpdu = link.peer.last_ulpdu if bits else b""
        second(link.peer)
        cork(link, 0)
        link.refused(*what, bits=bits, ulpdu=ulpdu, oldest=PAYS.get(first, FLUSH))
    target.untouched()


@test("RDMAP-061", "RDMAP-089", "DDP-059", "RDMAP-088", "RDMAP-060", each=THEIRS)
def a_fault_behind_a_terminate(f, first):
    """weft has sent its Terminate: further faults go unanswered, without a reset,
    and a request that cannot be served is flushed like any other."""
    act, what, bits = FOUND[first]
    link = f.running(rev=1, recv=0)
    target = Target(f).on(link)
    act(target)
    ulpdu = link.peer.last_ulpdu if bits else b""
    link.peer.expect_terminate(*what, ulpdu, bits)
    late = link.post("send", sge="@0x1000:8:0x12345")
    for second in SECONDS.values():
        second(link.peer)
    assert link.peer.sock.recv(1) == b""
    link.peer.fin()
    link.over_by(*what, oldest=PAYS.get(first, FLUSH))
    link.wc(wr=late, status=FLUSH)
    target.untouched()


def taken_slowly(link, piece, most):
    """Read a piece now and then until weft's receives are flushed; the seconds that took."""
    began = time.monotonic()
    while time.monotonic() - began < most:
        link.peer.sock.recv(piece)
        try:
            link.wc(wr=link.posted[0], status=FLUSH, timeout=0.1)
            break
        except NotSeen:
            pass
    return time.monotonic() - began


@test()
def a_peer_that_takes_a_byte_now_and_then(f):
    """A Terminate behind a full buffer: the peer has a deadline again each time it takes
    something, yet not for ever."""
    f.policy("close_timeout_ms", 500)
    f.policy("tcp_sndbuf", 16 << 20)
    link = f.running(rev=1, wire=f.connect(rcvbuf=1 << 16))
    data = f.mr(1 << 19)
    sent = [link.post("send", sge=data.sge()) for _ in range(16)]
    for wr in sent[:10]:
        link.wc(wr=wr)
    link.peer.write(0x51A600, 0, b"nowhere")
    took = taken_slowly(link, 20 << 10, 40)     # to read it all takes 25 s
    assert took < 18, "it ends after %.1f s" % took
    link.peer.close()
    link.dead(QP_ACCESS_ERR)
