# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Listeners on the wildcard: is that of IPv6 one for IPv4, too? Which netdevs does it serve?"""

import contextlib
import itertools
import subprocess
from errno import EADDRINUSE

import netdev
from harness import DRIVER, AgentError, Skip, eventually, test
from test_backlog import held, hung, taken_from_tcp
from test_ports import SERVER, Holder

PORT = 7483
ELSEWHERE = "10.79.0.1"
OTHER = "other8"
# None: as the namespace has it (bindv6only).
PROGRAM = (None, 0, 1)
# Each device has a socket of its own for a wildcard if there is siw anywhere.
SOCKETS = ("shared", "each its own")


def siw_elsewhere(f):
    try:
        netdev.own_netns("modprobe", "-q", "siw")
    except subprocess.CalledProcessError:
        raise Skip("this kernel has no siw") from None
    netdev.own_netns("modprobe", "dummy")
    netdev.own_netns("ip", "link", "add", "other7", "type", "dummy")
    f.undo.append(lambda: netdev.own_netns("ip", "link", "del", "other7"))
    netdev.own_netns("ip", "link", "set", "other7", "up")
    netdev.own_netns("rdma", "link", "add", "siw7", "type", "siw", "netdev", "other7")
    f.undo.append(lambda: netdev.own_netns("rdma", "link", "del", "siw7"))


def default(f, value):
    netdev.weft_netns("sysctl", "-qw", "net.ipv6.bindv6only=%u" % value)
    if value:
        f.undo.append(lambda: default(f, 0))


@test(each=itertools.product(SOCKETS, PROGRAM, (0, 1)))
def ipv4_peers_of_a_listener_of_ipv6(f, case):
    """As with TCP: what the program says counts, else the default."""
    sockets, afonly, bindv6only = case
    default(f, bindv6only)
    if sockets == SOCKETS[1]:
        siw_elsewhere(f)
    k = f.agent.cmd("listen", addr="::", port=PORT, afonly=afonly)["k"]
    f.undo.append(lambda: f.agent.cmd("destroy", k=k))
    f.passive(wire=f.connect(address=f.world.weft6, port=PORT), listener=k, rev=1)
    refused = bindv6only if afonly is None else afonly
    try:
        wire = f.connect(port=PORT)
    except ConnectionRefusedError:
        assert refused
        return
    assert not refused
    f.passive(wire=wire, listener=k, rev=1)


@test()
def a_peer_of_a_netdev_without_a_device_is_reset(f):
    """The socket is that of all netdevs; TCP has taken the connection by the time weft looks."""
    netdev.weft_netns("ip", "link", "set", "lo", "up")
    netdev.weft_netns("ip", "addr", "add", ELSEWHERE + "/32", "dev", "lo")
    f.undo.append(lambda: netdev.weft_netns("ip", "addr", "del", ELSEWHERE + "/32", "dev", "lo"))
    netdev.own_netns("ip", "route", "add", ELSEWHERE, "via", f.world.weft)
    f.undo.append(lambda: netdev.own_netns("ip", "route", "del", ELSEWHERE))
    k = f.agent.cmd("listen", addr="0.0.0.0", port=PORT)["k"]
    f.undo.append(lambda: f.agent.cmd("destroy", k=k))
    try:
        f.connect(address=ELSEWHERE, port=PORT).expect_end(reset=True)
    except ConnectionResetError:
        pass    # so soon that it was not yet told of the connection
    f.passive(wire=f.connect(port=PORT), listener=k, rev=1)


def other_device(f):
    """A second one, on a netdev of its own."""
    weft_netns = netdev.weft_netns
    weft_netns("modprobe", "dummy")
    weft_netns("ip", "link", "add", OTHER, "type", "dummy")
    f.undo.append(lambda: weft_netns("ip", "link", "del", OTHER))
    weft_netns("ip", "link", "set", OTHER, "up")
    weft_netns("ip", "addr", "add", ELSEWHERE + "/32", "dev", OTHER)
    netdev.own_netns("ip", "route", "add", ELSEWHERE, "via", f.world.weft)
    f.undo.append(lambda: netdev.own_netns("ip", "route", "del", ELSEWHERE))
    weft_netns("rdma", "link", "add", OTHER, "type", DRIVER, "netdev", OTHER)


def in_tcps_queue():
    """Connections that wait to be taken."""
    return int(netdev.weft_netns("ss", "-ltnH", "sport", "=", ":%u" % PORT).split()[1])


@contextlib.contextmanager
def requests_wait_at(f, address, dev):
    """A listener on the wildcard whose consumer answers nothing, and its requests."""
    k = f.agent.cmd("listen", addr="0.0.0.0", port=PORT, backlog=1)["k"]
    f.undo.append(lambda: f.agent.cmd("destroy", k=k))
    wires = taken_from_tcp(f, 1, 4, dev, address=address, port=PORT)
    with hung(f):
        # One is told to the consumer, and at most one at a time is offered to it without success.
        for wire in wires:
            wire.send_request(rev=1)
        eventually(f, lambda: held("queued", 1, dev) >= 2, lambda: "none is queued")
        yield


@test()
def a_device_that_goes_holds_up_no_other(f):
    """While one of them has a request that it cannot tell of, none takes connections. Those wait
    in TCP's queue, and TCP does not say so again."""
    other_device(f)
    with requests_wait_at(f, ELSEWHERE, OTHER):
        f.connect(port=PORT)
        eventually(f, lambda: in_tcps_queue() == 1, lambda: "it is taken")
        netdev.weft_netns("rdma", "link", "del", OTHER)
        eventually(f, lambda: in_tcps_queue() == 0, lambda: "it is not taken")


@test(each=(0, 1))
def requests_that_wait_at_either_device_hold_up_the_other(f, which):
    """The device whose requests wait is the first or the second one that listens."""
    other_device(f)
    places = [(f.world.weft, f.world.dev), (ELSEWHERE, OTHER)]
    with requests_wait_at(f, *places[which]):
        address, dev = places[1 - which]
        f.connect(address=address, port=PORT)
        eventually(f, lambda: in_tcps_queue() == 1, lambda: "it is taken")
        assert held("pending_mpa_request", 1, dev) == 0


@test()
def requests_at_two_devices_are_not_too_many(f):
    """The consumer's backlog is for both together: none is refused because it is busy."""
    other_device(f)
    k = f.agent.cmd("listen", addr="0.0.0.0", port=PORT, backlog=2)["k"]
    f.undo.append(lambda: f.agent.cmd("destroy", k=k))
    wires = []
    with hung(f):
        for address in (ELSEWHERE, f.world.weft) * 3:
            wires.append(f.connect(address=address, port=PORT))
            wires[-1].send_request(rev=1)
        eventually(f, lambda: held("queued", 2, OTHER) or held("queued", 2, f.world.dev),
                   lambda: "none is queued")
    for _ in wires:
        asked = f.asked(timeout=10, listener=k)
        f.agent.cmd("reject", k=asked["k"], pdata=b"asked".hex())
        f.agent.cmd("destroy", k=asked["k"])
    for wire in wires:
        reply = wire.read_reply()
        assert (reply.r, reply.pd) == (1, b"asked"), reply


@test()
def two_devices_listen_for_each_family(f):
    """One socket of both devices for IPv6 alone, and one for IPv4, at the same port."""
    other_device(f)
    six = f.agent.cmd("listen", addr="::", port=PORT, afonly=1)["k"]
    f.undo.append(lambda: f.agent.cmd("destroy", k=six))
    four = f.agent.cmd("listen", addr="0.0.0.0", port=PORT)["k"]
    f.undo.append(lambda: f.agent.cmd("destroy", k=four))
    f.passive(wire=f.connect(address=f.world.weft6, port=PORT), listener=six, rev=1)
    f.passive(wire=f.connect(port=PORT), listener=four, rev=1)


@test()
def listeners_at_two_ports_have_a_socket_each(f):
    for port in (PORT, PORT + 1):
        k = f.agent.cmd("listen", addr="0.0.0.0", port=port)["k"]
        f.undo.append(lambda k=k: f.agent.cmd("destroy", k=k))
        f.passive(wire=f.connect(port=port), listener=k, rev=1)


@test()
def a_wildcard_at_a_port_that_is_taken(f):
    """So often that the kernel's search for leaks finds what is left behind."""
    Holder(f, SERVER, "0.0.0.0", PORT)
    for _ in range(20):
        try:
            k = f.agent.cmd("listen", addr="0.0.0.0", port=PORT)["k"]
        except AgentError as error:
            assert error.errno == EADDRINUSE, error
            continue
        f.agent.cmd("destroy", k=k)
        raise AssertionError("it listens")
