#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Turn the wire vectors into C tables: vectors.py | vectors_to_c.py > vectors.h

Everything the tables say beside the bytes themselves (where a ULPDU lies in a
stream with markers, what a header says) is decoded here once more and compared
with the fields of the vectors, so the tables are a second reading of the wire
and owe nothing to the code under test.
"""

import json
import struct
import sys

HEAD = """\
/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the wire looks like, byte by byte. Made by vectors_to_c.py: change its
 * source and run it again, an edit here is lost.
 */
#ifndef WEFT_KUNIT_VECTORS_H
#define WEFT_KUNIT_VECTORS_H

/* RFC 3720, B.4 and the usual check value: @wire in the order of RFC 5044, 4.4. */
struct weft_vec_crc {
	const char *name;
	const void *data;
	u32 len;
	u32 crc;
	const void *wire;
};

/* RFC 5044, 4.5. */
struct weft_vec_mulpdu {
	const char *name;
	u32 emss;
	u32 plain;
	u32 marked;
};

/* RFC 7306, 5.1.1. */
struct weft_vec_fetch_add {
	const char *name;
	u64 original;
	u64 add;
	u64 mask;
	u64 result;
};

/* RFC 7306, 5.1.2. */
struct weft_vec_cmp_swap {
	const char *name;
	u64 original;
	u64 compare;
	u64 compare_mask;
	u64 swap;
	u64 swap_mask;
	u64 result;
};

/* Start frames: RFC 5044, 7.1.1; RFC 6581, 9. @pd_len counts the enhanced block. */
struct weft_vec_start {
	const char *name;
	const void *wire;
	u32 len;
	bool request;
	bool legal;
	bool markers;
	bool crc;
	bool reject;
	bool enhanced;
	u8 revision;
	u16 pd_len;
	bool p2p;
	bool rtr_send;
	bool rtr_write;
	bool rtr_read;
	u16 ird;
	u16 ord;
};

/* One ULPDU and what its DDP and RDMAP control fields say: RFC 5041, 4. */
struct weft_vec_segment {
	const char *name;
	const void *ulpdu;
	u32 len;
	bool legal;
	bool tagged;
	bool last;
	u8 opcode;
	u32 stag;
	u64 to;
	u32 qn;
	u32 msn;
	u32 mo;
};

struct weft_vec_marker {
	u32 pos;
	u16 ptr;
};

struct weft_vec_fpdu {
	u32 pos;
	u32 len;
	const void *ulpdu;
	u32 ulpdu_len;
};

/* One to two FPDUs from stream position @pos on: RFC 5044, 4. */
struct weft_vec_stream {
	const char *name;
	const void *wire;
	u32 len;
	u32 pos;
	bool markers_on;
	bool crc_on;
	u32 fpdus;
	struct weft_vec_fpdu fpdu[2];
	u32 markers;
	struct weft_vec_marker marker[3];
};

/* RFC 5040, 4.4. */
struct weft_vec_read_req {
	const char *name;
	const void *ulpdu;
	u32 sink_stag;
	u64 sink_to;
	u32 size;
	u32 src_stag;
	u64 src_to;
};

/* RFC 7306, 5.2.1. */
struct weft_vec_atomic_req {
	const char *name;
	const void *ulpdu;
	u8 code;
	u32 id;
	u32 stag;
	u64 to;
	u64 data;
	u64 mask;
	u64 compare;
	u64 compare_mask;
};

/* RFC 7306, 5.2.2. */
struct weft_vec_atomic_resp {
	const char *name;
	const void *ulpdu;
	u32 id;
	u64 original;
};

/* RFC 5040, 4.8: @payload begins behind the DDP header. */
struct weft_vec_term {
	const char *name;
	const void *payload;
	u32 len;
	u8 layer;
	u8 etype;
	u8 ecode;
	bool has_ddp;
	bool has_rdmap;
	u16 segment_len;
};
"""

TAIL = "\n#endif\n"


# How a value is written in C.

def byte_string(data, column):
    """A string literal of lines up to 100 columns, later ones aligned to the first."""
    per_line = 16 if column <= 32 else 12
    lines = ['"' + "".join(f"\\x{b:02x}" for b in data[i:i + per_line]) + '"'
             for i in range(0, len(data), per_line)]
    pad = "\t" * (column // 8) + " " * (column % 8)
    return ("\n" + pad).join(lines)


def literal(value, column):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bytes):
        return byte_string(value, column)
    if value > 0xffffffff:
        return f"0x{value:016x}ULL"
    return str(value) if value < 65536 else f"0x{value:08x}"


def members(row, depth):
    """Lines of a braced initialiser; members that are zero stay out."""
    tabs = "\t" * depth
    for key, value in row.items():
        if isinstance(value, list) and value:
            yield f"{tabs}.{key} = {{"
            for item in value:
                yield f"{tabs}\t{{"
                yield from members(item, depth + 2)
                yield f"{tabs}\t}},"
            yield f"{tabs}}},"
        elif value:
            start = f".{key} = "
            yield f"{tabs}{start}{literal(value, depth * 8 + len(start))},"


def table(kind, name, rows):
    yield ""
    yield f"static const struct weft_vec_{kind} weft_vec_{name}[] __maybe_unused = {{"
    for row in rows:
        yield "\t{"
        yield from members(row, 2)
        yield "\t},"
    yield "};"


# How the wire is read.

def number(text):
    return int(text, 16)


def split_fpdu(wire, pos, markers):
    """One FPDU at the head of wire: its length, its ULPDU, its markers."""
    at, start, plain, found, need = 0, None, b"", [], 2
    while len(plain) < need:
        if markers and (pos + at) % 512 == 0:
            found.append({"pos": pos + at, "ptr": int.from_bytes(wire[at + 2:at + 4], "big")})
            at += 4
            continue
        if start is None:
            start = pos + at
        plain += wire[at:at + 1]
        at += 1
        if len(plain) == 2:
            ulpdu_len = int.from_bytes(plain, "big")
            need = (2 + ulpdu_len + 3) // 4 * 4 + 4
    for marker in found:
        assert marker["ptr"] == max(0, marker["pos"] - start)
    return at, plain[2:2 + ulpdu_len], found


def stream(vector):
    fields, wire = vector["fields"], bytes.fromhex(vector["hex"])
    first = fields.get("start_position", 0)
    at, fpdus, markers = 0, [], []
    while at < len(wire):
        used, ulpdu, found = split_fpdu(wire[at:], first + at, fields["markers"])
        fpdus.append({"pos": first + at, "len": used, "ulpdu": ulpdu,
                      "ulpdu_len": len(ulpdu)})
        markers += found
        at += used
    assert at == len(wire) == vector["length"]
    if "ulpdu" in fields:
        assert fpdus[0]["ulpdu"].hex() == fields["ulpdu"]
    for key, values in (("fpdu_positions", [f["pos"] for f in fpdus]),
                        ("fpdu_lengths", [f["len"] for f in fpdus]),
                        ("ulpdu_lengths", [f["ulpdu_len"] for f in fpdus]),
                        ("marker_positions_and_fpduptr",
                         [[m["pos"], m["ptr"]] for m in markers])):
        assert fields.get(key, values) == values, vector["name"]
    return {"name": vector["name"], "wire": wire, "len": len(wire), "pos": first,
            "markers_on": fields["markers"], "crc_on": fields.get("crc_enabled", True),
            "fpdus": len(fpdus), "fpdu": fpdus, "markers": len(markers), "marker": markers}


def segment(name, ulpdu):
    ctrl, ulp, stag = struct.unpack(">BBI", ulpdu[:6])
    assert ctrl & 3 == 1 and ulp & 0xc0 == 0x40
    row = {"name": name, "ulpdu": ulpdu, "len": len(ulpdu), "legal": "bad" not in name,
           "tagged": bool(ctrl & 0x80), "last": bool(ctrl & 0x40), "opcode": ulp & 15,
           "stag": stag}
    if row["tagged"]:
        row["to"], = struct.unpack(">Q", ulpdu[6:14])
    else:
        row["qn"], row["msn"], row["mo"] = struct.unpack(">III", ulpdu[6:18])
    return row


def segments(vectors):
    rows = []
    for vector in vectors:
        fpdus, fields = stream(vector)["fpdu"], vector["fields"]
        if vector["name"] == "mk_example_16":       # no DDP segment, framing only
            continue
        for i, fpdu in enumerate(fpdus):
            row = segment(vector["name"] + (f"_{i}" if len(fpdus) > 1 else ""), fpdu["ulpdu"])
            for theirs, ours in (("op", "opcode"), ("qn", "qn"), ("msn", "msn"), ("mo", "mo"),
                                 ("L", "last"), ("T", "tagged"), ("inv_stag", "stag")):
                assert fields.get(theirs, row.get(ours)) == row.get(ours), row["name"]
            rows.append(row)
    return rows


def start_frame(vector):
    wire, fields = bytes.fromhex(vector["hex"]), vector["fields"]
    flags, revision, pd_len = struct.unpack(">BBH", wire[16:20])
    row = {"name": vector["name"], "wire": wire, "len": len(wire),
           "request": wire[:16] == b"MPA ID Req Frame", "legal": "bad" not in vector["name"],
           "markers": bool(flags & 0x80), "crc": bool(flags & 0x40),
           "reject": bool(flags & 0x20), "enhanced": bool(flags & 0x10),
           "revision": revision, "pd_len": pd_len}
    if row["enhanced"]:
        ird, ord_ = struct.unpack(">HH", wire[20:24])
        row |= {"p2p": bool(ird & 0x8000), "rtr_send": bool(ird & 0x4000),
                "rtr_write": bool(ord_ & 0x8000), "rtr_read": bool(ord_ & 0x4000),
                "ird": ird & 0x3fff, "ord": ord_ & 0x3fff}
    for theirs, ours in (("M", "markers"), ("C", "crc"), ("R", "reject"), ("S", "enhanced"),
                         ("rev", "revision"), ("pd_length", "pd_len"), ("A", "p2p"),
                         ("B", "rtr_send"), ("Cflag", "rtr_write"), ("D", "rtr_read"),
                         ("IRD", "ird"), ("ORD", "ord")):
        assert fields.get(theirs, row.get(ours)) == row.get(ours), vector["name"]
    return row


def read_req(name, ulpdu, fields):
    values = struct.unpack(">IQIIQ", ulpdu[18:46])
    row = dict(zip(("sink_stag", "sink_to", "size", "src_stag", "src_to"), values))
    assert all(fields.get(key, row[key]) == row[key] for key in row)
    return {"name": name, "ulpdu": ulpdu, **row}


def atomic_req(name, ulpdu, fields):
    values = struct.unpack(">IIIQQQQQ", ulpdu[18:70])
    row = dict(zip(("code", "id", "stag", "to", "data", "mask", "compare", "compare_mask"),
                   values))
    kind = "swap" if row["code"] else "add"
    assert (row["code"], row["id"], row["stag"], row["to"]) == \
        (fields["aop"], fields["reqid"], fields["stag"], fields["to"])
    assert [row[k] for k in ("data", "mask", "compare", "compare_mask")] == \
        [number(fields[k]) for k in (kind + "_data", kind + "_mask", "cmp_data", "cmp_mask")]
    return {"name": name, "ulpdu": ulpdu, **row}


def atomic_resp(name, ulpdu, fields):
    ident, original = struct.unpack(">IQ", ulpdu[18:30])
    assert (ident, original) == (fields["reqid"], number(fields["original"]))
    return {"name": name, "ulpdu": ulpdu, "id": ident, "original": original}


def term(name, ulpdu, fields):
    payload = ulpdu[18:]
    kind, code, bits = struct.unpack(">BBH", payload[:4])
    row = {"name": name, "payload": payload, "len": len(payload), "layer": kind >> 4,
           "etype": kind & 15, "ecode": code, "has_ddp": bool(bits & 0x4000),
           "has_rdmap": bool(bits & 0x2000)}
    if bits & 0x8000:
        row["segment_len"], = struct.unpack(">H", payload[4:6])
    for theirs, ours in (("layer", "layer"), ("etype", "etype"), ("code", "ecode"),
                         ("D", "has_ddp"), ("R", "has_rdmap"), ("seglen", "segment_len")):
        assert fields.get(theirs, row.get(ours)) == row.get(ours), name
    return row


def messages(vectors, opcode, read):
    return [read(v["name"], bytes.fromhex(v["fields"]["ulpdu"]), v["fields"])
            for v in vectors if v["fields"].get("op") == opcode]


def crc_row(v):
    data = bytes.fromhex(v["input_hex"])
    return {"name": v["name"], "data": data, "len": len(data), "crc": number(v["crc"]),
            "wire": bytes.fromhex(v["bytes_on_the_wire"])}


def numbered(kind, rows, convert):
    return [{"name": f"{kind}_{i}", **{k: convert(x) for k, x in row.items()}}
            for i, row in enumerate(rows)]


def main():
    source = json.load(sys.stdin)
    framed = [v for v in source["vectors"] if v["kind"] != "mpa"]
    lines = list(table("crc", "crc", map(crc_row, source["crc32c"])))
    lines += table("mulpdu", "mulpdu",
                   [{"name": f"emss_{v['emss']}", "emss": v["emss"],
                     "plain": v["no_markers"], "marked": v["markers"]}
                    for v in source["mulpdu"]])
    lines += table("fetch_add", "fetch_add", numbered("fetch_add", source["fetch_add"], number))
    lines += table("cmp_swap", "cmp_swap", numbered("cmp_swap", source["cmp_swap"], number))
    lines += table("start", "start",
                   [start_frame(v) for v in source["vectors"] if v["kind"] == "mpa"])
    lines += table("segment", "segment", segments(framed))
    lines += table("stream", "stream", map(stream, framed))
    lines += table("read_req", "read_req", messages(framed, 1, read_req))
    lines += table("atomic_req", "atomic_req", messages(framed, 10, atomic_req))
    lines += table("atomic_resp", "atomic_resp", messages(framed, 11, atomic_resp))
    lines += table("term", "term", messages(framed, 7, term))
    print(HEAD + "\n".join(lines) + "\n" + TAIL, end="")


if __name__ == "__main__":
    main()
