# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the tests share: an agent that is both ends of each connection, and the
operator's tools."""

import functools
import itertools
import json
import os
import re
import subprocess
import time

import pytest
from agent import Agent
from wirepeer import peer

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "..", "..", "..", "Documentation", "operating.md")
OK, FLUSH = 0, 5
# There is no means to run a test here; the text says why.
Skip = pytest.skip.Exception


def test(function):
    """A test is a function of the World; its name says what it proves."""
    function.__test__ = True
    return function


def about_tcp(function):
    """A test of what TCP does, whatever LOOPBACK says."""
    @functools.wraps(function)
    def by_tcp(w):
        w.turn("loopback", 0)
        function(w)
    return by_tcp


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def same(got, want, what=""):
    if got != want:
        raise AssertionError("%s: %r, expected %r" % (what, got, want))


def at_least(got, least, what=""):
    if got < least:
        raise AssertionError("%s: %r, expected at least %r" % (what, got, least))


def sockets():
    """That the kernel has not freed."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        return int(re.match(r"sockets: used (\d+)", file.read()).group(1))


def manual_table(heading):
    """The rows of the table below a heading of the operating guide, as cells."""
    with open(MANUAL, encoding="utf-8") as file:
        text = file.read().split("\n## " + heading, 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.split("\n") if line.startswith("| `")]
    if not rows:
        raise AssertionError("no table under '%s'" % heading)
    return rows


class Pair:
    """A connection of the agent with itself; "a" has connected, "p" accepted."""

    def __init__(self, world, a, p, qpn):
        self.world, self.a, self.p = world, a, p
        self.qpn = qpn
        self.wr = itertools.count(1)

    def post(self, k, op, **fields):
        wr = next(self.wr)
        self.world.agent.cmd("post", k=k, op=op, wr=wr, **fields)
        return wr

    def recv(self, k=None, size=8192):
        return self.post(k or self.p, "recv", sge="mr:0:%d" % size)

    def wc(self, k, wr, status=OK):
        found = self.world.agent.wait("wc", 10, k=k, wr=wr)
        same(found["status"], status, "status of wr %d" % wr)
        return found

    def send(self, size=100):
        """A Send that arrives; what was posted before it has arrived as well."""
        got = self.recv()
        sent = self.post(self.a, "send", sge="mr:0:%d" % size)
        self.wc(self.p, got)
        self.wc(self.a, sent)

    def one(self, op, **fields):
        self.wc(self.a, self.post(self.a, op, **fields))

    def remote(self, off=0):
        mr = self.world.mr
        return {"raddr": mr["iova"] + off, "rkey": mr["rkey"]}

    def row(self, k):
        return self.world.qp(self.qpn[k])

    def mix(self):
        """Some of everything; ends with a Send. See MIX for what it counts."""
        self.send()
        self.one("write", sge="mr:0:5000", **self.remote(8192))
        self.one("write", sge="mr:0:5000", **self.remote(8192))
        self.one("read", sge="mr:0:3000", **self.remote(8192))
        self.one("fadd", sge="mr:0:8", add=1, **self.remote(16384))
        got = self.recv()
        self.one("writeimm", sge="mr:0:200", imm=7, **self.remote(8192))
        self.wc(self.p, got)
        self.send()
        self.send()

    def close(self):
        for k in (self.a, self.p):
            self.world.agent.cmd("destroy", k=k)


# What Pair.mix() counts, both ends together: they are on one device.
MIX_KINDS = {"sends": 3, "writes": 3, "read_requests": 1, "read_responses": 1,
             "atomic_requests": 1, "atomic_responses": 1, "immediates": 1}
# Counters of runs of tx, by what weft_tx_run says of them.
TX_RUNS = {"doorbell": "tx_doorbells", "queued": "tx_work_queued", "merged": "tx_work_merged",
           "softirq": "tx_softirq_runs"}
MIX_MESSAGES = sum(MIX_KINDS.values())
MIX_BYTES = 3 * 100 + 2 * 5000 + 3000 + 200


class World:
    """One device and the agent."""

    def __init__(self, args):
        self.args = args
        self.dev, self.addr, self.addr6, self.slow = args.dev, args.addr, args.addr6, args.slow
        self.port = 7300
        self.agent = None
        self.start_agent()

    def start_agent(self):
        if self.agent:
            self.agent.close()
        self.agent = Agent(self.args.agent, self.slow)
        self.undo, self.peers, self.pairs, self.own = [], [], [], []
        self.agent.cmd("dev", name=self.dev)
        self.agent.cmd("pd", name="pd")
        self.agent.cmd("cq", name="cq", depth=256)
        self.mr = self.agent.cmd("mr", name="mr", pd="pd", len=65536, access="lrwa")
        self.port += 1
        self.listener = self.agent.cmd("listen", addr=self.addr, port=self.port)["k"]
        self.listener6 = self.agent.cmd("listen", addr=self.addr6, port=self.port)["k"]

    def restore(self):
        """Remove what a test has made."""
        for what in self.peers:
            what.close()
        for pair in self.pairs:
            pair.close()
        for k in self.own:
            self.agent.cmd("destroy", k=k)
        for step in reversed(self.undo):
            step()
        self.undo, self.peers, self.pairs, self.own = [], [], [], []
        self.eventually(lambda: not self.qps(), "no QP is left")
        self.agent.cmd("sync")
        self.agent.forget()

    def eventually(self, true, what, timeout=10):
        end = time.monotonic() + timeout * self.slow
        while not true():
            if time.monotonic() > end:
                raise AssertionError("not within %d s: %s" % (timeout, what))
            time.sleep(0.05)

    # --- connections -----------------------------------------------------------

    def active(self, addr=None, port=None, qp=True, cq="cq"):
        """An end that may connect."""
        k = self.agent.cmd("resolve", addr=addr or self.addr, port=port or self.port)["k"]
        self.own.append(k)
        qpn = self.agent.cmd("qp", k=k, pd="pd", cq=cq)["qpn"] if qp else None
        return k, qpn

    def asked(self):
        k = self.agent.wait("event", 10, type="CONNECT_REQUEST")["k"]
        self.own.append(k)
        return k

    def taken(self, **fields):
        """Accept what asks for a connection."""
        k = self.asked()
        qpn = self.agent.cmd("qp", k=k, pd="pd", cq="cq")["qpn"]
        self.agent.cmd("accept", k=k, **fields)
        return k, qpn

    def pair(self, addr=None, tos=None, cq="cq", **fields):
        a, a_qpn = self.active(addr, cq=cq)
        if tos is not None:
            self.agent.cmd("tos", k=a, tos=tos)
        self.agent.cmd("connect", k=a, **fields)
        p, p_qpn = self.taken(**fields)
        for k in (a, p):
            self.agent.wait("event", 10, type="ESTABLISHED", k=k)
        self.own.remove(a)
        self.own.remove(p)
        made = Pair(self, a, p, {a: a_qpn, p: p_qpn})
        self.pairs.append(made)
        return made

    def wire(self):
        """Plain TCP to the listener."""
        made = peer.Peer.connect(self.addr, self.port, 10 * self.slow)
        self.peers.append(made)
        return made

    def running(self, **request):
        """A wire whose start frames are exchanged, and the link at the other end."""
        wire = self.wire()
        wire.send_request(**request)
        k, qpn = self.taken()
        wire.read_reply()
        wire.full_operation(True)
        # The reply is out before the stream begins.
        self.agent.wait("event", 10, type="ESTABLISHED", k=k)
        return wire, k, qpn

    # --- the operator's tools ----------------------------------------------------

    def counters(self):
        time.sleep(0.05)
        row = json.loads(run("rdma", "-j", "statistic", "show", "link", self.dev + "/1"))[0]
        return {name: value for name, value in row.items() if name not in ("ifname", "port")}

    def since(self, before):
        """What has moved."""
        return {name: value - before[name] for name, value in self.counters().items()
                if value != before[name]}

    def qp_counters(self):
        return json.loads(run("rdma", "-j", "statistic", "qp", "show", "link",
                              self.dev + "/1") or "[]")

    def resources(self, kind, details=True):
        flags = "-dd" if details else "-d"
        rows = json.loads(run("rdma", "-j", flags, "resource", "show", kind) or "[]")
        return [row for row in rows if row.get("ifname") == self.dev]

    def qps(self):
        return self.resources("qp")

    def qp(self, qpn):
        return [row for row in self.qps() if row["lqpn"] == qpn][0]

    def attr_file(self, name):
        return "/sys/class/infiniband/%s/params/%s" % (self.dev, name)

    def attr(self, name):
        with open(self.attr_file(name), encoding="ascii") as file:
            return file.read().strip()

    def write_attr(self, name, text):
        with open(self.attr_file(name), "w", encoding="ascii") as file:
            file.write(text)

    @property
    def by_tcp(self):
        """Does what the agent sends to itself go by TCP? Where LOOPBACK is set it does not."""
        return self.attr("loopback") == "0"

    def turn(self, name, value):
        """Set an attribute for the rest of a test."""
        was = self.attr(name)
        self.write_attr(name, str(value))
        self.undo.append(lambda: self.write_attr(name, was))

    def send_in_batches(self):
        """For the rest of a test: FPDUs without a CRC that are shorter than a batch."""
        self.turn("mpa_crc", 0)
        run("ip", "link", "set", "lo", "mtu", "1500")
        self.undo.append(lambda: run("ip", "link", "set", "lo", "mtu", "65536"))

    def ss(self, row):
        """What ss shows of the connection of a QP (a row of qps())."""
        port = row["drv_tcp_local"].rsplit(":", 1)[1]
        lines = run("ss", "-tinmoOH", "--tos", "sport = :%s" % port).strip().split("\n")
        own = [line for line in lines if self.far(row) in re.split(r"\s+", line)]
        same(len(own), 1, "connections of %s in %s" % (row["drv_tcp_local"], lines))
        return own[0]

    @staticmethod
    def far(row):
        return row["drv_tcp_peer"]
