// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A stream whose kicks are answered on the spot, one short request after the other, looks
 * whether the process that owes the answers polls in vain meanwhile, and asks it in. That
 * one comes by the call of helpers (engine/helper.c), takes the claim of tx, leaves the
 * queue BUSY and looks at it, as a poller does (engine/poll.c). It goes when there
 * is anything that it might be waiting for itself, when its CPU is wanted, and after a
 * while in any case. If it has found posts until then, it comes again.
 */
#include "engine/porter.h"

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/time64.h>

#include "base/compat.h"
#include "base/counters.h"
#include "engine/bell.h"
#include "engine/helper.h"
#include "engine/kick.h"
#include "engine/relay.h"
#include "engine/stream_state.h"
#include "engine/tx.h"
#include "proto/hot.h"
#include "ring/sendq.h"
#include "uapi/weft-abi.h"

#define KICKS		16	/* in one jiffy: worth a porter */
#define MISSED		2	/* asked in vain: it does not come */
#define POLL_NS		1000U /* between two polls of one who does nothing else */
#define SPINS		16	/* looks at the queue for one at the clock */
#define STAY_NS		(200 * NSEC_PER_USEC)

/* Who is at which door: weft_porter.at, .inside and .missed, weft_door.porter, .closed. */
static DEFINE_SPINLOCK(lock); /* bh */

/* --- who asks ------------------------------------------------------------ */

static void dismiss(struct weft_porter *porter)
{
	lockdep_assert_held(&lock);
	if (porter->at)
		porter->at->door.porter = NULL;
	porter->at = NULL;
}

/*
 * Has it polled in vain, and done nothing else, since the last time that it might have been
 * asked? Whatever a process looks at between its polls would wait for it.
 */
static bool is_idle(struct weft_helper *helper)
{
	struct weft_porter *porter = &helper->porter;
	u32 polls = READ_ONCE(helper->ctl->polls) - porter->polls;
	u64 now = ktime_get_ns();
	u64 time = now - porter->looked;

	porter->polls += polls;
	porter->looked = now;
	return polls > div_u64(time, POLL_NS);
}

/*
 * Does who posts sleep until an event? It has its answer before it could, if it sends itself; a
 * porter would have to wake it.
 */
static bool is_for_events(struct weft_stream *st)
{
	lockdep_assert_held(&lock);
	return weft_bell_had_event(st->cfg.bell, &st->door.events);
}

static void ask(struct weft_stream *st, struct weft_helper *helper)
{
	struct weft_porter *porter = &helper->porter;

	if (st->door.closed || porter->at || is_for_events(st) || !is_idle(helper) ||
	    !weft_patience_try(&porter->patience))
		return;
	porter->at = st;
	porter->missed = 0;
	porter->known = READ_ONCE(porter->news);
	st->door.porter = porter;
	WRITE_ONCE(helper->ctl->work, 1);
}

/* One that was asked and has not come may never do so. */
static void wait_for(struct weft_porter *porter)
{
	if (porter->inside || ++porter->missed < MISSED)
		return;
	weft_patience_lost(&porter->patience);
	dismiss(porter);
}

static noinline void want(struct weft_stream *st, struct weft_helper *helper)
{
	if (!st->cfg.helper || !helper || !helper->ctl || !READ_ONCE(st->index->helpers))
		return;
	spin_lock_bh(&lock);
	if (st->door.porter)
		wait_for(st->door.porter);
	else
		ask(st, helper);
	spin_unlock_bh(&lock);
}

/**
 * weft_porter_meet - a kick was answered on the spot
 * @st: stream that was kicked
 * @answers: stream that owed the answer
 *
 * Context: process.
 */
void weft_hot weft_porter_meet(struct weft_stream *st, struct weft_stream *answers)
{
	struct weft_door *door = &st->door;
	u16 now = jiffies;

	if (door->tick != now) {
		door->tick = now;
		door->kicks = 0;
	} else if (++door->kicks == KICKS) {
		want(st, answers->cfg.helper);
	}
}

/**
 * weft_porter_end - nobody is at the door of a stream any more, nor comes again
 * @st: stream
 *
 * Context: may sleep.
 */
void weft_porter_end(struct weft_stream *st)
{
	struct weft_porter *porter;
	bool inside;

	do {
		spin_lock_bh(&lock);
		st->door.closed = true;
		porter = st->door.porter;
		inside = porter && porter->inside;
		if (porter && !inside)
			dismiss(porter);
		spin_unlock_bh(&lock);
		if (inside)
			usleep_range(20, 100);
	} while (inside);
}

/* --- the porter ---------------------------------------------------------- */

enum reason {
	NONE,
	WANTED,		/* elsewhere, for what it waits for itself */
	NEEDED,		/* its CPU */
	POINTLESS,	/* nobody posts one by one here */
	TIME_IS_UP,
	SWAMPED,	/* more than it should do at a time */
};

static bool is_posted(const struct weft_stream *st)
{
	return weft_sendq_pending(st->cfg.sq) || test_bit(WEFT_TX_AGAIN, &st->tx.claim);
}

/* Without its CPU it would keep who posts waiting. */
static bool look(const struct weft_stream *st)
{
	bool posted;
	u32 spins;

	preempt_disable();
	for (spins = SPINS; !(posted = is_posted(st)) && --spins;)
		cpu_relax();
	preempt_enable();
	return posted;
}

static bool turn(struct weft_stream *st)
{
	struct weft_relay relay;
	bool more;

	weft_relay_open(&relay, st);
	more = weft_tx_turn(st);
	weft_relay_close(&relay);
	return more;
}

/* Why go, one that has come at @start? */
static enum reason is_called(const struct weft_porter *porter, const struct weft_stream *st,
			     u64 start)
{
	if (READ_ONCE(porter->news) != porter->known)
		return WANTED;
	if (compat_cpu_is_wanted() || signal_pending(current))
		return NEEDED;
	if (READ_ONCE(st->state) != WEFT_QP_RTS)
		return POINTLESS;
	return ktime_get_ns() - start < STAY_NS ? NONE : TIME_IS_UP;
}

/* Tx claim held, the queue BUSY. */
static enum reason stay(const struct weft_porter *porter, struct weft_stream *st, u64 start,
			u32 *heard)
{
	enum reason reason;

	while (!(reason = is_called(porter, st, start))) {
		if (!look(st))
			continue;
		if (turn(st))
			return SWAMPED;
		++*heard;
	}
	return reason;
}

/* Whoever kicks it at this very moment is through soon, if he has not lost his CPU. */
static enum reason claim(const struct weft_porter *porter, struct weft_stream *st, u64 start)
{
	enum reason reason = NONE;

	while (!weft_tx_try_claim(st)) {
		reason = weft_sendq_lazy(st->cfg.sq) ? POINTLESS : is_called(porter, st, start);
		if (reason)
			break;
		cpu_relax();
	}
	return reason;
}

/*
 * What was posted behind the last look is sent still, but no more than that. Who posts
 * next must find the claim free, or its kick is left to a worker.
 */
static void part(struct weft_stream *st, bool more)
{
	struct weft_relay relay;

	st->tx.porter = WEFT_TX_PARTING;
	weft_relay_open(&relay, st);
	if (!more && !weft_tx_rest(st))
		more = weft_tx_turn(st);
	st->tx.porter = WEFT_TX_ALONE;
	weft_tx_unclaim(st);
	weft_relay_close(&relay);
	if (more || test_bit(WEFT_TX_AGAIN, &st->tx.claim))
		weft_kick_atomic(st);
}

static enum reason be_at(const struct weft_porter *porter, struct weft_stream *st, u32 *heard)
{
	u64 start = ktime_get_ns();
	enum reason reason;

	if (weft_sendq_lazy(st->cfg.sq))
		return POINTLESS;
	reason = claim(porter, st, start);
	if (reason)
		return reason;
	st->tx.porter = WEFT_TX_ATTENDED;
	weft_sendq_set_busy(st->cfg.sq);
	reason = stay(porter, st, start, heard);
	part(st, reason == SWAMPED);
	return reason;
}

static struct weft_stream *enter(struct weft_porter *porter)
{
	struct weft_stream *st;

	spin_lock_bh(&lock);
	st = porter->inside ? NULL : porter->at;
	porter->inside |= !!st;
	spin_unlock_bh(&lock);
	return st;
}

/* Return: it may come again at once. */
static bool leave(struct weft_porter *porter, enum reason reason, u32 heard)
{
	bool again;

	spin_lock_bh(&lock);
	again = reason == TIME_IS_UP && heard && READ_ONCE(porter->at->index->helpers) &&
		!is_for_events(porter->at);
	porter->inside = false;
	porter->missed = 0;
	porter->known = READ_ONCE(porter->news);
	if (again)
		weft_patience_won(&porter->patience);
	else if (reason == NEEDED || reason == SWAMPED || heard < 2)
		weft_patience_lost(&porter->patience);
	if (!again)
		dismiss(porter);
	spin_unlock_bh(&lock);
	return again;
}

/**
 * weft_porter_serve - be porter for a while, if asked
 * @porter: the process
 *
 * Context: process, may sleep. Return: true if it shall come again at once.
 */
bool weft_porter_serve(struct weft_porter *porter)
{
	struct weft_stream *st;
	enum reason reason;
	u32 heard = 0;

	if (!READ_ONCE(porter->at))
		return false;
	st = enter(porter);
	if (!st)
		return false;
	reason = be_at(porter, st, &heard);
	weft_count_two(st->cfg.counters, WEFT_CTR_PORTERS, 1, WEFT_CTR_POSTS_HEARD, heard);
	return leave(porter, reason, heard);
}

/* No thread of the process is left. Context: any up to softirq. */
void weft_porter_destroy(struct weft_porter *porter)
{
	spin_lock_bh(&lock);
	dismiss(porter);
	spin_unlock_bh(&lock);
}
