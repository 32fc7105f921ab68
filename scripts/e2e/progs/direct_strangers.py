# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of direct.py: who else comes to the port of a QP that waits for its peer."""

import contextlib
import ipaddress
import os
import pathlib
import re
import socket
import struct
import subprocess
import time

import pyverbs.enums as e
from direct_end import (End, accepting, args, counts, initiator_first, log_of, messages, param,
                        turned)
from direct_frames import (BAD_PSN, BAD_VERSION, BUSY, CRC, MALFORMED, NO_QP, PORT, REQUEST, answer,
                           READY, address_of, dial, hello, plain_listener, reason, reply,
                           request)
from shortage import Shortage

# As in drivers/weft/cm/direct_port.c.
WAITING_MAX, DROPPED_MAX = 128, 32
WRITE, TERMINATE = 0, 7	# of RDMAP


def strangers():
    a, b = accepting()
    good = (a.number, b.number, b.psn, a.psn)
    # What is no request at all is closed without a reply.
    for data in (b"GET / HTTP/1.1\r\n\r\n", bytes(64), REQUEST + bytes([CRC, 7, 0, 0]),
                 REQUEST + struct.pack(">BBH", CRC, 2, 65535)):
        assert reason(b, data) is None
    for private in (b"", b"W", hello(*good)[:-1], hello(*good, magic=b"WFTR"),
                    hello(1 << 24, *good[1:]), hello(*good[:3], 1 << 31)):
        assert reason(b, request(private)) == MALFORMED, private
    with counts("refused"):
        assert reason(b, request(hello(*good, version=2))) == BAD_VERSION
    assert reason(b, request(hello(*good), ird=8, ord_=8)) == MALFORMED	# not peer-to-peer
    for numbers in ((good[0] + 1, *good[1:]), (good[0], 0xfffffe, *good[2:])):
        assert reason(b, request(hello(*numbers))) == NO_QP
    for numbers in ((*good[:2], good[2] ^ 1, good[3]), (*good[:3], good[3] ^ 1)):
        assert reason(b, request(hello(*numbers))) == BAD_PSN
    assert b.state() == e.IBV_QPS_RTS
    a.connect(b)
    messages(a, b)
    assert reason(b, request(hello(*good))) == BUSY
    messages(a, b)
    # One that has not said what it wants ends with the port.
    with turned("mpa_request_timeout_ms", 60000), dial(b, b"MPA ID Req") as sock:
        time.sleep(0.3)
        b.reset()
        assert answer(sock, 20) is None


def wrong_address():
    a, b = accepting()
    good = request(hello(a.number, b.number, b.psn, a.psn))
    assert reason(b, good, source=args.stranger) == NO_QP
    a.connect(b)
    messages(a, b)


@contextlib.contextmanager
def one_more_address(device, address, beside):
    """The index of its GID; beside is an address that the device has."""
    netdev = subprocess.run(["ip", "-o", "addr", "show", "to", beside], capture_output=True,
                            text=True, check=True).stdout.split()[1]
    subprocess.run(["ip", "addr", "add", f"{address}/24", "dev", netdev], check=True)
    try:
        gids = pathlib.Path(f"/sys/class/infiniband/{device}/ports/1/gids")
        end, found = time.monotonic() + 10, None
        while found is None:
            assert time.monotonic() < end, f"{address} has no GID"
            for path in gids.iterdir():
                gid = ipaddress.IPv6Address(path.read_text(encoding="ascii").strip())
                if str(gid.ipv4_mapped) == address:
                    found = int(path.name)
        yield found
    finally:
        subprocess.run(["ip", "addr", "del", f"{address}/24", "dev", netdev], check=True)


def another_address():
    """The right numbers at an address that another QP waits at."""
    a, b = accepting()
    good = request(hello(a.number, b.number, b.psn, a.psn))
    host = str(ipaddress.ip_address(a.gid).ipv4_mapped)
    with one_more_address(args.peer, "10.78.0.1", beside=host) as index:
        other = End(device=args.peer, gid=index)
        other.connect(a)
        assert reason(other, good, source=host) == NO_QP
        other.close()
    a.connect(b)
    messages(a, b)


@contextlib.contextmanager
def next_request(listener):
    """The connection that the next one comes on. It is whole, and of revision 2."""
    with listener.accept()[0] as sock:
        sock.settimeout(10)
        length = len(request(hello(0, 0, 0, 0)))
        asked = sock.recv(length, socket.MSG_WAITALL)
        assert (asked[:16], asked[17], len(asked)) == (REQUEST, 2, length), asked
        yield sock


def wrong_answer():
    """Another program listens where the peer should, and answers with numbers of other QPs."""
    a, b = initiator_first()
    good = (b.number, a.number, a.psn, b.psn)
    wrong = ((good[0] + 1, *good[1:]), (good[0], good[1] + 1, *good[2:]),
             (*good[:2], good[2] ^ 1, good[3]), (*good[:3], good[3] ^ 1))
    with plain_listener(b) as listener:
        a.connect(b)
        for numbers in (*wrong, good):
            with next_request(listener) as sock, \
                    counts("active" if numbers is good else "refused"):
                sock.sendall(reply(hello(*numbers)))
                fpdu = sock.recv(4, socket.MSG_WAITALL)
                opcode = WRITE if numbers is good else TERMINATE
                assert fpdu[3] & 0xf == opcode, f"{numbers}: {fpdu}"
    said = log_of(a, b)
    assert len(said) == 1 and "answers with other numbers" in said[0], said


def no_answer():
    """Another program takes the request and hangs up, or says nothing."""
    a, b = initiator_first()
    with plain_listener(b) as listener:
        a.connect(b, timeout=0)
        for _ in range(3):
            with counts("refused"), next_request(listener) as sock:
                sock.close()
        with next_request(listener) as sock:
            a.quiet()
            with counts("refused"):
                a.reset()
                assert sock.recv(1) == b"", "a QP that is reset does not let go"
        a.connect(b)
        a.post()
        with next_request(listener) as sock:
            a.expect(e.IBV_WC_RETRY_EXC_ERR)
            assert sock.recv(1) == b"", "a QP that has failed does not let go"


def at_the_end_that_connects():
    """The right numbers, for a QP that connects itself."""
    opener = accepting()
    a, b = initiator_first()
    a.init()
    a.rtr(b)
    assert reason(opener[1], request(hello(b.number, a.number, a.psn, b.psn))) == NO_QP
    b.connect(a)
    a.rts()
    messages(a, b)
    for end in opener:
        end.close()


def peer_without_immediate():
    """What a peer has not said that it understands is not sent to it, whichever end connects."""
    a, b = initiator_first()
    with plain_listener(b) as listener:
        a.connect(b)
        with next_request(listener) as sock:
            sock.sendall(reply(hello(b.number, a.number, a.psn, b.psn)))
            assert sock.recv(len(READY), socket.MSG_WAITALL) == READY
            a.post(e.IBV_WR_SEND_WITH_IMM)
            a.expect(e.IBV_WC_LOC_QP_OP_ERR)
    a, b = accepting()
    with dial(b, request(hello(a.number, b.number, b.psn, a.psn))) as sock:
        assert answer(sock) == 0
        sock.sendall(READY)
        b.post(e.IBV_WR_SEND_WITH_IMM)
        b.expect(e.IBV_WC_LOC_QP_OP_ERR)


def flood():
    """Silence, requests for a QP that never gets there, and nonsense, all at once."""
    a, b = accepting()
    later = End(device=args.peer)
    waiting = request(hello(1, later.number, 0, 0))
    socks = []
    for i in range(600):
        try:
            socks.append(dial(b, (b"", waiting, b"MPA ID Req")[i % 3]))
        except OSError:
            pass	# it is full: that is its right
    began = time.monotonic()
    a.connect(b)
    messages(a, b)
    assert time.monotonic() - began < 10, "a good peer was delayed"
    for sock in socks:
        sock.close()


def oldest_goes_first():
    """It is the connection that has waited longest that makes room for one more."""
    a, b = accepting()
    unknown = request(hello(a.number, 0xfffffe, b.psn, a.psn))
    with turned("mpa_request_timeout_ms", 60000), contextlib.ExitStack() as stack:
        socks = [stack.enter_context(dial(b, b"")) for _ in range(WAITING_MAX + 1)]
        assert answer(socks[0]) is None
        for sock in socks[1], socks[-1]:
            sock.sendall(unknown)
            assert answer(sock) == NO_QP


def port_without_memory():
    """TCP does not say again that a connection waits, and no other comes."""
    a, b = accepting()
    family, address = address_of(b)
    with socket.socket(family) as sock:
        sock.settimeout(10)
        with Shortage("sock_inode_cache", times=1) as shortage:
            sock.connect(address)
            end = time.monotonic() + 10
            while not shortage.is_over():
                assert time.monotonic() < end, "it was taken at once"
        sock.sendall(request(hello(a.number, 0xfffffe, b.psn, a.psn)))
        assert answer(sock) == NO_QP
    # What has none of its own is off TCP's queue by then, and is closed.
    with Shortage("kmalloc-2k"), dial(b, b"") as sock:
        assert answer(sock) is None
    a.connect(b)
    messages(a, b)


@contextlib.contextmanager
def acceptor_runs_alone():
    """What takes connections off TCP is not interrupted by what releases them: all work that
    belongs to no CPU is left to CPU 0, where its threads run one after the other."""
    mask = pathlib.Path("/sys/devices/virtual/workqueue/cpumask")
    before = mask.read_text(encoding="ascii")
    mask.write_text("1", encoding="ascii")
    time.sleep(0.2)	# threads are made for that CPU
    found = subprocess.run(["pgrep", "^kworker/u"], capture_output=True, text=True, check=True)
    workers = [int(pid) for pid in found.stdout.split()]
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):	# a worker that was idle for long
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
        mask.write_text(before, encoding="ascii")


def burst(end, count):
    """Connections that wait in TCP's queue before the first one is taken off it."""
    family, address = address_of(end)
    socks = [socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
             for _ in range(count)]
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    for sock in socks:
        sock.connect_ex(address)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.sched_setaffinity(0, cpus)
    return socks


@contextlib.contextmanager
def most_at_once(found):
    """Appends to the list how many connections that were accepted there are at most."""
    tracing = pathlib.Path("/sys/kernel/tracing")
    event = tracing / "events/weft/weft_cm_state"
    (tracing / "trace_clock").write_text("counter", encoding="ascii")
    (tracing / "trace").write_text("", encoding="ascii")
    (event / "enable").write_text("1", encoding="ascii")
    try:
        yield
    finally:
        (event / "enable").write_text("0", encoding="ascii")
    now, most = set(), 0
    for handle, what, state in re.findall(r"handle=(\d+) .* event=(\S+) from=\S+ to=(\S+)",
                                         (tracing / "trace").read_text(encoding="ascii")):
        if what == "tcp-accepted":
            now.add(handle)
        elif state == "closed":
            now.discard(handle)
        most = max(most, len(now))
    found.append(most)


def flood_is_bounded():
    """Connections that make room for newer ones count until they are gone."""
    a, b = accepting()
    most = []
    with acceptor_runs_alone(), most_at_once(most):
        for _ in range(3):
            socks = burst(b, 400)
            time.sleep(1)
            # The listener goes on as long as one is left there.
            queued = subprocess.run(["ss", "-Hltn", f"sport = {PORT}"], capture_output=True,
                                    text=True, check=True).stdout
            assert {line.split()[1] for line in queued.splitlines()} == {"0"}, queued
            assert socks
    assert WAITING_MAX <= most[0] <= WAITING_MAX + DROPPED_MAX, most
    began = time.monotonic()
    a.connect(b)
    messages(a, b)
    assert time.monotonic() - began < 10, "a good peer was delayed"


def held_is_bounded():
    a, b = accepting()
    later = End(device=args.peer)
    socks = [dial(b, request(hello(1, later.number, 0, 0))) for _ in range(256)]
    time.sleep(1)
    assert reason(b, request(hello(1, later.number, 0, 0))) == BUSY
    with counts(*["refused"] * len(socks)):
        for sock in socks:
            sock.close()
    with dial(b, request(hello(1, later.number, 0, 0))) as sock:
        later.init()
        time.sleep(0.3)
        later.rtr(a, number=99, psn=5)
        assert answer(sock) == NO_QP
    a.connect(b)
    messages(a, b)


def held_for_another():
    """Requests for two QPs: one that gets ready answers its own, and leaves the other's."""
    opener = accepting()
    pairs = [initiator_first() for _ in range(2)]
    with contextlib.ExitStack() as stack:
        socks = []
        for a, b in pairs:
            b.init()
            good = hello(a.number, b.number, b.psn, a.psn)
            socks.append(stack.enter_context(dial(b, request(good))))
        time.sleep(0.3)	# they are held
        for (a, b), sock in zip(pairs, socks):
            b.rtr(a)
            assert answer(sock) == 0
    for end in opener:
        end.close()


def half_a_handshake():
    """An initiator with the right numbers that never says that it is ready."""
    param("mpa_rtr_timeout_ms", 500, device=args.peer)
    a, b = accepting()
    b.receive()
    with counts("refused"), \
            dial(b, request(hello(a.number, b.number, b.psn, a.psn))) as sock:
        assert answer(sock) == 0
        b.expect(e.IBV_WC_WR_FLUSH_ERR)
    param("mpa_rtr_timeout_ms", 10000, device=args.peer)
    assert b.state() == e.IBV_QPS_ERR
