// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * iw_cm's contract, as drivers/infiniband/core/iwcm.c has it: a connect that
 * returned 0 gets exactly one CONNECT_REPLY, an accept exactly one ESTABLISHED,
 * whatever becomes of it, since the consumer's disconnect and destroy wait for
 * that. DISCONNECT and CLOSE follow only a good reply or an ESTABLISHED.
 *
 * Events are queued by iw_cm and handled in its own thread, so no consumer code
 * runs in here.
 */
#include "cm/iwcm.h"

#include <linux/minmax.h>
#include <linux/sched.h>
#include <rdma/iw_cm.h>

#include "base/limits.h"
#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/handshake.h"
#include "cm/listen.h"
#include "engine/life/stream.h"
#include "net/tcp_socket.h"

void weft_iwcm_get_id(struct iw_cm_id *id)
{
	id->add_ref(id);
}

void weft_iwcm_put_id(struct iw_cm_id *id)
{
	id->rem_ref(id);
}

/**
 * weft_iwcm_find - the connection of a consumer
 * @cm: of the device
 * @context: what it gave iw_cm
 *
 * Context: process. Return: the connection with a reference, or NULL.
 */
struct weft_conn *weft_iwcm_find(struct weft_cm *cm, const void *context)
{
	struct weft_conn *conn, *found = NULL;

	spin_lock(&cm->by_context_lock);
	/* clang-format off */
	hash_for_each_possible(cm->by_context, conn, by_context, (unsigned long)context) {
		if (conn->context != context)
			continue;
		weft_conn_get(conn);
		found = conn;
		break;
	}
	/* clang-format on */
	spin_unlock(&cm->by_context_lock);
	return found;
}

/* Was it @context that made the id? */
bool weft_iwcm_is_of(const struct iw_cm_id *id, const void *context)
{
	return id->context == context;
}

/* --- requests in --- */

/*
 * rdma_cm has 8 bits for a depth. All of them set is how its users ask for as much
 * as there is, and the device has more than that.
 */
static void set_depths(struct weft_conn *conn, const struct iw_cm_conn_param *param)
{
	struct weft_mpa_policy *policy = &conn->hs->policy;
	u32 ird_max = policy->ird_max;
	u32 ord_max = READ_ONCE(conn->cm->ord_max);

	policy->ird = param->ird == U8_MAX ? ird_max : min(param->ird, ird_max);
	policy->ord = param->ord == U8_MAX ? ord_max : min(param->ord, ord_max);
}

static void bind_id(struct weft_conn *conn, struct iw_cm_id *id)
{
	struct weft_cm *cm = conn->cm;

	weft_iwcm_get_id(id);
	conn->id = id;
	conn->context = id->context;
	spin_lock(&cm->by_context_lock);
	hash_add(cm->by_context, &conn->by_context, (unsigned long)conn->context);
	spin_unlock(&cm->by_context_lock);
}

static void unbind_id(struct weft_conn *conn)
{
	struct weft_cm *cm = conn->cm;

	spin_lock(&cm->by_context_lock);
	hash_del(&conn->by_context);
	spin_unlock(&cm->by_context_lock);
	weft_iwcm_put_id(conn->id);
	conn->id = NULL;
}

static int fill_iwcm_handshake(struct weft_conn *conn, const struct iw_cm_id *id,
			       const struct iw_cm_conn_param *param)
{
	struct weft_handshake *hs = conn->hs;

	if (param->private_data_len > sizeof(hs->pd))
		return -EINVAL;
	set_depths(conn, param);
	hs->local = id->m_local_addr;
	hs->remote = id->m_remote_addr;
	hs->tos = id->tos_set ? id->tos : -1;
	hs->pd_len = param->private_data_len;
	if (hs->pd_len)
		memcpy(hs->pd, param->private_data, hs->pd_len);
	return 0;
}

/**
 * weft_cm_connect - iw_connect
 * @cm: of the device
 * @id: the consumer's
 * @param: QP, depths, private data (508 bytes in revision 2, 512 in 1)
 *
 * Context: process; does not wait for the peer. The mapped addresses are used:
 * iw_cm fills them with the plain ones where no port mapper runs. Return: 0 and one
 * CONNECT_REPLY later, or -errno and no event: -EINVAL for a QP that cannot be
 * connected, or is being connected.
 */
int weft_cm_connect(struct weft_cm *cm, struct iw_cm_id *id, const struct iw_cm_conn_param *param)
{
	struct weft_conn *conn = weft_conn_new(cm, true);
	int ret;

	if (!conn)
		return -ENOMEM;
	ret = weft_conn_reserve(conn, param->qpn);
	if (!ret) {
		bind_id(conn, id);
		ret = fill_iwcm_handshake(conn, id, param);
	}
	if (!ret)
		ret = weft_handshake_connect(conn);
	if (!ret)
		ret = weft_conn_begin(conn, WEFT_CONN_CONNECT);
	if (ret) {
		/*
		 * A connect that fails at the call leaves nothing to the worker that the consumer
		 * can notice. It may connect the QP again at once. And it destroys the id, with a
		 * mutex held that handlers of iw_cm's events take: for an id with another
		 * reference iw_cm waits for all of these.
		 */
		weft_iwcm_forget(conn);
		weft_conn_unreserve(conn);
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	}
	weft_conn_put(conn);
	return ret;
}

static int accept_iwcm_locked(struct weft_conn *conn, struct iw_cm_id *id,
			      struct weft_stream *stream, const struct iw_cm_conn_param *param)
	__must_hold(&conn->lock)
{
	int ret;

	lockdep_assert_held(&conn->lock);
	if (conn->state != WEFT_CONN_AWAIT_ACCEPT || weft_handshake_peer_left(conn))
		return -ECONNRESET;
	ret = weft_stream_reserve(stream);
	if (ret)
		return ret;
	set_depths(conn, param);
	ret = weft_handshake_prepare_accept(conn, param->private_data, param->private_data_len);
	if (ret) {
		weft_stream_unreserve(stream);
		return ret;
	}
	WRITE_ONCE(conn->stream, stream); /* as weft_conn_reserve() */
	conn->reserved = true;
	bind_id(conn, id);
	weft_conn_decide(conn,
			 conn->result.rtr ? WEFT_CONN_ULP_ACCEPTED_P2P : WEFT_CONN_ULP_ACCEPTED);
	return 0;
}

/*
 * A consumer may change its mind until iw_cm has handled ESTABLISHED, and iw_cm takes an answer
 * that is rejected, or an accept that fails, for the end of all events. So from here on the id
 * hears nothing, and what was accepted ends. If ESTABLISHED is with iw_cm already, this came
 * too late. Return: the number of the QP, or 0 in that case.
 */
static u32 withdraw_locked(struct weft_conn *conn) __must_hold(&conn->lock)
{
	lockdep_assert_held(&conn->lock);
	if (conn->established)
		return 0;
	unbind_id(conn);
	weft_conn_post(conn, WEFT_CONN_ABANDONED);
	return weft_stream_qpn(conn->stream);
}

static int reject_locked(struct weft_conn *conn, const void *pd, u32 pd_len)
	__must_hold(&conn->lock)
{
	bool left;

	lockdep_assert_held(&conn->lock);
	if (conn->state != WEFT_CONN_AWAIT_ACCEPT)
		return -ECONNRESET;
	left = weft_handshake_peer_left(conn);
	weft_handshake_prepare_reject(conn, pd, pd_len);
	weft_conn_decide(conn, left ? WEFT_CONN_PEER_CLOSED : WEFT_CONN_ULP_REJECTED);
	return left ? -ECONNRESET : 0;
}

/*
 * More was offered than the consumer had asked for, and iw_cm's own thread rejects it: that is
 * no answer of the consumer, whose queue of requests is full. It is offered again by and by.
 */
static bool was_refused(struct weft_conn *conn, u32 pd_len)
{
	return conn->state == WEFT_CONN_AWAIT_ACCEPT && READ_ONCE(conn->probe) && !pd_len &&
	       current->flags & PF_WQ_WORKER &&
	       weft_backlog_take_back(&conn->listener->backlog, conn);
}

/*
 * iw_cm has put the QP of this accept in the place of the first one's, whose reference
 * would not be dropped now. Return: 0 if ESTABLISHED is under way, or -EINVAL and no event.
 */
static int accept_again_locked(struct weft_conn *conn, struct iw_cm_id *id) __must_hold(&conn->lock)
{
	struct ib_qp *first = id->device->ops.iw_get_qp(id->device, weft_stream_qpn(conn->stream));

	lockdep_assert_held(&conn->lock);
	if (!WARN_ON_ONCE(!first)) {
		id->device->ops.iw_add_ref(first);	/* what was found has to be */
		id->device->ops.iw_rem_ref(first);
		id->device->ops.iw_rem_ref(first);
	}
	if (conn->established)
		return 0;
	withdraw_locked(conn);
	return -EINVAL;
}

/**
 * weft_cm_accept - iw_accept
 * @cm: of the device
 * @id: made by iw_cm for our request event
 * @param: QP, depths, private data
 *
 * Context: process; does not wait. Return: 0 and one ESTABLISHED later; or -errno
 * and no event, the initiator is rejected: -ECONNRESET when it has gone already,
 * -EINVAL for a QP that cannot be connected, for too much private data, and where it was accepted
 * before; -EPROTO for terms that cannot be met.
 */
int weft_cm_accept(struct weft_cm *cm, struct iw_cm_id *id, const struct iw_cm_conn_param *param)
{
	struct weft_conn *conn = weft_conn_find(cm, (unsigned long)id->provider_data);
	struct weft_stream *stream;
	int ret = -EINVAL;

	if (!conn)
		return -ECONNRESET;
	stream = weft_stream_find(cm->streams, param->qpn);
	mutex_lock(&conn->lock);
	if (conn->id == id) {
		ret = accept_again_locked(conn, id);
	} else {
		if (stream)
			ret = accept_iwcm_locked(conn, id, stream, param);
		if (ret)
			reject_locked(conn, NULL, 0);
		else
			stream = NULL;	/* the connection has the reference */
	}
	mutex_unlock(&conn->lock);
	if (stream)
		weft_stream_put(stream);
	weft_conn_put(conn);
	return ret;
}

/**
 * weft_cm_reject - iw_reject
 * @cm: of the device
 * @id: made by iw_cm for our request event
 * @pd: private data for the initiator
 * @pd_len: bytes of it
 * @withdrawn: set to the number of the QP that it was accepted with before. That ends,
 *	without an event, so that iw_cm keeps its reference to the QP until it has no id
 *
 * Context: process; does not wait. Return: 0, or -ECONNRESET when the initiator has gone already.
 */
int weft_cm_reject(struct weft_cm *cm, struct iw_cm_id *id, const void *pd, u8 pd_len,
		   u32 *withdrawn)
{
	struct weft_conn *conn = weft_conn_find(cm, (unsigned long)id->provider_data);
	int ret = 0;

	if (!conn)
		return -ECONNRESET;
	mutex_lock(&conn->lock);
	if (conn->id == id)
		*withdrawn = withdraw_locked(conn);
	else if (!was_refused(conn, pd_len))
		ret = reject_locked(conn, pd, pd_len);
	mutex_unlock(&conn->lock);
	weft_conn_put(conn);
	return ret;
}

/**
 * weft_cm_listen - iw_create_listen
 * @cm: of the device
 * @id: the consumer's
 * @backlog: connections that the consumer has not accepted or rejected yet
 * @net: network namespace of the consumer
 * @scope: what a wildcard means
 *
 * Context: process. Return: 0 or -errno.
 */
int weft_cm_listen(struct weft_cm *cm, struct iw_cm_id *id, int backlog, const struct net *net,
		   enum weft_wildcard_scope scope)
{
	const struct weft_listener_config cfg = {
		.id = id,
		.addr = &id->m_local_addr,
		.backlog = backlog,
		.tos = id->tos_set ? id->tos : -1,
		.v6only = id->m_local_addr.ss_family == AF_INET6 && id->afonly,
		.net = net,
		.scope = scope,
	};
	struct weft_listener *l = weft_listener_open(cm, &cfg);

	if (IS_ERR(l))
		return PTR_ERR(l);
	id->provider_data = l;
	return 0;
}

/**
 * weft_cm_listen_destroy - iw_destroy_listen
 * @cm: of the device
 * @id: of weft_cm_listen()
 *
 * Context: process. Return: 0.
 */
int weft_cm_listen_destroy(struct weft_cm *cm, struct iw_cm_id *id)
{
	struct weft_listener *l = id->provider_data;

	id->provider_data = NULL;
	if (l)
		weft_listener_close(l);
	return 0;
}

/* --- events out --- */

/* iw_cm copies private data, and has 8 bits for its length. */
static void give_private_data(struct iw_cm_event *event, const struct weft_mpa_frame *frame)
{
	event->private_data_len = min_t(u32, frame->pd_len, U8_MAX);
	if (event->private_data_len)
		event->private_data = (void *)frame->pd;
}

/*
 * Under the lock, so that the id can be taken away: then nothing is said. iw_cm only queues
 * the event.
 */
static int send_up(struct weft_conn *conn, struct iw_cm_event *event)
{
	int ret = 0;

	mutex_lock(&conn->lock);
	if (conn->id)
		ret = conn->id->event_handler(conn->id, event);
	if (event->event == IW_CM_EVENT_ESTABLISHED)
		conn->established = true;
	mutex_unlock(&conn->lock);
	return ret;
}

/*
 * As the consumer sees them once settled: the peer's IRD is our ORD and the reverse. What the
 * peer does not use of our IRD its consumer's counterpart should know.
 */
static void give_settled_depths(struct iw_cm_event *event, const struct weft_conn *conn)
{
	const struct weft_mpa_frame *peer = &conn->hs->peer;
	u32 ord = conn->result.ird;

	if (peer->enhanced && peer->ord != WEFT_MPA_ENH_DEPTH)
		ord = min_t(u32, ord, peer->ord);
	event->ird = min_t(u32, conn->result.ord, U8_MAX);
	event->ord = min_t(u32, ord, U8_MAX);
}

/**
 * weft_iwcm_tell_request - CONNECT_REQUEST
 * @conn: of a listener, its request is in
 *
 * Context: the worker of @conn. Return: 0; -ENOMEM if iw_cm has no room for
 * another request now; other -errno if there will be no answer.
 */
int weft_iwcm_tell_request(struct weft_conn *conn)
{
	const struct weft_mpa_frame *peer = &conn->hs->peer;
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.local_addr = conn->hs->local,
		.remote_addr = conn->hs->remote,
		/* What the peer takes, and what the peer wants. */
		.ird = min_t(u32, peer->enhanced ? peer->ird : WEFT_MAX_IRD, U8_MAX),
		.ord = min_t(u32, peer->enhanced ? peer->ord : WEFT_MAX_ORD, U8_MAX),
		.provider_data = (void *)(unsigned long)conn->handle,
	};
	struct weft_listener *l = conn->listener;

	give_private_data(&event, peer);
	return l->id->event_handler(l->id, &event);
}

/**
 * weft_iwcm_tell_reply - CONNECT_REPLY
 * @conn: an initiator; its status says how it went
 *
 * Context: the worker of @conn. Must not get lost: the consumer waits for it, so
 * when memory is out it goes without the private data, which iw_cm would copy.
 */
void weft_iwcm_tell_reply(struct weft_conn *conn)
{
	const struct weft_mpa_frame *peer = &conn->hs->peer;
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.status = conn->status,
		.local_addr = conn->hs->local,
		.remote_addr = conn->hs->remote,
	};

	/* rdma_cm makes UNREACHABLE of a time-out, and of nothing else. */
	if (weft_sock_is_unreachable(conn->status))
		event.status = -ETIMEDOUT;

	/* If the peer says what it takes and wants, the consumer has to be told. */
	if (peer->reject || (peer->enhanced && peer->ird != WEFT_MPA_ENH_DEPTH &&
			     peer->ord != WEFT_MPA_ENH_DEPTH)) {
		event.ird = min_t(u32, peer->enhanced ? peer->ird : WEFT_MAX_IRD, U8_MAX);
		event.ord = min_t(u32, peer->enhanced ? peer->ord : WEFT_MAX_ORD, U8_MAX);
	} else if (!conn->status) {
		give_settled_depths(&event, conn);
	}
	give_private_data(&event, peer);
	if (!send_up(conn, &event))
		return;
	event.private_data = NULL;
	event.private_data_len = 0;
	WARN_ON_ONCE(send_up(conn, &event));
}

/**
 * weft_iwcm_tell_established - ESTABLISHED
 * @conn: a responder that was accepted
 *
 * Its status is always good: iw_cm has no other event that ends an accept, and few consumers
 * look. A connection that broke before this is one that breaks right behind it, as it would be
 * without a ready-to-receive message. Context: the worker of @conn.
 */
void weft_iwcm_tell_established(struct weft_conn *conn)
{
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_ESTABLISHED,
		.local_addr = conn->hs->local,
		.remote_addr = conn->hs->remote,
	};

	give_settled_depths(&event, conn);
	WARN_ON_ONCE(send_up(conn, &event));
}

/**
 * weft_iwcm_tell_disconnect - DISCONNECT
 * @conn: connected, going down
 *
 * Context: the worker of @conn.
 */
void weft_iwcm_tell_disconnect(struct weft_conn *conn)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_DISCONNECT };

	WARN_ON_ONCE(send_up(conn, &event));
}

/**
 * weft_iwcm_tell_close - CLOSE
 * @conn: connected before, its socket is gone
 *
 * Context: the worker of @conn. The last event.
 */
void weft_iwcm_tell_close(struct weft_conn *conn)
{
	struct iw_cm_event event = { .event = IW_CM_EVENT_CLOSE };

	WARN_ON_ONCE(send_up(conn, &event));
}

/**
 * weft_iwcm_forget - there will be no more events
 * @conn: closed
 *
 * Context: the worker of @conn.
 */
void weft_iwcm_forget(struct weft_conn *conn)
{
	mutex_lock(&conn->lock);
	if (conn->id)
		unbind_id(conn);
	mutex_unlock(&conn->lock);
}
