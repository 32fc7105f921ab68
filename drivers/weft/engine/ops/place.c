// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The payload of a segment, or of a batch of them, goes to where it belongs.
 */
#include <linux/minmax.h>

#include "base/copy.h"
#include "engine/ops/op.h"
#include "engine/state/stream.h"
#include "mem/access.h"
#include "net/mpa_rx.h"
#include "proto/hot.h"

/* weft_rx_copy() for a row. */
static void copy_spans(const struct weft_rx_seg *seg, u32 done, const struct weft_mem_ref *ref)
{
	const struct weft_ulpdu_span *row = seg->row;
	u32 skip = done % seg->each;
	const u8 *from = row->first + done / seg->each * row->stride + seg->payload_at + skip;
	u32 left = seg->each - skip; /* of the segment at @from */
	u32 len, at, n;

	for (done = 0; done < ref->len; done += len) {
		u8 *to = weft_mem_span(ref, done, &len);

		for (at = 0; at < len; at += n) {
			n = min(len - at, left);
			weft_copy(to + at, from, n);
			from += n;
			left -= n;
			if (!left) {
				from += row->stride - seg->each;
				left = seg->each;
			}
		}
	}
}

/**
 * weft_rx_copy - move some of a segment's payload to where it belongs
 * @seg: the segment
 * @done: bytes of the payload to skip
 * @ref: the memory, granted for writing
 */
enum weft_fault weft_hot weft_rx_copy(const struct weft_rx_seg *seg, u32 done,
				      const struct weft_mem_ref *ref)
{
	u32 from = seg->payload_at + done;
	u32 at, len;

	if (unlikely(seg->row)) {
		copy_spans(seg, done, ref);
		return WEFT_FAULT_NONE;
	}
	for (at = 0; at < ref->len; at += len) {
		u8 *to = weft_mem_span(ref, at, &len);

		if (weft_ulpdu_copy(seg->u, from + at, len, to))
			return WEFT_FAULT_LOCAL_CATASTROPHIC;
	}
	return WEFT_FAULT_NONE;
}

static __always_inline enum weft_fault place_piece(void *arg, u32 done,
						   const struct weft_mem_ref *ref)
{
	return weft_rx_copy(arg, done, ref);
}

/**
 * weft_rx_place - scatter a segment's payload into an own buffer
 * @user: on whose behalf: of the send queue, or of the receive queue
 * @seg: the segment
 * @sge: elements of the work request
 * @num_sge: how many
 * @offset: where in the buffer they make the payload goes; it fits
 */
enum weft_fault weft_hot weft_rx_place(struct weft_mem_user *user, struct weft_rx_seg *seg,
				       const struct weft_sge *sge, u32 num_sge, u32 offset)
{
	if (!seg->payload)
		return WEFT_FAULT_NONE;
	return weft_mem_walk(user, sge, num_sge, offset, seg->payload, WEFT_MEM_LOCAL_WRITE,
			     place_piece, seg);
}
