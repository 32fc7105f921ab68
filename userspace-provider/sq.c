// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Post sends. One table row per verbs opcode says what it is in the queue; the
 * steps shared by all are the ones in put_wr(). A call publishes once, fences
 * once and rings at most once, however long the list.
 */
#include "sq.h"

#include <errno.h>
#include <string.h>

#include "inherit.h"
#include "qp.h"
#include "ring.h"

int weft_sq_init(struct weft_sq *sq, struct weft_regions *regions, const struct weft_queue_map *map,
		 const struct weft_sq_cap *cap)
{
	size_t room;
	int ret;

	ret = weft_queue_map(&sq->queue, regions, map, sizeof(struct weft_sqe), NULL);
	if (ret)
		return ret;

	weft_lock_init(&sq->lock, cap->single_threaded);
	sq->defer = (struct weft_defer){
		.cq = { cap->send_cq, cap->recv_cq != cap->send_cq ? cap->recv_cq : NULL },
		.link = { { .doorbell = &sq->doorbell }, { .doorbell = &sq->doorbell } },
	};
	if (!sq->queue.base)
		return 0;

	room = sq->queue.stride - sizeof(struct weft_sqe);
	sq->ctl = (void *)sq->queue.base;
	sq->max_wr = weft_at_most(cap->max_wr, map->entries);
	sq->max_sge = weft_at_most(cap->max_sge, room / sizeof(struct weft_sge));
	sq->max_inline = weft_at_most(cap->max_inline, room);
	sq->sticky_flags = cap->signal_all ? WEFT_WRF_SIGNALED : 0;
	return 0;
}

struct weft_sqe *weft_sq_open(struct weft_sq *sq, uint64_t wr_id, uint8_t opcode,
			      unsigned int send_flags, int *err)
{
	uint8_t flags = sq->sticky_flags;
	struct weft_sqe *sqe;

	/* Look at the kernel's word only when the copy says there is no room. */
	if (sq->prod - sq->cons >= sq->max_wr) {
		*err = ENOMEM;
		if (!sq->ctl)
			return NULL;
		sq->cons = weft_ring_observe(&sq->ctl->cons);
		if (sq->prod - sq->cons > sq->queue.entries) {
			*err = EIO;	/* more than it holds: the index was overwritten */
			return NULL;
		}
		if (sq->prod - sq->cons >= sq->max_wr)
			return NULL;
		*err = 0;	/* ibv_wr_*() keeps what is here */
	}

	if (send_flags & IBV_SEND_SIGNALED)
		flags |= WEFT_WRF_SIGNALED;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= WEFT_WRF_SOLICITED;
	if (send_flags & IBV_SEND_FENCE)
		flags |= WEFT_WRF_FENCE;

	sqe = weft_queue_entry(&sq->queue, sq->prod);
	sqe->wr_id = wr_id;
	sqe->opcode = opcode;
	sqe->flags = flags;
	sqe->num_sge = 0;
	sqe->inline_len = 0;
	sqe->remote_addr = 0;
	sqe->rkey = 0;
	sqe->imm_or_inv = 0;
	return sqe;
}

int weft_sq_put_sges(const struct weft_sq *sq, struct weft_sqe *sqe, const struct ibv_sge *sges,
		     size_t count)
{
	if (count > sq->max_sge)
		return EINVAL;
	if (!weft_sges_are_seen(sq->queue.region->all, sges, count))
		return EFAULT;

	sqe->num_sge = (uint16_t)count;
	weft_queue_put_sges(sqe + 1, sges, count);
	return 0;
}

/* Appends, so that a list of buffers is gathered by calling it for each. */
int weft_sq_put_inline(const struct weft_sq *sq, struct weft_sqe *sqe, const void *data,
		       size_t length)
{
	if (sqe->opcode > WEFT_WR_WRITE_IMM && sqe->opcode != WEFT_WR_SEND_IMM)
		return EINVAL;
	if (length > sq->max_inline - sqe->inline_len)
		return EINVAL;

	sqe->flags |= WEFT_WRF_INLINE;
	if (length)
		memcpy((uint8_t *)(sqe + 1) + sqe->inline_len, data, length);
	sqe->inline_len += (uint32_t)length;
	return 0;
}

void weft_sq_put_bind(struct weft_sqe *sqe, const struct ibv_mw *mw, uint32_t rkey,
		      const struct ibv_mw_bind_info *info)
{
	sqe->rkey = rkey;
	sqe->bind.addr = info->addr;
	sqe->bind.length = info->length;
	sqe->bind.mr_lkey = info->mr ? info->mr->lkey : 0;
	sqe->bind.access = info->mw_access_flags;
	sqe->bind.mw_rkey = mw->rkey;
	sqe->bind.reserved = 0;
}

enum payload {
	UNKNOWN_OPCODE,
	NO_PAYLOAD,
	PAYLOAD,
};

#define SEND_OPS (IBV_WR_SEND_WITH_INV + 1)

/* By enum ibv_wr_opcode; one that is missing here is invalid. */
static const struct send_op {
	uint8_t opcode;
	enum payload payload;
} send_ops[SEND_OPS] = {
	[IBV_WR_SEND] = { WEFT_WR_SEND, PAYLOAD },
	[IBV_WR_SEND_WITH_INV] = { WEFT_WR_SEND_INV, PAYLOAD },
	[IBV_WR_RDMA_WRITE] = { WEFT_WR_WRITE, PAYLOAD },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { WEFT_WR_WRITE_IMM, PAYLOAD },
	[IBV_WR_RDMA_READ] = { WEFT_WR_READ, PAYLOAD },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { WEFT_WR_ATOMIC_CSWAP, PAYLOAD },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { WEFT_WR_ATOMIC_FADD, PAYLOAD },
	[IBV_WR_LOCAL_INV] = { WEFT_WR_LOCAL_INV, NO_PAYLOAD },
	[IBV_WR_BIND_MW] = { WEFT_WR_BIND_MW, NO_PAYLOAD },
	[IBV_WR_SEND_WITH_IMM] = { WEFT_WR_SEND_IMM, PAYLOAD },
};

/* What a request has beside its payload. */
static int put_operands(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_INV:
		sqe->imm_or_inv = wr->invalidate_rkey;
		break;
	case IBV_WR_SEND_WITH_IMM:
		sqe->imm_or_inv = wr->imm_data;
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		sqe->imm_or_inv = wr->imm_data;
		sqe->remote_addr = wr->wr.rdma.remote_addr;
		sqe->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		sqe->remote_addr = wr->wr.rdma.remote_addr;
		sqe->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		weft_sq_put_atomic(sqe, wr->wr.atomic.compare_add, wr->wr.atomic.swap, UINT64_MAX);
		sqe->remote_addr = wr->wr.atomic.remote_addr;
		sqe->rkey = wr->wr.atomic.rkey;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		weft_sq_put_atomic(sqe, wr->wr.atomic.compare_add, 0, 0);
		sqe->remote_addr = wr->wr.atomic.remote_addr;
		sqe->rkey = wr->wr.atomic.rkey;
		break;
	case IBV_WR_LOCAL_INV:
		sqe->rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		if (!wr->bind_mw.mw)
			return EINVAL;
		weft_sq_put_bind(sqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		break;
	default:
		break;
	}
	return 0;
}

static int put_payload(const struct weft_sq *sq, struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	int ret;
	int i;

	if (wr->num_sge < 0)
		return EINVAL;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return weft_sq_put_sges(sq, sqe, wr->sg_list, (size_t)wr->num_sge);

	/* Nothing yet, but now it is inline even if nothing follows. */
	ret = weft_sq_put_inline(sq, sqe, NULL, 0);
	for (i = 0; i < wr->num_sge && !ret; i++)
		ret = weft_sq_put_inline(sq, sqe, (void *)(uintptr_t)wr->sg_list[i].addr,
					 wr->sg_list[i].length);
	return ret;
}

static int put_wr(struct weft_sq *sq, const struct ibv_send_wr *wr)
{
	const struct send_op *op;
	struct weft_sqe *sqe;
	int err;

	if (wr->opcode == IBV_WR_TSO)
		return EOPNOTSUPP;
	if ((unsigned int)wr->opcode >= SEND_OPS)
		return EINVAL;
	op = &send_ops[wr->opcode];
	if (op->payload == UNKNOWN_OPCODE)
		return EINVAL;
	/* Only weft devices know it, and agree on that where they connect QPs directly. */
	if (op->opcode == WEFT_WR_SEND_IMM && !sq->direct)
		return EOPNOTSUPP;
	sqe = weft_sq_open(sq, wr->wr_id, op->opcode, wr->send_flags, &err);
	if (!sqe)
		return err;

	err = put_operands(sqe, wr);
	if (!err && op->payload == PAYLOAD)
		err = put_payload(sq, sqe, wr);
	if (!err)
		sq->prod++;
	return err;
}

bool weft_sq_publish(struct weft_sq *sq, uint32_t posted)
{
	bool streams = weft_defer_is_streaming(&sq->defer, posted);
	uint32_t state;

	if (streams != sq->ctl->defer_doorbell)
		__atomic_store_n(&sq->ctl->defer_doorbell, streams, __ATOMIC_RELAXED);
	weft_ring_publish(&sq->ctl->prod, sq->prod);
	state = weft_ring_state(&sq->ctl->state);
	if (state == WEFT_SQ_POLLED && streams)
		return !weft_defer_add(&sq->defer);
	return state != WEFT_SQ_BUSY;
}

int weft_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct weft_sq *sq = &weft_qp(ibqp)->sq;
	struct ibv_send_wr *first = wr;
	uint32_t before;
	bool doorbell = false;
	int ret = 0;
	int err;

	weft_lock(&sq->lock);
	before = sq->prod;
	for (; wr; wr = wr->next) {
		ret = put_wr(sq, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	if (sq->prod != before)
		doorbell = weft_sq_publish(sq, sq->prod - before);
	weft_unlock(&sq->lock);

	err = doorbell ? weft_doorbell(&sq->doorbell) : 0;
	if (err) { /* none of this call will complete */
		*bad_wr = first;
		ret = err;
	}
	return ret;
}
