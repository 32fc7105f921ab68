// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Terminate out and in. RFC 5040, 4.8 and 5.4.
 */
#include "engine/ops/terminate.h"

#include "base/trace.h"
#include "engine/ops/complete.h"
#include "engine/ops/msg_stats.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "ring/sendq.h"

/* The fault was recorded, headers and all, when it was found. */
void weft_term_message(struct weft_stream *st, struct weft_msg *msg)
{
	weft_msg_untagged(&st->tx.ddp, msg, WEFT_OP_TERMINATE);
	msg->hdr_len = weft_term_build(&st->fault, st->tx.hdr);
}

/* Sends and Immediate Data share a queue; Writes are told by where they went. */
static bool names(const struct weft_term *term, const struct weft_swr *swr)
{
	const struct weft_sqe *wqe = &swr->wqe;

	if (term->tagged)
		return term->opcode == WEFT_OP_WRITE && term->stag == wqe->rkey &&
		       (wqe->opcode == WEFT_WR_WRITE || wqe->opcode == WEFT_WR_WRITE_IMM) &&
		       term->to - wqe->remote_addr < max(swr->length, 1U);
	return term->qn == WEFT_QN_SEND && term->msn == swr->msn &&
	       (wqe->opcode == WEFT_WR_SEND || wqe->opcode == WEFT_WR_SEND_INV ||
		wqe->opcode == WEFT_WR_SEND_IMM || wqe->opcode == WEFT_WR_WRITE_IMM);
}

/**
 * weft_term_named - the Send or Write that the peer's Terminate is about
 * @st: stream, tx claim and retire lock held, at its end
 *
 * Return: a request that has not retired and did not fail by itself, or NULL.
 */
struct weft_swr *weft_term_named(const struct weft_stream *st)
{
	const struct weft_sendq *sq = st->cfg.sq;
	struct weft_swr *swr;
	u32 count, i;

	/* pairs with weft_term_end() */
	if (!smp_load_acquire(&st->peer_terminated) || !st->peer_term.has_ddp)
		return NULL;
	count = weft_sendq_in_flight(sq);
	for (i = 0; i < count; i++) {
		swr = weft_sendq_wr(sq, sq->retired + i);
		if (swr == st->tx.swr)
			break;
		if (!swr->status && names(&st->peer_term, swr))
			return swr;
	}
	return NULL;
}

/* The Read or Atomic that is named fails with the peer's reason, not with a flush. */
static void blame(struct weft_stream *st, const struct weft_term *term, struct weft_rx_seg *seg)
{
	enum weft_fault fault = weft_fault_from_terminate(term->layer, term->etype, term->ecode);
	struct weft_readq_sent *sent = NULL;
	struct weft_swr *swr;

	if (term->has_ddp && !term->tagged && term->qn == WEFT_QN_REQUEST)
		sent = weft_readq_sent_find(&st->readq, term->msn);
	if (!sent || sent->no_wr)
		return;
	swr = weft_sendq_wr(st->cfg.sq, sent->wr_index);
	if (weft_retire_is_sent(st, swr)) /* else the peer does not know it */
		weft_retire_done(st, swr, fault, seg->batch);
}

enum weft_fault weft_term_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_term term;

	if (weft_term_parse(seg->head, seg->ddp.payload, &term) == WEFT_FAULT_NONE)
		blame(st, &term, seg);
	st->peer_term = term;
	weft_tally_term_received(st, &term);
	trace_weft_peer_terminated(st->cfg.ifindex, st->qpn, term.layer, term.etype, term.ecode);
	WRITE_ONCE(st->peer_fault, weft_fault_of_terminate(term.layer, term.etype, term.ecode));
	/* pairs with weft_term_named() */
	smp_store_release(&st->peer_terminated, true);
	weft_stream_step(st, WEFT_QP_PEER_TERMINATED);
	return WEFT_FAULT_STOPPED;
}
