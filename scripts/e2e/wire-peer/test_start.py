# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Start-up frames, weft as responder. RFC 5044, 7.1; RFC 6581."""

import random
import time

from harness import STATE_RTS, AgentError, Link, pattern, test
from wirepeer import Violation, ddp, mpa, peer, rdmap

DEPTH = mpa.NOT_NEGOTIATED


def refused_frame(f, frame, fin=False):
    """Bytes that are no request: closed without an answer and without an event."""
    wire = f.connect()
    wire.raw(frame)
    if fin:
        wire.fin()
    wire.expect_end()
    f.agent.none("event", type="CONNECT_REQUEST")
    wire.close()


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


@test("CM-019", "CM-017", "CM-018", each=(256, 511, 512))
def private_data_that_cannot_be_handed_on_is_refused(f, length):
    """iw_cm has 8 bits for its length; what it would cut is not accepted."""
    refused_frame(f, mpa.request(rev=1, pd=pattern(length)).build())


@test("CM-017", each=(256, 511, 512))
def private_data_up_to_512_bytes_is_no_error(f, length):
    """An administrator may have it cut."""
    f.policy("private_data_max", 512)
    wire = f.connect()
    wire.send_request(rev=1, pd=pattern(length))
    asked = f.asked()
    assert asked["pdata"] == pattern(length)[:255].hex(), asked
    f.agent.cmd("reject", k=asked["k"])
    assert wire.read_reply().r == 1
    f.agent.cmd("destroy", k=asked["k"])


@test("CM-006", "CM-030", "CM-022", "MPA-067")
def every_byte_of_the_key_counts(f):
    good = mpa.request().build()
    for at in range(16):
        bad = bytearray(good)
        bad[at] ^= 0x20
        refused_frame(f, bytes(bad))
        refused_frame(f, bytes(bad[:at + 1]))  # what may follow is not waited for


@test("CM-033", "CM-006")
def a_reply_where_a_request_is_due(f):
    refused_frame(f, mpa.reply().build())


@test("CM-016", "MPA-073", each=(0, 3, 127, 255))
def an_unknown_revision_is_closed(f, rev):
    refused_frame(f, mpa.request(rev=rev).build())


@test("CM-018", "CM-035", "CM-022")
def private_data_of_513_bytes(f):
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
        link.start_responder()
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
            wire.exactly(20, 0.5)
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
    link.start_responder()
    link.peer.send(b"dribbled")
    link.received(b"dribbled")


@test("CM-014", "CM-023", "CM-055", "CM-027")
def a_reject_reaches_the_peer_before_the_end(f):
    for request in (dict(rev=1), dict(rev=2, enhanced=mpa.Enhanced(4, 4))):
        link = f.passive(accept=False, **request)
        f.agent.cmd("reject", k=link.k, pdata=b"no space".hex())
        reply = link.peer.read_reply()
        assert reply.r == 1 and reply.pd == b"no space", reply
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
    """Nothing is taken from it before there is a stream; then it is an FPDU like any."""
    wire = f.connect()
    early = mpa.Framer().frame(ddp.untagged(rdmap.SEND, 0, 1, payload=b"early"))
    wire.request_frame = mpa.request(rev=1)
    wire.raw(wire.request_frame.build() + early)
    link = Link(f, wire, f.asked()["k"])
    f.links.append(link)
    f.domain_of[link.k] = "pd"
    f.agent.cmd("qp", k=link.k, pd="pd", cq="cq")
    link.recv(2, 64)
    wire.silent(0.3)
    link.no_wc()
    f.agent.cmd("accept", k=link.k)
    wire.read_reply()
    link.received(b"early")


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
    link.start_responder()
    if wr is None:
        link.event("ESTABLISHED")
        wr = link.post("send", sge=out.sge(0, 12))
    assert link.peer.expect(rdmap.SEND).payload == b"sent at once"
    link.wc(wr=wr)


@test("CM-029")
def responder_early_send_waits_only_for_a_promised_message(f):
    """What an administrator may choose for initiators that never send first."""
    f.policy("responder_early_send", 1)
    out = f.mr(16)
    out.poke(b"sent at once")
    began = time.monotonic()
    link = f.passive(rev=1)
    link.event("ESTABLISHED")
    wr = link.post("send", sge=out.sge(0, 12))
    try:
        link.peer.silent(0.02)
    except Violation:    # a slow machine: it waits for a tenth of a second
        assert time.monotonic() - began >= 0.09
    assert link.peer.expect(rdmap.SEND).payload == b"sent at once"
    link.wc(wr=wr)
    link.peer.send(b"and received")
    link.received(b"and received")
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 0, 1, 0))
    link.peer.silent(1)
    link.start_responder()
    link.event("ESTABLISHED")


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
    link.start_responder()
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
    link.start_responder()
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
    f.receives_in_time()    # a Send that takes one is not waited for
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


@test("CM-039", "CM-068", each=("send with payload", "write with payload", "immediate",
                                "read of something", "half a send", "half a write"))
def what_is_no_rtr_is_refused(f, what):
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 1, 1, 1))
    target = f.mr(64)
    if what == "send with payload":
        link.peer.send(b"not empty")
    elif what == "write with payload":
        link.peer.write(target.rkey, target.iova, b"not empty")
    elif what == "read of something":
        link.peer.read(target.rkey, target.iova, 64)
    elif what == "half a send":
        link.peer.send(b"", last=False)
    elif what == "half a write":
        link.peer.write(0, 0, b"", last=False)
    else:
        link.peer.imm(bytes(8))
    link.refused(0, 2, 6)
    assert target.peek(0, 9) == bytes(9)


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
    link = f.passive(ird=3, ord=5, rev=1)
    link.start_responder()
    told, state = link.event("ESTABLISHED"), link.state()
    assert (told["ird"], told["ord"]) == (3, 5), told
    assert (state["ird"], state["ord"]) == (3, 5), state
    assert state["state"] == STATE_RTS


@test("CM-079")
def a_plain_request_does_not_limit_depths(f):
    """255 is the most that rdma_cm can carry, and how its consumers ask for all there is."""
    link = f.passive(accept=False, rev=1)
    assert (link.asked["ird"], link.asked["ord"]) == (255, 255), link.asked


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
    f.policy("mpa_revision", 1)
    link = f.dialed()
    assert (link.request.rev, link.request.s) == (1, 0), link.request


@test("CM-076")
def enhanced_requests_can_be_refused(f):
    f.policy("mpa_revision", 1)
    refused_frame(f, mpa.request(rev=2, enhanced=mpa.Enhanced(4, 4)).build())


@test("CM-040", "CM-063")
def peer_to_peer_can_be_switched_off(f):
    f.policy("mpa_p2p", 0)
    link = f.dialed()
    assert not link.request.enhanced or not link.request.enhanced.a, link.request


@test("CM-062", "CM-067", each=(1, 2, 4))
def the_rtr_kinds_offered_are_those_configured(f, mask):
    f.policy("mpa_rtr_types", mask)
    link = f.dialed()
    e = link.request.enhanced
    assert (e.b, e.c, e.d) == (mask & 1, mask >> 1 & 1, mask >> 2 & 1), e
