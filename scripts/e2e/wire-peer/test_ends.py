# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""FIN and RST in every state of a connection. RFC 5044, 8."""

from harness import AgentError, test
from wirepeer import Violation, mpa, peer

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
