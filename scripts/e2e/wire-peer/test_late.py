# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Messages that come before their receive wait for it. RFC 5041, 7.1; RFC 5044, 7.1.2."""

import time

from harness import WC_RECV_IMM, pattern, test
from wirepeer import Violation, rdmap

TEN_MINUTES = 600000


def waiting(f, *messages, timeout=TEN_MINUTES, **more):
    """A link on which a message, or the first of some, has found no receive."""
    f.policy("rnr_timeout_ms", timeout)
    before = f.counted("rnr_waits")
    link = f.running(rev=1, recv=0, **more)
    for message in messages or (b"late",):
        link.peer.send(message)
    until_it_waits(f, before)
    return link


def until_it_waits(f, before):
    end = time.monotonic() + 5
    while f.counted("rnr_waits") == before:
        assert time.monotonic() < end, "no message waits"


@test("DDP-050", each=(4, 0, 10000))
def a_message_waits_for_its_receive(f, size):
    data = pattern(size)
    link = waiting(f, data)
    link.peer.silent(0.3)
    link.no_wc()
    link.recv(1, 10000)
    link.received(data)
    link.recv(1, 64)
    link.peer.send(b"next")
    link.received(b"next")


@test("DDP-050")
def messages_are_received_in_order(f):
    link = waiting(f, b"1", b"2", b"3")
    link.recv(1, 64)
    link.received(b"1")
    link.peer.silent(0.3)
    link.no_wc()
    link.recv(2, 64)
    link.received(b"2")
    link.received(b"3")


@test("DDP-050")
def immediate_data_waits(f):
    f.policy("rnr_timeout_ms", TEN_MINUTES)
    link = f.running(rev=1, recv=0)
    link.peer.imm(b"\0\0\0\7" + bytes(4))
    link.peer.silent(0.3)
    link.recv(1, 0)
    found = link.wc()
    assert found["op"] == WC_RECV_IMM and found["imm"] == 7, found


@test("DDP-050", each=(1, 7, 50))
def a_message_in_pieces_waits_too(f, piece):
    f.policy("rnr_timeout_ms", TEN_MINUTES)
    link = f.running(rev=1, recv=0)
    link.peer.send(pattern(200), piece=piece)
    link.peer.silent(0.3)
    link.recv(1, 200)
    link.received(pattern(200))


@test("DDP-050", "DDP-049", each=(300, 1000))
def it_waits_so_long_and_no_longer(f, timeout):
    began = time.monotonic()
    link = waiting(f, timeout=timeout)
    try:
        link.peer.silent(timeout / 1000 - 0.25)
    except Violation:    # a slow machine
        assert time.monotonic() - began >= timeout / 1000
    link.refused(1, 2, 2)
    assert time.monotonic() - began < 5 * f.world.slow


@test("DDP-050")
def what_stands_behind_waits_as_well(f):
    target = f.mr(64)
    link = waiting(f)
    link.peer.write(target.rkey, target.iova, b"behind")
    link.peer.read(target.rkey, target.iova, 6)
    link.peer.silent(0.3)
    assert target.peek(0, 6) == bytes(6)
    out = f.mr(16)
    link.post("send", sge=out.sge())   # the other direction does not
    assert link.peer.expect(rdmap.SEND).payload == bytes(16)
    link.recv(1, 64)
    link.received(b"late")
    assert link.peer.expect(rdmap.READ_RESP).payload == b"behind"


@test("DDP-050")
def the_window_closes_and_opens_again(f):
    """A peer that keeps sending is stopped by TCP, and loses nothing."""
    target = f.mr(4096)
    link = waiting(f)
    data = pattern(4096)
    out, sent = link.peer.write(target.rkey, target.iova, data, hold=True), 0
    link.peer.sock.setblocking(False)
    while sent < 64 << 20:
        try:
            took = link.peer.sock.send(out)
        except BlockingIOError:
            time.sleep(0.2)
            try:
                took = link.peer.sock.send(out)
            except BlockingIOError:
                break
        sent += took
        out = out[took:] or link.peer.write(target.rkey, target.iova, data, hold=True)
    assert sent < 64 << 20, "nothing held it up"
    link.peer.sock.setblocking(True)
    link.recv(2, 64)
    link.received(b"late")
    link.peer.raw(out)
    link.peer.send(b"last")
    link.received(b"last")
    assert target.peek() == data


@test("DDP-050", each=(False, True))
def the_peer_closes_meanwhile(f, receive):
    """What came before its FIN is delivered if there is a receive in time."""
    link = waiting(f, timeout=TEN_MINUTES if receive else 500)
    link.peer.fin()
    time.sleep(0.3)
    link.no_wc()
    if receive:
        link.recv(2, 64)
        link.received(b"late")
        link.dead()
    else:
        link.refused(1, 2, 2)


@test("DDP-050")
def a_reset_does_not_wait(f):
    link = waiting(f)
    link.peer.rst()
    link.recv(1, 64)
    link.dead(timeout=3)


@test("DDP-050")
def many_wait_at_once(f):
    links = [waiting(f, bytes([n]), pattern(5000)) for n in range(20)]
    for n, link in enumerate(links):
        link.recv(2, 5000)
        link.received(bytes([n]))
        link.received(pattern(5000))


@test("DDP-050", each=("disconnect", "destroy", "error"))
def the_consumer_does_not_wait(f, how):
    link = waiting(f)
    began = time.monotonic()
    if how == "disconnect":
        f.agent.cmd("disconnect", k=link.k)
        link.peer.expect_terminate(1, 2, 2)
    elif how == "destroy":
        f.agent.cmd("destroy", k=link.k)
        f.links.remove(link)
        link.peer.expect_end()
    else:
        f.agent.cmd("modify", k=link.k, state="err")
        link.peer.expect_end()
    assert time.monotonic() - began < 4 * f.world.slow
