/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Attributes of a QP, as ibv_modify_qp() sets and ibv_query_qp() tells them.
 */
#ifndef WEFT_VERBS_QP_ATTRS_H
#define WEFT_VERBS_QP_ATTRS_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#define WEFT_QP_REMOTE_ACCESS \
	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

/**
 * struct weft_qp_attrs - what was set by a modify
 * @set: which of them were, enum ib_qp_attr_mask; the others are 0
 * @state: asked for last
 * @by_hand: RTR was: it is the application that connects, and not rdma_cm
 * @access: enum ib_access_flags, see weft_qp_attrs_access()
 * @access_is_own: they are the application's, not rdma_cm's
 * @path_mtu: only told back, segments are TCP's
 * @min_rnr_timer, @timeout, @retry_cnt, @rnr_retry: encoded as in InfiniBand
 * @max_rd_atomic: requests for a response that may be outstanding
 * @max_dest_rd_atomic: such requests of the peer
 * @rq_psn, @sq_psn: 24 bits
 * @dest_qp_num: of the peer
 * @av: address vector of the peer, without the reference to the source GID
 *
 * A modify fills in a copy, has it carried out, and stores it only if that succeeded.
 */
struct weft_qp_attrs {
	u32 set;
	enum ib_qp_state state;
	bool by_hand;
	bool access_is_own;
	int access;
	enum ib_mtu path_mtu;
	u8 min_rnr_timer;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 max_rd_atomic;
	u8 max_dest_rd_atomic;
	u32 rq_psn;
	u32 sq_psn;
	u32 dest_qp_num;
	struct rdma_ah_attr av;
};

/* RTR of a QP that rdma_cm connects names no peer. */
static inline bool weft_qp_attrs_is_rtr_of_rdma_cm(const struct ib_qp_attr *attr, int mask)
{
	return mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTR && !(mask & IB_QP_AV);
}

int weft_qp_attrs_check(const struct ib_qp_attr *attr, int mask);
void weft_qp_attrs_set(struct weft_qp_attrs *attrs, const struct ib_qp_attr *attr, int mask);
int weft_qp_attrs_access(const struct weft_qp_attrs *attrs);
void weft_qp_attrs_tell(const struct weft_qp_attrs *attrs, struct ib_qp_attr *attr);

#endif
