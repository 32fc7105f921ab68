// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RESET of a QP: its queues are empty afterwards, and it may be connected, again if it was.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "engine/life/stream.h"
#include "engine/life/teardown.h"
#include "engine/path/tx.h"
#include "engine/run/defer.h"
#include "engine/state/claim.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "mem/mr_ops.h"
#include "ring/recvq.h"
#include "ring/sendq.h"

/* How long anything else may refer to a stream whose connection is over. */
#define HOLDERS_TIMEOUT	(5 * HZ)

static int discard_posted(struct weft_stream *st)
{
	struct weft_sendq *sq = st->cfg.sq;
	int err;

	spin_lock_bh(&st->complete_lock);
	err = weft_sendq_discard(sq);
	st->tx.sent = sq->fetched;
	spin_unlock_bh(&st->complete_lock);
	if (err || st->cfg.shared_rq)
		return err;
	return weft_recvq_discard(st->cfg.rq);
}

/**
 * weft_stream_abort_wait - end a stream's connection, if it has one, for a reset
 * @st: stream
 *
 * When it returns the socket is gone and everybody has been told. What was posted before ends
 * without completions and their events. Context: may sleep; never from a callback of the stream.
 */
void weft_stream_abort_wait(struct weft_stream *st)
{
	WRITE_ONCE(st->discard, true);
	weft_stream_step(st, WEFT_QP_ABORT);
	weft_teardown_wait(st);
	WRITE_ONCE(st->discard, false);
}

static void renew_connection(struct weft_stream *st)
{
	WRITE_ONCE(st->cm_events, NULL);
	st->cm = NULL;
	memset(&st->mpa, 0, sizeof(st->mpa));
	st->close_error = 0;
	memset(&st->fault, 0, sizeof(st->fault));
	memset(&st->peer_term, 0, sizeof(st->peer_term));
	/* Dumps read these. */
	WRITE_ONCE(st->peer_fault, WEFT_FAULT_NONE);
	WRITE_ONCE(st->peer_terminated, false);
	WRITE_ONCE(st->gate_open, false);
	st->initiator = false;
	st->lost = false;
	st->oldest_fault = WEFT_FAULT_NONE;
	st->ird = 0;
	st->ord = 0;
	st->acked = 0;
	kvfree(st->readq_mem);
	st->readq_mem = NULL;
	memset(&st->readq, 0, sizeof(st->readq));
}

/*
 * As it was made, but for its number, its counters and its queues' indices. What a connection
 * begins with is not here (init_directions() in engine/life/stream.c). The claim of tx is held:
 * a doorbell leaves a mark, and finds a stream without a connection afterwards.
 */
static void renew_stream(struct weft_stream *st) __must_hold(&st->lifecycle)
{
	struct weft_tx *tx = &st->tx;
	struct weft_rx *rx = &st->rx;

	lockdep_assert_held(&st->lifecycle);
	weft_mem_invalidate_windows(&st->tx.mem);
	weft_defer_cancel(st);
	tx->burst = 0;
	tx->term_staged = false;
	tx->drained = false;
	tx->mem.has_windows = false;
	memset(&rx->msgs, 0, sizeof(rx->msgs));
	rx->rtr_send = false;
	rx->tx_needed = false;
	rx->written = 0;
	rx->placed = 0;
	renew_connection(st);
	weft_teardown_renew(st);
	st->quiet = false;
	if (!st->cfg.shared_rq)
		weft_recvq_set_flushing(st->cfg.rq, false);
	weft_stream_step(st, WEFT_QP_RESET);
}

/**
 * weft_stream_reset - forget what is posted, and the connection that there was
 * @st: stream that is not connected, or on which weft_stream_abort_wait() was called
 *
 * Requests in both queues of the QP go without a completion; those in a shared receive
 * queue stay. Under @lifecycle no socket comes or goes: without one, nothing receives, and
 * an owner of tx sends nothing. Context: process, may sleep; one caller at a time.
 *
 * Return: 0; -EBUSY if a connection came up meanwhile, or will not let go of the stream; or
 * -EIO when a process has made nonsense of a queue. Then posts are still flushed if they were.
 */
int weft_stream_reset(struct weft_stream *st)
{
	enum weft_qp_state state;
	unsigned long end;
	int err = -EBUSY;

	if (READ_ONCE(st->state) == WEFT_QP_ERROR) {
		weft_teardown_wait(st);
		weft_teardown_end(st);
		/*
		 * The connection that has ended could otherwise abort the next one, and memory
		 * that TCP still sends from belongs to requests of old. A look at the stream, by
		 * netlink or by number, does not take long.
		 */
		end = jiffies + HOLDERS_TIMEOUT;
		while (kref_read(&st->ref) > 1) {
			if (time_after(jiffies, end))
				return -EBUSY;
			usleep_range(100, 500);
		}
	}
	mutex_lock(&st->lifecycle);
	weft_tx_claim_wait(st);
	state = READ_ONCE(st->state);
	if (state == WEFT_QP_IDLE || state == WEFT_QP_ERROR)
		err = discard_posted(st);
	if (!err && state == WEFT_QP_ERROR)
		renew_stream(st);
	weft_tx_unclaim(&st->tx.claim); /* the start of the stream runs tx in any case */
	mutex_unlock(&st->lifecycle);
	return err;
}
