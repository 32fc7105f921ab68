# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""rdma resource show -dd: the details of each object."""

import platform

from test_attributes import connecting, failed
from world import FLUSH, at_least, same, test
from wirepeer import mpa


def subset(row, want):
    for name, value in want.items():
        same(row.get("drv_" + name), value, name)


@test
def a_fresh_qp_has_no_connection(w):
    _, qpn = w.active()
    row = w.qp(qpn)
    subset(row, {"stream_state": "idle", "sq_entries": 64, "rq_entries": 64, "sq_pending": 0, "rq_posted": 0,
                 "tcp_local": None, "mpa_revision": None})


@test
def a_qp_tells_its_terms_and_its_connection(w):
    pair = w.pair(ird=3, ord=2)
    a, p = pair.row(pair.a), pair.row(pair.p)
    terms = {"stream_state": "rts", "mpa_revision": 2, "mpa_enhanced": 1, "mpa_crc": 1,
             "mpa_tx_markers": 0, "mpa_rx_markers": 0, "tx_enabled": 1}
    subset(a, dict(terms, mpa_role="initiator", mpa_rtr_types="write", ird=3, ord=2))
    subset(p, dict(terms, mpa_role="responder", mpa_rtr_types="send,write,read", ird=3, ord=2))
    same(p["drv_tcp_local"], "%s:%d" % (w.addr, w.port), "address")
    same((a["drv_tcp_local"], a["drv_tcp_peer"]), (p["drv_tcp_peer"], p["drv_tcp_local"]),
         "the two ends")
    at_least(a["drv_mulpdu"], 128, "mulpdu")
    at_least(a["drv_tcp_mss"], a["drv_mulpdu"], "mss")
    at_least(a["drv_tcp_cwnd"], 1, "cwnd")
    w.ss(a)     # fails unless exactly one connection is there


@test
def an_address_of_ipv6_is_told_short_and_with_its_port(w):
    pair = w.pair(addr=w.addr6)
    a, p = pair.row(pair.a), pair.row(pair.p)
    same(p["drv_tcp_local"], "[%s]:%d" % (w.addr6, w.port), "address")
    same((a["drv_tcp_local"], a["drv_tcp_peer"]), (p["drv_tcp_peer"], p["drv_tcp_local"]),
         "the two ends")


@test
def each_qp_of_a_long_list_has_all_its_details(w):
    """It is as many messages as it takes, and no QP is told in part."""
    for _ in range(20):
        w.pair()
    told = [sorted(name for name in row if name.startswith("drv_")) for row in w.qps()]
    same(len(told), 40, "QPs")
    at_least(len(told[0]), 30, "details")
    for names in told[1:]:
        same(names, told[0], "details of a QP")


@test
def message_numbers_and_queues_are_those_of_the_traffic(w):
    pair = w.pair()
    first = pair.row(pair.a)
    subset(first, {"tx_msn_send": 1, "tx_msn_request": 1, "rx_msn_send": 1})
    for _ in range(3):
        pair.recv()
    subset(pair.row(pair.p), {"rq_posted": 3})
    for _ in range(3):
        pair.one("send", sge="mr:0:100")
    pair.one("read", sge="mr:0:100", **pair.remote())
    pair.one("fadd", sge="mr:0:8", add=1, **pair.remote())
    w.agent.cmd("sync")
    a, p = pair.row(pair.a), pair.row(pair.p)
    subset(a, {"tx_msn_send": 4, "tx_msn_request": 3, "rx_msn_atomic": 2, "tx_msn_terminate": 1,
               "sq_pending": 0, "sq_inflight": 0, "ord_used": 0})
    subset(p, {"rx_msn_send": 4, "rx_msn_request": 3, "tx_msn_atomic": 2, "rq_posted": 0,
               "ird_used": 0})
    # Of the other queues, the next message is the first.
    subset(a, {"rx_msn_send": 1, "rx_msn_request": 1, "rx_msn_terminate": 1, "tx_msn_atomic": 1})
    subset(p, {"tx_msn_send": 1, "tx_msn_request": 1, "tx_msn_terminate": 1,
               "rx_msn_terminate": 1, "rx_msn_atomic": 1})
    same(a["drv_tx_staged_bytes"], a["drv_tx_sent_bytes"], "bytes")
    if w.by_tcp:
        at_least(a["drv_tx_staged_bytes"], 300, "bytes")


@test
def a_failed_qp_says_why(w):
    w.turn("rnr_timeout_ms", 4000)
    pair = w.pair()
    subset(pair.row(pair.p), {"rnr_waiting": 0})
    pair.post(pair.a, "send", sge="mr:0:10")
    w.eventually(lambda: pair.row(pair.p)["drv_rnr_waiting"] == 1, "a message waits")
    w.eventually(lambda: pair.row(pair.a)["drv_stream_state"] == "error", "an error")
    subset(pair.row(pair.p), {"rnr_waiting": 0})
    subset(pair.row(pair.a), {"peer_fault": "UNTAGGED_NO_BUFFER"})
    subset(pair.row(pair.p), {"fault": "UNTAGGED_NO_BUFFER"})
    for k in (pair.a, pair.p):
        w.agent.cmd("modify", k=k, state="reset")
        row = pair.row(k)
        same([key for key in row if "fault" in key], [], "faults of an earlier life")


@test
def a_qp_says_that_a_code_without_a_name_ended_it(w):
    wire, k, qpn = w.running()
    wire.terminate(14, 1, 2)
    w.agent.wait("event", 10, type="DISCONNECTED", k=k)
    subset(w.qp(qpn), {"peer_fault": "NONE", "fault": None})


@test
def a_qp_that_fails_while_it_connects_is_reset(w):
    """So its connect ends, and no other connection."""
    pair = w.pair()
    others, other = connecting(w)
    other.read_request()
    k, wire = connecting(w)
    wire.read_request()
    for state in ("err", "reset"):
        w.agent.cmd("modify", k=k, state=state)
    failed(w, k)
    other.send_reply(rev=2, enhanced=mpa.Enhanced(ird=4, ord=4, a=1, b=1, c=1, d=1))
    w.agent.wait("event", 10, type="ESTABLISHED", k=others)
    pair.send()


@test
def a_read_that_waits_is_seen(w):
    wire, k, qpn = w.running(rev=2, enhanced=mpa.Enhanced(ird=4, ord=4))
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"go")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    for wr in (2, 3):
        w.agent.cmd("post", k=k, op="read", wr=wr, sge="mr:0:100", raddr=0, rkey=1)
    wire.segment()
    wire.segment()
    subset(w.qp(qpn), {"ord_used": 2, "sq_inflight": 2})
    wire.rst()
    w.agent.wait("wc", 10, k=k, wr=3, status=FLUSH)


@test
def a_cq_tells_what_waits_and_whether_it_is_armed(w):
    w.agent.cmd("cq", name="quiet", depth=10, manual=1)
    before = len(w.resources("cq"))
    at_least(before, 2, "CQs")
    row = [r for r in w.resources("cq") if r["drv_entries"] == 16][0]
    subset(row, {"produced": 0, "unpolled": 0, "armed": "no", "overflowed": 0, "mapped": 1})
    w.agent.cmd("arm", name="quiet")
    row = [r for r in w.resources("cq") if r["drv_entries"] == 16][0]
    subset(row, {"armed": "next"})
    w.agent.cmd("arm", name="quiet", solicited=1)
    w.agent.cmd("dropcq", name="quiet")
    same(len(w.resources("cq")), before - 1, "CQs")


@test
def an_mr_tells_kind_state_and_rights(w):
    w.agent.cmd("mr", name="other", pd="pd", len=12345, access="lr")
    row = [r for r in w.resources("mr") if r["mrlen"] == 12345][0]
    subset(row, {"kind": "region", "state": "valid", "access": "l-r--", "bytes": 12345, "pin_count": 1,
                 "windows": 0})
    w.agent.cmd("dereg", name="other")
    same([r for r in w.resources("mr") if r["mrlen"] == 12345], [], "MRs")


def ids(w, kind):
    return [r for r in w.resources("cm_id") if r.get("drv_kind") == kind]


@test
def a_cm_id_tells_the_step_of_its_handshake(w):
    def listener():
        return [r for r in ids(w, "listener") if r["src-addr"].startswith(w.addr)][0]

    subset(listener(), {"backlog": 16, "pending_mpa_request": 0, "pending_accept": 0})
    wire = w.wire()
    w.eventually(lambda: listener()["drv_pending_mpa_request"] == 1, "a connection that waits")
    wire.send_request()
    k = w.asked()
    subset(listener(), {"pending_mpa_request": 0, "pending_accept": 1})
    w.agent.cmd("reject", k=k)
    w.eventually(lambda: listener()["drv_pending_accept"] == 0, "the decision")

    pair = w.pair()
    rows = ids(w, "connection")
    same(sorted(r["drv_mpa_role"] for r in rows), ["initiator", "responder"], "sides")
    handles = {r["drv_handle"] for r in rows}
    same((len(handles), 0 in handles), (2, False), "handles %s" % handles)
    for row in rows:
        subset(row, {"state": "running", "mpa_revision": 2, "mpa_crc": 1, "deadline_ms": None})
        same(row["lqpn"] in pair.qpn.values(), True, "QP")


@test
def terms_are_told_as_soon_as_they_are_settled(w):
    w.turn("mpa_rtr_timeout_ms", 50000)
    terms = {"mpa_role": "responder", "mpa_revision": 2, "mpa_enhanced": 1, "ird": 4, "ord": 3}

    def reaches(state):
        w.eventually(lambda: [r["drv_state"] for r in ids(w, "connection")] == [state], state)
        subset(ids(w, "connection")[0], terms)

    wire = w.wire()
    wire.send_request(rev=2, enhanced=mpa.Enhanced(ird=3, ord=4, a=1, b=1, c=1, d=1))
    k, _ = w.taken(ird=4, ord=3)
    wire.read_reply()
    reaches("await-rtr")
    at_least(ids(w, "connection")[0]["drv_deadline_ms"], 1, "ms")
    wire.full_operation(True)
    wire.write(0, 0)
    w.agent.wait("event", 10, type="ESTABLISHED", k=k)
    reaches("running")
    same(ids(w, "connection")[0].get("drv_deadline_ms"), None, "deadline")
    wire.rst()


@test
def a_connection_that_goes_down_tells_its_terms(w):
    """As long as its peer does not close."""
    def row():
        return [r for r in ids(w, "connection") if r["lqpn"] == qpn][0]

    w.turn("close_timeout_ms", 60000)
    wire, _, qpn = w.running(rev=2, enhanced=mpa.Enhanced(ird=3, ord=4))
    wire.send(b"broken", fpdu={"crc_xor": 1})
    w.eventually(lambda: row()["drv_state"] == "closing", "it goes down")
    subset(row(), {"mpa_role": "responder", "mpa_revision": 2, "ird": 4, "ord": 3})
    wire.rst()


@test
def a_handle_is_not_given_again_at_once(w):
    """A reader that looks twice does not take one connection for another."""
    seen = []
    for _ in range(4):
        pair = w.pair()
        seen += [r["drv_handle"] for r in ids(w, "connection")]
        pair.close()
        w.pairs.remove(pair)
        w.eventually(lambda: not ids(w, "connection"), "they are gone")
    same(len(set(seen)), 8, "handles %s" % seen)


@test
def a_qp_with_an_srq_tells_of_no_queue_of_its_own(w):
    w.agent.cmd("srq", name="srq", pd="pd", depth=32)
    w.undo.append(lambda: w.agent.cmd("dropsrq", name="srq"))
    k, _ = w.active(qp=False)
    qpn = w.agent.cmd("qp", k=k, pd="pd", cq="cq", srq=1)["qpn"]
    subset(w.qp(qpn), {"sq_entries": 64, "rq_entries": None, "rq_posted": None})


@test
def an_srq_tells_what_waits(w):
    release = tuple(int(n) for n in platform.release().split("-")[0].split(".")[:2])
    rows = w.resources("srq")
    same(rows, [], "SRQs before one is made")
    w.agent.cmd("srq", name="srq", pd="pd", depth=32)
    w.undo.append(lambda: w.agent.cmd("dropsrq", name="srq"))
    w.agent.cmd("postsrq", name="srq", count=5, sge="mr:0:100")
    row = w.resources("srq")[0]
    if release >= (6, 2):
        subset(row, {"entries": 32, "posted": 5, "consumed": 0, "limit": 0})
    else:   # the core has no place for more
        same([name for name in row if name.startswith("drv_")], [], "details")
