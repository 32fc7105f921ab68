// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Work requests leave the send queue in the order they came, each when it is
 * done; a failed stream flushes what is left. Requests become done out of order
 * (a Send behind a Read), so "done" is a mark and retiring a walk from the head.
 */
#include "engine/ops/complete.h"

#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/nospec.h>

#include "base/counters.h"
#include "base/trace.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "proto/hot.h"
#include "ring/cq.h"
#include "ring/sendq.h"

/* Opcodes of completions, by those of work requests. */
static const u8 wc_opcodes[WEFT_WR_OP_COUNT] = {
	[WEFT_WR_SEND] = WEFT_WC_SEND,		[WEFT_WR_SEND_INV] = WEFT_WC_SEND,
	[WEFT_WR_SEND_IMM] = WEFT_WC_SEND,	[WEFT_WR_WRITE] = WEFT_WC_WRITE,
	[WEFT_WR_WRITE_IMM] = WEFT_WC_WRITE,	[WEFT_WR_READ] = WEFT_WC_READ,
	[WEFT_WR_READ_INV] = WEFT_WC_READ,	[WEFT_WR_ATOMIC_FADD] = WEFT_WC_FADD,
	[WEFT_WR_ATOMIC_CSWAP] = WEFT_WC_CSWAP, [WEFT_WR_LOCAL_INV] = WEFT_WC_LOCAL_INV,
	[WEFT_WR_BIND_MW] = WEFT_WC_BIND_MW,	[WEFT_WR_REG_MR] = WEFT_WC_REG_MR,
};

/*
 * Completes and frees every request at the head that is done. The entry is given back before
 * its completion shows: a polling process may post again. An error says that a completion is
 * lost, which cannot be made good: the caller ends the stream, without the lock.
 */
static int weft_hot complete_in_order(struct weft_stream *st, struct weft_cq_batch *batch)
	__must_hold(&st->complete_lock)
{
	struct weft_sendq *sq = st->cfg.sq;
	struct weft_cqe cqe __uninitialized;
	struct weft_swr *swr;
	int err = 0;

	lockdep_assert_held(&st->complete_lock);
	while ((swr = weft_sendq_done_head(sq))) {
		bool wanted = swr->status || st->cfg.signal_all ||
			      swr->wqe.flags & WEFT_WRF_SIGNALED;

		if (READ_ONCE(st->discard)) {
			weft_sendq_advance_cons(sq, swr);
			continue;
		}
		if (wanted)
			cqe = (struct weft_cqe){
				.wr_id = swr->wqe.wr_id,
				.qp_num = st->qpn,
				.opcode = wc_opcodes[array_index_nospec(swr->wqe.opcode,
									WEFT_WR_OP_COUNT)],
				.byte_len = swr->wc_len,
				.status = swr->status,
				.vendor_err = swr->vendor_err,
				.flags = swr->status ? WEFT_WCF_SOLICITED : 0,
			};
		if (swr->status != WEFT_STATUS_SUCCESS)
			weft_count(&st->counters, swr->status == WEFT_STATUS_FLUSH ?
							  WEFT_CTR_WR_FLUSHES :
							  WEFT_CTR_WR_ERRORS);
		trace_weft_send_done(st->cfg.ifindex, st->qpn, swr->wqe.wr_id, swr->status,
				     swr->wc_len);
		weft_sendq_advance_cons(sq, swr);
		if (wanted)
			err |= weft_cq_post(st->cfg.send_cq, &cqe, batch);
	}
	return err;
}

/**
 * weft_complete_done - a work request has its outcome
 * @st: stream
 * @swr: its request, fetched and not yet done
 * @fault: WEFT_FAULT_NONE for success
 * @batch: completion queues to notify later, or NULL
 *
 * Context: any up to softirq.
 */
void weft_hot weft_complete_done(struct weft_stream *st, struct weft_swr *swr,
				 enum weft_fault fault, struct weft_cq_batch *batch)
{
	int err;

	spin_lock_bh(&st->complete_lock);
	swr->wc_len = swr->length;
	weft_sendq_done(swr, fault);
	err = complete_in_order(st, batch);
	spin_unlock_bh(&st->complete_lock);
	if (err)
		weft_stream_fault(st, WEFT_FAULT_LOCAL_CATASTROPHIC, NULL, 0, 0);
}

/**
 * weft_complete_pushed - TCP has accepted the stream up to a position
 * @st: stream, tx claim held
 * @pushed: that position
 * @batch: completion queues to notify later, or NULL
 *
 * Sends and Writes are done when TCP has all their bytes (RFC 5040, 5.5).
 */
void weft_hot weft_complete_pushed(struct weft_stream *st, u64 pushed, struct weft_cq_batch *batch)
{
	struct weft_sendq *sq = st->cfg.sq;
	int err;

	if (st->tx.sent == sq->fetched)
		return;
	spin_lock_bh(&st->complete_lock);
	st->tx.sent = weft_sendq_pushed(sq, st->tx.sent, pushed);
	err = complete_in_order(st, batch);
	spin_unlock_bh(&st->complete_lock);
	if (err)
		weft_stream_fault(st, WEFT_FAULT_LOCAL_CATASTROPHIC, NULL, 0, 0);
}

/**
 * weft_complete_is_sent - does TCP have all of a request?
 * @st: stream
 * @swr: planned, and not answered
 *
 * Only then may there be a response. A peer that sends one all the same would have a request
 * complete that is still to be staged or pushed, and its slot used again meanwhile.
 *
 * Context: owner of rx, which reads what came behind the request: TCP had that with the socket
 * locked, and so had the peer's answer.
 */
bool weft_hot weft_complete_is_sent(const struct weft_stream *st, const struct weft_swr *swr)
{
	/* As a rule; else the push goes on, or its owner has not told us of it yet. */
	if (READ_ONCE(swr->state) == WEFT_SWR_SENT)
		return true;
	return weft_mpa_tx_is_accepted(&st->tx.sock, READ_ONCE(swr->tx_end));
}

/* Posts a receive completion; any context up to softirq. */
void weft_hot weft_complete_receive(struct weft_stream *st, const struct weft_cqe *cqe,
				    struct weft_cq_batch *batch)
{
	if (cqe->status != WEFT_STATUS_SUCCESS)
		weft_count(&st->counters, cqe->status == WEFT_STATUS_FLUSH ? WEFT_CTR_WR_FLUSHES :
									     WEFT_CTR_WR_ERRORS);
	trace_weft_receive_done(st->cfg.ifindex, st->qpn, cqe->wr_id, cqe->status, cqe->byte_len);
	if (weft_cq_post(st->cfg.recv_cq, cqe, batch))
		weft_stream_fault(st, WEFT_FAULT_LOCAL_CATASTROPHIC, NULL, 0, 0);
}

/* If there is a reason that none of them is named in, the oldest request says so. */
static void flush_request(struct weft_stream *st, struct weft_swr *swr)
	__must_hold(&st->complete_lock)
{
	enum weft_fault fault = WEFT_FAULT_FLUSHED;

	lockdep_assert_held(&st->complete_lock);
	if (swr->state == WEFT_SWR_DONE)
		return;
	if (st->oldest_fault != WEFT_FAULT_NONE)
		fault = st->oldest_fault;
	st->oldest_fault = WEFT_FAULT_NONE;
	weft_sendq_done(swr, fault);
}

/* Sends and Immediate Data share a queue; Writes are told by where they went. */
static bool is_named(const struct weft_term *term, const struct weft_swr *swr)
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
 * weft_complete_named - the Send or Write that the peer's Terminate is about
 * @st: stream, tx claim and complete_lock held, at its end
 *
 * Return: a request that is not completed and did not fail by itself, or NULL.
 */
struct weft_swr *weft_complete_named(const struct weft_stream *st)
{
	const struct weft_sendq *sq = st->cfg.sq;
	struct weft_swr *swr;
	u32 count, i;

	/* pairs with weft_term_end() */
	if (!smp_load_acquire(&st->peer_terminated) || !st->peer_term.has_ddp)
		return NULL;
	count = weft_sendq_in_flight(sq);
	for (i = 0; i < count; i++) {
		swr = weft_sendq_wr(sq, sq->cons + i);
		if (swr == st->tx.swr)
			break;
		if (!swr->status && is_named(&st->peer_term, swr))
			return swr;
	}
	return NULL;
}

/*
 * The peer has said which request it refuses. TCP may have it all: as long as it
 * is not completed, no process was told that it succeeded.
 */
static void fail_the_named(struct weft_stream *st)
{
	const struct weft_term *term = &st->peer_term;
	struct weft_swr *swr = weft_complete_named(st);
	enum weft_fault fault;

	if (!swr)
		return;
	fault = weft_fault_from_terminate(term->layer, term->etype, term->ecode);
	if (st->oldest_fault == WEFT_FAULT_NO_RECEIVE) {
		fault = WEFT_FAULT_NO_RECEIVE;
		st->oldest_fault = WEFT_FAULT_NONE;
	}
	swr->state = WEFT_SWR_FETCHED;
	weft_sendq_done(swr, fault);
}

/* What was fetched keeps the outcome it has, but for what the peer's Terminate names. */
static void flush_fetched(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_sendq *sq = st->cfg.sq;
	u32 count, i;

	spin_lock_bh(&st->complete_lock);
	fail_the_named(st);
	count = weft_sendq_in_flight(sq);
	for (i = 0; i < count; i++)
		flush_request(st, weft_sendq_wr(sq, sq->cons + i));
	if (count) /* a queue never used has no requests to look at */
		complete_in_order(st, batch);
	spin_unlock_bh(&st->complete_lock);
}

/**
 * weft_complete_flush_sends - complete all posted sends, whatever became of them
 * @st: stream, tx claim held, nothing will be sent any more
 * @batch: completion queues to notify later
 *
 * Requests that already have an outcome keep it, but for the one that the peer's
 * Terminate names; the rest is flushed, also what still stands in the shared ring.
 * First producers are asked for a doorbell: what they post without one was posted before, so
 * it is at most as much as the queue holds. A process that moves its index on and on gets no
 * more than that done on our time.
 *
 * Context: process, may sleep.
 */
void weft_complete_flush_sends(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_sendq *sq = st->cfg.sq;
	u32 left = sq->ring.entries;
	struct weft_swr *swr;

	flush_fetched(st, batch);
	if (!weft_sendq_leave(sq, WEFT_SQ_NEED_DOORBELL))
		weft_sendq_prepare(sq);
	while (sq->wr && left-- && !IS_ERR_OR_NULL(swr = weft_sendq_fetch(sq))) {
		spin_lock_bh(&st->complete_lock);
		flush_request(st, swr);
		complete_in_order(st, batch);
		spin_unlock_bh(&st->complete_lock);
		cond_resched();
	}
	st->tx.swr = NULL;
	st->tx.sent = sq->fetched;
}

static void flush_receive(struct weft_stream *st, struct weft_cq_batch *batch)
{
	const struct weft_cqe cqe = {
		.wr_id = st->rx.rwr.wr_id,
		.qp_num = st->qpn,
		.opcode = WEFT_WC_RECV,
		.status = WEFT_STATUS_FLUSH,
		.vendor_err = WEFT_FAULT_FLUSHED,
		.flags = WEFT_WCF_SOLICITED,
	};

	if (READ_ONCE(st->discard))
		return;
	weft_count(&st->counters, WEFT_CTR_WR_FLUSHES);
	trace_weft_receive_done(st->cfg.ifindex, st->qpn, cqe.wr_id, cqe.status, cqe.byte_len);
	weft_cq_post(st->cfg.recv_cq, &cqe, batch);
}

/**
 * weft_complete_flush_receives - complete all posted receives with a flush
 * @st: stream, tx claim held, rx quiet
 * @batch: completion queues to notify later
 *
 * The receive in hand goes first. A shared queue keeps its other entries: they
 * belong to the next stream. No more than the queue holds is flushed, as in
 * weft_complete_flush_sends(): what is posted from here on comes with a doorbell.
 *
 * Context: process, may sleep.
 */
void weft_complete_flush_receives(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_recvq *rq = st->cfg.rq;
	u32 left = rq->ring.entries;
	int err;

	if (st->rx.rwr_held)
		flush_receive(st, batch);
	st->rx.rwr_held = false;
	if (st->cfg.shared_rq)
		return;
	weft_recvq_set_flushing(rq, true);
	while (left--) {
		err = weft_recvq_fetch(rq, &st->rx.rwr);
		/* A malformed receive is owed its flush like any other. */
		if (err && err != -EINVAL)
			break;
		flush_receive(st, batch);
		cond_resched();
	}
}
