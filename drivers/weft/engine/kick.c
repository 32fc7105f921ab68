// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Kicks: somebody says that a stream has something to send. Who may do that work
 * itself does; the rest is left to the task below (engine/relay.c) or to a worker.
 */
#include "engine/kick.h"

#include <linux/cpumask.h>

#include "base/counters.h"
#include "base/trace.h"
#include "engine/bell.h"
#include "engine/helper.h"
#include "engine/poll.h"
#include "engine/relay.h"
#include "engine/stream.h"
#include "engine/stream_state.h"
#include "engine/tx.h"
#include "engine/vigil.h"
#include "proto/hot.h"
#include "ring/sendq.h"

/* Runs tx, and what that brings in. */
static __always_inline void run_tx(struct weft_stream *st)
{
	struct weft_relay relay;

	weft_relay_open(&relay, st);
	weft_tx_run(st);
	weft_relay_close(&relay);
}

static void tx_work(struct work_struct *work)
{
	struct weft_stream *st = container_of(work, struct weft_stream, tx_work);

	weft_poll_arrived(&st->poll);
	weft_bell_enter(st->cfg.bell);
	do {
		run_tx(st);
	} while (weft_poll_stay(st));
	weft_bell_leave(st->cfg.bell);
}

/* For a stream that is being made. */
void weft_kick_init(struct weft_stream *st)
{
	INIT_WORK(&st->tx_work, tx_work);
}

/* No kick is served any more. Context: may sleep. */
void weft_kick_end(struct weft_stream *st)
{
	cancel_work_sync(&st->tx_work);
}

static __always_inline void count_kick(struct weft_stream *st, enum weft_counter which, u32 kind)
{
	weft_count(st->cfg.counters, which);
	trace_weft_kick(st->cfg.ifindex, st->qpn, kind);
}

/* Alone, a CPU has nobody to wait for that does not need it. */
static noinline void keep_vigil(struct weft_stream *st)
{
	u32 us = READ_ONCE(st->index->awake);

	if (us && num_online_cpus() > 1)
		weft_count(st->cfg.counters,
			   weft_vigil_keep(us) ? WEFT_CTR_VIGILS : WEFT_CTR_VIGILS_SPARED);
}

/**
 * weft_kick - the doorbell: run tx in the caller's context
 * @st: stream
 *
 * Or let a worker do it that will stay. Context: process, may sleep.
 */
void weft_hot weft_kick(struct weft_stream *st)
{
	if (weft_sendq_lazy(st->cfg.sq) && weft_poll_takes_over(st)) {
		weft_kick_atomic(st);
		return;
	}
	count_kick(st, WEFT_CTR_KICKS_INLINE, 0);
	weft_bell_enter(st->cfg.bell);
	run_tx(st);
	weft_bell_leave(st->cfg.bell);
	if (st->cfg.bell && weft_bell_had_event(st->cfg.bell, &st->cfg.bell->events_seen))
		keep_vigil(st);
}

static void kick_worker(struct weft_stream *st)
{
	count_kick(st, WEFT_CTR_KICKS_QUEUED, 1);
	queue_work(weft_stream_wq, &st->tx_work);
}

/**
 * weft_kick_atomic - the doorbell where sleeping is not allowed
 * @st: stream
 *
 * Context: any up to softirq, also with the socket lock held.
 */
void weft_kick_atomic(struct weft_stream *st)
{
	if (!weft_tx_mark(st))
		return count_kick(st, WEFT_CTR_KICKS_MERGED, 2);
	kick_worker(st);
}

/* An answer: the task below does it, else a worker. */
static __always_inline void pass_on(struct weft_stream *st)
{
	if (weft_relay_offer(st))
		count_kick(st, WEFT_CTR_KICKS_RELAYED, 3);
	else
		kick_worker(st);
}

/**
 * weft_kick_soon - as weft_kick_atomic(), for an answer
 * @st: stream
 *
 * If a task that runs tx is below us, it does this too when it is done.
 * Context: as weft_kick_atomic().
 */
void weft_hot weft_kick_soon(struct weft_stream *st)
{
	if (!weft_tx_mark(st))
		return count_kick(st, WEFT_CTR_KICKS_MERGED, 2);
	pass_on(st);
}

/**
 * weft_kick_long - as weft_kick_soon(), where the task below might be busy for long
 * @st: stream
 * @train: it is for short Reads, many at once
 *
 * A process that polls does it, so that the one that asked can read meanwhile. It is asked
 * whether it polls only if nobody runs tx: while it does that itself it does not poll.
 * Nor does one that is here to read, which sends when it has read. A worker does not send for
 * long if it need not: it would have the CPU of one of the two processes.
 * Context: as weft_kick_atomic().
 */
void weft_kick_long(struct weft_stream *st, bool train)
{
	if (!weft_tx_mark(st))
		return count_kick(st, WEFT_CTR_KICKS_MERGED, 2);
	if (in_task() && !(current->flags & PF_WQ_WORKER) && weft_relay_offer(st))
		return count_kick(st, WEFT_CTR_KICKS_RELAYED, 3);
	if (!weft_helper_sends(st, train))
		pass_on(st);
}

/**
 * weft_kick_room - as weft_kick_atomic(), where sending may go on after a break
 * @st: stream
 *
 * Context: as weft_kick_atomic().
 */
void weft_kick_room(struct weft_stream *st)
{
	if (!weft_tx_mark(st))
		return count_kick(st, WEFT_CTR_KICKS_MERGED, 2);
	if (!weft_helper_sends(st, false))
		kick_worker(st);
}
