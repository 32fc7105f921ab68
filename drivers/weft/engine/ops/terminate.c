// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Terminate out and in. RFC 5040, 4.8 and 5.4.
 */
#include "engine/ops/op.h"

#include "base/trace.h"
#include "engine/ops/complete.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "ring/sendq.h"

/* The fault was recorded, headers and all, when it was found. */
void weft_term_message(struct weft_stream *st, struct weft_msg *msg)
{
	weft_msg_untagged(&st->tx.ddp, msg, WEFT_OP_TERMINATE);
	msg->hdr_len = weft_term_build(&st->fault, st->tx.hdr);
}

/* The Read or Atomic that is named fails with the peer's reason, not with a flush. */
static void fail_named_request(struct weft_stream *st, const struct weft_term *term,
			       struct weft_rx_seg *seg)
{
	enum weft_fault fault = weft_fault_from_terminate(term->layer, term->etype, term->ecode);
	struct weft_readq_sent *sent = NULL;
	struct weft_swr *swr;

	if (term->has_ddp && !term->tagged && term->qn == WEFT_QN_REQUEST)
		sent = weft_readq_sent_find(&st->readq, term->msn);
	if (!sent || sent->no_wr)
		return;
	swr = weft_sendq_wr(st->cfg.sq, sent->wr_index);
	if (weft_complete_is_sent(st, swr)) /* else the peer does not know it */
		weft_complete_done(st, swr, fault, seg->batch);
}

enum weft_fault weft_term_end(struct weft_stream *st, struct weft_rx_seg *seg)
{
	enum weft_fault fault;
	struct weft_term term;

	if (weft_term_parse(seg->head, seg->ddp.payload, &term) == WEFT_FAULT_NONE)
		fail_named_request(st, &term, seg);
	st->peer_term = term;
	fault = weft_fault_of_terminate(term.layer, term.etype, term.ecode);
	weft_count(st->cfg.counters, WEFT_CTR_RX_TERM_FOR + weft_term_reasons[fault]);
	trace_weft_rx_terminate(st->cfg.ifindex, st->qpn, term.layer, term.etype, term.ecode);
	WRITE_ONCE(st->peer_fault, fault);
	/*
	 * Where QPs are connected directly, the sender decides how long its messages wait for a
	 * receive. If that one is complete, the oldest request fails instead, and only that.
	 */
	if (st->mpa.direct && fault == WEFT_FAULT_UNTAGGED_NO_BUFFER && term.has_ddp &&
	    !term.tagged && term.qn == WEFT_QN_SEND)
		st->oldest_fault = WEFT_FAULT_NO_RECEIVE;
	/* pairs with weft_complete_named() */
	smp_store_release(&st->peer_terminated, true);
	weft_stream_step(st, WEFT_QP_PEER_TERMINATED);
	return WEFT_FAULT_STOPPED;
}
