// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The process counts the polls that find nothing, and looks at a word of ours at each
 * of them. If that says so it comes by a system call. Whether it polls at all is seen by
 * its count: it has to have moved between one errand that there might be and the
 * next, more often than not. One that does not come for all that is left alone for a
 * while, and what it was to do goes to a worker.
 */
#include "engine/helper.h"

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/time64.h>

#include "base/compat.h"
#include "base/counters.h"
#include "engine/away.h"
#include "engine/kick.h"
#include "engine/stream_state.h"

#define ROW		2	/* looks that make a process that polls */
#define ROW_MAX		8	/* of which so many are remembered */
#define LATE_NS		(200 * NSEC_PER_USEC)
#define TURN		16	/* streams served in one system call */

/* --- who it is ----------------------------------------------------------- */

static void give_to_workers(struct weft_helper *helper)
{
	struct weft_stream *st, *next;
	u8 all = 0;

	list_for_each_entry_safe(st, next, &helper->waiting, errands.node) {
		list_del_init(&st->errands.node);
		weft_count(st->cfg.counters, WEFT_CTR_ERRANDS_LATE);
		if (st->errands.todo & WEFT_ERRAND_READ)
			queue_work(weft_stream_wq, &st->rx_work);
		if (st->errands.todo & WEFT_ERRAND_SEND)
			queue_work(weft_stream_wq, &st->tx_work);
		all |= st->errands.todo;
		st->errands.todo = 0;
	}
	if (all & WEFT_ERRAND_READ)
		weft_patience_lost(&helper->reading);
	if (all & WEFT_ERRAND_SEND)
		weft_patience_lost(&helper->sending);
}

/* While there are errands again and again it goes on; it looks no more often than that. */
static enum hrtimer_restart look(struct hrtimer *timer)
{
	struct weft_helper *helper = container_of(timer, struct weft_helper, timer);
	bool some;

	spin_lock(&helper->lock);
	some = !list_empty(&helper->waiting);
	if (some && ktime_get_ns() - helper->since >= LATE_NS) {
		give_to_workers(helper);
		some = false;
	}
	helper->timed = some;
	spin_unlock(&helper->lock);
	if (!some)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(LATE_NS));
	return HRTIMER_RESTART;
}

/**
 * weft_helper_init - a process that has opened the device
 * @helper: what to fill in
 * @ctl: shared with it, NULL if it knows nothing of this
 *
 * Context: process.
 */
void weft_helper_init(struct weft_helper *helper, struct weft_ctx_ctl *ctl)
{
	helper->ctl = ctl;
	spin_lock_init(&helper->lock);
	INIT_LIST_HEAD(&helper->waiting);
	hrtimer_setup(&helper->timer, look, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}

/* Its streams are gone. Context: may sleep. */
void weft_helper_destroy(struct weft_helper *helper)
{
	WARN_ON_ONCE(!list_empty(&helper->waiting));
	weft_porter_destroy(&helper->porter);
	hrtimer_cancel(&helper->timer);
}

/* --- errands ------------------------------------------------------------- */

void weft_errands_init(struct weft_errands *errands)
{
	INIT_LIST_HEAD(&errands->node);
}

/*
 * Has it polled between the looks of late? One look in vain says little: the process may be
 * here for us, or a worker that does what it was not asked to may have its CPU.
 */
static bool is_polling(struct weft_helper *helper)
{
	u32 polls = READ_ONCE(helper->ctl->polls);

	if (polls != helper->polls)
		helper->row = min(helper->row + 1, ROW_MAX);
	else if (helper->row)
		helper->row--;
	helper->polls = polls;
	return helper->row >= ROW;
}

static bool may_help(const struct weft_stream *st)
{
	const struct weft_helper *helper = st->cfg.helper;

	return helper && helper->ctl && READ_ONCE(st->index->helpers);
}

static bool is_free(struct weft_helper *helper, struct weft_patience *patience)
{
	return is_polling(helper) && weft_patience_try(patience);
}

/**
 * weft_helper_may_read - may the process be left the reading?
 * @st: stream of it
 *
 * Context: any up to softirq. To be asked each time there might be one.
 */
bool weft_helper_may_read(struct weft_stream *st)
{
	struct weft_helper *helper = st->cfg.helper;
	bool yes;

	if (!may_help(st))
		return false;
	spin_lock_bh(&helper->lock);
	yes = is_free(helper, &helper->reading);
	spin_unlock_bh(&helper->lock);
	return yes;
}

/* Under the lock. */
static void leave_errand(struct weft_helper *helper, struct weft_stream *st, u8 errand)
{
	if (list_empty(&helper->waiting))
		helper->since = ktime_get_ns();
	if (list_empty(&st->errands.node))
		list_add_tail(&st->errands.node, &helper->waiting);
	st->errands.todo |= errand;
	WRITE_ONCE(helper->ctl->work, 1);
	weft_porter_news(&helper->porter.news);
	if (!helper->timed)
		hrtimer_start(&helper->timer, ns_to_ktime(LATE_NS), HRTIMER_MODE_REL_SOFT);
	helper->timed = true;
	weft_count(st->cfg.counters, WEFT_CTR_ERRANDS);
}

/**
 * weft_helper_wants - leave an errand to the process
 * @st: stream of a process that helps
 * @errand: what, and how
 *
 * Context: any up to softirq.
 */
void weft_helper_wants(struct weft_stream *st, u8 errand)
{
	struct weft_helper *helper = st->cfg.helper;

	spin_lock_bh(&helper->lock);
	leave_errand(helper, st, errand);
	spin_unlock_bh(&helper->lock);
}

/**
 * weft_helper_sends - leave sending to the process if it polls
 * @st: stream; there is news for its tx
 * @train: it is for short Reads, many at once
 *
 * One that waits for the process already is not asked for again: its count of polls would
 * say nothing, as it may be on its way. Context: any up to softirq.
 *
 * Return: the process sees to it, or whoever is given what it does not come for.
 */
bool weft_helper_sends(struct weft_stream *st, bool train)
{
	struct weft_helper *helper = st->cfg.helper;
	bool yes;

	if (!may_help(st))
		return false;
	spin_lock_bh(&helper->lock);
	yes = st->errands.todo & WEFT_ERRAND_SEND;
	if (!yes && is_free(helper, &helper->sending)) {
		leave_errand(helper, st, WEFT_ERRAND_SEND | (train ? WEFT_ERRAND_TRAIN : 0));
		yes = true;
	}
	spin_unlock_bh(&helper->lock);
	return yes;
}

/**
 * weft_helper_failed - it has not come to read, and somebody else does
 * @st: stream
 *
 * Context: any up to softirq.
 */
void weft_helper_failed(struct weft_stream *st)
{
	struct weft_helper *helper = st->cfg.helper;

	spin_lock_bh(&helper->lock);
	st->errands.todo &= WEFT_ERRAND_SEND;
	if (!st->errands.todo)
		list_del_init(&st->errands.node);
	weft_patience_lost(&helper->reading);
	spin_unlock_bh(&helper->lock);
	weft_count(st->cfg.counters, WEFT_CTR_ERRANDS_LATE);
}

/* --- the process --------------------------------------------------------- */

static struct weft_stream *begin(struct weft_helper *helper, u8 *todo)
{
	struct weft_stream *st;

	spin_lock_bh(&helper->lock);
	st = list_first_entry_or_null(&helper->waiting, struct weft_stream, errands.node);
	if (st) {
		list_del_init(&st->errands.node);
		*todo = st->errands.todo;
		st->errands.todo = 0;
		st->errands.running++;
		if (*todo & WEFT_ERRAND_READ)
			weft_patience_won(&helper->reading);
		if (*todo & WEFT_ERRAND_SEND)
			weft_patience_won(&helper->sending);
	}
	spin_unlock_bh(&helper->lock);
	return st;
}

/* The stream may go from here on. */
static void end(struct weft_helper *helper, struct weft_stream *st)
{
	spin_lock_bh(&helper->lock);
	st->errands.running--;
	spin_unlock_bh(&helper->lock);
}

/**
 * weft_helper_run - the process is here
 * @helper: it
 *
 * What is left for it meanwhile it does, too, but for Reads that are asked for in trains:
 * then it goes and looks at its queues, so that the next train is posted while this one is
 * answered.
 *
 * Context: process, may sleep.
 */
void weft_helper_run(struct weft_helper *helper)
{
	struct weft_stream *st;
	u32 turn;
	u8 todo = 0;

	if (!helper->ctl)
		return; /* it was never told of any */
	for (turn = 0; turn < TURN && !need_resched() && !signal_pending(current); turn++) {
		if (todo & WEFT_ERRAND_TRAIN)
			break;
		st = begin(helper, &todo);
		if (!st)
			break;
		if (todo & WEFT_ERRAND_READ)
			weft_away_serve(st);
		if (todo & WEFT_ERRAND_SEND)
			weft_kick(st);
		end(helper, st);
	}
	if (!list_empty_careful(&helper->waiting) || weft_porter_serve(&helper->porter))
		WRITE_ONCE(helper->ctl->work, 1);
}

/**
 * weft_errands_end - no thread runs an errand for a stream any more
 * @st: stream that has none from here on
 *
 * What was to be sent a worker sends: a Terminate may wait for just that. Context: may sleep.
 */
void weft_errands_end(struct weft_stream *st)
{
	struct weft_helper *helper = st->cfg.helper;
	bool running;

	if (!helper)
		return;
	do {
		spin_lock_bh(&helper->lock);
		list_del_init(&st->errands.node);
		if (st->errands.todo & WEFT_ERRAND_SEND)
			queue_work(weft_stream_wq, &st->tx_work);
		st->errands.todo = 0;
		running = st->errands.running;
		spin_unlock_bh(&helper->lock);
		if (running)
			usleep_range(20, 100);
	} while (running);
}
