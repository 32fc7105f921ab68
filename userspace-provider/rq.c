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

static uint32_t sge_space(const struct weft_queue *queue)
{
	return (queue->stride - sizeof(struct weft_rqe)) / sizeof(struct weft_sge);
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
	return value < limit ? value : limit;
}

int weft_rq_init(struct weft_rq *rq, struct weft_regions *regions, const struct weft_queue_map *map,
		 const struct weft_rq_cap *cap)
{
	int ret;

	ret = weft_queue_map(&rq->queue, regions, map, sizeof(struct weft_rqe), NULL);
	if (ret)
		return ret;

	weft_lock_init(&rq->lock, cap->single_threaded);
	if (!rq->queue.base)
		return 0;

	rq->ctl = (void *)rq->queue.base;
	rq->max_wr = at_most(cap->max_wr, map->entries);
	rq->max_sge = at_most(cap->max_sge, sge_space(&rq->queue));
	return 0;
}

/* The kernel takes from a queue that is not to be reached: find_room() says EIO from now on. */
static void lose(struct weft_rq *rq)
{
	static struct weft_rq_ctl nowhere;

	weft_queue_unmap(&rq->queue);
	rq->queue.entries = 0;
	rq->max_wr = 0;
	rq->prod = 1;
	rq->ctl = &nowhere;
}

/* Indices run on: what stood at cons in the old region does so in the new. */
int weft_rq_move(struct weft_rq *rq, struct weft_regions *regions, const struct weft_queue_map *map,
		 struct weft_va_range *room)
{
	struct weft_queue fresh = {};
	int ret;

	ret = weft_queue_map(&fresh, regions, map, rq->queue.stride, room);
	if (!ret && !fresh.base)
		ret = EPROTO;
	if (ret) {
		lose(rq);
		return ret;
	}

	weft_queue_unmap(&rq->queue);
	rq->queue = fresh;
	rq->ctl = (void *)fresh.base;
	rq->max_wr = map->entries; /* as ibv_query_srq() says */
	return 0;
}

void weft_rq_fini(struct weft_rq *rq)
{
	weft_queue_unmap(&rq->queue);
}

/* Look at the kernel's word only when the copy says there is no room. */
static int find_room(struct weft_rq *rq)
{
	if (rq->prod - rq->cons < rq->max_wr)
		return 0;
	if (!rq->ctl)
		return ENOMEM;

	rq->cons = weft_ring_observe(&rq->ctl->cons);
	if (rq->prod - rq->cons > rq->queue.entries)
		return EIO;	/* the mapping went away with its device */
	return rq->prod - rq->cons < rq->max_wr ? 0 : ENOMEM;
}

static int put_wr(struct weft_rq *rq, const struct ibv_recv_wr *wr)
{
	struct weft_rqe *rqe;
	int ret;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	ret = find_room(rq);
	if (ret)
		return ret;
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

/* Under the lock, as the control block of an SRQ may move. */
static bool publish(struct weft_rq *rq)
{
	weft_ring_publish(&rq->ctl->prod, rq->prod);
	return weft_ring_state(&rq->ctl->state) == WEFT_RQ_NEED_DOORBELL;
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
	if (rq->prod != before)
		wanted = publish(rq);
	weft_unlock(&rq->lock);

	err = wanted ? weft_doorbell(rq->doorbell) : 0;
	if (err && !ret) {
		*bad_wr = first;
		ret = err;
	}
	return ret;
}
