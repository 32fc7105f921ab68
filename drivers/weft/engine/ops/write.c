// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMA Write, and Immediate Data with its solicited form, both roles; Write with immediate is a
 * Write and an Immediate Data message. RFC 5040, 5.1.2; RFC 5041, 7.1; RFC 7306, 6.
 */
#include "engine/ops/op.h"

#include "engine/ops/complete.h"
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
	u8 opcode = swr->wqe.flags & WEFT_WRF_SOLICITED ? WEFT_OP_IMM_SE : WEFT_OP_IMM;
	enum weft_fault fault = weft_write_plan(st, swr, &msgs[0]);
	struct weft_msg *msg = &msgs[1];

	if (fault != WEFT_FAULT_NONE)
		return fault;
	weft_msg_untagged(&st->tx.ddp, msg, opcode);
	swr->msn = msg->msn;
	msg->hdr_len = WEFT_IMM_LEN;
	/* The immediate of 32 bits that verbs know stands in the first half of the eight bytes. */
	memset(st->tx.hdr, 0, WEFT_IMM_LEN);
	memcpy(st->tx.hdr, &swr->wqe.imm_or_inv, sizeof(swr->wqe.imm_or_inv));
	return WEFT_FAULT_NONE;
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
	fault = weft_rx_copy(seg, 0, &ref);
	weft_mem_done(&st->rx.mem);
	return fault;
}

/*
 * Consumes the receive that weft_send_begin() took; nothing is placed. Its length is that of
 * the Write right in front of it (RFC 7306, 6). Responses do not come between the two: they
 * belong to the other direction, and the peer's RNIC sends them when they are ready.
 */
enum weft_fault weft_imm_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	const struct weft_rdmap_info *info = weft_rdmap_info(weft_rdmap_opcode(seg->ddp.ulp));
	struct weft_cqe cqe = {
		.wr_id = st->rx.rwr.wr_id,
		.qp_num = st->qpn,
		.opcode = WEFT_WC_RECV_IMM,
		.byte_len = st->rx.written,
		.flags = WEFT_WCF_IMM | (info->solicited ? WEFT_WCF_SOLICITED : 0),
	};

	memcpy(&cqe.imm_or_inv, seg->head, sizeof(cqe.imm_or_inv));
	st->rx.written = 0;
	st->rx.rwr_held = false;
	weft_complete_receive(st, &cqe, seg->batch);
	return WEFT_FAULT_NONE;
}
