// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Modify and query of a QP: what the application asks for, beside the states that its stream
 * goes through by itself.
 */
#include "verbs/qp.h"

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/wait_bit.h>

#include "cm/cm.h"
#include "engine/life/introspect.h"
#include "engine/life/stream.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/qp_transition.h"
#include "verbs/ucontext.h"

/* For iw_cm to let go of a QP whose connection has ended. */
#define RELEASE_TIMEOUT	(5 * HZ)

/* clang-format off */
static const enum ib_qp_state stream_states[] = {
	[WEFT_QP_RTS] = IB_QPS_RTS,
	[WEFT_QP_CLOSING] = IB_QPS_SQD,
	[WEFT_QP_TERMINATE] = IB_QPS_ERR,
	[WEFT_QP_ERROR] = IB_QPS_ERR,
};

/* clang-format on */

/*
 * Before there is a connection the state is what was asked for, and so is RTR where a
 * connection made by hand stands already. A QP of an iWARP device begins in INIT, which
 * programs ask for: rdma-core's tests among them.
 */
static enum ib_qp_state told_state(const struct weft_qp *qp, enum weft_qp_state stream)
	__must_hold(&qp->modify_lock)
{
	const struct weft_qp_attrs *attrs = &qp->attrs;

	lockdep_assert_held(&qp->modify_lock);
	if (stream == WEFT_QP_RTS && attrs->by_hand && attrs->state == IB_QPS_RTR)
		return IB_QPS_RTR;
	if (stream != WEFT_QP_IDLE)
		return stream_states[stream];
	return attrs->set & IB_QP_STATE ? attrs->state : IB_QPS_INIT;
}

/* An id of iw_cm has a reference as long as it may ask for anything. */
static struct weft_qp_now qp_now(const struct weft_qp *qp) __must_hold(&qp->modify_lock)
{
	const struct weft_qp_attrs *attrs = &qp->attrs;
	struct weft_stream_info info;

	lockdep_assert_held(&qp->modify_lock);
	weft_stream_query(qp->stream, &info);
	return (struct weft_qp_now){
		.state = told_state(qp, info.state),
		.fresh = info.state == WEFT_QP_IDLE && !(attrs->set & IB_QP_STATE),
		.managed = !attrs->by_hand && (info.started || atomic_read(&qp->iw_refs)),
	};
}

/**
 * weft_query_qp - tell what holds
 * @ib: a QP, also one that is being destroyed: the core asks for any before it asks for what
 *	`rdma resource` shows
 * @attr: written completely
 * @mask: unused
 * @init: written completely
 *
 * Context: process. Return: 0, or -EAGAIN while it is being destroyed.
 */
int weft_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct weft_qp *qp = to_weft_qp(ib);
	struct weft_stream_info info;

	if (!weft_tracked_get(&qp->tracked))
		return -EAGAIN;
	/* The core tells a process all of it. */
	*attr = (struct ib_qp_attr){ .port_num = 1 };
	mutex_lock(&qp->modify_lock);
	weft_stream_query(qp->stream, &info);
	attr->qp_state = told_state(qp, info.state);
	weft_qp_attrs_tell(&qp->attrs, attr);
	if (info.started) {
		/* What a connection has agreed on holds, whatever was asked for before. */
		attr->max_rd_atomic = min(info.ord, 255U);
		attr->max_dest_rd_atomic = min(info.ird, 255U);
	}
	if (!(qp->attrs.set & IB_QP_PATH_MTU))
		attr->path_mtu = ib_mtu_int_to_enum(to_weft_dev(ib->device)->netdev->mtu);
	mutex_unlock(&qp->modify_lock);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = info.state == WEFT_QP_CLOSING && !info.sq_drained;
	weft_qp_caps(qp, ib->srq, &attr->cap);

	init->qp_type = ib->qp_type;
	init->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_context = ib->qp_context;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->srq = ib->srq;
	init->cap = attr->cap;
	weft_tracked_put(&qp->tracked);
	return 0;
}

/* @next: attributes as they will be if this succeeds. */
static int enter_state(struct weft_qp *qp, enum ib_qp_state state, const struct weft_qp_now *now,
		       const struct weft_qp_attrs *next) __must_hold(&qp->modify_lock)
{
	lockdep_assert_held(&qp->modify_lock);
	switch (state) {
	case IB_QPS_RTR:
		/* It connects to the peer that the modify names; without one rdma_cm asks. */
		return next->by_hand ? weft_qp_direct_rtr(qp, next) : 0;
	case IB_QPS_RTS:
		/* Without a peer it is where a connection of rdma_cm stands already. */
		if (next->by_hand && now->state == IB_QPS_RTR)
			return weft_qp_direct_rts(qp, next);
		return 0;
	case IB_QPS_SQD:
		/*
		 * rdma_disconnect() comes here and passes our error on to the application. Where
		 * nothing is connected, or not any more, there is nothing to do for it.
		 */
		weft_stream_close(qp->stream);
		return 0;
	case IB_QPS_ERR:
		weft_stream_abort(qp->stream);
		weft_qp_direct_end(qp);
		return 0;
	default:
		return 0;
	}
}

/* Attributes are as they will hold from here on. */
static void set_attrs(struct weft_qp *qp, const struct weft_qp_attrs *next)
	__must_hold(&qp->modify_lock)
{
	lockdep_assert_held(&qp->modify_lock);
	qp->attrs = *next;
	weft_stream_set_access(qp->stream, weft_qp_attrs_access(next));
}

static int modify_locked(struct weft_qp *qp, const struct ib_qp_attr *attr, int mask)
	__must_hold(&qp->modify_lock)
{
	struct weft_qp_attrs next = qp->attrs;
	struct weft_qp_now now = qp_now(qp);
	int ret;

	lockdep_assert_held(&qp->modify_lock);
	ret = weft_qp_transition_check(&now, attr, mask);
	if (ret)
		return ret;
	weft_qp_attrs_set(&next, attr, mask);
	if (mask & IB_QP_STATE)
		ret = enter_state(qp, attr->qp_state, &now, &next);
	if (!ret)
		set_attrs(qp, &next);
	return ret;
}

/*
 * Not under the lock: an id of iw_cm that is being destroyed modifies the QP before it lets go
 * of it, and could otherwise do so in the next life of the QP.
 */
static int end_connection(struct weft_qp *qp)
{
	struct weft_stream_info info;
	int ret = 0;

	weft_stream_query(qp->stream, &info);
	if (info.state == WEFT_QP_IDLE)
		return 0;
	WRITE_ONCE(qp->muted, true);
	if (!info.started)
		weft_cm_cancel_pending(&to_weft_dev(qp->ib.device)->cm, qp->stream);
	weft_stream_abort_wait(qp->stream);
	if (!wait_var_event_timeout(&qp->iw_refs, !atomic_read(&qp->iw_refs), RELEASE_TIMEOUT))
		ret = -EBUSY;
	WRITE_ONCE(qp->muted, false);
	return ret;
}

/* From any state: whatever the QP was, it is as if it had just been made. */
static int reset_qp(struct weft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	const struct weft_qp_attrs fresh = { .set = IB_QP_STATE, .state = IB_QPS_RESET };
	struct weft_qp_now now;
	int ret;

	mutex_lock(&qp->modify_lock);
	now = qp_now(qp);
	ret = weft_qp_transition_check(&now, attr, mask);
	mutex_unlock(&qp->modify_lock);
	if (!ret)
		ret = end_connection(qp);
	if (ret)
		return ret;
	mutex_lock(&qp->modify_lock);
	weft_qp_direct_end(qp);
	ret = weft_stream_reset(qp->stream);
	if (!ret)
		set_attrs(qp, &fresh);
	mutex_unlock(&qp->modify_lock);
	if (ret)
		return ret;
	weft_forget_qp(qp->ib.send_cq, qp->ib.qp_num);
	weft_forget_qp(qp->ib.recv_cq, qp->ib.qp_num);
	return 0;
}

/* Nothing changes if anything is wrong. */
int weft_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct weft_qp *qp = to_weft_qp(ib);
	int ret;

	ret = weft_udata_check(udata, 0) ?: weft_qp_attrs_check(attr, mask);
	if (ret)
		return ret;
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RESET)
		return reset_qp(qp, attr, mask);
	mutex_lock(&qp->modify_lock);
	ret = modify_locked(qp, attr, mask);
	mutex_unlock(&qp->modify_lock);
	return ret;
}
