// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How many connections a listener takes from TCP, and how many of them its consumer is told of.
 *
 * Two bounds, for two kinds of peers. Peers that send no request cost memory and no
 * decision: there are at most WAITING_MAX, and when another one comes the oldest makes room for
 * it, once it has had REQUEST_GRACE. So silent peers delay others, by at most the time TCP's
 * accept queue takes to pass through here, and do not exclude them. Peers with a request are
 * told to the consumer in the order they came, as many at a time as it asked for in listen;
 * nothing more is taken from TCP while one of them is queued. The listeners of a wildcard have
 * one consumer, so that what each has told it of counts for all.
 *
 * rdma_cm refuses, for a process, requests that exceed the same number and that the process has
 * not fetched; a driver is not told which ones it has fetched. As long as no more are offered
 * than the consumer has left to answer, none is refused. But a process may fetch several and
 * answer the first one only then. So when it has not answered for PROBE_AFTER it is told of
 * more, one, then two, then four, up to OFFERED_MAX; and if rdma_cm refuses one of these, it is
 * queued again instead of rejected (weft_backlog_take_back()).
 */
#include "cm/backlog.h"

#include <linux/jiffies.h>
#include <linux/minmax.h>

#include "cm/conn.h"

#define WAITING_MAX	512U
#define OFFERED_MAX	512U
#define REQUEST_GRACE	(HZ / 4)
#define PROBE_AFTER	(HZ / 10)

/*
 * Held while requests are offered and counted, so that two listeners of one consumer do not both
 * offer the last one that it wants.
 */
static DEFINE_MUTEX(offer_lock);

/**
 * weft_backlog_init - no connection has come yet
 * @b: the backlog
 * @wq: where @work runs
 * @work: of the listener
 * @size: as the consumer wants it
 */
void weft_backlog_init(struct weft_backlog *b, struct workqueue_struct *wq, work_func_t work,
		       int size)
{
	unsigned int i;

	mutex_init(&b->lock);
	for (i = 0; i < WEFT_BACKLOG_PLACES; i++)
		INIT_LIST_HEAD(&b->list[i]);
	b->size = max(size, 1);
	b->probes = 1;
	b->quiet_since = jiffies;
	b->wq = wq;
	INIT_DELAYED_WORK(&b->work, work);
}

/* To the end of the list of its new place. */
static void move_locked(struct weft_backlog *b, struct weft_conn *conn,
			enum weft_backlog_place place) __must_hold(&b->lock)
{
	lockdep_assert_held(&b->lock);
	/* Other listeners look at these. */
	WRITE_ONCE(b->num[conn->place], b->num[conn->place] - 1);
	WRITE_ONCE(b->num[place], b->num[place] + 1);
	WRITE_ONCE(conn->place, place);
	list_move_tail(&conn->backlog, &b->list[place]);
}

static bool has_space_locked(const struct weft_backlog *b) __must_hold(&b->lock)
{
	lockdep_assert_held(&b->lock);
	return !b->closed && list_empty(&b->list[WEFT_BACKLOG_QUEUED]) &&
	       b->num[WEFT_BACKLOG_WAITING] + b->num[WEFT_BACKLOG_DROPPED] < WAITING_MAX;
}

/* Have @work run by then, at the latest. */
static void wake_within_locked(struct weft_backlog *b, unsigned long delay) __must_hold(&b->lock)
{
	lockdep_assert_held(&b->lock);
	if (b->closed)
		return;
	if (delay)
		queue_delayed_work(b->wq, &b->work, delay);
	else
		mod_delayed_work(b->wq, &b->work, 0);
}

/* --- telling the consumer --- */

static void offer_oldest_locked(struct weft_backlog *b, bool probe) __must_hold(&b->lock)
{
	struct weft_conn *conn =
		list_first_entry(&b->list[WEFT_BACKLOG_QUEUED], struct weft_conn, backlog);

	lockdep_assert_held(&b->lock);
	move_locked(b, conn, WEFT_BACKLOG_OFFERED);
	WRITE_ONCE(conn->probe, probe);
	weft_conn_post(conn, WEFT_CONN_TURN);
}

/* Does it want to be told of more? */
static bool wants_locked(struct weft_backlog *b) __must_hold(&b->lock)
{
	u32 told = b->num[WEFT_BACKLOG_OFFERED];

	lockdep_assert_held(&b->lock);
	if (b->offered_elsewhere)
		told += b->offered_elsewhere(b);
	return told < b->size;
}

static void offer_wanted_locked(struct weft_backlog *b) __must_hold(&b->lock)
{
	lockdep_assert_held(&b->lock);
	mutex_lock(&offer_lock);
	while (!b->closed && !list_empty(&b->list[WEFT_BACKLOG_QUEUED]) && wants_locked(b))
		offer_oldest_locked(b, false);
	mutex_unlock(&offer_lock);
	if (!list_empty(&b->list[WEFT_BACKLOG_QUEUED]))
		wake_within_locked(b, PROBE_AFTER);
	else if (b->full && has_space_locked(b))
		wake_within_locked(b, 0);
}

/**
 * weft_backlog_offer - tell the consumer of as many requests as may be
 * @b: the backlog
 *
 * Context: its work.
 */
void weft_backlog_offer(struct weft_backlog *b)
{
	u32 n;

	mutex_lock(&b->lock);
	offer_wanted_locked(b);
	if (!b->closed && !list_empty(&b->list[WEFT_BACKLOG_QUEUED]) &&
	    !time_before(jiffies, b->quiet_since + PROBE_AFTER)) {
		for (n = b->probes; n > 0; n--) {
			if (list_empty(&b->list[WEFT_BACKLOG_QUEUED]) ||
			    b->num[WEFT_BACKLOG_OFFERED] >= OFFERED_MAX)
				break;
			offer_oldest_locked(b, true);
		}
		b->probes = min(b->probes * 2, OFFERED_MAX);
		b->quiet_since = jiffies;
	}
	mutex_unlock(&b->lock);
}

/**
 * weft_backlog_request - the request of a connection is complete
 * @b: the backlog
 * @conn: in it
 *
 * WEFT_CONN_TURN is posted when the consumer is to be told; then closing the listener does not
 * end the connection any more, since a consumer may close it as soon as it is told of a request.
 * Context: the worker of @conn. Return: false if the listener is closed already, or @conn has
 * been dropped.
 */
bool weft_backlog_request(struct weft_backlog *b, struct weft_conn *conn)
{
	bool ok;

	mutex_lock(&b->lock);
	ok = !b->closed && conn->place == WEFT_BACKLOG_WAITING;
	if (ok) {
		if (list_empty(&b->list[WEFT_BACKLOG_QUEUED]))
			b->quiet_since = jiffies;
		move_locked(b, conn, WEFT_BACKLOG_QUEUED);
		offer_wanted_locked(b);
	}
	mutex_unlock(&b->lock);
	return ok;
}

/**
 * weft_backlog_take_back - the consumer could not be told of a request
 * @b: the backlog
 * @conn: in it, offered
 *
 * It is the next one again, some time later. Context: process. Return: false if the listener
 * is closed.
 */
bool weft_backlog_take_back(struct weft_backlog *b, struct weft_conn *conn)
{
	bool ok;

	mutex_lock(&b->lock);
	ok = !b->closed && conn->place == WEFT_BACKLOG_OFFERED;
	if (ok) {
		move_locked(b, conn, WEFT_BACKLOG_QUEUED);
		list_move(&conn->backlog, &b->list[WEFT_BACKLOG_QUEUED]);
		b->probes = 1;
		b->quiet_since = jiffies;
		wake_within_locked(b, PROBE_AFTER);
		weft_conn_post(conn, WEFT_CONN_POLL);	/* not looked at while offered */
	}
	mutex_unlock(&b->lock);
	return ok;
}

/**
 * weft_backlog_holds - has the consumer been told, and will it answer?
 * @b: the backlog
 * @conn: of the listener
 *
 * Then what rdma_cm keeps for it counts against the consumer's backlog there, whatever the
 * peer does meanwhile. Context: the worker of @conn.
 */
bool weft_backlog_holds(struct weft_backlog *b, const struct weft_conn *conn)
{
	bool holds;

	mutex_lock(&b->lock);
	holds = !b->closed && conn->place == WEFT_BACKLOG_OFFERED;
	mutex_unlock(&b->lock);
	return holds;
}

/* --- coming and going --- */

/**
 * weft_backlog_add - a connection that TCP has handed over
 * @b: the backlog
 * @conn: not in it
 *
 * Context: process. Return: false if the listener is closed.
 */
bool weft_backlog_add(struct weft_backlog *b, struct weft_conn *conn)
{
	bool open;

	mutex_lock(&b->lock);
	open = !b->closed;
	if (open) {
		b->num[WEFT_BACKLOG_OUTSIDE]++;
		conn->arrived = jiffies;
		move_locked(b, conn, WEFT_BACKLOG_WAITING);
	}
	mutex_unlock(&b->lock);
	return open;
}

/**
 * weft_backlog_leave - the consumer has answered, or the connection ends
 * @b: the backlog
 * @conn: in it or not
 *
 * Context: the worker of @conn.
 */
void weft_backlog_leave(struct weft_backlog *b, struct weft_conn *conn)
{
	mutex_lock(&b->lock);
	if (conn->place == WEFT_BACKLOG_OFFERED) {
		b->probes = 1;
		b->quiet_since = jiffies;
	}
	if (conn->place != WEFT_BACKLOG_OUTSIDE) {
		WRITE_ONCE(b->num[conn->place], b->num[conn->place] - 1);
		WRITE_ONCE(conn->place, WEFT_BACKLOG_OUTSIDE);
		list_del_init(&conn->backlog);
		offer_wanted_locked(b);
	}
	mutex_unlock(&b->lock);
}

/**
 * weft_backlog_has_space - may one more be taken from TCP?
 * @b: the backlog; the caller knows of one
 *
 * Context: its work. Return: false if not; the work runs again when there is room.
 */
bool weft_backlog_has_space(struct weft_backlog *b)
{
	struct weft_conn *conn;
	unsigned long due;
	bool room;

	mutex_lock(&b->lock);
	room = has_space_locked(b);
	b->full = !room;
	conn = list_first_entry_or_null(&b->list[WEFT_BACKLOG_WAITING], struct weft_conn, backlog);
	if (room || b->closed || !list_empty(&b->list[WEFT_BACKLOG_QUEUED]) || !conn ||
	    b->num[WEFT_BACKLOG_DROPPED])
		goto unlock;
	/* Another one waits in TCP's queue, so the one that has been silent longest has to go. */
	due = conn->arrived + REQUEST_GRACE;
	if (time_before(jiffies, due)) {
		wake_within_locked(b, due - jiffies);
	} else {
		move_locked(b, conn, WEFT_BACKLOG_DROPPED);
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	}
unlock:
	mutex_unlock(&b->lock);
	return room;
}

/**
 * weft_backlog_refuse - there is no more room, from now on
 * @b: the backlog
 *
 * So work that takes connections for it comes to its end, however many peers connect.
 * Context: process.
 */
void weft_backlog_refuse(struct weft_backlog *b)
{
	mutex_lock(&b->lock);
	b->closed = true;
	mutex_unlock(&b->lock);
}

/**
 * weft_backlog_stop - take no more
 * @b: the backlog; its work is not queued from outside any more
 *
 * Its work does not run afterwards. Context: process, not the work.
 */
void weft_backlog_stop(struct weft_backlog *b)
{
	weft_backlog_refuse(b);
	cancel_delayed_work_sync(&b->work);
}

/**
 * weft_backlog_close - the listener is gone
 * @b: the backlog, stopped
 *
 * Connections that the consumer was told of live on: it has as long for its answer as before.
 * The others end. Context: process.
 */
void weft_backlog_close(struct weft_backlog *b)
{
	struct weft_conn *conn;

	mutex_lock(&b->lock);
	list_for_each_entry(conn, &b->list[WEFT_BACKLOG_WAITING], backlog)
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	list_for_each_entry(conn, &b->list[WEFT_BACKLOG_QUEUED], backlog)
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	list_for_each_entry(conn, &b->list[WEFT_BACKLOG_OFFERED], backlog)
		weft_conn_post(conn, WEFT_CONN_POLL);
	mutex_unlock(&b->lock);
}
