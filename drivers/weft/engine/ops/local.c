// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Requests without a message: Local Invalidate, Bind, Fast-Register. They run in
 * send queue order, at the moment they would have been sent.
 */
#include "engine/ops/op.h"

#include "engine/state/stream.h"
#include "mem/mr_ops.h"
#include "ring/sendq.h"

/* Holding no pin we may sleep, so copies under way are waited for. */
enum weft_fault weft_local_inv(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msgs)
{
	struct weft_mem_region *busy = NULL;
	enum weft_fault fault;

	fault = weft_mem_invalidate(&st->tx.mem, swr->wqe.rkey, false, &busy);
	if (busy)
		weft_mem_quiesce(busy);
	return fault;
}

enum weft_fault weft_local_bind(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msgs)
{
	const struct weft_mem_binding req = {
		.addr = swr->wqe.bind.addr,
		.length = swr->wqe.bind.length,
		.lkey = swr->wqe.bind.mr_lkey,
		.access = swr->wqe.bind.access,
		.window = swr->wqe.bind.mw_rkey,
		.stag = swr->wqe.rkey,
	};

	return weft_mem_bind(&st->tx.mem, &req);
}

enum weft_fault weft_local_register(struct weft_stream *st, struct weft_swr *swr,
				    struct weft_msg *msgs)
{
	if (!swr->kernel)
		return WEFT_FAULT_LOCAL_QP_OP;
	return weft_mem_register(&st->tx.mem, swr->kernel, swr->wqe.rkey, swr->wqe.bind.access);
}
