# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""More connections than a listener takes: which wait, are reported, or are dropped."""

import contextlib
import errno
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

from harness import AgentError, Link, Skip, eventually, test
from shortage import Shortage
from wirepeer.peer import Peer

PORT = 7481
# As in drivers/weft/cm/backlog.c.
WAITING_MAX = OFFERED_MAX = 512
# Listeners for a wildcard share a socket, see drivers/weft/cm/wildcard.c.
BOUND_TO = ("address", "wildcard")


@contextlib.contextmanager
def hung(f):
    """The consumer does not read its events."""
    pid = f.agent.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def listen(f, backlog, port=PORT, bound_to="address"):
    addr = "0.0.0.0" if bound_to == "wildcard" else f.world.weft
    k = f.agent.cmd("listen", addr=addr, port=port, backlog=backlog)["k"]

    def destroy():
        with contextlib.suppress(AgentError):
            f.agent.cmd("destroy", k=k)
    f.undo.append(destroy)
    return k


def held(name, backlog, dev=None):
    """What resource tracking shows of the listener with that backlog; of a device, if there are
    more."""
    text = subprocess.run(["rdma", "-j", "-dd", "resource", "show", "cm_id"], check=True,
                          capture_output=True, text=True).stdout
    found = [row["drv_" + name] for row in json.loads(text or "[]")
             if row.get("drv_kind") == "listener" and row["drv_backlog"] == backlog
             and dev in (None, row["ifname"])]
    assert len(found) == 1, text
    return found[0]


def await_waiting(f, backlog, count):
    """So many requests are offered to the consumer or queued for it."""
    eventually(f, lambda: held("pending_accept", backlog) + held("queued", backlog) >= count,
               lambda: "%u do not wait" % count)


def ask(f, count, port=PORT, pd=b""):
    """Connections whose whole request is out."""
    wires = []
    for _ in range(count):
        wires.append(f.connect(port=port))
        wires[-1].send_request(rev=1, pd=pd)
    return wires


def taken_from_tcp(f, backlog, count, dev=None, **where):
    """Connections that ask for nothing yet: none is taken while a request is queued."""
    wires = [f.connect(**dict(port=PORT) | where) for _ in range(count)]
    eventually(f, lambda: held("pending_mpa_request", backlog, dev) == count,
               lambda: "%u are taken" % held("pending_mpa_request", backlog, dev))
    return wires


def ask_in_turn(f, backlog, wires):
    """Requests that are offered in this order: each is read by a worker of its own."""
    for i, wire in enumerate(wires):
        wire.send_request(rev=1, pd=b"%u" % i)
        await_waiting(f, backlog, i + 1)


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
def a_request_that_rdma_cm_refuses_keeps_its_turn(f):
    """It is the next one again. Each is sent when the one before waits already."""
    listener = listen(f, 1)
    # All are taken from TCP before the first one asks: none is as long as a request is queued.
    wires = [f.connect(port=PORT) for _ in range(8)]
    eventually(f, lambda: held("pending_mpa_request", 1) >= len(wires),
               lambda: "they are not taken")
    with hung(f):
        ask_in_turn(f, 1, wires)
        time.sleep(1)       # time enough to offer one that is refused
    for i in range(len(wires)):
        asked = f.asked(timeout=10, listener=listener)
        assert bytes.fromhex(asked["pdata"]) == b"%u" % i, asked
        f.agent.cmd("reject", k=asked["k"])
        f.agent.cmd("destroy", k=asked["k"])
    for wire in wires:
        assert wire.read_reply().r == 1


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
def a_consumer_that_answers_none_gets_512_requests(f):
    """Each that it answers makes room for another one."""
    listener = listen(f, 64)
    wires = ask(f, OFFERED_MAX + 20)
    eventually(f, lambda: held("pending_accept", 64) >= OFFERED_MAX,
               lambda: "they are not offered", 30)
    time.sleep(0.5)
    assert held("pending_accept", 64) == OFFERED_MAX
    assert held("queued", 64) >= 1
    for _ in wires:
        asked = f.asked(timeout=10, listener=listener)
        f.agent.cmd("reject", k=asked["k"])
        f.agent.cmd("destroy", k=asked["k"])
    for wire in wires:
        assert wire.read_reply().r == 1


@test()
def requests_of_a_busy_consumer_are_bounded(f):
    """Some are reported to the consumer, some are read; the rest stay in TCP's queue."""
    listener = listen(f, 7)
    with hung(f):
        wires = ask(f, 20)
        # From now on TCP keeps what comes: none is taken while a request is queued.
        eventually(f, lambda: held("pending_accept", 7) >= 7 and held("queued", 7) >= 1,
                   lambda: "none is queued")
        others = ask(f, 680)
        time.sleep(1)
        told = held("pending_accept", 7)
        queued = held("queued", 7)
        waiting = held("pending_mpa_request", 7)
        for wire in others:
            wire.rst()
    assert 7 <= told <= 8, told
    # One more: offered to rdma_cm, refused by it and queued again, with as many behind it.
    assert 1 <= queued <= WAITING_MAX + 1, queued
    assert waiting <= WAITING_MAX, waiting
    assert told + queued + waiting < 600
    serve(f, listener, wires)


@test(each=BOUND_TO)
def many_silent_conns_are_bounded_and_exclude_no_other(f, bound_to):
    f.policy("mpa_request_timeout_ms", 120000)      # none leaves by itself
    listener = listen(f, 1023, bound_to=bound_to)
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


@test(each=BOUND_TO)
def a_flood_does_not_hold_off_the_end_of_a_listener(f, bound_to):
    listener = listen(f, 1023, bound_to=bound_to)
    floods = [subprocess.Popen(["python3", "-c", FLOOD, f.world.weft, str(PORT), "60"])
              for _ in range(4)]
    try:
        time.sleep(2)
        assert held("pending_mpa_request", 1023) <= WAITING_MAX
        honest = ask(f, 1)
        serve(f, listener, honest)
        began = time.monotonic()
        f.agent.cmd("destroy", k=listener)
        took = time.monotonic() - began
        assert took < 10 * f.world.slow, "after %.1f s" % took
    finally:
        for flood in floods:
            flood.kill()
            flood.wait()


# Moments for others, 20 ms apart, of the CPU that it stays on.
HOG = r"""
import os, time
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while True:
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
    time.sleep(0.00005)
"""


def put(file, value):
    """The scheduler answers EBUSY where the deadline tasks of a moment do not fit."""
    end = time.monotonic() + 10
    while True:
        try:
            file.write_text(value, encoding="ascii")
            return
        except OSError as err:
            if err.errno != errno.EBUSY or time.monotonic() > end:
                raise
        time.sleep(0.05)


@contextlib.contextmanager
def settings(values):
    """Files of the kernel, put back at the end; those that it does not have are left out."""
    files = [(pathlib.Path(path), value) for path, value in values.items()]
    before = [(file, file.read_text(encoding="ascii")) for file, _ in files if file.exists()]
    try:
        for file, value in files:
            if file.exists():
                put(file, value)
        yield
    finally:
        for file, value in reversed(before):
            put(file, value)


@contextlib.contextmanager
def slow_acceptor(f):
    """What takes connections off TCP gets moments of CPU 0 only, whatever lock it holds. This
    program and the agent have CPU 1."""
    cpus = os.sched_getaffinity(0)
    if not {0, 1} <= cpus:
        raise Skip("there is one CPU")
    with settings({"/sys/devices/virtual/workqueue/cpumask": "1",
                   "/proc/sys/kernel/sched_rt_runtime_us": "-1",
                   "/sys/kernel/debug/sched/fair_server/cpu0/runtime": "0"}):
        hog = subprocess.Popen(["python3", "-c", HOG])
        try:
            for pid in 0, f.agent.process.pid:
                os.sched_setaffinity(pid, {1})
            time.sleep(0.5)
            yield hog
        finally:
            hog.kill()
            hog.wait()
            for pid in 0, f.agent.process.pid:
                os.sched_setaffinity(pid, cpus)


def was_taken(sock):
    """A listener that ends closes those it has taken; TCP resets those in its queue."""
    sock.settimeout(20)
    try:
        return not sock.recv(1)
    except ConnectionResetError:
        return False


def taken_until_the_end(f, bound_to, count):
    """Of so many connections, by a listener that is closed as soon as it has taken one."""
    listener = listen(f, 1023, bound_to=bound_to)
    socks = []
    with slow_acceptor(f) as hog:
        for _ in range(count):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex((f.world.weft, PORT))
            socks.append(sock)
        deadline = time.monotonic() + 30 * f.world.slow
        while not held("pending_mpa_request", 1023):
            assert time.monotonic() < deadline, "none is taken"
        # The end begins before that, and then nothing has to hold it up on a busy machine.
        relief = threading.Timer(5, hog.kill)
        relief.start()
        f.agent.cmd("destroy", k=listener)
        relief.cancel()
    taken = sum(map(was_taken, socks))
    for sock in socks:
        sock.close()
    return taken


@test(each=BOUND_TO)
def connections_under_way_do_not_hold_off_the_end_of_a_listener(f, bound_to):
    """It ends amid them, and leaves the rest in TCP's queue. A machine that gives time to others
    may let it take all before its end begins, but not each time."""
    for _ in range(5):
        taken = taken_until_the_end(f, bound_to, 450)
        assert taken
        if taken < 450:
            return
    raise AssertionError("all were taken")


@test()
def an_initiator_that_left_keeps_its_place_until_it_is_answered(f):
    """rdma_cm keeps its request as well, so that its place is taken for others."""
    listener = listen(f, 2)
    with hung(f):
        for wire in ask(f, 10):
            wire.close()
        later = ask(f, 2, pd=b"later")
        time.sleep(0.5)
    told, waiting = 0, len(later)
    for _ in range(12):
        # Those that left need not be told of.
        with contextlib.suppress(AssertionError):
            asked = f.asked(timeout=2 if waiting else 0.1, listener=listener)
            told += 1
            waiting -= asked["pdata"] == b"later".hex()
            try:
                f.agent.cmd("reject", k=asked["k"])
            except AgentError as error:
                assert error.errno == 104, error
            f.agent.cmd("destroy", k=asked["k"])
    assert told >= 2
    for wire in later:
        assert wire.read_reply().r == 1


@test()
def an_initiator_that_leaves_the_queue_is_forgotten(f):
    """The consumer was not told of it, so there is no answer to wait for."""
    listener = listen(f, 2)
    with hung(f):
        stay = ask(f, 2, pd=b"stay")
        await_waiting(f, 2, len(stay))
        leave = taken_from_tcp(f, 2, 10)
        for wire in leave:
            wire.send_request(rev=1)
        await_waiting(f, 2, len(stay) + len(leave))
        for wire in leave:
            wire.close()
        eventually(f, lambda: held("pending_accept", 2) + held("queued", 2) == len(stay),
                   lambda: "%u are queued" % held("queued", 2))
    for wire in stay:
        asked = f.asked(listener=listener)
        assert asked["pdata"] == b"stay".hex(), asked
        f.agent.cmd("reject", k=asked["k"])
        f.agent.cmd("destroy", k=asked["k"])
    for wire in stay:
        assert wire.read_reply().r == 1


@test(each=BOUND_TO)
def a_connection_that_found_no_memory_is_taken_later(f, bound_to):
    """TCP does not say again that it waits, and no other comes."""
    listener = listen(f, 4, bound_to=bound_to)
    sock = socket.socket()
    with Shortage("sock_inode_cache", times=1) as shortage:
        sock.connect((f.world.weft, PORT))
        eventually(f, shortage.is_over, lambda: "it was taken at once")
    wire = Peer(sock, f.world.timeout)
    f.peers.append(wire)
    wire.send_request(rev=1)
    asked = f.asked(listener=listener)
    f.agent.cmd("reject", k=asked["k"])
    assert wire.read_reply().r == 1
    f.agent.cmd("destroy", k=asked["k"])


@test(each=BOUND_TO)
def a_connection_that_found_no_memory_of_its_own_is_closed(f, bound_to):
    """It is off TCP's queue by then, so nothing would come back to it."""
    listener = listen(f, 4, bound_to=bound_to)
    with Shortage("kmalloc-2k"):
        f.connect(port=PORT).expect_end(timeout=5 * f.world.slow)
    wire, = ask(f, 1)
    asked = f.asked(listener=listener)
    f.agent.cmd("reject", k=asked["k"])
    assert wire.read_reply().r == 1
    f.agent.cmd("destroy", k=asked["k"])


@test()
def a_request_that_found_no_memory_is_told_later(f):
    """iw_cm copies the private data, into a piece of a size that nothing else wants now."""
    listener = listen(f, 4)
    wire = f.connect(port=PORT)
    eventually(f, lambda: held("pending_mpa_request", 4) == 1, lambda: "it is not taken")
    with Shortage("kmalloc-192", times=1) as shortage:
        wire.send_request(rev=1, pd=bytes(150))
        eventually(f, shortage.is_over, lambda: "it was told at once")
    asked = f.asked(listener=listener)
    assert bytes.fromhex(asked["pdata"]) == bytes(150), asked
    f.agent.cmd("reject", k=asked["k"])
    assert wire.read_reply().r == 1
    f.agent.cmd("destroy", k=asked["k"])


@test("CM-036")
def a_request_outlives_its_listener(f):
    """The consumer may close it and take its time: its own, not that for a request to arrive."""
    f.policy("mpa_request_timeout_ms", 500 * f.world.slow)
    f.policy("accept_timeout_ms", 2000 * f.world.slow)
    listener = listen(f, 4)
    (wire, asked), (late, asked_late) = ((ask(f, 1)[0], f.asked(listener=listener))
                                         for _ in range(2))
    f.agent.cmd("destroy", k=listener)
    time.sleep(0.8 * f.world.slow)
    link = Link(f, wire, asked["k"])
    f.links.append(link)
    f.domain_of[link.k] = "pd"
    f.agent.cmd("qp", k=link.k, pd="pd", cq="cq", sq=4, rq=4)
    f.agent.cmd("accept", k=link.k)
    assert wire.read_reply().r == 0
    late.expect_end(timeout=5 * f.world.slow)
    f.agent.cmd("destroy", k=asked_late["k"])


@test()
def unreported_requests_end_with_the_listener(f):
    listener = listen(f, 1)
    silent, *wires = (f.connect(port=PORT) for _ in range(4))
    eventually(f, lambda: held("pending_mpa_request", 1) == 4, lambda: "they are not taken")
    with hung(f):
        ask_in_turn(f, 1, wires)
        time.sleep(0.5)
    f.agent.cmd("destroy", k=listener)
    for wire in [silent] + wires[2:]:
        wire.expect_end(timeout=5)
