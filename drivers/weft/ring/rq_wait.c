// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Whose turn it is. A receive that is posted while streams wait is set aside for the oldest of
 * them. So each receive wakes one stream, streams that share a queue are served in the order in
 * which they came, and a stream that did not wait takes no receive of one that did.
 */
#include "ring/rq_wait.h"

#include <linux/bug.h>

/* Wakes in a row with the lock held; each of these streams has the others granted theirs. */
#define WAKES_MAX	32U

/* Takes the last place, unless it has one. */
void weft_rq_waiters_join(struct weft_rq_waiters *q, struct weft_rq_waiter *w)
{
	if (list_empty(&w->node) && !w->granted)
		list_add_tail(&w->node, &q->list);
}

static void give_back(struct weft_rq_waiters *q, struct weft_rq_waiter *w)
{
	WRITE_ONCE(w->granted, false);
	if (!WARN_ON_ONCE(!q->granted))
		q->granted--;
}

/* Waits no longer; may have no place. What was granted to it is there for the next. */
void weft_rq_waiters_leave(struct weft_rq_waiters *q, struct weft_rq_waiter *w)
{
	if (w->granted)
		give_back(q, w);
	else
		list_del_init(&w->node);
}

/**
 * weft_rq_waiters_grant - set receives aside for those that wait
 * @q: those
 * @available: receives posted and not taken; an impossible number is granted too, so that each
 *	stream fails by it
 */
void weft_rq_waiters_grant(struct weft_rq_waiters *q, u32 available)
{
	struct weft_rq_waiter *w;
	u32 wakes = 0;

	while (!list_empty(&q->list) && available > q->granted && wakes++ < WAKES_MAX) {
		w = list_first_entry(&q->list, struct weft_rq_waiter, node);
		list_del_init(&w->node);
		q->granted++;
		WRITE_ONCE(w->granted, true);
		w->wake(w);
	}
}

/**
 * weft_rq_waiters_turn - may a stream take the oldest receive?
 * @q: those that wait
 * @w: of a stream that has waited, NULL: it has not
 * @available: receives posted and not taken, granted as far as they go
 *
 * Uses up what was granted. Return: false if all there is belongs to others.
 */
bool weft_rq_waiters_turn(struct weft_rq_waiters *q, struct weft_rq_waiter *w, u32 available)
{
	if (w && w->granted) {
		give_back(q, w);
		return true;
	}
	return list_empty(&q->list) && available > q->granted;
}
