/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Of a message on its way out: its DDP header, and where its payload is. Each segment
 * comes through here, so it is inline.
 */
#ifndef WEFT_ENGINE_PATH_OUTGOING_H
#define WEFT_ENGINE_PATH_OUTGOING_H

#include "engine/ops/op.h"
#include "engine/state/stream.h"
#include "mem/access.h"
#include "proto/ddp.h"
#include "proto/rdmap.h"
#include "ring/sendq.h"

/* Octets of the DDP and RDMAP headers in front of each segment's payload. */
static inline u32 weft_outgoing_header_len(const struct weft_msg *msg)
{
	bool tagged = weft_rdmap_info(msg->opcode)->tagged;

	return (tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN) + msg->hdr_len;
}

/* The header of the next segment. */
static __always_inline void weft_outgoing_header(const struct weft_msg *msg, bool last,
						 struct weft_ddp_hdr *hdr)
{
	const struct weft_rdmap_info *info = weft_rdmap_info(msg->opcode);

	hdr->tagged = info->tagged;
	hdr->last = last;
	hdr->ulp = weft_rdmap_ulp(msg->opcode);
	hdr->stag = msg->stag;
	hdr->to = msg->to + msg->done;
	hdr->qn = info->qn;
	hdr->msn = msg->msn;
	hdr->mo = msg->done;
}

/**
 * weft_outgoing_walk - the next octets of the payload
 * @st: stream, tx claim held
 * @msg: whose payload is in registered memory
 * @len: octets
 * @fn: takes them, piece by piece
 * @arg: for @fn
 *
 * Context: process. Return: a fault of the access or of @fn.
 */
static __always_inline enum weft_fault weft_outgoing_walk(struct weft_stream *st,
							  const struct weft_msg *msg, u32 len,
							  weft_mem_copy_fn fn, void *arg)
{
	const struct weft_swr *swr = msg->swr;
	struct weft_mem_ref ref;
	enum weft_fault fault;

	if (msg->source == WEFT_SRC_SGE)
		return weft_mem_walk(&st->tx.mem, swr->sge, swr->wqe.num_sge, msg->done, len,
				     WEFT_MEM_LOCAL_READ, fn, arg);
	fault = weft_mem_get(&st->tx.mem, msg->src_stag, msg->src_to + msg->done, len,
			     WEFT_MEM_REMOTE_READ, &ref);
	return fault == WEFT_FAULT_NONE ? fn(arg, 0, &ref) : fault;
}

#endif
