#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""QPs that a program connects itself, by ibv_modify_qp().

Usage: direct.py [--device NAME] [--peer NAME] [--gid N] CASE
Both ends are in this process. --peer is the device of the second one; --gid the index of
the address on both. A case fails by an exception.
"""

import argparse
import collections
import contextlib
import errno
import ipaddress
import os
import pathlib
import re
import socket
import struct
import subprocess
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.qp import QP, QPAttr
from pyverbs.wr import SGE, SendWR
from direct_end import ACCESS, End, SIZE, TO_RTR, args, messages, param, refused, two

PORT = 4791
# As in drivers/weft/cm/direct_port.c.
WAITING_MAX, DROPPED_MAX = 128, 32
REQUEST = b"MPA ID Req Frame"
REPLY = b"MPA ID Rep Frame"
# An empty Write, with its CRC: an initiator is ready.
READY = bytes.fromhex("000e" "c140000000000000000000000000" "a30572ab")
REJECT, CRC, ENHANCED = 0x20, 0x40, 0x10
WRITE, TERMINATE = 0, 7	# of RDMAP
MALFORMED, BAD_VERSION, NO_QP, BAD_PSN, BUSY = range(1, 6)


# --- attributes and counters of the devices ---


@contextlib.contextmanager
def turned(name, value):
    """An attribute of both devices has another value."""
    before = {device: param(name, device=device) for device in {args.device, args.peer}}
    try:
        for device in before:
            param(name, value, device=device)
        yield
    finally:
        for device, old in before.items():
            param(name, old, device=device)


def counters():
    files = pathlib.Path(f"/sys/class/infiniband/{args.device}/ports/1/hw_counters")
    return collections.Counter({
        what: int((files / f"connections_{what}").read_text(encoding="ascii"))
        for what in ("active", "passive", "refused")})


@contextlib.contextmanager
def counts(*expected):
    """The device counts these connections, and no other ones."""
    before = counters()
    yield
    expected = collections.Counter(expected)
    end = time.monotonic() + 20
    while counters() - before != expected:
        assert time.monotonic() < end, f"{counters() - before}, not {expected}"
        time.sleep(0.02)


# --- two ends that mean each other ---


def both_orders():
    """Whichever end is in RTR first, and whichever is the one that connects."""
    for swap in (False, True):
        for pause in (0, 0.4):
            a, b = two()
            first, second = (b, a) if swap else (a, b)
            first.connect(second)
            time.sleep(pause)
            second.connect(first)
            messages(a, b)
            assert a.state() == b.state() == e.IBV_QPS_RTS
            a.close()
            b.close()


def posts_wait():
    a, b = two()
    b.init()
    b.receive(8)
    a.connect(b, timeout=0)
    for i in range(8):
        a.post(wr_id=i)
    a.quiet()
    b.rtr(a)
    for i in range(8):
        assert a.expect().wr_id == i
        assert b.expect().wr_id == 1000 + i


def one_way():
    """As perftest's servers: an end that only receives stays in RTR."""
    for swap in (False, True):
        a, b = two()
        sender, receiver = (b, a) if swap else (a, b)
        receiver.init()
        receiver.receive(4)
        receiver.rtr(sender)
        sender.connect(receiver)
        for _ in range(4):
            sender.post()
            sender.expect()
            receiver.expect()
        sender.post(e.IBV_WR_RDMA_READ, 4096, receiver)
        sender.expect()
        assert receiver.state() == e.IBV_QPS_RTR
        receiver.rts()
        sender.receive()
        receiver.post()
        receiver.expect()
        sender.expect()


def itself():
    a = End(psn=77)
    a.connect(a)
    a.receive(4)
    for _ in range(4):
        a.post()
        assert {wc.status for wc in a.poll(2)} == {e.IBV_WC_SUCCESS}
    a.post(e.IBV_WR_RDMA_WRITE, SIZE, a)
    a.expect()
    a.post(e.IBV_WR_RDMA_READ, 4096, a)
    a.expect()
    assert a.state() == e.IBV_QPS_RTS
    b = End(psn=77)
    b.init()
    b.rtr(b, psn=76)
    b.rts()
    b.post()
    b.expect(e.IBV_WC_RETRY_EXC_ERR)


def many():
    """Fifty pairs that get ready in any order."""
    pairs = [two() for _ in range(50)]
    for a, b in pairs:
        a.connect(b)
    for a, b in reversed(pairs):
        b.connect(a)
    for a, b in pairs:
        messages(a, b, 1)


def attributes():
    a, b = two()
    a.connect(b, timeout=17, retries=5, depth=4)
    attr, _ = a.qp.query(0x1fffff)
    assert attr.qp_state == e.IBV_QPS_RTS
    assert attr.dest_qp_num == b.number
    assert (attr.rq_psn, attr.sq_psn) == (b.psn, a.psn)
    assert (attr.timeout, attr.retry_cnt, attr.rnr_retry) == (17, 5, 7)
    assert (attr.max_rd_atomic, attr.max_dest_rd_atomic) == (4, 8)
    assert attr.min_rnr_timer == 12 and attr.path_mtu == e.IBV_MTU_1024
    assert attr.qp_access_flags == ACCESS
    assert attr.ah_attr.is_global and attr.ah_attr.dgid == b.gid
    b.connect(a)
    messages(a, b)
    assert a.qp.query(e.IBV_QP_MAX_QP_RD_ATOMIC)[0].max_rd_atomic == 4


def depths():
    """A depth of nothing: reads fail. The other end's still work."""
    a, b = two()
    a.init()
    a.rtr(b)
    b.init()
    b.rtr(a)
    a.rts(depth=1)
    b.rts(depth=0)
    for _ in range(16):
        a.post(e.IBV_WR_RDMA_READ, 4096, b)
    for _ in range(16):
        a.expect()
    b.post(e.IBV_WR_RDMA_READ, 4096, a)
    b.expect(e.IBV_WC_LOC_QP_OP_ERR)


def immediate():
    a, b = two()
    a.connect(b)
    b.connect(a)
    for one, other, value in ((a, b, 0x11223344), (b, a, 0x99aabbcc)):
        for length in (0, 64, SIZE):
            other.receive()
            wr = SendWR(opcode=e.IBV_WR_SEND_WITH_IMM, num_sge=1,
                        sg=[SGE(one.mr.buf, length, one.mr.lkey)], imm_data=value)
            one.qp.post_send(wr)
            one.expect()
            wc = other.expect()
            assert wc.opcode == e.IBV_WC_RECV and wc.byte_len == length
            assert wc.wc_flags & e.IBV_WC_WITH_IMM
            assert wc.imm_data == value, hex(wc.imm_data)
    messages(a, b)


# --- lives and ends ---


def second_life():
    a, b = two()
    for life in range(5):
        a.psn, b.psn = 100 + life, 200 + life
        a.connect(b)
        b.connect(a)
        messages(a, b)
        a.receive(3)
        for end in (a, b) if life % 2 else (b, a):
            end.reset()
            assert end.state() == e.IBV_QPS_RESET
        a.quiet(0)
    a.connect(b)
    a.reset()
    a.connect(b)
    b.connect(a)
    messages(a, b)
    b.close()
    a.post(wr_id=7)
    assert a.expect(e.IBV_WC_RETRY_EXC_ERR).wr_id == 7


def late_receive():
    """rnr_retry 7 waits as long as it takes; what follows arrives as well."""
    a, b = two()
    a.connect(b)
    b.connect(a)
    for one, other in ((a, b), (b, a)):
        for i in range(4):
            one.post(wr_id=i)
        time.sleep(2.5)	# rnr_timeout_ms is less
        other.receive(4)
        for end in (one, other):
            for wc in end.poll(4):
                assert wc.status == e.IBV_WC_SUCCESS, wc.status
    messages(a, b)


def no_receive():
    """0 to 6 ends the wait. The sender gets an error: for its next request if TCP took that one."""
    for rnr_retry, rnr_timer, least, most in ((0, 12, 0, 2), (3, 0, 1.9, 5)):
        for swap in (False, True):
            a, b = two()
            one, other = (b, a) if swap else (a, b)
            for end, peer in ((a, b), (b, a)):
                end.init()
                end.rtr(peer, rnr_timer=rnr_timer)
                end.rts(rnr_retry=rnr_retry)
            one.receive()
            other.receive()
            one.post()
            one.expect()
            other.expect()
            began = time.monotonic()
            one.post(length=SIZE, wr_id=1)
            one.post(e.IBV_WR_RDMA_READ, 64, other, wr_id=2)
            wcs = one.poll(2)
            if wcs[0].status == e.IBV_WC_SUCCESS:
                wcs = wcs[1:] + one.poll(1)
            took = time.monotonic() - began
            assert wcs[0].status == e.IBV_WC_RNR_RETRY_EXC_ERR, wcs[0].status
            assert least < took < most, took
            assert one.state() == e.IBV_QPS_ERR


# What a receiver refuses: opcode, length, where in its memory, with which key, and the reason. A
# Write that is longer than a segment is refused at its end.
REFUSED = (
    (e.IBV_WR_SEND, 64, 0, 0, e.IBV_WC_RNR_RETRY_EXC_ERR),
    (e.IBV_WR_SEND_WITH_IMM, 64, 0, 0, e.IBV_WC_RNR_RETRY_EXC_ERR),
    (e.IBV_WR_RDMA_WRITE_WITH_IMM, 64, 0, 0, e.IBV_WC_RNR_RETRY_EXC_ERR),
    (e.IBV_WR_SEND, SIZE, 0, 0, e.IBV_WC_REM_INV_REQ_ERR),
    (e.IBV_WR_RDMA_WRITE, 64, 0, 0x5a00, e.IBV_WC_REM_ACCESS_ERR),
    (e.IBV_WR_RDMA_WRITE, SIZE, 4096, 0, e.IBV_WC_REM_ACCESS_ERR),
    (e.IBV_WR_RDMA_READ, 64, 0, 0x5a00, e.IBV_WC_REM_ACCESS_ERR),
    (e.IBV_WR_RDMA_READ, SIZE, 4096, 0, e.IBV_WC_REM_ACCESS_ERR),
    (e.IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, 0x5a00, e.IBV_WC_REM_ACCESS_ERR),
    (e.IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 4, 0, e.IBV_WC_REM_OP_ERR),
)
ANSWERED = e.IBV_WR_RDMA_READ, e.IBV_WR_ATOMIC_FETCH_AND_ADD


def refused_requests():
    """They fail with the reason, and what follows is flushed. Of what TCP has taken, a Send or
    a Write may be complete before, and the next request may have the reason; without TCP in
    between none is."""
    for opcode, length, at, key, reason in REFUSED:
        one, other = two()
        for end, peer in ((one, other), (other, one)):
            end.init()
            end.rtr(peer)
            end.rts(rnr_retry=0)
        other.receive()
        one.post()
        one.expect()
        other.expect()
        if reason == e.IBV_WC_REM_INV_REQ_ERR:
            other.receive(length=SIZE // 2)
        wr = SendWR(wr_id=2, opcode=opcode, num_sge=1,
                    sg=[SGE(one.mr.buf, length, one.mr.lkey)])
        if opcode == e.IBV_WR_ATOMIC_FETCH_AND_ADD:
            wr.set_wr_atomic(other.mr.rkey ^ key, other.mr.buf + at, 1)
        else:
            wr.set_wr_rdma(other.mr.rkey ^ key, other.mr.buf + at)
        one.qp.post_send(wr)
        wc = one.poll()[0]
        needed = 1 if args.peer == args.device else 2	# two devices are in two namespaces
        by_tcp = int(param("loopback")) < needed and opcode not in ANSWERED
        assert wc.wr_id == 2
        assert wc.status == reason or (by_tcp and wc.status == e.IBV_WC_SUCCESS), \
            f"{opcode}: status {wc.status}, not {reason}"
        one.post(e.IBV_WR_RDMA_READ, 64, other, wr_id=3)
        after = one.expect(e.IBV_WC_WR_FLUSH_ERR) if wc.status == reason else one.poll()[0]
        assert after.wr_id == 3 and after.status != e.IBV_WC_SUCCESS
        one.post(wr_id=4)
        assert one.expect(e.IBV_WC_WR_FLUSH_ERR).wr_id == 4
        assert one.state() == e.IBV_QPS_ERR
        one.close()
        other.close()


def no_peer():
    """The peer never listens or never connects: the oldest request fails with the reason."""
    for swap in (False, True):
        a, b = two()
        one, other = (b, a) if swap else (a, b)
        one.connect(other)
        one.receive()
        time.sleep(4)
        assert one.state() == e.IBV_QPS_RTS
        began = time.monotonic()
        one.post(wr_id=1)
        one.post(wr_id=2)
        wc = one.expect(e.IBV_WC_RETRY_EXC_ERR)
        took = time.monotonic() - began
        assert wc.wr_id == 1 and 2 < took < 8, took
        for wc in one.poll(2):
            assert wc.status == e.IBV_WC_WR_FLUSH_ERR
        assert one.state() == e.IBV_QPS_ERR


def peer_goes():
    """A Read under way, or a post afterwards."""
    a, b = two()
    a.connect(b)
    b.connect(a)
    messages(a, b)
    a.receive()
    b.close()
    a.quiet()
    assert a.state() == e.IBV_QPS_RTS
    a.post(wr_id=7)
    statuses = {wc.wr_id: wc.status for wc in a.poll(2)}
    assert statuses == {7: e.IBV_WC_RETRY_EXC_ERR, 1000: e.IBV_WC_WR_FLUSH_ERR}, statuses


def seconds_until_given_up():
    """How long a Read waits for a peer whose packets do not arrive any more."""
    a, b = two()
    a.connect(b)
    b.connect(a)
    messages(a, b)
    subprocess.run("tc qdisc add dev lo root netem loss 100%".split(), check=True)
    try:
        began = time.monotonic()
        a.post(e.IBV_WR_RDMA_READ, 64, b)
        a.expect(e.IBV_WC_RETRY_EXC_ERR, seconds=40)
        return time.monotonic() - began
    finally:
        subprocess.run("tc qdisc del dev lo root".split(), check=True)


def silent_peer():
    """The program's own time, or the operator's if it is shorter."""
    before = param("tcp_user_timeout_ms")
    own = seconds_until_given_up()
    param("tcp_user_timeout_ms", 500)
    try:
        operators = min(seconds_until_given_up() for _ in range(3))
    finally:
        param("tcp_user_timeout_ms", before)
    assert operators + 1 < own < 30, (operators, own)


def choices():
    """The operator limits the depth; the program chooses the traffic class."""
    with turned("ird_max", 2), turned("ord_max", 1):
        a, b = two()
        for one, other in ((a, b), (b, a)):
            one.init()
            one.rtr(other, tclass=0x48)
            one.rts()
        messages(a, b)
        for one in (a, b):
            attr, _ = one.qp.query(0x1fffff)
            assert (attr.max_dest_rd_atomic, attr.max_rd_atomic) == (2, 1)
        found = subprocess.run(["ss", "-tnH", "--tos", f"( sport = {PORT} or dport = {PORT} )"],
                               capture_output=True, text=True, check=True).stdout
        assert found.count("tos:0x48") == 2, found


def consumers_choices():
    """What the operator sets for connections of rdma_cm's consumers changes nothing here."""
    for name, value in (("private_data_max", 0), ("mpa_revision", 1), ("mpa_p2p", 0)):
        with turned(name, value):
            a, b = two()
            a.connect(b)
            b.connect(a)
            messages(a, b)


def pair():
    a, b = accepting()
    a.connect(b)
    messages(a, b)


def error_and_destroy():
    """While it connects, while it is held, while it works."""
    for swap in (False, True):
        a, b = two()
        one, other = (b, a) if swap else (a, b)
        one.connect(other)
        one.post()
        one.qp.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)
        one.expect(e.IBV_WC_WR_FLUSH_ERR)
        other.init()
        other.rtr(one)
        time.sleep(0.1)
        other.close()
        one.close()
    a, b = two()
    a.connect(b)
    a.close()
    b.close()


# --- what is refused ---


def bad_attributes():
    a, b = two()
    a.init()
    attr = QPAttr(qp_state=e.IBV_QPS_RTR)
    attr.ah_attr = AHAttr(port_num=1, is_global=0, dlid=1)
    attr.path_mtu = e.IBV_MTU_1024
    attr.dest_qp_num = b.number
    refused(errno.EINVAL, a.qp.modify, attr, TO_RTR)
    refused(errno.EINVAL, a.rtr, b, index=0)
    refused(errno.ENODATA, a.rtr, b, index=127)	# ib_core's word
    for bad in ("ff02::1", "::", "::ffff:224.0.0.1", "::ffff:255.255.255.255", "::ffff:0.0.0.0"):
        refused(errno.EINVAL, a.rtr, b, gid=bad)
    other = "fd77::9" if ipaddress.ip_address(a.gid).ipv4_mapped else "::ffff:10.9.9.9"
    refused(errno.EINVAL, a.rtr, b, gid=other)
    assert a.state() == e.IBV_QPS_INIT
    a.rtr(b)
    refused(errno.EINVAL, a.rtr, b)
    refused(errno.EINVAL, a.qp.modify, QPAttr(qp_state=e.IBV_QPS_RTS), e.IBV_QP_STATE)
    a.rts()
    b.connect(a)
    messages(a, b)


def switched_off():
    before = param("direct_port", device=args.device)
    a, b = two()
    a.init()
    param("direct_port", 0)
    try:
        refused(errno.EOPNOTSUPP, a.rtr, b)
    finally:
        param("direct_port", before)


def another_port():
    with turned("direct_port", PORT + 1):
        a, b = accepting()
        assert reason(b, bytes(20), port=PORT + 1) is None
        with contextlib.suppress(ConnectionRefusedError):
            dial(b, b"")
            raise AssertionError("the default port is open as well")
        a.connect(b)
        messages(a, b)


@contextlib.contextmanager
def plain_listener(end):
    """A program that listens where a QP would."""
    host = str(ipaddress.ip_address(end.gid).ipv4_mapped or end.gid)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, PORT))
        sock.listen()
        sock.settimeout(10)
        yield sock


def port_in_use():
    a, b = two()
    b.init()
    with plain_listener(b):
        refused(errno.EADDRINUSE, b.rtr, a)
    a.connect(b)
    b.rtr(a)
    b.rts()
    messages(a, b)


def wrong_psn():
    for swap in (False, True):
        a, b = two()
        one, other = (b, a) if swap else (a, b)
        one.connect(other)
        other.init()
        other.rtr(one, psn=one.psn ^ 1)
        other.rts()
        one.post()
        one.expect(e.IBV_WC_RETRY_EXC_ERR)


def psn_known_late():
    a, b = two()
    a.init()
    a.rtr(b)
    b.init()
    b.rtr(a)
    time.sleep(0.3)
    refused(errno.EINVAL, a.rts, psn=a.psn ^ 1)
    a.rts()
    b.rts()
    messages(a, b)


def psn_known_before_ready():
    """The peer has been accepted, and is not ready yet: it has said already what it expects."""
    a, b = initiator_first()
    b.init()
    b.rtr(a)
    with dial(b, request(hello(a.number, b.number, b.psn, a.psn))) as sock:
        assert answer(sock) == 0
        refused(errno.EINVAL, b.rts, psn=b.psn ^ 1)
        b.rts()
        b.post(wr_id=7)
        sock.sendall(READY)
        assert b.expect().wr_id == 7
        assert b.state() == e.IBV_QPS_RTS


def anothers_qp():
    """A third QP that names one of two which mean each other."""
    a, b = two()
    thirds = [End(psn=1) for _ in range(4)]
    for third in thirds[:2]:
        third.init()
        third.rtr(b, psn=b.psn)
        third.rts(psn=a.psn)
        third.post()
    a.connect(b)
    b.connect(a)
    messages(a, b)
    for third in thirds[2:]:
        third.init()
        third.rtr(b, psn=b.psn)
        third.rts(psn=a.psn)
        third.post()
    for third in thirds:
        third.expect(e.IBV_WC_RETRY_EXC_ERR)
    messages(a, b)


# --- strangers ---


def hello(qpn, peer_qpn, rq_psn, sq_psn, magic=b"WFTQ", version=1, flags=1, extensions=0):
    return magic + struct.pack(">BBHIIII", version, flags, extensions, qpn, peer_qpn, rq_psn,
                               sq_psn)


def request(private, rev=2, flags=CRC | ENHANCED, ird=0x8000 | 8, ord_=0xc000 | 8):
    block = struct.pack(">HH", ird, ord_) if flags & ENHANCED else b""
    return (REQUEST + struct.pack(">BBH", flags, rev, len(block) + len(private)) + block
            + private)


def dial(end, data, source=None, port=PORT):
    host = str(ipaddress.ip_address(end.gid).ipv4_mapped or end.gid)
    sock = socket.create_connection((host, port), timeout=10,
                                    source_address=(source, 0) if source else None)
    if data:
        sock.sendall(data)
    return sock


def reply(private):
    """It asks for a Write of no length as the message that says ready-to-receive."""
    return (REPLY + struct.pack(">BBHHH", CRC | ENHANCED, 2, 4 + len(private), 0x8008, 0x8008)
            + private)


def answer(sock, seconds=15):
    """The reason of a rejecting reply; 0: an accepting one; None: closed without a reply."""
    sock.settimeout(seconds)
    got = b""
    try:
        while len(got) < 20 or len(got) < 20 + struct.unpack(">H", got[18:20])[0]:
            more = sock.recv(4096)
            if not more:
                return None
            got += more
    except ConnectionError:
        return None
    assert got.startswith(REPLY)
    return got[24 + 5] if got[16] & REJECT else 0


def reason(end, data, source=None, port=PORT):
    with dial(end, data, source, port) as sock:
        return answer(sock)


def initiator_first():
    """Two ends, of which the first one is the one that connects."""
    a, b = two()
    return (a, b) if (ipaddress.ip_address(a.gid), a.number) < \
        (ipaddress.ip_address(b.gid), b.number) else (b, a)


def accepting():
    """A QP that waits for its peer, and that peer, which does not connect yet."""
    a, b = initiator_first()
    b.connect(a)
    return a, b


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


def wrong_answer():
    """Another program listens where the peer should, and answers with numbers of other QPs."""
    a, b = initiator_first()
    good = (b.number, a.number, a.psn, b.psn)
    wrong = ((good[0] + 1, *good[1:]), (good[0], good[1] + 1, *good[2:]),
             (*good[:2], good[2] ^ 1, good[3]), (*good[:3], good[3] ^ 1))
    with plain_listener(b) as listener:
        a.connect(b)
        for numbers in (*wrong, good):
            with listener.accept()[0] as sock, \
                    counts("active" if numbers is good else "refused"):
                sock.settimeout(10)
                asked = request(hello(a.number, b.number, b.psn, a.psn))
                assert len(sock.recv(len(asked), socket.MSG_WAITALL)) == len(asked)
                sock.sendall(reply(hello(*numbers)))
                fpdu = sock.recv(4, socket.MSG_WAITALL)
                opcode = WRITE if numbers is good else TERMINATE
                assert fpdu[3] & 0xf == opcode, f"{numbers}: {fpdu}"


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
    host = str(ipaddress.ip_address(end.gid).ipv4_mapped or end.gid)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socks = [socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
             for _ in range(count)]
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    for sock in socks:
        sock.connect_ex((host, PORT))
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
    for sock in socks:
        sock.close()
    time.sleep(1)
    with dial(b, request(hello(1, later.number, 0, 0))) as sock:
        later.init()
        time.sleep(0.3)
        later.rtr(a, number=99, psn=5)
        assert answer(sock) == NO_QP
    a.connect(b)
    messages(a, b)


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="weft0")
    parser.add_argument("--peer")
    parser.add_argument("--gid", type=int, default=1)
    parser.add_argument("--stranger", default="127.0.0.1")
    parser.add_argument("case")
    parser.parse_args(namespace=args)
    args.peer = args.peer or args.device
    globals()[args.case]()


if __name__ == "__main__":
    main()
