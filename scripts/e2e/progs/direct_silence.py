# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of direct.py: a peer that is not there, goes, or does not answer any more."""

import subprocess
import time

import pyverbs.enums as e
from direct_end import args, counters, initiator_first, log_of, messages, turned, two


def refusals():
    """Attempts that have failed, at both ends."""
    return sum(counters(device)["refused"] for device in {args.device, args.peer})


def seconds_until_it_is_found():
    a, b = initiator_first()
    before = refusals()
    a.connect(b)
    time.sleep(3)
    attempts = refusals() - before
    assert 1 < attempts < 100, attempts
    began = time.monotonic()
    b.connect(a)
    messages(a, b)
    return time.monotonic() - began


def attempts_are_spaced():
    """Of an initiator whose peer is not there: less and less of them, but four in a second, so
    that the peer is found soon once it is there. A busy machine may be late."""
    assert any(seconds_until_it_is_found() < 1.2 for _ in range(3))


def seconds_without_a_peer(least=2, **rts):
    ways = [two(), two()[::-1]]
    for one, other in ways:
        one.connect(other, **rts)
        one.receive()
    time.sleep(4)
    began = time.monotonic()
    for one, _ in ways:
        assert one.state() == e.IBV_QPS_RTS
        one.post(wr_id=1)
        one.post(wr_id=2)
    for one, _ in ways:
        wc = one.expect(e.IBV_WC_RETRY_EXC_ERR)
        took = time.monotonic() - began
        assert wc.wr_id == 1 and took > least, took
        for wc in one.poll(2):
            assert wc.status == e.IBV_WC_WR_FLUSH_ERR
        assert one.state() == e.IBV_QPS_ERR
    for one, other in ways:
        said = log_of(one, other)
        assert len(said) == 1 and "its time is up" in said[0], said
    return took


def no_peer():
    """The peer never listens or never connects: the oldest request fails with the reason, after
    three seconds. A busy machine may be late, but not each time."""
    assert any(seconds_without_a_peer() < 5 for _ in range(3))


def retries_count():
    """Four times 0.27 s for the attempt, and for each of three retries."""
    seconds_without_a_peer(4, timeout=16, retries=3)


def peer_goes():
    """A Read under way, or a post afterwards."""
    a, b = two()
    a.connect(b)
    b.connect(a)
    messages(a, b)
    a.receive()
    time.sleep(0.5)	# no timer runs any more for a connection that is good
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
    with turned("tcp_user_timeout_ms", 60000):
        own = seconds_until_given_up()
    with turned("tcp_user_timeout_ms", 500):
        operators = min(seconds_until_given_up() for _ in range(3))
    assert operators + 1 < own < 30, (operators, own)
