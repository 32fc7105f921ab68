/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Streams that wait for a receive of one queue, in the order in which they began to. What is
 * done with them is in ring/recvq.c.
 */
#ifndef WEFT_RING_RQ_WAIT_H
#define WEFT_RING_RQ_WAIT_H

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

static inline void weft_rq_waiter_init(struct weft_rq_waiter *w,
				       void (*wake)(struct weft_rq_waiter *w))
{
	INIT_LIST_HEAD(&w->node);
	w->granted = false;
	w->wake = wake;
}

#endif
