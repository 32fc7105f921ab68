#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Corpora of the fuzz targets, and the comparison with the wire peer. For scripts/fuzz.

fuzz.py seeds DIRECTORY             make the seeds again: a table for each target
fuzz.py unpack DIRECTORY TO         a file for each seed: TO/TARGET/NAME
fuzz.py compare REPLAY TARGET MUTATIONS SEED FILE...
                                    both sides judge the files, and mutations of them
"""

import pathlib
import random
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from wirepeer import ddp, judge, mpa, rdmap  # noqa: E402  pylint: disable=wrong-import-position

VECTORS = pathlib.Path(__file__).resolve().parent.parent / "wirepeer" / "vectors.tsv"
SEED_MAX = 1000


def vectors(*kinds):
    for line in VECTORS.read_text(encoding="ascii").splitlines():
        name, kind, *rest = (line + "\t\t").split("\t")
        if kind in kinds:
            yield name, bytes.fromhex(rest[0])


# --- seeds ----------------------------------------------------------------------------


def start_frames():
    wishes = bytes([0xFF, 0, 0, 8, 0, 0, 8, 0, 0, 16, 0, 0])
    for name, wire in vectors("mpa"):
        yield name, bytes(["req" in name]) + wishes + wire
    for bits in range(32):
        e = mpa.Enhanced(bits & 3, 3 - (bits & 3), *((bits >> n) & 1 for n in range(1, 5)))
        fields = dict(m=bits & 1, c=bits >> 1 & 1, rev=2, enhanced=e, pd=bytes(bits))
        request = bits & 1
        frame = mpa.request(**fields) if request else mpa.reply(r=bits >> 4, **fields)
        yield "enhanced_%d" % bits, bytes([request]) + wishes + frame.build()


def streams():
    for name, wire in vectors("fpdu", "stream"):
        pos = {"mk_inside_second_fpdu": 492, "mk_example_16": 500}.get(name, 0)
        yield name, bytes([name.startswith("mk_"), 0, 0, pos >> 8, pos & 255]) + wire


def buffers():
    rng = random.Random(5044)
    for flags in range(0, 64, 3):
        framer = mpa.Framer(bool(flags & 2), bool(flags & 1))
        sizes = rng.choice(((0, 1, 14, 30), (200, 200, 200), (18, 500, 4), (90, 90, 90, 90, 91)))
        wire = b"".join(framer.frame(rng.randbytes(n)) for n in sizes)
        yield "sizes_%d" % flags, bytes([flags]) + rng.randbytes(2) + wire
    for name, wire in vectors("fpdu"):
        if not name.startswith("mk_"):
            yield name, bytes([name != "send_24_crc_off", 1, 1]) + wire


def segments():
    def entry(ulpdu):
        return struct.pack(">HH", len(ulpdu), 70) + ulpdu

    for name, wire in vectors("fpdu"):
        if not name.startswith("mk_"):
            size = struct.unpack(">H", wire[:2])[0]
            yield name, entry(wire[2:2 + size])
    yield "in_order", b"".join(entry(u) for u in (
        ddp.untagged(3, 0, 1, payload=b"abcd", last=False),
        ddp.tagged(0, 1, 2, b"efgh", last=False),
        ddp.untagged(3, 0, 1, mo=4, payload=b"ijkl"),
        ddp.untagged(1, 1, 1, payload=rdmap.read_request(1, 2, 3, 4, 5)),
        ddp.untagged(10, 1, 2, payload=rdmap.atomic_request(2, 1, 4, 8, 5, 6, 7, 8)),
        ddp.tagged(0, 1, 6, b"mnop"),
        ddp.untagged(8, 0, 2, payload=bytes(8)),
        ddp.untagged(7, 2, 1, payload=rdmap.Terminate(1, 1, 2, 14, ddp.tagged(0, 1, 2)).build())))


def terminates():
    header = ddp.untagged(1, 1, 1)
    request = rdmap.read_request(1, 2, 3, 4, 5)
    for number, fields in enumerate((
            (0, 1, 0, 46, header, request), (1, 1, 3, 30, ddp.tagged(0, 7, 8)), (2, 0, 2),
            (1, 2, 2, 42, header), (0, 2, 7, 70, header), (0, 0, 0))):
        yield "term_%d" % number, bytes([number * 5, 46]) + rdmap.Terminate(*fields).build()


def private_data():
    def hello(qpn, peer, rq, sq, known=1, version=1, ext=1, magic=b"WFTQ"):
        return magic + struct.pack(">BBHIIII", version, known, ext, qpn, peer, rq, sq)

    own = struct.pack(">IIIIB", 5, 6, 7, 8, 1)
    for name, wire in (("match", hello(6, 5, 8, 7)), ("no_psn", hello(6, 5, 8, 0, 0)),
                       ("other_peer", hello(6, 9, 8, 7)), ("other_psn", hello(6, 5, 9, 7)),
                       ("version", hello(6, 5, 8, 7, version=2)), ("short", hello(6, 5, 8, 7)[:20]),
                       ("wide", hello(1 << 24, 5, 8, 7)), ("magic", hello(6, 5, 8, 7, magic=b"WFTR")),
                       ("reject", b"WFTQ\1\5\0\0"), ("two_gids", bytes(15) + b"\1" + bytes(15) + b"\2")):
        yield name, own + wire


# Scripts for the engine: host/fuzz/stream.c has the language.
START = b"\1"
SETTLE, DOORBELL = b"\x0b", b"\x08"


def choices(initiator=0, crc=0, markers_tx=0, markers_rx=0, kernel=0, direct=0, limit=0, rtr=0,
            ird=3, ord=3, mss=0, rnr=1, sq_poll=0, atomics=1, doorbells=1, defers=0):
    return bytes([initiator | crc << 1 | markers_tx << 2 | markers_rx << 3 | kernel << 4 |
                  direct << 5 | limit << 6, rtr | ird << 2 | ord << 4,
                  mss | rnr << 3 | sq_poll << 4, atomics | doorbells << 1 | defers << 2,
                  0, 0, 0, 0]) + START


def fpdu(opcode, *operands, shape=0, flags=0):
    return bytes([0, opcode | flags, *operands, shape])


def region(which, at=0):
    return (which, at >> 8 & 255, at & 255)


def receive(which=0, at=0, size=8):
    return bytes([7, 1, *region(which, at), size])


def request(opcode, flags=1, target=0, *sges):
    return bytes([5, opcode, flags, target << 4 | len(sges) // 4, *sges])


def local(which=0, at=0, size=4):
    return region(which, at) + (size,)


def ack(units=255):
    return bytes([13, units])


def scripts():
    send = fpdu(rdmap.SEND, 4)
    write = fpdu(rdmap.WRITE, *region(0, 16), 4)
    read = fpdu(rdmap.READ_REQ, *region(0, 64), 1, 0)
    atomic = fpdu(rdmap.ATOMIC_REQ, 0, *region(0, 0), 3)
    read_response = fpdu(rdmap.READ_RESP, 255, 255)
    atomic_response = fpdu(rdmap.ATOMIC_RESP)
    close, abort = b"\x11\0", b"\x11\1"
    plain = {
        "send_in": receive() + send,
        "send_late": send + receive() + DOORBELL + SETTLE,
        "send_timeout": send + bytes([12, 12]) + SETTLE,
        "send_inv": receive() + fpdu(rdmap.SEND_INV, 4, 2),
        "send_inv_busy": bytes([18, 0x22]) + receive() + fpdu(rdmap.SEND_INV, 4, 2) + SETTLE,
        "write_in": write * 3,
        "write_refused": fpdu(rdmap.WRITE, *region(3), 4) + SETTLE + ack(),
        "write_imm": receive() + write + fpdu(rdmap.IMM),
        "read_in": read * 2 + ack() + SETTLE,
        "read_refused": read + fpdu(rdmap.READ_REQ, *region(3), 1, 0) + SETTLE,
        "read_too_many": b"\x0e\0" + read * 5 + SETTLE,
        "read_too_many_at_once": b"\x0e\0" + bytes([2, 7] + [1, *region(0, 64), 0, 8] * 8 + [0]) +
                                 b"\x0e\xff" + ack() + SETTLE,
        "atomic_in": atomic + ack() + fpdu(rdmap.ATOMIC_REQ, 2, *region(0, 8), 3),
        "terminate_in": fpdu(rdmap.TERMINATE, 0x11, 0, 0) + SETTLE,
        "many": bytes([2, 3, 0, *region(0), 8, 0, *region(0, 128), 8, 3, 2, 3, 3, 0x51]) + receive(),
        "raw": bytes([3, 24]) + bytes(24) + b"\0",
        "cut_short": fpdu(rdmap.SEND, 4, 9, flags=0x40) + SETTLE,
        "bad_crc": fpdu(rdmap.SEND, 4, flags=0x80) + SETTLE + b"\x0f",
        "fin": receive() + send + b"\x0f" + SETTLE,
        "reset": receive() + b"\x10\0" + SETTLE,
        "overwritten": request(0, 1, 0, *local()) + bytes([20, 0, 0, 0, 255, 255, 255, 255]) + DOORBELL,
    }
    out = {
        "send_out": request(0, 1, 0, *local()) + DOORBELL + ack(),
        "send_inline": bytes([5, 0, 9, 32]) + DOORBELL + ack(),
        "send_long": request(0, 1, 0, *local(0, 0, 100), *local(1, 0, 30)) + DOORBELL + ack() * 2,
        "write_out": request(2, 1, 0, *local(0, 0, 200)) + DOORBELL + ack() * 3,
        "write_imm_out": request(3, 1, 0, *local()) + DOORBELL + ack(),
        "read_out": request(4, 1, 0, *local(0, 0, 20)) + DOORBELL + ack() + read_response,
        "read_fenced": request(4, 1, 0, *local()) + request(0, 5, 0, *local()) + DOORBELL + ack() +
                       read_response + SETTLE,
        "read_wrong": request(4, 1, 0, *local()) + DOORBELL + read_response[:1] + b"\x22\xff\xff\7\1\0",
        "atomic_out": request(5, 1, 0, *local(0, 0, 8)) + DOORBELL + ack() + atomic_response,
        "invalidate": request(7, 1, 2) + DOORBELL,
        "bind": bytes([5, 8, 1, 0, 0, 1, 0, 0, 4, 15]) + DOORBELL,
        "bound_and_destroyed": (bytes([5, 8, 1, 0, 0, 1, 0, 0, 4, 15]) + DOORBELL + b"\x12\0" +
                                fpdu(rdmap.WRITE, 4, 0, 0, 2) + SETTLE),
        "bound_and_invalidated": (bytes([5, 8, 1, 0, 0, 1, 0, 0, 4, 15]) + DOORBELL + receive() +
                                  fpdu(rdmap.SEND_INV, 1, 4) + b"\x12\0" +
                                  fpdu(rdmap.WRITE, 4, 0, 0, 2) + SETTLE),
        "no_right": request(4, 1, 0, *local(3)) + DOORBELL + SETTLE,
        "close": request(0, 1, 0, *local()) + DOORBELL + close + SETTLE + ack() + b"\x0f" + SETTLE,
        "abort": request(2, 1, 0, *local(0, 0, 200)) + DOORBELL + abort + SETTLE,
        "no_room": b"\x0e\0" + request(2, 1, 0, *local(0, 0, 100)) + DOORBELL + ack() + b"\x0e\x40" +
                   ack() + SETTLE,
        "no_memory": b"\x16\3" + request(0, 1, 0, *local()) + DOORBELL + b"\x0c\x0d" + SETTLE,
        "again": abort + SETTLE + b"\x17" + request(0, 1, 0, *local()) + DOORBELL,
        "destroyed": request(4, 1, 0, *local()) + DOORBELL + b"\x12\0" + ack() + read_response + SETTLE,
    }
    for name, script in plain.items():
        yield name, choices() + script
        yield name + "_crc", choices(crc=1, kernel=1, ird=2) + script
    for name, script in out.items():
        yield name, choices(initiator=1) + script
        yield name + "_mk", choices(initiator=1, crc=1, markers_tx=1, markers_rx=1, mss=2) + script
    yield "rtr_write", choices(rtr=2) + fpdu(rdmap.WRITE, *region(0), 0) + plain["read_in"]
    yield "rtr_read_out", choices(initiator=1, rtr=3, ord=0) + SETTLE + read_response
    # RTS with fewer requests than agreed on, while the RTR Read is still to be sent
    yield "rtr_read_limited", choices(initiator=1, rtr=3, ord=0) + b"\x18\0" + SETTLE
    yield "kernel_reg", choices(initiator=1, kernel=1) + request(7, 1, 2) + request(11, 1, 2) + SETTLE
    yield "kernel_read_inv", (choices(initiator=1, kernel=1) + request(10, 1, 0, *local(2)) +
                              SETTLE + read_response)
    yield "direct_imm", choices(direct=1) + receive() + fpdu(12, 4) + b"\x10\1" + SETTLE
    yield "segments_of_pages", (choices(initiator=1, mss=6) + request(2, 1, 0, *local(0, 0, 180)) +
                                DOORBELL + ack() * 4)
    # The page fragment ends within the second of two FPDUs that are staged together, and there is
    # no other: in front of a marker, behind one, without any. What follows shows the gap.
    short, wide = request(0, 1, 0, *local(0, 0, 1)), request(2, 1, 0, *local(0, 0, 190))
    rest = DOORBELL + SETTLE + ack() * 2 + wide + DOORBELL + SETTLE + ack() * 4 + SETTLE
    marked = choices(initiator=1, crc=1, markers_tx=1, mss=4)
    yield "no_memory_for_a_marker", marked + wide * 2 + b"\x16\3" + rest
    yield "no_memory_behind_a_marker", (marked + short + DOORBELL + SETTLE + ack() + wide * 2 +
                                        b"\x16\2" + rest)
    yield "no_memory_amid_bytes", (choices(initiator=1, crc=1, mss=4) + wide * 2 + b"\x16\3" +
                                   rest)
    yield "sq_polled", (choices(initiator=1, sq_poll=1, defers=1) + request(0, 1, 0, *local()) + DOORBELL +
                      request(0, 1, 0, *local()) + bytes([12, 4]) * 4 + SETTLE)
    yield "meanwhile", (choices(initiator=1) + bytes([4, rdmap.WRITE, *region(0), 4, 0]) +
                        request(2, 1, 0, *local(0, 0, 100)) + DOORBELL)


SEEDS = {"mpa_start": start_frames, "mpa_frame": streams, "mpa_rx": buffers, "segment": segments,
         "term": terminates, "direct": private_data, "stream": scripts}


def write_seeds(directory):
    for target, make in SEEDS.items():
        with open(pathlib.Path(directory) / (target + ".tsv"), "w", encoding="ascii") as out:
            out.write("# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause\n"
                      "# name, input; made by scripts/fuzz --seeds, and by hand\n")
            for name, data in make():
                if len(data) <= SEED_MAX:
                    out.write("%s\t%s\n" % (name, data.hex()))


def unpack(directory, to):
    for table in sorted(pathlib.Path(directory).glob("*.tsv")):
        where = pathlib.Path(to) / table.stem
        where.mkdir(parents=True, exist_ok=True)
        for line in table.read_text(encoding="ascii").splitlines():
            if not line.startswith("#"):
                name, data = (line + "\t").split("\t")[:2]
                (where / name).write_bytes(bytes.fromhex(data))


# --- comparison -----------------------------------------------------------------------


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(6)
        if how == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif how == 1 and data:
            data[at % len(data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif how == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 5))
        elif how == 3:
            del data[at:at + rng.randrange(1, 5)]
        elif how == 4:
            del data[at:]
        else:
            data += data[at:]
    return bytes(data[:4096])


def inputs(rng, files, mutations):
    corpus = [pathlib.Path(name).read_bytes() for name in files]
    yield from corpus
    for _ in range(mutations):
        yield mutated(rng, rng.choice(corpus))


def prepared(target, data):
    """CRC that a target mends by itself the peer would have to mend as well."""
    if target == "mpa_rx" and data:
        data = bytes([data[0] & ~0x10]) + data[1:]
    return data


def replayed(replay, batch):
    done = subprocess.run([replay], input=b"".join(struct.pack(">I", len(d)) + d for d in batch),
                          stdout=subprocess.PIPE, check=False)
    lines = done.stdout.decode("ascii").split("\n")
    if done.returncode or len(lines) != len(batch) + 1:
        sys.exit("%s: status %d at input %s" % (
            replay, done.returncode, batch[min(len(lines), len(batch)) - 1].hex()))
    return lines


def differs(target, data, seen):
    if target == "stream":
        return judge.stream(data, seen)
    due = judge.TARGETS[target](data)
    return "" if seen == due else "the driver: %s\nthe peer:   %s" % (seen, due)


def compare(replay, target, mutations, seed, files):
    rng = random.Random(int(seed))
    batch, compared = [], 0
    for data in inputs(rng, files, int(mutations)):
        batch.append(prepared(target, data))
        if len(batch) == 1000:
            compared += compare_batch(replay, target, batch)
            batch = []
    compared += compare_batch(replay, target, batch)
    print("%s: %d inputs, both sides agree (seed %s)" % (target, compared, seed))


def compare_batch(replay, target, batch):
    if batch:
        for data, seen in zip(batch, replayed(replay, batch)):
            difference = differs(target, data, seen)
            if difference:
                sys.exit("%s: input %s\n%s" % (target, data.hex(), difference))
    return len(batch)


def main():
    what, *args = sys.argv[1:] or [""]
    if what == "seeds" and len(args) == 1:
        write_seeds(*args)
    elif what == "unpack" and len(args) == 2:
        unpack(*args)
    elif what == "compare" and len(args) >= 4:
        compare(*args[:4], args[4:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
