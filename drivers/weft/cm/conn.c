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

#include "base/counters.h"
#include "base/trace.h"
#include "cm/cm.h"
#include "cm/farewell.h"
#include "cm/handshake.h"
#include "cm/iwcm.h"
#include "cm/listen.h"
#include "engine/stream.h"
#include "net/sockevents.h"
#include "net/tcpsock.h"

/* When iw_cm has no room for another request. */
#define TRY_AGAIN	(HZ / 50)
/* For a decision, once the listener is closed. */
#define ORPHAN_DEADLINE	(10 * HZ)
/* How long an eager responder still waits: its reply shall be read by itself. */
#define EAGER_PATIENCE	(HZ / 10)

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

static void kick(struct weft_conn *conn)
{
	weft_conn_get(conn);
	if (!queue_work(conn->cm->wq, &conn->work))
		weft_conn_put(conn);
}

/**
 * weft_conn_post - something happened
 * @conn: held by the caller
 * @event: enum weft_conn_event, or WEFT_CONN_LOOK
 *
 * Context: any. Events that are pending together are taken in the order of their
 * enum, which is the order they can happen in.
 */
void weft_conn_post(struct weft_conn *conn, unsigned int event)
{
	set_bit(event, &conn->events);
	kick(conn);
}

/* A decision overdue is an abandoned connection. */
static void step_locked(struct weft_conn *conn, enum weft_conn_event event)
{
	struct weft_conn_step step;

	lockdep_assert_held(&conn->lock);
	if (event == WEFT_CONN_TIMED_OUT && conn->state == WEFT_CONN_AWAIT_ULP)
		event = WEFT_CONN_ABANDONED;
	step = weft_conn_fsm(conn->state, event);
	trace_weft_conn_step(conn->cm->netdev->ifindex, conn->handle,
			     conn->stream ? weft_stream_qpn(conn->stream) : 0, event, conn->state,
			     step.next);
	WARN_ONCE(step.actions & WEFT_CONNA_IMPOSSIBLE, "weft: %s in state %s\n",
		  weft_conn_event_name(event), weft_conn_state_name(conn->state));
	WRITE_ONCE(conn->state, step.next);
	conn->todo |= step.actions & ~WEFT_CONNA_IMPOSSIBLE;
}

/**
 * weft_conn_decide - the consumer has decided
 * @conn: locked, in state await-ulp
 * @event: what about; what follows from it is left to the worker
 *
 * Context: process.
 */
void weft_conn_decide(struct weft_conn *conn, enum weft_conn_event event)
{
	step_locked(conn, event);
	kick(conn);
}

/**
 * weft_conn_begin - let a connection live
 * @conn: in state idle, complete; from now on its worker's
 * @event: how it begins
 *
 * Context: process. Return: 0, or -ENOMEM: it was abandoned.
 */
int weft_conn_begin(struct weft_conn *conn, enum weft_conn_event event)
{
	struct weft_cm *cm = conn->cm;
	int ret;

	mutex_lock(&conn->lock);
	ret = xa_alloc_cyclic(&cm->conns, &conn->handle, conn, xa_limit_31b, &cm->next_handle,
			      GFP_KERNEL);
	step_locked(conn, ret < 0 ? WEFT_CONN_ABANDONED : event);
	mutex_unlock(&conn->lock);
	weft_conn_post(conn, WEFT_CONN_LOOK);
	return ret < 0 ? ret : 0;
}

/* --- deadlines --- */

static void time_up(struct work_struct *work)
{
	struct weft_conn *conn = container_of(work, struct weft_conn, timer.work);

	weft_conn_post(conn, WEFT_CONN_TIMED_OUT);
	weft_conn_put(conn);
}

static unsigned long allowance(const struct weft_conn *conn)
{
	const struct weft_cm_deadlines *d = &conn->cm->deadlines;

	switch (READ_ONCE(conn->state)) {
	case WEFT_CONN_CONNECTING:
		return msecs_to_jiffies(READ_ONCE(d->connect));
	case WEFT_CONN_AWAIT_REQUEST:
		return msecs_to_jiffies(READ_ONCE(d->request));
	case WEFT_CONN_AWAIT_ULP:
		return msecs_to_jiffies(READ_ONCE(d->decision));
	case WEFT_CONN_AWAIT_REPLY:
		return msecs_to_jiffies(READ_ONCE(d->reply));
	default:
		return msecs_to_jiffies(READ_ONCE(d->rtr));
	}
}

static void start_timer(struct weft_conn *conn, unsigned long delay)
{
	weft_conn_get(conn);
	if (mod_delayed_work(conn->cm->wq, &conn->timer, delay))
		weft_conn_put(conn);
}

/**
 * weft_conn_arm - start the clock for the state the connection is in
 * @conn: the connection
 *
 * Context: its worker.
 */
void weft_conn_arm(struct weft_conn *conn)
{
	unsigned long delay = allowance(conn);

	conn->deadline = jiffies + delay;
	conn->timing = true;
	start_timer(conn, conn->untold ? TRY_AGAIN : delay);
}

static void disarm(struct weft_conn *conn)
{
	conn->timing = false;
	conn->untold = false;
	if (cancel_delayed_work(&conn->timer))
		weft_conn_put(conn);
}

/* A timer may have fired just before it was stopped or set anew. */
static bool overdue(const struct weft_conn *conn)
{
	return conn->timing && !time_before(jiffies, conn->deadline);
}

/* --- what the stream tells --- */

static void stream_ready(void *owner)
{
	weft_conn_post(owner, WEFT_CONN_READY);
}

static void stream_closing(void *owner, int error)
{
	struct weft_conn *conn = owner;

	WRITE_ONCE(conn->close_error, error);
	weft_conn_post(conn, WEFT_CONN_STREAM_CLOSING);
}

static void stream_closed(void *owner)
{
	weft_conn_post(owner, WEFT_CONN_STREAM_CLOSED);
	weft_conn_put(owner);
}

static const struct weft_stream_cm_events stream_events = {
	.ready = stream_ready,
	.closing = stream_closing,
	.closed = stream_closed,
};

/* --- actions, all in the worker --- */

/* A new socket has room for a frame; if it has not, memory is out. */
static void send_frame(struct weft_conn *conn)
{
	int ret = weft_handshake_send(conn);

	weft_listener_leave(conn);
	if (ret)
		conn->status = ret == -EAGAIN ? -ENOBUFS : ret;
}

/* Look at once: the answer, or the end, may be there already. */
static void send_request(struct weft_conn *conn)
{
	weft_conn_post(conn, WEFT_CONN_LOOK);
}

/*
 * The stream takes the socket. If it cannot, as when its QP has failed
 * meanwhile, the consumer hears of a connection that broke at once.
 */
static void start_stream(struct weft_conn *conn)
{
	int ret = conn->status;

	disarm(conn);
	weft_sock_detach(conn->sock);
	weft_conn_get(conn);
	if (!ret)
		ret = weft_stream_start(conn->stream, conn->sock, &conn->result, conn->initiator,
					&stream_events, conn);
	if (!ret) {
		conn->sock = NULL;
		return;
	}
	weft_conn_put(conn);
	conn->status = ret;
	if (conn->initiator && conn->result.enhanced)
		weft_farewell_send(conn->sock, &conn->result, WEFT_FAULT_MPA_LOCAL);
	weft_conn_post(conn, WEFT_CONN_STREAM_CLOSING);
	weft_conn_post(conn, WEFT_CONN_STREAM_CLOSED);
}

/*
 * iw_cm holds as many requests as the consumer's backlog says; this one stands
 * in line meanwhile, as in TCP's own backlog.
 */
static bool stands_in_line(struct weft_conn *conn, int told)
{
	conn->untold = told == -ENOMEM;
	return conn->untold;
}

static void offer_request(struct weft_conn *conn)
{
	int ret = weft_iwcm_tell_request(conn);

	if (ret && !stands_in_line(conn, ret))
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
}

/* The clock for the decision runs once this step is done, and only then. */
static void tell_request(struct weft_conn *conn)
{
	if (weft_listener_ready(conn))
		offer_request(conn);
	else
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
}

static void tell_reply(struct weft_conn *conn)
{
	if (READ_ONCE(conn->state) == WEFT_CONN_CLOSED && !conn->status)
		conn->status = -ECONNABORTED;
	conn->connected = !conn->status;
	weft_count(conn->cm->counters,
		   conn->connected ? WEFT_CTR_CONN_ACTIVE : WEFT_CTR_CONN_REFUSED);
	weft_iwcm_tell_reply(conn);
}

/* Once accepted, it has to be told even if the initiator never got ready. */
static void tell_established(struct weft_conn *conn)
{
	bool ready = READ_ONCE(conn->state) == WEFT_CONN_RUNNING;

	if (!ready && !conn->status)
		conn->status = READ_ONCE(conn->close_error) ?: -ECONNRESET;
	conn->connected = true;
	weft_count(conn->cm->counters,
		   conn->status ? WEFT_CTR_CONN_REFUSED : WEFT_CTR_CONN_PASSIVE);
	weft_iwcm_tell_established(conn);
}

static void tell_disconnect(struct weft_conn *conn)
{
	if (conn->connected)
		weft_iwcm_tell_disconnect(conn);
}

static void tell_close(struct weft_conn *conn)
{
	if (conn->connected)
		weft_iwcm_tell_close(conn);
}

static void abort_stream(struct weft_conn *conn)
{
	weft_stream_abort(conn->stream);
}

/* The last of its actions: nothing but references keeps it now. */
static void release(struct weft_conn *conn)
{
	disarm(conn);
	weft_handshake_close(conn);
	weft_handshake_free(conn);
	weft_listener_leave(conn);
	weft_iwcm_forget(conn);
	if (conn->stream)
		weft_stream_put(conn->stream);
	conn->stream = NULL;
	if (conn->handle)
		xa_erase(&conn->cm->conns, conn->handle);
	weft_conn_put(conn);
}

/* In the order of the bits, which is the order they are meant in. */
static void (*const handlers[])(struct weft_conn *conn) = {
	[const_ilog2(WEFT_CONNA_SEND_REQUEST)] = send_request,
	[const_ilog2(WEFT_CONNA_SEND_REPLY)] = send_frame,
	[const_ilog2(WEFT_CONNA_SEND_REJECT)] = send_frame,
	[const_ilog2(WEFT_CONNA_START_STREAM)] = start_stream,
	[const_ilog2(WEFT_CONNA_TELL_REQUEST)] = tell_request,
	[const_ilog2(WEFT_CONNA_TELL_REPLY)] = tell_reply,
	[const_ilog2(WEFT_CONNA_TELL_ESTABLISHED)] = tell_established,
	[const_ilog2(WEFT_CONNA_TELL_DISCONNECT)] = tell_disconnect,
	[const_ilog2(WEFT_CONNA_TELL_CLOSE)] = tell_close,
	[const_ilog2(WEFT_CONNA_ARM_TIMER)] = weft_conn_arm,
	[const_ilog2(WEFT_CONNA_CANCEL_TIMER)] = disarm,
	[const_ilog2(WEFT_CONNA_ABORT_STREAM)] = abort_stream,
	[const_ilog2(WEFT_CONNA_RELEASE)] = release,
};

static void act(struct weft_conn *conn, unsigned long actions)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(handlers); i++)
		if (actions & BIT(i))
			handlers[i](conn);
	if (actions & (WEFT_CONNA_TELL_REPLY | WEFT_CONNA_TELL_ESTABLISHED))
		weft_handshake_free(conn);
	if (actions & WEFT_CONNA_TELL_ESTABLISHED && conn->result.eager)
		start_timer(conn, EAGER_PATIENCE);
}

/* --- the worker --- */

static unsigned long take_todo(struct weft_conn *conn)
{
	unsigned long todo;

	mutex_lock(&conn->lock);
	todo = conn->todo;
	conn->todo = 0;
	mutex_unlock(&conn->lock);
	return todo;
}

/* If the consumer's answer came first, it is acted on first. */
static void advance(struct weft_conn *conn, enum weft_conn_event event)
{
	mutex_lock(&conn->lock);
	if (conn->todo) {
		set_bit(event, &conn->events);
	} else {
		if (event == WEFT_CONN_TIMED_OUT)
			conn->status = -ETIMEDOUT;
		step_locked(conn, event);
	}
	mutex_unlock(&conn->lock);
}

/* The timer also paces a request that iw_cm had no room for. */
static bool retold(struct weft_conn *conn)
{
	if (!conn->untold || time_after(jiffies, conn->deadline))
		return false;
	tell_request(conn);
	start_timer(conn, conn->untold ? TRY_AGAIN : allowance(conn));
	return true;
}

/* The timer also ends the wait of a responder that may speak first. */
static bool spoke(struct weft_conn *conn)
{
	if (!conn->result.eager || READ_ONCE(conn->state) != WEFT_CONN_RUNNING)
		return false;
	weft_stream_speak(conn->stream);
	return true;
}

/*
 * iw_cm drops the events of an id that is being destroyed, so a consumer that
 * closed its listener may never have heard of this request. One that has heard
 * answers soon; the others' peers shall not wait until their own deadline.
 */
static void hurry(struct weft_conn *conn)
{
	if (READ_ONCE(conn->state) != WEFT_CONN_AWAIT_ULP)
		return;
	conn->deadline = jiffies + ORPHAN_DEADLINE;
	conn->timing = true;
	start_timer(conn, ORPHAN_DEADLINE);
}

/* The socket first: what arrived in time must not lose to the clock. */
static bool next_event(struct weft_conn *conn, enum weft_conn_event *event)
{
	unsigned int bit;

	if (test_and_clear_bit(WEFT_CONN_ORPHANED, &conn->events))
		hurry(conn);
	if (test_and_clear_bit(WEFT_CONN_LOOK, &conn->events) && weft_handshake_look(conn, event))
		return true;
	for (bit = 0; bit < WEFT_CONN_EVENTS; bit++) {
		if (!test_and_clear_bit(bit, &conn->events))
			continue;
		if (bit == WEFT_CONN_TIMED_OUT && (retold(conn) || spoke(conn)))
			continue;
		if (bit == WEFT_CONN_TIMED_OUT && !overdue(conn))
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
		todo = take_todo(conn);
		if (todo)
			act(conn, todo);
		else if (next_event(conn, &event))
			advance(conn, event);
		else
			break;
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
	struct weft_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	kref_init(&conn->ref);
	weft_conn_get(conn);
	conn->cm = cm;
	conn->initiator = initiator;
	conn->policy = cm->policy;
	INIT_WORK(&conn->work, conn_work);
	INIT_DELAYED_WORK(&conn->timer, time_up);
	INIT_LIST_HEAD(&conn->waiting);
	mutex_init(&conn->lock);
	if (weft_handshake_alloc(conn)) {
		kfree(conn);
		return NULL;
	}
	weft_cm_get(cm);
	return conn;
}
