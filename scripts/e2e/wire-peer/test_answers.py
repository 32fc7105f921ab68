# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Answers that a consumer retracts, QPs that cannot be connected, bad private data."""

import socket
import time
from errno import ECONNREFUSED, ECONNRESET, EINVAL, EPROTO

import netdev
from harness import AgentError, test
from wirepeer import mpa

P2P = mpa.Enhanced(4, 4, 1, 1, 1, 1)
READ_ONLY = mpa.Enhanced(0, 0, a=1, d=1)


def fails(errno, f, *command, **fields):
    try:
        f.agent.cmd(*command, **fields)
    except AgentError as error:
        assert error.errno == errno, error
        return
    raise AssertionError("%s succeeds" % command[0])


def of_no_event(f, *links):
    """The peer is cut off, the consumer gets no event; QP and id can be destroyed at once."""
    links[-1].peer.expect_end(timeout=5)
    time.sleep(0.2)
    for link in links:
        f.agent.none("event", k=link.k)
        began = time.monotonic()
        f.agent.cmd("destroy", k=link.k)
        assert time.monotonic() - began < 3 * f.world.slow
        f.links.remove(link)


@test()
def a_reject_after_the_accept(f):
    """iw_cm allows no event after it, and would BUG() on one."""
    link = f.passive(rev=2, enhanced=P2P)
    f.agent.cmd("reject", k=link.k)
    of_no_event(f, link)


@test()
def a_reject_after_the_accept_and_then_the_first_message(f):
    link = f.passive(rev=2, enhanced=P2P)
    f.agent.cmd("reject", k=link.k)
    try:
        link.start_responder()
    except OSError:
        pass
    of_no_event(f, link)


@test()
def a_reject_after_the_accept_leaves_other_qps_alone(f):
    """One that is connected has a reference of iw_cm, too, which is put when it is destroyed."""
    other = f.running()
    link = f.passive(rev=2, enhanced=P2P)
    f.agent.cmd("reject", k=link.k)
    of_no_event(f, other, link)


@test()
def a_second_accept(f):
    """It fails, and no reference to the QP is left behind. The QP is not the id's own, or
    librdmacm would look at its state."""
    other = f.resolved(f.listen())
    qpn = other.state()["qpn"]
    link = f.passive(accept=False, rev=2, enhanced=P2P)
    f.agent.cmd("accept", k=link.k, qpn=qpn)
    assert link.peer.read_reply().r == 0
    fails(EINVAL, f, "accept", k=link.k, qpn=qpn)
    of_no_event(f, other, link)


@test()
def answers_after_established(f):
    """Nothing changes."""
    link = f.running()
    fails(EINVAL, f, "accept", k=link.k)
    link = f.running()
    fails(EINVAL, f, "reject", k=link.k)
    link.peer.send(b"still here")
    link.received(b"still here")


def bare(f, listener):
    """An id of an initiator, without a QP."""
    k = f.agent.cmd("resolve", addr=f.world.own, port=listener.port)["k"]
    f.undo.append(lambda: f.agent.cmd("destroy", k=k))
    return k


def qp_of(f, state):
    """The number of a QP of another id: failed, or connected, or being connected."""
    if state == "connected":
        return f.running().state()["qpn"]
    if state == "connecting":
        return f.dialed().state()["qpn"]
    link = f.resolved(f.listen())
    f.agent.cmd("modify", k=link.k, state="err")
    return link.state()["qpn"]


STATES = ("failed", "connected", "connecting")


@test("CM-003", each=STATES)
def a_connect_with_a_qp_that_cannot_be_connected(f, state):
    listener = f.listen()
    qpn = qp_of(f, state)
    k = bare(f, listener)
    fails(EINVAL, f, "connect", k=k, qpn=qpn)
    assert not listener.is_connecting(0.5), "TCP was connected"
    f.agent.none("event", k=k)


@test()
def a_connect_with_no_qp_at_all(f):
    listener = f.listen()
    k = bare(f, listener)
    fails(EINVAL, f, "connect", k=k, qpn=0xFFFFFF)
    assert not listener.is_connecting(0.5), "TCP was connected"
    f.agent.none("event", k=k)


@test()
def an_accept_of_terms_that_cannot_be_met(f):
    """The initiator is ready with a zero-length Read only, and there is no place for one."""
    f.policy("ird_max", 0)
    link = f.passive(accept=False, rev=2, enhanced=READ_ONLY)
    f.agent.cmd("qp", k=link.k, pd="pd", cq="cq", rq=8)
    fails(EPROTO, f, "accept", k=link.k, ird=0, ord=0)
    assert link.peer.read_reply().r == 1
    f.agent.none("event", k=link.k)


@test()
def the_qp_of_an_accept_that_failed_connects(f):
    """A QP of another id, as librdmacm makes that of its own fail."""
    f.policy("ird_max", 0)
    listener = f.listen()
    qpn = f.resolved(listener).state()["qpn"]
    link = f.passive(accept=False, rev=2, enhanced=READ_ONLY)
    fails(EPROTO, f, "accept", k=link.k, qpn=qpn, ird=0, ord=0)
    assert link.peer.read_reply().r == 1
    k = bare(f, listener)
    f.agent.cmd("connect", k=k, qpn=qpn)
    wire = listener.accept()
    f.peers.append(wire)
    wire.read_request()
    wire.send_reply(rev=2, enhanced=mpa.Enhanced(0, 0, 1, 1, 1, 1))
    found = f.agent.wait("event", 5, k=k)
    assert (found["type"], found["status"]) == ("ESTABLISHED", 0), found


@test("CM-003", each=STATES)
def an_accept_with_a_qp_that_cannot_be_connected(f, state):
    """The initiator is rejected, and the consumer's accept fails."""
    qpn = qp_of(f, state)
    link = f.passive(accept=False, rev=1)
    fails(EINVAL, f, "accept", k=link.k, qpn=qpn)
    assert link.peer.read_reply().r == 1
    f.agent.none("event", k=link.k)


@test("CM-003")
def the_qp_of_a_refused_connect_connects_again(f):
    link = f.dialed()
    k, qpn = bare(f, f.listen()), link.state()["qpn"]
    fails(EINVAL, f, "connect", k=k, qpn=qpn)
    f.answer(link)
    link.event("ESTABLISHED")


@test("CM-003")
def the_qp_of_a_rejected_connect_connects_again(f):
    """Through ids without a QP: librdmacm makes the QP of a rejected one fail."""
    listener = f.listen()
    qpn = f.resolved(listener).state()["qpn"]
    for r in (1, 1, 0):
        k = bare(f, listener)
        f.agent.cmd("connect", k=k, qpn=qpn)
        wire = listener.accept()
        f.peers.append(wire)
        wire.read_request()
        wire.send_reply(r=r, rev=2, enhanced=P2P)
        found = f.agent.wait("event", 5, k=k)
        due = ("REJECTED", -ECONNREFUSED) if r else ("ESTABLISHED", 0)
        assert (found["type"], found["status"]) == due, found


LEAVING = ("fin", "rst")


def left(f, how):
    """A request whose initiator has gone, and TCP of weft knows that."""
    link = f.passive(accept=False, rev=1)
    f.agent.cmd("qp", k=link.k, pd="pd", cq="cq")
    port = link.peer.sock.getsockname()[1]
    getattr(link.peer, how)()
    end = time.monotonic() + 5 * f.world.slow
    while netdev.weft_netns("ss", "-tnH", "state", "established", "dport", "=", ":%u" % port):
        assert time.monotonic() < end, "it is still connected"
        time.sleep(0.02)
    return link


def answer_after_it_left(f, how, command):
    """It fails; there is no event."""
    link = left(f, how)
    fails(ECONNRESET, f, command, k=link.k)
    time.sleep(0.2)
    f.agent.none("event", k=link.k)


@test(each=LEAVING)
def an_accept_of_an_initiator_that_left(f, how):
    answer_after_it_left(f, how, "accept")


@test(each=LEAVING)
def a_reject_of_an_initiator_that_left(f, how):
    answer_after_it_left(f, how, "reject")


@test()
def an_initiator_that_left_is_let_go_before_it_is_answered(f):
    """TCP does not wait for the consumer."""
    link = left(f, "fin")
    link.peer.expect_end(reset=False)
    fails(ECONNRESET, f, "reject", k=link.k)


@test(each=("between FPDUs", "within one"))
def urgent_data_ends_the_stream(f, where):
    """TCP reads no further than up to it, so that nothing that follows would be seen."""
    link = f.running(rev=1)
    if where == "within one":
        link.peer.raw(link.peer.send(b"never whole", hold=True)[:15])
    link.peer.sock.send(b"!", socket.MSG_OOB)
    link.terminated(2, 0, 5)
