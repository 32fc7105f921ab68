# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Consecutive segments of one message, without CRC: weft may place them together,
and must yet judge and place each as if it had come alone."""

import socket

from harness import BAD_RESP, FLUSH, LOC_LEN, pattern, test
from wirepeer import ddp, rdmap

COUNT, EACH = 12, 400       # segments, and bytes in each
PLACES = (1, 6, 10)         # the first that others could be like, one in the middle, the last
KINDS = ("write", "send", "read response")
UNTOUCHED = 0x5A


class Row:
    """A message to weft, the memory it is for, and its segments before they are sent."""

    def __init__(self, f, kind, space=COUNT * EACH, shift=0):
        f.policy("mpa_crc", 0)
        self.f, self.kind = f, kind
        self.link = f.running(rev=1, c=0, recv=0)
        assert not self.link.peer.tx.crc
        self.target = f.mr(space, access="lwr" if kind == "write" else "l", shift=shift)
        self.target.fill(UNTOUCHED)
        self.fields = getattr(self, "_" + kind.replace(" ", "_"))(space)
        self.before = f.counted("rx_batched_segments")

    def _write(self, _):
        return dict(opcode=rdmap.WRITE, stag=self.target.rkey, to=self.target.iova)

    def _send(self, space):
        self.link.recv(1, space, self.target)
        return dict(opcode=rdmap.SEND, qn=0, msn=self.link.peer.next_msn(0), mo=0)

    def _read_response(self, space):
        self.wr = self.link.post("read", sge=self.target.sge(0, space), raddr=0, rkey=1)
        request = rdmap.ReadRequest(self.link.peer.expect(rdmap.READ_REQ).payload)
        return dict(opcode=rdmap.READ_RESP, stag=request.sink_stag, to=request.sink_to)

    def segment(self, at, data, last=False, **changed):
        """One of them; what is changed is added to an offset, and replaces anything else."""
        fields = self.fields | dict(payload=data, last=last)
        where = "mo" if "mo" in fields else "to"
        fields[where] += at + changed.pop("off", 0)
        return (ddp.untagged if where == "mo" else ddp.tagged)(**(fields | changed))

    def segments(self, data, lengths):
        at, out = 0, []
        for length in lengths:
            end = at + length
            out.append(self.segment(at, data[at:end], last=end == len(data)))
            at = end
        return out

    def send(self, ulpdus):
        """In one go, so that they come in one of TCP's buffers."""
        self.link.peer.raw(b"".join(self.link.peer.ulpdu(u, hold=True) for u in ulpdus))

    def placed(self, data):
        seen = self.target.peek()
        assert seen == data + bytes([UNTOUCHED]) * (len(seen) - len(data)), self.kind

    def arrives(self, data):
        if self.kind == "read response":
            self.link.wc(wr=self.wr)
        elif self.kind == "send":
            self.link.received(data)
        else:
            self.link.recv(1, 8)
            self.link.peer.send(b"")
            self.link.received(b"")
        self.placed(data)

    def in_rows(self, least):
        """So many of them were placed together, or one or two less where pages met."""
        now = self.f.counted("rx_batched_segments")
        if now is not None:
            assert now - self.before >= least, "%d in batches, due %d" % (now - self.before, least)

    def refused(self, what, ulpdu, status):
        self.link.peer.expect_terminate(*what, ulpdu=ulpdu)
        self.link.peer.close()
        if self.kind == "read response":
            self.link.wc(wr=self.wr, status=status)
        self.link.over_by(*what, oldest=status if self.kind == "send" else FLUSH)


# --- good ---------------------------------------------------------------------------------

@test("DDP-016", "DDP-017", "DDP-027", "RDMAP-030", "MPA-032",
      each=[(kind, shift) for kind in KINDS for shift in (0, 1, 4000)])
def segments_of_a_batch_arrive(f, case):
    row = Row(f, case[0], shift=case[1])
    data = pattern(COUNT * EACH)
    row.send(row.segments(data, [EACH] * COUNT))
    row.arrives(data)
    row.in_rows(COUNT - 5)


@test("DDP-016", "DDP-017", "RDMAP-030", each=KINDS)
def many_segments_of_a_batch_arrive(f, kind):
    """More than a page of consecutive segments, over many pages and several buffers of TCP's."""
    count, each = 130, 1401
    row = Row(f, kind, count * each, shift=77)
    data = pattern(count * each)
    row.send(row.segments(data, [each] * count))
    row.arrives(data)
    row.in_rows(count // 2)


LENGTHS = {"one is shorter": [EACH] * 6 + [17] + [EACH] * 6,
           "one is longer": [EACH] * 6 + [EACH + 1] + [EACH] * 6,
           "one has another pad": [EACH - 1] * 6 + [EACH - 3] + [EACH - 1] * 5,
           "one is empty": [EACH] * 6 + [0] + [EACH] * 6,
           "two lengths in turns": [EACH, EACH // 2] * 6,
           "two rows": [EACH] * 6 + [EACH // 4] * 12}


@test("DDP-016", "DDP-017", "RDMAP-030", "MPA-005",
      each=[(kind, what) for kind in KINDS for what in LENGTHS])
def segments_of_several_lengths_arrive(f, case):
    kind, what = case
    data = pattern(sum(LENGTHS[what]))
    row = Row(f, kind, len(data))
    row.send(row.segments(data, LENGTHS[what]))
    row.arrives(data)


@test("DDP-016", "RDMAP-030", "VERBS-025")
def a_batch_goes_to_a_list_of_elements(f):
    """Elements end within segments."""
    row = Row(f, "send")
    data = pattern(COUNT * EACH)
    row.send(row.segments(data, [EACH] * COUNT))
    row.arrives(data)
    first, second = f.mr(1000, access="l"), f.mr(COUNT * EACH, access="l")
    rest = second.sge(7, COUNT * EACH - 1000)
    wr = row.link.post("recv", sge="%s,%s" % (first.sge(), rest))
    row.fields["msn"] = row.link.peer.next_msn(0)
    data = pattern(COUNT * EACH, 5)
    row.send(row.segments(data, [EACH] * COUNT))
    assert row.link.wc(wr=wr)["len"] == len(data)
    assert first.peek() + second.peek(7, COUNT * EACH - 1000) == data
    row.in_rows(2 * (COUNT - 5))


@test("DDP-019", "RDMAP-030")
def a_write_comes_within_a_batch_of_a_send(f):
    row = Row(f, "send")
    other = f.mr(64)
    data = pattern(COUNT * EACH)
    ulpdus = row.segments(data, [EACH] * COUNT)
    for at in (9, 5, 2):
        ulpdus.insert(at, ddp.tagged(rdmap.WRITE, other.rkey, other.iova + at, b"\x66"))
    row.send(ulpdus)
    row.arrives(data)
    assert [n for n, byte in enumerate(other.peek()) if byte] == [2, 5, 9]


@test("DDP-016", "MPA-043", each=KINDS)
def a_batch_comes_in_pieces(f, kind):
    row = Row(f, kind)
    data = pattern(COUNT * EACH)
    ulpdus = row.segments(data, [EACH] * COUNT)
    row.link.peer.raw(b"".join(row.link.peer.ulpdu(u, hold=True) for u in ulpdus), piece=997,
                      pause=0.01)
    row.arrives(data)


# --- one of them is wrong -----------------------------------------------------------------

# what is changed, its Terminate, the status of the request it was for
WRONG = {
    "write": {"stag": (dict(stag=0xBAD00000), (1, 1, 0), None),
              "version": (dict(dv=2), (1, 1, 4), None),
              "rdmap version": (dict(rv=2), (0, 2, 5), None),
              "opcode": (dict(opcode=rdmap.READ_RESP), (0, 2, 6), None),
              "bounds": (dict(off=COUNT * EACH), (1, 1, 1), None)},
    "send": {"mo": (dict(off=4), (1, 2, 4), FLUSH),
             "mo again": (dict(off=-EACH), (1, 2, 4), FLUSH),
             "msn": (dict(msn=2), (1, 2, 3), FLUSH),
             "queue": (dict(qn=4), (1, 2, 1), FLUSH),
             "version": (dict(dv=2), (1, 2, 6), FLUSH),
             "rdmap version": (dict(rv=2), (0, 2, 5), FLUSH),
             "opcode": (dict(opcode=rdmap.SEND_SE), (0, 2, 6), FLUSH)},
    "read response": {"stag": (dict(stag=0xBAD00000), (1, 1, 0), BAD_RESP),
                      "to": (dict(off=4), (1, 1, 1), BAD_RESP),
                      "to again": (dict(off=-EACH), (1, 1, 1), BAD_RESP),
                      "version": (dict(dv=2), (1, 1, 4), FLUSH),
                      "too early an end": (dict(last=True), (1, 1, 1), BAD_RESP)},
}


@test("DDP-003", "DDP-059", "RDMAP-061", "DDP-060", "RDMAP-092",
      each=[(kind, what, place) for kind, wrong in WRONG.items() for what in wrong
            for place in PLACES])
def one_of_a_batch_is_wrong(f, case):
    """It is refused by its own headers; what came before it is there, nothing behind it."""
    kind, what, place = case
    change, terminate, status = WRONG[kind][what]
    row = Row(f, kind)
    data = pattern(COUNT * EACH)
    ulpdus = row.segments(data, [EACH] * COUNT)
    at = place * EACH
    ulpdus[place] = row.segment(at, data[at:at + EACH], **change)
    row.send(ulpdus)
    row.refused(terminate, ulpdus[place], status)
    row.placed(data[:at])
    row.in_rows(place - 4)


TOO_MUCH = {"write": ((1, 1, 1), None), "send": ((1, 2, 5), LOC_LEN),
            "read response": ((1, 1, 1), BAD_RESP)}


@test("DDP-052", "DDP-057", "DDP-059", "RDMAP-047",
      each=[(kind, place) for kind in KINDS for place in PLACES])
def the_buffer_ends_within_a_batch(f, case):
    kind, place = case
    terminate, status = TOO_MUCH[kind]
    at = place * EACH
    row = Row(f, kind, at + EACH // 4)
    data = pattern(COUNT * EACH)
    ulpdus = row.segments(data, [EACH] * COUNT)
    row.send(ulpdus)
    row.refused(terminate, ulpdus[place], status)
    row.placed(data[:at])


@test("DDP-058", "DDP-062")
def a_batch_up_to_the_end_of_all_offsets(f):
    """Its first segment is out of bounds; those that would wrap are not looked at."""
    row = Row(f, "write")
    start = 2 ** 64 - 5 * EACH
    ulpdus = [ddp.tagged(rdmap.WRITE, row.target.rkey, start + n * EACH, bytes(EACH), last=False)
              for n in range(COUNT)]
    row.send(ulpdus)
    row.refused((1, 1, 1), ulpdus[0], None)
    row.placed(b"")


@test("DDP-068", "VERBS-005", each=KINDS)
def a_batch_ends_with_its_stag(f, kind):
    """The memory is gone before the rest of the message comes."""
    row = Row(f, kind)
    data = pattern(COUNT * EACH)
    ulpdus = row.segments(data, [EACH] * COUNT)
    row.send(ulpdus[:6])
    row.in_rows(1)
    row.target.dereg(keep=True)
    row.target.fill(UNTOUCHED)
    row.send(ulpdus[6:])
    if kind == "write":
        row.refused((1, 1, 0), ulpdus[6], None)
    else:
        row.link.peer.expect_terminate(0, 0, 0, b"", "")
        row.link.peer.close()
    row.placed(b"")


# --- a burst that ends without PSH ------------------------------------------------------

@test("MPA-060")
def a_full_segment_that_is_not_pushed_is_read(f):
    """What looks like the middle of a burst is read at its end, though nothing follows."""
    link = f.running(rev=1, recv=1, size=4096)
    mss = link.peer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    data = pattern(mss - 24)    # length, header of a Send, CRC
    fpdu = link.peer.send(data, cut=len(data), hold=True)
    assert len(fpdu) == mss, (len(fpdu), mss)
    link.peer.sock.send(fpdu, socket.MSG_MORE)
    link.received(data)
