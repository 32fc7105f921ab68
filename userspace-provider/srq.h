/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Shared receive queues. */
#ifndef WEFT_SRQ_H
#define WEFT_SRQ_H

#include <infiniband/verbs.h>

struct ibv_srq *weft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int weft_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask);
int weft_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int weft_destroy_srq(struct ibv_srq *ibsrq);
int weft_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

#endif
