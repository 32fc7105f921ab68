// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Handshakes, RFC 5044, 7.1 and RFC 6581: opening the socket, and turning what
 * is found on it into events of the connection.
 */
#include "cm/handshake.h"

#include <linux/netdevice.h>
#include <net/net_namespace.h>

#include "base/counters.h"
#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/mpa_terminate.h"
#include "cm/listen.h"
#include "engine/life/stream.h"
#include "net/sockaddr.h"
#include "net/tcp_socket.h"

static void look_later(void *owner)
{
	weft_conn_post(owner, WEFT_CONN_POLL);
}

static const struct weft_sock_events sock_events = {
	.readable = look_later,
	.writable = look_later,
	.changed = look_later,
};

/* --- the socket --- */

/**
 * weft_handshake_close - give up the socket, if we still own it
 * @conn: the connection
 *
 * A frame that was written still reaches the peer; unread bytes make TCP
 * send a reset instead. Context: the worker.
 */
void weft_handshake_close(struct weft_conn *conn)
{
	if (!conn->sock)
		return;
	weft_sock_detach(conn->sock);
	weft_sock_release(conn->sock);
	conn->sock = NULL;
}

/*
 * rdma_cm picks a local port without asking TCP, and does not say whether it was the consumer.
 * In both cases the consumer is told that this is its port.
 */
static int connect_from(struct weft_conn *conn, const struct sockaddr_storage *local)
{
	struct weft_handshake *hs = conn->hs;
	struct net *net;
	int ret;

	net = weft_cm_get_net(conn->cm);
	if (!net)
		return -ENETDOWN;
	ret = weft_sock_create(net, hs->remote.ss_family, &conn->sock);
	put_net(net);
	if (ret)
		return ret;
	if (weft_stream_serves_kernel(conn->stream))
		weft_sock_set_memalloc(conn->sock);
	weft_cm_tune(conn->cm, conn->sock, hs->tos);
	ret = weft_sock_bind(conn->sock, local, true);
	if (ret == -EADDRINUSE)
		ret = weft_sock_bind_shared(conn->sock, local);
	if (!ret && hs->itself)
		ret = weft_sock_local(conn->sock, &hs->remote);
	if (!ret) {
		weft_sock_attach(conn->sock, &sock_events, conn);
		ret = weft_sock_connect(conn->sock, &hs->remote);
		if (ret == -EADDRNOTAVAIL && weft_addr_port(local))
			ret = -EADDRINUSE;	/* this port has a connection to this peer */
		if (ret == -EINPROGRESS)
			return 0;
	}
	if (ret)
		weft_handshake_close(conn);
	return ret;
}

/*
 * Of an initiator, the first or the second. No other port will do for a process, which may have
 * named it, and looks at it. RTRS connects several times from one port to one peer
 * (rdma_set_reuseaddr()), which TCP cannot do; consumers in the kernel get another port then.
 */
static int begin_attempt(struct weft_conn *conn)
{
	struct weft_handshake *hs = conn->hs;
	struct sockaddr_storage any;
	int ret;

	ret = weft_mpa_build_request(&hs->policy, hs->pd, hs->pd_len, hs->out.frame);
	if (ret < 0)
		return ret;
	hs->out.len = ret;
	hs->out.sent = 0;
	ret = connect_from(conn, &hs->local);
	if (ret != -EADDRINUSE || !weft_stream_serves_kernel(conn->stream))
		return ret;
	any = hs->local;
	weft_addr_set_port(&any, 0);
	return connect_from(conn, &any);
}

/**
 * weft_handshake_connect - an initiator's first attempt
 * @conn: in state idle, its policy and everything asked for filled in
 *
 * Context: process; does not wait. Return: 0 when TCP is on its way, or -errno.
 */
int weft_handshake_connect(struct weft_conn *conn)
{
	int ifindex = conn->cm->netdev->ifindex;

	weft_addr_set_scope(&conn->hs->local, ifindex);
	weft_addr_set_scope(&conn->hs->remote, ifindex);
	return begin_attempt(conn);
}

/**
 * weft_handshake_serve - a responder takes a socket
 * @conn: in state idle
 * @s: just accepted, now the connection's
 *
 * Context: process.
 */
void weft_handshake_serve(struct weft_conn *conn, struct weft_sock *s)
{
	conn->sock = s;
	weft_cm_tune(conn->cm, s, WEFT_TOS_KEEP);
	weft_sock_local(s, &conn->hs->local);
	weft_sock_peer(s, &conn->hs->remote);
	weft_sock_attach(s, &sock_events, conn);
}

/* --- the consumer's answer --- */

/**
 * weft_handshake_prepare_accept - settle the terms and write the reply
 * @conn: locked, the consumer decides; its policy filled in
 * @pd: private data of the consumer
 * @pd_len: bytes of it
 *
 * Context: process. Return: 0, -EINVAL for too much private data, -EPROTO if the
 * request cannot be accepted at all.
 */
int weft_handshake_prepare_accept(struct weft_conn *conn, const void *pd, u32 pd_len)
	__must_hold(&conn->lock)
{
	struct weft_handshake *hs = conn->hs;
	int len;

	lockdep_assert_held(&conn->lock);
	if (weft_mpa_respond(&hs->peer, &hs->policy, &conn->result) != WEFT_FAULT_NONE)
		return -EPROTO;
	len = weft_mpa_build_accept(&hs->peer, &hs->policy, &conn->result, pd, pd_len,
				    hs->out.frame);
	if (len < 0)
		return len;
	hs->out.len = len;
	return 0;
}

/**
 * weft_handshake_prepare_reject - write the refusal
 * @conn: locked, the consumer decides
 * @pd: private data of the consumer
 * @pd_len: bytes of it; what does not fit is left out
 *
 * Context: process.
 */
void weft_handshake_prepare_reject(struct weft_conn *conn, const void *pd, u32 pd_len)
	__must_hold(&conn->lock)
{
	struct weft_handshake *hs = conn->hs;

	lockdep_assert_held(&conn->lock);
	pd_len = min(pd_len, weft_mpa_pd_space(hs->peer.enhanced));
	hs->out.len = weft_mpa_build_reject(&hs->peer, &hs->policy, pd, pd_len, hs->out.frame);
}

/* --- looking at the socket --- */

static bool poll_connecting(struct weft_conn *conn, enum weft_conn_event *event)
{
	struct weft_handshake *hs = conn->hs;

	switch (weft_sock_state(conn->sock)) {
	case WEFT_SOCK_CONNECTING:
		return false;
	case WEFT_SOCK_LOST:
		conn->status = weft_sock_error(conn->sock) ?: -ECONNREFUSED;
		*event = WEFT_CONN_TCP_FAILED;
		return true;
	default:
		weft_sock_local(conn->sock, &hs->local);
		weft_sock_peer(conn->sock, &hs->remote);
		*event = WEFT_CONN_TCP_CONNECTED;
		return true;
	}
}

static enum weft_conn_event fail_handshake(struct weft_conn *conn, enum weft_conn_event event,
					   int status)
{
	conn->status = status;
	if (!conn->initiator)
		weft_count(conn->cm->counters, WEFT_CTR_CONN_REFUSED);
	return event;
}

/* The limit is for consumers: what directly connected QPs tell each other is not theirs. */
static bool has_too_much_pd(const struct weft_conn *conn)
{
	return !conn->ops && conn->hs->peer.pd_len > READ_ONCE(conn->cm->private_data_max);
}

static bool poll_request(struct weft_conn *conn, enum weft_conn_event *event)
{
	struct weft_handshake *hs = conn->hs;
	int ret = weft_start_recv(&hs->in, conn->sock);

	if (ret == -EAGAIN)
		return false;
	if (!ret && weft_mpa_start_parse(hs->in.frame, hs->in.have, true, &hs->peer))
		ret = -EPROTO;
	/* Set to revision 1 we are a peer that has never heard of revision 2. */
	if (!ret && (hs->peer.revision > hs->policy.revision ||
		     weft_mpa_crc_missing(&hs->peer, &hs->policy) || has_too_much_pd(conn)))
		ret = -EPROTO;
	if (!ret)
		*event = WEFT_CONN_REQUEST_RECEIVED;
	else if (ret == -EPROTO)
		*event = fail_handshake(conn, WEFT_CONN_BAD_FRAME, ret);
	else
		*event = fail_handshake(conn, WEFT_CONN_PEER_CLOSED, ret);
	return true;
}

static enum weft_conn_event check_mpa_reply(struct weft_conn *conn)
{
	struct weft_handshake *hs = conn->hs;
	enum weft_fault fault;

	if (weft_mpa_start_parse(hs->in.frame, hs->in.have, false, &hs->peer))
		return fail_handshake(conn, WEFT_CONN_BAD_FRAME, -EPROTO);
	if (hs->peer.reject)
		return fail_handshake(conn, WEFT_CONN_REJECT_RECEIVED, -ECONNREFUSED);
	fault = weft_mpa_conclude(&hs->peer, &hs->policy, &conn->result);
	if (fault == WEFT_FAULT_NONE && has_too_much_pd(conn))
		fault = conn->result.enhanced ? WEFT_FAULT_MPA_LOCAL : WEFT_FAULT_MPA_START;
	if (fault == WEFT_FAULT_NONE)
		return WEFT_CONN_REPLY_RECEIVED;
	if (fault != WEFT_FAULT_MPA_START) {
		/*
		 * The responder is owed a Terminate (RFC 6581, 9.3), also if the QP has failed
		 * meanwhile; in any case it is of no use any more.
		 */
		weft_sock_detach(conn->sock);
		if (weft_stream_refuse(conn->stream, conn->sock, &conn->result, fault, NULL,
				       NULL)) {
			weft_mpa_terminate_send(conn->sock, &conn->result, fault);
		} else {
			conn->sock = NULL;
			conn->reserved = false;
		}
	}
	return fail_handshake(conn, WEFT_CONN_BAD_FRAME, -EPROTO);
}

static int retry_plain(struct weft_conn *conn)
{
	struct weft_handshake *hs = conn->hs;
	int ret;

	hs->retried = true;
	hs->policy.revision = 1;
	hs->policy.p2p = false;
	weft_sock_detach(conn->sock);
	weft_sock_reset(conn->sock);	/* the port is the same, so TCP must have done with it */
	weft_handshake_close(conn);
	ret = begin_attempt(conn);
	if (!ret)
		weft_conn_arm(conn);
	return ret;
}

static bool poll_reply(struct weft_conn *conn, enum weft_conn_event *event)
{
	struct weft_handshake *hs = conn->hs;
	int ret;

	if (weft_sock_state(conn->sock) == WEFT_SOCK_CONNECTING)
		return false;	/* the second attempt */
	if (hs->itself) {
		/* With itself, it agrees on all it wants. */
		conn->result = (struct weft_mpa_result){
			.revision = hs->policy.revision,
			.crc = hs->policy.crc,
			.ird = hs->policy.ird,
			.ord = min(hs->policy.ord, hs->policy.ird),
		};
		*event = WEFT_CONN_REPLY_RECEIVED;
		return true;
	}
	ret = weft_start_send(&hs->out, conn->sock);
	if (!ret)
		ret = weft_start_recv(&hs->in, conn->sock);
	if (ret == -EAGAIN)
		return false;
	if (ret == -EPIPE)
		ret = -ECONNRESET;	/* said before we could write */
	/* A peer that knows only revision 1 closes without a word (RFC 6581, 6). */
	if (ret == -ECONNRESET && hs->policy.revision > 1 && !hs->retried && hs->out.sent &&
	    !hs->in.have) {
		ret = retry_plain(conn);
		if (!ret)
			return false;
	}
	if (!ret)
		*event = check_mpa_reply(conn);
	else if (ret == -EPROTO)
		*event = fail_handshake(conn, WEFT_CONN_BAD_FRAME, ret);
	else
		*event = fail_handshake(conn, WEFT_CONN_PEER_CLOSED, ret);
	return true;
}

/**
 * weft_handshake_peer_left - has the initiator hung up before it was answered?
 * @conn: locked, the consumer decides
 *
 * Context: process.
 */
bool weft_handshake_peer_left(const struct weft_conn *conn)
{
	enum weft_sock_state state = weft_sock_state(conn->sock);

	return state == WEFT_SOCK_PEER_CLOSED || state == WEFT_SOCK_LOST;
}

/*
 * An initiator that hangs up does not want an answer any more. If the consumer has the
 * request, the connection waits for it to say so: until then the request takes up room there.
 */
static bool poll_undecided(struct weft_conn *conn, enum weft_conn_event *event)
{
	if (!weft_handshake_peer_left(conn))
		return false;
	/* A connection with @ops has no consumer of iw_cm that could hold its request. */
	if (!conn->ops && (!conn->listener || weft_backlog_holds(&conn->listener->backlog, conn))) {
		weft_sock_half_close(conn->sock);	/* TCP need not wait for the consumer */
		return false;
	}
	*event = fail_handshake(conn, WEFT_CONN_PEER_CLOSED, -ECONNRESET);
	return true;
}

/**
 * weft_handshake_poll - see what happened to the socket
 * @conn: the connection
 * @event: set if something did
 *
 * Context: the worker. Return: true if there is an event.
 */
bool weft_handshake_poll(struct weft_conn *conn, enum weft_conn_event *event)
{
	switch (READ_ONCE(conn->state)) {
	case WEFT_CONN_CONNECTING:
		return poll_connecting(conn, event);
	case WEFT_CONN_AWAIT_REQUEST:
		return poll_request(conn, event);
	case WEFT_CONN_AWAIT_REPLY:
		return poll_reply(conn, event);
	case WEFT_CONN_AWAIT_ACCEPT:
		return poll_undecided(conn, event);
	default:
		return false;
	}
}
