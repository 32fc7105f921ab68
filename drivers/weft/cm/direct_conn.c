// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The connection of a QP that is connected by ibv_modify_qp(). A request is accepted if it comes
 * from the address, and names the QP numbers and PSNs, that the QP was told. The end with the
 * smaller GID and QP number connects, and tries again until it succeeds. Its handshake is that of
 * any other connection (cm/handshake.c); here is what takes the place of iw_cm.
 * Documentation/protocol.md.
 *
 * A QP enters RTR at one end before it does at the other. A request that comes first is held
 * until it does (cm/direct_held.c). To the initiator it looks like a peer that is slow.
 */
#include "cm/direct_qp.h"

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/wait_bit.h>

#include "base/counters.h"
#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/direct_held.h"
#include "cm/direct_port.h"
#include "cm/handshake.h"
#include "engine/life/stream.h"
#include "net/sockaddr.h"
#include "net/tcp_socket.h"

/* --- the end that connects --- */

static void fill_policy(struct weft_direct *d, struct weft_mpa_policy *policy)
{
	policy->revision = 2;
	policy->p2p = true;
	policy->ird = d->ird;
	policy->ird_max = d->ird;
	policy->ord = d->ord;
}

static void fill_direct_handshake(struct weft_direct *d, struct weft_conn *conn)
{
	struct weft_handshake *hs = conn->hs;

	fill_policy(d, &hs->policy);
	hs->local = d->local;
	hs->remote = d->peer;
	hs->tos = d->tos;
	hs->itself = d->role == WEFT_DIRECT_ITSELF;
	hs->retried = true;	/* revision 1 is no use */
	hs->pd_len = WEFT_DIRECT_LEN;
	weft_direct_build(&d->own, hs->pd);
}

/* The QP is reserved, so that rdma_cm does not connect it meanwhile. */
static void bind_conn(struct weft_direct *d, struct weft_conn *conn)
{
	kref_get(&d->ref);
	conn->ops = &weft_direct_conn_ops;
	conn->direct = d;
	weft_conn_get(conn);
	WRITE_ONCE(d->conn, conn);
}

/* What fails later is told by the connection, see forget_direct_conn(). */
void weft_direct_try_to_connect(struct weft_direct *d)
{
	struct weft_conn *conn;
	int ret;

	if (d->state != WEFT_DIRECT_WAITING || d->role == WEFT_DIRECT_ACCEPTS || d->conn ||
	    time_before(jiffies, d->next_try))
		return;
	conn = weft_conn_new(d->cm, true);
	if (!conn) {
		weft_direct_back_off(d);
		return;
	}
	ret = weft_conn_reserve(conn, d->own.qpn);
	if (!ret) {
		fill_direct_handshake(d, conn);
		bind_conn(d, conn);
	}
	if (ret || weft_handshake_connect(conn) || weft_conn_begin(conn, WEFT_CONN_CONNECT))
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	weft_conn_put(conn);
	if (ret)
		weft_direct_back_off(d);
}

/* --- the end that accepts --- */

static void reject_direct(struct weft_conn *conn, enum weft_direct_reason reason)
{
	u8 pd[WEFT_DIRECT_REJECT_LEN];

	mutex_lock(&conn->lock);
	if (conn->state == WEFT_CONN_AWAIT_ACCEPT) {
		weft_direct_build_reject(reason, pd);
		weft_handshake_prepare_reject(conn, pd, sizeof(pd));
		weft_conn_decide(conn, WEFT_CONN_ULP_REJECTED);
	}
	mutex_unlock(&conn->lock);
	weft_count(conn->cm->counters, WEFT_CTR_CONN_REFUSED);
}

static void settle_terms(struct weft_direct *d, struct weft_conn *conn,
			 const struct weft_direct_hello *peer)
{
	struct weft_mpa_result *result = &conn->result;

	result->direct = true;
	result->extensions = d->own.extensions & peer->extensions;
	result->rnr_told = peer->has_rnr_retry;
	result->rnr_ms = weft_direct_rnr_ms(peer->rnr_retry, d->min_rnr_timer);
	d->peer_rq_psn = peer->rq_psn;
	d->peer_told = true;
}

static bool accept_direct_locked(struct weft_direct *d, struct weft_conn *conn,
				 const struct weft_direct_hello *peer) __must_hold(&conn->lock)
{
	u8 pd[WEFT_DIRECT_LEN];

	lockdep_assert_held(&conn->lock);
	if (conn->state != WEFT_CONN_AWAIT_ACCEPT)
		return true;	/* it has gone */
	fill_policy(d, &conn->hs->policy);
	weft_direct_build(&d->own, pd);
	if (weft_handshake_prepare_accept(conn, pd, sizeof(pd)) || !conn->result.rtr)
		return false;
	if (weft_conn_reserve(conn, d->own.qpn))
		return false;
	settle_terms(d, conn, peer);
	bind_conn(d, conn);
	weft_conn_decide(conn, WEFT_CONN_ULP_ACCEPTED_P2P);
	return true;
}

static enum weft_direct_reason check_direct_peer(struct weft_direct *d, struct weft_conn *conn,
						 const struct weft_direct_hello *peer)
{
	enum weft_direct_reason reason = weft_direct_match(&d->own, peer);

	if (d->role != WEFT_DIRECT_ACCEPTS || !weft_addr_equal(&conn->hs->remote, &d->peer) ||
	    !weft_addr_equal(&conn->hs->local, &d->local))
		return WEFT_DIRECT_NO_QP;
	if (reason != WEFT_DIRECT_OK)
		return reason;
	return d->conn || d->state != WEFT_DIRECT_WAITING ? WEFT_DIRECT_BUSY : WEFT_DIRECT_OK;
}

static void answer_request(struct weft_direct *d, struct weft_conn *conn,
			   const struct weft_direct_hello *peer)
{
	enum weft_direct_reason reason = check_direct_peer(d, conn, peer);
	bool done = false;

	if (reason == WEFT_DIRECT_OK) {
		mutex_lock(&conn->lock);
		done = accept_direct_locked(d, conn, peer);
		mutex_unlock(&conn->lock);
		reason = WEFT_DIRECT_MALFORMED;
	}
	if (!done)
		reject_direct(conn, reason);
}

static void handle_request(struct weft_conn *conn)
{
	struct weft_directs *directs = &conn->cm->directs;
	enum weft_direct_reason reason;
	struct weft_direct_hello peer;
	struct weft_direct *d;

	if (!weft_direct_port_requested(conn))
		return;	/* WEFT_CONN_ABANDONED is to come */
	mutex_lock(&directs->lock);
	reason = weft_direct_read_request(conn, &peer);
	if (reason == WEFT_DIRECT_OK) {
		d = xa_load(&directs->by_qpn, peer.peer_qpn);
		if (d && (weft_direct_knows_enough(d) ||
			  check_direct_peer(d, conn, &peer) != WEFT_DIRECT_OK))
			answer_request(d, conn, &peer);
		else
			reason = weft_direct_queue_request(conn, peer.peer_qpn);
	}
	if (reason != WEFT_DIRECT_OK)
		reject_direct(conn, reason);
	mutex_unlock(&directs->lock);
}

void weft_direct_answer_held(struct weft_direct *d) __must_hold(&d->cm->directs.lock)
{
	struct weft_direct_hello peer;
	struct weft_conn *conn, *next;

	lockdep_assert_held(&d->cm->directs.lock);
	if (d->role == WEFT_DIRECT_ACCEPTS && !weft_direct_knows_enough(d))
		return;
	list_for_each_entry_safe(conn, next, &d->cm->directs.held, at_port) {
		if (weft_direct_read_request(conn, &peer) || peer.peer_qpn != d->own.qpn)
			continue;
		weft_direct_drop_held(conn);
		answer_request(d, conn, &peer);
	}
}

/* --- outcomes --- */

/* The last look before the stream takes the socket. */
static void before_start(struct weft_conn *conn)
{
	const struct weft_mpa_frame *frame = &conn->hs->peer;
	struct weft_directs *directs = &conn->cm->directs;
	struct weft_direct *d = conn->direct;
	struct weft_direct_hello peer;

	mutex_lock(&directs->lock);
	if (conn->initiator && !conn->status) {
		peer = d->own;
		if ((conn->hs->itself || !weft_direct_parse(frame->pd, frame->pd_len, &peer)) &&
		    !weft_direct_match(&d->own, &peer)) {
			settle_terms(d, conn, &peer);
		} else {
			conn->status = -EPROTO;
			weft_direct_log_failure(d, "the peer answers with other numbers");
		}
	}
	if (d->state == WEFT_DIRECT_ENDED && !conn->status)
		conn->status = -ECONNABORTED;
	mutex_unlock(&directs->lock);
	if (!conn->initiator && d->tos != WEFT_TOS_NONE)
		weft_sock_set_tos(conn->sock, d->tos);
}

static void direct_connected(struct weft_conn *conn)
{
	struct weft_direct *d = conn->direct;
	struct weft_directs *directs = &conn->cm->directs;

	mutex_lock(&directs->lock);
	if (d->state == WEFT_DIRECT_WAITING)
		d->state = WEFT_DIRECT_CONNECTED;
	weft_direct_settle(d);
	if (READ_ONCE(d->lost))
		weft_direct_plan_next_look(d);
	mutex_unlock(&directs->lock);
	weft_count(conn->cm->counters,
		   conn->initiator ? WEFT_CTR_CONN_ACTIVE : WEFT_CTR_CONN_PASSIVE);
}

static void handle_reply(struct weft_conn *conn)
{
	const struct weft_mpa_frame *frame = &conn->hs->peer;
	struct weft_directs *directs = &conn->cm->directs;
	enum weft_direct_reason reason;

	if (READ_ONCE(conn->state) == WEFT_CONN_CLOSED && !conn->status)
		conn->status = -ECONNABORTED;
	if (!conn->status) {
		direct_connected(conn);
		return;
	}
	mutex_lock(&directs->lock);
	/* Before the peer's QP is in RTR it is refused by TCP, as a rule, and that is no news. */
	if (conn->direct->state == WEFT_DIRECT_WAITING && frame->reject) {
		reason = weft_direct_parse_reject(frame->pd, frame->pd_len);
		weft_direct_log_failure(conn->direct, weft_direct_reason_name(reason));
	}
	mutex_unlock(&directs->lock);
	weft_count(conn->cm->counters, WEFT_CTR_CONN_REFUSED);
}

static void forget_direct_conn(struct weft_conn *conn)
{
	struct weft_directs *directs = &conn->cm->directs;
	struct weft_direct *d;
	bool had;

	weft_conn_unreserve(conn);
	mutex_lock(&directs->lock);
	weft_direct_drop_held(conn);
	d = conn->direct;
	conn->direct = NULL;
	had = d && d->conn == conn;
	if (had) {
		WRITE_ONCE(d->conn, NULL);
		if (d->state == WEFT_DIRECT_WAITING) {
			d->peer_told = false;
			weft_direct_back_off(d);
			weft_direct_plan_next_look(d);
		}
	}
	mutex_unlock(&directs->lock);
	if (had) {
		smp_mb(); /* pairs with the one of prepare_to_wait_event() */
		wake_up_var(&d->conn);
		weft_conn_put(conn);
	}
	if (d)
		kref_put(&d->ref, weft_direct_free);
	weft_handshake_close(conn);	/* the port counts it until then */
	weft_direct_port_leave(conn);
}

static bool act(struct weft_conn *conn, unsigned long action)
{
	switch (action) {
	case WEFT_CONNA_START_STREAM:
		before_start(conn);
		return false;
	case WEFT_CONNA_TELL_REQUEST:
		handle_request(conn);
		return true;
	case WEFT_CONNA_TELL_REPLY:
		handle_reply(conn);
		return true;
	case WEFT_CONNA_TELL_ESTABLISHED:
		/* A responder whose initiator never got ready has failed for good. */
		if (READ_ONCE(conn->state) == WEFT_CONN_RUNNING && !conn->status)
			direct_connected(conn);
		else
			weft_count(conn->cm->counters, WEFT_CTR_CONN_REFUSED);
		return true;
	case WEFT_CONNA_TELL_DISCONNECT:
	case WEFT_CONNA_TELL_CLOSE:
		return true;
	case WEFT_CONNA_RELEASE:
		forget_direct_conn(conn);
		return false;
	default:
		return false;
	}
}

/* No lock: the work looks at the stream. Its QP ends the work, after the stream. */
static void lost(struct weft_conn *conn)
{
	struct weft_direct *d = conn->direct;

	WRITE_ONCE(d->lost, true);
	mod_delayed_work(d->cm->wq, &d->work, 0);
}

const struct weft_conn_ops weft_direct_conn_ops = {
	.act = act,
	.lost = lost,
};
