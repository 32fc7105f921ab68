/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Shared receive queue: the core's object around a receive queue.
 */
#ifndef WEFT_VERBS_SRQ_H
#define WEFT_VERBS_SRQ_H

#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "ring/recvq.h"
#include "verbs/tracked.h"

/**
 * struct weft_srq - a shared receive queue
 * @ib: of the core
 * @rq: what streams fetch from
 * @limit_work: tells the owner of the limit, outside of any lock
 * @resizing: one at a time: the ring is copied without its lock
 * @tracked: references of dumps
 */
struct weft_srq {
	struct ib_srq ib;
	struct weft_recvq rq;
	struct work_struct limit_work;
	struct mutex resizing; /* as described above */
	struct weft_tracked tracked;
};

static inline struct weft_srq *to_weft_srq(struct ib_srq *ib)
{
	return container_of(ib, struct weft_srq, ib);
}

int weft_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata);
int weft_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		    struct ib_udata *udata);
int weft_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr);
int weft_destroy_srq(struct ib_srq *ib, struct ib_udata *udata);
int weft_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad);

#endif
