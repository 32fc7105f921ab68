# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What all groups of tests share: the decorator, connections, the aftermath.

A test is a function of one Fixture, with the ids of the requirement rows it
proves. When it returns, whatever it did to the other side, the guards
around every region must stand, the kernel must not have complained, and the
next connection must work.
"""

import inspect
import itertools
import os
import time

import pytest
from agent import Agent, AgentError, NotSeen  # noqa: F401, for the tests
from wirepeer import ddp, mpa, peer, rdmap

OK, LOC_LEN, LOC_QP_OP, LOC_PROT, FLUSH, MW_BIND, BAD_RESP = 0, 1, 2, 4, 5, 6, 7
REM_INV, REM_ACCESS, REM_OP, FATAL = 9, 10, 11, 18
WC_SEND, WC_WRITE, WC_READ, WC_CSWAP, WC_FADD, WC_BIND, WC_INV = range(7)
WC_RECV, WC_RECV_IMM = 128, 129
WITH_IMM, WITH_INV = 2, 8
CQ_ERR, QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR = range(4)
STATE_RTS, STATE_SQD, STATE_SQE, STATE_ERR = 3, 4, 5, 6

DRIVER = os.environ.get("DRIVER", "weft")
# There is no means to run a test here; the text says why.
Skip = pytest.skip.Exception


def unfit(text):
    """What to raise where a faculty is missing that weft has: no Skip but a failure."""
    return (AssertionError if DRIVER == "weft" else Skip)(text)


def test(*rows, each=None):
    """A test of requirement rows; each case in @each gives one result."""
    def mark(function):
        function.rows, function.__test__ = rows, True
        if each is None:
            return function
        _, case = inspect.signature(function).parameters
        return pytest.mark.parametrize(case, list(each), ids=str)(function)
    return mark


def pattern(length, seed=1):
    return bytes((n * 7 + (n >> 8) * 13 + seed) & 0xFF for n in range(length))


def told(layer, etype, code):
    """The event that a consumer gets when its peer is sent that Terminate."""
    if layer == 2 or (layer, etype) == (0, 0):
        return QP_FATAL
    if (layer, etype) == (0, 1) or ((layer, etype) == (1, 1) and code < 4):
        return QP_ACCESS_ERR
    return QP_REQ_ERR


class Region:
    """A registered region of the agent."""

    def __init__(self, fixture, name, fields, length):
        self.fixture, self.name, self.len = fixture, name, length
        self.addr, self.iova = fields["addr"], fields["iova"]
        self.lkey, self.rkey = fields["lkey"], fields["rkey"]
        self.registered = True

    def _cmd(self, verb, **fields):
        return self.fixture.agent.cmd(verb, name=self.name, **fields)

    def poke(self, data, off=0):
        for at in range(0, len(data), 32768):
            self._cmd("poke", off=off + at, hex=data[at:at + 32768].hex())

    def fill(self, byte, off=0, length=None):
        self._cmd("fill", off=off, len=length, byte=byte)

    def peek(self, off=0, length=None):
        length = self.len - off if length is None else length
        return bytes.fromhex(self._cmd("peek", off=off, len=length)["hex"])

    def crc32(self, off=0, length=None):
        return self._cmd("hash", off=off, len=length)["crc32"]

    def sge(self, off=0, length=None):
        return "%s:%d:%d" % (self.name, off, self.len - off if length is None else length)

    def dereg(self, keep=False):
        self._cmd("dereg", keep=int(keep))
        self.registered = False
        if not keep:
            self.fixture.regions.remove(self)


def untouched(region, byte=0):
    seen = region.peek()
    assert seen == bytes([byte]) * len(seen), "the region was written to"


class Link:
    """One connection: our end and the agent's."""

    def __init__(self, fixture, wire, k):
        self.f, self.peer, self.k = fixture, wire, k
        self.agent = fixture.agent
        self.posted = []            # receives, oldest first
        self.requests = []          # all else that is to complete, oldest first
        self.slots = {}             # wr: (region, offset)
        self.over = False           # all there was to be told has been told

    def post(self, op, wr=None, **fields):
        wr = next(self.f.wr_ids) if wr is None else wr
        self.agent.cmd("post", k=self.k, op=op, wr=wr, **fields)
        if op != "recv" and "n" not in fields.get("flags", "s"):
            self.requests.append(wr)
        return wr

    def recv(self, count=1, size=1024, region=None, access="l"):
        """Post receives, one after the other in a region of their own."""
        if region is None:
            region = self.f.mr(length=max(1, count * size), access=access,
                               domain=self.f.domain_of[self.k])
        wrs = [next(self.f.wr_ids) for _ in range(count)]
        self.agent.cmds([("post", dict(k=self.k, op="recv", wr=wr,
                                       sge=region.sge(n * size, size) if size else None))
                         for n, wr in enumerate(wrs)])
        self.posted += wrs
        self.slots |= {wr: (region, n * size) for n, wr in enumerate(wrs)}
        return region

    def wc(self, wr=None, status=OK, timeout=5, **match):
        """The next completion; its status must be @status."""
        if wr is not None:
            match["wr"] = wr
        found = self.agent.wait("wc", timeout, k=self.k, **match)
        for queue in self.posted, self.requests:
            if found["wr"] in queue:
                queue.remove(found["wr"])
        if status is not None and found["status"] != status:
            raise AssertionError("completion %s, due status %d" % (found, status))
        return found

    def received(self, payload, **match):
        """The oldest receive completes with @payload."""
        wr = self.posted[0]
        region, off = self.slots[wr]
        found = self.wc(wr=wr, **match)
        if found["len"] != len(payload):
            raise AssertionError("byte_len %d, due %d" % (found["len"], len(payload)))
        if payload:
            seen = region.peek(off, len(payload))
            if seen != payload:
                raise AssertionError("received %s..., due %s..." % (
                    seen[:32].hex(), payload[:32].hex()))
        return found

    def event(self, kind, timeout=5, **match):
        return self.agent.wait("event", timeout, k=self.k, type=kind, **match)

    def connect_fails(self, kind, errno, timeout=5):
        """The outcome of a connect: an event of that kind, of weft with that status as well.
        rdma_cm makes REJECTED of more than one status."""
        found = self.agent.wait("event", timeout, k=self.k)
        if DRIVER != "weft":
            assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found
        else:
            assert (found["type"], found["status"]) == (kind, -errno), found
        return found

    def no_wc(self, **match):
        self.agent.none("wc", k=self.k, **match)

    def state(self):
        return self.agent.cmd("query", k=self.k)

    def start_responder(self):
        """The initiator's first FPDU, so that the responder may send."""
        self.peer.write(0, 0)

    def dead(self, event=None, oldest=FLUSH, timeout=8):
        """The stream has ended. The consumer gets exactly that asynchronous
        event, or None; the oldest receive has that status, all others are flushed."""
        self.event("DISCONNECTED", timeout)
        for wr, status in zip(list(self.posted), itertools.chain([oldest], itertools.repeat(FLUSH))):
            self.wc(wr=wr, status=status)
        if event is not None:
            found = self.agent.wait("async", 3, k=self.k)
            if found["type"] != event:
                raise AssertionError("%s, due %d" % (found, event))
        if self.state()["state"] not in (STATE_ERR, STATE_SQE):
            raise AssertionError("QP state %s" % self.state())
        self.told_all()
        self.over = True

    def told_all(self):
        """No asynchronous event but those that were taken."""
        self.agent.none("async", k=self.k)

    def refused(self, layer, etype, code, bits="MD", ulpdu=None, oldest=FLUSH, **more):
        """The segment sent last was answered with that Terminate, and all is over."""
        ulpdu = self.peer.last_ulpdu if ulpdu is None else ulpdu
        term = self.peer.expect_terminate(layer, etype, code, ulpdu, bits, **more)
        self.peer.close()
        self.over_by(layer, etype, code, oldest)
        return term

    def over_by(self, layer, etype, code, oldest=FLUSH):
        """dead(), after that Terminate of weft."""
        self.dead(told(layer, etype, code), oldest)

    def terminated(self, *what, **more):
        """As refused(), for errors that carry no headers."""
        return self.refused(*what, bits="", ulpdu=b"", **more)


def eventually(f, condition, what, seconds=10):
    """@condition comes true in time; else @what says what did not."""
    end = time.monotonic() + seconds * f.world.slow
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.01)


def send_out(f, link, data, **more):
    """The agent sends; the message as it came."""
    out = f.mr(max(1, len(data)))
    out.poke(data)
    wr = link.post("send", sge=out.sge(0, len(data)) if data else None, **more)
    message = link.peer.message()
    link.wc(wr=wr)
    assert message.payload == data
    return message


def filling(framer, header, distance):
    """The payload that makes the next FPDU start @distance bytes before a marker."""
    for size in range(0, 1000, 4):
        end = mpa.Framer(True, True, framer.pos)
        end.frame(bytes(header + size))
        if (end.pos + distance) % mpa.MARKER_EVERY == 0:
            return size
    raise AssertionError("no size leads there")


def up_to_a_marker(link, target, distance):
    """The peer's next FPDU will start @distance bytes before a marker."""
    size = filling(link.peer.tx, ddp.TAGGED_LEN, distance)
    link.peer.write(target.rkey, target.iova, pattern(size))


class Fixture:
    """What one test made, so that it can be released."""

    def __init__(self, world):
        self.world = world
        self.agent = world.agent
        self.links, self.regions, self.windows, self.domains = [], [], [], []
        self.peers, self.listeners = [], []
        self.domain_of = {}
        self.wr_ids = itertools.count(1)
        self.undo = []

    # --- objects ---------------------------------------------------------------

    def mr(self, length=4096, access="lwra", domain="pd", **more):
        name = "m%d" % next(self.world.names)
        fields = self.agent.cmd("mr", name=name, pd=domain, len=length, access=access, **more)
        region = Region(self, name, fields, length)
        self.regions.append(region)
        return region

    def domain(self):
        """Another protection domain."""
        name = "pd%d" % next(self.world.names)
        self.agent.cmd("pd", name=name)
        self.domains.append(name)
        return name

    def window(self, kind=2, domain="pd"):
        name = "w%d" % next(self.world.names)
        fields = self.agent.cmd("mw", name=name, pd=domain, type=kind)
        self.windows.append(name)
        return name, fields["rkey"]

    # --- policy of the device ------------------------------------------------------

    def policy(self, name, value):
        """Set a policy file for this test; weft has to have it."""
        path = "/sys/class/infiniband/%s/params/%s" % (self.world.dev, name)
        if not os.path.exists(path):
            raise unfit("the module has no policy file '%s'" % name)
        with open(path, encoding="ascii") as file:
            was = file.read().strip()

        def write(what):
            with open(path, "w", encoding="ascii") as file:
                file.write("%s\n" % what)

        write(value)
        self.undo.append(lambda: write(was))

    def receives_in_time(self):
        """A message without a receive ends its stream at once, as with other drivers."""
        if DRIVER == "weft":
            self.policy("rnr_timeout_ms", 0)

    def counted(self, name):
        """A counter of weft's device; None of another driver."""
        path = "/sys/class/infiniband/%s/ports/1/hw_counters/%s" % (self.world.dev, name)
        if DRIVER != "weft":
            return None
        time.sleep(0.1)     # the core refreshes its counters with a delay
        with open(path, encoding="ascii") as file:
            return int(file.read())

    # --- connections -----------------------------------------------------------------

    def connect(self, **more):
        more = dict(address=self.world.weft, port=self.world.port, timeout=self.world.timeout) | more
        wire = peer.Peer.connect(**more)
        self.peers.append(wire)
        return wire

    def asked(self, timeout=5, listener=None):
        """The agent's connection request event, its link number in k."""
        return self.agent.wait("event", timeout, type="CONNECT_REQUEST",
                               listener=listener or self.world.listener)

    def listen6(self, port):
        """The agent listens on its IPv6 address, too: the listener."""
        k = self.agent.cmd("listen", addr=self.world.weft6, port=port)["k"]
        self.undo.append(lambda: self.agent.cmd("destroy", k=k))
        return k

    def passive(self, recv=4, size=1024, qp=None, domain="pd", ird=4, ord=4, pdata=b"", wire=None,
                piece=None, accept=True, before_accept=None, listener=None, **request):
        """We connect, the agent accepts: full operation, nothing sent yet."""
        wire = wire or self.connect()
        wire.send_request(piece=piece, **request)
        asked = self.asked(listener=listener)
        link = Link(self, wire, asked["k"])
        link.asked = asked
        self.links.append(link)
        self.domain_of[link.k] = domain
        if not accept:
            return link
        self.agent.cmd("qp", k=link.k, pd=domain, cq="cq", rq=512, **(qp or {}))
        if recv:
            link.recv(recv, size)
        if before_accept:
            before_accept(link)
        self.agent.cmd("accept", k=link.k, ird=ird, ord=ord, pdata=pdata.hex() or None)
        link.reply = wire.read_reply()
        wire.full_operation(True)
        return link

    def running(self, **more):
        """passive() with the gate open: the first FPDU was an empty Write."""
        link = self.passive(**more)
        link.start_responder()
        link.event("ESTABLISHED")
        return link

    def listen(self, **more):
        listener = peer.Listener(self.world.own, timeout=self.world.timeout, **more)
        self.listeners.append(listener)
        return listener

    def resolved(self, listener, domain="pd", recv=4, size=1024, qp=None, **source):
        """An agent's connection with a QP, about to connect to @listener."""
        k = self.agent.cmd("resolve", addr=self.world.own, port=listener.port, **source)["k"]
        link = Link(self, None, k)
        self.links.append(link)
        self.domain_of[k] = domain
        self.agent.cmd("qp", k=k, pd=domain, cq="cq", rq=512, **(qp or {}))
        if recv:
            link.recv(recv, size)
        return link

    def dialed(self, listener=None, ird=4, ord=4, pdata=b"", maxseg=None, **more):
        """The agent connects to us: its request is read, not yet answered."""
        listener = listener or self.listen(maxseg=maxseg)
        link = self.resolved(listener, **more)
        self.agent.cmd("connect", k=link.k, ird=ird, ord=ord, pdata=pdata.hex() or None)
        link.peer = listener.accept()
        self.peers.append(link.peer)
        link.request = link.peer.read_request()
        return link

    @staticmethod
    def answer(link, enhanced=None, **reply):
        """A correct reply to the request, but for what is given."""
        req = link.request
        if req.enhanced and "s" not in reply:
            e = req.enhanced
            enhanced = enhanced or mpa.Enhanced(ird=16, ord=min(e.ird, 16), a=e.a, b=0, c=e.c, d=0)
            reply.setdefault("rev", 2)
        elif not req.enhanced:
            reply.setdefault("rev", 1)
        link.peer.send_reply(enhanced=enhanced, **reply)
        link.peer.full_operation(False)

    def active(self, enhanced=None, reply=None, **more):
        """The agent connects, we accept: established, the RTR taken."""
        link = self.dialed(**more)
        self.answer(link, enhanced, **(reply or {}))
        link.established = link.event("ESTABLISHED")
        link.rtr = None
        if link.peer.reply_frame.enhanced and link.peer.reply_frame.enhanced.a:
            link.rtr = link.peer.message()
            if link.rtr.opcode == rdmap.READ_REQ:
                link.peer.read_response(rdmap.ReadRequest(link.rtr.payload), b"")
        return link

    # --- the aftermath -----------------------------------------------------------------

    def guards(self):
        self.agent.cmds([("guard", dict(name=region.name)) for region in self.regions])

    def release(self):
        for undo in reversed(self.undo):
            undo()
        for link in self.links:
            if link.peer:
                link.peer.close()
        for wire in self.peers:
            wire.close()
        for listener in self.listeners:
            listener.close()
        late = None
        for link in self.links:
            try:
                if link.over:
                    link.told_all()
            except NotSeen as error:
                late = error
            try:
                self.agent.cmd("destroy", k=link.k)
            except AgentError:
                pass
        for name in self.windows:
            try:
                self.agent.cmd("dealloc", name=name)
            except AgentError:
                pass
        self.agent.cmds([("dereg", dict(name=region.name, keep=0)) for region in self.regions] +
                        [("droppd", dict(name=name)) for name in self.domains])
        self.regions.clear()
        self.agent.forget()
        if late:
            raise late


class World:
    """What lasts for all tests: the agent, its listener, the addresses."""

    def __init__(self, dev, weft, own, weft6, agent_argv, slow):
        self.dev, self.weft, self.own, self.slow = dev, weft, own, slow
        self.weft6 = weft6
        self.argv = agent_argv
        self.port = 7471
        self.timeout = 5.0 * slow
        self.names = itertools.count(1)
        self.agent = None
        self.start_agent()

    def start_agent(self):
        if self.agent:
            self.agent.close()
        self.agent = Agent(self.argv, self.slow)
        self.device = self.agent.cmd("dev", name=self.dev)
        self.agent.cmd("pd", name="pd")
        self.agent.cmd("cq", name="cq", depth=16384)
        self.listener = self.agent.cmd("listen", addr=self.weft, port=self.port)["k"]

    def healthy(self):
        """The next connection works, in both directions."""
        fixture = Fixture(self)
        try:
            link = fixture.running(recv=1, size=64)
            link.peer.send(b"are you well?")
            link.received(b"are you well?")
            out = fixture.mr(length=16, access="l")
            out.poke(b"yes")
            wr = link.post("send", sge=out.sge(0, 3))
            if link.peer.expect(rdmap.SEND).payload != b"yes":
                raise AssertionError("not the bytes that were sent")
            link.wc(wr=wr)
        finally:
            fixture.release()
