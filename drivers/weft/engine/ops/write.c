// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMA Write, both roles; Write with immediate is a Write and an Immediate Data
 * message. RFC 5040, 5.1.2; RFC 5041, 7.1; RFC 7306, 6.
 */
#include "engine/ops/write.h"

#include "engine/ops/imm.h"
#include "engine/state/stream.h"
#include "mem/access.h"
#include "proto/hot.h"
#include "ring/sendq.h"

enum weft_fault weft_hot weft_write_plan(struct weft_stream *st, struct weft_swr *swr,
					 struct weft_msg *msgs)
{
	msgs->opcode = WEFT_OP_WRITE;
	msgs->source = swr->wqe.flags & WEFT_WRF_INLINE ? WEFT_SRC_INLINE : WEFT_SRC_SGE;
	msgs->length = swr->length;
	msgs->stag = swr->wqe.rkey;
	msgs->to = swr->wqe.remote_addr;
	return weft_ddp_to_wraps(msgs->to, msgs->length) ? WEFT_FAULT_LOCAL_QP_OP : WEFT_FAULT_NONE;
}

enum weft_fault weft_write_imm_plan(struct weft_stream *st, struct weft_swr *swr,
				    struct weft_msg *msgs)
{
	enum weft_fault fault = weft_write_plan(st, swr, &msgs[0]);

	if (fault == WEFT_FAULT_NONE)
		weft_imm_message(st, swr, &msgs[1]);
	return fault;
}

/* An empty Write is a Write, too: @written is that of the last one. */
enum weft_fault weft_hot weft_write_begin(struct weft_stream *st, struct weft_rx_seg *seg)
{
	st->rx.written = 0;
	return WEFT_FAULT_NONE;
}

/* A segment without payload touches nothing and is not checked (RFC 5041, 7.1). */
enum weft_fault weft_hot weft_write_place(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_mem_ref ref;
	enum weft_fault fault;

	if (!seg->payload)
		return WEFT_FAULT_NONE;
	fault = weft_mem_get(&st->rx.mem, seg->ddp.stag, seg->ddp.to, seg->payload,
			     WEFT_MEM_REMOTE_WRITE, &ref);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	st->rx.written += seg->payload;
	return weft_rx_copy(seg, 0, &ref);
}
