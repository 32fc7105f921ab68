// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Requests that are answered: whether one may be sent, and what goes on when it may. ORD of them
 * may be unanswered (RFC 5040, 5.2.1); a fence waits for all.
 */
#include "engine/ops/credit.h"

#include "engine/ops/op.h"
#include "engine/state/claim.h"
#include "engine/state/stream.h"
#include "proto/hot.h"
#include "ring/sendq.h"

/* Credits and fences: true while the request must wait for a response. */
static bool must_wait(struct weft_stream *st, const struct weft_swr *swr,
		      const struct weft_tx_op *op)
{
	if (swr->wqe.flags & WEFT_WRF_FENCE && !weft_readq_idle(&st->readq))
		return true;
	return op->flags & WEFT_TXF_CREDIT && !weft_readq_credit(&st->readq);
}

/**
 * weft_tx_waits - must a request wait for a response?
 * @st: stream, tx claim held
 * @swr: the request, not planned yet
 * @op: its row
 *
 * The mark goes up before the second look: rx pops, then looks at the mark. Context: any.
 */
bool weft_tx_waits(struct weft_stream *st, const struct weft_swr *swr, const struct weft_tx_op *op)
{
	if (!must_wait(st, swr, op))
		return false;
	set_bit(WEFT_TX_WAITS, &st->tx.claim);
	smp_mb__after_atomic();	/* pairs with weft_tx_response_in() */
	return must_wait(st, swr, op);
}

/**
 * weft_tx_response_in - a response has freed a credit
 * @st: stream, socket lock held
 *
 * Also the closing stream waits for its last response.
 */
void weft_hot weft_tx_response_in(struct weft_stream *st)
{
	/* Fully ordered: the pop before, the mark after; pairs with weft_tx_waits(). */
	if (test_and_clear_bit(WEFT_TX_WAITS, &st->tx.claim) ||
	    READ_ONCE(st->state) == WEFT_QP_CLOSING)
		st->rx.tx_needed = true;
}
