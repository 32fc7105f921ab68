# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tracepoints, through tracefs: each message once, each step in order."""

import os
import re
import select
import signal
import subprocess
import time
from errno import ECONNREFUSED

from test_attributes import failed
from test_figures import region
from world import FLUSH, MANUAL, MIX_KINDS, MIX_MESSAGES, TX_RUNS, Skip, manual_table, same, test
from wirepeer import mpa, rdmap

# enum ibv_wc_status
LOC_PROT, REM_ACCESS = 4, 10

DRIVER = os.path.join(os.path.dirname(MANUAL), "..", "drivers", "weft")
TRACING = "/sys/kernel/tracing"
EVENTS = TRACING + "/events/weft"
LINE = re.compile(r": (weft_\w+): (.*)$")
OPCODES = {"sends": "send", "writes": "write", "read_requests": "read-request",
           "read_responses": "read-response", "atomic_requests": "atomic-request",
           "atomic_responses": "atomic-response", "immediates": "imm"}


def write(name, text):
    with open("%s/%s" % (TRACING, name), "w", encoding="ascii") as file:
        file.write(text)


class Trace:
    """Everything of weft, from the beginning to the end of a block.

    Tracepoints are switched by patching code, and an emulated CPU that runs into
    the patch may never leave it (Documentation/testing.md): what names the tasks
    of a trace would patch the scheduler, and weft is left to come to rest.
    """

    def __init__(self, w):
        self.w, self.found = w, []

    def __enter__(self):
        write("trace_clock", "counter")  # clocks of CPUs differ
        write("trace", "")
        write("options/record-cmd", "0")
        self.switch("1")
        return self

    @staticmethod
    def switch(on):
        time.sleep(0.1)
        write("events/weft/enable", on)

    def __exit__(self, *exc):
        self.switch("0")
        with open(TRACING + "/trace", encoding="ascii", errors="replace") as file:
            for text in file:
                match = LINE.search(text)
                if match:
                    fields = dict(word.split("=", 1) for word in match.group(2).split())
                    self.found.append((match.group(1), fields))
        if not exc[0]:
            same([n for n, f in self.found if f["ifindex"] != str(ifindex())], [],
                 "what is not of this device")

    def all(self, name, **match):
        return [f for n, f in self.found if n == name and all(f[k] == str(v)
                                                              for k, v in match.items())]


def ifindex():
    with open("/sys/class/net/wd0/ifindex", encoding="ascii") as file:
        return int(file.read())


@test
def every_tracepoint_is_in_the_manual(w):
    same(sorted(n for n in os.listdir(EVENTS) if os.path.isdir("%s/%s" % (EVENTS, n))),
         sorted(row[0].strip("`") for row in manual_table("Tracepoints")), "tracepoints")


@test
def each_kind_of_message_has_a_name(w):
    for name in ("weft_message_sent", "weft_message_received"):
        with open("%s/%s/format" % (EVENTS, name), encoding="ascii") as file:
            named = re.findall(r'{ (\d+), "[a-z-]+" }', file.read())
        same(named, [str(opcode) for opcode in range(14)], name)


def symbols(name, field):
    """What a tracepoint calls the values of a field, from 0 on."""
    with open("%s/%s/format" % (EVENTS, name), encoding="ascii") as file:
        pairs = re.search(r"__print_symbolic\(REC->%s, ([^)]*)\)" % field, file.read()).group(1)
    found = re.findall(r'{ (\d+), "([a-z0-9-]+)" }', pairs)
    same([number for number, _ in found], [str(i) for i in range(len(found))], name)
    return [word for _, word in found]


def enumerators(path, name, prefix):
    """Those of an enum of weft in a trace's words, but for the last, which counts them."""
    with open(os.path.join(DRIVER, path), encoding="ascii") as file:
        body = re.search(r"^enum %s {\n(.*?)^};" % name, file.read(), re.M | re.S).group(1)
    words = re.findall(r"^\t%s(\w+)" % prefix, body, re.M)
    return [word.lower().replace("_", "-") for word in words[:-1]]


@test
def each_state_and_event_has_its_own_name(w):
    for name, path, enum, prefix in (
            ("weft_qp_state", "proto/qp_fsm.h", "weft_qp", "WEFT_QP_"),
            ("weft_cm_state", "proto/conn_fsm.h", "weft_conn", "WEFT_CONN_")):
        states = enumerators(path, enum + "_state", prefix)
        same(symbols(name, "from"), states, name)
        same(symbols(name, "to"), states, name)
        same(symbols(name, "event"), enumerators(path, enum + "_event", prefix), name)
    same(symbols("weft_rnr", "event"), ["wait", "ready", "timeout", "closed"], "weft_rnr")
    same(symbols("weft_tx_run", "mode"), list(TX_RUNS), "weft_tx_run")


@test
def each_opcode_has_its_own_name(w):
    same(symbols("weft_message_sent", "opcode"),
         ["write", "read-request", "read-response", "send", "send-inv", "send-se", "send-se-inv",
          "terminate", "imm", "imm-se", "atomic-request", "atomic-response", "send-imm",
          "send-se-imm"], "opcodes")


@test
def traces_agree_with_the_counters(w):
    pair = w.pair()
    before = w.counters()
    with Trace(w) as trace:
        pair.mix()
        moved = w.since(before)
    for way, name in (("tx", "weft_message_sent"), ("rx", "weft_message_received")):
        same(len(trace.all(name, ifindex=ifindex())), moved[way + "_messages"], name)
        for kind, opcode in OPCODES.items():
            same(len(trace.all(name, opcode=opcode)), moved["%s_%s" % (way, kind)], opcode)
        lengths = sorted(int(f["length"]) for f in trace.all(name, opcode="write"))
        same(lengths, [200, 5000, 5000], "lengths of Writes")
        msns = [int(f["msn"]) for f in trace.all(name) if f["opcode"] in ("send", "imm")]
        same(msns, list(range(msns[0], msns[0] + 4)), "MSNs of the queue for Sends")
    runs = {mode: len(trace.all("weft_tx_run", mode=mode)) for mode in TX_RUNS}
    same(runs, {mode: moved.get(name, 0) for mode, name in TX_RUNS.items()}, "runs of tx")
    same(sum(MIX_KINDS.values()), MIX_MESSAGES, "messages")
    sends = trace.all("weft_send_done", qpn=pair.qpn[pair.a])
    same(len(sends), 8, "sends done")
    same({f["status"] for f in sends}, {"0"}, "their status")
    same([f["length"] for f in trace.all("weft_receive_done", qpn=pair.qpn[pair.p])],
         ["100", "200", "100", "100"], "lengths of receives done")


@test
def a_message_in_batches_is_traced_with_all_its_bytes(w):
    w.send_in_batches()
    pair = w.pair()
    with Trace(w) as trace:
        for _ in range(2):
            pair.one("write", sge="mr:0:65536", **pair.remote())
            pair.send()
    for name in ("weft_message_sent", "weft_message_received"):
        same([f["length"] for f in trace.all(name, opcode="write")], ["65536"] * 2, name)


@test
def what_tcp_takes_is_traced_and_that_it_is_full(w):
    w.turn("tcp_sndbuf", 8192)
    wire, k, qpn = w.running(rev=2, enhanced=mpa.Enhanced(ird=4, ord=4))
    region(w, "large", 1 << 20, "l")
    w.agent.cmd("post", k=k, op="recv", wr=1, sge="mr:0:100")
    wire.send(b"x")
    w.agent.wait("wc", 10, k=k, wr=1, status=0)
    full, sent = w.counters(), w.qp(qpn)["drv_tx_sent_bytes"]
    with Trace(w) as trace:
        w.agent.cmd("post", k=k, op="write", wr=2, sge="large:0:%d" % (1 << 20), raddr=0, rkey=1)
        w.eventually(lambda: w.since(full).get("tx_socket_full", 0) >= 1, "TCP is full")
        wire.expect(rdmap.WRITE)
        w.agent.wait("wc", 10, k=k, wr=2, status=0)
    batches = trace.all("weft_tx_batch", ifindex=ifindex(), qpn=qpn)
    same(sum(int(f["bytes"]) for f in batches), w.qp(qpn)["drv_tx_sent_bytes"] - sent, "bytes")
    same({f["err"] for f in batches}, {"0", "-11"}, "what TCP said")
    wire.rst()


@test
def a_life_is_traced_step_by_step(w):
    with Trace(w) as trace:
        pair = w.pair()
        w.agent.cmd("disconnect", k=pair.a)
        for k in (pair.a, pair.p):
            w.agent.wait("event", 10, type="DISCONNECTED", k=k)
        pair.close()
        w.pairs.remove(pair)
    for qpn in pair.qpn.values():
        steps = trace.all("weft_qp_state", qpn=qpn)
        same((steps[0]["event"], steps[0]["from"], steps[0]["to"]), ("started", "idle", "rts"),
             "first step")
        same(steps[-1]["to"], "error", "last state")
        for one, other in zip(steps, steps[1:]):
            same(other["from"], one["to"], "steps of a QP")
    # Others, of an earlier test, may end meanwhile.
    ours = set(map(str, pair.qpn.values()))
    handles = {f["handle"] for f in trace.all("weft_cm_state") if f["qpn"] in ours}
    same(len(handles), 2, "connections")
    begins = []
    for handle in handles:
        steps = trace.all("weft_cm_state", handle=handle)
        begins.append([f["event"] for f in steps[:3]])
        same(steps[-1]["qpn"] in ours, True, "its QP at the end")
        same("running" in [f["to"] for f in steps], True, "runs")
        same(steps[-1]["to"], "closed", "last state")
        same({f["err"] for f in steps}, {"0"}, "why it failed")
        for one, other in zip(steps, steps[1:]):
            same(other["from"], one["to"], "steps of a connection")
    same(sorted(begins), [["connect", "tcp-connected", "reply-received"],
                          ["tcp-accepted", "request-received", "ulp-accepted-p2p"]], "events")


@test
def a_connect_that_fails_is_traced_with_the_reason(w):
    """At the step that fails, and under the number of its QP."""
    k, qpn = w.active(port=1)
    with Trace(w) as trace:
        w.agent.cmd("connect", k=k)
        failed(w, k)
    same([(f["event"], f["to"], f["err"]) for f in trace.all("weft_cm_state", qpn=qpn)],
         [("connect", "connecting", "0"), ("tcp-failed", "closed", str(-ECONNREFUSED))], "steps")


@test
def a_fault_is_traced_at_both_ends(w):
    pair = w.pair()
    with Trace(w) as trace:
        pair.post(pair.a, "send", sge="mr:0:10")
        w.eventually(lambda: pair.row(pair.a)["drv_stream_state"] == "error", "an error")
        late = pair.post(pair.a, "send", sge="mr:0:10")
        pair.wc(pair.a, late, FLUSH)
        unused = pair.recv()
        pair.wc(pair.p, unused, FLUSH)
    for name, k, wr in (("weft_send_done", pair.a, late), ("weft_receive_done", pair.p, unused)):
        done = trace.all(name, qpn=pair.qpn[k])[-1]
        same((done["wr_id"], done["status"]), (hex(wr), str(FLUSH)), name)
    want = {"layer": "1", "type": "2", "code": "0x02"}
    for name, qpn in (("weft_protocol_error", pair.qpn[pair.p]),
                      ("weft_rx_terminate", pair.qpn[pair.a])):
        found = trace.all(name, qpn=qpn)
        same(len(found), 1, name)
        same({key: found[0][key] for key in want}, want, name)
    same([f["event"] for f in trace.all("weft_rnr", qpn=pair.qpn[pair.p])], ["wait", "timeout"],
         "what the message without a receive did")


@test
def each_number_of_a_terminate_is_traced(w):
    """Of a refused Read no two of them are the same."""
    secret = region(w, "secret", 100, "l")
    pair = w.pair()
    with Trace(w) as trace:
        wr = pair.post(pair.a, "read", sge="mr:0:10", raddr=secret["iova"], rkey=secret["rkey"])
        pair.wc(pair.a, wr, REM_ACCESS)
        w.eventually(lambda: pair.row(pair.p)["drv_stream_state"] == "error", "an error")
    for name, qpn in (("weft_protocol_error", pair.qpn[pair.p]),
                      ("weft_rx_terminate", pair.qpn[pair.a])):
        same([(f["layer"], f["type"], f["code"]) for f in trace.all(name, qpn=qpn)],
             [("0", "1", "0x02")], name)


@test
def a_completion_and_the_trace_name_the_same_fault(w):
    pair = w.pair()
    with Trace(w) as trace:
        wr = pair.post(pair.a, "send", sge="@0x1000:8:0x12345")
        fault = pair.wc(pair.a, wr, LOC_PROT)["vendor"]
        w.eventually(lambda: pair.row(pair.a)["drv_stream_state"] == "error", "an error")
    same([f["fault"] for f in trace.all("weft_protocol_error", qpn=pair.qpn[pair.a])],
         [str(fault)], "fault")


def need_perf_events():
    if not os.path.exists("/proc/sys/kernel/perf_event_paranoid"):
        raise Skip("this kernel has no perf events")


@test
def perf_counts_what_the_counters_count(w):
    need_perf_events()
    names = ("weft:weft_message_sent", "weft:weft_message_received")
    pair = w.pair()
    # perf counts while its child lives: from its first word to our next.
    with subprocess.Popen(["perf", "stat", "-a", "-x;", "-e", ",".join(names), "--",
                           "sh", "-c", "echo go; read -r line"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as perf:
        same(perf.stdout.readline(), "go\n", "the child of perf")
        before = w.counters()
        pair.mix()
        moved = w.since(before)
        _, said = perf.communicate("\n", 60)
    found = {line.split(";")[2]: int(line.split(";")[0]) for line in said.split("\n")
             if line.count(";") > 2}
    same(found, dict(zip(names, (moved["tx_messages"], moved["rx_messages"]))), said)


def says_go(bpftrace, seconds):
    """Whether the first probe prints."""
    said = b""
    while b"go\n" not in said:
        if not select.select([bpftrace.stdout], [], [], seconds)[0]:
            return False
        piece = os.read(bpftrace.stdout.fileno(), 4096)
        if not piece:
            return False
        said += piece
    return True


def traced(program, measure, seconds):
    """What bpftrace prints at its end, and what @measure returned while it ran.

    bpftrace itself hangs at times, before its first word or when it is told to end. It is killed
    then, before anything that it counted is looked at, and all is done again.
    """
    for _ in range(3):
        with subprocess.Popen(["bpftrace", "-B", "none", "-e", program],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as bpftrace:
            try:
                if says_go(bpftrace, seconds):
                    measured = measure()
                    bpftrace.send_signal(signal.SIGINT)
                    return bpftrace.communicate(timeout=seconds)[0].decode(), measured
            except subprocess.TimeoutExpired:
                pass
            finally:
                bpftrace.kill()
    raise AssertionError("bpftrace hung three times")


@test
def bpftrace_reads_the_fields(w):
    """Messages of the device, and by its fields what one QP did."""
    need_perf_events()
    pair = w.pair()

    def measure():
        before = w.counters()
        with Trace(w) as trace:
            pair.mix()
            moved = w.since(before)
        done = trace.all("weft_send_done", qpn=pair.qpn[pair.a])
        return {"sent": moved["tx_messages"], "received": moved["rx_messages"], "done": 8,
                "bytes": sum(int(f["length"]) for f in done), "bad": 0}

    said, expected = traced("""
        BEGIN { printf("go\\n"); }
        tracepoint:weft:weft_message_sent { @sent = count(); }
        tracepoint:weft:weft_message_received { @received = count(); }
        tracepoint:weft:weft_send_done /args->qpn == %d/ {
            @done = count(); @bytes = sum(args->length); @bad = sum(args->status); }
        """ % pair.qpn[pair.a], measure, 20 * w.slow)
    found = {name: int(value) for name, value in re.findall(r"@(\w+): (\d+)", said)}
    same(found, expected, said)


@test
def nothing_is_traced_when_disabled(w):
    pair = w.pair()
    write("trace", "")
    pair.mix()
    with open(TRACING + "/trace", encoding="ascii", errors="replace") as file:
        same([text for text in file if "weft" in text], [], "lines")
