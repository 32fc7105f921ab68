// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * An application that streams says so in its control block. Its queue is then left WATCHED
 * instead of NEED_KICK: it posts without a call and rings the doorbell once, when it has nothing
 * left to poll. The timer is for a process that never comes to that: a post that was there at
 * the last look already gets the worker. Once in a while that happens to any process that loses
 * the CPU; one to which it happens again and again gains nothing from this, and is left
 * alone for a growing while.
 *
 * The state word of the queue, which producers read after they have published an entry (the
 * holder of the tx claim writes it, and looks at the queue again afterwards):
 *
 *	               doorbell, callback, worker
 *	NEED_KICK -------------------------------------> BUSY <---------------+
 *	    ^                                             |                   |
 *	    |   queue empty; not lazy, or deferral is off |  queue empty      | doorbell, or the
 *	    +---------------------------------------------+  and lazy         | timer: a late post
 *	    ^                                             v                   |
 *	    +------------------------------------------ WATCHED --------------+
 *	        timer: nothing new for IDLE_LOOKS looks,
 *	        or too many late posts (off for @backoff)
 */
#include "engine/run/defer.h"

#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/counters.h"
#include "engine/run/doorbell.h"
#include "engine/state/stream.h"
#include "ring/sendq.h"

#define IDLE_LOOKS	20
#define LATE_COST	8	/* looks in time that make good for a late one */
#define LATE_MAX	96
#define PATIENCE	(HZ / 10)	/* while the thread that polls is kicking something else */
#define KICKING_MAX	4U
#define STRETCH_MAX	16U
#define BACKOFF_MIN	(HZ / 20)
#define BACKOFF_MAX	(10 * HZ)

/* When to look next, in nanoseconds from now, and how much later will do. */
struct pace {
	u64 period;
	u64 slack;
};

/*
 * However many queues a process has, it is not looked at much more often; and the less,
 * the longer its threads were seen kicking. A look that need not be soon may wait for another
 * one's, so that one interrupt does for all queues of a process.
 */
static struct pace pace(const struct weft_defer *w)
{
	u64 least = max(READ_ONCE(w->st->index->watch), 10U) * (u64)NSEC_PER_USEC;
	u32 times = min(weft_db_stat_watched(w->st->cfg.db_stat) * w->stretch, STRETCH_MAX);

	return (struct pace){ .period = times * least, .slack = (times - 1) * least };
}

/*
 * A post nobody announced, seen twice and still not fetched by anybody. A thread that is
 * kicking other queues of the same CQ gets to it, unless it seems that it never will.
 */
static bool lies_about(struct weft_defer *w, u32 fetched, bool waiting, bool rang)
{
	if (!waiting || !w->waiting || fetched != w->seen) {
		w->since = jiffies;
		return false;
	}
	return !rang || time_after(jiffies, w->since + PATIENCE);
}

static void back_off(struct weft_defer *w)
{
	WRITE_ONCE(w->not_before, jiffies + w->backoff);
	w->backoff = min_t(unsigned long, 2 * w->backoff, BACKOFF_MAX);
}

/* Looks once. Return: there is work for tx. */
static bool look(struct weft_defer *w)
{
	const struct weft_stream *st = w->st;
	u32 fetched = READ_ONCE(st->cfg.sq->fetched);
	bool waiting = weft_sendq_is_watched(st->cfg.sq) && weft_sendq_waiting(st->cfg.sq);
	bool rang = weft_doorbell_rang(&st->cfg, &w->rings);
	bool late = lies_about(w, fetched, waiting, rang);

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
	w->stretch = rang ? min(2 * w->stretch, KICKING_MAX) : 1;
	return late;
}

static bool goes_on(struct weft_defer *w)
{
	if (w->late >= LATE_MAX) {
		back_off(w);
		return false;
	}
	if (w->idle < IDLE_LOOKS)
		return true;
	w->backoff = BACKOFF_MIN;
	return false;
}

static void plan_next(struct weft_defer *w)
{
	struct pace next = pace(w);
	ktime_t at = ktime_add_ns(hrtimer_cb_get_time(&w->timer), next.period);

	hrtimer_set_expires_range_ns(&w->timer, at, next.slack);
}

/* Whoever runs tx after the mark finds @on clear and asks for kicks again. */
static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct weft_defer *w = container_of(timer, struct weft_defer, timer);
	struct weft_stream *st = w->st;
	bool late = look(w);
	bool on = goes_on(w);

	if (late)
		weft_count(st->cfg.counters, WEFT_CTR_KICKS_WATCH);
	if (!on)
		WRITE_ONCE(w->on, false);
	if (late || !on)
		weft_tx_schedule(st);
	if (!on)
		weft_db_stat_unwatch(st->cfg.db_stat);
	if (on)
		plan_next(w);
	return on ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

/* Without memory the queue asks for kicks, and the next time it is tried again. */
static struct weft_defer *new_watch(struct weft_stream *st)
{
	struct weft_defer *w = kzalloc(sizeof(*w), GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);

	if (!w)
		return NULL;
	hrtimer_setup(&w->timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	w->st = st;
	w->backoff = BACKOFF_MIN;
	w->not_before = jiffies;
	st->defer = w;
	return w;
}

/**
 * weft_defer_cancel - no look any more
 * @st: stream whose queue nobody watches again
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
		weft_db_stat_unwatch(st->cfg.db_stat);
	w->on = false;
}

static void start(struct weft_defer *w)
{
	const struct weft_stream *st = w->st;
	struct pace first;

	weft_db_stat_watch(st->cfg.db_stat);
	w->waiting = false;
	w->idle = 0;
	w->late = 0;
	w->stretch = 1;
	w->seen = st->cfg.sq->fetched;
	WRITE_ONCE(w->on, true);
	first = pace(w);
	hrtimer_start_range_ns(&w->timer, ns_to_ktime(first.period), first.slack,
			       HRTIMER_MODE_REL_SOFT);
}

/**
 * weft_defer_begin - leave an empty queue WATCHED if that makes sense
 * @st: stream that may send, of an application that is lazy
 *
 * The caller looks at the queue once more. Context: tx claim held. Return: false if the queue
 * must ask for kicks: there are no watches, or nothing was posted since the last one ended.
 */
bool weft_defer_begin(struct weft_stream *st)
{
	struct weft_sendq *sq = st->cfg.sq;
	struct weft_defer *w;

	if (!READ_ONCE(st->index->watch))
		return false;
	w = st->defer ?: new_watch(st);
	if (!w)
		return false;
	if (!READ_ONCE(w->on)) {
		if (sq->fetched == w->seen || time_before(jiffies, READ_ONCE(w->not_before)))
			return false;
		start(w);
	}
	return true;
}
