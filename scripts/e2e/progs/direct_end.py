# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""One end of a QP that a program connects by ibv_modify_qp(), for direct.py and direct_pair.py."""

import argparse
import collections
import contextlib
import ipaddress
import pathlib
import subprocess
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE
          | e.IBV_ACCESS_REMOTE_ATOMIC)
TO_INIT = e.IBV_QP_STATE | e.IBV_QP_PKEY_INDEX | e.IBV_QP_PORT | e.IBV_QP_ACCESS_FLAGS
TO_RTR = (e.IBV_QP_STATE | e.IBV_QP_AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN
          | e.IBV_QP_RQ_PSN | e.IBV_QP_MAX_DEST_RD_ATOMIC | e.IBV_QP_MIN_RNR_TIMER)
TO_RTS = (e.IBV_QP_STATE | e.IBV_QP_TIMEOUT | e.IBV_QP_RETRY_CNT | e.IBV_QP_RNR_RETRY
          | e.IBV_QP_SQ_PSN | e.IBV_QP_MAX_QP_RD_ATOMIC)
SIZE = 65536

args = argparse.Namespace()


class End:
    """A QP and what it needs."""

    def __init__(self, device=None, gid=None, psn=0):
        self.ctx = Context(name=device or args.device)
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, 256)
        self.mr = MR(self.pd, SIZE, ACCESS)
        cap = QPCap(max_send_wr=64, max_recv_wr=64, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq,
                                         cap=cap))
        self.index = args.gid if gid is None else gid
        self.psn = psn

    @property
    def gid(self):
        return self.ctx.query_gid(1, self.index).gid

    @property
    def number(self):
        return self.qp.qp_num

    def init(self):
        attr = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1)
        attr.pkey_index = 0
        attr.qp_access_flags = ACCESS
        self.qp.modify(attr, TO_INIT)

    def rtr(self, peer, gid=None, number=None, psn=None, index=None, depth=8, rnr_timer=12,
            tclass=0):
        attr = QPAttr(qp_state=e.IBV_QPS_RTR, port_num=1)
        # GID() takes no dotted quad, which Python 3.13 prints for an IPv4-mapped address.
        dgid = ipaddress.IPv6Address(gid).packed.hex(":", 2) if gid else peer.gid
        route = GlobalRoute(dgid=GID(dgid), sgid_index=self.index if index is None else index,
                            traffic_class=tclass)
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route, dlid=0)
        attr.path_mtu = e.IBV_MTU_1024
        attr.dest_qp_num = peer.number if number is None else number
        attr.rq_psn = peer.psn if psn is None else psn
        attr.max_dest_rd_atomic = depth
        attr.min_rnr_timer = rnr_timer
        self.qp.modify(attr, TO_RTR)

    def rts(self, psn=None, timeout=14, retries=7, depth=8, rnr_retry=7):
        attr = QPAttr(qp_state=e.IBV_QPS_RTS)
        attr.timeout = timeout
        attr.retry_cnt = retries
        attr.rnr_retry = rnr_retry
        attr.sq_psn = self.psn if psn is None else psn
        attr.max_rd_atomic = depth
        self.qp.modify(attr, TO_RTS)

    def reset(self):
        self.qp.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)

    def state(self):
        return self.qp.query(e.IBV_QP_STATE)[0].qp_state

    def connect(self, peer, **rts):
        self.init()
        self.rtr(peer)
        self.rts(**rts)

    def receive(self, count=1, length=SIZE):
        for i in range(count):
            self.qp.post_recv(RecvWR(wr_id=1000 + i, num_sge=1,
                                     sg=[SGE(self.mr.buf, length, self.mr.lkey)]))

    def post(self, opcode=e.IBV_WR_SEND, length=64, peer=None, wr_id=1):
        wr = SendWR(wr_id=wr_id, opcode=opcode, num_sge=1,
                    sg=[SGE(self.mr.buf, length, self.mr.lkey)])
        if peer:
            wr.set_wr_rdma(peer.mr.rkey, peer.mr.buf)
        self.qp.post_send(wr)

    def poll(self, count=1, seconds=20):
        """The next completions."""
        found, end = [], time.monotonic() + seconds
        while len(found) < count:
            n, wcs = self.cq.poll(count - len(found))
            found += wcs if n else []
            assert time.monotonic() < end, f"{len(found)} of {count} completions"
            if not n:
                time.sleep(0.002)
        return found

    def expect(self, status=e.IBV_WC_SUCCESS, **more):
        wc = self.poll(**more)[0]
        assert wc.status == status, f"status {wc.status}, not {status}"
        return wc

    def quiet(self, seconds=0.3):
        time.sleep(seconds)
        assert self.cq.poll(1)[0] == 0, "a completion"

    def close(self):
        for thing in (self.qp, self.mr, self.cq, self.pd, self.ctx):
            thing.close()


def refused(error, function, *arguments, **more):
    try:
        function(*arguments, **more)
    except PyverbsRDMAError as ex:
        assert ex.error_code == error, f"errno {ex.error_code}, not {error}"
        return
    raise AssertionError("not refused")


def two(psns=(0x123456, 0xfedcba)):
    return End(psn=psns[0]), End(device=args.peer, psn=psns[1])


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


def messages(a, b, count=3):
    """Sends, Writes and Reads both ways."""
    for one, other in ((a, b), (b, a)):
        for i in range(count):
            other.receive()
            one.mr.write(bytes([65 + i]) * 64, 64)
            one.post()
            one.expect()
            other.expect()
            assert other.mr.read(64, 0) == bytes([65 + i]) * 64
        one.post(e.IBV_WR_RDMA_WRITE, 4096, other)
        one.expect()
        one.post(e.IBV_WR_RDMA_READ, 4096, other)
        one.expect()


def log_lines(words):
    """What the kernel has said with these words in it."""
    text = subprocess.run(["dmesg", "-t"], check=True, capture_output=True, text=True).stdout
    return [line for line in text.splitlines() if words in line]


def log_of(end, peer):
    """What the kernel has said of a connection that one end does not get."""
    return log_lines(f"QP {end.number} does not get its connection to QP {peer.number} of ")


def param(name, value=None, device=None):
    path = pathlib.Path(f"/sys/class/infiniband/{device or args.device}/params/{name}")
    if value is not None:
        path.write_text(f"{value}\n", encoding="ascii")
    return path.read_text(encoding="ascii").strip()


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


def counters(device=None):
    files = pathlib.Path(f"/sys/class/infiniband/{device or args.device}/ports/1/hw_counters")
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
