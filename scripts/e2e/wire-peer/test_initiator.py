# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Start-up frames, weft as initiator. RFC 5044, 7.1; RFC 6581."""

import json
import subprocess
import time
from errno import ECONNREFUSED, ECONNRESET, EINVAL, EPROTO, ETIMEDOUT

from harness import FLUSH, STATE_RTS, AgentError, eventually, pattern, test
from shortage import Shortage
from wirepeer import ddp, mpa, rdmap

DEPTH = mpa.NOT_NEGOTIATED
OFFERS = {"send": (1, 0, 0), "write": (0, 1, 0), "read": (0, 0, 1)}


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
        link.connect_fails("CONNECT_ERROR", EPROTO)


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
    if what == "cut short":
        link.connect_fails("REJECTED", ECONNRESET)
    else:
        link.connect_fails("CONNECT_ERROR", EPROTO)


@test("CM-016", each=(0, 3, 255))
def an_unknown_revision_in_a_reply(f, rev):
    link = f.dialed()
    link.peer.send_reply(rev=rev, enhanced=mpa.Enhanced(4, 4, 1, 0, 1, 0))
    link.peer.expect_end()
    link.connect_fails("CONNECT_ERROR", EPROTO)


@test("CM-027", "CM-058", "CM-014", each=(0, 7, 148))
def a_reject_with_private_data(f, length):
    link = f.dialed()
    link.peer.send_reply(r=1, rev=2, enhanced=mpa.Enhanced(4, 4, 1, 0, 1, 0),
                         pd=pattern(length))
    found = link.connect_fails("REJECTED", ECONNREFUSED)
    assert found["pdata"] == pattern(length).hex(), found


@test("CM-058", "CM-052")
def depths_of_a_reply_reach_the_consumer(f):
    # the peer's ORD is what it may read from us, its IRD what we may read there, and both are
    # as it says, whatever we have settled on
    for ird, ord_ in (3, 2), (16, 1):
        link = f.active(enhanced=mpa.Enhanced(ird, ord_, 1, 0, 1, 0), ird=4, ord=4)
        told = link.established["ird"], link.established["ord"]
        assert told == (ord_, ird), link.established
        assert link.state()["ord"] == min(ird, 4)


@test("CM-019", "CM-038", each=(0, 251, 255))
def private_data_of_a_reply(f, length):
    link = f.active(reply=dict(pd=pattern(length)))
    assert link.established["pdata"] == pattern(length).hex(), link.established
    link.peer.send(b"still in step")
    link.received(b"still in step")


@test("CM-019", "CM-070", each=(256, 508))
def private_data_of_a_reply_that_cannot_be_handed_on(f, length):
    """iw_cm has 8 bits for its length; a consumer does not get half of an answer."""
    link = f.dialed()
    f.answer(link, pd=pattern(length))
    link.peer.expect_terminate(2, 0, 5, b"", "")
    link.connect_fails("CONNECT_ERROR", EPROTO)


@test("CM-019")
def private_data_of_a_plain_reply_that_cannot_be_handed_on(f):
    """Revision 1 knows no Terminate for that: the connection ends."""
    f.policy("mpa_revision", 1)
    link = f.dialed()
    f.answer(link, pd=pattern(256))
    link.peer.expect_end()
    link.connect_fails("CONNECT_ERROR", EPROTO)


@test()
def private_data_of_a_reply_that_found_no_memory(f):
    """The consumer waits for the outcome, and is told that without it."""
    link = f.dialed()
    with Shortage("kmalloc-192", times=1) as shortage:
        f.answer(link, pd=bytes(150))
        eventually(f, shortage.is_over, lambda: "there was enough")
    established = link.event("ESTABLISHED")
    assert established["pdlen"] == 0, established


@test("CM-038")
def private_data_of_a_reply_is_cut_where_an_administrator_wants_it(f):
    f.policy("private_data_max", 512)
    link = f.active(reply=dict(pd=pattern(300)))
    assert link.established["pdata"] == pattern(300)[:255].hex(), link.established
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
    link.connect_fails("CONNECT_ERROR", EPROTO)


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
    # What the peer does not say is told as it was settled.
    told = link.established["ird"], link.established["ord"]
    assert told == (2 if which == "ird" else 6, 7), link.established


@test("CM-069", "CM-047")
def no_common_rtr_kind(f):
    link = f.dialed()
    f.answer(link, mpa.Enhanced(16, 4, 1, 0, 0, 0))
    link.peer.expect_terminate(2, 0, 7, b"", "")
    link.peer.close()
    link.connect_fails("CONNECT_ERROR", EPROTO)


FRAMINGS = {"plain": {}, "markers": dict(m=1)}


def told_of_failure(f, link, errno=EINVAL):
    link.peer.close()
    link.connect_fails("CONNECT_ERROR", errno)
    for wr in link.posted:
        f.agent.wait("wc", 5, k=link.k, wr=wr, status=FLUSH)


@test("CM-070", each=FRAMINGS)
def a_qp_that_fails_before_the_reply(f, framing):
    """A local error: nothing is wrong with the reply, and yet no stream comes of it."""
    link = f.dialed()
    f.agent.cmd("modify", k=link.k, state="err")
    f.answer(link, **FRAMINGS[framing])
    link.peer.expect_terminate(2, 0, 5, b"", "")
    told_of_failure(f, link)


@test("CM-070")
def a_qp_that_fails_before_a_reply_without_crc(f):
    f.policy("mpa_crc", 0)
    link = f.dialed()
    f.agent.cmd("modify", k=link.k, state="err")
    f.answer(link, c=0)
    link.peer.expect_terminate(2, 0, 5, b"", "")
    told_of_failure(f, link)


@test("CM-070")
def a_peer_that_reads_nothing_after_its_reply(f):
    """Closing must not wait for a peer whose window is shut, nor delay others."""
    link = f.dialed(f.listen(rcvbuf=2048))
    f.agent.cmd("modify", k=link.k, state="err")
    f.answer(link)
    link.connect_fails("CONNECT_ERROR", EINVAL)
    f.agent.cmd("destroy", k=link.k)
    f.links.remove(link)
    link.peer.expect_terminate(2, 0, 5, b"", "")


@test("CM-070", "CM-047")
def a_bad_reply_to_a_qp_that_failed(f):
    """The fault in the reply is still reported, though the QP cannot do so."""
    for block, code in ((mpa.Enhanced(16, 4, 1, 0, 0, 0), 7), (mpa.Enhanced(4, 9999, 1, 0, 1, 0), 6)):
        link = f.dialed(ird=4, ord=4)
        f.agent.cmd("modify", k=link.k, state="err")
        f.answer(link, block)
        link.peer.expect_terminate(2, 0, code, b"", "")
        told_of_failure(f, link, EPROTO)


@test("CM-070")
def a_plain_reply_to_a_qp_that_failed(f):
    """Revision 1 knows no such Terminate: the connection ends."""
    f.policy("mpa_revision", 1)
    link = f.dialed()
    f.agent.cmd("modify", k=link.k, state="err")
    f.answer(link)
    link.peer.expect_end()
    told_of_failure(f, link)


@test("CM-069", "CM-067")
def only_a_kind_we_cannot_send(f):
    f.policy("mpa_rtr_types", 2)
    link = f.dialed()
    f.answer(link, mpa.Enhanced(16, 4, 1, 1, 0, 0))
    link.peer.expect_terminate(2, 0, 7, b"", "")
    link.connect_fails("CONNECT_ERROR", EPROTO)


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
    told, state = link.event("ESTABLISHED"), link.state()
    assert (told["ird"], told["ord"]) == (3, 5), told
    assert (state["ird"], state["ord"]) == (3, 5), state
    out = f.mr(8)
    link.post("send", sge=out.sge())
    link.peer.expect(rdmap.SEND)
    link.peer.send(b"plain")
    link.received(b"plain")


@test("CM-077")
def a_plain_request_is_not_sent_twice(f):
    """A peer that closes has understood it, and does not want it."""
    f.policy("mpa_revision", 1)
    listener = f.listen()
    link = f.dialed(listener)
    link.peer.close()
    link.connect_fails("REJECTED", ECONNRESET)
    assert not listener.is_connecting(0.5), "it connects again"


@test("CM-077", "CM-034")
def a_second_try_has_a_time_of_its_own(f):
    """Of the first one's there may be little left."""
    f.policy("mpa_reply_timeout_ms", 60000)
    listener = f.listen()
    link = f.dialed(listener)
    f.policy("mpa_reply_timeout_ms", 600000)
    link.peer.close()
    link.peer = listener.accept()
    f.peers.append(link.peer)
    link.request = link.peer.read_request()
    text = subprocess.run(["rdma", "-j", "-dd", "resource", "show", "cm_id"], check=True,
                          capture_output=True, text=True).stdout
    left = [row["drv_deadline_ms"] for row in json.loads(text)
            if row.get("drv_state") == "await-reply"]
    assert len(left) == 1 and 60000 < left[0] <= 600000, text
    f.answer(link)
    link.event("ESTABLISHED")


@test("CM-078", each=("rev 1", "no S"))
def an_enhanced_request_answered_plainly(f, what):
    link = f.dialed()
    if what == "rev 1":
        link.peer.send_reply(rev=1)
    else:
        link.peer.send_reply(rev=2, pd=b"\x80\x04\x80\x04")
    link.peer.expect_end()
    link.connect_fails("CONNECT_ERROR", EPROTO)


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
    """No peer may hold a half-open connection."""
    slow = f.world.slow
    f.policy("mpa_request_timeout_ms", 1000 * slow)
    f.policy("mpa_reply_timeout_ms", 2000 * slow)
    began = time.monotonic()
    silent, partial = f.connect(), f.connect()
    partial.raw(mpa.request().build()[:19])
    link = f.dialed()
    silent.silent(began + 0.7 * slow - time.monotonic())
    silent.expect_end(timeout=2 * slow)
    partial.expect_end(timeout=slow)
    link.connect_fails("UNREACHABLE", ETIMEDOUT)
    assert time.monotonic() - began >= 2 * slow


@test("CM-034")
def an_rtr_is_waited_for_only_so_long(f):
    f.policy("mpa_rtr_timeout_ms", 1000 * f.world.slow)
    link = f.passive(rev=2, enhanced=mpa.Enhanced(4, 4, 1, 1, 1, 1))
    link.peer.silent(0.8 * f.world.slow)
    link.peer.expect_end(timeout=5 * f.world.slow)


@test("CM-070")
def no_memory_for_the_stream_is_told_the_responder(f):
    # Queues of 16 requests each way take 3 KB; nothing else allocates such a piece now.
    shortage = Shortage("kmalloc-4k")
    link = f.dialed(ird=16, ord=16)
    with shortage:
        link.peer.send_reply(rev=2, enhanced=mpa.Enhanced(16, 16, 1, 0, 1, 0))
        link.peer.full_operation(False)
        link.peer.expect_terminate(2, 0, 5)


@test()
def a_responder_that_found_no_memory_for_the_stream(f):
    """It has accepted, so that its consumer is told so, and of the end. An FPDU of its own would
    come before the initiator's first one."""
    shortage = Shortage("kmalloc-4k")
    link = f.passive(accept=False, rev=2, enhanced=mpa.Enhanced(16, 16, 1, 1, 1, 1))
    f.agent.cmd("qp", k=link.k, pd="pd", cq="cq")
    with shortage:
        f.agent.cmd("accept", k=link.k, ird=16, ord=16)
        link.peer.read_reply()
        link.peer.full_operation(True)
        link.peer.expect_end()
    for kind in "ESTABLISHED", "DISCONNECTED":
        link.event(kind)
