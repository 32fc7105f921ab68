#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Judge a packet capture of iWARP connections with tshark's decoder.

Usage: wire.py decode CAPTURE TABLE   decode once (slow), keep the result
       wire.py CHECK TABLE [--suite]  one of the functions below

With --suite the capture is that of the suite wire: complete, with enough of each kind, and made
with the defaults of a device. Without, of any connections, what there is must be right.
"""

import collections
import copy
import json
import subprocess
import sys
import xml.etree.ElementTree as ET

OPCODES = {0: "Write", 1: "Read Request", 2: "Read Response", 3: "Send",
           4: "Send-Inv", 5: "Send-SE", 6: "Send-SE-Inv", 7: "Terminate",
           10: "Atomic Request", 11: "Atomic Response"}
READ_RESPONSE = 2
ATOMIC_REQUEST = 10
ATOMIC_RESPONSE = 11

SUITE = "--suite" in sys.argv[3:]
# What flags are called, by the version of tshark.
FLAGS = {"False": 0, "True": 1}


def enough(count, least, what):
    """Something has to be there, and of the suite's capture not only something."""
    assert count, f"no {what} in this capture; was it begun before the connection?"
    assert not SUITE or count >= least, f"{count} {what}, {least} at least"


def complete(condition, what):
    """A capture may begin and end in the middle, that of the suite does not."""
    assert not SUITE or condition, what


def number(text):
    """Of a flag tshark 4.4 says True or False, older ones 1 or 0."""
    return FLAGS[text] if text in FLAGS else int(text, 0)



class Packet:
    """The layers of one captured packet that matter here."""

    def __init__(self, element):
        self.fields = {}
        self.layers = []
        for proto in element:
            name = proto.get("name", "")
            values = {}
            for field in proto.iter("field"):
                values.setdefault(field.get("name"), field)
            if name.startswith("iwarp"):
                self.layers.append((name, values))
            elif name in ("ip", "ipv6", "tcp"):
                self.fields.update(values)

    def get(self, name):
        return self.fields[name].get("show")

    def direction(self):
        source = "ip.src" if "ip.src" in self.fields else "ipv6.src"
        return (int(self.get("tcp.stream")), self.get(source),
                int(self.get("tcp.srcport")))


def start_frame(values):
    keys = ("marker_flag", "crc_flag", "rej_flag", "rev", "pdlength")
    frame = {k: number(values["iwarp_mpa." + k].get("show")) for k in keys}
    frame["kind"] = "reply" if "iwarp_mpa.key.rep" in values else "request"
    private = values.get("iwarp_mpa.privatedata")
    frame["private"] = private.get("value") if private is not None else ""
    return frame


def fpdu(mpa, ddp):
    def have(name):
        return number(ddp[name].get("show")) if name in ddp else None

    crc = mpa["iwarp_mpa.crc"].get("showname") if "iwarp_mpa.crc" in mpa else ""
    crc += mpa["iwarp_mpa.crc_check"].get("showname") if "iwarp_mpa.crc_check" in mpa else ""
    return {
        "kind": "fpdu", "length": number(mpa["iwarp_mpa.ulpdulength"].get("show")),
        "crc": "good" if "Good CRC32" in crc else "bad" if "Bad" in crc else "?",
        "opcode": have("iwarp_rdma.opcode"), "last": have("iwarp_ddp.last_flag"),
        "qn": have("iwarp_ddp.qn"), "msn": have("iwarp_ddp.msn"),
        "mo": have("iwarp_ddp.mo"), "stag": have("iwarp_ddp.stag"),
        "to": have("iwarp_ddp.tagged_offset"),
        "sink_stag": have("iwarp_rdma.sinkstag"), "sink_to": have("iwarp_rdma.sinkto"),
        "read_size": have("iwarp_rdma.rdmardsz"),
        "atomic": {name.split(".", 1)[1]: number(field.get("show")) for name, field in ddp.items()
                   if name.startswith("iwarp_rdma.atomic.")},
    }


def items(packet):
    """The start frames and FPDUs that end in this packet."""
    for i, (name, values) in enumerate(packet.layers):
        if name != "iwarp_mpa":
            continue
        if "iwarp_mpa.fpdu" in values:
            follows = packet.layers[i + 1] if i + 1 < len(packet.layers) else ("", {})
            yield fpdu(values, follows[1] if follows[0] == "iwarp_ddp_rdmap" else {})
            continue
        # A request and a reply are fields of one layer only in odd captures.
        yield start_frame(values)


def decode(capture, table):
    command = ["tshark", "-r", capture, "-T", "pdml", "-Y",
               "tcp.len > 0 and not tcp.analysis.retransmission"]
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as tshark:
        packets = []
        for _, element in ET.iterparse(tshark.stdout):
            if element.tag != "packet":
                continue
            packet = Packet(element)
            packets.append({"direction": packet.direction(),
                            "bytes": int(packet.get("tcp.len")),
                            "items": list(items(packet))})
            element.clear()
    with open(table, "w", encoding="ascii") as f:
        json.dump(packets, f)
    kinds = collections.Counter(i["kind"] for p in packets for i in p["items"])
    print(len(packets), "packets with data,", dict(kinds))
    names = collections.Counter(OPCODES.get(i["opcode"], i["opcode"]) for _, i in all_fpdus(packets))
    print(dict(names))


def all_items(packets):
    for packet in packets:
        for item in packet["items"]:
            yield tuple(packet["direction"]), item


def all_fpdus(packets):
    return ((d, i) for d, i in all_items(packets) if i["kind"] == "fpdu")


def start_frames_well_formed(packets):
    """Each stream opens with one request and one reply, CRC asked for, no markers."""
    kinds = collections.defaultdict(list)
    for direction, item in all_items(packets):
        if item["kind"] != "fpdu":
            kinds[direction[0]].append(item)
    enough(len(kinds), 1, "start frames")
    for stream, frames in kinds.items():
        assert [f["kind"] for f in frames] == ["request", "reply"], (stream, frames)
        request, reply = frames
        for frame in frames:
            complete(frame["crc_flag"] == 1, ("CRC is on by default", frame))
            complete(frame["marker_flag"] == 0 and frame["rej_flag"] == 0, frame)
            assert frame["pdlength"] <= 512, frame
        assert reply["rev"] == request["rev"], frames
        if request["rev"] == 2:
            assert request["pdlength"] >= 4 and reply["pdlength"] >= 4, frames


def crcs_good(packets):
    """Every FPDU has a good CRC."""
    verdicts = collections.Counter(i["crc"] for _, i in all_fpdus(packets))
    print(dict(verdicts))
    enough(sum(verdicts.values()), 51, "FPDUs")
    assert set(verdicts) == {"good"}, verdicts


def every_byte_decoded(packets):
    """Start frames and FPDUs account for every byte of every direction."""
    sent, seen = collections.Counter(), collections.Counter()
    for packet in packets:
        sent[tuple(packet["direction"])] += packet["bytes"]
    for direction, item in all_items(packets):
        if item["kind"] == "fpdu":
            body = 2 + item["length"]
            seen[direction] += body + -body % 4 + 4
        else:
            seen[direction] += 20 + item["pdlength"]
    print(dict(sent))
    assert sent == seen, (sent, seen)


def messages_in_order(packets):
    """Untagged: MSN from 1 by 1 per queue, offsets without gaps, one last flag."""
    state = {}
    checked = 0
    for direction, item in all_fpdus(packets):
        if item["qn"] is None:
            continue
        key = direction + (item["qn"],)
        msn, offset = state.get(key, (1, 0))
        assert (item["msn"], item["mo"]) == (msn, offset), (key, msn, offset, item)
        payload = item["length"] - 18
        state[key] = (msn + 1, 0) if item["last"] else (msn, offset + payload)
        checked += 1
    enough(checked, 21, "untagged segments")
    for key, (_, offset) in state.items():
        complete(offset == 0, ("the last message of a queue is not complete", key))


def tagged_in_order(packets):
    """Tagged segments of a message follow each other without gaps."""
    state, checked = {}, 0
    for direction, item in all_fpdus(packets):
        if item["qn"] is not None:
            continue
        key = direction + (item["opcode"],)
        here = (item["stag"], item["to"])
        if key in state:
            assert here == state[key], (key, state[key], item)
            checked += 1
        state.pop(key, None)
        if not item["last"]:
            state[key] = (item["stag"], item["to"] + item["length"] - 14)
    enough(checked, 21, "tagged segments that follow another")
    complete(not state, "a message is not complete")


def reads_answered_to_the_sink(packets):
    """Read Responses go to the STag, offset and length the request named."""
    wanted = collections.defaultdict(collections.deque)
    ports = collections.defaultdict(set)
    left, checked = {}, 0
    for direction, _ in all_items(packets):
        ports[direction[0]].add(direction)
    for direction, item in all_fpdus(packets):
        if item["sink_stag"] is not None:
            wanted[direction].append(item)
        elif item["opcode"] == READ_RESPONSE:
            asker = next(d for d in ports[direction[0]] if d != direction)
            request = wanted[asker][0]
            done = left.setdefault(asker, 0)
            assert item["stag"] == request["sink_stag"], (item, request)
            assert item["to"] == request["sink_to"] + done, (item, request)
            left[asker] += item["length"] - 14
            if item["last"]:
                assert left.pop(asker) == request["read_size"], request
                wanted[asker].popleft()
                checked += 1
    enough(checked, 10, "answered Reads")
    complete(not any(wanted.values()), "a request was not answered")


def atomics_answered(packets):
    """Requests of both kinds, each answered in order with its own identifier."""
    asked, kinds = collections.defaultdict(collections.deque), collections.Counter()
    answered = 0
    for direction, item in all_fpdus(packets):
        if item["opcode"] == ATOMIC_REQUEST:
            asked[direction[0]].append(item)
            kinds[item["atomic"]["atomic.opcode"]] += 1
            assert item["qn"] == 1 and item["last"], item
        elif item["opcode"] == ATOMIC_RESPONSE:
            request = asked[direction[0]].popleft()
            assert item["qn"] == 3 and item["last"], item
            assert item["atomic"]["atomic.original_request_identifier"] == \
                request["atomic"]["atomic.request_identifier"], (request, item)
            answered += 1
    print(dict(kinds))
    enough(kinds[0] + kinds[2], 40, "atomics")
    complete(kinds[0] >= 20 and kinds[2] >= 20, kinds)
    complete(answered == kinds[0] + kinds[2] and not any(asked.values()), "one is not answered")


def initiator_first(packets):
    """No FPDU of the responder before the initiator's first."""
    initiator, opened = {}, set()
    for direction, item in all_items(packets):
        if item["kind"] == "request":
            initiator[direction[0]] = direction
        elif item["kind"] == "fpdu":
            if direction[0] not in initiator:
                continue
            if direction == initiator[direction[0]]:
                opened.add(direction[0])
            assert direction[0] in opened, ("responder spoke first", direction)
    enough(len(opened), 1, "streams with FPDUs")


def segments_fit(packets):
    """No FPDU is longer than a TCP segment of an MTU of 1500 allows."""
    longest = 0
    for _, item in all_fpdus(packets):
        body = 2 + item["length"]
        longest = max(longest, body + -body % 4 + 4)
    print("longest FPDU:", longest)
    enough(longest, 1400, "bytes of an FPDU")
    assert longest <= 1460, longest


def packets_end_on_fpdus(packets):
    """TCP segments begin and end with FPDUs, so the receiver never waits."""
    odd = 0
    for packet in packets:
        size = 0
        for item in packet["items"]:
            if item["kind"] == "fpdu":
                body = 2 + item["length"]
                size += body + -body % 4 + 4
            else:
                size += 20 + item["pdlength"]
        odd += size != packet["bytes"]
    print(odd, "of", len(packets), "packets are not whole FPDUs")
    # A push cut short by a full socket is allowed to, but must stay rare.
    assert odd * 20 <= len(packets)


# --- do the judges object? -----------------------------------------------------------

def first(packets, **match):
    """The first segment of which every field named differs from None and matches."""
    for _, item in all_fpdus(packets):
        if all(item[k] is not None and v(item[k]) for k, v in match.items()):
            return item
    raise AssertionError("nothing to corrupt: %s" % match)


def anything(_):
    return True


def corrupt(field, value, **match):
    def alter(packets):
        item = first(packets, **(match or {field: anything}))
        item[field] = value(item[field])
    return alter


def lose(judged, number):
    """One of the packets with FPDUs is not there."""
    def alter(packets):
        chosen = [p for p in packets if any(judged(i) for i in p["items"])]
        packets.remove(chosen[number])
    return alter


def responder_sends_first(packets):
    start = next(n for n, p in enumerate(packets) if any(i["kind"] == "reply" for i in p["items"]))
    found = next(p for p in packets[start + 1:]
                 if p["direction"] == packets[start]["direction"] and p["items"])
    packets.remove(found)
    packets.insert(start + 1, found)


def cut_anywhere(packets):
    """Now and then TCP takes the last bytes of an FPDU along with what follows."""
    for one, two in list(zip(packets, packets[1:]))[::20]:
        one["bytes"] -= 3
        two["bytes"] += 3


def answer_another(packets):
    item = next(i for _, i in all_fpdus(packets) if i["opcode"] == ATOMIC_RESPONSE)
    item["atomic"]["atomic.original_request_identifier"] ^= 1


def frame(field, value):
    def alter(packets):
        item = next(i for _, i in all_items(packets) if i["kind"] == "reply")
        item[field] = value
    return alter


def is_response(opcode):
    return opcode == READ_RESPONSE


CORRUPTED = (
    (crcs_good, corrupt("crc", lambda v: "bad")),
    (crcs_good, corrupt("crc", lambda v: "?")),
    (every_byte_decoded, corrupt("length", lambda v: v + 4)),
    (every_byte_decoded, lambda packets: packets[5].update(bytes=packets[5]["bytes"] + 1)),
    (messages_in_order, corrupt("msn", lambda v: v + 1)),
    (messages_in_order, corrupt("msn", lambda v: 0)),
    (messages_in_order, corrupt("mo", lambda v: v + 4)),
    (messages_in_order, corrupt("last", lambda v: 0, msn=anything)),
    (messages_in_order, corrupt("last", lambda v: 1, mo=lambda v: v > 0, last=lambda v: not v)),
    (messages_in_order, lose(lambda i: i["kind"] == "fpdu" and i["qn"] == 0, 3)),
    (tagged_in_order, corrupt("last", lambda v: 0, to=anything, last=bool)),
    (tagged_in_order, corrupt("to", lambda v: v + 1, to=anything, last=lambda v: not v)),
    (tagged_in_order, lose(lambda i: i["kind"] == "fpdu" and i["stag"] is not None
                           and not i["last"], 2)),
    (reads_answered_to_the_sink, corrupt("stag", lambda v: v ^ 1, opcode=is_response)),
    (reads_answered_to_the_sink, corrupt("to", lambda v: v + 1, opcode=is_response)),
    (reads_answered_to_the_sink, corrupt("length", lambda v: v - 1, opcode=is_response)),
    (reads_answered_to_the_sink, corrupt("last", lambda v: 1, opcode=is_response,
                                       last=lambda v: not v)),
    (reads_answered_to_the_sink, corrupt("sink_stag", lambda v: v + 1)),
    (initiator_first, responder_sends_first),
    (start_frames_well_formed, frame("crc_flag", 0)),
    (start_frames_well_formed, frame("rej_flag", 1)),
    (start_frames_well_formed, frame("rev", 0)),
    (segments_fit, corrupt("length", lambda v: 1500)),
    (packets_end_on_fpdus, cut_anywhere),
    (atomics_answered, answer_another),
    (atomics_answered, lose(lambda i: i["kind"] == "fpdu" and i["opcode"] == ATOMIC_RESPONSE, 1)),
)


def judges_object(packets):
    """Every judge accepts this very capture, and finds what is corrupted for it there."""
    for judge in dict.fromkeys(judge for judge, _ in CORRUPTED):
        judge(copy.deepcopy(packets))
    for number, (judge, alter) in enumerate(CORRUPTED):
        corrupted = copy.deepcopy(packets)
        alter(corrupted)
        try:
            judge(corrupted)
        except (AssertionError, IndexError):
            continue
        raise SystemExit("%s does not object to alteration %d" % (judge.__name__, number))


def main(argv):
    if len(argv) < 3 or argv[1] != "decode" and not callable(globals().get(argv[1])):
        sys.exit(__doc__.strip())
    if argv[1] == "decode":
        decode(argv[2], argv[3])
        return
    with open(argv[2], encoding="ascii") as f:
        packets = json.load(f)
    try:
        globals()[argv[1]](packets)
    except AssertionError as error:
        sys.exit(f"{argv[1]}: {error}")


if __name__ == "__main__":
    main(sys.argv)
