# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the consumer may rely on and the wire shows: windows, keys, queues, order."""

from harness import (CQ_ERR, FLUSH, LOC_PROT, MW_BIND, OK, QP_ACCESS_ERR, AgentError, pattern,
                     test, unfit, untouched)
from wirepeer import mpa, rdmap


def next_key(rkey):
    return (rkey & 0xFFFFFF00) | (rkey + 1 & 0xFF)


def bind(link, name, region, rkey, **more):
    wr = link.post("bind", mw=name, mr=region.name, rkey=rkey, **more)
    link.wc(wr=wr)
    return rkey


@test("VERBS-002", "DDP-065", "VERBS-004", "DDP-067", "VERBS-003")
def a_window_is_narrower_than_its_region(f):
    region = f.mr(4096, access="lwrb")
    for what in ("inside", "before", "behind", "read"):
        link = f.running(rev=1)
        name, rkey = f.window(2)
        key = bind(link, name, region, next_key(rkey), off=100, len=200, access="w")
        at = region.iova + 100
        if what == "inside":
            link.peer.write(key, at, b"first")
            link.peer.write(key, at + 195, b"final")
            link.peer.send(b"")
            link.received(b"")
            assert region.peek(100, 5) == b"first" and region.peek(295, 5) == b"final"
        elif what == "read":
            link.peer.read(key, at, 8)
            link.refused(0, 1, 2, bits="MDR")
        else:
            link.peer.write(key, at - 1 if what == "before" else at + 196, b"outer")
            link.refused(1, 1, 1)
        link.peer.close()
    assert region.peek(0, 100) == bytes(100) and region.peek(300, 100) == bytes(100)


@test("VERBS-005", "VERBS-033", "DDP-054", "DDP-068")
def a_window_after_a_local_invalidate(f):
    region = f.mr(256, access="lwrb")
    link = f.running(rev=1)
    name, rkey = f.window(2)
    key = bind(link, name, region, next_key(rkey), access="w")
    wr = link.post("inv", inv=key)
    link.wc(wr=wr)
    link.peer.write(key, region.iova, b"too late")
    link.refused(1, 1, 0)
    assert region.peek() == bytes(256)


@test("VERBS-033", each=(False, True))
def what_is_local_needs_no_permission_to_send(f, send_first):
    """A responder whose peer has not sent yet; what stands behind a Send waits with it."""
    region, note = f.mr(256, access="lwrb"), f.mr(8)
    link = f.passive(rev=1)
    name, rkey = f.window(2)
    send = link.post("send", sge=note.sge()) if send_first else None
    key = next_key(rkey)
    wr = link.post("bind", mw=name, mr=region.name, rkey=key, access="w")
    if not send_first:
        link.wc(wr=wr)
        link.wc(wr=link.post("inv", inv=key))
        key = bind(link, name, region, next_key(key), access="w")
        send = link.post("send", sge=note.sge())
        wr = link.post("inv", inv=key)
    link.peer.silent(0.3)
    link.no_wc()
    link.start_responder()
    link.peer.expect(rdmap.SEND)
    link.wc(wr=send)
    link.wc(wr=wr)


@test("VERBS-033")
def a_bind_takes_effect_before_the_send_behind_it(f):
    region = f.mr(256, access="lwrb")
    link = f.running(rev=1, recv=0)
    note = f.mr(8)
    for n in range(10):
        name, rkey = f.window(2)
        key = next_key(rkey)
        link.post("bind", mw=name, mr=region.name, rkey=key, access="w", flags="n")
        wr = link.post("send", sge=note.sge())
        link.peer.expect(rdmap.SEND)
        link.peer.write(key, region.iova, pattern(200, n))
        link.peer.read(key, region.iova, 0)
        link.peer.expect(rdmap.READ_RESP)
        link.wc(wr=wr)
        assert region.peek(0, 200) == pattern(200, n)


@test("VERBS-004", "VERBS-012", each=("no bind right", "beyond", "other domain"))
def a_bind_that_may_not_be(f, what):
    region = f.mr(256, access="lwr" if what == "no bind right" else "lwrb",
                  domain=f.domain() if what == "other domain" else "pd")
    link = f.running(rev=1)
    name, rkey = f.window(2)
    length = 257 if what == "beyond" else 256
    wr = link.post("bind", mw=name, mr=region.name, rkey=next_key(rkey), len=length, access="w")
    link.wc(wr=wr, status=MW_BIND)


@test("VERBS-001", "VERBS-002")
def a_type_1_window_is_of_its_domain(f):
    region = f.mr(256, access="lwrb")
    link = f.running(rev=1)
    name, _ = f.window(1)
    wr = next(f.wr_ids)
    try:
        key = f.agent.cmd("post", k=link.k, op="bind1", wr=wr, mw=name, mr=region.name,
                          access="w")["rkey"]
    except AgentError as error:
        raise unfit("no windows of type 1: %s" % error) from None
    link.wc(wr=wr)
    other = f.running(rev=1)
    other.peer.write(key, region.iova, b"same domain")
    other.peer.send(b"")
    other.received(b"")
    assert region.peek(0, 11) == b"same domain"
    stranger = f.running(rev=1, domain=f.domain())
    stranger.peer.write(key, region.iova, b"x")
    stranger.refused(1, 1, 2)


@test("DDP-055", "VERBS-004", "EXT-053", each=("write", "read", "atomic"))
def a_right_that_the_queue_pair_withholds(f, what):
    """What its STag would allow is refused as if the STag did not."""
    target = f.mr(64)
    link = f.running(rev=1)
    f.agent.cmd("modify", k=link.k, access="wra")
    if what == "read":
        link.peer.write(target.rkey, target.iova, b"")
        f.agent.cmd("modify", k=link.k, access="wa")
        link.peer.read(target.rkey, target.iova, 0)
        link.peer.expect(rdmap.READ_RESP)
        link.peer.read(target.rkey, target.iova, 8)
        link.refused(0, 1, 2, bits="MDR")
    elif what == "atomic":
        f.agent.cmd("modify", k=link.k, access="wr")
        link.peer.atomic(0, target.rkey, target.iova, data=1)
        link.refused(0, 1, 2)
    else:
        f.agent.cmd("modify", k=link.k, access="ra")
        link.peer.write(target.rkey, target.iova, b"")
        link.peer.write(target.rkey, target.iova, b"x")
        link.refused(1, 1, 0)       # DDP has no code for a right that is not granted
    untouched(target)


@test("DDP-055", "VERBS-004")
def what_rdma_cm_asks_for_withholds_nothing(f):
    """It names Read and Write for a responder, nothing for an initiator, and never atomics."""
    target = f.mr(64)
    for link in (f.running(rev=1), f.active()):
        assert link.state()["access"] == 2 | 4 | 8, link.state()
        link.peer.write(target.rkey, target.iova, b"x")
        link.peer.read(target.rkey, target.iova, 8)
        link.peer.expect(rdmap.READ_RESP)
        link.peer.atomic(0, target.rkey, target.iova, data=0)
        link.peer.expect(rdmap.ATOMIC_RESP)


@test("VERBS-007")
def stags_are_hard_to_guess(f):
    keys = [f.mr(64).rkey for _ in range(100)]
    steps = [b - a & 0xFFFFFFFF for a, b in zip(keys, keys[1:])]
    assert len(set(keys)) == 100
    assert max(steps.count(s) for s in steps) < 5, "a constant stride"
    assert max(keys) - min(keys) > 1 << 31, "not spread: %#x..%#x" % (min(keys), max(keys))
    assert len({k & 0xFF for k in keys}) > 20, "key bytes hardly vary"


@test("VERBS-009")
def full_cq_ends_only_its_own_qps(f):
    small = "q%d" % next(f.world.names)
    f.agent.cmd("cq", name=small, depth=2, manual=1)
    victim = f.passive(rev=1, recv=0, qp=dict(rcq=small))
    victim.recv(60, 16)
    other = f.running(rev=1, recv=10, size=16)
    for n in range(60):
        try:
            victim.peer.send(bytes([n]))
        except OSError:
            break
    f.agent.wait("async", 3, type=CQ_ERR)
    for n in range(10):
        other.peer.send(bytes([n]))
        other.received(bytes([n]))
    victim.peer.close()
    f.agent.cmd("destroy", k=victim.k)
    f.links.remove(victim)
    f.agent.cmd("dropcq", name=small)


@test("VERBS-021", "RDMAP-087")
def every_posted_request_completes_once(f):
    link = f.running(rev=1, recv=50, size=16, ord=2)
    sink = f.mr(4096)
    sends = [link.post("read", sge=sink.sge(0, 8), raddr=0, rkey=1) for _ in range(20)]
    sends += [link.post("send", sge=sink.sge(0, 8)) for _ in range(20)]
    link.peer.write(1, 1, b"bad")
    link.peer.expect_terminate(1, 1, 0)
    link.peer.close()
    posted = sends + list(link.posted)
    link.dead(QP_ACCESS_ERR)
    for wr in sends:
        assert link.wc(wr=wr, status=None)["status"] == FLUSH
    link.no_wc()
    assert len(posted) == len(set(posted))


@test("VERBS-030", "VERBS-010", "RDMAP-081", "EXT-002")
def the_device_says_what_the_wire_takes(f):
    device = f.world.device
    assert device["rd_atom"] > 0 and device["init_rd_atom"] > 0 and device["atomic_cap"], device
    most = min(device["rd_atom"], 128)
    link = f.running(rev=1, ird=most, ord=most)
    state = link.state()
    assert (state["ird"], state["ord"]) == (most, most), state
    source = f.mr(8)
    link.peer.raw(b"".join(link.peer.read(source.rkey, source.iova, 8, n, 0, hold=True)
                           for n in range(most)))
    for n in range(most):
        assert link.peer.expect(rdmap.READ_RESP).stag == n


@test("VERBS-030", "RDMAP-081", "CM-059")
def all_the_depth_there_is(f):
    """255, the most that rdma_cm can carry, requests the maximum: 1024."""
    link = f.running(rev=2, ird=255, ord=255, enhanced=mpa.Enhanced(ird=2000, ord=2000),
                     qp=dict(sq=2048))
    assert (link.reply.enhanced.ird, link.reply.enhanced.ord) == (1024, 1024), link.reply
    source = f.mr(1024)
    source.poke(pattern(1024))
    link.peer.raw(b"".join(link.peer.read(source.rkey, source.iova + n, 1, n, 0, hold=True)
                           for n in range(1024)))
    for n in range(1024):
        answer = link.peer.expect(rdmap.READ_RESP)
        assert (answer.stag, answer.payload) == (n, pattern(1024)[n:n + 1]), answer
    wrs = [link.post("read", sge=source.sge(n % 1024, 1), raddr=n, rkey=1) for n in range(1030)]
    asked = [link.peer.expect(rdmap.READ_REQ) for _ in range(1024)]
    link.peer.silent(0.2)
    for n in range(1030):
        while len(asked) < min(1030, 1024 + n):
            asked.append(link.peer.expect(rdmap.READ_REQ))
        link.peer.read_response(rdmap.ReadRequest(asked[n].payload), b"x")
        link.wc(wr=wrs[n])


@test("VERBS-020", "RDMAP-063")
def both_directions_saturated(f):
    size = 200000
    region = f.mr(size)
    region.poke(pattern(size))
    link = f.running(rev=1, ird=4, recv=100, size=2000)
    wrs = [link.post("send", sge=region.sge()) for _ in range(6)]
    data = b""
    for n in range(60):
        data += link.peer.send(pattern(2000, n), hold=True)
        if n % 15 == 0:
            data += link.peer.read(region.rkey, region.iova, 100000, n, 0, hold=True)
    link.peer.raw(data)
    for _ in range(10):
        message = link.peer.message(20)
        assert message.payload == pattern(size)[:len(message.payload)]
    for n in range(60):
        link.received(pattern(2000, n))
    for wr in wrs:
        link.wc(wr=wr, status=OK)


@test("VERBS-001")
def objects_of_another_domain_do_not_mix(f):
    """A region of another domain is no good as a local buffer."""
    foreign = f.mr(64, domain=f.domain())
    link = f.running(rev=1)
    wr = link.post("write", sge=foreign.sge(), raddr=0, rkey=1)
    link.peer.expect_terminate(0, 0, 0, b"", "")
    link.peer.close()
    link.wc(wr=wr, status=LOC_PROT)
