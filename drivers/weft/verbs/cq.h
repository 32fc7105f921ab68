/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Completion queue: the core's object around a ring of completions.
 */
#ifndef WEFT_VERBS_CQ_H
#define WEFT_VERBS_CQ_H

#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "ring/cq.h"
#include "verbs/tracked.h"
#include "verbs/vector.h"

/**
 * struct weft_ibcq - a completion queue
 * @ib: of the core
 * @cq: what streams post to
 * @vector: where a kernel consumer hears of completions
 * @overflow_work: tells the owner that entries were lost, outside of any lock
 * @resizing: one at a time: the ring is copied without its lock
 * @tracked: references of dumps
 */
struct weft_ibcq {
	struct ib_cq ib;
	struct weft_cq cq;
	struct weft_vector vector;
	struct work_struct overflow_work;
	struct mutex resizing; /* as described above */
	struct weft_tracked tracked;
};

static inline struct weft_ibcq *to_weft_cq(struct ib_cq *ib)
{
	return container_of(ib, struct weft_ibcq, ib);
}

int weft_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *udata);
int weft_modify_cq(struct ib_cq *ib, u16 count, u16 period);
int weft_resize_cq(struct ib_cq *ib, u32 cqe, struct ib_udata *udata);
int weft_destroy_cq(struct ib_cq *ib, struct ib_udata *udata);
int weft_poll_cq(struct ib_cq *ib, int num, struct ib_wc *wc);
int weft_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags);
void weft_forget_qp(struct ib_cq *ib, u32 qpn);

#endif
