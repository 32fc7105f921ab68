// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Attributes of a QP: which values are valid, and how they are kept.
 */
#include "verbs/qp_attrs.h"

#include <linux/errno.h>

#define KNOWN_ACCESS	(IB_ACCESS_SUPPORTED | IB_ACCESS_OPTIONAL)
#define QPN_MASK	0xffffffU
#define PSN_MASK	0xffffffU

/* InfiniBand has five bits for a time and three for a count. */
#define TIMER_MAX	31
#define RETRY_MAX	7

/**
 * weft_qp_attrs_check - are the values valid?
 * @attr: what a modify asks for
 * @mask: which of it counts
 *
 * Whether they suit the state of the QP is another question. Context: any. Return: 0,
 * -EOPNOTSUPP for what weft does not do, -EINVAL for values that no device takes.
 */
int weft_qp_attrs_check(const struct ib_qp_attr *attr, int mask)
{
	/* No resizing, no alternate path, no event once the send queue has drained. */
	if (mask & ~IB_QP_ATTR_STANDARD_BITS || mask & (IB_QP_CAP | IB_QP_ALT_PATH))
		return -EOPNOTSUPP;
	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state != IB_MIG_MIGRATED)
		return -EOPNOTSUPP;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
		return -EOPNOTSUPP;

	/* A Q_Key is for datagrams, and the table of P_Keys has one entry. */
	if (mask & IB_QP_QKEY)
		return -EINVAL;
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_ACCESS_FLAGS && attr->qp_access_flags & ~KNOWN_ACCESS)
		return -EINVAL;

	/* Who the peer is: only a connection that is made by hand names one. */
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num > QPN_MASK)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return -EINVAL;
	if (mask & IB_QP_AV && attr->ah_attr.port_num != 1)
		return -EINVAL;

	if (mask & IB_QP_TIMEOUT && attr->timeout > TIMER_MAX)
		return -EINVAL;
	if (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > TIMER_MAX)
		return -EINVAL;
	if (mask & IB_QP_RETRY_CNT && attr->retry_cnt > RETRY_MAX)
		return -EINVAL;
	if (mask & IB_QP_RNR_RETRY && attr->rnr_retry > RETRY_MAX)
		return -EINVAL;
	return 0;
}

static void set_peer(struct weft_qp_attrs *attrs, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_DEST_QPN)
		attrs->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_RQ_PSN)
		attrs->rq_psn = attr->rq_psn & PSN_MASK;
	if (mask & IB_QP_SQ_PSN)
		attrs->sq_psn = attr->sq_psn & PSN_MASK;
	if (mask & IB_QP_PATH_MTU)
		attrs->path_mtu = attr->path_mtu;
	if (mask & IB_QP_AV) {
		attrs->av = attr->ah_attr;
		attrs->av.grh.sgid_attr = NULL; /* the core's, until the modify returns */
	}
}

/**
 * weft_qp_attrs_set - take over what a modify asks for
 * @attrs: changed as @mask says
 * @attr: values that weft_qp_attrs_check() has found valid
 * @mask: which of it counts
 *
 * Context: any.
 */
void weft_qp_attrs_set(struct weft_qp_attrs *attrs, const struct ib_qp_attr *attr, int mask)
{
	/*
	 * INIT and RTR as rdma_cm asks for them on an iWARP device, in the kernel and in
	 * librdmacm: without a P_Key and a peer, which a program that connects by hand has to
	 * name. The flags are none on the active side, and Read and Write on the other.
	 */
	bool is_rtr = weft_qp_attrs_is_rtr_of_rdma_cm(attr, mask);
	bool is_init = mask & IB_QP_STATE && attr->qp_state == IB_QPS_INIT &&
		       !(mask & IB_QP_PKEY_INDEX);

	attrs->set |= mask;
	if (mask & IB_QP_STATE && !is_rtr) {
		attrs->state = attr->qp_state;
		attrs->by_hand |= attr->qp_state == IB_QPS_RTR;
	}
	/* What the application itself has said stays, whatever rdma_cm asks for afterwards. */
	if (mask & IB_QP_ACCESS_FLAGS && !(attrs->access_is_own && (is_rtr || is_init))) {
		attrs->access = attr->qp_access_flags;
		attrs->access_is_own = !is_rtr && !is_init;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		attrs->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attrs->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	set_peer(attrs, attr, mask);
	if (mask & IB_QP_TIMEOUT)
		attrs->timeout = attr->timeout;
	if (mask & IB_QP_MIN_RNR_TIMER)
		attrs->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_RETRY_CNT)
		attrs->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		attrs->rnr_retry = attr->rnr_retry;
}

/**
 * weft_qp_attrs_access - what the peer may do
 * @attrs: attributes
 *
 * The flags of rdma_cm say nothing of what an application wants: programs everywhere let the
 * passive side read and write, and do atomics at QPs that it gave no right to. So those restrict
 * nothing, unless the QP is connected by hand after all.
 *
 * Context: any. Return: enum ib_access_flags.
 */
int weft_qp_attrs_access(const struct weft_qp_attrs *attrs)
{
	if (!(attrs->set & IB_QP_ACCESS_FLAGS) || attrs->access_is_own || attrs->by_hand)
		return attrs->access;
	return attrs->access | WEFT_QP_REMOTE_ACCESS;
}

/**
 * weft_qp_attrs_tell - tell what was set
 * @attrs: attributes
 * @attr: written where it is about them; what was never set is 0
 *
 * Context: any.
 */
void weft_qp_attrs_tell(const struct weft_qp_attrs *attrs, struct ib_qp_attr *attr)
{
	attr->qp_access_flags = weft_qp_attrs_access(attrs);
	attr->path_mtu = attrs->path_mtu;
	attr->min_rnr_timer = attrs->min_rnr_timer;
	attr->timeout = attrs->timeout;
	attr->retry_cnt = attrs->retry_cnt;
	attr->rnr_retry = attrs->rnr_retry;
	attr->max_rd_atomic = attrs->max_rd_atomic;
	attr->max_dest_rd_atomic = attrs->max_dest_rd_atomic;
	attr->rq_psn = attrs->rq_psn;
	attr->sq_psn = attrs->sq_psn;
	attr->dest_qp_num = attrs->dest_qp_num;
	attr->ah_attr = attrs->av;
}
