# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Weft as initiator: the port it connects from, and peers that cannot be reached."""

import socket
import subprocess
import sys
from errno import EADDRINUSE, ECONNREFUSED, ETIMEDOUT

import netdev
from harness import AgentError, Skip, test
from test_backlog import BOUND_TO, listen

SERVER = """
import socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
print(s.getsockname()[1], flush=True)
sys.stdin.read()
"""
CLIENT = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(s.getsockname()[1], flush=True)
sys.stdin.read()
"""


class Holder:
    """A process beside weft's consumer that holds a TCP port."""

    def __init__(self, f, code, *args):
        self.process = subprocess.Popen(
            f.world.argv[:-1] + [sys.executable, "-c", code] + [str(a) for a in args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        f.undo.append(self.end)
        self.port = int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def from_port(f, listener, sport):
    """An id that is to connect from that port."""
    link = f.resolved(listener, recv=0, src=f.world.weft, sport=sport)
    assert f.agent.cmd("ports", k=link.k)["src"] == sport
    return link


def connect(f, link, listener):
    f.agent.cmd("connect", k=link.k)
    link.peer = listener.accept()
    f.peers.append(link.peer)
    link.request = link.peer.read_request()
    f.answer(link)
    link.event("ESTABLISHED")
    src = f.agent.cmd("ports", k=link.k)["src"]
    assert link.peer.sock.getpeername()[1] == src, "%s, but %s" % (
        link.peer.sock.getpeername(), src)
    return src


@test(each=(7199, 40123))
def a_port_that_a_server_has(f, port):
    """The program is told that this is its port, even if it did not choose it."""
    Holder(f, SERVER, f.world.weft, port)
    link = from_port(f, f.listen(), port)
    try:
        f.agent.cmd("connect", k=link.k)
    except AgentError as error:
        assert error.errno == EADDRINUSE, error
        return
    raise AssertionError("connected")


@test()
def a_connect_that_failed_may_be_tried_again_at_once(f):
    """It leaves nothing behind that would affect the next one on the same QP."""
    holder, listener = Holder(f, SERVER, f.world.weft, 40124), f.listen()
    link = from_port(f, listener, 40124)
    for attempt in range(100):
        try:
            f.agent.cmd("connect", k=link.k)
        except AgentError as error:
            assert error.errno == EADDRINUSE, "attempt %u: %s" % (attempt, error)
            continue
        raise AssertionError("connected")
    f.undo.remove(holder.end)
    holder.end()
    assert connect(f, link, listener) == 40124


@test()
def a_port_that_tcp_gave_to_a_connection(f):
    """TCP itself would assign it a second time, for another peer."""
    elsewhere, listener = f.listen(), f.listen()
    holder = Holder(f, CLIENT, f.world.own, elsewhere.port)
    held = elsewhere.accept()
    f.peers.append(held)
    link = from_port(f, listener, holder.port)
    assert connect(f, link, listener) == holder.port


@test()
def a_port_that_has_a_connection_to_that_peer(f):
    listener = f.listen()
    holder = Holder(f, CLIENT, f.world.own, listener.port)
    f.peers.append(listener.accept())
    link = from_port(f, listener, holder.port)
    try:
        f.agent.cmd("connect", k=link.k)
    except AgentError as error:
        assert error.errno == EADDRINUSE, error
        return
    raise AssertionError("connected")


def slow_answers():
    """What the peer sends, acknowledgments as well, takes a while."""
    try:
        netdev.own_netns("tc", "qdisc", "add", "dev", "vb", "root", "netem", "delay", "200ms")
    except subprocess.CalledProcessError:
        raise Skip("no netem here") from None


@test("CM-077", each=("at once", "late"))
def the_second_attempt_comes_from_the_same_port(f, acknowledged):
    """Also while the peer's TCP has not said that it has the end of the first one."""
    listener = f.listen()
    link = from_port(f, listener, 40321)
    f.agent.cmd("connect", k=link.k)
    first = listener.accept()
    assert first.read_request().rev == 2
    if acknowledged == "late":
        slow_answers()
        f.undo.append(lambda: netdev.own_netns("tc", "qdisc", "del", "dev", "vb", "root"))
    first.close()
    link.peer = listener.accept()
    f.peers.append(link.peer)
    link.request = link.peer.read_request()
    assert link.request.rev == 1
    assert link.peer.sock.getpeername()[1] == 40321
    f.answer(link)
    link.event("ESTABLISHED")


@test(each=BOUND_TO)
def a_server_listens_again_at_once(f, bound_to):
    """A connection that it closed itself is in TIME_WAIT still."""
    for _ in range(2):
        k = listen(f, 4, port=7598, bound_to=bound_to)
        link = f.running(wire=f.connect(port=7598), listener=k, rev=1)
        f.agent.cmd("disconnect", k=link.k)
        link.peer.expect_end(reset=False)
        link.peer.fin()
        link.dead()
        f.agent.cmd("destroy", k=k)


def asks_again_after(milliseconds):
    """ARP of weft's end, which gives up after the third time."""
    netdev.weft_netns("sysctl", "-qw", "net.ipv4.neigh.va.retrans_time_ms=%d" % milliseconds)


@test()
def a_host_that_is_gone(f):
    """It answered when its address was resolved; what ARP reports then is UNREACHABLE."""
    gone = "10.77.0.99"
    netdev.own_netns("ip", "addr", "add", gone + "/24", "dev", "vb")
    try:
        k = f.agent.cmd("resolve", addr=gone, port=7)["k"]
    finally:
        netdev.own_netns("ip", "addr", "del", gone + "/24", "dev", "vb")
    f.undo.append(lambda: f.agent.cmd("destroy", k=k))
    netdev.weft_netns("ip", "neigh", "flush", "dev", "va")
    f.undo.append(lambda: asks_again_after(1000))
    asks_again_after(200)
    before = f.counted("connections_unreachable")
    f.agent.cmd("qp", k=k, pd="pd", cq="cq")
    f.agent.cmd("connect", k=k)
    found = f.agent.wait("event", 15, k=k)
    assert (found["type"], found["status"]) == ("UNREACHABLE", -ETIMEDOUT), found
    if before is not None:
        assert f.counted("connections_unreachable") == before + 1


@test(each=(("network", 0), ("host", 1), ("port", 3), ("host, it knows none", 7)))
def what_a_router_says_of_a_peer(f, said):
    """That it is not reached is UNREACHABLE, and counted; a port without a listener refuses."""
    what, code = said
    gone = "10.77.0.98"
    mac = netdev.own_netns("ip", "-br", "link", "show", "dev", "vb").split()[2]
    netdev.weft_netns("ip", "neigh", "replace", gone, "lladdr", mac, "dev", "va")
    f.undo.append(lambda: netdev.weft_netns("ip", "neigh", "del", gone, "dev", "va"))
    k = f.agent.cmd("resolve", addr=gone, port=7)["k"]
    f.undo.append(lambda: f.agent.cmd("destroy", k=k))
    f.agent.cmd("qp", k=k, pd="pd", cq="cq")
    before = f.counted("connections_unreachable")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as sock:
        sock.bind(("vb", 0))
        sock.settimeout(10)
        f.agent.cmd("connect", k=k)
        netdev.unreachable(sock, gone, code)
    found = f.agent.wait("event", 15, k=k)
    expected = ("REJECTED", -ECONNREFUSED) if what == "port" else ("UNREACHABLE", -ETIMEDOUT)
    assert (found["type"], found["status"]) == expected, found
    if before is not None:
        assert f.counted("connections_unreachable") == before + (what != "port")


@test()
def a_peer_that_falls_silent_has_not_hung_up(f):
    """No second attempt, and not REJECTED: TCP has given the connection up."""
    for name in ("tcp_keepalive_idle_s", "tcp_keepalive_interval_s", "tcp_keepalive_probes"):
        f.policy(name, 1)
    link = f.dialed()
    netdev.own_netns("tc", "qdisc", "add", "dev", "vb", "root", "netem", "loss", "100%")
    f.undo.append(lambda: netdev.own_netns("tc", "qdisc", "del", "dev", "vb", "root"))
    link.connect_fails("UNREACHABLE", ETIMEDOUT, timeout=15)


@test()
def from_where_a_request_comes_is_told(f):
    """The port that the initiator's socket has, and the one it connected to."""
    link = f.passive(accept=False, rev=1)
    ports = f.agent.cmd("ports", k=link.k)
    assert ports["dst"] == link.peer.sock.getsockname()[1], ports
    assert ports["src"] == f.world.port, ports
