// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Geometry of FPDUs in a stream: how long they are, and what each run of bytes
 * is, markers included. RFC 5044, 4.1, 4.3, 4.5.
 *
 * Every FPDU starts on a multiple of 4 and is one long, markers too; so a marker
 * stands in front of an FPDU, behind a word of it, or between PAD and CRC, and
 * never behind the CRC: that one belongs to the next FPDU.
 */
#include "proto/mpa_frame.h"

/* Bytes of FPDUs between the end of a marker and the next marker. */
#define BETWEEN_MARKERS	(WEFT_MPA_MARKER_EVERY - WEFT_MPA_MARKER_BYTES)

/* Bytes of the stream from @pos to the next place for a marker; 0: it is there. */
static u32 to_marker(u32 pos)
{
	return -pos & (WEFT_MPA_MARKER_EVERY - 1);
}

/**
 * weft_mpa_mulpdu - longest ULPDU whose FPDU fits a TCP segment
 * @emss: effective segment size of TCP
 * @markers: the direction carries markers
 */
u32 weft_mpa_mulpdu(u32 emss, bool markers)
{
	u32 overhead = WEFT_MPA_LEN_BYTES + WEFT_MPA_CRC_BYTES + emss % 4;
	u32 places = emss / WEFT_MPA_MARKER_EVERY + !!(emss % WEFT_MPA_MARKER_EVERY);

	if (markers)
		overhead += WEFT_MPA_MARKER_BYTES * places;
	if (emss < WEFT_MPA_MULPDU_MIN + overhead)
		return WEFT_MPA_MULPDU_MIN;
	return min_t(u32, emss - overhead, WEFT_MPA_MULPDU_MAX);
}

/**
 * weft_mpa_wire_len - bytes of an FPDU in the stream
 * @ulpdu_len: ULPDU_Length
 * @pos: stream position it starts at, a marker in front of it included
 * @markers: the direction carries markers
 */
u32 weft_mpa_wire_len(u32 ulpdu_len, u32 pos, bool markers)
{
	u32 bare = weft_mpa_bare_len(ulpdu_len);
	u32 ahead = to_marker(pos);

	if (!markers || bare <= ahead)
		return bare;
	return bare + WEFT_MPA_MARKER_BYTES * (1 + (bare - ahead - 1) / BETWEEN_MARKERS);
}

static bool at_marker(const struct weft_mpa_cursor *c)
{
	return c->markers && !to_marker(c->pos) && c->at < weft_mpa_bare_len(c->ulpdu_len);
}

/**
 * weft_mpa_cursor_init - stand in front of an FPDU
 * @c: the walk
 * @pos: stream position of its first byte, a marker in front of it included
 * @ulpdu_len: ULPDU_Length, or 0 and set in @c once the length run is passed
 * @markers: the direction carries markers
 */
void weft_mpa_cursor_init(struct weft_mpa_cursor *c, u32 pos, u32 ulpdu_len, bool markers)
{
	c->markers = markers;
	c->pos = pos;
	c->start = markers && !to_marker(pos) ? pos + WEFT_MPA_MARKER_BYTES : pos;
	c->ulpdu_len = ulpdu_len;
	c->at = 0;
}

enum weft_mpa_run weft_mpa_cursor_run(const struct weft_mpa_cursor *c, u32 *len)
{
	u32 body = WEFT_MPA_LEN_BYTES + c->ulpdu_len;
	u32 total = weft_mpa_bare_len(c->ulpdu_len);
	enum weft_mpa_run run;
	u32 end;

	if (at_marker(c)) {
		*len = WEFT_MPA_MARKER_BYTES;
		return WEFT_RUN_MARKER;
	}
	if (c->at < WEFT_MPA_LEN_BYTES) {
		run = WEFT_RUN_LENGTH;
		end = WEFT_MPA_LEN_BYTES;
	} else if (c->at < body) {
		run = WEFT_RUN_ULPDU;
		end = body;
	} else if (c->at < total - WEFT_MPA_CRC_BYTES) {
		run = WEFT_RUN_PAD;
		end = total - WEFT_MPA_CRC_BYTES;
	} else {
		run = c->at < total ? WEFT_RUN_CRC : WEFT_RUN_END;
		end = total;
	}
	*len = end - c->at;
	if (c->markers && to_marker(c->pos))
		*len = min_t(u32, *len, to_marker(c->pos));
	return run;
}

/**
 * weft_mpa_cursor_pass - step over bytes of the current run
 * @c: the walk
 * @len: at most what weft_mpa_cursor_run() said; a marker only as a whole
 */
void weft_mpa_cursor_pass(struct weft_mpa_cursor *c, u32 len)
{
	if (!at_marker(c))
		c->at += len;
	c->pos += len;
}

/**
 * weft_mpa_cursor_ptr - FPDUPTR of the marker the cursor stands at
 * @c: the walk
 *
 * Return: 0 in front of the length field, else the distance back to it.
 */
u16 weft_mpa_cursor_ptr(const struct weft_mpa_cursor *c)
{
	return c->at ? (u16)(c->pos - c->start) : 0;
}

/**
 * weft_mpa_marker_store - write a marker
 * @ptr: FPDUPTR
 * @out: WEFT_MPA_MARKER_BYTES
 */
void weft_mpa_marker_store(u16 ptr, u8 *out)
{
	put_unaligned_be16(0, out);
	put_unaligned_be16(ptr, out + 2);
}

/**
 * weft_mpa_marker_ok - does a marker point at this FPDU?
 * @c: a walk that stands at the marker
 * @marker: its bytes; the reserved half and the two low bits are not looked at
 */
bool weft_mpa_marker_ok(const struct weft_mpa_cursor *c, const u8 *marker)
{
	return ((get_unaligned_be16(marker + 2) ^ weft_mpa_cursor_ptr(c)) & ~3U) == 0;
}
