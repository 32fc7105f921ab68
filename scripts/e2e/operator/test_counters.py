# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""rdma statistic: of the port, and of single QPs."""

import subprocess
import time

from test_attributes import failed
from world import (FLUSH, MIX_BYTES, MIX_KINDS, MIX_MESSAGES, TX_RUNS, at_least, manual_table, run,
                   same, test)

REASONS = ("crc", "mpa", "access", "rq_empty", "rq_too_small", "sequence", "protocol",
           "local_error")


def subset(moved, want):
    for name, value in want.items():
        same(moved.get(name, 0), value, name)


@test
def every_counter_is_in_the_manual(w):
    same(sorted(w.counters()), sorted(row[0].strip("`") for row in manual_table("Counters")),
         "names")


@test
def messages_are_counted_by_kind_exactly(w):
    pair = w.pair()
    before = w.counters()
    pair.mix()
    moved = w.since(before)
    for way in ("tx", "rx"):
        subset(moved, {"%s_%s" % (way, kind): count for kind, count in MIX_KINDS.items()})
        subset(moved, {way + "_messages": MIX_MESSAGES, way + "_segments": MIX_MESSAGES,
                       way + "_bytes": MIX_BYTES})
    runs = sum(moved.get(name, 0) for name in TX_RUNS.values() if name != "tx_softirq_runs")
    at_least(runs, 1, "runs outside the softirq")
    if w.by_tcp:
        at_least(moved.get("sk_data_ready_calls", 0), 1, "sk_data_ready_calls")
        # The answers to the Reads and atomics of the mix wait for no process and no worker.
        at_least(moved.get("tx_softirq_runs", 0), 1, "tx_softirq_runs")
        subset(moved, {"loopback_tx_segments": 0, "loopback_tx_bytes": 0})
    else:
        subset(moved, {"loopback_tx_segments": MIX_MESSAGES, "loopback_tx_bytes": MIX_BYTES})
    # Nothing went wrong, so nothing of that kind may have moved.
    for name in moved:
        if "_term" in name or "error" in name or "fault" in name or "flush" in name:
            raise AssertionError("%s moved" % name)


def payload(w, pair):
    """Of a segment, at most."""
    return pair.row(pair.a)["drv_mulpdu"] - 14 if w.by_tcp else 61440


@test
def large_messages_are_counted_in_segments(w):
    pair = w.pair()
    before, space = w.counters(), [payload(w, pair)]
    pair.one("write", sge="mr:0:65536", **pair.remote())
    pair.send(100)
    moved = w.since(before)
    subset(moved, {"tx_messages": 2, "tx_bytes": 65636, "rx_segments": moved["tx_segments"]})
    # TCP's segments may grow with the peer's window, and FPDUs with them.
    space.append(payload(w, pair))
    most, least = (-(-65536 // size) + 1 for size in sorted(space))
    at_least(moved["tx_segments"], least, "segments")
    at_least(most, moved["tx_segments"], "segments at most")
    at_least(least, 3, "segments")


@test
def connections_are_counted_by_side(w):
    before = w.counters()
    for _ in range(3):
        w.pair()
    moved = w.since(before)
    # The ready-to-receive message of each is an empty Write.
    subset(moved, {"connections_active": 3, "connections_passive": 3, "tx_writes": 3,
                   "rx_writes": 3, "tx_messages": 3, "tx_bytes": 0})


@test
def a_connect_that_fails_is_counted(w):
    before = w.counters()
    k, _ = w.active(port=1)
    w.agent.cmd("connect", k=k)
    failed(w, k)
    subset(w.since(before), {"connections_active": 0, "connections_passive": 0,
                             "connections_refused": 1, "connections_unreachable": 0})


@test
def an_armed_queue_raises_one_event(w):
    pair = w.pair()
    w.agent.cmd("arm", name="cq")
    before = w.counters()
    pair.send()
    pair.send()
    subset(w.since(before), {"cq_events": 1})


@test
def flushed_work_requests_are_counted(w):
    pair = w.pair()
    posted = [pair.recv() for _ in range(5)]
    before = w.counters()
    w.agent.cmd("modify", k=pair.p, state="err")
    for wr in posted:
        pair.wc(pair.p, wr, FLUSH)
    subset(w.since(before), {"wr_flushes": 5, "wr_errors": 0})


def kernel_says(words, lines_before):
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    return [line for line in log.split("\n")[lines_before:] if words in line]


def terminated(w, reason, fault, break_it):
    """Both ends are here, so each Terminate is counted as sent and as received."""
    pair = w.pair()
    lines = len(run("dmesg").split("\n")) - 1
    before = w.counters()
    break_it(pair)
    w.eventually(lambda: w.counters()["rx_terminates"] > before["rx_terminates"],
                 "a Terminate")
    moved = w.since(before)
    subset(moved, {"tx_terminates": 1, "rx_terminates": 1})
    for other in REASONS:
        count = int(other == reason)
        subset(moved, {"tx_term_" + other: count, "rx_term_" + other: count})
    # Each end says what it knows: what was wrong, and what the other one found wrong.
    received, detected = ("QP %d: %s: %s" % (pair.qpn[k], what, fault) for k, what in
                          ((pair.a, "Terminate received"), (pair.p, "error detected")))
    w.eventually(lambda: kernel_says(received, lines), "two lines of the kernel")
    same(len(kernel_says(detected, lines)), 1, "lines that name the QP")
    same(len(kernel_says("error detected: " + fault, lines)), 1, "lines that name the fault")
    return moved


@test
def a_terminate_for_want_of_a_receive(w):
    w.turn("rnr_timeout_ms", 200)
    moved = terminated(w, "rq_empty", "UNTAGGED_NO_BUFFER",
                       lambda pair: pair.post(pair.a, "send", sge="mr:0:10"))
    subset(moved, {"rx_protocol_errors": 1, "rnr_waits": 1, "rnr_timeouts": 1})


@test
def a_receive_in_time_is_no_timeout(w):
    w.turn("rnr_timeout_ms", 60000)
    pair = w.pair()
    before = w.counters()
    pair.post(pair.a, "send", sge="mr:0:10")
    w.eventually(lambda: w.counters()["rnr_waits"] > before["rnr_waits"], "a message waits")
    pair.wc(pair.p, pair.recv())
    subset(w.since(before), {"rnr_waits": 1, "rnr_timeouts": 0, "rx_sends": 1,
                             "rx_protocol_errors": 0})


def port_file(w, name):
    with open("/sys/class/infiniband/%s/ports/1/counters/%s" % (w.dev, name),
              encoding="ascii") as file:
        return int(file.read())


def port_errors(w):
    return port_file(w, "port_rcv_errors")


@test
def a_terminate_for_a_wrong_key(w):
    errors = port_errors(w)
    moved = terminated(w, "access", "TAGGED_STAG",
                       lambda pair: pair.post(pair.a, "write", sge="mr:0:10", raddr=0, rkey=77))
    subset(moved, {"rx_protocol_errors": 1})
    same(port_errors(w), errors + 1, "port_rcv_errors")


def overlong(pair):
    pair.recv(size=10)
    pair.post(pair.a, "send", sge="mr:0:100")


@test
def a_terminate_for_a_message_too_long(w):
    moved = terminated(w, "rq_too_small", "UNTAGGED_TOO_LONG", overlong)
    # By TCP the Send had completed; else it fails as well.
    subset(moved, {"wr_errors": 1 if w.by_tcp else 2, "rx_protocol_errors": 1})


@test
def a_terminate_for_a_wrong_crc(w):
    wire, k, _ = w.running()
    before, errors = w.counters(), port_errors(w)
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"broken", fpdu={"crc_xor": 1})
    wire.expect_terminate(2, 0, 2)
    subset(w.since(before), {"rx_crc_errors": 1, "tx_term_crc": 1, "tx_terminates": 1,
                             "rx_messages": 0, "rx_segments": 0})
    same(port_errors(w), errors + 1, "port_rcv_errors")


@test
def many_faults_are_not_as_many_lines(w):
    """Ten in five seconds, as the manual says, of each of the two kinds."""
    w.turn("rnr_timeout_ms", 0)
    lines = len(run("dmesg").split("\n")) - 1
    before, began, streams = w.counters(), time.monotonic(), 40
    for _ in range(streams):
        pair = w.pair()
        pair.post(pair.a, "send", sge="mr:0:10")
        w.agent.wait("event", 10, type="DISCONNECTED", k=pair.a)
        pair.close()
        w.pairs.remove(pair)
    most = 10 * (2 + int(time.monotonic() - began) // 5)
    subset(w.since(before), {"tx_term_rq_empty": streams})
    for words in ("error detected: UNTAGGED_NO_BUFFER", "Terminate received"):
        at_least(most, len(kernel_says(words, lines)), "lines of the kernel: " + words)


@test
def a_reset_is_a_lost_connection(w):
    wire, k, _ = w.running()
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"x")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    before = w.counters()
    wire.rst()
    w.agent.wait("event", 10, type="DISCONNECTED", k=k)
    moved = w.since(before)
    subset(moved, {"connections_lost": 1})
    at_least(moved.get("sk_data_ready_calls", 0), 1, "calls of TCP for the end")


@test
def an_orderly_end_is_no_lost_connection(w):
    before = w.counters()
    pair = w.pair()
    pair.send()
    w.agent.cmd("disconnect", k=pair.a)
    for k in (pair.a, pair.p):
        w.agent.wait("event", 10, type="DISCONNECTED", k=k)
    pair.close()
    w.pairs.remove(pair)
    subset(w.since(before), {"connections_lost": 0, "connections_refused": 0, "tx_terminates": 0,
                             "wr_errors": 0})


# --- single QPs ------------------------------------------------------------------

def link(w):
    return w.dev + "/1"


def bind(w, qpn):
    run("rdma", "statistic", "qp", "bind", "link", link(w), "lqpn", str(qpn))
    return [row for row in w.qp_counters() if qpn in row.get("lqpn", [])][0]["cntn"]


def counter(w, cntn):
    return [row for row in w.qp_counters() if row["cntn"] == cntn][0]


@test
def a_bound_qp_is_counted_apart_and_not_twice(w):
    bound, other = w.pair(), w.pair()
    total = w.counters()
    cntn = bind(w, bound.qpn[bound.a])
    bound.mix()
    other.mix()
    row = counter(w, cntn)
    # Its own end only: what the active side sends and receives.
    subset(row, {"tx_sends": 3, "tx_writes": 3, "tx_read_requests": 1, "tx_atomic_requests": 1,
                 "tx_immediates": 1, "rx_read_responses": 1, "rx_atomic_responses": 1,
                 "tx_messages": 9, "rx_messages": 2, "rx_sends": 0, "rx_bytes": 3000})
    moved = w.since(total)
    subset(moved, {"tx_messages": 2 * MIX_MESSAGES, "rx_messages": 2 * MIX_MESSAGES,
                   "tx_bytes": 2 * MIX_BYTES})
    run("rdma", "statistic", "qp", "unbind", "link", link(w), "cntn", str(cntn),
        "lqpn", str(bound.qpn[bound.a]))
    same(w.qp_counters(), [], "counters after the unbinding")
    bound.mix()
    subset(w.since(total), {"tx_messages": 3 * MIX_MESSAGES, "tx_bytes": 3 * MIX_BYTES})


@test
def each_counter_has_a_number_and_qps_of_its_own(w):
    one, two = w.pair(), w.pair()
    qpns = [one.qpn[one.a], two.qpn[two.a]]
    cntns = [bind(w, qpn) for qpn in qpns]
    one.mix()
    rows = {row["cntn"]: row for row in w.qp_counters()}
    same(sorted(rows), sorted(set(cntns)), "numbers")
    same([rows[cntn]["lqpn"] for cntn in cntns], [[qpn] for qpn in qpns], "QPs")
    subset(rows[cntns[0]], {"tx_messages": 9, "rx_messages": 2})
    subset(rows[cntns[1]], {"tx_messages": 0, "tx_bytes": 0, "rx_messages": 0})
    for cntn, qpn in zip(cntns, qpns):
        run("rdma", "statistic", "qp", "unbind", "link", link(w), "cntn", str(cntn),
            "lqpn", str(qpn))
        same(cntn in [row["cntn"] for row in w.qp_counters()], False, "still there")


@test
def one_counter_for_two_qps(w):
    pair = w.pair()
    cntn = bind(w, pair.qpn[pair.a])
    run("rdma", "statistic", "qp", "bind", "link", link(w), "lqpn", str(pair.qpn[pair.p]),
        "cntn", str(cntn))
    pair.mix()
    row = counter(w, cntn)
    subset(row, {"tx_messages": MIX_MESSAGES, "rx_messages": MIX_MESSAGES, "rx_bytes": MIX_BYTES})
    same(sorted(row["lqpn"]), sorted(pair.qpn.values()), "QPs of the counter")


@test
def a_qp_that_goes_leaves_its_counts_to_the_port(w):
    pair = w.pair()
    before, packets = w.counters(), port_file(w, "port_xmit_packets")
    for k in (pair.a, pair.p):
        bind(w, pair.qpn[k])
    pair.mix()
    w.agent.cmd("sync")
    same(port_file(w, "port_xmit_packets") - packets, MIX_MESSAGES, "packets of bound QPs too")
    pair.close()
    w.pairs.remove(pair)
    w.eventually(lambda: not w.qp_counters(), "the counters are gone")
    subset(w.since(before), {"tx_messages": MIX_MESSAGES, "tx_bytes": MIX_BYTES})
    same(port_file(w, "port_xmit_packets") - packets, MIX_MESSAGES, "packets, without the QPs")


@test
def qps_are_bound_by_themselves_in_auto_mode(w):
    run("rdma", "statistic", "qp", "set", "link", link(w), "auto", "type", "on")
    w.undo.append(lambda: run("rdma", "statistic", "qp", "set", "link", link(w), "auto", "off"))
    pair = w.pair()
    rows = w.qp_counters()
    same(sorted(qpn for row in rows for qpn in row["lqpn"]), sorted(pair.qpn.values()), "QPs")
    before = w.counters()
    pair.mix()
    subset(w.since(before), {"tx_messages": MIX_MESSAGES})
    pair.close()
    w.pairs.remove(pair)
    subset(w.since(before), {"tx_messages": MIX_MESSAGES})


@test
def counters_can_be_bound_and_let_go_under_traffic(w):
    pair = w.pair()
    before = w.counters()
    rounds = 8
    cntns = []
    for _ in range(rounds):
        cntns.append(bind(w, pair.qpn[pair.a]))
        pair.send()
        run("rdma", "statistic", "qp", "unbind", "link", link(w), "cntn", str(cntns[-1]),
            "lqpn", str(pair.qpn[pair.a]))
        pair.send()
    same(len(set(cntns)), rounds, "numbers, none of which is given again at once")
    sent = 2 * rounds
    subset(w.since(before), {"tx_sends": sent, "rx_sends": sent, "tx_bytes": 100 * sent})
