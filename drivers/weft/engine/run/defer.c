// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * An application that streams says so in its control block. Its queue is then left POLLED
 * instead of NEED_DOORBELL: it posts without a call and rings the doorbell once, when it has
 * nothing left to poll. The timer is for a process that never comes to that: a post that was there
 * at the last look already gets the worker. Once in a while that happens to any process that loses
 * the CPU; one to which it happens again and again gains nothing from this, and is left
 * alone for a growing while.
 *
 * The state word of the queue, which producers read after they have published an entry (the
 * holder of the tx claim writes it, and looks at the queue again afterwards):
 *
 *	                   doorbell, callback, worker
 *	NEED_DOORBELL ---------------------------------> BUSY <---------------+
 *	    ^                                             |                   |
 *	    |   queue empty; no deferral, or it is off    |  queue empty      | doorbell, or the
 *	    +---------------------------------------------+  and deferral     | timer: a late post
 *	    ^                                             v                   |
 *	    +------------------------------------------ POLLED ---------------+
 *	        timer: nothing new for IDLE_POLLS looks,
 *	        or too many late posts (off for @backoff)
 */
#include "engine/run/defer.h"

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/counters.h"
#include "engine/run/doorbell.h"
#include "engine/state/stream.h"
#include "ring/cq.h"
#include "ring/sendq.h"

#define IDLE_POLLS	20
#define LATE_COST	8	/* looks in time that make good for a late one */
#define LATE_MAX	96
#define LATE_AFTER	(HZ / 10)	/* while the thread that polls rings other doorbells */
#define RINGING_MAX	4U
#define STRETCH_MAX	16U	/* periods: 4 ms unless an operator has changed them */
#define LOOKS_MAX	16U	/* a period, at all queues of a process */
#define BACKOFF_MIN	(HZ / 20)
#define BACKOFF_MAX	(10 * HZ)

/**
 * struct weft_defer - polling of one send queue, allocated when it is first asked for
 * @st: whose queue
 * @timer: looks at the queue while @on
 * @on: the timer runs, and the rest is its; set by the holder of the tx claim, whose the rest is
 *	otherwise, and cleared by the timer
 * @waiting: something was posted and not fetched at the last look
 * @idle: looks in a row that found nothing new
 * @late: how often a post lay about; good looks make up for it
 * @seen: what tx had fetched at the last look
 * @rings: the doorbells of the process, then
 * @stretch: periods from one look to the next, more while the process rings others
 * @since: jiffies of the last look at which no post had waited
 * @backoff: jiffies to leave the queue alone after the next failure
 * @not_before: jiffies before which the queue is not polled again
 */
struct weft_defer {
	struct weft_stream *st;
	struct hrtimer timer;
	bool on;
	bool waiting;
	u8 idle;
	u8 late;
	u32 seen;
	u32 rings;
	u32 stretch;
	unsigned long since;
	unsigned long backoff;
	unsigned long not_before;
};

/* When to look next, in nanoseconds from now, and how much later will do. */
struct poll_period {
	u64 period;
	u64 slack;
};

/*
 * A process is looked at as often with STRETCH_MAX queues as with one. With more of them it is
 * looked at more often, up to LOOKS_MAX times as often; and less, the longer its threads were seen
 * ringing doorbells. A look that need not be soon may wait for another one's, so that one
 * interrupt does for all queues of a process.
 */
static struct poll_period poll_period(const struct weft_defer *w)
{
	u64 least = max(READ_ONCE(w->st->index->sq_poll_interval), 10U) * (u64)NSEC_PER_USEC;
	u32 queues = max(atomic_read(&w->st->cfg.db_stat->polled), 1);
	u32 times = min(queues * w->stretch, max(STRETCH_MAX, queues / LOOKS_MAX));

	return (struct poll_period){ .period = times * least, .slack = (times - 1) * least };
}

/*
 * Looks once. Return: there is work for tx, a post without a doorbell, seen twice and still
 * not fetched. A thread that rings the doorbells of other queues of the same CQ gets to it, unless
 * it seems that it never will.
 */
static bool poll_queue(struct weft_defer *w)
{
	const struct weft_stream *st = w->st;
	const struct weft_cq_doorbells *send = &st->cfg.send_cq->doorbells;
	const struct weft_cq_doorbells *recv = &st->cfg.recv_cq->doorbells;
	u32 fetched = READ_ONCE(st->cfg.sq->fetched);
	bool waiting = weft_sendq_is_polled(st->cfg.sq) && weft_sendq_waiting(st->cfg.sq);
	u32 rings = READ_ONCE(send->rings) + READ_ONCE(recv->rings);
	bool rang = rings != w->rings || READ_ONCE(send->inside) || READ_ONCE(recv->inside);
	bool late = false;

	w->rings = rings;
	if (waiting && w->waiting && fetched == w->seen)
		late = !rang || time_after(jiffies, w->since + LATE_AFTER);
	else
		w->since = jiffies;
	if (late)
		w->late += LATE_COST;
	else if (w->late && fetched != w->seen)
		w->late--;
	if (fetched != w->seen)
		w->idle = 0;
	else if (!waiting || !rang)
		w->idle++;
	w->waiting = waiting && !late;
	w->seen = fetched;
	w->stretch = rang ? min(2 * w->stretch, RINGING_MAX) : 1;
	return late;
}

/* Counts a queue more. Return: false if there are so many that this one asks for doorbells. */
static bool count_polled(const struct weft_stream *st)
{
	if (!atomic_add_unless(&st->cfg.db_stat->polled, 1, WEFT_DEFER_PROCESS_MAX))
		return false;
	if (atomic_add_unless(&st->index->polled, 1, WEFT_DEFER_DEVICE_MAX))
		return true;
	atomic_dec(&st->cfg.db_stat->polled);
	return false;
}

static void uncount_polled(const struct weft_stream *st)
{
	atomic_dec(&st->index->polled);
	atomic_dec(&st->cfg.db_stat->polled);
}

static enum hrtimer_restart defer_timer_fn(struct hrtimer *timer)
{
	struct weft_defer *w = container_of(timer, struct weft_defer, timer);
	struct weft_stream *st = w->st;
	bool late = poll_queue(w);
	struct poll_period next;
	ktime_t at;

	if (late)
		weft_count(st->cfg.counters, WEFT_CTR_SQ_POLL_HITS);
	if (w->late < LATE_MAX && w->idle < IDLE_POLLS) {
		if (late)
			weft_tx_schedule(st);
		next = poll_period(w);
		at = ktime_add_ns(hrtimer_cb_get_time(timer), next.period);
		hrtimer_set_expires_range_ns(timer, at, next.slack);
		return HRTIMER_RESTART;
	}
	if (w->late >= LATE_MAX) {
		w->not_before = jiffies + w->backoff;
		w->backoff = min_t(unsigned long, 2 * w->backoff, BACKOFF_MAX);
	} else {
		w->backoff = BACKOFF_MIN;
	}
	/*
	 * The context that runs tx after the mark finds @on clear, and asks for doorbells
	 * again. One that runs it now may begin anew, and then the rest is its: pairs with
	 * weft_defer_begin().
	 */
	smp_store_release(&w->on, false);
	weft_tx_schedule(st);
	uncount_polled(st);
	return HRTIMER_NORESTART;
}

/* Without memory the queue asks for doorbells, and the next time it is tried again. */
static struct weft_defer *new_defer(struct weft_stream *st)
{
	struct weft_defer *w = kzalloc(sizeof(*w), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);

	if (!w)
		return NULL;
	hrtimer_setup(&w->timer, defer_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	w->st = st;
	w->backoff = BACKOFF_MIN;
	w->not_before = jiffies;
	st->defer = w;
	return w;
}

/**
 * weft_defer_cancel - no look any more
 * @st: stream whose queue is not polled again
 *
 * Context: may sleep.
 */
void weft_defer_cancel(struct weft_stream *st)
{
	struct weft_defer *w = st->defer;

	if (!w)
		return;
	hrtimer_cancel(&w->timer);
	if (w->on)
		uncount_polled(st);
	w->on = false;
}

/**
 * weft_defer_is_active - may a look be under way, or still to come?
 * @st: stream
 *
 * Context: any.
 */
bool weft_defer_is_active(const struct weft_stream *st)
{
	return st->defer && hrtimer_active(&st->defer->timer);
}

static void start_timer(struct weft_defer *w)
{
	const struct weft_stream *st = w->st;
	struct poll_period first;

	w->waiting = false;
	w->idle = 0;
	w->late = 0;
	w->stretch = 1;
	w->seen = st->cfg.sq->fetched;
	WRITE_ONCE(w->on, true);
	first = poll_period(w);
	hrtimer_start_range_ns(&w->timer, ns_to_ktime(first.period), first.slack,
			       HRTIMER_MODE_REL_SOFT);
}

/**
 * weft_defer_begin - leave an empty queue POLLED if that makes sense
 * @st: stream that may send, of an application that defers doorbells
 *
 * The caller looks at the queue once more. Context: tx claim held. Return: false if the queue
 * must ask for doorbells: polling is off, or there are too many, or nothing was posted since the
 * last one ended.
 */
bool weft_defer_begin(struct weft_stream *st)
{
	struct weft_sendq *sq = st->cfg.sq;
	struct weft_defer *w;

	if (!READ_ONCE(st->index->sq_poll_interval))
		return false;
	w = st->defer ?: new_defer(st);
	if (!w)
		return false;
	/* The timer has written its last; pairs with defer_timer_fn(). */
	if (!smp_load_acquire(&w->on)) {
		if (sq->fetched == w->seen || time_before(jiffies, w->not_before))
			return false;
		if (!count_polled(st))
			return false;
		start_timer(w);
	}
	return true;
}
