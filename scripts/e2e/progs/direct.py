#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""QPs that a program connects itself, by ibv_modify_qp().

Usage: direct.py [--device NAME] [--peer NAME] [--gid N] CASE
Both ends are in this process. --peer is the device of the second one; --gid the index of
the address on both. A case fails by an exception.
"""

import argparse
import contextlib
import errno
import ipaddress
import os
import re
import subprocess
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.device import Context
from pyverbs.qp import QPAttr
from pyverbs.wr import SGE, SendWR
import direct_silence
import direct_strangers
from direct_end import (ACCESS, SIZE, TO_RTR, End, accepting, args, counts, initiator_first,
                        log_lines, log_of, messages, param, refused, turned, two)
from direct_frames import (PORT, READY, answer, dial, hello, plain_listener, reason, request)


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
        with turned("rnr_timeout_ms", 60000):	# counts, as the peer has not said how long
            receiver.post()
            sender.quiet(0.2)
            sender.receive()
            sender.expect()
            receiver.expect()


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
    # It sends no more requests at a time than it takes.
    c = End(psn=77)
    c.init()
    c.rtr(c, depth=1)
    c.rts(depth=8)
    for _ in range(16):
        c.post(e.IBV_WR_RDMA_READ, 4096, c)
    for _ in range(16):
        c.expect()
    b = End(psn=77)
    b.init()
    b.rtr(b, psn=76)
    b.rts()
    b.post()
    b.expect(e.IBV_WC_RETRY_EXC_ERR)


def each_address():
    """QPs of each address of the device, at the same time."""
    ctx = Context(name=args.device)
    gids = [index for index in range(1, 8)
            if ipaddress.IPv6Address(ctx.query_gid(1, index).gid) != ipaddress.IPv6Address("::")]
    assert len(gids) > 1, gids
    pairs = [(End(gid=index), End(gid=index)) for index in gids]
    for a, b in pairs:
        a.connect(b)
        b.connect(a)
    for a, b in pairs:
        messages(a, b)


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
    # One end takes less than the other would ask for, and asks for less than that takes; it may
    # be connected before it says so.
    for (a, b), pause in ((two(), 0), (two()[::-1], 0), (two(), 0.4), (two()[::-1], 0.4)):
        for one, other, depth in ((a, b, 2), (b, a, 8)):
            one.init()
            one.rtr(other, depth=depth)
        time.sleep(pause)
        a.rts(depth=4)
        b.rts()
        messages(a, b)
        attr = a.qp.query(0x1fffff)[0]
        assert (attr.max_dest_rd_atomic, attr.max_rd_atomic) == (2, 4), a.number
        assert b.qp.query(0x1fffff)[0].max_rd_atomic == 2, b.number


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
    pairs = [two() for _ in range(2)]
    for a, b in pairs:
        a.connect(b)
        b.connect(a)
    ways = [pairs[0], pairs[1][::-1]]
    for one, _ in ways:
        for i in range(4):
            one.post(wr_id=i)
    time.sleep(2.5)	# rnr_timeout_ms is less
    for one, other in ways:
        other.receive(4)
        for end in (one, other):
            for wc in end.poll(4):
                assert wc.status == e.IBV_WC_SUCCESS, wc.status
    for a, b in pairs:
        messages(a, b)


def no_receive():
    """0 to 6 ends the wait. The sender gets an error: for its next request if TCP took that one."""
    for rnr_retry, rnr_timer, least, most in ((0, 12, 0, 2), (6, 12, 0, 3), (3, 0, 1.9, 5)):
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


def classes():
    """What ss shows of the connections of QPs."""
    return subprocess.run(["ss", "-tnH", "--tos", f"( sport = {PORT} or dport = {PORT} )"],
                          capture_output=True, text=True, check=True).stdout


def choices():
    """The operator limits the depth; the program chooses the traffic class, or leaves it."""
    with turned("ip_tos", 0x28):
        a, b = two()
        a.connect(b)
        b.connect(a)
        messages(a, b)
        assert classes().count("tos:0x28") == 2, classes()
        a.close()
        b.close()
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
        assert classes().count("tos:0x48") == 2, classes()
    with turned("ird_max", 2):
        a, b = two()
        a.connect(b)
        b.connect(a)
        messages(a, b)
        for one in (a, b): # the peer takes no more, and what the program says later does not count
            assert one.qp.query(0x1fffff)[0].max_rd_atomic == 2


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
    _, b = accepting()
    b.qp.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)
    with contextlib.suppress(ConnectionRefusedError):
        dial(b, b"")
        raise AssertionError("a QP in error still listens")


# --- what is refused ---

def reason_is(end, words):
    """The kernel's log says why a modify of that QP was refused."""
    said = log_lines(f"QP {end.number}: ")
    assert any(f"QP {end.number}: {words}" in line for line in said), said


def bad_attributes():
    a, b = two()
    a.init()
    attr = QPAttr(qp_state=e.IBV_QPS_RTR)
    attr.ah_attr = AHAttr(port_num=1, is_global=0, dlid=1)
    attr.path_mtu = e.IBV_MTU_1024
    attr.dest_qp_num = b.number
    refused(errno.EINVAL, a.qp.modify, attr, TO_RTR)
    reason_is(a, "a peer has no LID here")
    refused(errno.EINVAL, a.rtr, b, index=0)
    reason_is(a, "GID 0 is no address")
    refused(errno.ENODATA, a.rtr, b, index=127)	# ib_core's word
    for bad in ("ff02::1", "::", "::ffff:224.0.0.1", "::ffff:255.255.255.255", "::ffff:0.0.0.0"):
        refused(errno.EINVAL, a.rtr, b, gid=bad)
    other = "fd77::9" if ipaddress.ip_address(a.gid).ipv4_mapped else "::ffff:10.9.9.9"
    refused(errno.EINVAL, a.rtr, b, gid=other)
    reason_is(a, "its GID and that of its peer are no addresses that reach each other")
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
        reason_is(a, "direct_port is 0")
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


def ports_beside_each_other():
    """A QP that waits stays at the port that it was made with, and later ones do not join it."""
    early = accepting()
    with turned("direct_port", PORT + 1):
        late = accepting()
        late[0].connect(late[1])
        messages(*late)
    early[0].connect(early[1])
    messages(*early)


def sockets():
    """TCP's that are not freed, also those of the kernel."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        return int(re.search(r"^TCP: .* alloc (\d+) ", file.read(), re.M).group(1))


def port_in_use():
    """An attempt that fails leaves no socket."""
    a, b = two()
    b.init()
    with plain_listener(b):
        before = sockets()
        for _ in range(20):
            refused(errno.EADDRINUSE, b.rtr, a)
        reason_is(b, "another socket has the direct_port of its address")
        assert sockets() < before + 10, f"{sockets()}, and {before} before"
    a.connect(b)
    b.rtr(a)
    b.rts()
    messages(a, b)


def wrong_psn():
    ways = [two(), two()[::-1]]
    for one, other in ways:
        one.connect(other)
        other.init()
        other.rtr(one, psn=one.psn ^ 1)
        other.rts()
        one.post()
    said = []
    for one, other in ways:
        one.expect(e.IBV_WC_RETRY_EXC_ERR)
        said.append(log_of(one, other) + log_of(other, one))
    # The end that connects goes on trying, and says why once; the other says what it waited for.
    assert all(len(set(lines)) == len(lines) <= 2 for lines in said), said
    assert all(any("wrong PSN" in line for line in lines) for lines in said), said


def event_follows_the_table():
    """A program that asks for the GIDs when it gets the event of a change sees that change.
    It asks as soon as it can: the CPU on which the change is made takes it up first."""
    os.sched_setaffinity(0, {0})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    ctx = Context(name=args.device)
    new = ipaddress.IPv6Address("::ffff:10.79.0.1")
    count = ctx.query_port(1).gid_tbl_len

    def is_there():
        gids = (ctx.query_gid(1, i).gid for i in range(1, count))
        return any(ipaddress.IPv6Address(gid) == new for gid in gids)

    for turn in range(40):
        subprocess.run(["ip", "addr", "del" if turn % 2 else "add", "10.79.0.1/24", "dev", "wd0"],
                       check=True)
        event = ctx.get_async_event()
        event.ack()
        assert event.event_type == e.IBV_EVENT_GID_CHANGE, event
        assert is_there() == (turn % 2 == 0), f"the table is that of before change {turn}"


def psn_known_late():
    a, b = two()
    a.init()
    a.rtr(b)
    b.init()
    b.rtr(a)
    time.sleep(0.3)
    refused(errno.EINVAL, a.rts, psn=a.psn ^ 1)
    reason_is(a, "sq_psn is not what its peer expects")
    a.rts()
    b.rts()
    messages(a, b)


def psn_known_before_ready():
    """The peer has been accepted, and is not ready yet: it has said already what it expects. Its
    request was held until then, and is answered once."""
    a, b = initiator_first()
    b.init()
    b.rtr(a)
    with counts("passive"), dial(b, request(hello(a.number, b.number, b.psn, a.psn))) as sock:
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="weft0")
    parser.add_argument("--peer")
    parser.add_argument("--gid", type=int, default=1)
    parser.add_argument("--stranger", default="127.0.0.1")
    parser.add_argument("case")
    parser.parse_args(namespace=args)
    args.peer = args.peer or args.device
    cases = globals() | vars(direct_strangers) | vars(direct_silence)
    cases[args.case]()


if __name__ == "__main__":
    main()
