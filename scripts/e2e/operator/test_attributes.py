# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Files under /sys/class/infiniband/NAME/params: what they accept, what they do."""

import ctypes
import errno
import os
import subprocess
import time

from world import FLUSH, TX_RUNS, at_least, manual_table, same, sockets, test
from wirepeer import mpa, peer

# linux/prctl.h and linux/capability.h
PR_CAPBSET_DROP, CAP_NET_ADMIN = 24, 12

NONSENSE = ("", "\n", "x", "1x", "-1", "0x", "1 2", "4294967296", "18446744073709551616", "1.5")


def documented():
    """name: (default, least, most, zero too)"""
    found = {}
    for name, default, values, *_ in manual_table("Attributes"):
        least, _, most = values.replace("0 or ", "").partition(" to ")
        found[name.strip("`")] = (default, least, most, values.startswith("0 or "))
    return found


def refused(w, name, text):
    was = w.attr(name)
    try:
        w.write_attr(name, text)
    except OSError as error:
        same(error.errno, errno.EINVAL, "%s=%r" % (name, text))
    else:
        # an empty write does not reach the file at all
        if text:
            raise AssertionError("%s takes %r" % (name, text))
    same(w.attr(name), was, "%s after %r" % (name, text))


@test
def every_attribute_is_in_the_manual_with_its_default(w):
    same(sorted(os.listdir(w.attr_file(""))), sorted(documented()), "attributes")
    asked = {"loopback": os.environ.get("LOOPBACK")}
    for name, (default, *_) in documented().items():
        same(w.attr(name), asked.get(name) or default, name)


@test
def all_may_read_an_attribute_and_root_may_set_it(w):
    for name in documented():
        found = os.stat(w.attr_file(name))
        same((found.st_uid, found.st_mode & 0o777), (0, 0o644), "owner and mode of " + name)


@test
def attributes_take_their_range_and_nothing_else(w):
    for name, (_, least, most, zero) in documented().items():
        if not least.isdigit():
            continue
        before = w.attr(name)
        for value in [int(least), int(most)] + [0] * zero:
            w.write_attr(name, "%d\n" % value)
            same(w.attr(name), str(value), name)
        for value in [int(least) - 1] * (not zero or int(least) > 1) + [int(most) + 1]:
            refused(w, name, str(value))
        for text in NONSENSE:
            refused(w, name, text)
        w.write_attr(name, before)


def without_net_admin():
    """What this process executes next lacks CAP_NET_ADMIN."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN, 0, 0, 0)


@test
def congestion_takes_what_tcp_knows(w):
    w.undo.append(lambda: w.write_attr("tcp_congestion_control", "default"))
    w.write_attr("tcp_congestion_control", "reno\n")
    same(w.attr("tcp_congestion_control"), "reno", "tcp_congestion_control")
    for text in ("\n", "nosuchthing", "x" * 15, "x" * 16, "x" * 400, "reno cubic",
                 "reno" + 20 * " " + "cubic"):
        refused(w, "tcp_congestion_control", text)
    # As one that is unknown: what only an administrator of the network may choose. It is loaded.
    w.write_attr("tcp_congestion_control", "htcp")
    w.write_attr("tcp_congestion_control", "reno")
    tried = subprocess.run(
        ["dd", "of=" + w.attr_file("tcp_congestion_control"), "status=none"], input=b"htcp",
        preexec_fn=without_net_admin, capture_output=True, env={**os.environ, "LC_ALL": "C"},
        check=False, timeout=60)
    same(b"error writing" in tried.stderr and b"Invalid argument" in tried.stderr, True, tried)
    w.write_attr("tcp_congestion_control", "default")
    same(w.attr("tcp_congestion_control"), "default", "tcp_congestion_control")


@test
def trying_a_congestion_control_leaves_no_socket(w):
    w.undo.append(lambda: w.write_attr("tcp_congestion_control", "default"))
    before = sockets()
    for _ in range(50):
        w.write_attr("tcp_congestion_control", "reno")
        refused(w, "tcp_congestion_control", "nosuchthing")
    w.eventually(lambda: sockets() < before + 25, "they are gone")


# --- start-up --------------------------------------------------------------------

def terms(w, **want):
    row = w.pair().row
    pair = w.pairs[-1]
    for k in (pair.a, pair.p):
        for name, value in want.items():
            same(row(k)["drv_" + name], value, name)
    pair.mix()


@test
def crc_off_markers_and_revision_reach_the_connection(w):
    w.turn("mpa_crc", 0)
    terms(w, mpa_crc=0, mpa_tx_markers=0)
    w.turn("mpa_rx_markers", 1)
    terms(w, mpa_crc=0, mpa_tx_markers=1, mpa_rx_markers=1)
    w.turn("mpa_revision", 1)
    terms(w, mpa_revision=1, mpa_enhanced=0, mpa_rtr_types="none")


@test
def kind_of_rtr_and_peer_to_peer_reach_the_connection(w):
    for bits, name in ((1, "send"), (2, "write"), (4, "read")):
        w.turn("mpa_rtr_types", bits)
        terms(w, mpa_rtr_types=name)
    w.turn("mpa_p2p", 0)
    terms(w, mpa_rtr_types="none", mpa_revision=2)


@test
def each_choice_of_rtr_kinds_is_told_by_name(w):
    kinds = ((1, "send"), (2, "write"), (4, "read"))
    for bits in range(1, 8):
        w.turn("mpa_rtr_types", bits)
        pair = w.pair()
        same(pair.row(pair.p)["drv_mpa_rtr_types"],
             ",".join(name for bit, name in kinds if bits & bit), "kinds for %d" % bits)


@test
def crc_require_refuses_a_peer_without(w):
    w.turn("mpa_crc", 2)
    terms(w, mpa_crc=1)
    before = w.counters()
    wire = w.wire()
    wire.send_request(c=0)
    wire.expect_end()
    same(w.since(before).get("connections_refused"), 1, "connections_refused")
    wire = w.wire()
    wire.send_request(c=1)
    w.agent.cmd("reject", k=w.asked())
    same(wire.read_reply().r, 1, "reject")


@test
def crc_require_refuses_a_responder_without(w):
    w.turn("mpa_crc", 2)
    for c, event in ((0, False), (1, True)):
        k, wire = connecting(w)
        request = wire.read_request()
        same(request.c, 1, "C of the request")
        wire.send_reply(c=c, rev=2, enhanced=mpa.Enhanced(ird=4, ord=4, a=1, b=1, c=1, d=1))
        if event:
            w.agent.wait("event", 10, type="ESTABLISHED", k=k)
        else:
            failed(w, k)


@test
def read_depths_are_limited(w):
    w.turn("ird_max", 2)
    terms(w, ird=2, ord=2)
    w.turn("ird_max", 1024)
    w.turn("ord_max", 3)
    terms(w, ird=4, ord=3)


@test
def private_data_is_limited(w):
    w.turn("private_data_max", 4)
    k, _ = w.active()
    w.agent.cmd("connect", k=k, pdata="0102030405")
    failed(w, k)
    k, _ = w.active()
    w.agent.cmd("connect", k=k, pdata="01020304")
    same(w.agent.wait("event", 10, type="CONNECT_REQUEST")["pdata"], "01020304", "private data")


# --- deadlines -------------------------------------------------------------------

def connecting(w):
    """An end of the agent that connects to a plain TCP listener."""
    listener = peer.Listener(w.addr, timeout=10 * w.slow)
    w.peers.append(listener)
    k, _ = w.active(port=listener.port)
    w.agent.cmd("connect", k=k)
    wire = listener.accept()
    w.peers.append(wire)
    return k, wire


def failed(w, k):
    """The connect has failed: how does not matter here."""
    def event():
        w.agent.cmd("sync")
        return any(line["kind"] == "event" and line.get("k") == k for line in w.agent.lines)

    w.eventually(event, "an event")
    found = w.agent.wait("event", 1, k=k)
    same(found["type"] in ("REJECTED", "UNREACHABLE", "CONNECT_ERROR"), True, found["type"])
    return found


def timed_out(w, k):
    """The consumer is told so, and nothing else."""
    found = failed(w, k)
    same((found["type"], found["status"]), ("UNREACHABLE", -errno.ETIMEDOUT), "event")


def in_time(w, name, act):
    """What @act waits for comes when the deadline is over, not before, and not after twice the
    time. A busy machine may be late, but not each time."""
    w.turn(name, 1000)
    for _ in range(5):
        began = time.monotonic()
        act()
        took = time.monotonic() - began
        at_least(took, 0.8, "seconds")
        if took < 1.8:
            return
    raise AssertionError("it took %.1f s" % took)


@test
def tcp_connect_timeout_ends_a_connect_without_answer(w):
    def act():
        k, _ = w.active(addr=w.addr.rsplit(".", 1)[0] + ".99", port=1)
        w.agent.cmd("connect", k=k)
        timed_out(w, k)

    in_time(w, "tcp_connect_timeout_ms", act)


@test
def mpa_request_timeout_ends_a_silent_initiator(w):
    before = w.counters()
    in_time(w, "mpa_request_timeout_ms", lambda: w.wire().expect_end())
    same(w.since(before).get("connections_refused"), None, "a silent one is not refused")


@test
def accept_timeout_ends_a_request_without_answer(w):
    def act():
        wire = w.wire()
        wire.send_request()
        w.asked()
        wire.expect_end()

    in_time(w, "accept_timeout_ms", act)


@test
def mpa_reply_timeout_ends_a_silent_responder(w):
    def act():
        k, wire = connecting(w)
        wire.read_request()
        timed_out(w, k)

    in_time(w, "mpa_reply_timeout_ms", act)


@test
def mpa_rtr_timeout_ends_an_initiator_that_never_gets_ready(w):
    """Each of them is one that was refused, though its request was accepted."""
    before, wires = w.counters(), []

    def act():
        wire = w.wire()
        wires.append(wire)
        wire.send_request(rev=2, enhanced=mpa.Enhanced(ird=4, ord=4, a=1, b=1, c=1, d=1))
        w.taken()
        wire.read_reply()
        wire.expect_end()

    in_time(w, "mpa_rtr_timeout_ms", act)
    moved = w.since(before)
    same(moved.get("connections_refused"), len(wires), "connections_refused")
    same(moved.get("connections_passive"), None, "connections_passive")


@test
def close_timeout_ends_a_peer_that_does_not_close(w):
    def act():
        wire, k, _ = w.running()
        for wr in (1, 2):
            w.agent.cmd("post", k=k, op="recv", wr=wr, sge="mr:0:100")
        wire.send(b"x")
        w.agent.wait("wc", 10, k=k, wr=1, status=0)
        w.agent.cmd("disconnect", k=k)
        w.agent.wait("wc", 10, k=k, wr=2, status=FLUSH)

    in_time(w, "close_timeout_ms", act)


# --- doorbells ---------------------------------------------------------------------

def stream(w, posts=40):
    """Writes of a process that never polls; they arrive all the same."""
    pair = w.pair(cq="quiet")
    before = w.counters()
    for _ in range(posts):
        pair.post(pair.a, "write", sge="mr:0:100", **pair.remote(8192))
    w.eventually(lambda: w.since(before).get("rx_writes") == posts, "the Writes have arrived")
    return w.since(before)


@test
def sq_poll_interval_spares_doorbells_and_0_spares_none(w):
    w.agent.cmd("cq", name="quiet", depth=256, manual=1)
    w.undo.append(lambda: w.agent.cmd("dropcq", name="quiet"))
    moved = {}
    for period in (10000, 0):
        w.turn("sq_poll_interval_us", period)
        moved[period] = stream(w)
    runs = {period: sum(m.get(name, 0) for name in TX_RUNS.values() if name != "tx_softirq_runs")
            for period, m in moved.items()}
    at_least(moved[10000].get("sq_poll_hits", 0), 1, "sq_poll_hits")
    same(moved[0].get("sq_poll_hits"), None, "sq_poll_hits at 0")
    at_least(runs[0], 40, "a doorbell for each post")
    at_least(runs[0] - 8, runs[10000], "doorbells spared")
