// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receive queue, of one QP or shared by many: one producer side, and as many consumers as
 * there are streams. So fetching takes a lock, but not where there is only one of them.
 */
#include "ring/recvq.h"

#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <asm/barrier.h>

#include "base/copy.h"
#include "base/limits.h"
#include "proto/hot.h"

/* Wakes in a row with the lock held; each of these streams has the others granted theirs. */
#define WAKES_MAX	32U

/**
 * weft_recvq_init - set up an empty receive queue
 * @rq: what to fill in; the caller sets @shared, @limit_event and @owner afterwards
 * @entries: a power of two
 * @max_sge: elements a receive may have, up to WEFT_MAX_SGE
 * @space: of the process that posts, NULL for a kernel consumer
 *
 * Context: may sleep. Return: 0 or -errno, with nothing to clean up.
 */
int weft_recvq_init(struct weft_recvq *rq, u32 entries, u32 max_sge, struct weft_ring_space *space)
{
	u32 stride = sizeof(struct weft_rqe) + max_sge * sizeof(struct weft_sge);
	int ret;

	memset(rq, 0, sizeof(*rq));
	if (max_sge > WEFT_MAX_SGE)
		return -EINVAL;

	ret = weft_ring_init(&rq->ring, entries, stride, space);
	if (ret)
		return ret;

	weft_ring_lock_init(&rq->lock, space);
	INIT_LIST_HEAD(&rq->waiters.list);
	rq->has_doorbell = true;
	rq->ctl = weft_ring_ctl(&rq->ring);
	rq->user = space;
	rq->max_sge = max_sge;
	return 0;
}

/**
 * weft_recvq_free - give the memory back
 * @rq: a queue that is no longer used, or one that was never initialised
 *
 * Context: may sleep.
 */
void weft_recvq_free(struct weft_recvq *rq)
{
	weft_ring_free(&rq->ring);
}

static __always_inline int copy_rqe(const struct weft_recvq *rq, struct weft_rwr *out,
				    const struct weft_rqe *rqe)
{
	u32 i;

	out->wr_id = READ_ONCE(rqe->wr_id);
	out->num_sge = READ_ONCE(rqe->num_sge);
	out->length = 0;
	if (out->num_sge > rq->max_sge) {
		out->num_sge = 0;
		return -EINVAL;
	}

	weft_copy((u8 *)out->sge, (const u8 *)(rqe + 1), out->num_sge * sizeof(out->sge[0]));
	barrier(); /* the sum below is that of the copy */
	for (i = 0; i < out->num_sge; i++)
		out->length += out->sge[i].length;
	return 0;
}

/* More than @entries means that the producer index is impossible. */
static u32 entries_available(const struct weft_recvq *rq)
{
	/* Pairs with weft_ring_publish() of the provider and weft_recvq_commit(). */
	return smp_load_acquire(&rq->ctl->prod) - READ_ONCE(rq->cons);
}

static __always_inline int fetch_rqe(struct weft_recvq *rq, struct weft_rwr *out)
{
	u32 avail = rq->seen - rq->cons;
	int ret;

	if (rq->shared)
		lockdep_assert_held(&rq->lock);
	/* The producer's word is looked at only when the copy says that there is nothing. */
	if (!avail) {
		avail = entries_available(rq);
		if (avail <= rq->ring.entries)
			rq->seen = rq->cons + avail;
	}
	if (!avail)
		return -ENOENT;
	if (avail > rq->ring.entries) {
		memset(out, 0, offsetof(struct weft_rwr, sge));
		return -EIO;
	}

	ret = copy_rqe(rq, out, weft_ring_entry(&rq->ring, rq->cons));
	WRITE_ONCE(rq->cons, rq->cons + 1);
	/* Pairs with weft_ring_observe() of the provider and weft_recvq_reserve(): reuse. */
	smp_store_release(&rq->ctl->cons, rq->cons);
	return ret;
}

/* --- whose turn it is --- */

/*
 * A receive that is posted while streams wait is set aside for the oldest of them. So each
 * receive wakes one stream, streams that share a queue are served in the order in which they
 * came, and a stream that did not wait takes no receive of one that did.
 */

/**
 * weft_recvq_grant - set what is posted aside for those that wait
 * @rq: the queue
 *
 * An impossible number is granted too, so that each stream fails by it. Producers ring as long
 * as any waits. Context: @rq->lock held.
 */
void weft_recvq_grant(struct weft_recvq *rq) __must_hold(&rq->lock)
{
	struct weft_rq_waiters *q = &rq->waiters;
	u32 wakes = 0;
	u32 available;

	lockdep_assert_held(&rq->lock);
	if (list_empty(&q->list))
		return;
	available = entries_available(rq);
	while (!list_empty(&q->list) && available > q->granted && wakes++ < WAKES_MAX) {
		struct weft_rq_waiter *w = list_first_entry(&q->list, struct weft_rq_waiter, node);

		list_del_init(&w->node);
		q->granted++;
		WRITE_ONCE(w->granted, true);
		w->wake(w);
	}
	if (list_empty(&q->list))
		WRITE_ONCE(rq->ctl->state, WEFT_RQ_OPEN);
}

/*
 * May a stream take the oldest receive? @w: of one that has waited, whose grant is used up; NULL:
 * it has not. False if all there is belongs to others.
 */
static bool is_turn(struct weft_recvq *rq, struct weft_rq_waiter *w) __must_hold(&rq->lock)
{
	struct weft_rq_waiters *q = &rq->waiters;

	lockdep_assert_held(&rq->lock);
	if (likely(list_empty(&q->list) && !q->granted))
		return true;
	weft_recvq_grant(rq);
	if (w && w->granted) {
		WRITE_ONCE(w->granted, false);
		if (!WARN_ON_ONCE(!q->granted))
			q->granted--;
		return true;
	}
	return list_empty(&q->list) && entries_available(rq) > q->granted;
}

/* --- fetching --- */

/**
 * weft_recvq_fetch_waited - take a receive that was waited for
 * @rq: the queue
 * @w: of the stream; NULL: it has not waited
 * @out: as of weft_recvq_fetch()
 *
 * Context and return as of weft_recvq_fetch(); -ENOENT: @w goes on to wait, or waits for nothing
 * if it had been granted a receive that is not there.
 */
noinline int weft_recvq_fetch_waited(struct weft_recvq *rq, struct weft_rq_waiter *w,
				     struct weft_rwr *out)
{
	unsigned long flags;
	bool reached;
	int ret;

	flags = weft_ring_lock(&rq->lock, rq->user);
	ret = is_turn(rq, w) ? fetch_rqe(rq, out) : -ENOENT;
	reached = rq->limit && entries_available(rq) < rq->limit;
	if (reached)
		rq->limit = 0;
	weft_ring_unlock(&rq->lock, rq->user, flags);

	if (reached && rq->limit_event)
		rq->limit_event(rq->owner);
	return ret;
}

/**
 * weft_recvq_fetch - take the oldest receive
 * @rq: the queue
 * @out: private copy; its head is written whenever the result is not -ENOENT, and its
 *	list has room for what the queue allows
 *
 * Context: any, for a queue that is not shared one caller at a time; @rq->limit_event may
 * be called before it returns.
 * Return: 0; -ENOENT: the queue is empty; -EINVAL: the entry was taken, but is
 * malformed: @out has its wr_id and no elements; -EIO: the producer index is
 * impossible, nothing was taken, and that will not mend itself.
 */
int weft_hot weft_recvq_fetch(struct weft_recvq *rq, struct weft_rwr *out)
{
	return rq->shared ? weft_recvq_fetch_waited(rq, NULL, out) : fetch_rqe(rq, out);
}

/**
 * weft_recvq_wait - wait for a receive
 * @rq: the queue, in which there was none
 * @w: takes the last place, unless it has one
 *
 * The handshake is that of the send queue. @w->wake may be called before this returns, for what
 * was posted meanwhile. Context: any up to softirq.
 */
void weft_recvq_wait(struct weft_recvq *rq, struct weft_rq_waiter *w)
{
	unsigned long flags = weft_ring_lock(&rq->lock, rq->user);

	if (list_empty(&w->node) && !w->granted)
		list_add_tail(&w->node, &rq->waiters.list);
	WRITE_ONCE(rq->ctl->state, WEFT_RQ_NEED_DOORBELL);
	/* Pairs with the fence in weft_ring_state() of the provider. */
	smp_mb();
	weft_recvq_grant(rq);
	weft_ring_unlock(&rq->lock, rq->user, flags);
}

/**
 * weft_recvq_leave - wait no longer
 * @rq: the queue
 * @w: may have no place; what was granted to it goes to the next
 *
 * Context: any up to softirq.
 */
void weft_recvq_leave(struct weft_recvq *rq, struct weft_rq_waiter *w)
{
	unsigned long flags = weft_ring_lock(&rq->lock, rq->user);

	if (w->granted) {
		WRITE_ONCE(w->granted, false);
		if (!WARN_ON_ONCE(!rq->waiters.granted))
			rq->waiters.granted--;
	} else {
		list_del_init(&w->node);
	}
	weft_recvq_grant(rq);
	if (list_empty(&rq->waiters.list))
		WRITE_ONCE(rq->ctl->state, WEFT_RQ_OPEN);
	weft_ring_unlock(&rq->lock, rq->user, flags);
}

/**
 * weft_recvq_posted - receives may have been posted
 * @rq: the queue
 *
 * Context: any up to softirq.
 */
void weft_recvq_posted(struct weft_recvq *rq)
{
	unsigned long flags = weft_ring_lock(&rq->lock, rq->user);

	weft_recvq_grant(rq);
	weft_ring_unlock(&rq->lock, rq->user, flags);
}

/**
 * weft_recvq_discard - forget all that is posted
 * @rq: the queue of one QP; not being fetched from
 *
 * Context: any. Return: 0, or -EIO when the producer index is impossible.
 */
int weft_recvq_discard(struct weft_recvq *rq)
{
	u32 count = entries_available(rq);

	if (count > rq->ring.entries)
		return -EIO;
	WRITE_ONCE(rq->cons, rq->cons + count);
	rq->seen = rq->cons;
	/* Pairs with weft_ring_observe() of the provider and weft_recvq_reserve(): reuse. */
	smp_store_release(&rq->ctl->cons, rq->cons);
	return 0;
}

/**
 * weft_recvq_set_flushing - whether producers must ring after posting
 * @rq: the queue of one QP, or a shared one that is about to go
 * @flushing: true once the QP has failed, or entries are no longer fetched
 *
 * After this returns, the caller fetches until the queue is empty: what it does
 * not see then was published by a producer that will see the wish and ring.
 *
 * Context: any.
 */
void weft_recvq_set_flushing(struct weft_recvq *rq, bool flushing)
{
	WRITE_ONCE(rq->ctl->state, flushing ? WEFT_RQ_NEED_DOORBELL : WEFT_RQ_OPEN);
	/*
	 * Pairs with the fence in weft_ring_state() of the provider, and
	 * that in weft_recvq_needs_doorbell().
	 */
	smp_mb();
}

/**
 * weft_recvq_depth - how many receives wait
 * @rq: the queue; not resized meanwhile
 *
 * Context: any. Return: a snapshot, at most the size of the queue.
 */
u32 weft_recvq_depth(const struct weft_recvq *rq)
{
	return min(READ_ONCE(rq->ctl->prod) - READ_ONCE(rq->cons), rq->ring.entries);
}

/**
 * weft_recvq_inspect - look at a queue, which may be resized meanwhile
 * @rq: the queue
 * @out: written completely
 *
 * Context: any.
 */
void weft_recvq_inspect(struct weft_recvq *rq, struct weft_recvq_details *out)
{
	unsigned long flags;

	spin_lock_irqsave(&rq->lock, flags);
	*out = (struct weft_recvq_details){
		.entries = rq->ring.entries,
		.max_sge = rq->max_sge,
		.waiting = weft_recvq_depth(rq),
		.consumed = READ_ONCE(rq->cons), /* the one fetcher of a QP's own has no lock */
		.limit = rq->limit,
	};
	spin_unlock_irqrestore(&rq->lock, flags);
}

/**
 * weft_recvq_set_limit - arm the limit event
 * @rq: the queue
 * @limit: raise it once fewer receives wait, at once if that is so already;
 *	0 disarms
 *
 * Context: any; @rq->limit_event may be called before it returns.
 * Return: 0, or -EINVAL when the queue cannot hold @limit receives.
 */
int weft_recvq_set_limit(struct weft_recvq *rq, u32 limit)
{
	unsigned long flags;
	bool reached;

	if (limit > rq->ring.entries)
		return -EINVAL;

	flags = weft_ring_lock(&rq->lock, rq->user);
	rq->limit = limit;
	reached = rq->limit && entries_available(rq) < rq->limit;
	if (reached)
		rq->limit = 0;
	weft_ring_unlock(&rq->lock, rq->user, flags);

	if (reached && rq->limit_event)
		rq->limit_event(rq->owner);
	return 0;
}

/* Return: up to where a process's entries are copied. */
static u32 copy_rqes_ahead(struct weft_recvq *rq, struct weft_ring *ring)
{
	unsigned long flags;
	u32 count, begin;

	flags = weft_ring_lock(&rq->lock, rq->user);
	count = entries_available(rq);
	begin = rq->cons;
	weft_ring_unlock(&rq->lock, rq->user, flags);
	if (rq->user && count <= min(ring->entries, rq->ring.entries))
		weft_ring_copy_ahead(ring, &rq->ring, begin, begin + count);
	return begin + count;
}

/**
 * weft_recvq_resize - go on in another ring
 * @rq: a shared queue, which no other caller resizes; a process that posts to it does not while
 *	this runs
 * @ring: initialised with entries of the same stride; afterwards the one that is
 *	not in use and must be freed
 *
 * Context: process. Return: 0; -EBUSY when @ring cannot hold what waits, or the process posts
 * all the same; -EINVAL when it cannot hold the armed limit, -EIO when the producer index is
 * impossible.
 */
int weft_recvq_resize(struct weft_recvq *rq, struct weft_ring *ring)
{
	struct weft_rq_ctl *ctl = weft_ring_ctl(ring);
	u32 copied = copy_rqes_ahead(rq, ring);
	unsigned long flags;
	int ret = 0;
	u32 count;

	flags = weft_ring_lock(&rq->lock, rq->user);
	count = entries_available(rq);
	if (count > rq->ring.entries)
		ret = -EIO;
	else if (count > ring->entries || (rq->user && rq->cons + count != copied))
		ret = -EBUSY;
	else if (rq->limit > ring->entries)
		ret = -EINVAL;
	if (ret)
		goto unlock;

	if (!rq->user)
		weft_ring_copy(ring, &rq->ring, rq->cons, rq->cons + count);
	WRITE_ONCE(ctl->cons, rq->cons);
	WRITE_ONCE(ctl->state, READ_ONCE(rq->ctl->state));
	/* The producer is the caller, or waits for it. */
	WRITE_ONCE(ctl->prod, rq->cons + count);
	rq->ctl = ctl;
	swap(rq->ring, *ring);
unlock:
	weft_ring_unlock(&rq->lock, rq->user, flags);
	return ret;
}

/**
 * weft_recvq_reserve - the next entry for a kernel producer to fill in
 * @rq: a kernel queue
 *
 * Nothing is consumed until weft_recvq_commit().
 *
 * Context: @rq->lock held. Return: the entry, NULL when the queue is full.
 */
struct weft_rqe *weft_recvq_reserve(struct weft_recvq *rq) __must_hold(&rq->lock)
{
	lockdep_assert_held(&rq->lock);
	/* Pairs with fetch_rqe(). */
	if (rq->prod - smp_load_acquire(&rq->ctl->cons) >= rq->ring.entries)
		return NULL;
	return weft_ring_entry(&rq->ring, rq->prod);
}

/**
 * weft_recvq_commit - publish the reserved entry
 * @rq: a kernel queue
 *
 * Context: @rq->lock held, after a successful weft_recvq_reserve().
 */
void weft_recvq_commit(struct weft_recvq *rq) __must_hold(&rq->lock)
{
	lockdep_assert_held(&rq->lock);
	rq->prod++;
	/* Pairs with entries_available(). */
	smp_store_release(&rq->ctl->prod, rq->prod);
}

/**
 * weft_recvq_needs_doorbell - is a doorbell due for what was committed?
 * @rq: a kernel queue
 *
 * Once per posted list, after @rq->lock was dropped. Context: any.
 * Return: true when the QP has failed and its receives are to be flushed, or a message waits.
 */
bool weft_recvq_needs_doorbell(const struct weft_recvq *rq)
{
	smp_mb(); /* pairs with the one in weft_recvq_set_flushing() */
	return READ_ONCE(rq->ctl->state) == WEFT_RQ_NEED_DOORBELL;
}
