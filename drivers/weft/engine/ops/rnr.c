// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A receive that comes late. A message that takes a receive and finds none is not taken from the
 * socket, nor is what stands behind it, until a receive is posted or the time is up; TCP's window
 * makes the peer wait. RFC 5041, 7.1 allows that: a missing buffer "MAY be bridged".
 *
 *	           no receive                 granted: rx worker, or the next callback
 *	READING ----------------> WAITING --------------------------------------> READING
 *	   ^                         |
 *	   |                         | time is up, or the stream leaves RTS: rx worker
 *	   |                         v
 *	   +--- there is one --- a last look ---> no receive: Terminate
 *
 * The flag is @rnr_waits of the stream. tx does not stop, so two ends that wait for each
 * other's receive both get it when it is posted, and if it never is, the timer ends the wait.
 */
#include "engine/ops/rnr.h"

#include <linux/jiffies.h>
#include <linux/minmax.h>

#include "base/compat.h"
#include "base/counters.h"
#include "base/trace.h"
#include "engine/ops/op.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "ring/recvq.h"

/* Between two looks at a queue whose producer rings no doorbell. */
#define POLL_INTERVAL	max(HZ / 100, 1)

enum rnr_event {
	RNR_WAITS,
	RNR_READY,
	RNR_TIMEOUT,
	RNR_CLOSED,
};

static bool is_over(const struct weft_stream *st)
{
	return READ_ONCE(st->state) != WEFT_QP_RTS ||
	       time_after_eq(jiffies, READ_ONCE(st->rnr.deadline));
}

static void wake_waiter(struct weft_rq_waiter *w)
{
	struct weft_stream *st = container_of(w, struct weft_stream, rnr.waiter);

	st->hooks->want_rx(st);
}

static void set_timer(struct weft_stream *st)
{
	unsigned long next = st->rnr.deadline;

	if (!st->cfg.rq->has_doorbell && time_before(jiffies + POLL_INTERVAL, next))
		next = jiffies + POLL_INTERVAL;
	mod_timer(&st->rnr.timer, next);
}

/* A wait that has ended meanwhile needs no timer; one that begins anew sets it itself. */
static void rnr_timer_fn(struct timer_list *timer)
{
	struct weft_stream *st = timer_container_of(st, timer, rnr.timer);

	weft_recvq_posted(st->cfg.rq);
	if (!READ_ONCE(st->rnr_waits) || READ_ONCE(st->rnr.waiter.granted))
		return;
	if (is_over(st))
		st->hooks->want_rx(st);
	else
		set_timer(st);
}

/* For a stream that is being made. */
void weft_rnr_init(struct weft_stream *st)
{
	weft_rq_waiter_init(&st->rnr.waiter, wake_waiter);
	timer_setup(&st->rnr.timer, rnr_timer_fn, 0);
}

static void stop_waiting(struct weft_stream *st, enum rnr_event why)
{
	WRITE_ONCE(st->rnr_waits, false);
	timer_delete(&st->rnr.timer);
	weft_recvq_leave(st->cfg.rq, &st->rnr.waiter);
	trace_weft_rnr(st->cfg.ifindex, st->qpn, why);
}

/**
 * weft_rnr_fetch - take the receive that was waited for
 * @st: stream that waits
 *
 * Context: owner of rx. Return: as weft_recvq_fetch(); the wait is over unless it is -ENOENT.
 */
int weft_rnr_fetch(struct weft_stream *st)
{
	int err = weft_recvq_fetch_waited(st->cfg.rq, &st->rnr.waiter, &st->rx.rwr);

	if (err != -ENOENT)
		stop_waiting(st, RNR_READY);
	return err;
}

static bool may_wait(struct weft_stream *st)
{
	/* Milliseconds; U32_MAX is without end. A peer that connects by hand has a say in it. */
	u32 timeout = st->mpa.rnr_told ? st->mpa.rnr_ms : READ_ONCE(st->index->rnr_timeout);

	if (!timeout || READ_ONCE(st->state) != WEFT_QP_RTS)
		return false;
	WRITE_ONCE(st->rnr.deadline, jiffies + msecs_to_jiffies(timeout));
	WRITE_ONCE(st->rnr_waits, true);
	smp_wmb(); /* before the application is asked to ring; pairs with weft_rnr_doorbell() */
	weft_count(st->cfg.counters, WEFT_CTR_RNR_WAITS);
	trace_weft_rnr(st->cfg.ifindex, st->qpn, RNR_WAITS);
	return true;
}

/**
 * weft_rnr_wait - there is no receive for a message
 * @st: stream, which may wait already
 *
 * Context: owner of rx. Return: WEFT_FAULT_NOT_READY if the message is to be handed over again
 * later; else the fault that ends the stream: the time is up, or there is none.
 */
enum weft_fault weft_rnr_wait(struct weft_stream *st)
{
	if (!st->rnr_waits) {
		if (!may_wait(st))
			return WEFT_FAULT_UNTAGGED_NO_BUFFER;
	} else if (is_over(st)) {
		bool closed = READ_ONCE(st->state) != WEFT_QP_RTS;

		if (!closed)
			weft_count(st->cfg.counters, WEFT_CTR_RNR_TIMEOUTS);
		stop_waiting(st, closed ? RNR_CLOSED : RNR_TIMEOUT);
		return WEFT_FAULT_UNTAGGED_NO_BUFFER;
	}
	weft_recvq_wait(st->cfg.rq, &st->rnr.waiter);
	set_timer(st);
	return WEFT_FAULT_NOT_READY;
}

/**
 * weft_rnr_holds - is there nothing to read for yet?
 * @st: stream that waits
 *
 * Context: owner of rx.
 */
bool weft_rnr_holds(struct weft_stream *st)
{
	return !READ_ONCE(st->rnr.waiter.granted) && !is_over(st);
}

/* For a stream that takes no more segments. Context: owner of rx. Return: it waited. */
bool weft_rnr_cancel(struct weft_stream *st)
{
	if (!st->rnr_waits)
		return false;
	stop_waiting(st, RNR_CLOSED);
	return true;
}

/* No timer any more. Context: may sleep; nothing waits, and nothing begins to. */
void weft_rnr_end(struct weft_stream *st)
{
	timer_delete_sync(&st->rnr.timer);
}

/**
 * weft_rnr_doorbell - the process that owns the QP may have posted a receive
 * @st: stream
 *
 * Context: process.
 */
void weft_rnr_doorbell(struct weft_stream *st)
{
	smp_rmb(); /* what made the application ring, before this; pairs with may_wait() */
	if (READ_ONCE(st->rnr_waits))
		weft_recvq_posted(st->cfg.rq);
}
