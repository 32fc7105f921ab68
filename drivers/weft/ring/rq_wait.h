/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Streams that wait for a receive of one queue, in the order in which they began to.
 */
#ifndef WEFT_RING_RQ_WAIT_H
#define WEFT_RING_RQ_WAIT_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/types.h>

/**
 * struct weft_rq_waiter - a place among those that wait
 * @node: in the list of the queue, else empty
 * @granted: a receive is set aside for it
 * @wake: @granted was set; any context, lock of the queue held
 *
 * Protected by the lock of the queue.
 */
struct weft_rq_waiter {
	struct list_head node;
	bool granted;
	void (*wake)(struct weft_rq_waiter *w);
};

/**
 * struct weft_rq_waiters - those that wait
 * @list: the oldest first
 * @granted: receives that are set aside for those that have waited
 *
 * Protected by the lock of the queue.
 */
struct weft_rq_waiters {
	struct list_head list;
	u32 granted;
};

static inline void weft_rq_waiters_init(struct weft_rq_waiters *q)
{
	INIT_LIST_HEAD(&q->list);
	q->granted = 0;
}

static inline void weft_rq_waiter_init(struct weft_rq_waiter *w,
				       void (*wake)(struct weft_rq_waiter *w))
{
	INIT_LIST_HEAD(&w->node);
	w->granted = false;
	w->wake = wake;
}

/* Does any wait, or has one waited and not taken what it was granted? */
static inline bool weft_rq_waiters_idle(const struct weft_rq_waiters *q)
{
	return likely(list_empty(&q->list) && !q->granted);
}

/* Context of all: lock of the queue held. */
void weft_rq_waiters_join(struct weft_rq_waiters *q, struct weft_rq_waiter *w);
void weft_rq_waiters_leave(struct weft_rq_waiters *q, struct weft_rq_waiter *w);
void weft_rq_waiters_grant(struct weft_rq_waiters *q, u32 available);
bool weft_rq_waiters_turn(struct weft_rq_waiters *q, struct weft_rq_waiter *w, u32 available);

#endif
