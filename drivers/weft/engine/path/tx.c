// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The tx loop. The same code runs in a doorbell call, in a worker, and in the callbacks of
 * the socket; struct weft_tx_run tells them apart.
 */
#include "engine/path/tx.h"

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "base/trace.h"
#include "engine/ops/complete.h"
#include "engine/path/tx_segment.h"
#include "engine/state/claim.h"
#include "engine/state/fsm.h"
#include "engine/state/loopback.h"
#include "proto/hot.h"
#include "ring/cq.h"
#include "ring/sendq.h"

/* How long a doorbell call or a turn of the worker may send. */
#define PROCESS_TIME	(HZ / 20)

/* What one callback of the socket may stage. */
#define ATOMIC_BYTES_LEAST	SZ_64K
#define ATOMIC_BYTES_MOST	SZ_512K

/* What staging a batch came to. */
enum staged {
	STAGED_ALL,	/* nothing more to stage, not even at a second look */
	STAGED_FULL,	/* there may be more */
	STAGED_WAITS,	/* the next segment waits for an event */
	STAGED_LATER,	/* the next segment takes another context, or memory */
};

void weft_tx_run_process(struct weft_tx_run *run)
{
	*run = (struct weft_tx_run){ .end = jiffies + PROCESS_TIME };
}

/**
 * weft_tx_run_atomic - tx in a callback of the socket
 * @run: filled in
 * @acked: bytes that the peer has acknowledged since the last one
 *
 * As much may follow as has left, so that what is under way does not dwindle where the peer
 * acknowledges much at a time; within bounds, since a softirq is kept from other work.
 */
void weft_tx_run_atomic(struct weft_tx_run *run, u64 acked)
{
	*run = (struct weft_tx_run){
		.atomic = true,
		.bytes = clamp_t(u64, acked, ATOMIC_BYTES_LEAST, ATOMIC_BYTES_MOST),
	};
}

/* Is the budget spent? A process that is being killed has none. */
bool weft_tx_spent(const struct weft_tx_run *run)
{
	if (run->atomic)
		return run->bytes <= 0;
	return time_after(jiffies, run->end) || fatal_signal_pending(current);
}

/* Memory is held for one batch: invalidations wait for it, so nothing in here may sleep. */
static enum staged stage_batch(struct weft_stream *st, struct weft_tx_run *run)
{
	enum weft_segment_result got = WEFT_SEGMENT_STAGED;
	struct weft_tx *tx = &st->tx;
	u64 before = tx->sock.pos;
	bool full;

	weft_mpa_tx_refresh(&tx->sock);
	non_block_start();
	/* One look more takes time, and the peer waits for the push meanwhile. */
	do {
		full = weft_mpa_tx_full(&tx->sock) || weft_loopback_is_full(st);
		if (full)
			break;
		got = weft_segment_next(st);
	} while (got == WEFT_SEGMENT_STAGED &&
		 (tx->msgs || tx->swr || weft_sendq_pending(st->cfg.sq) ||
		  weft_readq_owes(&st->readq)));
	weft_mem_release(&tx->mem);
	non_block_end();
	if (unlikely(st->loopback))
		run->peer = weft_loopback_batch_end(st, run->peer);
	run->bytes -= tx->sock.pos - before;
	if (unlikely(got == WEFT_SEGMENT_LATER || got == WEFT_SEGMENT_WAITS))
		return got == WEFT_SEGMENT_LATER ? STAGED_LATER : STAGED_WAITS;
	if (full || (got == WEFT_SEGMENT_NONE && !weft_mpa_tx_empty(&tx->sock)))
		return STAGED_FULL;
	return STAGED_ALL;
}

/*
 * Pushes what is staged: 0 all gone, -EAGAIN the socket is full and will say when it has
 * room, -ENOBUFS it will not, else the connection is lost. A full batch has a next one behind
 * it, unless it is the @last, so its last segment may wait.
 */
static int push_staged(struct weft_stream *st, bool last, struct weft_cq_batch *batch)
{
	struct weft_mpa_tx *sock = &st->tx.sock;
	u64 before = sock->pushed;
	int err = weft_mpa_tx_push(sock, !last && weft_mpa_tx_full(sock));

	if (sock->pushed != before || err)
		trace_weft_tx_batch(st->cfg.ifindex, st->qpn, sock->pushed - before, err);
	weft_complete_pushed(st, sock->pushed, batch);
	if (err && err != -EAGAIN && err != -ENOBUFS)
		weft_stream_lose(st, WEFT_QP_CONN_LOST);
	return err;
}

/* Everything that may be sent was: tell the state machine what it waits for. */
static void report_progress(struct weft_stream *st)
{
	enum weft_qp_state state = READ_ONCE(st->state);
	struct weft_tx *tx = &st->tx;
	struct weft_sendq *sq = st->cfg.sq;

	if (tx->drained)
		return;
	if (state == WEFT_QP_TERMINATE && tx->term_staged) {
		tx->drained = true;
		weft_stream_step(st, WEFT_QP_TERMINATE_SENT);
	} else if (state == WEFT_QP_CLOSING && READ_ONCE(st->gate_open) && !tx->swr &&
		   !weft_sendq_pending(sq) && READ_ONCE(sq->cons) == sq->fetched &&
		   !READ_ONCE(st->rnr_waits)) {
		/* No FIN before a Terminate for a message without a receive; rx calls again. */
		tx->drained = true;
		weft_stream_step(st, WEFT_QP_SQ_DRAINED);
	}
}

/* What is sent while the gate is closed is for weft_segment_next() to say. */
static bool may_send(const struct weft_stream *st)
{
	/* Pairs with the release in weft_stream_step(): a Terminate says what was recorded. */
	enum weft_qp_state state = smp_load_acquire(&st->state);

	return state == WEFT_QP_RTS || state == WEFT_QP_CLOSING || state == WEFT_QP_TERMINATE;
}

/*
 * May the queue be left? Requests that wait are gone on with by rx, those of a stopped
 * stream by the flush. False if there is something to send after all.
 */
static __always_inline bool leave_queue(struct weft_stream *st)
{
	if (st->tx.swr || st->tx.drained || READ_ONCE(st->state) == WEFT_QP_TERMINATE)
		return true;
	if (weft_sendq_defers_doorbell(st->cfg.sq) && st->hooks->defer(st))
		return weft_sendq_leave(st->cfg.sq, WEFT_SQ_POLLED);
	return weft_sendq_leave(st->cfg.sq, WEFT_SQ_NEED_DOORBELL);
}

static __always_inline enum weft_tx_result
send_batches(struct weft_stream *st, struct weft_tx_run *run, struct weft_cq_batch *batch)
{
	enum staged staged;
	int err;

	weft_sendq_set_busy(st->cfg.sq);
	while (may_send(st)) {
		staged = stage_batch(st, run);
		err = push_staged(st, staged != STAGED_FULL, batch);
		/* What is done is told before more is sent, unless the socket is locked. */
		if (!run->atomic)
			weft_cq_batch_fire(batch);
		if ((err && err != -ENOBUFS) || (!err && staged == STAGED_WAITS))
			return WEFT_TX_DONE;
		if (!err && staged == STAGED_LATER && !run->atomic && !st->cfg.sq->wr) {
			weft_sendq_prepare(st->cfg.sq);
			continue;
		}
		if (err || staged == STAGED_LATER)
			return run->atomic ? WEFT_TX_NEEDS_PROCESS : WEFT_TX_NO_MEMORY;
		if (staged == STAGED_ALL) {
			if (READ_ONCE(st->state) != WEFT_QP_RTS)
				report_progress(st);
			if (leave_queue(st))
				return WEFT_TX_DONE;
		}
		if (weft_tx_spent(run))
			return WEFT_TX_MORE;
		if (!run->atomic)
			cond_resched();
	}
	return WEFT_TX_DONE;
}

/**
 * weft_tx_flush - complete everything posted, as a failed stream must
 * @st: stream in error, tx claim held
 *
 * Not before rx is quiet: it may still be placing what answers one of them, and its owner
 * may free the memory. Posts that come later ring the doorbell, find the stream in error and
 * are flushed the same way, each time at most as much as the queues hold. Context: process.
 */
void weft_tx_flush(struct weft_stream *st)
{
	struct weft_cq_batch batch = {};

	weft_segment_drop(&st->tx);
	weft_complete_flush_sends(st, &batch);
	weft_complete_flush_receives(st, &batch);
	weft_cq_batch_fire(&batch);
}

/**
 * weft_tx_turn - run tx once
 * @st: stream, tx claim held
 * @run: the context, and what is left of its budget
 *
 * Context: as @run says.
 */
enum weft_tx_result weft_tx_turn(struct weft_stream *st, struct weft_tx_run *run)
{
	struct weft_cq_batch batch;
	enum weft_tx_result result;
	unsigned int noio = 0;

	weft_tx_clear_mark(&st->tx.claim);
	if (READ_ONCE(st->state) == WEFT_QP_ERROR) {
		/* Pairs with weft_rx_stop(): what rx did last is seen by the flush. */
		if (!smp_load_acquire(&st->quiet))
			return WEFT_TX_DONE;
		if (run->atomic)
			return WEFT_TX_NEEDS_PROCESS;
		weft_tx_flush(st);
		return WEFT_TX_DONE;
	}
	if (!may_send(st))
		return WEFT_TX_DONE;
	batch.count = 0;
	st->tx.sock.atomic = run->atomic;
	if (!run->atomic)
		noio = memalloc_noio_save();
	result = send_batches(st, run, &batch);
	if (!run->atomic)
		memalloc_noio_restore(noio);
	weft_cq_batch_fire(&batch);
	return result;
}

/* A worker runs tx of the peer, if it is to run. Context: any. */
void weft_tx_leave_peer(struct weft_tx_run *run)
{
	struct weft_stream *peer = run->peer;

	run->peer = NULL;
	if (!peer)
		return;
	peer->hooks->want_tx(peer);
	weft_loopback_peer_done(peer);
}

/* Takes the claim, waiting for its owner to leave; an owner never blocks on TCP. */
void weft_tx_claim_wait(struct weft_stream *st)
{
	while (!weft_tx_try_claim(&st->tx.claim))
		usleep_range(20, 100);
}

/**
 * weft_tx_limit_ord - fewer requests may wait for a response
 * @st: stream with a connection
 * @ord: at most
 *
 * Under the claim: tx takes a place after it has seen that there is one. A stream that is over
 * sends none, and in the end its claim is taken for good. Context: process, may sleep.
 */
void weft_tx_limit_ord(struct weft_stream *st, u32 ord)
{
	while (!weft_tx_try_claim(&st->tx.claim)) {
		if (READ_ONCE(st->state) == WEFT_QP_ERROR)
			return;
		usleep_range(20, 100);
	}
	WRITE_ONCE(st->readq.ord, min(st->readq.ord, ord));
	if (weft_tx_unclaim(&st->tx.claim))
		st->hooks->want_tx(st);
}

/**
 * weft_tx_settle - send what is posted by now, as far as TCP takes it
 * @st: stream about to be aborted
 *
 * A doorbell may have been left to a worker, which may come too late. Context: process, may
 * sleep.
 */
void weft_tx_settle(struct weft_stream *st)
{
	struct weft_tx_run run;

	if (!weft_sendq_waiting(st->cfg.sq))
		return;
	weft_tx_run_process(&run);
	weft_tx_claim_wait(st);
	weft_tx_turn(st, &run);
	weft_tx_unclaim(&st->tx.claim);
	weft_tx_leave_peer(&run);
}
