# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Exact figures: what is counted and shown is what was done, no more and no less."""

import json
import os
import re
import time

from test_counters import REASONS, port_errors, subset
from test_attributes import connecting, failed
from test_resource import ids
from world import about_tcp, at_least, run, same, test
from wirepeer import mpa, rdmap

# enum ibv_event_type
CQ_ERR, QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR, SRQ_LIMIT, LAST_WQE = 0, 1, 2, 3, 15, 16
LOC_PROT, REM_INV_REQ = 4, 9


def shown(row, want):
    for name, value in want.items():
        same(row.get("drv_" + name), value, name)


def queue(w, depth, name="own"):
    """A CQ that only the test polls."""
    cqe = w.agent.cmd("cq", name=name, depth=depth, manual=1)["cqe"]
    w.undo.append(lambda: w.agent.cmd("dropcq", name=name))
    return [lambda: [r for r in w.resources("cq") if r["drv_entries"] == cqe][0], cqe]


def region(w, name, length, access="lrw"):
    made = w.agent.cmd("mr", name=name, pd="pd", len=length, access=access)
    w.undo.append(lambda: w.agent.cmd("dereg", name=name))
    return made


# --- completion queues ---------------------------------------------------------------

@test
def a_cq_tells_what_is_produced_and_waits(w):
    row, _ = queue(w, 8)
    pair = w.pair(cq="own")
    for _ in range(3):
        pair.post(pair.a, "write", sge="mr:0:10", **pair.remote(8192))
    w.eventually(lambda: row()["drv_unpolled"] == 3, "three completions wait")
    shown(row(), {"produced": 3, "unpolled": 3, "overflowed": 0, "mapped": 1, "armed": "no"})
    same(w.agent.cmd("poll", name="own", most=2)["seen"], 2, "completions")
    shown(row(), {"produced": 3, "unpolled": 1})
    w.agent.cmd("poll", name="own")
    w.agent.cmd("arm", name="own", solicited=1)
    shown(row(), {"unpolled": 0, "armed": "solicited"})
    w.agent.cmd("arm", name="own")
    shown(row(), {"armed": "next"})


@test
def full_cq_is_reported_once_and_counted_each_time(w):
    row, cqe = queue(w, 4)
    pair = w.pair(cq="own")
    before = w.counters()
    for _ in range(cqe):
        pair.post(pair.a, "write", sge="mr:0:10", **pair.remote(8192))
    w.eventually(lambda: row()["drv_unpolled"] == cqe, "it is full")
    subset(w.since(before), {"cq_overflows": 0})
    shown(row(), {"overflowed": 0})
    pair.post(pair.a, "write", sge="mr:0:10", **pair.remote(8192))
    w.agent.wait("async", 10, type=CQ_ERR)
    # What is posted to a QP whose completions are lost is flushed, and lost as well.
    w.eventually(lambda: pair.row(pair.a)["drv_stream_state"] == "error", "the QP has failed")
    for _ in range(2):
        pair.post(pair.a, "write", sge="mr:0:10", **pair.remote(8192))
    w.eventually(lambda: w.since(before).get("cq_overflows") == 3, "each is counted")
    shown(row(), {"overflowed": 1, "unpolled": cqe, "produced": cqe})
    same(pair.row(pair.a)["drv_fault"], "LOCAL_CATASTROPHIC", "why the QP has failed")
    w.agent.wait("async", 10, type=QP_FATAL, k=pair.a)
    w.agent.none("async", type=CQ_ERR)
    w.agent.none("async", k=pair.a)


@test
def a_completion_names_the_fault(w):
    pair = w.pair()
    wr = pair.post(pair.a, "send", sge="@0x1000:8:0x12345")
    at_least(pair.wc(pair.a, wr, LOC_PROT)["vendor"], 1, "vendor_err")


# --- memory ---------------------------------------------------------------------------

def paging():
    return [row for row in json.loads(run("rdma", "-j", "statistic", "show", "mr"))
            if "page_faults" in row][0]


@test
def paged_memory_is_counted(w):
    paged = region(w, "paged", 65536, "lwro")
    pair = w.pair()
    before = w.counters()
    pair.one("read", sge="mr:0:10", raddr=paged["iova"], rkey=paged["rkey"])
    at_least(w.since(before).get("odp_page_waits", 0), 1, "accesses that waited")
    row = paging()
    at_least(row["page_faults"], 1, "faults")
    same((row["page_invalidations"], row["page_prefetch"]), (0, 0), "others")
    before = w.counters()
    pair.one("read", sge="mr:0:10", raddr=paged["iova"], rkey=paged["rkey"])
    subset(w.since(before), {"odp_page_waits": 0})


@test
def what_is_prefetched_and_taken_back_is_counted(w):
    region(w, "paged", 65536, "lwro")
    w.agent.cmd("advise", name="paged")
    row, pages = paging(), 65536 // os.sysconf("SC_PAGE_SIZE")
    same((row["page_faults"], row["page_invalidations"], row["page_prefetch"]), (0, 0, pages),
         "after the advice")
    w.agent.cmd("discard", name="paged")
    row = paging()
    same((row["page_faults"], row["page_invalidations"], row["page_prefetch"]), (0, pages, pages),
         "when all are gone")


# --- queues of work ----------------------------------------------------------------------

@test
def a_responder_says_whether_it_may_send(w):
    wire, k, qpn = w.running()
    shown(w.qp(qpn), {"tx_enabled": 0, "mpa_role": "responder"})
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"x")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    shown(w.qp(qpn), {"tx_enabled": 1})


@test
def a_send_queue_tells_what_waits(w):
    """One Read may be unanswered: the next one is in hand, and the others are not fetched."""
    wire, k, qpn = w.running(rev=2, enhanced=mpa.Enhanced(ird=1, ord=1))
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"x")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    for wr in range(2, 6):
        w.agent.cmd("post", k=k, op="read", wr=wr, sge="mr:0:10", raddr=0, rkey=1)
    request = rdmap.ReadRequest(wire.segment().payload)
    w.eventually(lambda: w.qp(qpn)["drv_sq_pending"] == 2, "two wait")
    shown(w.qp(qpn), {"sq_pending": 2, "sq_inflight": 2, "ord_used": 1, "ord": 1})
    wire.read_response(request, bytes(10))
    w.agent.wait("wc", 10, k=k, wr=2, status=0)
    shown(w.qp(qpn), {"sq_pending": 1, "sq_inflight": 2, "ord_used": 1})
    wire.rst()


@test
def an_srq_tells_what_was_consumed_and_its_limit(w):
    w.agent.cmd("srq", name="srq", pd="pd", depth=32)
    w.undo.append(lambda: w.agent.cmd("dropsrq", name="srq"))
    w.agent.cmd("postsrq", count=5, sge="mr:0:100")
    a, _ = w.active()
    w.agent.cmd("connect", k=a)
    p = w.asked()
    w.agent.cmd("qp", k=p, pd="pd", cq="cq", srq=1)
    w.agent.cmd("accept", k=p)
    for k in (a, p):
        w.agent.wait("event", 10, type="ESTABLISHED", k=k)

    def take():
        w.agent.cmd("post", k=a, op="send", wr=1, sge="mr:0:10")
        w.agent.wait("wc", 10, k=p, status=0)

    def details(**want):
        row = w.resources("srq")[0]
        if "drv_entries" in row:    # the core has a place for them from 6.2 on
            shown(row, want)

    for _ in range(2):
        take()
    details(entries=32, max_sge=1, posted=3, consumed=2, limit=0)
    w.agent.cmd("srqarm", limit=2)
    details(limit=2)
    take()
    w.agent.none("async", type=SRQ_LIMIT)
    take()
    w.agent.wait("async", 10, type=SRQ_LIMIT)
    take()
    details(posted=0, consumed=5, limit=0)
    w.agent.none("async", type=SRQ_LIMIT)
    w.agent.cmd("modify", k=p, state="err")
    w.agent.wait("async", 10, type=LAST_WQE, k=p)
    w.eventually(lambda: w.agent.count("event", type="DISCONNECTED") == 2, "the end")
    w.agent.none("async", k=p)


# --- regions ---------------------------------------------------------------------------------

@test
def an_mr_tells_each_right_by_its_letter(w):
    for letters, text in (("l", "l----"), ("lw", "lw---"), ("lr", "l-r--"), ("la", "l--a-"),
                          ("lb", "l---b"), ("r", "--r--"), ("lwrab", "lwrab")):
        w.agent.cmd("mr", name="other", pd="pd", len=12345, access=letters)
        row = [r for r in w.resources("mr") if r["mrlen"] == 12345][0]
        w.agent.cmd("dereg", name="other")
        same(row["drv_access"], text, letters)


@test
def a_region_tells_its_windows(w):
    region(w, "other", 12345, "lwb")
    pair = w.pair()

    def windows():
        return [r for r in w.resources("mr") if r["mrlen"] == 12345][0]["drv_windows"]

    for count, name in enumerate(("one", "two"), 1):
        w.agent.cmd("mw", name=name, pd="pd", type=2)
        pair.one("bind", mw=name, mr="other", off=0, len=100, access="w")
        same(windows(), count, "windows")
    for count, name in ((1, "one"), (0, "two")):
        w.agent.cmd("dealloc", name=name)
        same(windows(), count, "windows")


# --- messages ----------------------------------------------------------------------------------

def alone(w, pair, count=5):
    """Writes, each posted once the one before has come to its end, and what that moved."""
    time.sleep(0.1)
    before = w.counters()
    for _ in range(count):
        pair.one("write", sge="mr:0:100", **pair.remote(8192))
        time.sleep(0.01)
    return w.since(before)


@test
@about_tcp
def each_message_alone_is_one_push(w):
    moved = alone(w, w.pair())
    subset(moved, {"tx_socket_sends": 5, "tx_writes": 5, "rx_writes": 5, "tx_segments": 5,
                   "rx_segments": 5, "tx_bytes": 500, "rx_bytes": 500, "tx_socket_full": 0,
                   "rx_reassembled_fpdus": 0, "rx_batched_segments": 0, "rx_work_queued": 0})


@test
def each_doorbell_is_counted_once(w):
    subset(alone(w, w.pair()), {"tx_doorbells": 5, "tx_work_queued": 0, "tx_work_merged": 0,
                                "sq_poll_hits": 0, "tx_softirq_runs": 0, "sk_write_space_calls": 0})


@test
def work_for_a_worker_is_counted(w):
    """The start of a stream runs the sender, in whatever context it comes."""
    before = w.counters()
    w.pair()
    moved = w.since(before)
    at_least(moved.get("tx_work_queued", 0) + moved.get("tx_work_merged", 0), 2, "for a worker")
    at_least(moved.get("tx_work_queued", 0), 1, "tx_work_queued")


@test
@about_tcp
def long_messages_without_crc_are_counted_in_batches(w):
    w.send_in_batches()
    pair = w.pair()
    time.sleep(0.1)
    before = w.counters()
    pair.one("write", sge="mr:0:65536", **pair.remote())
    pair.send(100)
    moved = w.since(before)
    subset(moved, {"tx_bytes": 65636, "rx_bytes": 65636, "tx_messages": 2, "rx_messages": 2,
                   "rx_segments": moved["tx_segments"]})
    at_least(moved["tx_segments"], 65536 // 1460 + 2, "segments")
    at_least(moved.get("rx_batched_segments", 0), 2, "batched")
    at_least(moved["rx_segments"] - 3, moved["rx_batched_segments"], "at most")


@test
def a_read_that_is_owed_is_seen(w):
    """Two responses of a megabyte to a peer that reads nothing; then it does."""
    w.turn("tcp_sndbuf", 8192)
    source = region(w, "large", 1 << 20, "r")
    wire, k, qpn = w.running(rev=2, enhanced=mpa.Enhanced(ird=4, ord=4))
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"x")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    before = w.counters()
    for _ in range(2):
        wire.read(source["rkey"], source["iova"], 1 << 20)
    w.eventually(lambda: w.qp(qpn)["drv_ird_used"] == 2 and w.qp(qpn)["drv_tcp_unsent"] > 0,
                 "both are owed, and TCP is full")
    subset(w.since(before), {"rx_read_requests": 2, "tx_read_responses": 0})
    for _ in range(2):
        same(len(wire.expect(rdmap.READ_RESP).payload), 1 << 20, "bytes")
    w.eventually(lambda: w.qp(qpn)["drv_ird_used"] == 0, "none is owed")
    subset(w.since(before), {"tx_read_responses": 2, "tx_bytes": 2 << 20})
    shown(w.qp(qpn), {"tcp_unsent": 0})
    wire.rst()


@test
def a_full_socket_is_counted_and_so_is_its_space(w):
    w.turn("tcp_sndbuf", 8192)
    region(w, "large", 1 << 20, "l")
    wire, k, qpn = w.running(rev=2, enhanced=mpa.Enhanced(ird=4, ord=4))
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"x")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    before = w.counters()
    w.agent.cmd("post", k=k, op="write", wr=2, sge="large:0:%d" % (1 << 20), raddr=0, rkey=1)
    w.eventually(lambda: w.since(before).get("tx_socket_full", 0) >= 1, "TCP is full")
    w.eventually(lambda: w.qp(qpn)["drv_tcp_unsent"] > 0, "some is not sent")
    row = w.qp(qpn)
    at_least(row["drv_tx_staged_bytes"], row["drv_tx_sent_bytes"] + 1, "staged and not pushed")
    same(len(wire.expect(rdmap.WRITE).payload), 1 << 20, "bytes")
    w.agent.wait("wc", 10, k=k, wr=2, status=0)
    moved = w.since(before)
    at_least(moved.get("sk_write_space_calls", 0), 1, "sk_write_space_calls")
    at_least(moved["sk_write_space_calls"] + moved["tx_doorbells"] + moved.get("tx_work_queued", 0),
             moved["tx_socket_full"], "runs, each of which may find it full")
    # A request for space is answered once.
    before = w.counters()
    for wr in range(3, 8):
        w.agent.cmd("post", k=k, op="write", wr=wr, sge="large:0:100", raddr=0, rkey=1)
        wire.expect(rdmap.WRITE)
        w.agent.wait("wc", 10, k=k, wr=wr, status=0)
    subset(w.since(before), {"sk_write_space_calls": 0, "tx_socket_full": 0, "tx_socket_sends": 5})
    wire.rst()


@test
def an_fpdu_in_pieces_is_counted(w):
    wire, k, _ = w.running()
    before = w.counters()
    for wr in range(1, 4):
        w.agent.cmd("post", k=k, op="recv", wr=wr, sge="mr:0:100")
        data = wire.send(b"in two pieces", hold=True)
        wire.raw(data[:7])
        time.sleep(0.05)
        wire.raw(data[7:])
        w.agent.wait("wc", 10, k=k, wr=wr, status=0)
    subset(w.since(before), {"rx_reassembled_fpdus": 3, "rx_segments": 3, "rx_sends": 3, "rx_bytes": 39})


# --- why a stream ends -----------------------------------------------------------------------

def sent(w, k, wire):
    """Peers that break a rule, by what weft reports of them."""
    return {
        "crc": lambda: wire.send(b"x", fpdu={"crc_xor": 1}),
        "mpa": lambda: wire.ulpdu(b"\xc1"),
        "access": lambda: wire.write(0xBAD10000, 0, b"x"),
        "sequence": lambda: wire.send(b"x", msn=77),
        "protocol": lambda: wire.untagged(0xE, b"x", qn=0, msn=1),
        "rq_empty": lambda: wire.send(b"x"),
        "local_error": lambda: w.agent.cmd("post", k=k, op="send", wr=9, sge="@0x1000:8:0x12345"),
    }


# What a peer says, by what weft makes of it: layer, type, code.
RECEIVED = {"crc": (2, 0, 2), "mpa": (2, 0, 3), "access": (0, 1, 2), "rq_empty": (1, 2, 2),
            "rq_too_small": (1, 2, 5), "sequence": (1, 2, 3), "protocol": (0, 2, 6),
            "local_error": (0, 0, 0)}


def started(w):
    wire, k, qpn = w.running()
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"x")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    return wire, k, qpn


@test
def every_reason_of_a_terminate_is_counted(w):
    w.turn("rnr_timeout_ms", 0)
    for reason in REASONS:
        if reason == "rq_too_small":    # see a_terminate_for_a_message_too_long
            continue
        wire, k, _ = started(w)
        before = w.counters()
        sent(w, k, wire)[reason]()
        wire.expect_terminate()
        moved = w.since(before)
        for other in REASONS:
            subset(moved, {"tx_term_" + other: int(other == reason)})
        subset(moved, {"tx_terminates": 1, "rx_terminates": 0,
                       "rx_crc_errors": int(reason == "crc")})
    for reason, what in RECEIVED.items():
        wire, k, _ = started(w)
        before = w.counters()
        wire.terminate(*what)
        w.agent.wait("event", 10, type="DISCONNECTED", k=k)
        moved = w.since(before)
        for other in REASONS:
            subset(moved, {"rx_term_" + other: int(other == reason)})
        subset(moved, {"rx_terminates": 1, "tx_terminates": 0})


@test
def a_marker_that_disagrees_is_counted(w):
    w.turn("mpa_rx_markers", 1)
    wire, k, qpn = w.running()
    shown(w.qp(qpn), {"mpa_rx_markers": 1, "mpa_tx_markers": 0})    # the peer asks for none
    for wr in (1, 2):
        w.agent.cmd("post", k=k, op="recv", wr=wr, sge="mr:0:2000")
    wire.send(bytes(1000))
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    before, errors = w.counters(), port_errors(w)
    wire.send(bytes(1000), fpdu={"marker_hook": lambda value, index: value + 4})
    wire.expect_terminate(2, 0, 3)
    subset(w.since(before), {"rx_marker_errors": 1, "rx_crc_errors": 0, "tx_term_mpa": 1,
                             "rx_messages": 0})
    same(port_errors(w), errors + 1, "port_rcv_errors")


def ended(w, pair):
    """Both streams have ended, and all events of that have been raised."""
    for k in (pair.a, pair.p):
        w.eventually(lambda k=k: pair.row(k)["drv_stream_state"] == "error", "an error")
    time.sleep(0.2)
    w.agent.cmd("sync")


# What goes wrong, and the events of the active and the passive end.
EVENTS = (
    ("an orderly end", lambda w, pair: w.agent.cmd("disconnect", k=pair.a), (), ()),
    ("a wrong key of a Write",
     lambda w, pair: pair.post(pair.a, "write", sge="mr:0:10", raddr=0, rkey=77),
     (QP_FATAL,), (QP_ACCESS_ERR,)),
    ("a wrong key of a Read",
     lambda w, pair: pair.post(pair.a, "read", sge="mr:0:10", raddr=0, rkey=77),
     (QP_FATAL,), (QP_ACCESS_ERR,)),
    ("no receive", lambda w, pair: pair.post(pair.a, "send", sge="mr:0:10"),
     (QP_FATAL,), (QP_REQ_ERR,)),
    ("an own wrong key", lambda w, pair: pair.post(pair.a, "send", sge="@0x1000:8:0x12345"),
     (QP_FATAL,), (QP_FATAL,)),
    ("an end at once", lambda w, pair: w.agent.cmd("modify", k=pair.a, state="err"), (), ()),
)


@test
def each_event_comes_once_and_no_other_with_it(w):
    w.turn("rnr_timeout_ms", 0)
    for what, act, active, passive in EVENTS:
        pair = w.pair()
        act(w, pair)
        ended(w, pair)
        for k, want in ((pair.a, active), (pair.p, passive)):
            came = tuple(f["type"] for f in w.agent.lines
                         if f["kind"] == "async" and f["k"] == k)
            same(came, want, "events of %s" % what)
            same(w.agent.count("event", type="DISCONNECTED", k=k), 1, what)


# --- connections --------------------------------------------------------------------------------

@test
def a_connection_tells_the_time_that_is_left_for_it(w):
    w.turn("mpa_reply_timeout_ms", 50000)
    k, wire = connecting(w)
    wire.read_request()

    def waiting():
        return [r for r in ids(w, "connection") if r["drv_state"] == "await-reply"]

    def left():
        return waiting()[0].get("drv_deadline_ms", 0) if waiting() else 0

    w.eventually(left, "it awaits a reply")
    shown(waiting()[0], {"mpa_role": "initiator", "mpa_revision": None, "ird": None})
    first = left()
    at_least(50000, first, "ms at most")
    at_least(first, 30000, "ms")
    time.sleep(0.3)
    at_least(first - 200, left(), "ms, some time later")
    wire.send_reply(r=1, rev=2, enhanced=mpa.Enhanced(4, 4))
    failed(w, k)


@test
def a_listener_tells_what_is_queued(w):
    port = w.port + 2000
    w.own.append(w.agent.cmd("listen", addr=w.addr, port=port, backlog=16)["k"])

    def listener():
        return [r for r in ids(w, "listener") if r["src-addr"].endswith(":%d" % port)][0]

    count, was, wires = 200, w.port, []
    shown(listener(), {"backlog": 16, "pending_mpa_request": 0, "queued": 0, "pending_accept": 0})
    try:
        w.port = port
        wires = [w.wire() for _ in range(count)]
    finally:
        w.port = was
    w.eventually(lambda: listener()["drv_pending_mpa_request"] == count, "all are taken from TCP")
    began = time.monotonic()
    for wire in wires:
        wire.send_request()
    w.eventually(lambda: not listener()["drv_pending_mpa_request"], "all requests are read")
    # Offered are 16, then one, two, four and so on more, every tenth of a second.
    row = listener()
    if time.monotonic() - began < 0.5:
        at_least(row["drv_queued"], 1, "queued")
    same(row["drv_pending_mpa_request"] + row["drv_queued"] + row["drv_pending_accept"], count,
         "all")
    # One at a time they would take 18 seconds.
    w.eventually(lambda: listener()["drv_pending_accept"] == count, "all are offered", 4)
    shown(listener(), {"pending_mpa_request": 0, "queued": 0})
    for _ in range(count):
        w.agent.cmd("reject", k=w.asked())
    w.eventually(lambda: listener()["drv_pending_accept"] == 0, "all are answered")


@test
def revision_1_refuses_an_enhanced_request(w):
    w.turn("mpa_revision", 1)
    before = w.counters()
    wire = w.wire()
    wire.send_request(rev=2, enhanced=mpa.Enhanced(ird=1, ord=1))
    wire.expect_end()
    subset(w.since(before), {"connections_refused": 1, "connections_passive": 0})
    w.turn("mpa_revision", 2)
    wire = w.wire()
    wire.send_request(rev=2, enhanced=mpa.Enhanced(ird=1, ord=1))
    w.agent.cmd("reject", k=w.asked())
    same(wire.read_reply().rev, 2, "revision")


@test
def atomics_at_0_are_refused_and_at_1_are_done(w):
    region(w, "word", 8, "la")
    want = w.agent.cmd("mr", name="target", pd="pd", len=8, access="la")
    w.undo.append(lambda: w.agent.cmd("dereg", name="target"))
    for value, cap, status, left in ((1, 2, 0, 5), (0, 0, REM_INV_REQ, 5)):
        w.turn("atomics", value)
        same(w.agent.cmd("dev", name=w.dev)["atomic_cap"], cap, "what the device says")
        pair = w.pair()
        pair.wc(pair.a, pair.post(pair.a, "fadd", sge="word:0:8", add=5, raddr=want["iova"],
                                  rkey=want["rkey"]), status)
        same(int.from_bytes(bytes.fromhex(w.agent.cmd("peek", name="target")["hex"]), "little"),
             left, "the word")


# --- TCP ------------------------------------------------------------------------------------------

def netem(w, *words):
    run("tc", "qdisc", "add", "dev", "lo", "root", "netem", *words)
    w.undo.append(lambda: run("tc", "qdisc", "del", "dev", "lo", "root"))


def said(w, pair, word):
    """What ss says of both ends, added up."""
    total = 0
    for k in (pair.a, pair.p):
        match = re.search(r"\b%s:(?:\d+/)?(\d+)" % word, w.ss(pair.row(k)))
        total += int(match.group(1)) if match else 0
    return total


@test
def tcp_values_of_a_qp_are_those_of_ss(w):
    pair = w.pair()
    for _ in range(3):
        pair.send(3000)
    time.sleep(0.3)
    for k in (pair.a, pair.p):
        row = pair.row(k)
        text = w.ss(row)
        for name, pattern, factor in (("tcp_rtt_us", r"\brtt:([\d.]+)/", 1000),
                                      ("tcp_cwnd", r"\bcwnd:(\d+)", 1),
                                      ("tcp_mss", r"\bmss:(\d+)", 1)):
            value = round(float(re.search(pattern, text).group(1)) * factor)
            same(row["drv_" + name], value, "%s in %s" % (name, text))
        shown(row, {"tcp_unsent": 0, "tcp_unacked": 0, "tcp_retransmits": 0})


@test
@about_tcp
def a_retransmission_is_counted_once(w):
    pair = w.pair()
    pair.send()
    before = w.counters()
    netem(w, "loss", "100%")
    got = pair.recv()
    pair.post(pair.a, "send", sge="mr:0:100")
    w.eventually(lambda: w.since(before).get("tcp_retransmits", 0) >= 1, "a retransmission")
    w.undo.pop()()
    pair.wc(pair.p, got)
    pair.send()
    retransmitted = said(w, pair, "retrans")
    moved = w.since(before)
    subset(moved, {"tcp_retransmits": retransmitted})
    at_least(moved["tcp_retransmit_bytes"], 100, "bytes")
    subset(moved, {"tcp_retransmit_bytes": said(w, pair, "bytes_retrans")})
    subset(w.since(before), {name: moved[name] for name in ("tcp_retransmits",
                                                            "tcp_retransmit_bytes")})
    pair.close()
    w.pairs.remove(pair)
    time.sleep(0.2)
    subset(w.since(before), {"tcp_retransmits": retransmitted})


def disturbed(w, counter, word, *words):
    """A network that does that to packets is seen by TCP, and counted as TCP does it."""
    before = w.counters()
    pair = w.pair()
    pair.send()
    netem(w, *words)
    for _ in range(20):
        for _ in range(20):
            pair.post(pair.a, "write", sge="mr:0:1000", **pair.remote(8192))
        pair.send()
        if w.since(before).get(counter, 0):
            break
    w.undo.pop()()
    pair.send()
    time.sleep(0.2)
    moved = w.since(before).get(counter, 0)
    at_least(moved, 1, counter)
    same(moved, said(w, pair, word), "%s, which ss calls %s" % (counter, word))


@test
@about_tcp
def what_tcp_counts_is_counted(w):
    """Delay is needed to change the order; duplicates tell that what was sent came twice."""
    disturbed(w, "tcp_out_of_order", "rcv_ooopack", "delay", "2ms", "reorder", "50%")
    disturbed(w, "tcp_dsacks", "dsack_dups", "delay", "1ms", "duplicate", "60%")
    disturbed(w, "tcp_reordered", "reord_seen", "delay", "5ms", "reorder", "40%")
    with open("/proc/sys/net/ipv4/tcp_ecn", "r+", encoding="ascii") as file:
        was = file.read()
        file.seek(0)
        file.write("1")
    try:
        disturbed(w, "tcp_ecn_marks", "delivered_ce", "loss", "30%", "ecn")
    finally:
        with open("/proc/sys/net/ipv4/tcp_ecn", "w", encoding="ascii") as file:
            file.write(was)
