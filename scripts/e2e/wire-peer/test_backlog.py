# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""More connections than a listener takes: which wait, are reported, or are dropped."""

import contextlib
import json
import os
import signal
import subprocess
import time

from harness import AgentError, Link, test

PORT = 7481
# As in drivers/weft/cm/backlog.c.
WAITING_MAX = 512


@contextlib.contextmanager
def hung(f):
    """The consumer does not read its events."""
    pid = f.agent.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def listen(f, backlog, port=PORT):
    k = f.agent.cmd("listen", addr=f.world.weft, port=port, backlog=backlog)["k"]

    def destroy():
        with contextlib.suppress(AgentError):
            f.agent.cmd("destroy", k=k)
    f.undo.append(destroy)
    return k


def held(name, backlog):
    """What resource tracking shows of the listener with that backlog."""
    text = subprocess.run(["rdma", "-j", "-dd", "resource", "show", "cm_id"], check=True,
                          capture_output=True, text=True).stdout
    found = [row["drv_" + name] for row in json.loads(text or "[]")
             if row.get("drv_kind") == "listener" and row["drv_backlog"] == backlog]
    assert len(found) == 1, text
    return found[0]


def ask(f, count, port=PORT):
    """Connections whose whole request is out."""
    wires = []
    for _ in range(count):
        wires.append(f.connect(port=port))
        wires[-1].send_request(rev=1)
    return wires


def serve(f, listener, wires):
    """Accept each as it is asked for: about in the order in which they connected, as each is
    read by a worker of its own."""
    for wire in wires:
        link = Link(f, wire, f.asked(timeout=10, listener=listener)["k"])
        f.links.append(link)
        f.domain_of[link.k] = "pd"
        f.agent.cmd("qp", k=link.k, pd="pd", cq="cq", sq=4, rq=4)
        f.agent.cmd("accept", k=link.k)
    for wire in wires:
        reply = wire.read_reply()
        assert reply.r == 0, "rejected: %s" % reply


@test(each=(1, 4))
def what_exceeds_the_backlog_waits(f, backlog):
    """No request is refused because the consumer is busy."""
    listener = listen(f, backlog)
    with hung(f):
        wires = ask(f, 40)
        time.sleep(1)       # time enough to tell the consumer of more than it wants
    serve(f, listener, wires)


@test()
def requests_may_be_collected_before_one_is_answered(f):
    listener = listen(f, 2)
    wires = ask(f, 30)
    asked = [f.asked(timeout=10, listener=listener) for _ in wires]
    for event in asked:
        f.agent.cmd("reject", k=event["k"])
        f.agent.cmd("destroy", k=event["k"])
    for wire in wires:
        assert wire.read_reply().r == 1


@test()
def requests_of_a_busy_consumer_are_bounded(f):
    """Some are reported to the consumer, some are read; the rest stay in TCP's queue."""
    listener = listen(f, 7)
    with hung(f):
        wires = ask(f, 700)
        time.sleep(1)
        told = held("pending_accept", 7)
        queued = held("queued", 7)
        waiting = held("pending_mpa_request", 7)
        for wire in wires[20:]:
            wire.rst()
    assert 7 <= told <= 8, told
    # One more: offered to rdma_cm, refused by it and queued again, with as many behind it.
    assert 1 <= queued <= WAITING_MAX + 1, queued
    assert waiting <= WAITING_MAX, waiting
    assert told + queued + waiting < 600
    serve(f, listener, wires[:7])


@test()
def many_silent_conns_are_bounded_and_exclude_no_other(f):
    listener = listen(f, 1023)
    socks = [f.connect(port=PORT) for _ in range(WAITING_MAX + 400)]
    time.sleep(0.2)
    waiting = held("pending_mpa_request", 1023)
    assert 100 < waiting <= WAITING_MAX, waiting
    began = time.monotonic()
    serve(f, listener, ask(f, 3))
    assert time.monotonic() - began < 5 * f.world.slow
    assert socks


FLOOD = r"""
import socket, sys, time
end = time.monotonic() + float(sys.argv[3])
socks = []
while time.monotonic() < end:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((sys.argv[1], int(sys.argv[2])))
    socks.append(sock)
    if len(socks) > 2000:
        socks.pop(0).close()
"""


@test()
def a_flood_does_not_hold_off_the_end_of_a_listener(f):
    listener = listen(f, 1023)
    floods = [subprocess.Popen(["python3", "-c", FLOOD, f.world.weft, str(PORT), "8"])
              for _ in range(4)]
    try:
        time.sleep(2)
        assert held("pending_mpa_request", 1023) <= WAITING_MAX
        honest = ask(f, 1)
        serve(f, listener, honest)
        began = time.monotonic()
        f.agent.cmd("destroy", k=listener)
        took = time.monotonic() - began
        assert took < 2 * f.world.slow, "after %.1f s" % took
    finally:
        for flood in floods:
            flood.kill()
            flood.wait()


@test()
def an_initiator_that_left_keeps_its_place_until_it_is_answered(f):
    """rdma_cm keeps its request as well, so that its place is taken for others."""
    listener = listen(f, 2)
    with hung(f):
        for wire in ask(f, 10):
            wire.close()
        later = ask(f, 2)
        time.sleep(0.5)
    told = 0
    for _ in range(12):
        with contextlib.suppress(AssertionError):
            k = f.asked(timeout=2, listener=listener)["k"]
            told += 1
            try:
                f.agent.cmd("reject", k=k)
            except AgentError as error:
                assert error.errno == 104, error
            f.agent.cmd("destroy", k=k)
    assert told >= 2
    for wire in later:
        assert wire.read_reply().r == 1


@test("CM-036")
def a_request_outlives_its_listener(f):
    """The consumer may close it and take its time, up to what the manual says."""
    f.policy("accept_timeout_ms", 16000)
    listener = listen(f, 4)
    wire, late = ask(f, 2)
    asked, asked_late = (f.asked(listener=listener) for _ in range(2))
    f.agent.cmd("destroy", k=listener)
    time.sleep(11)          # longer than once it lived
    link = Link(f, wire, asked["k"])
    f.links.append(link)
    f.domain_of[link.k] = "pd"
    f.agent.cmd("qp", k=link.k, pd="pd", cq="cq", sq=4, rq=4)
    f.agent.cmd("accept", k=link.k)
    assert wire.read_reply().r == 0
    late.expect_end(timeout=10)
    f.agent.cmd("destroy", k=asked_late["k"])


@test()
def unreported_requests_end_with_the_listener(f):
    listener = listen(f, 1)
    silent = f.connect(port=PORT)
    with hung(f):
        wires = ask(f, 3)
        time.sleep(0.5)
    f.agent.cmd("destroy", k=listener)
    for wire in [silent] + wires[2:]:
        wire.expect_end(timeout=5)
