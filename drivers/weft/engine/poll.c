// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The poller is the stream's own worker. It holds the tx claim and leaves the
 * queue BUSY while it looks, so that a post is a store and nothing else. It goes
 * at once if its CPU is wanted, and comes only for applications that stream
 * (engine/watch.c). Where CPUs are few it would take one from the application, so
 * there it is off until asked for; and where they are all taken it comes late, so
 * that the application is better off doing the work itself for a while.
 */
#include "engine/poll.h"

#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/processor.h>
#include <linux/sched/clock.h>
#include <linux/time64.h>

#include "base/compat.h"
#include "engine/stream_state.h"
#include "engine/tx.h"
#include "ring/sendq.h"

#define CPUS_ENOUGH	4
#define BUDGET_US	50
#define LATE_NS		(200 * NSEC_PER_USEC)
#define BACKOFF_MIN	(HZ / 2)
#define BACKOFF_MAX	(10 * HZ)

/* Microseconds that a worker stays on a machine like this. */
u32 weft_poll_default(void)
{
	return num_online_cpus() >= CPUS_ENOUGH ? BUDGET_US : 0;
}

static u64 budget(const struct weft_stream *st)
{
	return (u64)READ_ONCE(st->index->busy_poll) * NSEC_PER_USEC;
}

void weft_poll_init(struct weft_poll *poll)
{
	poll->backoff = BACKOFF_MIN;
	poll->not_before = jiffies;
}

/**
 * weft_poll_takes_over - shall a worker serve the queue, and stay with it?
 * @st: stream of an application that is lazy
 *
 * Context: the doorbell. Return: true if polling is on and the worker is not known to
 * come late; the caller has to call it then.
 */
bool weft_poll_takes_over(struct weft_stream *st)
{
	struct weft_poll *poll = &st->poll;

	if (!budget(st) || time_before(jiffies, READ_ONCE(poll->not_before)))
		return false;
	if (!READ_ONCE(poll->asked))
		WRITE_ONCE(poll->asked, local_clock());
	return true;
}

/**
 * weft_poll_arrived - the worker is here
 * @poll: of its stream
 *
 * Context: the worker.
 */
void weft_poll_arrived(struct weft_poll *poll)
{
	u64 asked = READ_ONCE(poll->asked);

	if (!asked)
		return;
	WRITE_ONCE(poll->asked, 0);
	if ((s64)(local_clock() - asked) < LATE_NS) {
		poll->backoff = max_t(unsigned long, poll->backoff / 2, BACKOFF_MIN);
		return;
	}
	WRITE_ONCE(poll->not_before, jiffies + poll->backoff);
	poll->backoff = min_t(unsigned long, 2 * poll->backoff, BACKOFF_MAX);
}

static bool has_news(const struct weft_stream *st)
{
	return weft_sendq_pending(st->cfg.sq) || test_bit(WEFT_TX_AGAIN, &st->tx.claim);
}

static bool look_for(const struct weft_stream *st, u64 nanoseconds)
{
	u64 end = local_clock() + nanoseconds;

	while (!has_news(st)) {
		if (compat_cpu_is_wanted() || local_clock() >= end)
			return false;
		cpu_relax();
	}
	return true;
}

/**
 * weft_poll_stay - stay with a queue that was left WATCHED
 * @st: stream
 *
 * Context: the stream's worker. Return: true if there is something for tx.
 */
bool weft_poll_stay(struct weft_stream *st)
{
	struct weft_sendq *sq = st->cfg.sq;
	bool news;

	if (!budget(st) || !weft_sendq_lazy(sq) || !weft_sendq_is_watched(sq) ||
	    !weft_tx_try_claim(st))
		return false;
	weft_sendq_set_busy(sq);
	news = look_for(st, budget(st)) || !weft_tx_rest(st);
	weft_tx_unclaim(st);
	return news || test_bit(WEFT_TX_AGAIN, &st->tx.claim);
}
