// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Modify and query of a QP: what the application asks for, beside the states that its stream
 * goes through by itself.
 */
#include "verbs/qp.h"

#include <linux/minmax.h>
#include <linux/mutex.h>

#include "engine/life/introspect.h"
#include "engine/life/stream.h"
#include "verbs/device.h"

#define HAND_MADE	(IB_QP_AV | IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_SQ_PSN)

/**
 * struct change - a modify on its way
 * @stream: the state of the stream
 * @mask: what the caller names, enum ib_qp_attr_mask
 * @next: attributes as they will be if the transition succeeds
 */
struct change {
	enum weft_qp_state stream;
	int mask;
	const struct weft_qp_attrs *next;
};

/* clang-format off */
static const enum ib_qp_state shown_states[] = {
	[WEFT_QP_IDLE] = IB_QPS_INIT,
	[WEFT_QP_RTS] = IB_QPS_RTS,
	[WEFT_QP_CLOSING] = IB_QPS_SQD,
	[WEFT_QP_TERMINATE] = IB_QPS_ERR,
	[WEFT_QP_ERROR] = IB_QPS_ERR,
};

/* clang-format on */

/* What a connection has agreed on holds, whatever was asked for before. */
static void tell_attrs(const struct weft_qp *qp, const struct weft_stream_info *info,
		       struct ib_qp_attr *attr)
{
	weft_qp_attrs_tell(&qp->attrs, attr);
	if (info->started) {
		attr->max_rd_atomic = min(info->ord, 255U);
		attr->max_dest_rd_atomic = min(info->ird, 255U);
	}
	if (!(qp->attrs.set & IB_QP_PATH_MTU))
		attr->path_mtu = ib_mtu_int_to_enum(to_weft_dev(qp->ib.device)->netdev->mtu);
}

int weft_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct weft_qp *qp = to_weft_qp(ib);
	struct weft_stream_info info;

	*attr = (struct ib_qp_attr){ .port_num = 1 };
	mutex_lock(&qp->modify_lock);
	weft_stream_query(qp->stream, &info);
	tell_attrs(qp, &info, attr);
	mutex_unlock(&qp->modify_lock);
	attr->qp_state = shown_states[info.state];
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
	return 0;
}

/* A second life after an error is not to be had. */
static int to_reset(struct weft_qp *qp, const struct change *change)
{
	return weft_stream_reset(qp->stream);
}

static int to_init(struct weft_qp *qp, const struct change *change)
{
	return change->stream == WEFT_QP_IDLE ? 0 : -EINVAL;
}

/* A path set by hand: there is no TCP connection behind it. */
static int to_receiving(struct weft_qp *qp, const struct change *change)
{
	if (change->mask & HAND_MADE)
		return -EINVAL;
	return change->stream == WEFT_QP_IDLE || change->stream == WEFT_QP_RTS ? 0 : -EINVAL;
}

/* Only a connection makes a QP ready; iw_cm brings it, not the application. */
static int to_ready(struct weft_qp *qp, const struct change *change)
{
	if (change->mask & HAND_MADE)
		return -EINVAL;
	return change->stream == WEFT_QP_RTS ? 0 : -EINVAL;
}

/* rdma_disconnect() comes here and passes our error on to the application. */
static int to_drained(struct weft_qp *qp, const struct change *change)
{
	weft_stream_close(qp->stream);
	return 0;
}

static int to_error(struct weft_qp *qp, const struct change *change)
{
	weft_stream_abort(qp->stream);
	return 0;
}

/* clang-format off */
static int (*const transitions[])(struct weft_qp *qp, const struct change *change) = {
	[IB_QPS_RESET] = to_reset,
	[IB_QPS_INIT] = to_init,
	[IB_QPS_RTR] = to_receiving,
	[IB_QPS_RTS] = to_ready,
	[IB_QPS_SQD] = to_drained,
	[IB_QPS_ERR] = to_error,
};

/* clang-format on */

static int change_state(struct weft_qp *qp, enum ib_qp_state wanted, struct change *change)
{
	struct weft_stream_info info;

	if (wanted >= ARRAY_SIZE(transitions) || !transitions[wanted])
		return -EINVAL;
	weft_stream_query(qp->stream, &info);
	change->stream = info.state;
	return transitions[wanted](qp, change);
}

static int modify_locked(struct weft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct weft_qp_attrs next = qp->attrs;
	struct change change = { .mask = mask, .next = &next };
	int ret = 0;

	lockdep_assert_held(&qp->modify_lock);
	weft_qp_attrs_set(&next, attr, mask);
	if (mask & IB_QP_STATE)
		ret = change_state(qp, attr->qp_state, &change);
	else if (mask & HAND_MADE)
		ret = -EINVAL;
	if (!ret)
		qp->attrs = next;
	return ret;
}

/*
 * Nothing changes if anything is wrong. Access flags are kept to be shown and no more:
 * rdma_cm hands out 0 for the active side before it connects and never the atomic bit, while
 * programs everywhere read, write and do atomics at such QPs. An STag's own rights rule.
 */
int weft_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct weft_qp *qp = to_weft_qp(ib);
	int ret;

	ret = weft_qp_attrs_check(attr, mask);
	if (ret)
		return ret;
	mutex_lock(&qp->modify_lock);
	ret = modify_locked(qp, attr, mask);
	mutex_unlock(&qp->modify_lock);
	return ret;
}
