// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The tx loop. One owner at a time, by a claim bit: the doorbell call or a
 * worker, always in process context.
 */
#include "engine/tx.h"

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>

#include "base/trace.h"
#include "engine/kick.h"
#include "engine/pick.h"
#include "engine/retire.h"
#include "engine/segment.h"
#include "engine/stream_state.h"
#include "mem/access.h"
#include "proto/hot.h"
#include "ring/cq.h"
#include "ring/sendq.h"

/* How long one caller of the doorbell sends before the process or a worker goes on. */
#define BUDGET		(HZ / 20)

/* Is another look worth it? The peer waits for the push meanwhile. */
static bool has_next(const struct weft_stream *st)
{
	const struct weft_tx *tx = &st->tx;

	return tx->msgs || tx->swr || weft_sendq_pending(st->cfg.sq) || weft_readq_owes(&st->readq);
}

/* Returns true when there was nothing more to stage, not even at a second look. */
static bool stage_all(struct weft_stream *st)
{
	struct weft_txsock *sock = &st->tx.sock;

	do {
		if (weft_txsock_full(sock))
			return false;
		if (!weft_segment_next(st))
			return weft_txsock_empty(sock);
	} while (has_next(st));
	return true;
}

/* Memory is held for one train: invalidations wait for it. */
static bool stage_train(struct weft_stream *st)
{
	bool done;

	weft_txsock_refresh(&st->tx.sock);
	done = stage_all(st);
	weft_mem_release(&st->tx.mem);
	return done;
}

/*
 * Pushes what is staged: 0 all gone, -EAGAIN the socket is full, else it is
 * lost. A full train has a next one behind it, unless it is the @last, so its last
 * segment may wait.
 */
static int push(struct weft_stream *st, bool last, struct weft_cq_batch *batch)
{
	struct weft_txsock *sock = &st->tx.sock;
	u64 before = sock->pushed;
	int err = weft_txsock_push(sock, !last && weft_txsock_full(sock));

	if (sock->pushed != before || err)
		trace_weft_train(st->cfg.ifindex, st->qpn, sock->pushed - before, err);
	weft_retire_pushed(st, sock->pushed, batch);
	if (err && err != -EAGAIN)
		weft_stream_step(st, WEFT_QP_CONN_LOST);
	return err;
}

/* Everything that may be sent was: tell the state machine what it waits for. */
static void report_progress(struct weft_stream *st)
{
	struct weft_tx *tx = &st->tx;
	struct weft_sendq *sq = st->cfg.sq;

	if (tx->drained)
		return;
	if (st->state == WEFT_QP_TERMINATE && tx->term_staged) {
		tx->drained = true;
		weft_stream_step(st, WEFT_QP_TERMINATE_SENT);
	} else if (st->state == WEFT_QP_CLOSING && !tx->swr && !weft_sendq_pending(sq) &&
		   READ_ONCE(sq->retired) == sq->fetched) {
		tx->drained = true;
		weft_stream_step(st, WEFT_QP_SQ_DRAINED);
	}
}

static bool may_send(const struct weft_stream *st)
{
	enum weft_qp_state state = READ_ONCE(st->state);

	if (state == WEFT_QP_TERMINATE)
		return true;
	return (state == WEFT_QP_RTS || state == WEFT_QP_CLOSING) && READ_ONCE(st->gate_open);
}

static __always_inline bool rest(struct weft_stream *st)
{
	if (st->tx.swr || st->tx.drained || st->tx.porter == WEFT_TX_ATTENDED ||
	    READ_ONCE(st->state) == WEFT_QP_TERMINATE)
		return true;
	return (weft_sendq_lazy(st->cfg.sq) && weft_watch_begin(st)) ||
	       weft_sendq_set_idle(st->cfg.sq);
}

/**
 * weft_tx_rest - may the queue be left?
 * @st: stream
 *
 * Waiting requests are kicked by rx, those of a stopped stream by the flush.
 * Context: tx claim held. Return: false if there is something to send after all.
 */
bool weft_tx_rest(struct weft_stream *st)
{
	return rest(st);
}

/* Returns true when the budget is spent and there is more. */
static __always_inline bool send_trains(struct weft_stream *st, struct weft_cq_batch *batch)
{
	unsigned long end = jiffies + BUDGET;
	bool done;

	weft_sendq_set_busy(st->cfg.sq);
	while (may_send(st)) {
		done = stage_train(st);
		if (push(st, done, batch))
			return false;
		if (done) {
			if (READ_ONCE(st->state) != WEFT_QP_RTS)
				report_progress(st);
			if (rest(st))
				return false;
		}
		if (time_after(jiffies, end) || st->tx.porter)
			return true;
		cond_resched();
	}
	return false;
}

/**
 * weft_tx_flush - complete everything posted, as a failed stream must
 * @st: stream in error, tx claim held
 *
 * Not before rx is quiet: it may still be placing what answers one of them, and its owner
 * may free the memory. Posts that come later kick, find the stream in error and are
 * flushed the same way, each kick at most as much as the queues hold. Context: process.
 */
void weft_tx_flush(struct weft_stream *st)
{
	struct weft_cq_batch batch = {};

	weft_pick_drop(&st->tx);
	weft_retire_flush_sends(st, &batch);
	weft_retire_flush_receives(st, &batch);
	weft_cq_batch_fire(&batch);
}

/* One turn of the owner. Returns true when somebody should go on. */
static __always_inline bool turn(struct weft_stream *st)
{
	struct weft_cq_batch batch = {};
	unsigned int noio;
	bool more;

	if (READ_ONCE(st->state) == WEFT_QP_ERROR) {
		if (READ_ONCE(st->quiet))
			weft_tx_flush(st);
		return false;
	}
	if (!may_send(st))
		return false;
	noio = memalloc_noio_save();
	more = send_trains(st, &batch);
	memalloc_noio_restore(noio);
	weft_cq_batch_fire(&batch);
	return more;
}

/* What a holder of the claim does who has found news. */
static __always_inline bool take_turn(struct weft_stream *st)
{
	if (test_bit(WEFT_TX_AGAIN, &st->tx.claim))
		clear_bit(WEFT_TX_AGAIN, &st->tx.claim);
	smp_mb__after_atomic(); /* news that came before is seen from here on */
	return turn(st);
}

/**
 * weft_tx_turn - run tx once
 * @st: stream, tx claim held
 *
 * Context: process, may sleep. Return: true if somebody should go on.
 */
bool weft_tx_turn(struct weft_stream *st)
{
	return take_turn(st);
}

/**
 * weft_tx_mark - there is something to send
 * @st: stream
 *
 * Return: true if nobody runs tx, so that the caller must see to it. Any context.
 */
bool weft_hot weft_tx_mark(struct weft_stream *st)
{
	set_bit(WEFT_TX_AGAIN, &st->tx.claim);
	smp_mb__after_atomic();	/* pairs with the one in weft_tx_unclaim() */
	return !test_bit(WEFT_TX_CLAIMED, &st->tx.claim);
}

/* Takes the claim if nobody has it. */
bool weft_tx_try_claim(struct weft_stream *st)
{
	return !test_and_set_bit_lock(WEFT_TX_CLAIMED, &st->tx.claim);
}

/* Lets go of the claim; marks left meanwhile are the caller's to notice. */
void weft_tx_unclaim(struct weft_stream *st)
{
	clear_bit_unlock(WEFT_TX_CLAIMED, &st->tx.claim);
	smp_mb__after_atomic();	/* pairs with the one in weft_tx_mark() */
}

/**
 * weft_tx_run - run tx here and now unless somebody does
 * @st: stream
 *
 * A mark left by others while we owned the claim is served before we go, so no
 * kick is lost. Context: process, may sleep.
 */
void weft_hot weft_tx_run(struct weft_stream *st)
{
	bool more;

	do {
		while (test_and_set_bit_lock(WEFT_TX_CLAIMED, &st->tx.claim))
			if (!weft_tx_mark(st))
				return;	/* its owner sees the mark */
		more = take_turn(st);
		weft_tx_unclaim(st);
		if (more) {
			weft_kick_room(st);
			return;
		}
	} while (test_bit(WEFT_TX_AGAIN, &st->tx.claim));
}

/* Takes the claim, waiting for its owner to leave; an owner never blocks on TCP. */
void weft_tx_claim_wait(struct weft_stream *st)
{
	while (test_and_set_bit_lock(WEFT_TX_CLAIMED, &st->tx.claim))
		usleep_range(20, 100);
}

/**
 * weft_tx_settle - send what is posted by now, as far as TCP takes it
 * @st: stream about to be aborted
 *
 * A kick may have been left to a worker, or not been needed since one is looking;
 * that worker may come too late. Context: process, may sleep.
 */
void weft_tx_settle(struct weft_stream *st)
{
	if (!weft_sendq_waiting(st->cfg.sq))
		return;
	weft_tx_mark(st);	/* a worker that stays with the queue goes */
	weft_tx_claim_wait(st);
	turn(st);
	weft_tx_unclaim(st);
}

/**
 * weft_tx_response_in - a response has freed a credit
 * @st: stream, socket lock held
 *
 * Also the closing stream waits for its last response.
 */
void weft_hot weft_tx_response_in(struct weft_stream *st)
{
	if (READ_ONCE(st->tx.held) && weft_pick_waits_on(st))
		return;
	smp_mb();	/* the pop before, the mark after; pairs with waits() */
	if (test_and_clear_bit(WEFT_TX_WAITS, &st->tx.claim) ||
	    READ_ONCE(st->state) == WEFT_QP_CLOSING)
		st->rx.kick = true;
}
