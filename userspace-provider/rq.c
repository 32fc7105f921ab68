// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Post receives: fill entries, publish. The kernel takes them when a message arrives, and is told
 * of them only if it asks for that: a message waits, or the QP has failed and they are flushed.
 */
#include "rq.h"

#include <assert.h>
#include <errno.h>

#include "inherit.h"
#include "doorbell.h"
#include "ring.h"

/* Scatter elements are copied as they are. */
static_assert(sizeof(struct weft_sge) == sizeof(struct ibv_sge), "size");
static_assert(offsetof(struct weft_sge, addr) == offsetof(struct ibv_sge, addr), "addr");
static_assert(offsetof(struct weft_sge, length) == offsetof(struct ibv_sge, length), "length");
static_assert(offsetof(struct weft_sge, lkey) == offsetof(struct ibv_sge, lkey), "lkey");

int weft_rq_init(struct weft_rq *rq, struct weft_regions *regions, const struct weft_queue_map *map,
		 const struct weft_rq_cap *cap)
{
	size_t room;
	int ret;

	ret = weft_queue_map(&rq->queue, regions, map, sizeof(struct weft_rqe), NULL);
	if (ret)
		return ret;

	weft_lock_init(&rq->lock, cap->single_threaded);
	if (!rq->queue.base)
		return 0;

	room = rq->queue.stride - sizeof(struct weft_rqe);
	rq->ctl = (void *)rq->queue.base;
	rq->max_wr = weft_at_most(cap->max_wr, map->entries);
	rq->max_sge = weft_at_most(cap->max_sge, room / sizeof(struct weft_sge));
	return 0;
}

/* Indices run on: what stood at cons in the old region does so in the new. */
int weft_rq_move(struct weft_rq *rq, struct weft_regions *regions, const struct weft_queue_map *map,
		 struct weft_va_range *room)
{
	static struct weft_rq_ctl nowhere;
	struct weft_queue fresh = {};
	int ret;

	ret = weft_queue_map(&fresh, regions, map, rq->queue.stride, room);
	if (!ret && !fresh.base)
		ret = EPROTO;

	weft_queue_unmap(&rq->queue);
	if (ret) {
		/* The kernel takes from a queue out of reach: from now on put_wr() says EIO. */
		rq->queue.entries = 0;
		rq->max_wr = 0;
		rq->prod = 1;
		rq->ctl = &nowhere;
		return ret;
	}
	rq->queue = fresh;
	rq->ctl = (void *)fresh.base;
	rq->max_wr = map->entries; /* as ibv_query_srq() says */
	return 0;
}

static int put_wr(struct weft_rq *rq, const struct ibv_recv_wr *wr)
{
	struct weft_rqe *rqe;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	/* Look at the kernel's word only when the copy says there is no room. */
	if (rq->prod - rq->cons >= rq->max_wr) {
		if (!rq->ctl)
			return ENOMEM;
		rq->cons = weft_ring_observe(&rq->ctl->cons);
		if (rq->prod - rq->cons > rq->queue.entries)
			return EIO;	/* more than it holds: the index was overwritten */
		if (rq->prod - rq->cons >= rq->max_wr)
			return ENOMEM;
	}
	if (!weft_sges_are_seen(rq->queue.region->all, wr->sg_list, (size_t)wr->num_sge))
		return EFAULT;

	rqe = weft_queue_entry(&rq->queue, rq->prod);
	rqe->wr_id = wr->wr_id;
	rqe->num_sge = (uint32_t)wr->num_sge;
	rqe->reserved = 0;
	weft_queue_put_sges(rqe + 1, wr->sg_list, (size_t)wr->num_sge);
	rq->prod++;
	return 0;
}

int weft_rq_post(struct weft_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr *first = wr;
	bool wanted = false;
	uint32_t before;
	int ret = 0;
	int err;

	weft_lock(&rq->lock);
	before = rq->prod;
	for (; wr; wr = wr->next) {
		ret = put_wr(rq, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	/* Under the lock, as the control block of an SRQ may move. */
	if (rq->prod != before) {
		weft_ring_publish(&rq->ctl->prod, rq->prod);
		wanted = weft_ring_state(&rq->ctl->state) == WEFT_RQ_NEED_DOORBELL;
	}
	weft_unlock(&rq->lock);

	err = wanted ? weft_doorbell(rq->doorbell) : 0;
	if (err) { /* none of this call will complete */
		*bad_wr = first;
		ret = err;
	}
	return ret;
}
