// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Post sends. One table row per verbs opcode says what becomes of it; the
 * steps shared by all are the ones in put_wr(). A call publishes once, fences
 * once and rings at most once, however long the list.
 */
#include "sq.h"

#include <errno.h>
#include <string.h>

#include "inherit.h"
#include "ring.h"

static uint32_t at_most(uint32_t value, size_t limit)
{
	return value < limit ? value : (uint32_t)limit;
}

int weft_sq_init(struct weft_sq *sq, struct weft_regions *regions, const struct weft_queue_map *map,
		 const struct weft_sq_cap *cap)
{
	size_t room;
	int ret;

	ret = weft_queue_map(&sq->queue, regions, map, sizeof(struct weft_sqe), NULL);
	if (ret)
		return ret;

	weft_lock_init(&sq->lock, cap->single_threaded);
	weft_defer_init(&sq->defer, &sq->doorbell, cap->send_cq, cap->recv_cq);
	if (!sq->queue.base)
		return 0;

	room = sq->queue.stride - sizeof(struct weft_sqe);
	sq->ctl = (void *)sq->queue.base;
	sq->max_wr = at_most(cap->max_wr, map->entries);
	sq->max_sge = at_most(cap->max_sge, room / sizeof(struct weft_sge));
	sq->max_inline = at_most(cap->max_inline, room);
	sq->sticky_flags = cap->signal_all ? WEFT_WRF_SIGNALED : 0;
	return 0;
}

void weft_sq_fini(struct weft_sq *sq)
{
	weft_queue_unmap(&sq->queue);
}

/* Look at the kernel's word only when the copy says there is no room. */
static int find_room(struct weft_sq *sq)
{
	if (sq->prod - sq->cons < sq->max_wr)
		return 0;
	if (!sq->ctl)
		return ENOMEM;

	sq->cons = weft_ring_observe(&sq->ctl->cons);
	if (sq->prod - sq->cons > sq->queue.entries)
		return EIO;	/* the mapping went away with its device */
	return sq->prod - sq->cons < sq->max_wr ? 0 : ENOMEM;
}

static uint8_t map_flags(unsigned int send_flags)
{
	uint8_t flags = 0;

	if (send_flags & IBV_SEND_SIGNALED)
		flags |= WEFT_WRF_SIGNALED;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= WEFT_WRF_SOLICITED;
	if (send_flags & IBV_SEND_FENCE)
		flags |= WEFT_WRF_FENCE;
	return flags;
}

struct weft_sqe *weft_sq_open(struct weft_sq *sq, uint64_t wr_id, uint8_t opcode,
			      unsigned int send_flags, int *err)
{
	struct weft_sqe *sqe;

	*err = find_room(sq);
	if (*err)
		return NULL;

	sqe = weft_queue_entry(&sq->queue, sq->prod);
	sqe->wr_id = wr_id;
	sqe->opcode = opcode;
	sqe->flags = map_flags(send_flags) | sq->sticky_flags;
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

void weft_sq_put_cmp_swap(struct weft_sqe *sqe, uint64_t compare, uint64_t swap)
{
	sqe->atomic.compare_add = compare;
	sqe->atomic.swap = swap;
	sqe->atomic.compare_mask = UINT64_MAX;
	sqe->atomic.swap_mask = UINT64_MAX;
}

void weft_sq_put_fetch_add(struct weft_sqe *sqe, uint64_t add)
{
	sqe->atomic.compare_add = add;
	sqe->atomic.swap = 0;
	sqe->atomic.compare_mask = 0;
	sqe->atomic.swap_mask = 0;
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

static int fill_send(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	(void)sqe;
	(void)wr;
	return 0;
}

static int fill_send_inv(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	sqe->imm_or_inv = wr->invalidate_rkey;
	return 0;
}

/* Only weft devices know it, and agree on that where they connect QPs directly. */
static int fill_send_imm(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	sqe->imm_or_inv = wr->imm_data;
	return 0;
}

static int fill_rdma(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	sqe->remote_addr = wr->wr.rdma.remote_addr;
	sqe->rkey = wr->wr.rdma.rkey;
	return 0;
}

static int fill_rdma_imm(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	sqe->imm_or_inv = wr->imm_data;
	return fill_rdma(sqe, wr);
}

static int fill_cmp_swap(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	weft_sq_put_cmp_swap(sqe, wr->wr.atomic.compare_add, wr->wr.atomic.swap);
	sqe->remote_addr = wr->wr.atomic.remote_addr;
	sqe->rkey = wr->wr.atomic.rkey;
	return 0;
}

static int fill_fetch_add(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	weft_sq_put_fetch_add(sqe, wr->wr.atomic.compare_add);
	sqe->remote_addr = wr->wr.atomic.remote_addr;
	sqe->rkey = wr->wr.atomic.rkey;
	return 0;
}

static int fill_local_inv(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	sqe->rkey = wr->invalidate_rkey;
	return 0;
}

static int fill_bind_mw(struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	if (!wr->bind_mw.mw)
		return EINVAL;
	weft_sq_put_bind(sqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	return 0;
}

struct send_op {
	int (*fill)(struct weft_sqe *sqe, const struct ibv_send_wr *wr);
	uint8_t opcode;
	bool has_payload;
	int refusal;		/* the errno of an opcode that is known but not had */
};

#define SEND_OPS (IBV_WR_TSO + 1)

/* By enum ibv_wr_opcode; one that is missing here is invalid. */
static const struct send_op send_ops[SEND_OPS] = {
	[IBV_WR_SEND] = { fill_send, WEFT_WR_SEND, true, 0 },
	[IBV_WR_SEND_WITH_INV] = { fill_send_inv, WEFT_WR_SEND_INV, true, 0 },
	[IBV_WR_RDMA_WRITE] = { fill_rdma, WEFT_WR_WRITE, true, 0 },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { fill_rdma_imm, WEFT_WR_WRITE_IMM, true, 0 },
	[IBV_WR_RDMA_READ] = { fill_rdma, WEFT_WR_READ, true, 0 },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { fill_cmp_swap, WEFT_WR_ATOMIC_CSWAP, true, 0 },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { fill_fetch_add, WEFT_WR_ATOMIC_FADD, true, 0 },
	[IBV_WR_LOCAL_INV] = { fill_local_inv, WEFT_WR_LOCAL_INV, false, 0 },
	[IBV_WR_BIND_MW] = { fill_bind_mw, WEFT_WR_BIND_MW, false, 0 },
	[IBV_WR_SEND_WITH_IMM] = { fill_send_imm, WEFT_WR_SEND_IMM, true, 0 },
	[IBV_WR_TSO] = { NULL, 0, false, EOPNOTSUPP },
};

static const struct send_op *find_op(enum ibv_wr_opcode opcode, int *err)
{
	const struct send_op *op;

	*err = EINVAL;
	if ((unsigned int)opcode >= SEND_OPS)
		return NULL;

	op = &send_ops[opcode];
	if (op->refusal)
		*err = op->refusal;
	return op->fill ? op : NULL;
}

static int gather_inline(const struct weft_sq *sq, struct weft_sqe *sqe,
			 const struct ibv_send_wr *wr)
{
	int ret;
	int i;

	/* Nothing yet, but now it is inline even if nothing follows. */
	ret = weft_sq_put_inline(sq, sqe, NULL, 0);
	for (i = 0; i < wr->num_sge && !ret; i++)
		ret = weft_sq_put_inline(sq, sqe, (void *)(uintptr_t)wr->sg_list[i].addr,
					 wr->sg_list[i].length);
	return ret;
}

static int put_payload(const struct weft_sq *sq, struct weft_sqe *sqe, const struct ibv_send_wr *wr)
{
	if (wr->num_sge < 0)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE)
		return gather_inline(sq, sqe, wr);
	return weft_sq_put_sges(sq, sqe, wr->sg_list, (size_t)wr->num_sge);
}

static int put_wr(struct weft_sq *sq, const struct ibv_send_wr *wr)
{
	const struct send_op *op;
	struct weft_sqe *sqe;
	int err;

	op = find_op(wr->opcode, &err);
	if (!op)
		return err;
	if (op->opcode == WEFT_WR_SEND_IMM && !sq->direct)
		return EOPNOTSUPP;
	sqe = weft_sq_open(sq, wr->wr_id, op->opcode, wr->send_flags, &err);
	if (!sqe)
		return err;

	err = op->fill(sqe, wr);
	if (!err && op->has_payload)
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

int weft_sq_post(struct weft_sq *sq, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
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
	if (err && !ret) {
		*bad_wr = first;
		ret = err;
	}
	return ret;
}
