// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the state machine of a connection orders. All of it runs in the connection's
 * worker.
 */
#include "cm/action.h"

#include <linux/bitmap.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
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
	int ret = weft_start_send(&conn->hs->out, conn->sock);

	weft_listener_leave(conn);
	if (ret)
		conn->status = ret == -EAGAIN ? -ENOBUFS : ret;
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

/* The last of its actions: nothing but references keeps it now. */
static void release_conn_sock(struct weft_conn *conn)
{
	weft_conn_disarm(conn);
	weft_handshake_close(conn);
	kfree(conn->hs);
	conn->hs = NULL;
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

static void carry_out(struct weft_conn *conn, unsigned long action)
{
	switch (action) {
	case WEFT_CONNA_SEND_REQUEST:
		/* Look at once: the answer, or the end, may be there already. */
		weft_conn_post(conn, WEFT_CONN_POLL);
		break;
	case WEFT_CONNA_SEND_REPLY:
	case WEFT_CONNA_SEND_REJECT:
		send_frame(conn);
		break;
	case WEFT_CONNA_START_STREAM:
		start_stream(conn);
		break;
	case WEFT_CONNA_TELL_REQUEST:
		/* The clock for the decision runs from now on, also while the request is queued. */
		if (!weft_backlog_request(&conn->listener->backlog, conn))
			weft_conn_post(conn, WEFT_CONN_ABANDONED);
		break;
	case WEFT_CONNA_TELL_REPLY:
		tell_reply(conn);
		break;
	case WEFT_CONNA_TELL_ESTABLISHED:
		tell_established(conn);
		break;
	case WEFT_CONNA_TELL_DISCONNECT:
		if (conn->connected)
			weft_iwcm_tell_disconnect(conn);
		break;
	case WEFT_CONNA_TELL_CLOSE:
		if (conn->connected)
			weft_iwcm_tell_close(conn);
		break;
	case WEFT_CONNA_ARM_TIMER:
		weft_conn_arm(conn);
		break;
	case WEFT_CONNA_CANCEL_TIMER:
		weft_conn_disarm(conn);
		break;
	case WEFT_CONNA_ABORT_STREAM:
		weft_stream_abort(conn->stream);
		break;
	case WEFT_CONNA_RELEASE:
		release_conn_sock(conn);
		break;
	}
}

/**
 * weft_action_run - do what was ordered
 * @conn: the connection; after WEFT_CONNA_RELEASE the caller's reference keeps it
 * @actions: bits of enum weft_conn_action, whose order is the order they are meant in
 */
void weft_action_run(struct weft_conn *conn, unsigned long actions)
{
	unsigned int i;

	for_each_set_bit(i, &actions, BITS_PER_LONG) {
		if (!conn->ops || !conn->ops->act(conn, BIT(i)))
			carry_out(conn, BIT(i));
	}
	if (actions & (WEFT_CONNA_TELL_REPLY | WEFT_CONNA_TELL_ESTABLISHED)) {
		kfree(conn->hs);	/* the outcome is known */
		conn->hs = NULL;
	}
	if (actions & WEFT_CONNA_TELL_ESTABLISHED && !(actions & WEFT_CONNA_RELEASE) &&
	    conn->result.early_send)
		mod_timer(&conn->timer, jiffies + EARLY_SEND_DELAY);
}
