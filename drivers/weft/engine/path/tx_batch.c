// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A row of segments is one look at memory and one room in the train. Whatever is
 * unusual is left to engine/path/tx_segment.c, which takes them one by one: faults, too, which
 * show there at the segment they belong to.
 */
#include "engine/path/tx_batch.h"

#include <linux/kconfig.h>
#include <linux/minmax.h>

#include "base/counters.h"
#include "engine/path/outgoing.h"
#include "engine/state/stream.h"
#include "net/mpa_tx.h"
#include "proto/hot.h"

/**
 * struct row - segments being staged
 * @sock: where to
 * @hdr: of the next one
 * @ulpdu_len: of each
 * @payload: octets of it
 * @filled: payload octets of the one that has begun
 */
struct row {
	struct weft_mpa_tx *sock;
	struct weft_ddp_hdr hdr;
	u32 ulpdu_len;
	u32 payload;
	u32 filled;
};

static __always_inline void put_header(struct row *row)
{
	u8 *to = row->sock->to;
	u32 len;

	put_unaligned_be16(row->ulpdu_len, to);
	len = weft_ddp_build(&row->hdr, to + WEFT_MPA_LEN_OCTETS);
	weft_mpa_tx_advance(row->sock, WEFT_MPA_LEN_OCTETS + len);
	row->hdr.to += row->payload;
	row->hdr.mo += row->payload;
}

static void put(struct row *row, const u8 *from, u32 len)
{
	while (len) {
		u32 n = min(len, row->payload - row->filled);

		if (!row->filled)
			put_header(row);
		weft_mpa_tx_span_put(row->sock, from, n);
		row->filled += n;
		from += n;
		len -= n;
		if (row->filled == row->payload) {
			weft_mpa_tx_span_put_crc(row->sock);
			row->filled = 0;
		}
	}
}

static enum weft_fault put_piece(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	u32 at, len;

	if (ref->flat) {
		put(arg, ref->flat, ref->len);
		return WEFT_FAULT_NONE;
	}
	for (at = 0; at < ref->len; at += len) {
		const u8 *from = weft_mem_row(ref, at, &len);

		put(arg, from, len);
	}
	return WEFT_FAULT_NONE;
}

static bool has_row(const struct weft_msg *msg)
{
	return !IS_ENABLED(CONFIG_HIGHMEM) && !msg->hdr_len &&
	       (msg->source == WEFT_SRC_SGE || msg->source == WEFT_SRC_STAG);
}

/**
 * weft_bulk_stage - stage as many segments as go in a row
 * @st: stream, tx claim held, with room in its train
 * @msg: the message in hand, weft_bulk_is_worth(); its last segment is never among them
 *
 * Context: process. Return: false if nothing was staged: one by one, then.
 */
bool weft_hot weft_bulk_stage(struct weft_stream *st, struct weft_msg *msg)
{
	struct weft_mpa_tx *sock = &st->tx.sock;
	struct row row = { .sock = sock, .ulpdu_len = sock->mulpdu };
	u32 segs, octets;

	if (!has_row(msg))
		return false;
	row.payload = sock->mulpdu - weft_outgoing_header_len(msg);
	segs = weft_mpa_tx_span_begin(sock, sock->mulpdu,
				      (msg->length - msg->done - 1) / row.payload);
	if (!segs)
		return false;
	octets = segs * row.payload;
	weft_outgoing_header(msg, false, &row.hdr);
	if (weft_outgoing_walk(st, msg, octets, put_piece, &row) != WEFT_FAULT_NONE ||
	    weft_mpa_tx_span_end(sock)) {
		weft_mpa_tx_cancel(sock);
		return false;
	}
	msg->done += octets;
	weft_count_two(st->cfg.counters, WEFT_CTR_TX_SEGS, segs, WEFT_CTR_TX_BYTES, octets);
	return true;
}
