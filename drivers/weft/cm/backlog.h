/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The backlog of a listener: connections that TCP has handed over and that its consumer has
 * not accepted or rejected. It is bounded; what exceeds it stays in TCP's accept queue, unread.
 */
#ifndef WEFT_CM_BACKLOG_H
#define WEFT_CM_BACKLOG_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct weft_conn;

/* Where a connection stands; one step after the other, DROPPED apart. */
enum weft_backlog_place {
	WEFT_BACKLOG_OUTSIDE,	/* not of a listener, or decided */
	WEFT_BACKLOG_WAITING,	/* its request is not complete */
	WEFT_BACKLOG_DROPPED,	/* the same, abandoned for another one, not released yet */
	WEFT_BACKLOG_QUEUED,	/* its request is complete, the consumer does not know */
	WEFT_BACKLOG_OFFERED,	/* the consumer is told, or about to be, and has not answered */
	WEFT_BACKLOG_PLACES
};

/**
 * struct weft_backlog - connections of a listener before the consumer's answer
 * @lock: protects all of it, and where a connection stands
 * @list: by place, oldest first
 * @num: how many are there
 * @size: requests that the consumer wants to be told of before it answers one
 * @probes: how many more it is told of when it has not answered for a while
 * @quiet_since: jiffies; the last answer, or the last time it was told more
 * @offered_elsewhere: requests that other listeners have told the same consumer of; NULL: there are
 *	no others. Called with @lock held, until it is closed
 * @full: TCP was left with connections because there was no room
 * @closed: takes no more
 * @wq: where @work runs
 * @work: accepts from TCP and offers to the consumer, as far as there is room
 */
struct weft_backlog {
	/*
	 * list, num, probes, quiet_since, full, closed, weft_conn.place, weft_conn.arrived,
	 * weft_conn.probe, weft_conn.backlog
	 */
	struct mutex lock;
	struct list_head list[WEFT_BACKLOG_PLACES];
	u32 num[WEFT_BACKLOG_PLACES];
	u32 size;
	u32 probes;
	unsigned long quiet_since;
	u32 (*offered_elsewhere)(struct weft_backlog *b);
	bool full;
	bool closed;
	struct workqueue_struct *wq;
	struct delayed_work work;
};

void weft_backlog_init(struct weft_backlog *b, struct workqueue_struct *wq, work_func_t work,
		       int size);

/* The listener. */
bool weft_backlog_add(struct weft_backlog *b, struct weft_conn *conn);
bool weft_backlog_has_space(struct weft_backlog *b);
void weft_backlog_offer(struct weft_backlog *b);
void weft_backlog_refuse(struct weft_backlog *b);
void weft_backlog_stop(struct weft_backlog *b);
void weft_backlog_close(struct weft_backlog *b);

/* A connection. */
bool weft_backlog_request(struct weft_backlog *b, struct weft_conn *conn);
bool weft_backlog_take_back(struct weft_backlog *b, struct weft_conn *conn);
bool weft_backlog_holds(struct weft_backlog *b, const struct weft_conn *conn);
void weft_backlog_leave(struct weft_backlog *b, struct weft_conn *conn);

#endif
