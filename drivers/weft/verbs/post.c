// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Kernel consumers' work requests into the rings the engine reads. Any context;
 * a list is posted under the post lock, so that two posters do not interleave.
 */
#include "verbs/post.h"

#include <linux/nospec.h>

#include "engine/run/doorbell.h"
#include "engine/life/stream.h"
#include "ring/recvq.h"
#include "ring/sendq.h"
#include "uapi/weft-abi.h"
#include "verbs/mr.h"
#include "verbs/qp.h"

/* What a kernel opcode becomes, and whether its gather or scatter list counts. */
static const struct {
	bool known;
	u8 op;
	bool payload;
} send_kinds[] = {
	[IB_WR_SEND] = { .known = true, .op = WEFT_WR_SEND, .payload = true },
	[IB_WR_SEND_WITH_INV] = { .known = true, .op = WEFT_WR_SEND_INV, .payload = true },
	[IB_WR_RDMA_WRITE] = { .known = true, .op = WEFT_WR_WRITE, .payload = true },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { .known = true, .op = WEFT_WR_WRITE_IMM, .payload = true },
	[IB_WR_RDMA_READ] = { .known = true, .op = WEFT_WR_READ, .payload = true },
	[IB_WR_RDMA_READ_WITH_INV] = { .known = true, .op = WEFT_WR_READ_INV, .payload = true },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = {
		.known = true,
		.op = WEFT_WR_ATOMIC_FADD,
		.payload = true,
	},
	[IB_WR_ATOMIC_CMP_AND_SWP] = {
		.known = true,
		.op = WEFT_WR_ATOMIC_CSWAP,
		.payload = true,
	},
	[IB_WR_MASKED_ATOMIC_FETCH_AND_ADD] = {
		.known = true,
		.op = WEFT_WR_ATOMIC_FADD,
		.payload = true,
	},
	[IB_WR_MASKED_ATOMIC_CMP_AND_SWP] = {
		.known = true,
		.op = WEFT_WR_ATOMIC_CSWAP,
		.payload = true,
	},
	[IB_WR_LOCAL_INV] = { .known = true, .op = WEFT_WR_LOCAL_INV },
	[IB_WR_REG_MR] = { .known = true, .op = WEFT_WR_REG_MR },
};

static void fill_atomic(struct weft_sqe *sqe, const struct ib_send_wr *wr)
{
	const struct ib_atomic_wr *atomic = atomic_wr(wr);

	sqe->remote_addr = atomic->remote_addr;
	sqe->rkey = atomic->rkey;
	sqe->atomic.compare_add = atomic->compare_add;
	sqe->atomic.swap = 0;
	sqe->atomic.compare_mask = atomic->compare_add_mask;
	switch (wr->opcode) {
	case IB_WR_ATOMIC_CMP_AND_SWP:
		sqe->atomic.swap = atomic->swap;
		sqe->atomic.compare_mask = U64_MAX;
		sqe->atomic.swap_mask = U64_MAX;
		break;
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		sqe->atomic.swap = atomic->swap;
		sqe->atomic.swap_mask = atomic->swap_mask;
		break;
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		/* The boundaries of an add's fields stand where a swap has its mask. */
		sqe->atomic.swap_mask = atomic->compare_add_mask;
		break;
	default:
		sqe->atomic.swap_mask = 0;
	}
}

/* Operands beside the gather or scatter list. */
static void fill_operands(struct weft_sqe *sqe, const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_INV:
		sqe->imm_or_inv = wr->ex.invalidate_rkey;
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
		sqe->remote_addr = rdma_wr(wr)->remote_addr;
		sqe->rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		sqe->remote_addr = rdma_wr(wr)->remote_addr;
		sqe->rkey = rdma_wr(wr)->rkey;
		sqe->imm_or_inv = (__force u32)wr->ex.imm_data;
		break;
	case IB_WR_RDMA_READ_WITH_INV:
		sqe->remote_addr = rdma_wr(wr)->remote_addr;
		sqe->rkey = rdma_wr(wr)->rkey;
		sqe->imm_or_inv = wr->ex.invalidate_rkey;
		break;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		fill_atomic(sqe, wr);
		break;
	case IB_WR_LOCAL_INV:
		sqe->rkey = wr->ex.invalidate_rkey;
		break;
	case IB_WR_REG_MR:
		sqe->rkey = reg_wr(wr)->key;
		sqe->bind.access = reg_wr(wr)->access;
		break;
	default:
		break;
	}
}

static void copy_sges(struct weft_sge *to, const struct ib_sge *from, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		to[i].addr = from[i].addr;
		to[i].length = from[i].length;
		to[i].lkey = from[i].lkey;
	}
}

static const struct {
	int ib;
	u8 weft;
} send_flags[] = {
	{ IB_SEND_SIGNALED, WEFT_WRF_SIGNALED },
	{ IB_SEND_SOLICITED, WEFT_WRF_SOLICITED },
	{ IB_SEND_FENCE, WEFT_WRF_FENCE },
	{ IB_SEND_INLINE, WEFT_WRF_INLINE },
};

static bool payload_fits(const struct weft_sendq *sq, const struct ib_send_wr *wr)
{
	u64 length = 0;
	int i;

	if (wr->num_sge < 0)
		return false;
	if (!(wr->send_flags & IB_SEND_INLINE))
		return wr->num_sge <= sq->max_sge;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length <= sq->max_inline;
}

static void fill_payload(struct weft_sqe *sqe, const struct ib_send_wr *wr)
{
	u8 *to = (u8 *)(sqe + 1);
	int i;

	if (!(wr->send_flags & IB_SEND_INLINE)) {
		sqe->num_sge = wr->num_sge;
		copy_sges((struct weft_sge *)(sqe + 1), wr->sg_list, wr->num_sge);
		return;
	}
	/* Kernel consumers name their memory by address: DMA is the CPU's here. */
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
	}
	sqe->inline_len = to - (u8 *)(sqe + 1);
}

static int post_one_send(struct weft_sendq *sq, const struct ib_send_wr *wr)
	__must_hold(&sq->post_lock)
{
	unsigned int opcode = wr->opcode;
	struct weft_sqe *sqe;
	u8 flags = 0;
	size_t i;

	lockdep_assert_held(&sq->post_lock);
	if (opcode >= ARRAY_SIZE(send_kinds))
		return -EOPNOTSUPP;
	opcode = array_index_nospec(opcode, ARRAY_SIZE(send_kinds));
	if (!send_kinds[opcode].known)
		return -EOPNOTSUPP;
	if (send_kinds[opcode].payload && !payload_fits(sq, wr))
		return -EINVAL;
	sqe = weft_sendq_reserve(sq);
	if (!sqe)
		return -ENOMEM;

	for (i = 0; i < ARRAY_SIZE(send_flags); i++) {
		if (wr->send_flags & send_flags[i].ib)
			flags |= send_flags[i].weft;
	}
	sqe->wr_id = wr->wr_id;
	sqe->opcode = send_kinds[opcode].op;
	sqe->flags = flags;
	fill_operands(sqe, wr);
	if (send_kinds[opcode].payload)
		fill_payload(sqe, wr);
	if (wr->opcode == IB_WR_REG_MR)
		weft_sendq_attach(sq, weft_mr_prepare(reg_wr(wr)->mr));
	weft_sendq_commit(sq);
	return 0;
}

int weft_post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct weft_qp *qp = to_weft_qp(ib);
	unsigned long flags;
	int ret = 0;

	if (qp->sq.user) {
		*bad = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->sq.post_lock, flags);
	while (wr) {
		ret = post_one_send(&qp->sq, wr);
		if (ret)
			break;
		wr = wr->next;
	}
	spin_unlock_irqrestore(&qp->sq.post_lock, flags);
	if (ret)
		*bad = wr;
	if (weft_sendq_needs_doorbell(&qp->sq))
		weft_tx_schedule(qp->stream);
	return ret;
}

static int post_one_recv(struct weft_recvq *rq, const struct ib_recv_wr *wr) __must_hold(&rq->lock)
{
	struct weft_rqe *rqe;

	lockdep_assert_held(&rq->lock);
	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	rqe = weft_recvq_reserve(rq);
	if (!rqe)
		return -ENOMEM;

	rqe->wr_id = wr->wr_id;
	rqe->num_sge = wr->num_sge;
	rqe->reserved = 0;
	copy_sges((struct weft_sge *)(rqe + 1), wr->sg_list, wr->num_sge);
	weft_recvq_commit(rq);
	return 0;
}

/**
 * weft_post_recv_list - post receives of a kernel consumer
 * @rq: of a QP or an SRQ
 * @wr: list
 * @bad: the first one that was not posted, on failure
 *
 * Context: any. Return: 0, -EINVAL, or -ENOMEM when the queue is full.
 */
int weft_post_recv_list(struct weft_recvq *rq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad)
{
	unsigned long flags;
	int ret = 0;

	if (rq->user) {
		*bad = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&rq->lock, flags);
	while (wr) {
		ret = post_one_recv(rq, wr);
		if (ret)
			break;
		wr = wr->next;
	}
	weft_recvq_grant(rq);
	spin_unlock_irqrestore(&rq->lock, flags);
	if (ret)
		*bad = wr;
	return ret;
}

int weft_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct weft_qp *qp = to_weft_qp(ib);
	int ret;

	if (ib->srq || qp->rq.user) {
		*bad = wr;
		return -EINVAL;
	}
	ret = weft_post_recv_list(&qp->rq, wr, bad);
	/* A failed QP flushes what comes late. */
	if (weft_recvq_needs_doorbell(&qp->rq))
		weft_tx_schedule(qp->stream);
	return ret;
}
