// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RESET of a QP that has no connection yet: its queues are empty afterwards.
 */
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "engine/life/stream.h"
#include "engine/path/tx.h"
#include "engine/state/claim.h"
#include "engine/state/stream.h"
#include "ring/recvq.h"
#include "ring/sendq.h"

static int discard_posted(struct weft_stream *st)
{
	struct weft_sendq *sq = st->cfg.sq;
	int err;

	spin_lock_bh(&st->retire_lock);
	err = weft_sendq_discard(sq);
	st->tx.sent = sq->fetched;
	spin_unlock_bh(&st->retire_lock);
	if (err || st->cfg.shared_rq)
		return err;
	return weft_recvq_discard(st->cfg.rq);
}

/**
 * weft_stream_reset - forget what is posted
 * @st: stream in state IDLE
 *
 * Requests in both queues of the QP go without a completion; those in a shared receive
 * queue stay. Under @lifecycle no socket comes or goes: without one, nothing receives, and
 * an owner of tx sends nothing. Context: process, may sleep.
 *
 * Return: 0, -EINVAL in any other state, or -EIO when a process has made nonsense of a queue.
 */
int weft_stream_reset(struct weft_stream *st)
{
	int err = -EINVAL;

	mutex_lock(&st->lifecycle);
	weft_tx_claim_wait(st);
	if (READ_ONCE(st->state) == WEFT_QP_IDLE)
		err = discard_posted(st);
	weft_tx_unclaim(&st->tx.claim); /* the start of the stream runs tx in any case */
	mutex_unlock(&st->lifecycle);
	return err;
}
