# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Attributes of TCP, seen by ss and on the wire; type of service; retransmissions."""

import concurrent.futures
import contextlib
import os
import re
import socket
import struct
import time

from agent import Agent
from test_counters import bind, counter
from world import about_tcp, at_least, run, same, sockets, test

ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86DD


def both(w, pattern):
    """What ss shows of either end matches, once TCP rests, and the connection works."""
    pair = w.pair()
    for k in (pair.a, pair.p):
        w.eventually(lambda k=k: re.search(pattern, w.ss(pair.row(k))),
                     "%s in %s" % (pattern, w.ss(pair.row(k))), 3)
    pair.send(5000)


@test
def congestion_control_of_both_ends(w):
    with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as file:
        usual = file.read().strip()
    both(w, r"\b%s\b" % usual)
    w.turn("tcp_congestion_control", "reno")
    both(w, r"\breno\b")


def unprivileged_agent(w):
    """An agent without any right; the guest is discarded, so permissions may stay relaxed."""
    os.chmod(os.path.dirname(w.args.agent[0]), 0o755)
    for name in ["rdma_cm"] + [n for n in os.listdir("/dev/infiniband") if n[:6] == "uverbs"]:
        os.chmod("/dev/infiniband/" + name, 0o666)
    agent = Agent(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   "--inh-caps=-all", "--"] + w.args.agent, w.slow)
    agent.cmd("dev", name=w.dev)
    agent.cmd("pd", name="pd")
    agent.cmd("cq", name="cq")
    return agent


@test
def a_process_without_rights_gets_what_the_operator_chose(w):
    w.turn("tcp_sndbuf", 100000)
    w.turn("tcp_congestion_control", "htcp")
    with open("/proc/sys/net/ipv4/tcp_allowed_congestion_control", encoding="ascii") as file:
        same("htcp" in file.read(), False, "any process may choose htcp")
    agent = unprivileged_agent(w)
    try:
        k = agent.cmd("resolve", addr=w.addr, port=w.port)["k"]
        qpn = agent.cmd("qp", k=k, pd="pd", cq="cq")["qpn"]
        agent.cmd("connect", k=k)
        w.taken()
        agent.wait("event", 10, type="ESTABLISHED", k=k)
        text = w.ss(w.qp(qpn))
        for pattern in (r"\bhtcp\b", ",tb200000,"):
            same(bool(re.search(pattern, text)), True, "%s in %s" % (pattern, text))
        agent.cmd("destroy", k=k)
    finally:
        agent.close()


@test
def keepalive_of_both_ends(w):
    w.turn("tcp_keepalive_interval_s", 7)
    w.turn("tcp_keepalive_probes", 3)
    w.turn("tcp_keepalive_idle_s", 90)
    both(w, r"timer:\(keepalive,1min")


def limit(w, path, value):
    with open(path, encoding="ascii") as file:
        was = file.read()
    w.undo.append(lambda: write(path, was))
    write(path, str(value))


@test
def buffers_of_both_ends(w):
    # Also more than a process may ask for. The kernel doubles what it is given, for its own
    # overhead.
    for name in ("wmem_max", "rmem_max"):
        limit(w, "/proc/sys/net/core/" + name, 65536)
    w.turn("tcp_sndbuf", 100000)
    w.turn("tcp_rcvbuf", 150000)
    both(w, r"skmem:\(r\d+,rb300000,t\d+,tb200000,")


PAGE = os.sysconf("SC_PAGE_SIZE")
TCP_MEM = "/proc/sys/net/ipv4/tcp_mem"
KEEPALIVE_PROBES = "/proc/sys/net/ipv4/tcp_keepalive_probes"


def shown(w, rows):
    return [int(re.search(r"skmem:\(.*?,f(\d+),", w.ss(row)).group(1)) for row in rows]


def beforehand(w, pair):
    """Bytes of TCP's memory that each end has and does not use."""
    return shown(w, [pair.row(k) for k in (pair.a, pair.p)])


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def queue_unread(w):
    """A connection whose receiver does not read: how much TCP keeps for it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
    w.undo.extend((sender.close, receiver.close))
    sender.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            sent += sender.send(bytes(1 << 16))
    return sent


def make_scarce(w):
    """TCP always uses more than its lower limit, but does not run short either. Up to a MiB for
    each CPU is missing in the sum that the kernel compares, so more than that is in use."""
    left = (os.cpu_count() + 1) << 20
    while left > 0:
        left -= queue_unread(w)
    with open(TCP_MEM, encoding="ascii") as file:
        was = file.read()
    w.undo.append(lambda: write(TCP_MEM, was))
    write(TCP_MEM, "0 " + was.split(None, 1)[1])


def in_use(w, pair, size=100):
    """The reserves of its ends while the connection is used, however long ss takes."""
    rows = [pair.row(k) for k in (pair.a, pair.p)]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        found = None
        while not found or not found.done():
            pair.one("write", sge="mr:0:%d" % size, **pair.remote())
            pair.send()
            found = found or pool.submit(shown, w, rows)
        return found.result()


@test
@about_tcp
def a_connection_has_memory_of_tcp_while_it_is_in_use(w):
    before = sockets()
    pair = w.pair()
    w.eventually(lambda: min(in_use(w, pair)) >= PAGE, "a page at both ends", 30)
    w.eventually(lambda: in_use(w, pair, 60000)[1] >= 60000, "as much as was received", 30)
    w.eventually(lambda: max(beforehand(w, pair)) < PAGE, "given back at rest", 30)
    w.eventually(lambda: min(in_use(w, pair)) >= PAGE, "and taken again", 30)
    w.pairs.remove(pair)
    pair.close()
    w.eventually(lambda: sockets() <= before, "both ends are freed", 30)


@test
@about_tcp
def a_connection_keeps_no_more_than_4_mib(w):
    """TCP itself keeps up to two more. The peer reads nothing at first, then everything.

    Each doorbell has little to send. What one does not get done in its time waits for an ACK, and
    no other is rung meanwhile; this peer's only ACKs are those of probes, fewer and fewer.
    """
    most, each, size = 4 << 20, 1 << 16, 12 << 20
    w.turn("tcp_sndbuf", 2 * size)
    wire, k, qpn = w.running()
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"x")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    for at in range(0, size, each):
        w.agent.cmd("post", k=k, op="write", wr=2 + at // each, raddr=at, rkey=1,
                    sge="mr:0:%d" % each)
        w.agent.wait("wc", 30, k=k, wr=2 + at // each, status=0)
    row, left = w.qp(qpn), size
    at_least(row["drv_tcp_unsent"], 2 * most, "bytes that TCP holds")
    while left > 0:
        left -= len(wire.sock.recv(1 << 20))
    at_least(most + (2 << 20) + (1 << 16), shown(w, [row])[0], "bytes beforehand")
    wire.rst()


@test
@about_tcp
def a_connection_has_no_memory_beforehand_where_it_is_scarce(w):
    early = w.pair()
    w.eventually(lambda: min(in_use(w, early)) >= PAGE, "a page at both ends", 30)
    make_scarce(w)
    late = w.pair()
    end = time.monotonic() + 4
    while time.monotonic() < end:
        early.send()
        late.send(5000)
        same(max(beforehand(w, late)) < PAGE, True, "nothing for a late connection")
    w.eventually(lambda: max(in_use(w, early)) < PAGE, "all is given back", 30)


class Sniffer:
    """Type of service of every packet of a TCP port on lo."""

    def __init__(self, ethertype, port):
        self.ethertype, self.port, self.seen = ethertype, port, []
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ethertype))
        self.sock.bind(("lo", ethertype))

    def packets(self):
        self.sock.settimeout(0.3)
        try:
            while True:
                self.look(self.sock.recv(128))
        except socket.timeout:
            return self.seen

    def look(self, data):
        if self.ethertype == ETH_P_IP:
            tos, proto, tcp = data[1], data[9], data[4 * (data[0] & 15):]
        else:
            tos, proto = struct.unpack(">H", data[:2])[0] >> 4 & 255, data[6]
            tcp = data[40:]
        ports = struct.unpack(">HH", tcp[:4])
        if proto == socket.IPPROTO_TCP and self.port in ports:
            self.seen.append((ports[1] == self.port, tos, tcp[13]))


def traffic_class(w, ethertype, addr, tos, **fields):
    """Bytes of the packets to and from the listener, SYN and data apart."""
    sniffer = Sniffer(ethertype, w.port)
    pair = w.pair(addr, tos=tos, **fields)
    pair.send(1000)
    seen = sniffer.packets()
    at_least(len(seen), 4, "packets")
    w.pairs.remove(pair)
    pair.close()
    sniffer.sock.close()
    return ({t for to, t, flags in seen if to and flags & 2},
            {t for to, t, flags in seen if to and not flags & 2},
            {t for to, t, flags in seen if not to})


@test
def rdma_set_option_reaches_every_packet(w):
    for ethertype, addr in ((ETH_P_IP, w.addr), (ETH_P_IPV6, w.addr6)):
        syn, data, _ = traffic_class(w, ethertype, addr, 0xB8)
        same((syn, data), ({0xB8}, {0xB8}), addr)
        syn, data, _ = traffic_class(w, ethertype, addr, None)
        same((syn, data), ({0}, {0}), addr)


@test
def tos_of_the_device_counts_where_the_consumer_says_nothing(w):
    w.turn("ip_tos", 0x48)
    syn, data, _ = traffic_class(w, ETH_P_IP, w.addr, None)
    same((syn, data), ({0x48}, {0x48}), "the operator's")
    syn, data, _ = traffic_class(w, ETH_P_IP, w.addr, 0xB8)
    same((syn, data), ({0xB8}, {0xB8}), "the consumer's")
    # A listener has the value of the time it was opened.
    same(responder(w, ETH_P_IP, w.addr), {0x48}, "of the responder")
    # That of a wildcard is known when a connection has been accepted.
    w.port += 1
    same(0x48 in responder(w, ETH_P_IP, w.addr, at="0.0.0.0"), True, "of a wildcard's")
    w.port -= 1


def responder(w, ethertype, addr, at=None, **fields):
    """Bytes of the packets of what a listener accepts that is made with these fields. @at: where
    it listens, if that is another address."""
    was, w.port = w.port, w.port + 1000
    try:
        w.own.append(w.agent.cmd("listen", addr=at or addr, port=w.port, **fields)["k"])
        return traffic_class(w, ethertype, addr, None)[2]
    finally:
        w.port = was


@test
def rdma_set_option_of_a_listener_reaches_what_it_accepts(w):
    for ethertype, addr in ((ETH_P_IP, w.addr), (ETH_P_IPV6, w.addr6)):
        same(responder(w, ethertype, addr, tos=0xB8), {0xB8}, addr)
    w.turn("ip_tos", 0x48)
    w.port += 1
    same(responder(w, ETH_P_IP, w.addr, tos=0x28), {0x28}, "rather than the operator's")
    w.port -= 1


def cut(w):
    run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "100%")
    w.undo.append(lambda: run("tc", "qdisc", "del", "dev", "lo", "root"))


def soon_enough(act, least, most):
    """How long it takes lies between these; a busy machine may be late, but not each time."""
    for _ in range(4):
        took = act()
        at_least(took, least, "seconds")
        if took < most:
            return
    raise AssertionError("%.1f s" % took)


@test
@about_tcp
def user_timeout_ends_a_connection_that_hears_nothing(w):
    w.turn("tcp_user_timeout_ms", 1500)

    def act():
        pair = w.pair()
        pair.send()
        pair.recv()
        before = w.counters()
        cut(w)
        began = time.monotonic()
        pair.post(pair.a, "send", sge="mr:0:100")
        w.agent.wait("event", 20, type="DISCONNECTED", k=pair.a)
        took = time.monotonic() - began
        moved = w.since(before)
        same(moved.get("connections_lost"), 1, "connections_lost")
        at_least(moved.get("tcp_retransmits", 0), 1, "tcp_retransmits")
        at_least(moved.get("tcp_retransmit_bytes", 0), 100, "tcp_retransmit_bytes")
        w.undo.pop()()
        return took

    soon_enough(act, 1.2, 2.7)


@test
def keepalive_ends_a_connection_at_rest_whose_peer_is_gone(w):
    """In time: the system's number of probes is one that takes minutes."""
    limit(w, KEEPALIVE_PROBES, 120)
    patient = w.pair()
    w.turn("tcp_keepalive_idle_s", 1)
    w.turn("tcp_keepalive_interval_s", 1)
    w.turn("tcp_keepalive_probes", 2)

    def act():
        pair = w.pair()
        for each in (patient, pair):
            each.send()
        before = w.counters()
        cut(w)
        began = time.monotonic()
        w.agent.wait("event", 20, type="DISCONNECTED", k=pair.a)
        w.agent.wait("event", 20, type="DISCONNECTED", k=pair.p)
        took = time.monotonic() - began
        same(w.since(before).get("connections_lost"), 2, "both ends, and no other")
        w.undo.pop()()
        patient.send()
        return took

    soon_enough(act, 1.8, 4.5)


@test
@about_tcp
def an_interval_lies_between_probes_however_many_there_are(w):
    """The first goes out after a second of rest; then nothing is due for more than a minute."""
    w.turn("tcp_keepalive_idle_s", 1)
    w.turn("tcp_keepalive_interval_s", 90)
    w.turn("tcp_keepalive_probes", 2)
    pair = w.pair()
    pair.send()
    time.sleep(0.3)     # all is acknowledged
    cut(w)
    for k in (pair.a, pair.p):
        w.eventually(lambda k=k: re.search(r"timer:\(keepalive,1min", w.ss(pair.row(k))),
                     "a minute until the next probe, and not %s" % w.ss(pair.row(k)))
    w.undo.pop()()


@test
@about_tcp
def retransmissions_are_seen_while_the_connection_lives(w):
    pair = w.pair()
    pair.send()
    before = w.counters()
    run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "100%")
    try:
        got = pair.recv()
        pair.post(pair.a, "send", sge="mr:0:100")
        w.eventually(lambda: w.since(before).get("tcp_retransmits", 0) >= 1, "a retransmission")
        at_least(pair.row(pair.a)["drv_tcp_retransmits"], 1, "of the QP")
        same(pair.row(pair.a)["drv_tcp_unacked"] >= 1, True, "unacknowledged")
    finally:
        run("tc", "qdisc", "del", "dev", "lo", "root")
    pair.wc(pair.p, got)


def repeated(w, pair, seen):
    """A Send that TCP has to repeat until that is seen; then it arrives."""
    run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "100%")
    try:
        got = pair.recv()
        pair.post(pair.a, "send", sge="mr:0:100")
        w.eventually(seen, "a retransmission", 5)
    finally:
        run("tc", "qdisc", "del", "dev", "lo", "root")
    pair.wc(pair.p, got)


@test
@about_tcp
def retransmissions_of_a_bound_qp_are_seen_while_it_lives(w):
    pair = w.pair()
    pair.send()
    repeated(w, pair, lambda: pair.row(pair.a)["drv_tcp_retransmits"] >= 1)
    cntn = bind(w, pair.qpn[pair.a])
    same(counter(w, cntn)["tcp_retransmits"], 0, "those of before are counted elsewhere")
    repeated(w, pair, lambda: counter(w, cntn)["tcp_retransmits"] >= 1)


@test
@about_tcp
def a_small_message_does_not_wait_for_the_one_before(w):
    """Nothing is acknowledged, and the second goes out. When TCP thinks the first one lost before
    that, as on a slow machine, it holds the second back: then once more."""
    for _ in range(20):
        pair = w.pair()
        pair.send()
        run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "100%")
        try:
            got = [pair.recv() for _ in range(2)]
            for _ in got:
                pair.post(pair.a, "send", sge="mr:0:100")
            row = pair.row(pair.a)
        finally:
            run("tc", "qdisc", "del", "dev", "lo", "root")
        for wr in got:
            pair.wc(pair.p, wr)
        if (row["drv_tcp_unacked"], row["drv_tcp_unsent"]) == (2, 0):
            return
    raise AssertionError("the second has waited each time")
