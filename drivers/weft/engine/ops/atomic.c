// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Atomic operations, both roles: FetchAdd and CmpSwap, plain and masked. They
 * share the request queues with RDMA Read. RFC 7306, 5.
 */
#include "engine/ops/op.h"

#include "engine/ops/complete.h"
#include "engine/ops/credit.h"
#include "engine/state/stream.h"
#include "mem/backing.h"
#include "mem/stag.h"
#include "proto/atomic.h"
#include "ring/sendq.h"

#define OPERAND	8U

enum weft_fault weft_atomic_plan(struct weft_stream *st, struct weft_swr *swr,
				 struct weft_msg *msgs)
{
	struct weft_readq_sent *slot = weft_readq_sent_slot(&st->readq);
	const struct weft_sqe *wqe = &swr->wqe;
	bool cswap = wqe->opcode == WEFT_WR_ATOMIC_CSWAP;
	struct weft_atomic_req req = {
		.code = cswap ? WEFT_ATOMIC_CSWAP : WEFT_ATOMIC_FADD,
		.stag = wqe->rkey,
		.to = wqe->remote_addr,
		.data = cswap ? wqe->atomic.swap : wqe->atomic.compare_add,
		.mask = wqe->atomic.swap_mask,
		.compare = cswap ? wqe->atomic.compare_add : 0,
		.compare_mask = cswap ? wqe->atomic.compare_mask : ~0ULL,
	};
	enum weft_fault fault;

	if (swr->length != OPERAND)
		return WEFT_FAULT_LOCAL_LENGTH;
	fault = weft_mem_check_list(&st->tx.mem, swr->sge, swr->wqe.num_sge, swr->length,
				    WEFT_MEM_LOCAL_WRITE);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	weft_msg_untagged(&st->tx.ddp, msgs, WEFT_OP_ATOMIC_REQ);
	msgs->hdr_len = WEFT_ATOMIC_REQ_LEN;
	req.id = msgs->msn;
	weft_atomic_req_build(&req, st->tx.hdr);
	*slot = (struct weft_readq_sent){
		.wr_index = swr->index,
		.atomic = true,
		.msn = msgs->msn,
		.length = OPERAND,
	};
	weft_readq_sent_push(&st->readq);
	return WEFT_FAULT_NONE;
}

/* As with a Read, one that cannot be done is told in its turn, and ends reception. */
enum weft_fault weft_atomic_request_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_readq_owed *owed = weft_readq_owed_slot(&st->readq);
	struct weft_mem_ref ref;
	enum weft_fault fault;

	if (!st->rx.atomics)
		return WEFT_FAULT_RDMAP_OPCODE;
	if (!owed)
		return WEFT_FAULT_UNTAGGED_NO_BUFFER;
	st->rx.written = 0;
	fault = weft_atomic_req_parse(seg->head, &owed->op);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	owed->atomic = true;
	owed->fault = weft_mem_check(&st->rx.mem, owed->op.stag, owed->op.to, OPERAND,
				     WEFT_MEM_REMOTE_ATOMIC, &ref);
	if (owed->fault == WEFT_FAULT_NONE &&
	    !weft_backing_aligned8(ref.mr->grant.backing, ref.offset))
		owed->fault = WEFT_FAULT_RDMAP_CATASTROPHIC;
	owed->segment_len = seg->u->len;
	owed->head_len = WEFT_DDP_UNTAGGED_LEN;
	memcpy(owed->headers, seg->u->head, owed->head_len);
	weft_readq_owed_push(&st->readq);
	st->rx.tx_needed = true;
	return owed->fault == WEFT_FAULT_NONE ? WEFT_FAULT_NONE : WEFT_FAULT_STOPPED;
}

/* Executed in request order, at the moment its response is planned. */
enum weft_fault weft_atomic_answer(struct weft_stream *st, const struct weft_readq_owed *owed,
				   struct weft_msg *msg)
{
	const struct weft_atomic_req *req = &owed->op;
	const struct weft_atomic_op op = {
		.code = req->code,
		.data = req->data,
		.mask = req->mask,
		.compare = req->compare,
		.compare_mask = req->compare_mask,
	};
	struct weft_atomic_resp resp = { .id = req->id };
	struct weft_mem_ref ref;
	enum weft_fault fault;

	fault = weft_mem_get(&st->tx.mem, req->stag, req->to, OPERAND, WEFT_MEM_REMOTE_ATOMIC,
			     &ref);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	if (weft_backing_aligned8(ref.mr->grant.backing, ref.offset))
		resp.original = weft_backing_atomic(ref.mr->grant.backing, ref.offset, &op);
	else
		fault = WEFT_FAULT_RDMAP_CATASTROPHIC;
	weft_mem_done(&st->tx.mem);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	weft_msg_untagged(&st->tx.ddp, msg, WEFT_OP_ATOMIC_RESP);
	msg->hdr_len = WEFT_ATOMIC_RESP_LEN;
	weft_atomic_resp_build(&resp, st->tx.hdr);
	return WEFT_FAULT_NONE;
}

/* The value lands in host order, as an application reads it. */
static enum weft_fault deliver(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	u32 at, len;

	for (at = 0; at < ref->len; at += len) {
		u8 *to = weft_mem_span(ref, at, &len);

		memcpy(to, (const u8 *)arg + done + at, len);
	}
	return WEFT_FAULT_NONE;
}

/* The value is delivered before the message counts as received: its memory may not be there yet. */
enum weft_fault weft_atomic_response_place(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_readq_sent *sent = weft_read_awaited(st, true);
	struct weft_atomic_resp resp;
	enum weft_fault fault;
	struct weft_swr *swr;

	weft_atomic_resp_parse(seg->head, &resp);
	if (!sent || sent->msn != resp.id)
		return weft_read_misanswered(st, seg, WEFT_FAULT_RDMAP_OPCODE);
	swr = weft_sendq_wr(st->cfg.sq, sent->wr_index);
	fault = weft_mem_walk(&st->rx.mem, swr->sge, swr->wqe.num_sge, 0, OPERAND,
			      WEFT_MEM_LOCAL_WRITE, deliver, &resp.original);
	if (fault != WEFT_FAULT_NONE && fault != WEFT_FAULT_NOT_READY)
		weft_complete_done(st, swr, fault, seg->batch);
	return fault;
}

/*
 * Once popped it is over for tx on another CPU, which sends what a fence has kept
 * back: perhaps the very memory that was written.
 */
enum weft_fault weft_atomic_response_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_readq_sent *sent = weft_readq_sent_head(&st->readq);
	struct weft_swr *swr = weft_sendq_wr(st->cfg.sq, sent->wr_index);

	weft_readq_sent_pop(&st->readq);
	weft_complete_done(st, swr, WEFT_FAULT_NONE, seg->batch);
	weft_tx_response_in(st);
	return WEFT_FAULT_NONE;
}
