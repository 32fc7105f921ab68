/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Geometry of FPDUs in a stream: lengths, padding, where markers stand. Nothing
 * here holds bytes; it says what the next run of them is. RFC 5044, 4.
 */
#ifndef WEFT_PROTO_MPA_FRAME_H
#define WEFT_PROTO_MPA_FRAME_H

#include "proto/fault.h"
#include "proto/wire.h"

u32 weft_mpa_mulpdu(u32 emss, bool markers);

static inline u32 weft_mpa_pad(u32 ulpdu_len)
{
	return -(WEFT_MPA_LEN_BYTES + ulpdu_len) & 3;
}

/* Bytes of an FPDU without markers: length, ULPDU, pad, CRC. */
static inline u32 weft_mpa_bare_len(u32 ulpdu_len)
{
	return WEFT_MPA_LEN_BYTES + ulpdu_len + weft_mpa_pad(ulpdu_len) + WEFT_MPA_CRC_BYTES;
}

/* The same with the markers it owns when it starts at stream position @pos. */
u32 weft_mpa_wire_len(u32 ulpdu_len, u32 pos, bool markers);

enum weft_mpa_run {
	WEFT_RUN_MARKER,	/* 4 bytes */
	WEFT_RUN_LENGTH,	/* the 2 bytes of ULPDU_Length */
	WEFT_RUN_ULPDU,
	WEFT_RUN_PAD,
	WEFT_RUN_CRC,
	WEFT_RUN_END,		/* the FPDU is complete */
};

/**
 * struct weft_mpa_cursor - a walk over the bytes of one FPDU
 * @markers: the direction carries markers
 * @pos: stream position of the next byte, any origin that is 0 modulo 512
 * @start: stream position of the length field
 * @ulpdu_len: of this FPDU; a reader sets it once it has passed the length
 * @at: bytes of length, ULPDU, pad and CRC passed so far (markers not counted)
 */
struct weft_mpa_cursor {
	bool markers;
	u32 pos;
	u32 start;
	u32 ulpdu_len;
	u32 at;
};

void weft_mpa_cursor_init(struct weft_mpa_cursor *c, u32 pos, u32 ulpdu_len, bool markers);

/**
 * weft_mpa_cursor_run - what the next bytes are
 * @c: the walk
 * @len: set to how many of them stand together
 *
 * A MARKER run must be passed as a whole; others may be passed in pieces.
 */
enum weft_mpa_run weft_mpa_cursor_run(const struct weft_mpa_cursor *c, u32 *len);
void weft_mpa_cursor_pass(struct weft_mpa_cursor *c, u32 len);

/* FPDUPTR for the marker that cursor stands at (RFC 5044, 4.3). */
u16 weft_mpa_cursor_ptr(const struct weft_mpa_cursor *c);
void weft_mpa_marker_store(u16 ptr, u8 *out);
bool weft_mpa_marker_ok(const struct weft_mpa_cursor *c, const u8 *marker);

#endif
