// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Send, Send with Invalidate and their solicited forms, both roles.
 * RFC 5040, 5.1 and 5.2; RFC 5041, 5 and 7.1.
 */
#include "engine/ops/op.h"

#include "engine/ops/complete.h"
#include "engine/ops/rnr.h"
#include "engine/state/stream.h"
#include "mem/mr_ops.h"
#include "proto/direct.h"
#include "proto/hot.h"
#include "ring/cq.h"
#include "ring/sendq.h"

enum weft_fault weft_hot weft_send_plan(struct weft_stream *st, struct weft_swr *swr,
					struct weft_msg *msgs)
{
	bool solicited = swr->wqe.flags & WEFT_WRF_SOLICITED;
	u8 opcode = solicited ? WEFT_OP_SEND_SE : WEFT_OP_SEND;

	if (swr->wqe.opcode == WEFT_WR_SEND_INV) {
		opcode = solicited ? WEFT_OP_SEND_SE_INV : WEFT_OP_SEND_INV;
		msgs->stag = swr->wqe.imm_or_inv;
	} else if (swr->wqe.opcode == WEFT_WR_SEND_IMM) {
		/* Only where both ends know it; it stands where an STag to invalidate would. */
		if (!(st->mpa.extensions & WEFT_DIRECT_SEND_IMM))
			return WEFT_FAULT_LOCAL_QP_OP;
		opcode = solicited ? WEFT_OP_SEND_SE_IMM : WEFT_OP_SEND_IMM;
		msgs->stag = be32_to_cpu((__force __be32)swr->wqe.imm_or_inv);
	}
	weft_msg_untagged(&st->tx.ddp, msgs, opcode);
	swr->msn = msgs->msn;
	msgs->source = swr->wqe.flags & WEFT_WRF_INLINE ? WEFT_SRC_INLINE : WEFT_SRC_SGE;
	msgs->length = swr->length;
	return WEFT_FAULT_NONE;
}

/*
 * The receive in hand fails by name where its buffer or the invalidation is to blame.
 * One whose message breaks off at a wrong offset or opcode is flushed like the others.
 */
static enum weft_fault complete_with_error(struct weft_stream *st, struct weft_rx_seg *seg,
					   enum weft_fault fault)
{
	struct weft_cqe cqe = {
		.wr_id = st->rx.rwr.wr_id,
		.qp_num = st->qpn,
		.opcode = WEFT_WC_RECV,
		.status = weft_fault_info(fault)->status,
		.vendor_err = fault,
	};

	st->rx.rwr_held = false;
	weft_complete_receive(st, &cqe, seg->batch);
	return fault;
}

/*
 * Takes the next receive; the RTR Send is the connection's, it takes none. A segment whose memory
 * was not there has taken its receive already, and is handed over again.
 */
enum weft_fault weft_hot weft_send_begin(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_rx *rx = &st->rx;
	int err;

	if (rx->rtr_send || unlikely(rx->rwr_held))
		return WEFT_FAULT_NONE;
	err = unlikely(st->rnr_waits) ? weft_rnr_fetch(st) : weft_recvq_fetch(st->cfg.rq, &rx->rwr);
	if (err == -ENOENT)
		return weft_rnr_wait(st);
	if (err == -EIO)
		return WEFT_FAULT_LOCAL_QP_OP;
	rx->rwr_held = true;
	return err ? complete_with_error(st, seg, WEFT_FAULT_LOCAL_QP_OP) : WEFT_FAULT_NONE;
}

enum weft_fault weft_send_imm_begin(struct weft_stream *st, struct weft_rx_seg *seg)
{
	if (!(st->mpa.extensions & WEFT_DIRECT_SEND_IMM))
		return WEFT_FAULT_RDMAP_OPCODE;
	return weft_send_begin(st, seg);
}

/* The RTR Send has one segment, so there is a receive. */
enum weft_fault weft_hot weft_send_place_batch(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_rwr *rwr = &st->rx.rwr;
	enum weft_fault fault = weft_ddp_rx_check_offset(&st->rx.ddp, &seg->ddp, rwr->length);

	if (fault != WEFT_FAULT_NONE)
		return fault;
	return weft_rx_place(&st->rx.rq_mem, seg, rwr->sge, rwr->num_sge, seg->ddp.mo);
}

enum weft_fault weft_hot weft_send_place(struct weft_stream *st, struct weft_rx_seg *seg)
{
	enum weft_fault fault;

	if (st->rx.rtr_send)
		return WEFT_FAULT_NONE;
	fault = weft_send_place_batch(st, seg);
	if (fault == WEFT_FAULT_NONE || fault == WEFT_FAULT_NOT_READY)
		return fault;
	return complete_with_error(st, seg, fault);
}

enum weft_fault weft_hot weft_send_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	const struct weft_rdmap_info *info = weft_rdmap_info(weft_rdmap_opcode(seg->ddp.ulp));
	struct weft_cqe cqe = {
		.wr_id = st->rx.rwr.wr_id,
		.qp_num = st->qpn,
		.opcode = WEFT_WC_RECV,
		.byte_len = seg->ddp.mo + seg->payload,
		.flags = info->solicited ? WEFT_WCF_SOLICITED : 0,
	};
	struct weft_mem_region *busy = NULL;
	enum weft_fault fault;

	st->rx.written = 0;
	if (st->rx.rtr_send) {
		st->rx.rtr_send = false;
		return WEFT_FAULT_NONE;
	}
	if (info->invalidates) {
		weft_mem_release(&st->rx.rq_mem); /* it may be what the peer invalidates */
		fault = weft_mem_invalidate(&st->rx.mem, seg->ddp.stag, true, &busy);
		if (fault != WEFT_FAULT_NONE)
			return complete_with_error(st, seg, fault);
		cqe.flags |= WEFT_WCF_INV;
		cqe.imm_or_inv = seg->ddp.stag;
	}
	if (info->immediate) {
		cqe.flags |= WEFT_WCF_IMM;
		cqe.imm_or_inv = (__force u32)cpu_to_be32(seg->ddp.stag);
	}
	st->rx.rwr_held = false;
	if (busy) {
		/*
		 * RFC 5040, 5.3: first invalid, then delivered. Reading stops behind this segment,
		 * and a worker, which may wait for the copy under way, goes on.
		 */
		st->rx.held.cqe = cqe;
		st->rx.held.busy = busy;
		weft_mpa_rx_pause(&st->rx.sock);
	} else {
		weft_complete_receive(st, &cqe, seg->batch);
	}
	return WEFT_FAULT_NONE;
}
