# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Malicious input from a peer, in every state of a connection: good messages, mutated in
their fields, framing, order and length. Runs when it is named only.

FUZZ_SECONDS is how long each state is fuzzed (default 0.5), some rounds at least. FUZZ_SEED is
where its numbers begin (default: another one each time). FUZZ_ROUND=N runs that round of each
state and no other.
"""

import itertools
import os
import random
import time

import harness
import test_close
from harness import AgentError, pattern, test
from wirepeer import ddp, mpa, rdmap

SECONDS = float(os.environ.get("FUZZ_SECONDS") or 0.5)
SEED = int(os.environ.get("FUZZ_SEED") or random.randrange(1, 1 << 30))
ROUND = os.environ.get("FUZZ_ROUND")
ROUNDS_LEAST = 8

SECRET = 0xA5
LIMITS = (0, 1, 3, 4, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 1 << 24, 0x7FFFFFFF, 0x80000000,
          0xFFFFFFFF, 1 << 62, (1 << 64) - 1)


class Stage:
    """What every round of a state works on: memory that may be reached, and some that may not."""

    def __init__(self, f):
        self.f = f
        self.target = f.mr(8192)
        other = f.domain()
        self.secret = f.mr(4096, domain=other)
        self.secret.fill(SECRET)
        self.local = f.mr(4096, access="l")
        self.local.fill(SECRET)
        self.wide = f.mr(4096, access="r")
        self.wide.fill(SECRET)
        self.port = f.world.port + 1 + next(f.world.names)
        self.listener = f.agent.cmd("listen", addr=f.world.weft, port=self.port)["k"]
        f.undo.append(lambda: f.agent.cmd("destroy", k=self.listener))

    def unharmed(self):
        """No peer has the right to write to any of these."""
        for region in (self.secret, self.local, self.wide):
            harness.untouched(region, SECRET)
        self.f.guards()


# --- messages ---------------------------------------------------------------------------


def good_ulpdus(rng, stage, msn):
    """ULPDUs in order, of one to five messages. @msn: the next number of each queue."""
    out = []
    for _ in range(rng.randrange(1, 6)):
        out += rng.choice(MESSAGES)(rng, stage, msn)
    return out


def next_msn(msn, qn):
    msn[qn] += 1
    return msn[qn] - 1


def some_region(rng, stage):
    return rng.choice((stage.target, stage.target, stage.target, stage.secret, stage.local,
                       stage.wide))


def a_send(rng, stage, msn):
    op = rng.choice((rdmap.SEND, rdmap.SEND_SE, rdmap.SEND_INV, rdmap.SEND_SE_INV, 12, 13))
    inv = some_region(rng, stage).rkey if op in (rdmap.SEND_INV, rdmap.SEND_SE_INV) else 0
    number, data = next_msn(msn, 0), pattern(rng.choice((0, 1, 40, 600, 1100)))
    cut = rng.choice((2000, 300, 64))
    return [ddp.untagged(op, 0, number, at, data[at:at + cut], at + cut >= len(data), inv)
            for at in range(0, max(1, len(data)), cut)]


def a_write(rng, stage, _):
    region = some_region(rng, stage)
    size = rng.choice((0, 8, 500, 3000, 9000))
    at = rng.choice((0, 0, 100, region.len - size, region.len))
    cut = rng.choice((4000, 1000, 200))
    data = pattern(size)
    return [ddp.tagged(rdmap.WRITE, region.rkey, region.iova + at + off, data[off:off + cut],
                       off + cut >= size) for off in range(0, max(1, size), cut)]


def a_read(rng, stage, msn):
    region = some_region(rng, stage)
    header = rdmap.read_request(0x51A6, 0x1000, rng.choice((0, 8, 4096, 8192, 0xFFFFFFFF)),
                                region.rkey, region.iova + rng.choice((0, 8, 8191)))
    return [ddp.untagged(rdmap.READ_REQ, 1, next_msn(msn, 1), payload=header)]


def an_atomic(rng, stage, msn):
    region = some_region(rng, stage)
    header = rdmap.atomic_request(rng.choice((0, 0, 2, 1)), rng.randrange(100), region.rkey,
                                  region.iova + rng.choice((0, 8, 4, 8184)), 1, 0, 0, rdmap.ONES)
    return [ddp.untagged(rdmap.ATOMIC_REQ, 1, next_msn(msn, 1), payload=header)]


def an_answer(rng, _, msn):
    if rng.randrange(2):
        return [ddp.tagged(rdmap.READ_RESP, 0x51A6, rng.choice((0, 0x1000)), pattern(100),
                           bool(rng.randrange(2)))]
    return [ddp.untagged(rdmap.ATOMIC_RESP, 3, next_msn(msn, 3),
                         payload=rdmap.atomic_response(rng.randrange(4), 1))]


def an_immediate(rng, _, msn):
    return [ddp.untagged(rng.choice((rdmap.IMM, rdmap.IMM_SE)), 0, next_msn(msn, 0),
                         payload=pattern(8))]


def a_terminate(rng, _, msn):
    header = rng.choice((b"", ddp.untagged(rdmap.SEND, 0, 1), ddp.tagged(rdmap.WRITE, 7, 8),
                         ddp.untagged(rdmap.READ_REQ, 1, 1)))
    term = rdmap.Terminate(rng.randrange(3), rng.randrange(3), rng.randrange(10),
                           40 if header else None, header)
    return [ddp.untagged(rdmap.TERMINATE, 2, next_msn(msn, 2), payload=term.build())]


MESSAGES = (a_send, a_send, a_write, a_write, a_read, an_atomic, an_answer, an_immediate,
            a_terminate)


# --- mutations ---------------------------------------------------------------------------


def corrupt_field(rng, data):
    """A number of one to eight bytes is another one."""
    size = rng.choice((1, 1, 2, 4, 8))
    if len(data) < size:
        return data
    # most of them among the headers
    at = rng.randrange(min(len(data) - size + 1, 24 if rng.randrange(4) else len(data)))
    value = int.from_bytes(data[at:at + size], "big")
    value = rng.choice((value ^ 1 << rng.randrange(8 * size), value + 1, value - 1,
                        rng.choice(LIMITS), rng.getrandbits(64)))
    return data[:at] + (value & (1 << 8 * size) - 1).to_bytes(size, "big") + data[at + size:]


def mutated_ulpdus(rng, ulpdus):
    ulpdus = list(ulpdus)
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randrange(len(ulpdus))
        how = rng.randrange(8)
        if how < 4:
            ulpdus[at] = corrupt_field(rng, ulpdus[at])
        elif how == 4:
            ulpdus[at] = ulpdus[at][:rng.randrange(len(ulpdus[at]) + 1)]
        elif how == 5:
            ulpdus.insert(at, ulpdus[rng.randrange(len(ulpdus))])
        elif how == 6:
            ulpdus[at] += rng.randbytes(rng.randrange(1, 40))
        else:
            ulpdus[at:] = ulpdus[at:][::-1]
    return ulpdus


def framed(rng, framer, ulpdus):
    """Bytes of the stream; now and then an FPDU is not what its length or its CRC says."""
    out = b""
    for ulpdu in ulpdus:
        odd = {}
        if not rng.randrange(12):
            odd = rng.choice((dict(crc_xor=1 << rng.randrange(32)), dict(pad=b"\xff\xff\xff"),
                              dict(length=rng.choice((0, 1, 13, 17, len(ulpdu) + 4, 65535)))))
        out += framer.frame(ulpdu, **odd)
    return out


def some_frame(rng, reply=False):
    """A start frame, as good or as bad as it gets."""
    make = mpa.reply if bool(rng.randrange(8)) == reply else mpa.request
    enhanced = None
    if rng.randrange(2):
        enhanced = mpa.Enhanced(*(rng.choice((0, 1, 4, 100, 0x3FFF)) for _ in range(2)),
                                *(rng.randrange(2) for _ in range(4)))
    frame = make(m=rng.randrange(2), c=rng.randrange(2), r=not rng.randrange(6),
                 rev=rng.choice((1, 2, 2, 0, 3)), enhanced=enhanced,
                 pd=rng.randbytes(rng.choice((0, 0, 24, 500, 508, 512))), s=rng.choice((None, 0, 1)))
    if not rng.randrange(6):
        frame.pd_length = rng.choice((0, 3, 512, 513, 65535))
    data = frame.build()
    return corrupt_field(rng, data) if not rng.randrange(3) else data


def sent(rng, wire, data):
    """In one go or in pieces; perhaps not to its end."""
    if not rng.randrange(6):
        data = data[:rng.randrange(len(data) + 1)]
    piece = rng.choice((None, None, None, 1, 7, 100))
    if piece and len(data) > 400:
        piece = max(piece, len(data) // 50)
    try:
        wire.raw(data, piece)
    except OSError:
        pass    # it has closed, which is its right


def left(rng, wire):
    """FIN, RST, or both ends at once."""
    how = rng.randrange(3)
    if how == 0:
        wire.fin()
    try:
        if how == 1:
            wire.rst()
        elif how == 0:
            wire.sock.settimeout(0.05)
            while wire.sock.recv(1 << 16):
                pass
    except OSError:
        pass
    wire.close()


# --- rounds ---------------------------------------------------------------------------------


def round_in(f, stage, rng, state):
    """One connection: up to @state, then malicious input, then its end."""
    if state == "awaiting a reply":
        link = f.dialed()
        sent(rng, link.peer, some_frame(rng, reply=True) + rng.randbytes(rng.choice((0, 0, 40))))
        left(rng, link.peer)
        return
    if state == "without crc":
        link = f.running(rev=1, c=0)
        wire = link.peer
    else:
        wire, link = test_close.reach(f, state)
    if not wire.tx:
        first = some_frame(rng)
        sent(rng, wire, first[11:] if state == "half a request" else first)
    if not wire.tx:
        wire.tx = mpa.Framer(bool(rng.randrange(2)), bool(rng.randrange(2)))
    ulpdus = mutated_ulpdus(rng, good_ulpdus(rng, stage, dict(wire.msn)))
    sent(rng, wire, framed(rng, wire.tx, ulpdus))
    if link and not rng.randrange(4):
        meddle(f, rng, link)
    left(rng, wire)


def meddle(f, rng, link):
    """The consumer does something meanwhile; whether it may is up to the state."""
    how = rng.randrange(4)
    try:
        if how == 0:
            f.agent.cmd("disconnect", k=link.k)
        elif how == 1:
            f.agent.cmd("modify", k=link.k, state="err")
        elif how == 2:
            link.recv(1, 64)
        else:
            out = f.mr(64)
            link.post("send", sge=out.sge())
    except AgentError:
        pass


class Neighbour:
    """A connection beside all that, whose data are compared."""

    def __init__(self, f):
        self.f = f
        self.link = f.running(recv=0)
        self.memory = f.mr(4096)
        self.turn = 0

    def works(self):
        self.turn += 1
        data = pattern(1 + self.turn * 97 % 3000, self.turn)
        slot = self.link.recv(1, len(data))
        self.link.peer.send(data)
        self.link.received(data)
        slot.dereg()
        self.link.peer.write(self.memory.rkey, self.memory.iova, data)
        self.link.peer.read(self.memory.rkey, self.memory.iova, len(data))
        seen = self.link.peer.expect(rdmap.READ_RESP).payload
        assert seen == data, "the neighbour reads %s..., due %s..." % (
            seen[:16].hex(), data[:16].hex())


class Pruned:
    """The agent, which forgets what happened but for connection requests not yet asked for."""

    def __init__(self, agent):
        self.agent = agent

    def __getattr__(self, name):
        return getattr(self.agent, name)

    def forget(self):
        self.agent.look()
        self.agent.lines = [line for line in self.agent.lines
                            if line.get("type") == "CONNECT_REQUEST"]


class Round(harness.Fixture):
    """What one round makes, on a listener of the state's own."""

    def __init__(self, world, listener, port):
        super().__init__(world)
        self.agent = Pruned(world.agent)
        self.listener, self.port = listener, port
        self.wr_ids = itertools.count(1 << 20)

    def connect(self, **more):
        return super().connect(port=self.port, **more)

    def asked(self, timeout=5, listener=None):
        return super().asked(timeout, listener or self.listener)

    def unasked(self):
        """Requests that were good enough after all."""
        while True:
            self.agent.look()
            found = self.agent.take("event", type="CONNECT_REQUEST", listener=self.listener)
            if not found:
                return
            self.agent.cmd("destroy", k=found["k"])

    def gone(self):
        """Each QP can be destroyed; events and completions are ignored."""
        for link in self.links:
            link.over = False
        self.release()
        self.unasked()


def one_round(f, stage, state, number):
    rng = random.Random("%d %s %d" % (SEED, state, number))
    inner = Round(f.world, stage.listener, stage.port)
    try:
        try:
            round_in(inner, stage, rng, state)
        finally:
            inner.gone()
    except Exception as error:
        raise AssertionError("FUZZ_SEED=%d FUZZ_ROUND=%d, state '%s': %s: %s" % (
            SEED, number, state, type(error).__name__, error)) from error


def mutated(f, state, policy=None):
    for name, value in (policy or {}).items():
        f.policy(name, value)
    stage, neighbour = Stage(f), Neighbour(f)
    end = time.monotonic() + SECONDS
    rounds = [int(ROUND)] if ROUND else itertools.count()
    done = 0
    for number in rounds:
        one_round(f, stage, state, number)
        done += 1
        if number % 16 == 0 or ROUND:
            neighbour.works()
            stage.unharmed()
        if time.monotonic() > end and done >= ROUNDS_LEAST:
            break
    neighbour.works()
    stage.unharmed()
    print("# seed %d, %d rounds" % (SEED, done))


STATES = ("awaiting a reply",) + test_close.STATES


@test(each=STATES)
def what_means_ill(f, state):
    mutated(f, state)


@test()
def what_means_ill_behind_a_message_that_waits(f):
    """Nothing behind it is looked at before there is a receive, or its time is up."""
    test_close.ACTIONS["late"] = lambda f, link: [link.peer.send(b"there are four")
                                                  for _ in range(5)]
    mutated(f, "late", {"rnr_timeout_ms": 30})


@test()
def without_crc(f):
    """Then many segments of a message are looked at together."""
    mutated(f, "without crc", {"mpa_crc": 0})
