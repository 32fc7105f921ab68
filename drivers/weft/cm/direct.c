// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * QPs that are connected by ibv_modify_qp(). There is no consumer to ask: a request is
 * accepted if it comes from the address, and names the QP numbers and PSNs, that the QP was
 * told. The end with the smaller GID and QP number connects, and tries again until it succeeds.
 * Its handshake is that of any other connection (cm/handshake.c); here is what takes the place
 * of iw_cm. Documentation/protocol.md.
 *
 * A QP enters RTR at one end before it does at the other. A request that comes first is held
 * until it does (cm/direct_held.c). To the initiator it looks like a peer that is slow.
 */
#include "cm/direct.h"

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "base/counters.h"
#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/direct_held.h"
#include "cm/direct_port.h"
#include "cm/handshake.h"
#include "engine/life/stream.h"
#include "net/sockaddr.h"
#include "net/tcp_socket.h"

/* Between two attempts: from the first to the second, and at most. */
#define RETRY_FIRST	msecs_to_jiffies(10)
#define RETRY_MOST	msecs_to_jiffies(250)
/* How often a queue is looked at whose requests must not wait for ever. */
#define LOOK_EVERY	(HZ / 10)
/* How long a QP in RTR is thought to be about to enter RTS. */
#define RTS_GRACE	(HZ / 20)

enum direct_state {
	DIRECT_WAITING,		/* no connection yet */
	DIRECT_CONNECTED,	/* there is one, or was */
	DIRECT_ENDED,		/* no connection any more: the QP has left RTR and RTS, or failed */
};

/**
 * struct weft_direct - a QP from RTR on
 * @ref: one of the QP, one of each connection
 * @cm: of the device
 * @stream: of the QP, a reference held
 * @role: which end connects
 * @local: own address; with the port at the end that accepts
 * @peer: address of the peer; with the port if that accepts
 * @tos: of the socket, or WEFT_TOS_NONE
 * @ird: as in struct weft_direct_config
 * @min_rnr_timer: as there
 * @port: where the peer comes to
 * @state: enum direct_state
 * @own: what the peer is told
 * @peer_rq_psn: what the peer has told
 * @conn: at most one, a reference held
 * @may_send: the QP is in RTS
 * @ord: as in struct weft_direct_send
 * @retry_time: jiffies that a request may wait for the peer, 0: for ever
 * @waits_since: jiffies when a request was found to wait
 * @waits: it counts
 * @grace_end: jiffies; until then it is not worth while to be connected before RTS
 * @next_try: jiffies
 * @backoff: between the last attempt and the next
 * @lost: @conn is over, and the QP does not know
 * @told: the operator knows why it fails
 * @work: attempts, and the clock
 *
 * From @state on protected by the lock of weft_directs.
 */
struct weft_direct {
	struct kref ref;
	struct weft_cm *cm;
	struct weft_stream *stream;
	enum weft_direct_role role;
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	int tos;
	u32 ird;
	u8 min_rnr_timer;
	struct weft_direct_port *port;

	enum direct_state state;
	struct weft_direct_hello own;
	u32 peer_rq_psn;
	struct weft_conn *conn;
	bool may_send;
	u32 ord;
	unsigned long retry_time;
	unsigned long waits_since;
	bool waits;
	unsigned long grace_end;
	unsigned long next_try;
	unsigned long backoff;
	bool told;
	bool lost;
	struct delayed_work work;
};

static void free_direct(struct kref *ref)
{
	struct weft_direct *d = container_of(ref, struct weft_direct, ref);
	struct weft_cm *cm = d->cm;

	weft_stream_put(d->stream);
	kfree(d);
	weft_cm_put(cm);
}

/* Once for each QP: an initiator goes on trying. */
static void log_failure(struct weft_direct *d, const char *why)
{
	if (d->told)
		return;
	d->told = true;
	netdev_info(d->cm->netdev,
		    "weft: QP %u does not get its connection to QP %u of %pISc: %s\n", d->own.qpn,
		    d->own.peer_qpn, &d->peer, why);
}

static void look_after(struct weft_direct *d, unsigned long delay)
{
	mod_delayed_work(d->cm->wq, &d->work, delay);
}

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

/* The stream is reserved, so that rdma_cm does not connect the same QP meanwhile. */
static void bind_conn(struct weft_direct *d, struct weft_conn *conn, struct weft_stream *stream)
{
	kref_get(&d->ref);
	conn->reserved = true;
	conn->ops = &weft_direct_conn_ops;
	conn->direct = d;
	WRITE_ONCE(conn->stream, stream); /* weft_cm_cancel_pending() looks for it */
	weft_conn_get(conn);
	WRITE_ONCE(d->conn, conn);
}

/* What fails later is told by the connection, see forget_direct_conn(). */
static int attempt(struct weft_direct *d)
{
	struct weft_stream *stream = weft_stream_find(d->cm->streams, d->own.qpn);
	struct weft_conn *conn;
	int ret;

	if (!stream)
		return -ENOTCONN;
	ret = weft_stream_reserve(stream);
	if (ret)
		goto put_stream;
	conn = weft_conn_new(d->cm, true);
	if (!conn) {
		ret = -ENOMEM;
		goto unreserve;
	}
	fill_direct_handshake(d, conn);
	bind_conn(d, conn, stream);
	if (weft_handshake_connect(conn) || weft_conn_begin(conn, WEFT_CONN_CONNECT))
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	weft_conn_put(conn);
	return 0;

unreserve:
	weft_stream_unreserve(stream);
put_stream:
	weft_stream_put(stream);
	return ret;
}

static void back_off(struct weft_direct *d)
{
	d->next_try = jiffies + d->backoff;
	d->backoff = min(2 * d->backoff, RETRY_MOST);
}

static void try_to_connect(struct weft_direct *d)
{
	int ret;

	if (d->state != DIRECT_WAITING || d->role == WEFT_DIRECT_ACCEPTS || d->conn ||
	    time_before(jiffies, d->next_try))
		return;
	ret = attempt(d);
	if (ret)
		back_off(d);
}

/* --- the end that accepts --- */

static void reject(struct weft_conn *conn, enum weft_direct_reason reason)
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
}

static bool accept_direct_locked(struct weft_direct *d, struct weft_conn *conn,
				 const struct weft_direct_hello *peer) __must_hold(&conn->lock)
{
	struct weft_stream *stream;
	u8 pd[WEFT_DIRECT_LEN];

	lockdep_assert_held(&conn->lock);
	if (conn->state != WEFT_CONN_AWAIT_ACCEPT)
		return true;	/* it has gone */
	fill_policy(d, &conn->hs->policy);
	weft_direct_build(&d->own, pd);
	if (weft_handshake_prepare_accept(conn, pd, sizeof(pd)) || !conn->result.rtr)
		return false;
	stream = weft_stream_find(d->cm->streams, d->own.qpn);
	if (!stream)
		return false;
	if (weft_stream_reserve(stream)) {
		weft_stream_put(stream);
		return false;
	}
	settle_terms(d, conn, peer);
	bind_conn(d, conn, stream);
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
	return d->conn || d->state != DIRECT_WAITING ? WEFT_DIRECT_BUSY : WEFT_DIRECT_OK;
}

static void answer(struct weft_direct *d, struct weft_conn *conn,
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
		reject(conn, reason);
}

/*
 * What is answered before the QP is in RTS does not say what is known only then. As a rule that
 * is a moment later.
 */
static bool knows_enough(const struct weft_direct *d)
{
	return d->may_send || time_after_eq(jiffies, d->grace_end);
}

static void request(struct weft_conn *conn)
{
	struct weft_directs *directs = &conn->cm->directs;
	enum weft_direct_reason reason;
	struct weft_direct_hello peer;
	struct weft_direct *d;

	weft_direct_port_requested(conn);
	mutex_lock(&directs->lock);
	reason = weft_direct_read_request(conn, &peer);
	if (reason == WEFT_DIRECT_OK) {
		d = xa_load(&directs->by_qpn, peer.peer_qpn);
		if (d && (knows_enough(d) || check_direct_peer(d, conn, &peer) != WEFT_DIRECT_OK))
			answer(d, conn, &peer);
		else
			reason = weft_direct_queue_request(conn, peer.peer_qpn);
	}
	if (reason != WEFT_DIRECT_OK)
		reject(conn, reason);
	mutex_unlock(&directs->lock);
}

static void answer_held(struct weft_direct *d) __must_hold(&d->cm->directs.lock)
{
	struct weft_direct_hello peer;
	struct weft_conn *conn;

	lockdep_assert_held(&d->cm->directs.lock);
	if (d->role == WEFT_DIRECT_ACCEPTS && !knows_enough(d))
		return;
	while ((conn = weft_direct_take_held(&d->cm->directs, d->own.qpn, &peer)))
		answer(d, conn, &peer);
}

/* --- the clock --- */

/* A request waits from when it is seen to; as long as there is none, nothing is late. */
static bool is_overdue(struct weft_direct *d)
{
	if (!d->may_send || !d->retry_time || !weft_stream_waits(d->stream)) {
		d->waits = false;
		return false;
	}
	if (!d->waits)
		d->waits_since = jiffies;
	d->waits = true;
	return time_after(jiffies, d->waits_since + d->retry_time);
}

static void plan_next_look(struct weft_direct *d)
{
	bool waits = d->state == DIRECT_WAITING && !d->conn;
	bool retries = waits && d->role != WEFT_DIRECT_ACCEPTS;
	bool has_grace = waits && !retries && !knows_enough(d);
	unsigned long next = has_grace ? d->grace_end : d->next_try;
	unsigned long delay = LOOK_EVERY;

	if ((retries || has_grace) && time_before(next, jiffies + delay))
		delay = time_after(next, jiffies) ? next - jiffies : 0;
	if (retries || has_grace || (d->may_send && d->retry_time))
		look_after(d, delay);
}

static void give_up(struct weft_direct *d)
{
	if (d->state == DIRECT_WAITING)
		log_failure(d, "its time is up");
	d->state = DIRECT_ENDED;
	if (d->conn)
		weft_conn_post(d->conn, WEFT_CONN_ABANDONED);
}

static void direct_work(struct work_struct *work)
{
	struct weft_direct *d = container_of(work, struct weft_direct, work.work);
	struct weft_directs *directs = &d->cm->directs;
	bool overdue = false;

	mutex_lock(&directs->lock);
	if (d->state == DIRECT_WAITING || (d->state == DIRECT_CONNECTED && READ_ONCE(d->lost))) {
		overdue = is_overdue(d);
		if (overdue) {
			give_up(d);
		} else {
			try_to_connect(d);
			answer_held(d);
			plan_next_look(d);
		}
	}
	mutex_unlock(&directs->lock);
	if (overdue)
		weft_stream_unreachable(d->stream);
}

/* --- outcomes --- */

/* InfiniBand would notice by requests that stay unanswered. */
static bool psn_fits(const struct weft_direct *d)
{
	return !d->may_send || d->own.sq_psn == d->peer_rq_psn;
}

/* What was not known when the connection was made. */
static void settle(struct weft_direct *d)
{
	u32 ms = d->retry_time ? jiffies_to_msecs(d->retry_time) : 0;

	if (!d->may_send)
		return;
	weft_stream_limit_ord(d->stream, d->ord);
	ms = min_not_zero(ms, READ_ONCE(d->cm->opts.user_timeout));
	if (ms)
		weft_stream_set_user_timeout(d->stream, ms);
}

static bool read_reply(struct weft_conn *conn)
{
	const struct weft_mpa_frame *frame = &conn->hs->peer;
	struct weft_direct *d = conn->direct;
	struct weft_direct_hello peer = d->own;

	if (!conn->hs->itself && (weft_direct_parse(frame->pd, frame->pd_len, &peer) ||
				  weft_direct_match(&d->own, &peer)))
		return false;
	settle_terms(d, conn, &peer);
	return true;
}

/* The last look before the stream takes the socket. */
static void before_start(struct weft_conn *conn)
{
	struct weft_direct *d = conn->direct;
	struct weft_directs *directs = &conn->cm->directs;

	mutex_lock(&directs->lock);
	if (conn->initiator && !conn->status && !read_reply(conn)) {
		conn->status = -EPROTO;
		log_failure(d, "the peer answers with other numbers");
	}
	if (d->state == DIRECT_ENDED && !conn->status)
		conn->status = -ECONNABORTED;
	mutex_unlock(&directs->lock);
	if (!conn->initiator && d->tos != WEFT_TOS_NONE)
		weft_sock_set_tos(conn->sock, d->tos);
}

static void connected(struct weft_conn *conn)
{
	struct weft_direct *d = conn->direct;
	struct weft_directs *directs = &conn->cm->directs;
	bool fits;

	mutex_lock(&directs->lock);
	if (d->state == DIRECT_WAITING)
		d->state = DIRECT_CONNECTED;
	fits = psn_fits(d);
	settle(d);
	if (READ_ONCE(d->lost))
		plan_next_look(d);
	mutex_unlock(&directs->lock);
	weft_count(conn->cm->counters,
		   conn->initiator ? WEFT_CTR_CONN_ACTIVE : WEFT_CTR_CONN_PASSIVE);
	if (!fits)
		weft_stream_unreachable(d->stream);
}

static const char *why_failed(const struct weft_conn *conn)
{
	const struct weft_mpa_frame *frame = &conn->hs->peer;

	if (frame->reject)
		return weft_direct_reason_name(weft_direct_parse_reject(frame->pd, frame->pd_len));
	return conn->status == -ECONNREFUSED ? "the peer does not listen" : "TCP fails";
}

/* Before the peer's QP is in RTR it is refused, as a rule, and that is no news. */
static void failed(struct weft_conn *conn)
{
	struct weft_direct *d = conn->direct;
	struct weft_directs *directs = &conn->cm->directs;

	mutex_lock(&directs->lock);
	if (d->state == DIRECT_WAITING && conn->hs->peer.reject)
		log_failure(d, why_failed(conn));
	mutex_unlock(&directs->lock);
	weft_count(conn->cm->counters, WEFT_CTR_CONN_REFUSED);
}

static void reply(struct weft_conn *conn)
{
	if (READ_ONCE(conn->state) == WEFT_CONN_CLOSED && !conn->status)
		conn->status = -ECONNABORTED;
	if (conn->status)
		failed(conn);
	else
		connected(conn);
}

/* A responder whose initiator never got ready has failed for good. */
static void established(struct weft_conn *conn)
{
	if (READ_ONCE(conn->state) == WEFT_CONN_RUNNING && !conn->status)
		connected(conn);
	else
		weft_count(conn->cm->counters, WEFT_CTR_CONN_REFUSED);
}

static void forget_direct_conn(struct weft_conn *conn)
{
	struct weft_directs *directs = &conn->cm->directs;
	struct weft_direct *d;
	bool had;

	if (conn->reserved)	/* before the QP is told, which may get another connection */
		weft_stream_unreserve(conn->stream);
	conn->reserved = false;
	mutex_lock(&directs->lock);
	weft_direct_drop_held(conn);
	d = conn->direct;
	conn->direct = NULL;
	had = d && d->conn == conn;
	if (had) {
		WRITE_ONCE(d->conn, NULL);
		if (d->state == DIRECT_WAITING) {
			back_off(d);
			plan_next_look(d);
		}
	}
	mutex_unlock(&directs->lock);
	if (had) {
		smp_mb(); /* pairs with the one of prepare_to_wait_event() */
		wake_up_var(&d->conn);
		weft_conn_put(conn);
	}
	if (d)
		kref_put(&d->ref, free_direct);
	weft_direct_port_leave(conn);
}

static bool act(struct weft_conn *conn, unsigned long action)
{
	switch (action) {
	case WEFT_CONNA_START_STREAM:
		before_start(conn);
		return false;
	case WEFT_CONNA_TELL_REQUEST:
		request(conn);
		return true;
	case WEFT_CONNA_TELL_REPLY:
		reply(conn);
		return true;
	case WEFT_CONNA_TELL_ESTABLISHED:
		established(conn);
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
	look_after(d, 0);
}

const struct weft_conn_ops weft_direct_conn_ops = {
	.act = act,
	.lost = lost,
};

/* --- the QP --- */

static int set_addresses(struct weft_direct *d, const struct weft_direct_config *cfg, u32 port)
{
	bool accepts = d->role == WEFT_DIRECT_ACCEPTS;
	int ifindex = d->cm->netdev->ifindex;

	weft_addr_from_ip6(&d->local, &cfg->local, accepts ? htons(port) : 0);
	weft_addr_from_ip6(&d->peer, &cfg->peer, accepts ? 0 : htons(port));
	if (d->local.ss_family != d->peer.ss_family || !weft_addr_is_unicast(&d->peer) ||
	    !weft_addr_is_unicast(&d->local))
		return -EINVAL;
	weft_addr_set_scope(&d->local, ifindex);
	weft_addr_set_scope(&d->peer, ifindex);
	return 0;
}

static struct weft_direct *new_direct(struct weft_cm *cm, const struct weft_direct_config *cfg)
{
	struct weft_direct *d = kzalloc(sizeof(*d), GFP_KERNEL);
	u32 qpn = weft_stream_qpn(cfg->stream);

	if (!d)
		return NULL;
	kref_init(&d->ref);
	INIT_DELAYED_WORK(&d->work, direct_work);
	d->cm = cm;
	d->role = weft_direct_role(cfg->local.s6_addr, qpn, cfg->peer.s6_addr, cfg->peer_qpn);
	d->tos = cfg->traffic_class ?: WEFT_TOS_NONE;
	d->ird = min(cfg->ird, READ_ONCE(cm->policy.ird_max));
	d->min_rnr_timer = cfg->min_rnr_timer;
	d->ord = min(READ_ONCE(cm->ord_max), WEFT_MPA_BLIND_ORD);
	d->own = (struct weft_direct_hello){
		.qpn = qpn,
		.peer_qpn = cfg->peer_qpn,
		.rq_psn = cfg->rq_psn,
		.extensions = WEFT_DIRECT_EXTENSIONS,
	};
	d->grace_end = jiffies + RTS_GRACE;
	d->next_try = d->grace_end;
	d->backoff = RETRY_FIRST;
	return d;
}

static int open_locked(struct weft_direct *d) __must_hold(&d->cm->directs.lock)
{
	struct weft_directs *directs = &d->cm->directs;
	int ret;

	lockdep_assert_held(&d->cm->directs.lock);
	ret = xa_insert(&directs->by_qpn, d->own.qpn, d, GFP_KERNEL);
	if (ret)
		return ret;
	if (d->role == WEFT_DIRECT_ACCEPTS) {
		d->port = weft_direct_port_open(d->cm, &d->local);
		if (IS_ERR(d->port)) {
			xa_erase(&directs->by_qpn, d->own.qpn);
			return PTR_ERR(d->port);
		}
	}
	answer_held(d);
	look_after(d, RTS_GRACE);
	return 0;
}

/**
 * weft_direct_begin - a QP enters RTR with an address vector
 * @cm: of the device
 * @cfg: what the modify says
 *
 * From here on it gets a connection as soon as its peer does the same. Context: process; does
 * not wait for the peer. Return: for weft_direct_end(), or an ERR_PTR: -EOPNOTSUPP when the
 * operator does not want it, -EINVAL for addresses that no connection can have, -EADDRINUSE when
 * another socket has the port.
 */
struct weft_direct *weft_direct_begin(struct weft_cm *cm, const struct weft_direct_config *cfg)
{
	u32 port = READ_ONCE(cm->directs.port);
	struct weft_direct *d;
	int ret;

	if (!port)
		return ERR_PTR(-EOPNOTSUPP);
	d = new_direct(cm, cfg);
	if (!d)
		return ERR_PTR(-ENOMEM);
	ret = set_addresses(d, cfg, port);
	if (ret)
		goto free;
	d->stream = weft_stream_find(cm->streams, d->own.qpn);
	if (!d->stream) {
		ret = -EINVAL;
		goto free;
	}
	weft_cm_get(cm);
	mutex_lock(&cm->directs.lock);
	ret = open_locked(d);
	mutex_unlock(&cm->directs.lock);
	if (!ret)
		return d;
	kref_put(&d->ref, free_direct);
	return ERR_PTR(ret);

free:
	kfree(d);
	return ERR_PTR(ret);
}

/**
 * weft_direct_may_send - the QP enters RTS
 * @d: from weft_direct_begin()
 * @send: what the modify says
 *
 * Context: process. Return: 0, or -EINVAL: the peer, which is connected already, expects
 * another PSN.
 */
int weft_direct_may_send(struct weft_direct *d, const struct weft_direct_send *send)
{
	u64 retry_time = weft_direct_retry_ns(send->timeout, send->retry_cnt);
	struct weft_directs *directs = &d->cm->directs;
	int ret = 0;

	mutex_lock(&directs->lock);
	if (d->state == DIRECT_CONNECTED && send->sq_psn != d->peer_rq_psn) {
		ret = -EINVAL;
		goto unlock;
	}
	d->own.sq_psn = send->sq_psn;
	d->own.has_sq_psn = true;
	d->own.rnr_retry = send->rnr_retry;
	d->own.has_rnr_retry = true;
	d->ord = min(d->ord, send->ord);
	d->retry_time = nsecs_to_jiffies(retry_time);
	d->may_send = true;
	if (d->state == DIRECT_CONNECTED)
		settle(d);
	if (time_before(jiffies, d->grace_end))
		d->next_try = jiffies;
	answer_held(d);
	if (d->state == DIRECT_WAITING || READ_ONCE(d->lost))
		plan_next_look(d);
unlock:
	mutex_unlock(&directs->lock);
	return ret;
}

/**
 * weft_direct_end - the QP leaves RTR and RTS
 * @d: from weft_direct_begin()
 *
 * Its connection, if there is one, is ended, and has let go of the stream when this returns.
 * Context: process, may sleep.
 */
void weft_direct_end(struct weft_direct *d)
{
	struct weft_directs *directs = &d->cm->directs;

	mutex_lock(&directs->lock);
	d->state = DIRECT_ENDED;
	xa_erase(&directs->by_qpn, d->own.qpn);
	if (d->conn)
		weft_conn_post(d->conn, WEFT_CONN_ABANDONED);
	if (d->port)
		weft_direct_port_close(d->port);
	mutex_unlock(&directs->lock);
	cancel_delayed_work_sync(&d->work);
	wait_var_event(&d->conn, !READ_ONCE(d->conn));
	kref_put(&d->ref, free_direct);
}

void weft_directs_init(struct weft_directs *directs)
{
	mutex_init(&directs->lock);
	xa_init(&directs->by_qpn);
	INIT_LIST_HEAD(&directs->ports);
	INIT_LIST_HEAD(&directs->held);
	directs->num_held = 0;
	directs->port = WEFT_DIRECT_PORT;
}

void weft_directs_exit(struct weft_directs *directs)
{
	WARN_ON_ONCE(!xa_empty(&directs->by_qpn) || !list_empty(&directs->ports));
	xa_destroy(&directs->by_qpn);
	mutex_destroy(&directs->lock);
}
