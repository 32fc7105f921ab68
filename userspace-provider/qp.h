/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Queue pairs: creation to destruction, and the way to their queues. */
#ifndef WEFT_QP_H
#define WEFT_QP_H

#include <stddef.h>
#include <stdint.h>

#include "private-abi/private.h"
#include "rq.h"
#include "sq.h"

/* Work requests between ibv_wr_start() and ibv_wr_complete(), see wr.c. */
struct weft_wr_builder {
	struct weft_sqe *open;		/* the entry being built, or NULL */
	uint32_t before;		/* where start found sq.prod */
	int error;			/* the first one, for complete */
};

struct weft_qp {
	struct verbs_qp vqp;
	uint32_t generation;		/* that made it */
	struct weft_sq sq;
	struct weft_rq rq;
	struct weft_wr_builder builder;	/* under sq.lock */
};

static inline struct weft_qp *weft_qp(struct ibv_qp *ibqp)
{
	return container_of(ibqp, struct weft_qp, vqp.qp);
}

struct ibv_qp *weft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *weft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int weft_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int weft_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int weft_destroy_qp(struct ibv_qp *ibqp);

/* In sq.c. */
int weft_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int weft_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int weft_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif
