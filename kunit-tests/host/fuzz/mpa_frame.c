// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * An untrusted stream of FPDUs, read with the cursor. Input: one byte of
 * choices, four of position, then the stream.
 */
#include "fuzz.h"
#include "proto/mpa_frame.h"

struct reader {
	struct input in;
	bool markers;
	u32 piece;
	u32 pos;
};

/* What one run of bytes does to a reader that keeps nothing but the length. */
static void take_run(struct reader *r, struct weft_mpa_cursor *c, enum weft_mpa_run run, u32 len)
{
	u8 marker[WEFT_MPA_MARKER_BYTES];
	u32 i;

	for (i = 0; i < len; i++) {
		u8 byte = take(&r->in, 1);

		if (run == WEFT_RUN_MARKER)
			marker[i] = byte;
		if (run == WEFT_RUN_LENGTH)
			c->ulpdu_len |= byte << (c->at + i ? 0 : 8);
	}
	if (run != WEFT_RUN_MARKER)
		return;
	PROMISE(c->pos % WEFT_MPA_MARKER_EVERY == 0);
	if (weft_mpa_marker_ok(c, marker))
		PROMISE((get_unaligned_be16(marker + 2) & ~3) == (weft_mpa_cursor_ptr(c) & ~3));
}

/*
 * The length takes part in every answer of the cursor, so a reader that gets it in
 * pieces keeps it to itself until both bytes are there.
 */
static void read_fpdu(struct reader *r)
{
	u32 start = r->pos, len, ulpdu = 0, total = 0, length = 0;
	struct weft_mpa_cursor c;
	enum weft_mpa_run run;

	weft_mpa_cursor_init(&c, r->pos, 0, r->markers);
	while ((run = weft_mpa_cursor_run(&c, &len)) != WEFT_RUN_END) {
		PROMISE(len && len <= WEFT_MPA_MARKER_EVERY + (r->markers ? 0 : 65535));
		if (run != WEFT_RUN_MARKER && r->piece && r->in.left)
			len = min_t(u32, len, r->piece);
		c.ulpdu_len = run == WEFT_RUN_LENGTH ? length : c.ulpdu_len;
		take_run(r, &c, run, len);
		if (run == WEFT_RUN_LENGTH)
			length = c.ulpdu_len;
		if (run == WEFT_RUN_LENGTH && c.at + len < WEFT_MPA_LEN_BYTES)
			c.ulpdu_len = 0;
		weft_mpa_cursor_pass(&c, len);
		ulpdu += run == WEFT_RUN_ULPDU ? len : 0;
		total += len;
	}
	PROMISE(len == 0);
	PROMISE(ulpdu == c.ulpdu_len && ulpdu <= 65535);
	PROMISE(total == weft_mpa_wire_len(ulpdu, start, r->markers));
	PROMISE(c.pos == start + total && total % 4 == 0);
	r->pos = c.pos;
}

int fuzz_one(const u8 *data, size_t size)
{
	struct reader r = { .in = { data, size } };
	u8 bits = take(&r.in, 1);

	r.markers = bits & 1;
	r.piece = bits >> 1 & 63;
	r.pos = take(&r.in, 4) & ~3U;
	PROMISE(weft_mpa_mulpdu(r.pos, r.markers) >= WEFT_MPA_MULPDU_MIN);
	PROMISE(weft_mpa_mulpdu(r.pos, r.markers) <= WEFT_MPA_MULPDU_MAX);
	while (r.in.left)
		read_fpdu(&r);
	return 0;
}
