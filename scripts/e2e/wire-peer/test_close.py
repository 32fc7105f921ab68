# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""FIN and RST in every state of a connection. RFC 5044, 8."""

import contextlib
import subprocess
import time
import zlib
from errno import ECONNRESET

from harness import (FLUSH, OK, QP_ACCESS_ERR, QP_FATAL, STATE_ERR, STATE_SQD, STATE_SQE,
                     AgentError, NotSeen, Skip, pattern, test)
from netdev import weft_netns
from wirepeer import mpa, peer, rdmap

STATES = ("connected", "half a request", "undecided", "accepted", "half the first fpdu",
          "awaiting the rtr", "running", "half an fpdu", "half a message", "busy", "reading",
          "answering", "half a response", "adding", "condemned", "terminated", "disconnecting",
          "half closed", "initiator", "rtr not answered")


def reach(f, state):
    """A wire in that state of its life, and the agent's link if there is one."""
    if state in ("connected", "half a request"):
        wire = f.connect()
        if state == "half a request":
            wire.raw(mpa.request().build()[:11])
        return wire, None
    if state == "initiator":
        link = f.active()
        return link.peer, link
    if state == "rtr not answered":
        link = f.dialed()
        f.answer(link, mpa.Enhanced(16, 4, 1, 0, 0, 1))
        link.peer.expect(rdmap.READ_REQ)
        return link.peer, link
    if state == "awaiting the rtr":
        link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 1, 1, 1))
        return link.peer, link
    # what is busy must have something left
    wire = f.connect(rcvbuf=4096) if state in ("busy", "disconnecting") else None
    link = f.passive(accept=state != "undecided", rev=1, wire=wire)
    if state == "half the first fpdu":
        link.peer.raw(link.peer.send(b"never whole", hold=True)[:15])
    elif state not in ("undecided", "accepted"):
        link.start_responder()
        link.event("ESTABLISHED")
        ACTIONS.get(state, lambda f, link: None)(f, link)
    return link.peer, link


def half_an_fpdu(f, link):
    link.peer.raw(link.peer.send(b"never whole", hold=True)[:15])


def half_a_message(f, link):
    link.peer.send(b"and no more comes", last=0)


def busy(f, link):
    source = f.mr(4 << 20)
    link.post("send", sge=source.sge())


def reading(f, link):
    sink = f.mr(4096, access="l")
    link.post("read", sge=sink.sge(), raddr=0x1000, rkey=0x51A6)
    link.request = rdmap.ReadRequest(link.peer.expect(rdmap.READ_REQ).payload)


def half_a_response(f, link):
    reading(f, link)
    link.peer.read_response(link.request, bytes(100), last=0)


def answering(f, link):
    source = f.mr(1 << 20)
    link.peer.read(source.rkey, source.iova, source.len)


def adding(f, link):
    sink = f.mr(8, access="l")
    link.post("fadd", sge=sink.sge(), raddr=0x1000, rkey=0x51A6, add=1)
    link.peer.expect(rdmap.ATOMIC_REQ)


def terminated(f, link):
    """weft has sent everything; the peer may still close either way."""
    link.peer.write(1, 2, b"bad")
    link.peer.expect_terminate(1, 1, 0, link.peer.last_ulpdu)


def condemned(f, link):
    """A fault is on its way, its Terminate perhaps too."""
    link.peer.send(b"bad", fpdu=dict(crc_xor=1))


def disconnecting(f, link):
    busy(f, link)
    f.agent.cmd("disconnect", k=link.k)


def half_closed(f, link):
    f.agent.cmd("disconnect", k=link.k)
    link.peer.expect_end(reset=False)


ACTIONS = {"half an fpdu": half_an_fpdu, "half a message": half_a_message, "busy": busy,
         "reading": reading, "answering": answering, "half a response": half_a_response,
         "adding": adding, "condemned": condemned, "terminated": terminated,
         "disconnecting": disconnecting, "half closed": half_closed}
# An end alone is no asynchronous event; a fault in front of it is.
TOLD = {"condemned": QP_FATAL, "terminated": QP_ACCESS_ERR}
# no consumer knows of them, or has a QP to lose
QUIET = ("connected", "half a request", "undecided")


# in these states a request is under way, not answered or not sent to its end
UNDER_WAY = ("busy", "reading", "half a response", "adding", "disconnecting")


def gone(link, state, due=FLUSH):
    """The consumer learns of the end: all it posted completes once, the QP is in error."""
    assert len(link.requests) == (state in UNDER_WAY), link.requests
    if state != "awaiting the rtr":
        link.dead(TOLD.get(state))
    else:
        assert link.event("ESTABLISHED")["status"] == 0
        link.event("DISCONNECTED")
        for wr in list(link.posted):
            link.wc(wr=wr, status=FLUSH)
        assert link.state()["state"] == STATE_ERR
    for wr in list(link.requests):
        link.wc(wr=wr, status=due)
    assert not link.posted
    link.no_wc()


@test("MPA-064", "MPA-008", "MPA-063", "DDP-045", each=STATES)
def a_fin_in_every_state(f, state):
    wire, link = reach(f, state)
    wire.fin()
    sent = []
    try:
        while wire.rx:
            sent.append(wire.message().opcode)
        wire.expect_end()
    except peer.Closed as end:
        assert end.reset or not end.rest, "an FPDU cut short: %s" % end.rest[:32].hex()
    wire.close()
    # a consumer that disconnects has everything sent first; else a FIN cuts it off
    whole = state == "disconnecting"
    assert (rdmap.SEND in sent) == whole, sent
    if state not in QUIET:
        gone(link, state, OK if whole else FLUSH)
    elif state == "undecided":
        try:
            f.agent.cmd("accept", k=link.k)
        except AgentError:
            pass


@test("MPA-064", each=STATES)
def a_reset_in_every_state(f, state):
    wire, link = reach(f, state)
    wire.rst()
    if state not in QUIET:
        gone(link, state)


@test("MPA-064", "CM-022", each=("fin", "rst"))
def the_initiators_peer_leaves_before_the_reply(f, how):
    listener = f.listen()
    link = f.dialed(listener)
    getattr(link.peer, how)()
    try:
        # an enhanced request that is closed upon is tried again plainly
        again = listener.accept(2)
        again.read_request()
        getattr(again, how)()
    except (peer.Timeout, peer.Closed):
        pass
    link.connect_fails("REJECTED", ECONNRESET)


@test("MPA-064", "CM-018", each=("fin", "rst"))
def the_initiators_peer_leaves_in_mid_reply(f, how):
    for size in (1, 16, 20, 23):
        link = f.dialed()
        whole = mpa.reply(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 0, 1, 0)).build()
        link.peer.raw(whole[:size])
        time.sleep(0.02)
        getattr(link.peer, how)()
        link.connect_fails("REJECTED", ECONNRESET)
        for wr in link.posted:
            f.agent.wait("wc", 5, k=link.k, wr=wr, status=FLUSH)


@test("RDMAP-086")
def a_terminate_goes_out_though_the_consumer_lets_go_of_its_id(f):
    """iw_cm knows of the end by then, and makes no abort of it."""
    source = f.mr(4 << 20)
    link = f.running(rev=1)
    link.peer.sock.setsockopt(1, 8, 4096)
    link.peer.read(source.rkey, source.iova, source.len)
    link.peer.segment()
    link.peer.write(1, 1, b"refused")
    end = time.monotonic() + f.world.timeout
    while link.state()["state"] not in (STATE_ERR, STATE_SQE):
        assert time.monotonic() < end, link.state()
    time.sleep(0.5 * f.world.slow)
    f.agent.cmd("letgo", k=link.k)
    time.sleep(0.2)
    while True:
        s = link.peer.segment(20)
        if s.opcode != rdmap.READ_RESP:
            break
    assert s.opcode == rdmap.TERMINATE, s
    assert rdmap.Terminate.parse(s.payload).what == (1, 1, 0), s
    link.peer.expect_end()
    assert f.agent.wait("async", 3, k=link.k)["type"] == QP_ACCESS_ERR
    link.over = True


@test()
def a_qp_that_closes_is_draining(f):
    wire = f.connect(rcvbuf=4096)
    link = f.passive(rev=1, wire=wire)
    link.start_responder()
    link.event("ESTABLISHED")
    assert link.state()["draining"] == 0
    disconnecting(f, link)
    found = link.state()
    assert (found["state"], found["draining"]) == (STATE_SQD, 1), found


@test("VERBS-024", "RDMAP-085", "RDMAP-046")
def a_close_waits_for_a_read_that_comes_in_slowly(f):
    """Nothing is left to be acknowledged: the bytes of the response are the peer's progress."""
    f.policy("close_timeout_ms", 500)
    piece, count = 1 << 17, 32
    data = [pattern(1 << 12, n) * (piece >> 12) for n in range(count)]
    sink = f.mr(piece * count, access="l")
    link = f.running(rev=1)
    wr = link.post("read", sge=sink.sge(), raddr=0x1000, rkey=0x51A6)
    request = rdmap.ReadRequest(link.peer.expect(rdmap.READ_REQ).payload)
    f.agent.cmd("disconnect", k=link.k)
    to = request.sink_to
    for part in data[:-1]:
        time.sleep(0.1)     # 3 s in all
        link.peer.read_response(request, part, to=to, last=False)
        to += piece
    link.peer.read_response(request, data[-1], to=to)
    link.wc(wr=wr)
    link.peer.expect_end(reset=False)
    link.peer.fin()
    link.dead()
    assert sink.crc32() == zlib.crc32(b"".join(data))


def fill_tcp(f, size):
    """A link whose peer reads nothing, and how many of its Sends have completed since."""
    link = f.running(rev=1, qp=dict(sq=2000), wire=f.connect(rcvbuf=4096))
    source = f.mr(size)
    source.poke(pattern(size))
    wrs, done = [], 0
    while len(wrs) - done < 4:
        wrs.append(link.post("send", sge=source.sge()))
        try:
            while done < len(wrs):
                link.wc(wr=wrs[done], timeout=0.2)
                done += 1
        except NotSeen:
            pass
    return link, done


@test("MPA-062", each=("destroy", "error", "peer's fin"))
def what_has_completed_goes_out_before_the_end(f, how):
    """TCP is full, and has mostly taken nothing of the batch behind. Where it has taken a part of
    one, an FPDU is torn: then the end is a reset."""
    for size in (600, 1300, 5000, 9000):
        link, done = fill_tcp(f, size)
        if how == "destroy":
            f.agent.cmd("destroy", k=link.k)
            f.links.remove(link)
        elif how == "error":
            f.agent.cmd("modify", k=link.k, state="err")
        else:
            link.peer.fin()
        time.sleep(0.2 * f.world.slow)
        came = 0
        try:
            while True:
                assert link.peer.expect(rdmap.SEND).payload == pattern(size)
                came += 1
        except peer.Closed as end:
            assert not end.rest or end.reset, end.rest[:32].hex()
            if not end.reset:
                assert came >= done, "%d completed, %d came" % (done, came)
                return
        link.peer.close()
    raise AssertionError("each end was a reset")


@contextlib.contextmanager
def all_is_lost():
    """What weft sends."""
    try:
        weft_netns("tc", "qdisc", "add", "dev", "va", "root", "netem", "loss", "100%")
    except subprocess.CalledProcessError:
        raise Skip("no netem here") from None
    try:
        yield
    finally:
        weft_netns("tc", "qdisc", "del", "dev", "va", "root")


@test("MPA-062")
def an_end_that_is_lost_is_sent_again(f):
    """The socket is released by then. Its timers go on, as long as they may use the namespace."""
    link = f.running(rev=1)
    with all_is_lost():
        f.agent.cmd("modify", k=link.k, state="err")
        link.event("DISCONNECTED")
    link.peer.expect_end(reset=False)
    link.peer.close()


def destroyed(f, link):
    """Long before the deadlines of its connect."""
    f.agent.cmd("destroy", k=link.k, timeout=10)
    f.links.remove(link)


@test(each=("SYN", "request"))
def a_qp_is_destroyed_while_it_connects(f, unanswered):
    """It does not wait for the peer."""
    for name in "tcp_connect_timeout_ms", "mpa_reply_timeout_ms":
        f.policy(name, 600000)
    if unanswered == "request":
        link = f.dialed()
        destroyed(f, link)
        link.peer.expect_end()
        return
    link = f.resolved(f.listen())
    with all_is_lost():
        f.agent.cmd("connect", k=link.k)
        destroyed(f, link)
