# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""FPDUs: framing, markers, CRC, pieces. RFC 5044, 3 to 8."""

import itertools
import random
import re
import subprocess
import time
from functools import partial

from harness import DRIVER, FLUSH, LOC_PROT, Skip, pattern, send_out, test, up_to_a_marker
from netdev import own_netns, weft_netns
from wirepeer import mpa, peer, rdmap


def same_bytes(link, message):
    """What weft framed is what our framer makes of the same ULPDU."""
    for s in message.segments:
        framer = mpa.Framer(link.peer.rx.markers, True, s.fpdu.position)
        due = framer.frame(s.ulpdu)
        assert s.fpdu.wire == due, "%s, due %s" % (s.fpdu.wire.hex(), due.hex())


@test("MPA-010", "MPA-011", "MPA-012", "MPA-016", "MPA-042", "MPA-043", "MPA-045", "MPA-007",
      "MPA-001", each=(0, 1))
def fpdus_byte_for_byte(f, markers):
    link = f.running(rev=1, m=markers)
    for n in list(range(8)) + [24, 63, 64, 500, 1300]:
        same_bytes(link, send_out(f, link, pattern(n)))


@test("MPA-012", each=(0, 1))
def a_pad_is_zero_where_other_bytes_were(f, crc):
    """A request whose second element is bad leaves its first where the next ones are framed."""
    f.policy("mpa_crc", crc)
    link, other = f.running(rev=1, c=crc), f.running(rev=1, c=crc)
    out = f.mr(1000)
    out.fill(0xff)
    bad = other.post("send", sge=out.sge() + ",@0x1000:8:0x12345")
    other.wc(wr=bad, status=LOC_PROT)
    other.peer.expect_terminate(0, 0, 0)
    other.peer.close()
    for n in (101, 102, 103):
        pads = {s.fpdu.wire[2 + len(s.ulpdu):-4]
                for s in send_out(f, link, pattern(n)).segments}
        assert pads == {bytes(-(20 + n) % 4)}, pads


@test("MPA-007", "DDP-012", "RDMAP-006", each=(1, 2))
def versions_with_either_revision(f, rev):
    """The parser of segments objects to any other DV or RV."""
    link = f.passive(rev=rev, enhanced=mpa.Enhanced(4, 4) if rev == 2 else None)
    link.start_responder()
    link.event("ESTABLISHED")
    message = send_out(f, link, b"versions")
    assert message.segments[0].ulpdu[:2] == b"\x41\x43"


@test("MPA-006", "DDP-040", "RDMAP-050")
def lengths_of_small_ulpdus(f):
    link = f.running(rev=1, recv=8)
    for n in range(5):
        link.peer.send(pattern(n, n))
        link.received(pattern(n, n))


@test("MPA-013")
def pad_is_ignored(f):
    link = f.running(rev=1, recv=8)
    for n in range(1, 8):
        link.peer.send(pattern(n), fpdu=dict(pad=b"\xff\xfe\xfd"))
        link.received(pattern(n))


@test("MPA-014", "MPA-015", "MPA-038", "MPA-039", "CM-011")
def without_crc_any_field_passes(f):
    f.policy("mpa_crc", 0)
    rng = random.Random(15)
    link = f.passive(rev=1, c=0, recv=102, size=64)
    link.peer.send(b"first", fpdu=dict(crc_field=b"\x01\x02\x03\x04"))
    link.received(b"first")
    for n in range(100):
        link.peer.send(pattern(n % 60, n), fpdu=dict(crc_field=rng.randbytes(4)))
        link.received(pattern(n % 60, n))
    for n in range(20):
        send_out(f, link, pattern(n * 13))


@test("MPA-017", "MPA-018", "MPA-020", "MPA-024", "MPA-025", "MPA-026", "MPA-027", "MPA-028",
      "MPA-029", "MPA-030", "MPA-033", "MPA-044", "CM-032")
def a_marked_stream_of_many_sizes(f):
    """Our deframer objects to any marker that is not due, or due and not there."""
    link = f.running(rev=1, m=1)
    out = f.mr(4096)
    data = pattern(4096)
    out.poke(data)
    rng = random.Random(512)
    sizes = [rng.randint(0, 100) for _ in range(400)] + [rng.randint(0, 4000) for _ in range(60)]
    for at in range(0, len(sizes), 20):
        part = sizes[at:at + 20]
        for n in part:
            last = link.post("send", sge=out.sge(0, n) if n else None)
        for n in part:
            message = link.peer.expect(rdmap.SEND)
            assert message.payload == data[:n]
        link.wc(wr=last)


@test("MPA-024", "MPA-032")
def a_marked_stream_of_a_megabyte(f):
    link = f.running(rev=1, m=1)
    size = 1 << 20
    data = pattern(size)
    out = f.mr(size)
    out.poke(data)
    wr = link.post("write", sge=out.sge(), raddr=0, rkey=5)
    assert link.peer.expect(rdmap.WRITE, 40).payload == data
    link.wc(wr=wr, timeout=20)
    assert link.peer.rx.pos > size + size // 512 * 4


# Towards weft: it must have asked for markers.

def marked(f, **more):
    f.policy("mpa_rx_markers", 1)
    link = f.running(rev=1, **more)
    assert link.peer.tx.markers
    return link


@test("MPA-032", "MPA-024", "MPA-057", "MPA-072", "MPA-028", "MPA-033")
def weft_strips_markers(f):
    target = f.mr(1 << 16)
    link = marked(f, recv=64, size=128)
    data = pattern(1 << 16)
    link.peer.write(target.rkey, target.iova, data)
    rng = random.Random(3)
    for n in range(64):
        payload = pattern(rng.randint(0, 128), n)
        link.peer.send(payload)
        link.received(payload)
    assert target.peek() == data


@test("MPA-033", "MPA-028", "MPA-044", "MPA-043")
def weft_finds_markers_wherever_they_fall(f):
    """FPDUs that end in front of, on, and behind a boundary; also an odd start."""
    link = marked(f, recv=260, size=600)
    for n in range(0, 260):
        payload = pattern(440 + n % 67, n)
        link.peer.send(payload)
    for n in range(0, 260):
        link.received(pattern(440 + n % 67, n))


@test("MPA-019", "MPA-021")
def reserved_parts_of_a_marker_are_ignored(f):
    link = marked(f, recv=8, size=2048)
    for hook in (lambda v, i: v | 0xBEEF0000, lambda v, i: v | 3, lambda v, i: v | 0xFFFF0003):
        link.peer.send(pattern(1000), fpdu=dict(marker_hook=hook))
        link.received(pattern(1000))


@test("MPA-066", "MPA-058", "MPA-069")
def a_marker_that_disagrees(f):
    link = marked(f, recv=8, size=2048)
    link.peer.send(pattern(1000))
    link.received(pattern(1000))
    link.peer.send(pattern(1000), fpdu=dict(marker_hook=lambda v, i: v + 4))
    link.peer.send(b"not this one")
    link.terminated(2, 0, 3)


@test("MPA-046", "MPA-065", "MPA-037")
def a_flipped_bit_in_a_marker(f):
    link = marked(f, recv=8, size=2048)
    broken = bytearray(link.peer.send(pattern(1200), hold=True))
    at = 512 - (link.peer.tx.pos - len(broken)) % 512
    broken[at] ^= 0x10
    link.peer.raw(bytes(broken))
    link.terminated(2, 0, 2)


# --- CRC ---------------------------------------------------------------------

@test("MPA-046", "MPA-065", "MPA-061", "MPA-059", "MPA-070", each=range(8))
def every_bit_of_an_fpdu_is_covered(f, bit):
    """Whatever bit flips, nothing is delivered: a Terminate, or the end of TCP."""
    places = range(48) if f.world.slow == 1 else range(bit % 6, 48, 6)
    for at in places:
        link = f.running(rev=1, recv=1, size=64)
        good = bytearray(link.peer.send(pattern(24), hold=True))
        good[at] ^= 1 << bit
        link.peer.raw(bytes(good))
        if at >= 2:
            link.peer.expect_terminate(2, 0, 2, b"", "")
        else:
            # the length itself: more may be due than we have
            link.peer.raw(bytes(40))
            link.peer.fin()
            try:
                assert link.peer.message(2).opcode == rdmap.TERMINATE
            except (peer.Closed, peer.Timeout):
                pass
        link.peer.close()
        found = link.wc(wr=link.posted[0], status=None)
        assert found["status"] == FLUSH, found
        f.agent.cmd("destroy", k=link.k)
        f.links.remove(link)


@test("MPA-059", "MPA-065", "RDMAP-029", "DDP-064", "MPA-070", "DDP-059", "DDP-061")
def a_corrupt_write_places_nothing(f):
    target = f.mr(8192)
    target.fill(0x5A)
    link = f.running(rev=1)
    link.peer.mulpdu = 1400
    link.peer.write(target.rkey, target.iova, bytes(1300), fpdu=dict(crc_xor=0x01000000))
    link.terminated(2, 0, 2)
    assert target.peek() == b"\x5A" * 8192


@test("MPA-061", "MPA-069", "DDP-003", "DDP-059", "RDMAP-089")
def nothing_is_taken_behind_an_error(f):
    target = f.mr(4096)
    link = f.running(rev=1, recv=4)
    data = link.peer.send(b"broken", hold=True, fpdu=dict(crc_xor=1))
    for n in range(3):
        data += link.peer.write(target.rkey, target.iova, b"written", hold=True)
        data += link.peer.send(b"good", hold=True)
    link.peer.raw(data)
    link.terminated(2, 0, 2)
    assert target.peek(0, 7) == bytes(7)


@test("MPA-060", "DDP-039")
def the_last_byte_decides(f):
    target = f.mr(64)
    link = f.running(rev=1)
    data = link.peer.write(target.rkey, target.iova, b"placed?", hold=True)
    link.peer.raw(data[:-1])
    time.sleep(0.2)
    assert target.peek(0, 7) == bytes(7)
    more = link.peer.send(b"whole", hold=True)
    link.peer.raw(data[-1:] + more[:-1])
    time.sleep(0.2)
    link.no_wc()
    assert target.peek(0, 7) == b"placed?"
    link.peer.raw(more[-1:])
    link.received(b"whole")


# --- pieces ------------------------------------------------------------------------

MARKED = ("unmarked", "marked")


def as_marked(f, how):
    """Have weft ask for markers, or not."""
    f.policy("mpa_rx_markers", int(how == "marked"))


@test("MPA-056", "MPA-057", "DDP-002", each=MARKED)
def one_byte_per_segment(f, how):
    as_marked(f, how)
    target = f.mr(4096)
    link = f.passive(rev=1, piece=1, recv=8)
    assert link.peer.tx.markers == (how == "marked")
    data = link.peer.write(target.rkey, target.iova, pattern(601), hold=True)
    data += link.peer.send(pattern(33), hold=True)
    link.peer.raw(data, piece=1, pause=0.0005)
    link.received(pattern(33))
    assert target.peek(0, 602) == pattern(601) + b"\0"


@test("MPA-056", "MPA-057", each=itertools.product(range(3), MARKED))
def random_cuts(f, case):
    seed, how = case
    as_marked(f, how)
    rng = random.Random(seed)
    target = f.mr(1 << 16)
    link = f.running(rev=1, recv=64, size=2048)
    assert link.peer.tx.markers == (how == "marked")
    data, sizes = b"", []
    for n in range(60):
        size = rng.choice((0, 1, 17, 100, 900, 2000))
        data += link.peer.send(pattern(size, n), hold=True)
        data += link.peer.write(target.rkey, target.iova + n * 1000, pattern(1000 - n % 7, n),
                                hold=True)
        sizes.append(size)
    at = 0
    while at < len(data):
        take = rng.choice((1, 2, 3, 5, 40, 700, 1448, 5000))
        link.peer.raw(data[at:at + take])
        at += take
        if rng.random() < 0.1:
            time.sleep(0.002)
    for n, size in enumerate(sizes):
        link.received(pattern(size, n))
    for n in range(60):
        assert target.peek(n * 1000, 1000) == pattern(1000 - n % 7, n) + bytes(n % 7)


@test("MPA-056", "MPA-060", "MPA-057", "MPA-028", each=itertools.product((24, 25), MARKED))
def an_fpdu_cut_at_every_boundary(f, case):
    """With PAD and without; the marker in front, within, and between PAD and CRC."""
    size, how = case
    as_marked(f, how)
    target = f.mr(1024)
    link = f.running(rev=1, recv=250, size=64)
    assert link.peer.tx.markers == (how == "marked")
    length = 48 if size == 24 else 52
    for place in (0, 24, length - 4) if how == "marked" else (None,):
        for cut in range(1, length + (4 if how == "marked" else 0)):
            if how == "marked":
                up_to_a_marker(link, target, place)
            data = link.peer.send(pattern(size, cut), hold=True)
            link.peer.raw(data[:cut])
            time.sleep(0.002)
            link.peer.raw(data[cut:])
            link.received(pattern(size, cut))
        assert len(data) == cut + 1, "a cut left out"


@test("MPA-055", "MPA-056")
def many_fpdus_in_one_segment(f):
    link = f.running(rev=1, recv=200, size=64)
    link.peer.raw(b"".join(link.peer.send(pattern(n % 50, n), hold=True) for n in range(200)))
    for n in range(200):
        link.received(pattern(n % 50, n))


@test("MPA-060", "MPA-064", "MPA-069", each=("fin", "rst"))
def an_end_inside_an_fpdu(f, how):
    link = f.running(rev=1)
    data = link.peer.send(pattern(24), hold=True)
    for cut in (1, 2, 20, 47):
        before = f.counted("connections_lost")
        link.peer.raw(data[:cut])
        time.sleep(0.01)
        getattr(link.peer, how)()
        link.peer.close()
        link.dead()
        if before is not None:
            assert f.counted("connections_lost") == before + 1
        f.agent.cmd("destroy", k=link.k)
        f.links.remove(link)
        link = f.running(rev=1)
        data = link.peer.send(pattern(24), hold=True)


# --- ends ------------------------------------------------------------------------

@test("MPA-062", "VERBS-024", "RDMAP-085")
def a_graceful_disconnect_has_no_reset(f):
    link = f.running(rev=1)
    if DRIVER == "weft":
        f.policy("close_timeout_ms", 600000)    # the end of the socket would bring a FIN, too
    f.agent.cmd("disconnect", k=link.k)
    link.peer.expect_end(reset=False)
    link.peer.fin()
    link.dead()


@test("MPA-008", "MPA-063", "DDP-045", "DDP-046")
def the_peers_fin_is_an_event(f):
    link = f.running(rev=1)
    link.peer.fin()
    link.peer.expect_end(reset=False)
    link.dead()


LOSSY = {"theirs": ((own_netns, "vb"),), "ours": ((weft_netns, "va"),),
         "both": ((own_netns, "vb"), (weft_netns, "va"))}


def lost(netns, dev):
    """How many packets netem has lost."""
    found = re.search(r"dropped (\d+)", netns("tc", "-s", "qdisc", "show", "dev", dev))
    return int(found[1])


@test("MPA-071", "DDP-004", "DDP-036", "RDMAP-080", each=LOSSY)
def packet_loss_changes_nothing(f, whose):
    """Data of both directions; lost are what weft sends, what the peer sends, either.
    The device gets no more than one segment at a time, or few packets would be many."""
    for netns, dev in LOSSY[whose]:
        netns("ip", "link", "set", dev, "gso_max_segs", "1")
        f.undo.append(partial(netns, "ip", "link", "set", dev, "gso_max_segs", "65535"))
        try:
            netns("tc", "qdisc", "add", "dev", dev, "root", "netem", "loss", "8%", "delay", "1ms")
        except subprocess.CalledProcessError:
            raise Skip("no netem here") from None
        f.undo.append(partial(netns, "tc", "qdisc", "del", "dev", dev, "root"))
    link = f.running(rev=1, m=1, recv=200, size=128)
    size = 200000
    out = f.mr(size)
    out.poke(pattern(size))
    wr = link.post("send", sge=out.sge())
    for n in range(200):
        link.peer.send(pattern(100, n))
    assert link.peer.expect(rdmap.SEND, 60).payload == pattern(size)
    for n in range(200):
        link.received(pattern(100, n), timeout=60)
    link.wc(wr=wr, timeout=20)
    link.no_wc()
    for netns, dev in LOSSY[whose]:
        assert lost(netns, dev), "nothing was lost on %s" % dev


@test("CM-032", "MPA-025")
def the_first_bytes_of_full_operation(f):
    for m, due in ((0, b"\x00\x16"), (1, b"\x00\x00\x00\x00\x00\x16")):
        link = f.running(rev=1, m=m)
        message = send_out(f, link, b"four")
        assert message.segments[0].fpdu.wire.startswith(due)
        link.peer.close()


@test("MPA-010", "DDP-003", "RDMAP-094")
def two_faults_in_one_segment_of_tcp(f):
    """The first is reported, the second is not seen."""
    link = f.running(rev=1)
    first = link.peer.write(0xDEAD0000, 0, b"bad stag", hold=True)
    ulpdu = link.peer.last_ulpdu
    link.peer.raw(first + link.peer.send(b"x", msn=99, hold=True))
    link.refused(1, 1, 0, ulpdu=ulpdu)


@test("RDMAP-088", "MPA-070", "DDP-047")
def a_terminate_is_read_though_data_is_unread(f):
    """Plenty queued behind the fault must not turn its FIN into a reset."""
    link = f.running(rev=1)
    link.peer.mulpdu = 1400
    data = link.peer.send(b"broken", fpdu=dict(crc_xor=2), hold=True)
    data += b"".join(link.peer.send(bytes(1300), hold=True) for _ in range(40))
    link.peer.raw(data)
    link.terminated(2, 0, 2)


@test("MPA-041")
def crc_makes_no_difference_to_the_consumer(f):
    f.policy("mpa_crc", 0)
    answers = []
    for c in (0, 1):
        link = f.running(rev=1, c=c)
        link.peer.send(b"same")
        found = link.received(b"same")
        answers.append({k: v for k, v in found.items() if k not in ("wr", "k")})
        link.peer.close()
    assert answers[0] == answers[1], answers
