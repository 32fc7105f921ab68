// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which modify suits which state of a QP. Attributes are those that InfiniBand asks for and
 * allows for the step (IBTA, 11.2.5.2), with these differences: rdma_cm names no P_Key on an
 * iWARP device, so none is asked for in INIT, and no peer in RTR, which means nothing then; SQD
 * is an orderly end, which nothing follows but ERR and RESET; and an address vector is set with
 * RTR and then stays.
 *
 * rdma_disconnect() of librdmacm asks for SQD and fails if that does, whatever has become of
 * the connection: so SQD of a QP that rdma_cm manages is never an error.
 */
#include "verbs/qp_transition.h"

#include <linux/errno.h>
#include <linux/kernel.h>

#include "verbs/qp_attrs.h"

#define SET_UP	(IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)
#define LIVE	(IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER | IB_QP_PATH_MIG_STATE)

/* A connection that is made by hand. */
#define TO_RTR                                                                               \
	(IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | \
	 IB_QP_MIN_RNR_TIMER)
#define TO_RTS \
	(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC)

enum condition {
	NEVER,
	ALWAYS,
	MANAGED,
	BY_HAND,	/* not of a QP that rdma_cm manages */
};

/**
 * struct transition - from one state to another
 * @when: is there such a step?
 * @required: attributes that must be named
 * @optional: attributes that may be
 */
struct transition {
	enum condition when;
	int required;
	int optional;
};

static const struct transition transitions[IB_QPS_ERR + 1][IB_QPS_ERR + 1] = {
	[IB_QPS_RESET] = {
		[IB_QPS_RESET] = { ALWAYS },
		[IB_QPS_INIT] = { ALWAYS, .optional = SET_UP },
		[IB_QPS_SQD] = { MANAGED },
		[IB_QPS_ERR] = { ALWAYS },
	},
	[IB_QPS_INIT] = {
		[IB_QPS_RESET] = { ALWAYS },
		[IB_QPS_INIT] = { ALWAYS, .optional = SET_UP },
		[IB_QPS_RTR] = { BY_HAND, TO_RTR, IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS },
		[IB_QPS_SQD] = { MANAGED },
		[IB_QPS_ERR] = { ALWAYS },
	},
	[IB_QPS_RTR] = {
		[IB_QPS_RESET] = { ALWAYS },
		[IB_QPS_RTS] = { ALWAYS, TO_RTS, LIVE },
		[IB_QPS_ERR] = { ALWAYS },
	},
	[IB_QPS_RTS] = {
		[IB_QPS_RESET] = { ALWAYS },
		[IB_QPS_RTS] = { ALWAYS, .optional = LIVE },
		[IB_QPS_SQD] = { ALWAYS, .optional = IB_QP_EN_SQD_ASYNC_NOTIFY },
		[IB_QPS_ERR] = { ALWAYS },
	},
	[IB_QPS_SQD] = {
		[IB_QPS_RESET] = { ALWAYS },
		[IB_QPS_SQD] = { ALWAYS, .optional = IB_QP_EN_SQD_ASYNC_NOTIFY },
		[IB_QPS_ERR] = { ALWAYS },
	},
	[IB_QPS_ERR] = {
		[IB_QPS_RESET] = { ALWAYS },
		[IB_QPS_SQD] = { MANAGED },
		[IB_QPS_ERR] = { ALWAYS },
	},
};

/* Before it accepts or, in the kernel, connects. */
static const struct transition rtr_of_rdma_cm = { ALWAYS, IB_QP_PORT | IB_QP_ACCESS_FLAGS };

/* rdma_cm names a port and nothing else where InfiniBand would go to RTS. */
static const struct transition same_state = { ALWAYS, .optional = SET_UP | LIVE };

static bool transition_applies(const struct transition *t, const struct weft_qp_now *now)
{
	switch (t->when) {
	case ALWAYS:
		return true;
	case MANAGED:
		return now->managed;
	case BY_HAND:
		return !now->managed;
	default:
		return false;
	}
}

static const struct transition *find(const struct weft_qp_now *now, const struct ib_qp_attr *attr,
				     int mask)
{
	enum ib_qp_state from = now->fresh ? IB_QPS_RESET : now->state;

	if (!(mask & IB_QP_STATE))
		return &same_state;
	if (attr->qp_state >= ARRAY_SIZE(transitions))
		return NULL;
	if (from == IB_QPS_INIT && weft_qp_attrs_is_rtr_of_rdma_cm(attr, mask))
		return &rtr_of_rdma_cm;
	return &transitions[from][attr->qp_state];
}

/**
 * weft_qp_transition_check - may this be asked for now?
 * @now: where the QP stands
 * @attr: what is asked for; weft_qp_attrs_check() has found the values valid
 * @mask: which of it counts
 *
 * Context: any. Return: 0 or -EINVAL.
 */
int weft_qp_transition_check(const struct weft_qp_now *now, const struct ib_qp_attr *attr, int mask)
{
	const struct transition *t = find(now, attr, mask);
	int named = mask & ~(IB_QP_STATE | IB_QP_CUR_STATE);

	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != now->state &&
	    !(now->fresh && attr->cur_qp_state == IB_QPS_RESET))
		return -EINVAL;
	if (!t || !transition_applies(t, now))
		return -EINVAL;
	if (t->required & ~named || named & ~(t->required | t->optional))
		return -EINVAL;
	return 0;
}
