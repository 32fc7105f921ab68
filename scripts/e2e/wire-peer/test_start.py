# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Start-up frames, weft as responder and as initiator. RFC 5044, 7.1; RFC 6581."""

import random
import time

from harness import STATE_RTS, AgentError, NotSeen, pattern, test
from wirepeer import Violation, ddp, mpa, peer, rdmap

DEPTH = mpa.NOT_NEGOTIATED


def refused_frame(f, frame, fin=False):
    """Octets that are no request: closed without an answer, nobody is told."""
    wire = f.connect()
    wire.raw(frame)
    if fin:
        wire.fin()
    wire.expect_end()
    f.agent.none("event", type="CONNECT_REQUEST")
    wire.close()


# --- responder ---------------------------------------------------------------------

@test("CM-005", "CM-008", "CM-017", "CM-043", "CM-074", "CM-015", "MPA-036", "MPA-023")
def a_plain_request_gets_a_plain_reply(f):
    link = f.passive(domain=f.domain(), pdata=b"welcome", rev=1)
    reply = link.reply
    assert (reply.rev, reply.s, reply.r, reply.pd) == (1, 0, 0, b"welcome"), reply
    assert (reply.c, reply.m) == (1, 0), reply


@test("CM-019", "CM-008", "CM-017", each=(0, 1, 4, 9, 196, 255))
def private_data_reaches_the_consumer(f, length):
    pd = pattern(length)
    wire = f.connect()
    wire.send_request(rev=1, pd=pd)
    asked = f.asked()
    assert asked["pdata"] == pd.hex() and asked["pdlen"] == length, asked
    f.agent.cmd("reject", k=asked["k"])
    wire.read_reply()
    f.agent.cmd("destroy", k=asked["k"])


@test("CM-019", "CM-017", each=(256, 511, 512))
def private_data_up_to_512_octets_is_no_error(f, length):
    wire = f.connect()
    wire.send_request(rev=1, pd=pattern(length))
    asked = f.asked()
    f.agent.cmd("reject", k=asked["k"])
    assert wire.read_reply().r == 1
    f.agent.cmd("destroy", k=asked["k"])


@test("CM-006", "CM-030", "CM-022", "MPA-067")
def every_octet_of_the_key_counts(f):
    good = mpa.request().build()
    for at in range(16):
        bad = bytearray(good)
        bad[at] ^= 0x20
        refused_frame(f, bytes(bad))


@test("CM-033", "CM-006")
def a_reply_where_a_request_is_due(f):
    refused_frame(f, mpa.reply().build())


@test("CM-016", "MPA-073", each=(0, 3, 127, 255))
def an_unknown_revision_is_closed(f, rev):
    refused_frame(f, mpa.request(rev=rev).build())


@test("CM-018", "CM-035", "CM-022")
def private_data_of_513_octets(f):
    refused_frame(f, mpa.request(pd=pattern(513)).build())
    refused_frame(f, mpa.request(pd_length=0xFFFF).build() + bytes(600))


@test("CM-018", "CM-037")
def a_frame_cut_short_by_a_fin(f):
    whole = mpa.request(pd=pattern(10)).build()
    for length in (0, 1, 15, 16, 19, 20, 29):
        refused_frame(f, whole[:length], fin=True)


@test("CM-018", "MPA-064")
def a_frame_cut_short_by_a_reset(f):
    whole = mpa.request(pd=pattern(10)).build()
    for length in (0, 7, 19, 20, 29):
        wire = f.connect()
        wire.raw(whole[:length])
        time.sleep(0.02)
        wire.rst()
    time.sleep(0.1)
    f.agent.none("event", type="CONNECT_REQUEST")


@test("CM-045", each=(0, 1, 2, 3))
def s_without_a_whole_block(f, length):
    frame = mpa.request(rev=2, s=1, pd=bytes(length)).build()
    refused_frame(f, frame, fin=True)


@test("CM-013", "CM-015")
def r_and_reserved_bits_of_a_request_mean_nothing(f):
    for fields in (dict(r=1), dict(reserved=0x0F), dict(r=1, reserved=0x0F)):
        link = f.passive(rev=1, **fields)
        link.kick()
        link.peer.send(b"x")
        link.received(b"x")
        link.peer.close()


@test("CM-002", "CM-021", "CM-029")
def nothing_is_said_before_the_request(f):
    wire = f.connect()
    wire.silent(0.5)
    wire.send_request(rev=1)
    asked = f.asked()
    wire.silent(0.3)
    f.agent.cmd("reject", k=asked["k"])
    wire.read_reply()
    f.agent.cmd("destroy", k=asked["k"])


@test("CM-022", "CM-035")
def fuzzed_frames(f):
    rng = random.Random(5044)
    seeds = [mpa.request(pd=pattern(9)).build(),
             mpa.request(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 1, 1, 1), pd=b"abc").build()]
    for _ in range(60):
        frame = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        wire = f.connect()
        wire.raw(bytes(frame))
        wire.fin()
        try:
            wire.octets(20, 3)
            raise AssertionError("answered without its consumer: %s" % frame.hex())
        except (peer.Closed, peer.Timeout):
            pass
        wire.close()
    time.sleep(0.2)
    f.agent.cmd("sync")
    for line in [x for x in list(f.agent.lines) if x.get("type") == "CONNECT_REQUEST"]:
        f.agent.cmd("destroy", k=line["k"])


@test("CM-037", each=(1, 3, 19))
def a_request_in_pieces(f, piece):
    link = f.passive(rev=1, piece=piece)
    link.kick()
    link.peer.send(b"dribbled")
    link.received(b"dribbled")


@test("CM-014", "CM-023", "CM-055", "CM-027")
def a_reject_reaches_the_peer_before_the_end(f):
    for request in (dict(rev=1), dict(rev=2, enhanced=mpa.Enhanced(4, 4))):
        link = f.passive(accept=False, **request)
        f.agent.cmd("reject", k=link.k, pdata=b"no room".hex())
        reply = link.peer.read_reply()
        assert reply.r == 1 and reply.pd == b"no room", reply
        assert reply.s == (request["rev"] == 2)
        link.peer.fin()
        link.peer.expect_end(reset=False)


@test("CM-024", "CM-032", "CM-002", "MPA-038")
def fpdus_follow_the_reply_at_once(f):
    link = f.passive(rev=1)
    for n in range(3):
        link.peer.send(bytes([n]) * 40)
    for n in range(3):
        link.received(bytes([n]) * 40)


@test("CM-025")
def an_fpdu_ahead_of_the_reply(f):
    wire = f.connect()
    early = mpa.Framer().frame(ddp.untagged(rdmap.SEND, 0, 1, payload=b"early"))
    wire.request_frame = mpa.request(rev=1)
    wire.raw(wire.request_frame.build() + early)
    asked = f.asked()
    k = asked["k"]
    f.agent.cmd("qp", k=k, pd="pd", cq="cq")
    region = f.mr(64)
    f.agent.cmd("post", k=k, op="recv", wr=9, sge=region.sge())
    try:
        f.agent.cmd("accept", k=k)
        wire.read_reply()
    except (AgentError, peer.Closed):
        pass
    wire.close()
    f.agent.cmd("destroy", k=k)


@test("CM-029", "VERBS-032")
def the_responder_waits_for_the_first_fpdu(f):
    out = f.mr(16)
    out.poke(b"sent at once")
    link = f.passive(rev=1)
    try:
        wr = link.post("send", sge=out.sge(0, 12))
    except AgentError:
        wr = None
    link.peer.silent(1.5)
    link.kick()
    if wr is None:
        link.event("ESTABLISHED")
        wr = link.post("send", sge=out.sge(0, 12))
    assert link.peer.expect(rdmap.SEND).payload == b"sent at once"
    link.wc(wr=wr)


@test("CM-029")
def the_gate_stays_shut_for_a_bad_first_fpdu(f):
    out = f.mr(16)
    link = f.passive(rev=1)
    try:
        link.post("send", sge=out.sge(0, 4))
    except AgentError:
        pass
    link.peer.write(0, 0, fpdu=dict(crc_xor=1))
    message = link.peer.message()
    assert message.opcode == rdmap.TERMINATE, message
    link.peer.expect_end(reset=False)


@test("CM-044", "CM-074")
def revision_2_without_s_is_plain(f):
    link = f.passive(rev=2, pdata=b"p")
    assert link.reply.s == 0 and link.reply.pd == b"p", link.reply
    wire = f.connect()
    wire.send_request(rev=2, pd=b"\xc0\x10\xc0\x08rest")
    asked = f.asked()
    assert bytes.fromhex(asked["pdata"]) == b"\xc0\x10\xc0\x08rest", asked
    f.agent.cmd("destroy", k=asked["k"])


@test("CM-073", "CM-046", "CM-048", "CM-050", "CM-052", "CM-053", "CM-051", "VERBS-031",
      "RDMAP-084")
def depths_of_an_enhanced_request(f):
    link = f.passive(ird=8, ord=16, accept=True, rev=2, enhanced=mpa.Enhanced(ird=2, ord=3))
    reply = link.reply
    assert reply.s and reply.rev == 2, reply
    assert reply.enhanced.ord <= 2 and reply.enhanced.ird >= 3, reply
    assert link.asked["pdlen"] == 0, link.asked
    assert (link.asked["ird"], link.asked["ord"]) == (3, 2), link.asked
    link.kick()
    link.event("ESTABLISHED")
    state = link.state()
    assert state["ord"] <= 2 and state["ird"] >= 3, state


@test("CM-046", "CM-052", each=(0, 1, 100, 251))
def private_data_of_an_enhanced_request(f, length):
    wire = f.connect()
    wire.send_request(rev=2, enhanced=mpa.Enhanced(1, 1), pd=pattern(length))
    asked = f.asked()
    assert asked["pdata"] == pattern(length).hex(), asked
    f.agent.cmd("reject", k=asked["k"])
    wire.read_reply()
    f.agent.cmd("destroy", k=asked["k"])


@test("CM-059", "CM-060", each=("both", "ird", "ord"))
def depths_not_negotiated(f, which):
    block = mpa.Enhanced(ird=DEPTH if which != "ord" else 5, ord=DEPTH if which != "ird" else 5)
    link = f.passive(ird=6, ord=7, rev=2, enhanced=block)
    e = link.reply.enhanced
    assert (e.ord == DEPTH) == (which != "ord"), e
    assert (e.ird == DEPTH) == (which != "ird"), e
    link.kick()
    link.event("ESTABLISHED")
    state = link.state()
    if which == "both":
        assert (state["ird"], state["ord"]) == (6, 7), state


@test("CM-063", "CM-064", "CM-065")
def without_a_the_other_bits_mean_nothing(f):
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, a=0, b=1, c=1, d=1))
    e = link.reply.enhanced
    assert (e.a, e.b, e.c, e.d) == (0, 0, 0, 0), e
    link.peer.send(b"client-server")
    link.received(b"client-server")


OFFERS = {"all": (1, 1, 1), "send": (1, 0, 0), "write": (0, 1, 0), "read": (0, 0, 1),
          "none": (0, 0, 0)}


@test("CM-065", "CM-066", "CM-067", "CM-049", each=tuple(OFFERS))
def rtr_kinds_of_the_reply(f, offer):
    b, c, d = OFFERS[offer]
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, 1, b, c, d))
    e = link.reply.enhanced
    assert e.a == 1 and e.b + e.c + e.d >= 1, e
    if offer != "none":
        assert (b and e.b) or (c and e.c) or (d and e.d), e


def ready(link, kind):
    """Send the RTR of that kind, take what answers it."""
    if kind == "send":
        link.peer.send(b"")
    elif kind == "write":
        link.peer.write(0, 0)
    else:
        link.peer.read(0, 0, 0, sink_stag=0, sink_to=0)
        answer = link.peer.expect(rdmap.READ_RESP)
        assert answer.payload == b"" and (answer.stag, answer.to) == (0, 0), answer


@test("CM-068", "CM-071", each=("send", "write", "read"))
def an_rtr_starts_the_responder(f, kind):
    b, c, d = OFFERS[kind]
    link = f.passive(recv=0, rev=2, enhanced=mpa.Enhanced(4, 4, 1, b, c, d))
    link.peer.silent(0.2)
    ready(link, kind)
    link.event("ESTABLISHED")
    link.no_wc()
    link.recv(2)
    link.peer.send(b"after the RTR")
    link.received(b"after the RTR")
    out = f.mr(16)
    wr = link.post("send", sge=out.sge(0, 5))
    assert len(link.peer.expect(rdmap.SEND).payload) == 5
    link.wc(wr=wr)


@test("CM-054", "CM-072")
def a_read_rtr_needs_a_place_though_ord_is_0(f):
    link = f.passive(ird=0, ord=0, rev=2, enhanced=mpa.Enhanced(0, 0, 1, 0, 0, 1))
    assert link.reply.enhanced.ird >= 1, link.reply
    ready(link, "read")
    link.event("ESTABLISHED")


@test("CM-039", "CM-068", each=("send with payload", "write with payload", "immediate"))
def what_is_no_rtr_is_refused(f, what):
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 1, 1, 1))
    target = f.mr(64)
    if what == "send with payload":
        link.peer.send(b"not empty")
    elif what == "write with payload":
        link.peer.write(target.rkey, target.iova, b"not empty")
    else:
        link.peer.imm(bytes(8))
    try:
        message = link.peer.message(2)
        assert message.opcode == rdmap.TERMINATE, message
    except peer.Timeout:
        pass            # tolerant of an early first message: then it must be taken
    assert target.peek(0, 9) == bytes(9) or what.startswith("write")


@test("CM-080", "RDMAP-057")
def a_terminate_instead_of_the_first_message(f):
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 1, 1, 1))
    link.peer.terminate(2, 0, 7)
    link.peer.fin()
    link.peer.expect_end(reset=False)
    deadline = time.monotonic() + 5
    while link.state()["state"] == STATE_RTS and time.monotonic() < deadline:
        time.sleep(0.05)
    assert link.state()["state"] != STATE_RTS


@test("CM-079", "CM-028")
def depths_with_a_plain_peer_are_the_consumers(f):
    link = f.running(ird=3, ord=5, rev=1)
    state = link.state()
    assert (state["ird"], state["ord"]) == (3, 5), state
    assert state["state"] == STATE_RTS


@test("CM-003")
def an_accept_without_a_qp_fails(f):
    link = f.passive(accept=False, rev=1)
    try:
        f.agent.cmd("accept", k=link.k)
    except AgentError:
        return
    raise AssertionError("accepted without a QP")


@test("CM-075", "CM-074")
def a_plain_policy_sends_a_plain_request(f):
    f.policy("revision", 1)
    link = f.dialed()
    assert (link.request.rev, link.request.s) == (1, 0), link.request


@test("CM-076")
def enhanced_requests_can_be_refused(f):
    f.policy("revision", 1)
    refused_frame(f, mpa.request(rev=2, enhanced=mpa.Enhanced(4, 4)).build())


@test("CM-040", "CM-063")
def peer_to_peer_can_be_switched_off(f):
    f.policy("p2p", 0)
    link = f.dialed()
    assert not link.request.enhanced or not link.request.enhanced.a, link.request


@test("CM-062", "CM-067", each=(1, 2, 4))
def the_rtr_kinds_offered_are_those_configured(f, mask):
    f.policy("rtr", mask)
    link = f.dialed()
    e = link.request.enhanced
    assert (e.b, e.c, e.d) == (mask & 1, mask >> 1 & 1, mask >> 2 & 1), e


# --- FIN and RST at every state ----------------------------------------------------

STATES = ("connected", "half a request", "undecided", "accepted", "running", "busy")


def reach(f, state):
    """A wire in that state of its life, and the agent's link if there is one."""
    if state in ("connected", "half a request"):
        wire = f.connect()
        if state == "half a request":
            wire.raw(mpa.request().build()[:11])
        return wire, None
    link = f.passive(accept=state != "undecided", rev=1)
    if state in ("running", "busy"):
        link.kick()
        link.event("ESTABLISHED")
    if state == "busy":
        source = f.mr(1 << 20)
        link.post("send", sge=source.sge())
    return link.peer, link


@test("MPA-064", "MPA-008", "MPA-063", "DDP-045", each=STATES)
def a_fin_in_every_state(f, state):
    wire, link = reach(f, state)
    wire.fin()
    try:
        while wire.rx:
            wire.message()
        wire.expect_end()
    except (peer.Closed, Violation):
        pass
    wire.close()
    if link and state in ("running", "busy"):
        link.dead()
    elif link and state == "undecided":
        try:
            f.agent.cmd("accept", k=link.k)
        except AgentError:
            pass


@test("MPA-064", each=STATES)
def a_reset_in_every_state(f, state):
    wire, link = reach(f, state)
    wire.rst()
    if link and state in ("running", "busy"):
        link.dead()


@test("MPA-064", "CM-022", each=("fin", "rst"))
def the_initiators_peer_leaves_before_the_reply(f, how):
    listener = f.listen()
    link = f.dialed(listener)
    getattr(link.peer, how)()
    try:
        # an enhanced request that is closed upon is tried again plainly
        again = listener.accept(2)
        again.read_request()
        getattr(again, how)()
    except (peer.Timeout, peer.Closed):
        pass
    found = f.agent.wait("event", 5, k=link.k)
    assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found


# --- initiator ---------------------------------------------------------------------

@test("CM-001", "CM-004", "CM-020", "CM-041", "CM-042", "CM-048", "CM-049", "CM-050", "CM-062",
      "MPA-036", "CM-013", "CM-015")
def the_request_of_an_initiator(f):
    link = f.dialed(ird=5, ord=9, pdata=b"hello")
    req = link.request
    assert (req.rev, req.s, req.c, req.r) == (2, 1, 1, 0), req
    e = req.enhanced
    assert (e.ird, e.ord) == (5, 9), e
    assert e.a and (e.b or e.c or e.d), e
    assert req.pd == b"hello", req


@test("CM-046", "CM-019", each=(0, 1, 196))
def private_data_of_an_initiator(f, length):
    link = f.dialed(pdata=pattern(length))
    assert link.request.pd == pattern(length), link.request


@test("CM-028", "CM-068", "CM-039", "CM-071", each=("send", "write", "read"))
def the_initiator_sends_the_kind_agreed_on(f, kind):
    b, c, d = OFFERS[kind]
    link = f.dialed()
    out = f.mr(8)
    try:
        link.post("send", sge=out.sge(0, 8))
        early = True
    except AgentError:
        early = False
    f.answer(link, mpa.Enhanced(16, 4, 1, b, c, d))
    first = link.peer.message()
    due = dict(send=rdmap.SEND, write=rdmap.WRITE, read=rdmap.READ_REQ)[kind]
    assert first.opcode == due, first
    if kind == "read":
        request = rdmap.ReadRequest(first.payload)
        assert request.size == 0 and first.msn == 1
        link.peer.read_response(request, b"")
    else:
        assert first.payload == b"" and first.msn in (None, 1), first
    link.event("ESTABLISHED")
    assert link.state()["state"] == STATE_RTS
    link.no_wc(op=2)
    if not early:
        link.post("send", sge=out.sge(0, 8))
    assert len(link.peer.expect(rdmap.SEND).payload) == 8
    link.peer.send(b"and back")
    link.received(b"and back")


@test("CM-007", "CM-026", "CM-030", "CM-033")
def the_key_of_a_reply_counts(f):
    for key in (mpa.KEY_REQUEST, b"MPA ID Rep Framf", bytes(16)):
        link = f.dialed()
        link.peer.send_reply(key=key, rev=2, enhanced=mpa.Enhanced(4, 4, 1, 0, 1, 0))
        link.peer.expect_end()
        found = f.agent.wait("event", 5, k=link.k)
        assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found


@test("CM-018", "CM-026", "CM-035", each=("pd 513", "garbage", "short block", "cut short"))
def a_malformed_reply_ends_it(f, what):
    link = f.dialed()
    if what == "pd 513":
        link.peer.send_reply(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 0, 1, 0), pd=bytes(509))
    elif what == "garbage":
        link.peer.raw(b"HTTP/1.1 400 Bad Request\r\nServer: none\r\n\r\n")
    elif what == "short block":
        link.peer.send_reply(rev=2, s=1, pd=b"abc")
    else:
        link.peer.raw(mpa.reply(rev=2).build()[:19])
        link.peer.fin()
    link.peer.expect_end()
    found = f.agent.wait("event", 5, k=link.k)
    assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found


@test("CM-016", each=(0, 3, 255))
def an_unknown_revision_in_a_reply(f, rev):
    link = f.dialed()
    link.peer.send_reply(rev=rev, enhanced=mpa.Enhanced(4, 4, 1, 0, 1, 0))
    link.peer.expect_end()
    found = f.agent.wait("event", 5, k=link.k)
    assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found


@test("CM-027", "CM-058", "CM-014", each=(0, 7, 148))
def a_reject_with_private_data(f, length):
    link = f.dialed()
    link.peer.send_reply(r=1, rev=2, enhanced=mpa.Enhanced(4, 4, 1, 0, 1, 0),
                         pd=pattern(length))
    found = link.event("REJECTED")
    assert found["pdata"] == pattern(length).hex(), found


@test("CM-058", "CM-052", "CM-055")
def depths_of_a_reply_reach_the_consumer(f):
    link = f.active(enhanced=mpa.Enhanced(3, 2, 1, 0, 1, 0), ird=4, ord=4)
    # the peer's ORD is what it may read from us, its IRD what we may read there
    assert (link.established["ird"], link.established["ord"]) == (2, 3), link.established


@test("CM-019", "CM-038", each=(0, 300, 508))
def private_data_of_a_reply(f, length):
    link = f.active(reply=dict(pd=pattern(length)))
    if length <= 251:
        assert link.established["pdata"] == pattern(length).hex(), link.established
    link.peer.send(b"still in step")
    link.received(b"still in step")


@test("CM-056", "CM-051", "RDMAP-082", "CM-072")
def the_repliers_ird_limits_our_reads(f):
    link = f.active(enhanced=mpa.Enhanced(1, 4, 1, 0, 1, 0), ird=4, ord=8)
    assert link.state()["ord"] == 1, link.state()
    sink = f.mr(64)
    for n in range(4):
        link.post("read", sge=sink.sge(n * 8, 8), raddr=0, rkey=1)
    for n in range(4):
        message = link.peer.expect(rdmap.READ_REQ)
        link.peer.silent(0.2)
        link.peer.read_response(rdmap.ReadRequest(message.payload), bytes([n]) * 8)
        link.wc(op=2)


@test("CM-057", "CM-047")
def a_reply_that_wants_too_many_reads(f):
    link = f.dialed(ird=4, ord=4)
    f.answer(link, mpa.Enhanced(16, 16000, 1, 0, 1, 0))
    link.peer.expect_terminate(2, 0, 6, b"", "")
    link.peer.close()
    found = f.agent.wait("event", 5, k=link.k)
    assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found


@test("CM-056")
def a_reply_that_wants_a_few_more_reads(f):
    link = f.active(enhanced=mpa.Enhanced(16, 12, 1, 0, 1, 0), ird=4, ord=4)
    assert link.state()["ird"] >= 12, link.state()


@test("CM-061", each=("both", "ird", "ord"))
def a_reply_that_does_not_negotiate(f, which):
    link = f.active(enhanced=mpa.Enhanced(DEPTH if which != "ord" else 9,
                                          DEPTH if which != "ird" else 2, 1, 0, 1, 0),
                    ird=6, ord=7)
    state = link.state()
    assert (state["ird"], state["ord"]) == (6, 7), state


@test("CM-069", "CM-047")
def no_common_rtr_kind(f):
    link = f.dialed()
    f.answer(link, mpa.Enhanced(16, 4, 1, 0, 0, 0))
    link.peer.expect_terminate(2, 0, 7, b"", "")
    link.peer.close()
    found = f.agent.wait("event", 5, k=link.k)
    assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found


@test("CM-069", "CM-067")
def only_a_kind_we_cannot_send(f):
    f.policy("rtr", 2)
    link = f.dialed()
    f.answer(link, mpa.Enhanced(16, 4, 1, 1, 0, 0))
    link.peer.expect_terminate(2, 0, 7, b"", "")


@test("CM-077", "CM-079", "CM-075")
def a_plain_responder_gets_a_second_try(f):
    listener = f.listen()
    link = f.dialed(listener, ird=3, ord=5)
    assert link.request.rev == 2
    link.peer.close()
    link.peer = listener.accept()
    f.peers.append(link.peer)
    link.request = link.peer.read_request()
    assert (link.request.rev, link.request.s) == (1, 0), link.request
    f.answer(link)
    link.event("ESTABLISHED")
    state = link.state()
    assert (state["ird"], state["ord"]) == (3, 5), state
    out = f.mr(8)
    link.post("send", sge=out.sge())
    link.peer.expect(rdmap.SEND)
    link.peer.send(b"plain")
    link.received(b"plain")


@test("CM-078", each=("rev 1", "no S"))
def an_enhanced_request_answered_plainly(f, what):
    link = f.dialed()
    if what == "rev 1":
        link.peer.send_reply(rev=1)
    else:
        link.peer.send_reply(rev=2, pd=b"\x80\x04\x80\x04")
    link.peer.expect_end()
    found = f.agent.wait("event", 5, k=link.k)
    assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found


@test("CM-037", "CM-026", each=(1, 5))
def a_reply_in_pieces(f, piece):
    link = f.active(reply=dict(piece=piece, pd=b"dribbled"))
    assert bytes.fromhex(link.established["pdata"])[:8] == b"dribbled"


@test("CM-038", "CM-024")
def the_first_fpdu_comes_with_the_reply(f):
    link = f.dialed()
    extra = mpa.Framer().frame(ddp.untagged(rdmap.SEND, 0, 1, payload=b"together"))
    link.peer.msn[0] = 2
    f.answer(link, extra=extra)
    link.event("ESTABLISHED")
    link.received(b"together")
    assert link.peer.expect(rdmap.WRITE).payload == b""
    link.peer.send(b"and on")
    link.received(b"and on")


@test("CM-031", "MPA-062")
def a_disconnect_right_after_the_reply(f):
    link = f.active()
    f.agent.cmd("disconnect", k=link.k)
    link.peer.expect_end(reset=False)
    link.peer.fin()
    link.event("DISCONNECTED")


@test("CM-034", "CM-036", "CM-037")
def the_start_up_is_limited_in_time(f):
    """Nobody may hold a half-open connection: 10 s for a request, 30 s for a reply."""
    silent, partial = f.connect(), f.connect()
    partial.raw(mpa.request().build()[:19])
    link = f.dialed()
    silent.expect_end(timeout=15)
    partial.expect_end(timeout=2)
    try:
        found = f.agent.wait("event", 40, k=link.k)
    except NotSeen:
        raise AssertionError("a reply is waited for longer than 55 s") from None
    assert found["type"] in ("REJECTED", "CONNECT_ERROR", "UNREACHABLE"), found


@test("CM-034")
def an_rtr_is_waited_for_only_so_long(f):
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 1, 1, 1))
    link.peer.expect_end(timeout=20)


# --- markers and CRC -------------------------------------------------------------

def both_ways(f, link, sizes=(0, 1, 3, 500, 3000)):
    """Sends in both directions, contents compared."""
    for n in sizes:
        link.peer.send(pattern(n, n))
        link.received(pattern(n, n))
    out = f.mr(4096)
    out.poke(pattern(4096))
    for n in sizes:
        wr = link.post("send", sge=out.sge(0, n) if n else None)
        assert link.peer.expect(rdmap.SEND).payload == pattern(4096)[:n]
        link.wc(wr=wr)


MATRIX = tuple((ours, theirs) for ours in (0, 1) for theirs in (0, 1))


@test("CM-009", "CM-010", "MPA-034", "MPA-022", "MPA-032", each=MATRIX)
def markers_per_direction(f, case):
    ours, theirs = case
    if theirs:
        f.policy("markers", 1)
    link = f.passive(rev=1, m=ours, recv=8, size=4096)
    assert link.reply.m == theirs, link.reply
    both_ways(f, link)
    assert link.peer.rx.markers == bool(ours)


@test("CM-009", "CM-010", "MPA-022", each=MATRIX)
def markers_per_direction_as_initiator(f, case):
    ours, theirs = case
    if theirs:
        f.policy("markers", 1)
    link = f.active(reply=dict(m=ours), recv=8, size=4096)
    assert link.request.m == theirs, link.request
    both_ways(f, link)


@test("CM-011", "CM-012", "MPA-037", "MPA-041", "MPA-035", each=MATRIX)
def crc_matrix(f, case):
    ours, theirs = case
    if not theirs:
        f.policy("crc", 0)
    link = f.passive(rev=1, c=ours, recv=8, size=4096)
    assert link.reply.c == theirs, link.reply
    both_ways(f, link)
    bad = dict(crc_xor=4)
    if ours or theirs:
        link.peer.send(b"spoilt", fpdu=bad)
        link.terminated(2, 0, 2)
    else:
        link.peer.send(b"anything", fpdu=dict(crc_field=b"\xde\xad\xbe\xef"))
        link.received(b"anything")


@test("CM-011", "CM-012", "MPA-037", each=MATRIX)
def crc_matrix_as_initiator(f, case):
    ours, theirs = case
    if not theirs:
        f.policy("crc", 0)
    link = f.active(reply=dict(c=ours), recv=8, size=4096)
    assert link.request.c == theirs, link.request
    both_ways(f, link)
    if ours or theirs:
        link.peer.send(b"spoilt", fpdu=dict(crc_xor=4))
        link.terminated(2, 0, 2)
