// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connections: references, events, deadlines, and one worker each that carries
 * out what the state machine says. Everybody else only leaves a mark for it:
 * sockets and streams an event, the consumer's accept or reject a step.
 */
#include "cm/conn.h"

#include <linux/bitops.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "base/compat.h"
#include "base/trace.h"
#include "cm/action.h"
#include "cm/cm.h"
#include "cm/handshake.h"
#include "engine/life/stream.h"

/* --- references and events --- */

static void free_conn(struct kref *ref)
{
	struct weft_conn *conn = container_of(ref, struct weft_conn, ref);
	struct weft_cm *cm = conn->cm;

	mutex_destroy(&conn->lock);
	kfree_rcu(conn, rcu);
	weft_cm_put(cm);
}

void weft_conn_get(struct weft_conn *conn)
{
	kref_get(&conn->ref);
}

void weft_conn_put(struct weft_conn *conn)
{
	kref_put(&conn->ref, free_conn);
}

/**
 * weft_conn_find - a connection by handle
 * @cm: of the device
 * @handle: any number
 *
 * Context: any. Return: the connection with a reference, or NULL if it is closed.
 */
struct weft_conn *weft_conn_find(struct weft_cm *cm, u32 handle)
{
	struct weft_conn *conn;

	rcu_read_lock();
	conn = xa_load(&cm->conns, handle);
	if (conn && !kref_get_unless_zero(&conn->ref))
		conn = NULL;
	rcu_read_unlock();
	return conn;
}

static void queue_conn_work(struct weft_conn *conn)
{
	weft_conn_get(conn);
	if (!queue_work(conn->cm->wq, &conn->work))
		weft_conn_put(conn);
}

/**
 * weft_conn_post - something happened
 * @conn: held by the caller
 * @event: enum weft_conn_event, WEFT_CONN_POLL or WEFT_CONN_TURN
 *
 * Context: any. Events that are pending together are taken in the order of their
 * enum, which is the order they can happen in.
 */
void weft_conn_post(struct weft_conn *conn, unsigned int event)
{
	set_bit(event, &conn->events);
	queue_conn_work(conn);
}

/* A decision overdue is an abandoned connection. */
static void step_locked(struct weft_conn *conn, enum weft_conn_event event) __must_hold(&conn->lock)
{
	struct weft_conn_step step;

	lockdep_assert_held(&conn->lock);
	if (event == WEFT_CONN_TIMED_OUT && conn->state == WEFT_CONN_AWAIT_ACCEPT)
		event = WEFT_CONN_ABANDONED;
	step = weft_conn_fsm(conn->state, event);
	trace_weft_cm_state(conn->cm->netdev->ifindex, conn->handle,
			    conn->stream ? weft_stream_qpn(conn->stream) : 0, event, conn->state,
			    step.next, conn->status);
	WARN_ONCE(step.actions & WEFT_CONNA_IMPOSSIBLE, "weft: %s in state %s\n",
		  weft_conn_event_name(event), weft_conn_state_name(conn->state));
	WRITE_ONCE(conn->state, step.next);
	conn->todo |= step.actions & ~WEFT_CONNA_IMPOSSIBLE;
}

/**
 * weft_conn_decide - the consumer has decided
 * @conn: locked, in state await-accept
 * @event: what about; what follows from it is left to the worker
 *
 * Context: process.
 */
void weft_conn_decide(struct weft_conn *conn, enum weft_conn_event event) __must_hold(&conn->lock)
{
	lockdep_assert_held(&conn->lock);
	step_locked(conn, event);
	queue_conn_work(conn);
}

/**
 * weft_conn_reserve - a connection is for a QP, which no other may connect meanwhile
 * @conn: the caller's alone, or locked
 * @qpn: of the QP
 *
 * Context: process. Return: 0, and weft_conn_unreserve() or the end of the connection gives the QP
 * back; or -EINVAL for one that cannot be connected, or is being connected.
 */
int weft_conn_reserve(struct weft_conn *conn, u32 qpn)
{
	struct weft_stream *stream = weft_stream_find(conn->cm->streams, qpn);
	int ret;

	if (!stream)
		return -EINVAL;
	ret = weft_stream_reserve(stream);
	if (ret) {
		weft_stream_put(stream);
		return ret;
	}
	WRITE_ONCE(conn->stream, stream); /* weft_cm_cancel_pending() looks for it */
	conn->reserved = true;
	return 0;
}

/**
 * weft_conn_unreserve - the QP may be connected again
 * @conn: the caller's alone, or the worker's; its QP, if any, is not started
 *
 * Before the consumer is told, which may do that at once. Context: process.
 */
void weft_conn_unreserve(struct weft_conn *conn)
{
	if (conn->reserved)
		weft_stream_unreserve(conn->stream);
	conn->reserved = false;
}

/**
 * weft_conn_begin - let a connection live
 * @conn: in state idle, complete; from now on its worker's
 * @event: how it begins
 *
 * Context: process. Return: 0, or -ENOMEM, and it is in state idle still, the caller's alone.
 */
int weft_conn_begin(struct weft_conn *conn, enum weft_conn_event event)
{
	struct weft_cm *cm = conn->cm;
	int ret;

	mutex_lock(&conn->lock);
	ret = xa_alloc_cyclic(&cm->conns, &conn->handle, conn, xa_limit_31b, &cm->next_handle,
			      GFP_KERNEL);
	if (ret >= 0)
		step_locked(conn, event);
	mutex_unlock(&conn->lock);
	if (ret < 0)
		return ret;
	weft_conn_post(conn, WEFT_CONN_POLL);
	return 0;
}

/* --- deadlines --- */

static void conn_timer_fn(struct timer_list *timer)
{
	struct weft_conn *conn = timer_container_of(conn, timer, timer);

	weft_conn_post(conn, WEFT_CONN_TIMED_OUT);
}

/**
 * weft_conn_arm - start the clock for the state the connection is in
 * @conn: the connection
 *
 * Context: its worker.
 */
void weft_conn_arm(struct weft_conn *conn)
{
	const struct weft_cm_deadlines *d = &conn->cm->deadlines;
	unsigned long delay;
	u32 ms;

	switch (READ_ONCE(conn->state)) {
	case WEFT_CONN_CONNECTING:
		ms = READ_ONCE(d->connect);
		break;
	case WEFT_CONN_AWAIT_REQUEST:
		ms = READ_ONCE(d->request);
		break;
	case WEFT_CONN_AWAIT_ACCEPT:
		ms = READ_ONCE(d->decision);
		break;
	case WEFT_CONN_AWAIT_REPLY:
		ms = READ_ONCE(d->reply);
		break;
	default:
		ms = READ_ONCE(d->rtr);
		break;
	}
	delay = msecs_to_jiffies(ms);
	/* Dumps read both without asking the worker. */
	WRITE_ONCE(conn->deadline, jiffies + delay);
	WRITE_ONCE(conn->timing, true);
	mod_timer(&conn->timer, jiffies + delay);
}

/**
 * weft_conn_disarm - stop the clock
 * @conn: the connection; a last time when it is released
 *
 * Context: its worker.
 */
void weft_conn_disarm(struct weft_conn *conn)
{
	WRITE_ONCE(conn->timing, false); /* see weft_conn_arm() */
	timer_delete_sync(&conn->timer);
}

/* --- the worker --- */

/* The socket first: what arrived in time must not lose to the clock. */
static bool next_event(struct weft_conn *conn, enum weft_conn_event *event)
{
	unsigned int bit;

	if (test_and_clear_bit(WEFT_CONN_TURN, &conn->events))
		weft_action_offer_request(conn);
	if (test_and_clear_bit(WEFT_CONN_POLL, &conn->events) && weft_handshake_poll(conn, event))
		return true;
	for (bit = 0; bit < WEFT_CONN_EVENTS; bit++) {
		if (!test_and_clear_bit(bit, &conn->events))
			continue;
		/* The timer also ends the wait of a responder that may speak first. */
		if (bit == WEFT_CONN_TIMED_OUT && conn->result.early_send &&
		    READ_ONCE(conn->state) == WEFT_CONN_RUNNING) {
			weft_stream_enable_tx(conn->stream);
			continue;
		}
		/* It may have fired just before it was stopped or set anew. */
		if (bit == WEFT_CONN_TIMED_OUT &&
		    (!conn->timing || time_before(jiffies, conn->deadline)))
			continue;
		*event = bit;
		return true;
	}
	return false;
}

/* A storage consumer that reconnects holds up the very writes that free memory. */
static void conn_work(struct work_struct *work)
{
	struct weft_conn *conn = container_of(work, struct weft_conn, work);
	unsigned int noio = memalloc_noio_save();
	enum weft_conn_event event;
	unsigned long todo;

	for (;;) {
		mutex_lock(&conn->lock);
		todo = conn->todo;
		conn->todo = 0;
		mutex_unlock(&conn->lock);
		if (todo) {
			weft_action_run(conn, todo);
			continue;
		}
		if (!next_event(conn, &event))
			break;
		mutex_lock(&conn->lock);
		if (conn->todo) {
			/* The consumer's answer came first: it is acted on first. */
			set_bit(event, &conn->events);
		} else {
			if (event == WEFT_CONN_TIMED_OUT)
				conn->status = -ETIMEDOUT;
			step_locked(conn, event);
		}
		mutex_unlock(&conn->lock);
	}
	weft_conn_put(conn);
	memalloc_noio_restore(noio);
}

/**
 * weft_conn_new - a connection in state idle
 * @cm: of the device
 * @initiator: we connect
 *
 * Context: process. weft_conn_begin() brings it to life, or the event
 * WEFT_CONN_ABANDONED ends it; until then it is the caller's alone. Return: the
 * connection with a reference for the caller besides its own, or NULL.
 */
struct weft_conn *weft_conn_new(struct weft_cm *cm, bool initiator)
{
	struct weft_handshake *hs = kzalloc(sizeof(*hs), GFP_KERNEL);
	struct weft_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn || !hs) {
		kfree(conn);
		kfree(hs);
		return NULL;
	}
	hs->policy = cm->policy;
	hs->tos = WEFT_TOS_NONE;
	hs->in.request = !initiator;
	hs->in.need = WEFT_MPA_START_LEN;
	kref_init(&conn->ref);
	weft_conn_get(conn);
	conn->cm = cm;
	conn->initiator = initiator;
	conn->hs = hs;
	INIT_WORK(&conn->work, conn_work);
	timer_setup(&conn->timer, conn_timer_fn, 0);
	INIT_LIST_HEAD(&conn->backlog);
	INIT_LIST_HEAD(&conn->at_port);
	mutex_init(&conn->lock);
	weft_cm_get(cm);
	return conn;
}
