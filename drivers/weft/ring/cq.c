// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queue. Many producers under one lock, one consumer: the process
 * that has it mapped, or kernel pollers under the same lock.
 */
#include "ring/cq.h"

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/string.h>
#include <asm/barrier.h>

#include "base/compat.h"
#include "base/counters.h"
#include "proto/hot.h"

static void notify_owner(struct weft_cq *cq)
{
	weft_count(cq->counters, WEFT_CTR_CQ_EVENTS);
	cq->events->completion(cq->owner);
}

/* The first completion that is held back has waited long enough. */
static enum hrtimer_restart period_over(struct hrtimer *timer)
{
	struct weft_cq *cq = container_of(timer, struct weft_cq, moderation.timer);
	unsigned long flags;
	bool event;

	flags = weft_ring_lock(&cq->lock, cq->user);
	event = cq->moderation.held && xchg(&cq->ctl->arm, WEFT_ARM_NONE) != WEFT_ARM_NONE;
	cq->moderation.held = 0;
	weft_ring_unlock(&cq->lock, cq->user, flags);
	if (event)
		notify_owner(cq);
	return HRTIMER_NORESTART;
}

/**
 * weft_cq_init - set up an empty completion queue
 * @cq: what to fill in
 * @entries: a power of two
 * @space: of the process that polls, NULL for a kernel consumer
 * @events: where notifications go
 * @owner: handed to them
 * @counters: of the device
 *
 * Context: may sleep. Return: 0 or -errno, with nothing to clean up.
 */
int weft_cq_init(struct weft_cq *cq, u32 entries, struct weft_ring_space *space,
		 const struct weft_cq_events *events, void *owner, struct weft_counters *counters)
{
	int ret;

	memset(cq, 0, sizeof(*cq));
	ret = weft_ring_init(&cq->ring, entries, sizeof(struct weft_cqe), space);
	if (ret)
		return ret;

	weft_ring_lock_init(&cq->lock, space);
	cq->ctl = weft_ring_ctl(&cq->ring);
	cq->user = space;
	cq->events = events;
	cq->owner = owner;
	cq->counters = counters;
	hrtimer_setup(&cq->moderation.timer, period_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	return 0;
}

/**
 * weft_cq_free - give the memory back
 * @cq: a queue that is no longer posted to or polled
 *
 * Context: may sleep.
 */
void weft_cq_free(struct weft_cq *cq)
{
	hrtimer_cancel(&cq->moderation.timer);
	weft_ring_free(&cq->ring);
}

/* Entries not consumed yet; what a process claims may be anything. */
static u32 entries_used(const struct weft_cq *cq)
{
	/* Pairs with weft_ring_publish() of the provider: the slot was read. */
	return cq->prod - (cq->user ? smp_load_acquire(&cq->ctl->cons) : cq->cons);
}

static int put_entry(struct weft_cq *cq, const struct weft_cqe *cqe) __must_hold(&cq->lock)
{
	struct weft_cqe *slot;

	lockdep_assert_held(&cq->lock);
	/* A process's word is looked at only when the copy says that there is no room. */
	if (cq->prod - cq->cons >= cq->ring.entries) {
		cq->cons = cq->prod - entries_used(cq);
		if (cq->prod - cq->cons >= cq->ring.entries)
			return -ENOSPC;
	}
	slot = weft_ring_entry(&cq->ring, cq->prod);
	*slot = *cqe;
	if (cq->stamped)
		slot->timestamp = ktime_get_ns();
	cq->prod++;
	/* Pairs with weft_ring_observe() of the provider. */
	smp_store_release(&cq->ctl->prod, cq->prod);
	return 0;
}

/* Disarms the queue if it waits for an entry like @cqe. */
static bool take_arm(struct weft_cq *cq, const struct weft_cqe *cqe) __must_hold(&cq->lock)
{
	struct weft_cq_moderation *m = &cq->moderation;
	bool urgent = cqe->status || (cqe->flags & WEFT_WCF_SOLICITED);
	u32 arm;

	lockdep_assert_held(&cq->lock);
	/*
	 * Pairs with the fence in weft_ring_arm() of the provider: we see the
	 * arming, or the poll that follows it sees the entry.
	 */
	smp_mb();
	arm = READ_ONCE(cq->ctl->arm);
	if (arm != WEFT_ARM_NEXT && !(arm == WEFT_ARM_SOLICITED && urgent))
		return false;
	/* Moderation: an error is told at once; else the last of so many, or the timer, tells. */
	if (m->count && !cqe->status && ++m->held < m->count) {
		if (m->held == 1)
			hrtimer_start(&m->timer, m->period, HRTIMER_MODE_REL_SOFT);
		return false;
	}
	m->held = 0;
	return xchg(&cq->ctl->arm, WEFT_ARM_NONE) != WEFT_ARM_NONE;
}

/**
 * weft_cq_post - add a completion
 * @cq: the queue
 * @cqe: copied; a timestamp is filled in here if the owner wants one
 * @batch: takes the notification until weft_cq_batch_fire(), NULL: fire now
 *
 * An event is due for any entry if the queue is armed for the next one, and for
 * solicited entries and errors if it is armed for those.
 *
 * Context: any; with @batch NULL or full @cq->events may be called.
 * Return: 0, or -ENOSPC: the entry is lost, and so is the queue.
 */
int weft_hot weft_cq_post(struct weft_cq *cq, const struct weft_cqe *cqe,
			  struct weft_cq_batch *batch)
{
	bool first_lost = false;
	bool event = false;
	unsigned long flags;
	u32 i = 0;
	int ret;

	flags = weft_ring_lock(&cq->lock, cq->user);
	ret = put_entry(cq, cqe);
	if (!ret) {
		event = take_arm(cq, cqe);
	} else {
		first_lost = !cq->overflowed;
		cq->overflowed = true;
		weft_count(cq->counters, WEFT_CTR_CQ_OVERFLOWS);
	}
	weft_ring_unlock(&cq->lock, cq->user, flags);

	if (first_lost)
		cq->events->overflow(cq->owner);
	if (event) {
		while (batch && i < batch->count && batch->cq[i] != cq)
			i++;
		if (!batch || i == ARRAY_SIZE(batch->cq))
			notify_owner(cq);
		else if (i == batch->count)
			batch->cq[batch->count++] = cq;
	}
	return ret;
}

/**
 * weft_cq_batch_fire - raise the events that were held back
 * @batch: empty afterwards; its queues are kept alive by the caller's streams
 *
 * Context: any, no lock held that a completion handler may want.
 */
void weft_hot weft_cq_batch_fire(struct weft_cq_batch *batch)
{
	u32 i;

	for (i = 0; i < batch->count; i++)
		notify_owner(batch->cq[i]);
	batch->count = 0;
}

/**
 * weft_cq_poll - take completions out of a kernel queue
 * @cq: a kernel queue
 * @out: room for @max
 * @max: at most so many
 *
 * Context: any. Return: how many were taken.
 */
u32 weft_cq_poll(struct weft_cq *cq, struct weft_cqe *out, u32 max)
{
	unsigned long flags;
	u32 n;
	u32 i;

	flags = weft_ring_lock(&cq->lock, cq->user);
	n = min(cq->prod - cq->cons, max);
	for (i = 0; i < n; i++)
		out[i] = *(struct weft_cqe *)weft_ring_entry(&cq->ring, cq->cons + i);
	cq->cons += n;
	WRITE_ONCE(cq->ctl->cons, cq->cons);
	weft_ring_unlock(&cq->lock, cq->user, flags);
	return n;
}

/**
 * weft_cq_arm - ask for one event
 * @cq: the queue
 * @arm: for which completions; a wish for any is never weakened
 *
 * Context: any. Return: true when completions wait already; they raise no event.
 */
bool weft_cq_arm(struct weft_cq *cq, enum weft_arm arm)
{
	unsigned long flags;
	bool waiting;

	flags = weft_ring_lock(&cq->lock, cq->user);
	if (READ_ONCE(cq->ctl->arm) != WEFT_ARM_NEXT)
		WRITE_ONCE(cq->ctl->arm, arm);
	waiting = entries_used(cq);
	weft_ring_unlock(&cq->lock, cq->user, flags);
	return waiting;
}

/**
 * weft_cq_purge - forget completions of a QP that is going away
 * @cq: the queue; a process purges its own
 * @qp_num: the QP; nothing posts for it any more
 *
 * Context: any.
 */
void weft_cq_purge(struct weft_cq *cq, u32 qp_num)
{
	unsigned long flags;
	u32 to;
	u32 i;

	if (cq->user)
		return;

	flags = weft_ring_lock(&cq->lock, cq->user);
	to = cq->cons;
	for (i = cq->cons; i != cq->prod; i++) {
		const struct weft_cqe *cqe = weft_ring_entry(&cq->ring, i);

		if (cqe->qp_num != qp_num)
			*(struct weft_cqe *)weft_ring_entry(&cq->ring, to++) = *cqe;
	}
	cq->prod = to;
	WRITE_ONCE(cq->ctl->prod, to);
	weft_ring_unlock(&cq->lock, cq->user, flags);
}

/**
 * weft_cq_moderate - raise fewer events
 * @cq: the queue
 * @count: an event for so many completions that would have raised one
 * @period_us: or for fewer, so many microseconds after the first of them
 *
 * With @count below 2 or @period_us 0 each completion raises its own again. What
 * is held back already is told now. Context: process.
 */
void weft_cq_moderate(struct weft_cq *cq, u16 count, u16 period_us)
{
	unsigned long flags;

	flags = weft_ring_lock(&cq->lock, cq->user);
	cq->moderation.count = count > 1 && period_us ? count : 0;
	cq->moderation.period = ns_to_ktime((u64)period_us * NSEC_PER_USEC);
	weft_ring_unlock(&cq->lock, cq->user, flags);
	weft_cq_tell_held(cq);
}

/**
 * weft_cq_tell_held - raise now the event that moderation holds back, if any
 * @cq: the queue
 *
 * When there are no more posts, no event comes by itself afterwards.
 * Context: process.
 */
void weft_cq_tell_held(struct weft_cq *cq)
{
	unsigned long flags;
	bool event;

	hrtimer_cancel(&cq->moderation.timer);
	flags = weft_ring_lock(&cq->lock, cq->user);
	event = cq->moderation.held && xchg(&cq->ctl->arm, WEFT_ARM_NONE) != WEFT_ARM_NONE;
	cq->moderation.held = 0;
	weft_ring_unlock(&cq->lock, cq->user, flags);
	if (event)
		notify_owner(cq);
}

/* Return: up to where a process's entries are copied. */
static u32 copy_cqes_ahead(struct weft_cq *cq, struct weft_ring *ring)
{
	unsigned long flags;
	u32 count, end;

	flags = weft_ring_lock(&cq->lock, cq->user);
	count = entries_used(cq);
	end = cq->prod;
	weft_ring_unlock(&cq->lock, cq->user, flags);
	if (cq->user && count <= min(ring->entries, cq->ring.entries))
		weft_ring_copy_ahead(ring, &cq->ring, end - count, end);
	return end;
}

/**
 * weft_cq_resize - go on in another ring
 * @cq: the queue, which is neither polled nor resized by another caller while this runs
 * @ring: initialised with entries of struct weft_cqe; afterwards the one that is
 *	not in use and must be freed
 *
 * Context: process. Return: 0, or -EBUSY when @ring cannot hold what waits.
 */
int weft_cq_resize(struct weft_cq *cq, struct weft_ring *ring)
{
	struct weft_cq_ctl *ctl = weft_ring_ctl(ring);
	u32 copied = copy_cqes_ahead(cq, ring);
	unsigned long flags;
	u32 count, fresh;
	int ret = -EBUSY;

	flags = weft_ring_lock(&cq->lock, cq->user);
	count = entries_used(cq);
	if (count > ring->entries || count > cq->ring.entries)
		goto unlock;

	fresh = cq->user ? min(count, cq->prod - copied) : count;
	weft_ring_copy(ring, &cq->ring, cq->prod - fresh, cq->prod);
	WRITE_ONCE(ctl->cons, cq->prod - count);
	WRITE_ONCE(ctl->arm, READ_ONCE(cq->ctl->arm));
	/* Pairs with weft_ring_observe() of the provider. */
	smp_store_release(&ctl->prod, cq->prod);
	cq->ctl = ctl;
	swap(cq->ring, *ring);
	ret = 0;
unlock:
	weft_ring_unlock(&cq->lock, cq->user, flags);
	return ret;
}

/**
 * weft_cq_inspect - look at a queue
 * @cq: the queue
 * @out: written completely
 *
 * Context: any.
 */
void weft_cq_inspect(struct weft_cq *cq, struct weft_cq_details *out)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	*out = (struct weft_cq_details){
		.entries = cq->ring.entries,
		.prod = cq->prod,
		.waiting = min(entries_used(cq), cq->ring.entries),
		.arm = READ_ONCE(cq->ctl->arm),
		.overflowed = cq->overflowed,
	};
	spin_unlock_irqrestore(&cq->lock, flags);
}
