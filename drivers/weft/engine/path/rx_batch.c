// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Segments within a message differ from the one before in their offset, and in nothing
 * else. Those that lie in a row are put together to one long segment: one look at
 * memory, and one at the message. Whatever is unusual is left to engine/path/rx.c, which takes
 * them one by one: faults, too, which show there at the segment they belong to. So is the
 * last segment of a message, which shows when all of it is there.
 */
#include "engine/path/rx_batch.h"

#include <linux/kconfig.h>
#include <linux/minmax.h>

#include "base/copy.h"
#include "base/counters.h"
#include "engine/ops/op.h"
#include "engine/ops/table.h"
#include "engine/state/stream.h"
#include "mem/access.h"
#include "net/mpa_rx.h"
#include "net/ulpdu_copy.h"
#include "proto/ddp.h"
#include "proto/hot.h"
#include "proto/rdmap.h"

/**
 * weft_rxrow_expect - segments like this one may follow
 * @st: stream
 * @seg: placed, and not the last of its message
 */
void weft_hot weft_rxrow_expect(struct weft_stream *st, const struct weft_rx_seg *seg)
{
	if (IS_ENABLED(CONFIG_HIGHMEM) || !seg->payload)
		return;
	st->rx.like = seg->ddp;
	weft_mpa_rx_expect(&st->rx.sock, seg->u->len);
}

/* The header of the segment behind one like @hdr, @payload octets each. */
static __always_inline void step(struct weft_ddp_hdr *hdr, u32 payload)
{
	hdr->to += payload;
	hdr->mo += payload;
}

/* How many segments of the row continue the message? */
static u32 count_next(const struct weft_ulpdu_span *row, const struct weft_ddp_hdr *like)
{
	struct weft_ddp_hdr next = *like;
	const u8 *octets = row->first;
	u8 expected[WEFT_DDP_UNTAGGED_LEN];
	u32 len, n;

	for (n = 0; n < row->count; n++, octets += row->stride) {
		step(&next, like->payload);
		len = weft_ddp_build(&next, expected);
		if (memcmp(octets, expected, len))
			break;
	}
	return n;
}

static enum weft_fault place(struct weft_stream *st, struct weft_rx_seg *seg)
{
	const struct weft_rx_op *op = weft_rx_op(weft_rdmap_opcode(seg->ddp.ulp));
	struct weft_rx *rx = &st->rx;
	enum weft_fault fault;

	fault = op->place_row(st, seg);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	if (seg->ddp.tagged)
		rx->placed += seg->payload;
	else
		weft_ddp_rx_advance(&rx->ddp, &seg->ddp);
	return WEFT_FAULT_NONE;
}

/**
 * weft_rxrow_take - place segments in a row
 * @owner: stream
 * @row: behind the segment of the last weft_rxrow_expect()
 *
 * Context: owner of rx. Return: how many were placed; the next one goes on its own.
 */
u32 weft_hot weft_rxrow_take(void *owner, const struct weft_ulpdu_span *row)
{
	struct weft_stream *st = owner;
	struct weft_ddp_hdr *like = &st->rx.like;
	struct weft_rx_seg seg __uninitialized;
	u32 n;

	n = weft_rx_goes_on(st) ? count_next(row, like) : 0;
	if (!n)
		return 0;
	seg.row = row;
	seg.each = like->payload;
	seg.payload_at = like->hdr_len;
	seg.payload = n * like->payload;
	seg.batch = st->rx.batch;
	seg.ddp = *like;
	step(&seg.ddp, like->payload);
	seg.ddp.payload = seg.payload;
	if (place(st, &seg) != WEFT_FAULT_NONE)
		return 0;
	step(like, seg.payload);
	weft_count_two(st->cfg.counters, WEFT_CTR_RX_SEGS, n, WEFT_CTR_RX_BYTES, seg.payload);
	weft_count_add(st->cfg.counters, WEFT_CTR_RX_IN_ROWS, n);
	return n;
}
