// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Shared receive queues: a receive queue that many QPs take from. */
#include "srq.h"

#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "doorbell.h"
#include "pd.h"
#include "private-abi/private.h"
#include "process.h"
#include "rq.h"

struct weft_srq {
	struct ibv_srq srq;
	uint32_t generation;	/* that made it */
	struct weft_rq rq;
	struct weft_doorbell doorbell;
};

PABI_RESP(create_srq_resp, ib_uverbs_create_srq_resp, weft_uresp_create_srq);

/* Which kernels of before do not look at. */
struct create_srq {
	struct pabi_create_srq core;
	struct weft_ureq_create_srq drv;
};

struct ibv_srq *weft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	union create_srq_resp resp = {};
	struct create_srq cmd = { .drv.flags = WEFT_SRQ_DOORBELL };
	struct weft_rq_cap cap;
	struct weft_srq *srq;
	int ret;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->generation = weft_generation;

	ret = ibv_cmd_create_srq(pd, &srq->srq, attr, &cmd.core, sizeof(cmd), &resp.core,
				 sizeof(resp));
	if (ret)
		goto err_free;

	cap = (struct weft_rq_cap){
		.max_wr = attr->attr.max_wr,
		.max_sge = attr->attr.max_sge,
		.single_threaded = weft_pd_is_single_threaded(pd),
	};
	weft_doorbell_init(&srq->doorbell, pd->context->cmd_fd, UVERBS_OBJECT_SRQ, srq->srq.handle);
	srq->rq.doorbell = &srq->doorbell;
	ret = weft_rq_init(&srq->rq, weft_regions(pd->context), &resp.drv.rq, &cap);
	if (ret)
		goto err_destroy;
	return &srq->srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->srq);
err_free:
	free(srq);
	errno = ret;
	return NULL;
}

/* The kernel stores the new map where the driver's part of the command says. */
struct resize_srq {
	struct pabi_modify_srq core;
	struct weft_ureq_modify_srq drv;
};

/* The lock keeps prod still while the kernel moves what waits. */
int weft_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct weft_srq *srq = container_of(ibsrq, struct weft_srq, srq);
	struct weft_queue_map map = {};
	struct resize_srq cmd = { .drv.map = (uintptr_t)&map };
	struct weft_va_range room;
	int ret;

	ret = weft_must_own(ibsrq->context, srq->generation);
	if (ret)
		return ret;
	if (!(mask & IBV_SRQ_MAX_WR))
		return ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd.core, sizeof(cmd.core));

	ret = weft_queue_reserve(&room, attr->max_wr, srq->rq.queue.stride);
	if (ret)
		return ret;
	weft_lock(&srq->rq.lock);
	ret = ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd.core, sizeof(cmd));
	if (!ret)
		ret = weft_rq_move(&srq->rq, weft_regions(ibsrq->context), &map, &room);
	weft_unlock(&srq->rq.lock);
	weft_va_release(&room);
	return ret;
}

int weft_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct pabi_query_srq cmd = {};

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int weft_destroy_srq(struct ibv_srq *ibsrq)
{
	struct weft_srq *srq = container_of(ibsrq, struct weft_srq, srq);
	int ret = 0;

	if (weft_owns(ibsrq->context, srq->generation))
		ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;

	weft_queue_unmap(&srq->rq.queue);
	free(srq);
	return 0;
}

int weft_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return weft_rq_post(&container_of(ibsrq, struct weft_srq, srq)->rq, wr, bad_wr);
}
