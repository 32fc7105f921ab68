// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The contexts of tx. There is one loop, and it runs where the work turns up:
 *
 *	a doorbell call		in the process that posted
 *	a callback of the socket	an answer is owed, a credit is free, or TCP has room again:
 *				bottom halves are off and the socket is locked
 *	a worker		for kernel consumers, which post in any context, and for what
 *				the other two leave
 *
 * The callback is what makes one-sided operations go on while the process that owns the memory
 * computes, sleeps or is stopped, and what sends the rest of a long message, acknowledgment
 * by acknowledgment.
 */
#include "engine/run/doorbell.h"

#include <linux/bottom_half.h>
#include <linux/jiffies.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

#include "base/counters.h"
#include "base/trace.h"
#include "engine/path/tx.h"
#include "engine/state/claim.h"
#include "engine/state/loopback.h"
#include "net/tcp_info.h"
#include "net/tcp_internals.h"
#include "proto/hot.h"
#include "ring/cq.h"

/* What a turn costs in a callback, even if it stages nothing. */
#define TURN_BYTES	SZ_1K

/* How long to wait before an allocation that failed is tried again. */
#define MEMORY_DELAY	max(HZ / 100, 1)

enum doorbell_mode {
	DOORBELL_INLINE,
	DOORBELL_QUEUED,
	DOORBELL_MERGED,
	DOORBELL_SOFTIRQ,
};

static void queue_worker(struct weft_stream *st, unsigned long delay)
{
	weft_count(st->cfg.counters, WEFT_CTR_TX_WORK_QUEUED);
	trace_weft_tx_run(st->cfg.ifindex, st->qpn, DOORBELL_QUEUED);
	queue_delayed_work(st->wq, &st->tx_work, delay);
}

/*
 * A mark that was left while the claim was held is served before this returns, so no doorbell is
 * lost. When the budget is spent, a callback goes on as soon as the peer acknowledges something,
 * or a worker where nothing is unacknowledged.
 */
static __always_inline void run_tx(struct weft_stream *st, struct weft_tx_run *run)
{
	enum weft_tx_result result;
	bool resumes, again;

	do {
		if (!weft_tx_claim_or_mark(&st->tx.claim))
			return;
		result = weft_tx_turn(st, run);
		resumes = result == WEFT_TX_MORE && st->sock &&
			  weft_tcp_await_space(st->tx.sock.sk);
		again = weft_tx_unclaim(&st->tx.claim);
		/* A callback that came before the claim was free has left a mark instead. */
		if (resumes && (run->atomic || !again))
			return;
		run->bytes -= TURN_BYTES;
		if (result == WEFT_TX_DONE && again && weft_tx_spent(run))
			result = WEFT_TX_MORE;
	} while (result == WEFT_TX_DONE && again);
	if (result != WEFT_TX_DONE)
		queue_worker(st, result == WEFT_TX_NO_MEMORY ? MEMORY_DELAY : 0);
}

/*
 * tx of the peer on this host, and what that brings for this end, and so on: one after the other,
 * never one inside the other, with the budget of the one call.
 */
static noinline void run_peers(struct weft_tx_run *run)
{
	struct weft_stream *peer;

	while (run->peer && !weft_tx_spent(run)) {
		peer = run->peer;
		run->peer = NULL;
		run_tx(peer, run);
		weft_loopback_peer_done(peer);
	}
	weft_tx_leave_peer(run);
}

/**
 * weft_tx_process - run tx here and now unless it is running
 * @st: stream
 *
 * For a time that is bounded. A thread that finds nothing to poll rings the doorbells of all
 * queue pairs of that completion queue, one after the other: it comes to each, however long the
 * first ones take. So a look at a queue (poll_queue()) is told of the doorbells of its completion
 * queues; those of others are other threads' business. Context: process, may sleep.
 */
void weft_hot weft_tx_process(struct weft_stream *st)
{
	struct weft_cq_doorbells *send = &st->cfg.send_cq->doorbells;
	struct weft_cq_doorbells *recv = &st->cfg.recv_cq->doorbells;
	struct weft_tx_run run;

	weft_tx_run_process(&run);
	WRITE_ONCE(send->inside, true);
	WRITE_ONCE(recv->inside, true);
	run_tx(st, &run);
	if (unlikely(run.peer))
		run_peers(&run);
	WRITE_ONCE(send->rings, READ_ONCE(send->rings) + 1);
	WRITE_ONCE(recv->rings, READ_ONCE(recv->rings) + 1);
	WRITE_ONCE(send->inside, false);
	WRITE_ONCE(recv->inside, false);
}

static void tx_work(struct work_struct *work)
{
	weft_tx_process(container_of(work, struct weft_stream, tx_work.work));
}

/* For a stream that is being made. */
void weft_doorbell_init(struct weft_stream *st)
{
	INIT_DELAYED_WORK(&st->tx_work, tx_work);
}

/**
 * weft_doorbell_end - no worker runs tx any more
 * @st: stream whose tx claim is taken for good, and with no timer that marks it
 *
 * Context: may sleep.
 */
void weft_doorbell_end(struct weft_stream *st)
{
	cancel_delayed_work_sync(&st->tx_work);
}

/**
 * weft_doorbell - a process has posted
 * @st: stream
 *
 * tx runs in its context, but not for long, and not when it is being killed. Context: process,
 * may sleep.
 */
void weft_hot weft_doorbell(struct weft_stream *st)
{
	weft_count(st->cfg.counters, WEFT_CTR_TX_DOORBELLS);
	trace_weft_tx_run(st->cfg.ifindex, st->qpn, DOORBELL_INLINE);
	weft_tx_process(st);
}

/**
 * weft_tx_schedule - let a worker run tx
 * @st: stream
 *
 * Context: any up to softirq, also with the socket lock held.
 */
void weft_tx_schedule(struct weft_stream *st)
{
	if (weft_tx_mark(&st->tx.claim)) {
		queue_worker(st, 0);
	} else {
		weft_count(st->cfg.counters, WEFT_CTR_TX_WORK_MERGED);
		trace_weft_tx_run(st->cfg.ifindex, st->qpn, DOORBELL_MERGED);
	}
}

/**
 * weft_tx_softirq - run tx in a callback of the socket
 * @st: stream
 *
 * Context: socket lock held, by a softirq or by a process that is releasing it.
 */
void weft_hot weft_tx_softirq(struct weft_stream *st)
{
	u64 acked = weft_tcp_bytes_acked(st->sock);
	struct weft_tx_run run;

	weft_count(st->cfg.counters, WEFT_CTR_TX_SOFTIRQ);
	trace_weft_tx_run(st->cfg.ifindex, st->qpn, DOORBELL_SOFTIRQ);
	weft_tx_run_atomic(&run, acked - st->acked);
	st->acked = acked;
	local_bh_disable(); /* the page fragment of this CPU is written to */
	run_tx(st, &run);
	local_bh_enable();
}
