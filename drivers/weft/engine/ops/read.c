// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMA Read, both roles: the request we send and its response, the request we
 * get and our answer. RFC 5040, 5.1.3, 5.1.4 and 7.
 */
#include "engine/ops/op.h"

#include "engine/ops/complete.h"
#include "engine/ops/credit.h"
#include "engine/state/stream.h"
#include "mem/mr_ops.h"
#include "proto/hot.h"
#include "ring/sendq.h"

enum weft_fault weft_hot weft_read_plan(struct weft_stream *st, struct weft_swr *swr,
					struct weft_msg *msgs)
{
	struct weft_readq_sent *slot = weft_readq_sent_slot(&st->readq);
	struct weft_read_req req = {
		.length = swr->length,
		.src_stag = swr->wqe.rkey,
		.src_to = swr->wqe.remote_addr,
	};
	enum weft_fault fault;

	fault = weft_mem_check_list(&st->tx.mem, swr->sge, swr->wqe.num_sge, swr->length,
				    WEFT_MEM_LOCAL_WRITE);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	/*
	 * What the peer echoes in its response. It names our sink only by convention:
	 * placement goes by the work request, so a kernel address need not be told.
	 */
	req.sink_stag = swr->wqe.num_sge ? swr->sge[0].lkey : 0;
	req.sink_to = req.sink_stag ? swr->sge[0].addr : 0;
	weft_msg_untagged(&st->tx.ddp, msgs, WEFT_OP_READ_REQ);
	msgs->hdr_len = WEFT_READ_REQ_LEN;
	weft_read_req_build(&req, st->tx.hdr);
	*slot = (struct weft_readq_sent){
		.wr_index = swr->index,
		.msn = msgs->msn,
		.sink_stag = req.sink_stag,
		.sink_to = req.sink_to,
		.length = req.length,
	};
	weft_readq_sent_push(&st->readq);
	return WEFT_FAULT_NONE;
}

/*
 * Room for one request more than promised does not exist: the peer overran IRD.
 * One that cannot be served waits for its turn to be told, behind the answers to
 * earlier ones, but nothing behind it is taken: it is the first error (RFC 5040, 7.1).
 */
enum weft_fault weft_hot weft_read_request_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_readq_owed *owed = weft_readq_owed_slot(&st->readq);
	const struct weft_read_req *req;
	struct weft_mem_ref ref;

	if (!owed)
		return WEFT_FAULT_UNTAGGED_NO_BUFFER;
	st->rx.written = 0;
	owed->atomic = false;
	owed->fault = WEFT_FAULT_NONE;
	weft_read_req_parse(seg->head, &owed->read);
	req = &owed->read;
	if (req->length)
		owed->fault = weft_mem_check(&st->rx.mem, req->src_stag, req->src_to, req->length,
					     WEFT_MEM_REMOTE_READ, &ref);
	owed->segment_len = seg->u->len;
	owed->head_len = sizeof(owed->headers);
	memcpy(owed->headers, seg->u->head, sizeof(owed->headers));
	weft_readq_owed_push(&st->readq);
	st->rx.tx_needed = true;
	return owed->fault == WEFT_FAULT_NONE ? WEFT_FAULT_NONE : WEFT_FAULT_STOPPED;
}

/**
 * weft_read_answer - plan the response to the oldest Read Request we owe
 * @st: stream, tx claim held
 * @owed: the request
 * @msg: filled
 *
 * The source was checked when the request came, and is segment by segment while it is
 * copied; here once more as a whole, since it may have been invalidated meanwhile: a
 * request that cannot be served sends nothing (RFC 5040, 7).
 */
enum weft_fault weft_hot weft_read_answer(struct weft_stream *st,
					  const struct weft_readq_owed *owed, struct weft_msg *msg)
{
	const struct weft_read_req *req = &owed->read;
	struct weft_mem_ref ref;

	msg->opcode = WEFT_OP_READ_RESP;
	msg->source = req->length ? WEFT_SRC_STAG : WEFT_SRC_NONE;
	msg->length = req->length;
	msg->stag = req->sink_stag;
	msg->to = req->sink_to;
	msg->src_stag = req->src_stag;
	msg->src_to = req->src_to;
	if (!req->length)
		return WEFT_FAULT_NONE;
	return weft_mem_check(&st->tx.mem, req->src_stag, req->src_to, req->length,
			      WEFT_MEM_REMOTE_READ, &ref);
}

/**
 * weft_read_misanswered - a response is not what the oldest request asked for
 * @st: stream
 * @seg: the response
 * @fault: what is wrong with it
 *
 * That request, if there is one, fails by name; what is behind it is flushed.
 *
 * Return: @fault.
 */
enum weft_fault weft_read_misanswered(struct weft_stream *st, struct weft_rx_seg *seg,
				      enum weft_fault fault)
{
	const struct weft_readq_sent *sent = weft_readq_sent_head(&st->readq);

	if (sent && !sent->no_wr)
		weft_complete_done(st, weft_sendq_wr(st->cfg.sq, sent->wr_index),
				   WEFT_FAULT_BAD_RESPONSE, seg->batch);
	return fault;
}

/**
 * weft_read_awaited - the request that a response has to answer
 * @st: stream
 * @atomic: the response is one of an atomic
 *
 * That is the oldest one (RFC 5040, 5.2.1; RFC 7306, 5.2), and of that kind. One that the peer
 * cannot have seen is not answered: TCP must have all of it. (A ready-to-receive Read has no
 * work request that could complete too early.)
 *
 * Context: owner of rx. Return: NULL if there is none.
 */
weft_hot struct weft_readq_sent *weft_read_awaited(struct weft_stream *st, bool atomic)
{
	struct weft_readq_sent *sent = weft_readq_sent_head(&st->readq);

	if (!sent || sent->atomic != atomic)
		return NULL;
	if (sent->no_wr || weft_complete_is_sent(st, weft_sendq_wr(st->cfg.sq, sent->wr_index)))
		return sent;
	return NULL;
}

enum weft_fault weft_hot weft_read_response_begin(struct weft_stream *st, struct weft_rx_seg *seg)
{
	if (weft_read_awaited(st, false))
		return WEFT_FAULT_NONE;
	return weft_read_misanswered(st, seg, WEFT_FAULT_RDMAP_OPCODE);
}

static enum weft_fault check_response(const struct weft_readq_sent *sent,
				      const struct weft_rx_seg *seg)
{
	u32 left = sent->length - sent->received;

	if (seg->ddp.stag != sent->sink_stag)
		return WEFT_FAULT_TAGGED_STAG;
	if (seg->ddp.to != sent->sink_to + sent->received || seg->payload > left)
		return WEFT_FAULT_TAGGED_BOUNDS;
	if (seg->ddp.last && seg->payload != left)
		return WEFT_FAULT_TAGGED_BOUNDS;
	return WEFT_FAULT_NONE;
}

enum weft_fault weft_hot weft_read_response_place(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_readq_sent *sent = weft_readq_sent_head(&st->readq);
	enum weft_fault fault = check_response(sent, seg);
	struct weft_swr *swr;

	if (fault != WEFT_FAULT_NONE)
		return weft_read_misanswered(st, seg, fault);
	if (!seg->payload)
		return WEFT_FAULT_NONE;
	swr = weft_sendq_wr(st->cfg.sq, sent->wr_index);
	fault = weft_rx_place(&st->rx.mem, seg, swr->sge, swr->wqe.num_sge, sent->received);
	if (fault == WEFT_FAULT_NONE)
		sent->received += seg->payload;
	else if (fault != WEFT_FAULT_NOT_READY)
		weft_complete_done(st, swr, fault, seg->batch);
	return fault;
}

enum weft_fault weft_hot weft_read_response_place_batch(struct weft_stream *st,
							struct weft_rx_seg *seg)
{
	struct weft_readq_sent *sent = weft_readq_sent_head(&st->readq);
	enum weft_fault fault = check_response(sent, seg);
	const struct weft_swr *swr;

	if (fault != WEFT_FAULT_NONE)
		return fault;
	swr = weft_sendq_wr(st->cfg.sq, sent->wr_index);
	fault = weft_rx_place(&st->rx.mem, seg, swr->sge, swr->wqe.num_sge, sent->received);
	if (fault == WEFT_FAULT_NONE)
		sent->received += seg->payload;
	return fault;
}

enum weft_fault weft_hot weft_read_response_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_readq_sent *sent = weft_readq_sent_head(&st->readq);
	struct weft_mem_region *busy = NULL;
	enum weft_fault fault = WEFT_FAULT_NONE;
	struct weft_swr *swr = NULL;

	if (!sent->no_wr)
		swr = weft_sendq_wr(st->cfg.sq, sent->wr_index);
	/* Read with Local Invalidate: the sink's STag ends with the response. */
	if (swr && swr->wqe.opcode == WEFT_WR_READ_INV && swr->wqe.num_sge) {
		weft_mem_release(&st->rx.rq_mem); /* it may be the same region */
		fault = weft_mem_invalidate(&st->rx.mem, swr->sge[0].lkey, false, &busy);
	}
	/*
	 * Only now, as with an atomic: a request behind a fence may register the same region
	 * anew, and would see it invalidated. It waits itself for copies under way.
	 */
	if (fault == WEFT_FAULT_NONE) {
		weft_readq_sent_pop(&st->readq);
		weft_tx_response_in(st);
	}
	if (!swr)
		return fault;
	if (busy) {
		/* Reading stops behind this segment, and a worker, which may wait, goes on. */
		st->rx.held.swr = swr;
		st->rx.held.busy = busy;
		weft_mpa_rx_pause(&st->rx.sock);
	} else {
		weft_complete_done(st, swr, fault, seg->batch);
	}
	return fault;
}
