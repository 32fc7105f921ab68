/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which modify suits which state of a QP.
 */
#ifndef WEFT_VERBS_QP_TRANSITION_H
#define WEFT_VERBS_QP_TRANSITION_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/**
 * struct weft_qp_now - where a QP stands
 * @state: as ibv_query_qp() tells it
 * @fresh: no modify has named a state yet: a QP in RESET, which tells INIT
 * @managed: rdma_cm works on it, or has brought the connection that it had last
 */
struct weft_qp_now {
	enum ib_qp_state state;
	bool fresh;
	bool managed;
};

int weft_qp_transition_check(const struct weft_qp_now *now, const struct ib_qp_attr *attr,
			     int mask);

#endif
