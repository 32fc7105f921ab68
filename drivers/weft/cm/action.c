// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the state machine of a connection orders, one function an action. All of
 * it runs in the connection's worker.
 */
#include "cm/action.h"

#include <linux/bitops.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/xarray.h>

#include "base/counters.h"
#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/mpa_terminate.h"
#include "cm/handshake.h"
#include "cm/iwcm.h"
#include "cm/listen.h"
#include "engine/life/stream.h"
#include "net/tcp_socket.h"

/* How long a responder that sends early still waits: its reply shall be read by itself. */
#define EARLY_SEND_DELAY	(HZ / 10)

/* --- what the stream tells --- */

static void stream_ready(void *owner)
{
	weft_conn_post(owner, WEFT_CONN_READY);
}

static void stream_lost(void *owner)
{
	struct weft_conn *conn = owner;

	conn->ops->lost(conn);
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
	.lost = stream_lost,
	.closing = stream_closing,
	.closed = stream_closed,
};

/* --- actions --- */

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
	weft_conn_post(conn, WEFT_CONN_POLL);
}

/*
 * The stream takes the socket. If it cannot, as when its QP has failed
 * meanwhile, the consumer is told of a connection that broke at once.
 */
static void start_stream(struct weft_conn *conn)
{
	int ret = conn->status;

	weft_conn_disarm(conn);
	weft_sock_detach(conn->sock);
	weft_conn_get(conn);
	if (!ret)
		ret = weft_stream_start(conn->stream, conn->sock, &conn->result, conn->initiator,
					&stream_events, conn);
	if (!ret) {
		conn->sock = NULL;
		conn->reserved = false;
		return;
	}
	weft_conn_put(conn);
	conn->status = ret;
	if (conn->initiator && conn->result.enhanced)
		weft_mpa_terminate_send(conn->sock, &conn->result, WEFT_FAULT_MPA_LOCAL);
	weft_conn_post(conn, WEFT_CONN_STREAM_CLOSING);
	weft_conn_post(conn, WEFT_CONN_STREAM_CLOSED);
}

/* The clock for the decision runs from now on, also while the request is queued. */
static void queue_request(struct weft_conn *conn)
{
	if (!weft_backlog_request(&conn->listener->backlog, conn))
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
}

/**
 * weft_action_offer_request - tell the consumer of a request whose turn has come
 * @conn: the connection, in any state
 *
 * Context: its worker.
 */
void weft_action_offer_request(struct weft_conn *conn)
{
	int ret;

	if (READ_ONCE(conn->state) != WEFT_CONN_AWAIT_ACCEPT || !conn->listener)
		return;
	ret = weft_iwcm_tell_request(conn);
	if (ret == -ENOMEM && weft_backlog_take_back(&conn->listener->backlog, conn))
		return;
	if (ret)
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
}

static void tell_reply(struct weft_conn *conn)
{
	weft_conn_unreserve(conn);
	if (READ_ONCE(conn->state) == WEFT_CONN_CLOSED && !conn->status)
		conn->status = -ECONNABORTED;
	conn->connected = !conn->status;
	weft_count(conn->cm->counters,
		   conn->connected ? WEFT_CTR_CONN_ACTIVE : WEFT_CTR_CONN_REFUSED);
	if (weft_sock_is_unreachable(conn->status))
		weft_count(conn->cm->counters, WEFT_CTR_CONN_UNREACHABLE);
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
static void release_conn_sock(struct weft_conn *conn)
{
	weft_conn_disarm(conn);
	weft_handshake_close(conn);
	weft_handshake_free(conn);
	weft_listener_leave(conn);
	weft_iwcm_forget(conn);
	weft_conn_unreserve(conn);
	if (conn->stream)
		weft_stream_put(conn->stream);
	WRITE_ONCE(conn->stream, NULL); /* see weft_conn_reserve() */
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
	[const_ilog2(WEFT_CONNA_TELL_REQUEST)] = queue_request,
	[const_ilog2(WEFT_CONNA_TELL_REPLY)] = tell_reply,
	[const_ilog2(WEFT_CONNA_TELL_ESTABLISHED)] = tell_established,
	[const_ilog2(WEFT_CONNA_TELL_DISCONNECT)] = tell_disconnect,
	[const_ilog2(WEFT_CONNA_TELL_CLOSE)] = tell_close,
	[const_ilog2(WEFT_CONNA_ARM_TIMER)] = weft_conn_arm,
	[const_ilog2(WEFT_CONNA_CANCEL_TIMER)] = weft_conn_disarm,
	[const_ilog2(WEFT_CONNA_ABORT_STREAM)] = abort_stream,
	[const_ilog2(WEFT_CONNA_RELEASE)] = release_conn_sock,
};

/**
 * weft_action_run - do what was ordered
 * @conn: the connection; after WEFT_CONNA_RELEASE the caller's reference keeps it
 * @actions: bits of enum weft_conn_action
 */
void weft_action_run(struct weft_conn *conn, unsigned long actions)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(handlers); i++)
		if (actions & BIT(i) && !(conn->ops && conn->ops->act(conn, BIT(i))))
			handlers[i](conn);
	if (actions & (WEFT_CONNA_TELL_REPLY | WEFT_CONNA_TELL_ESTABLISHED))
		weft_handshake_free(conn);
	if (actions & WEFT_CONNA_TELL_ESTABLISHED && !(actions & WEFT_CONNA_RELEASE) &&
	    conn->result.early_send)
		weft_conn_wake_after(conn, EARLY_SEND_DELAY);
}
