/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What `rdma resource show -dd` says about our objects.
 */
#ifndef WEFT_VERBS_RESTRACK_H
#define WEFT_VERBS_RESTRACK_H

#include <rdma/ib_verbs.h>

struct rdma_cm_id;

int weft_fill_res_qp(struct sk_buff *msg, struct ib_qp *ib);
int weft_fill_res_cq(struct sk_buff *msg, struct ib_cq *ib);
int weft_fill_res_mr(struct sk_buff *msg, struct ib_mr *ib);
int weft_fill_stat_mr(struct sk_buff *msg, struct ib_mr *ib);
int weft_fill_res_srq(struct sk_buff *msg, struct ib_srq *ib);
int weft_fill_res_cm_id(struct sk_buff *msg, struct rdma_cm_id *id);

#endif
