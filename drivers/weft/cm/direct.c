// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * QPs that are connected by ibv_modify_qp(): what the modify tells, and the clock. There is no
 * consumer to ask; the connection itself is in cm/direct_conn.c. Documentation/protocol.md.
 */
#include "cm/direct.h"

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/direct_port.h"
#include "cm/direct_qp.h"
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

void weft_direct_free(struct kref *ref)
{
	struct weft_direct *d = container_of(ref, struct weft_direct, ref);
	struct weft_cm *cm = d->cm;

	weft_stream_put(d->stream);
	kfree(d);
	weft_cm_put(cm);
}

/* Once for each QP: an initiator goes on trying. */
void weft_direct_log_failure(struct weft_direct *d, const char *why)
{
	if (d->told)
		return;
	d->told = true;
	netdev_info(d->cm->netdev,
		    "weft: QP %u does not get its connection to QP %u of %pISc: %s\n", d->own.qpn,
		    d->own.peer_qpn, &d->peer, why);
}

/* --- the clock --- */

void weft_direct_back_off(struct weft_direct *d)
{
	d->next_try = jiffies + d->backoff;
	d->backoff = min(2 * d->backoff, RETRY_MOST);
}

/*
 * What is answered before the QP is in RTS does not say what is known only then. As a rule that
 * is a moment later.
 */
bool weft_direct_knows_enough(const struct weft_direct *d)
{
	return d->may_send || time_after_eq(jiffies, d->grace_end);
}

void weft_direct_plan_next_look(struct weft_direct *d)
{
	bool waits = d->state == WEFT_DIRECT_WAITING && !d->conn;
	bool retries = waits && d->role != WEFT_DIRECT_ACCEPTS;
	bool has_grace = waits && !retries && !weft_direct_knows_enough(d);
	unsigned long next = has_grace ? d->grace_end : d->next_try;
	unsigned long delay = LOOK_EVERY;

	if ((retries || has_grace) && time_before(next, jiffies + delay))
		delay = time_after(next, jiffies) ? next - jiffies : 0;
	if (retries || has_grace || (d->may_send && d->retry_time))
		mod_delayed_work(d->cm->wq, &d->work, delay);
}

static void direct_work(struct work_struct *work)
{
	struct weft_direct *d = container_of(work, struct weft_direct, work.work);
	struct weft_directs *directs = &d->cm->directs;
	bool waits, overdue = false;

	mutex_lock(&directs->lock);
	if (d->state != WEFT_DIRECT_WAITING &&
	    !(d->state == WEFT_DIRECT_CONNECTED && READ_ONCE(d->lost)))
		goto unlock;
	/* A request waits from when it is seen to; as long as there is none, nothing is late. */
	waits = d->may_send && d->retry_time && weft_stream_waits(d->stream);
	if (waits && !d->waits)
		d->waits_since = jiffies;
	d->waits = waits;
	overdue = waits && time_after(jiffies, d->waits_since + d->retry_time);
	if (!overdue) {
		weft_direct_try_to_connect(d);
		weft_direct_answer_held(d);
		weft_direct_plan_next_look(d);
		goto unlock;
	}
	if (d->state == WEFT_DIRECT_WAITING)
		weft_direct_log_failure(d, "its time is up");
	d->state = WEFT_DIRECT_ENDED;
	if (d->conn)
		weft_conn_post(d->conn, WEFT_CONN_ABANDONED);
unlock:
	mutex_unlock(&directs->lock);
	if (overdue)
		weft_stream_unreachable(d->stream);
}

/* What was not known when the connection was made. */
void weft_direct_settle(struct weft_direct *d)
{
	u32 ms = d->retry_time ? jiffies_to_msecs(d->retry_time) : 0;

	if (!d->may_send)
		return;
	weft_stream_limit_ord(d->stream, d->ord);
	ms = min_not_zero(ms, READ_ONCE(d->cm->opts.user_timeout));
	if (ms)
		weft_stream_set_user_timeout(d->stream, ms);
}

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
	weft_direct_answer_held(d);
	mod_delayed_work(d->cm->wq, &d->work, RTS_GRACE);
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
	kref_put(&d->ref, weft_direct_free);
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
 * Context: process. Return: 0, or -EINVAL: the peer, which is connected already or about to be,
 * expects another PSN.
 */
int weft_direct_may_send(struct weft_direct *d, const struct weft_direct_send *send)
{
	u64 retry_time = weft_direct_retry_ns(send->timeout, send->retry_cnt);
	struct weft_directs *directs = &d->cm->directs;
	int ret = 0;

	mutex_lock(&directs->lock);
	if (d->peer_told && send->sq_psn != d->peer_rq_psn) {
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
	if (d->state == WEFT_DIRECT_CONNECTED)
		weft_direct_settle(d);
	if (time_before(jiffies, d->grace_end))
		d->next_try = jiffies;
	weft_direct_answer_held(d);
	if (d->state == WEFT_DIRECT_WAITING || READ_ONCE(d->lost))
		weft_direct_plan_next_look(d);
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
	d->state = WEFT_DIRECT_ENDED;
	xa_erase(&directs->by_qpn, d->own.qpn);
	if (d->conn)
		weft_conn_post(d->conn, WEFT_CONN_ABANDONED);
	if (d->port)
		weft_direct_port_close(d->port);
	mutex_unlock(&directs->lock);
	wait_var_event(&d->conn, !READ_ONCE(d->conn));
	/* Only now: until then the connection may queue it, when its peer goes at this moment. */
	cancel_delayed_work_sync(&d->work);
	kref_put(&d->ref, weft_direct_free);
}
