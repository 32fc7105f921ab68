// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The ibv_wr_* interface. Each opcode call opens the next entry of the ring,
 * the setters add its payload, and complete publishes all entries at once. A
 * mistake is kept until complete, which then publishes nothing.
 */
#include "wr.h"

#include <stddef.h>

#include "qp.h"

const uint64_t weft_wr_buildable = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
				   IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
				   IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;

/* NULL once something went wrong: the caller has nothing to fill in. */
static struct weft_sqe *open_wr(struct ibv_qp_ex *qpx, uint8_t opcode, uint32_t rkey,
				uint64_t remote_addr, uint32_t imm)
{
	struct weft_qp *qp = weft_qp(&qpx->qp_base);
	struct weft_wr_builder *b = &qp->builder;

	if (b->error)
		return NULL;
	b->open = weft_sq_open(&qp->sq, qpx->wr_id, opcode, qpx->wr_flags, &b->error);
	if (!b->open)
		return NULL;

	b->open->rkey = rkey;
	b->open->remote_addr = remote_addr;
	b->open->imm_or_inv = imm;
	qp->sq.prod++;
	return b->open;
}

static void wr_send(struct ibv_qp_ex *qpx)
{
	open_wr(qpx, WEFT_WR_SEND, 0, 0, 0);
}

static void wr_send_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	open_wr(qpx, WEFT_WR_SEND_INV, 0, 0, rkey);
}

static void wr_rdma_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr)
{
	open_wr(qpx, WEFT_WR_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm)
{
	open_wr(qpx, WEFT_WR_WRITE_IMM, rkey, remote_addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr)
{
	open_wr(qpx, WEFT_WR_READ, rkey, remote_addr, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct weft_sqe *sqe;

	sqe = open_wr(qpx, WEFT_WR_ATOMIC_CSWAP, rkey, remote_addr, 0);
	if (sqe)
		weft_sq_put_atomic(sqe, compare, swap, UINT64_MAX);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct weft_sqe *sqe;

	sqe = open_wr(qpx, WEFT_WR_ATOMIC_FADD, rkey, remote_addr, 0);
	if (sqe)
		weft_sq_put_atomic(sqe, add, 0, 0);
}

static void wr_local_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	open_wr(qpx, WEFT_WR_LOCAL_INV, rkey, 0, 0);
}

static void wr_bind_mw(struct ibv_qp_ex *qpx, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct weft_sqe *sqe = open_wr(qpx, WEFT_WR_BIND_MW, 0, 0, 0);

	if (sqe)
		weft_sq_put_bind(sqe, mw, rkey, info);
}

static void wr_set_sge_list(struct ibv_qp_ex *qpx, size_t count, const struct ibv_sge *sges)
{
	struct weft_qp *qp = weft_qp(&qpx->qp_base);
	struct weft_wr_builder *b = &qp->builder;

	if (!b->open)
		return;
	b->error = weft_sq_put_sges(&qp->sq, b->open, sges, count);
	if (b->error)
		b->open = NULL;
}

static void wr_set_sge(struct ibv_qp_ex *qpx, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(qpx, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qpx, size_t count,
				    const struct ibv_data_buf *bufs)
{
	struct weft_qp *qp = weft_qp(&qpx->qp_base);
	struct weft_wr_builder *b = &qp->builder;
	size_t i;

	for (i = 0; i < count && b->open; i++) {
		b->error = weft_sq_put_inline(&qp->sq, b->open, bufs[i].addr, bufs[i].length);
		if (b->error)
			b->open = NULL;
	}
}

static void wr_set_inline_data(struct ibv_qp_ex *qpx, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(qpx, 1, &buf);
}

static void wr_start(struct ibv_qp_ex *qpx)
{
	struct weft_qp *qp = weft_qp(&qpx->qp_base);

	weft_lock(&qp->sq.lock);
	qp->builder = (struct weft_wr_builder){ .before = qp->sq.prod };
}

static void wr_abort(struct ibv_qp_ex *qpx)
{
	struct weft_qp *qp = weft_qp(&qpx->qp_base);

	qp->sq.prod = qp->builder.before;
	weft_unlock(&qp->sq.lock);
}

static int wr_complete(struct ibv_qp_ex *qpx)
{
	struct weft_qp *qp = weft_qp(&qpx->qp_base);
	int err = qp->builder.error;
	uint32_t posted;
	bool doorbell;

	if (err) {
		wr_abort(qpx);
		return err;
	}

	posted = qp->sq.prod - qp->builder.before;
	doorbell = posted && weft_sq_publish(&qp->sq, posted);
	weft_unlock(&qp->sq.lock);
	return doorbell ? weft_doorbell(&qp->sq.doorbell) : 0;
}

void weft_wr_init(struct ibv_qp_ex *qpx, uint64_t send_ops)
{
	qpx->wr_start = wr_start;
	qpx->wr_complete = wr_complete;
	qpx->wr_abort = wr_abort;
	qpx->wr_set_sge = wr_set_sge;
	qpx->wr_set_sge_list = wr_set_sge_list;
	qpx->wr_set_inline_data = wr_set_inline_data;
	qpx->wr_set_inline_data_list = wr_set_inline_data_list;

	if (send_ops & IBV_QP_EX_WITH_SEND)
		qpx->wr_send = wr_send;
	if (send_ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		qpx->wr_send_inv = wr_send_inv;
	if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE)
		qpx->wr_rdma_write = wr_rdma_write;
	if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		qpx->wr_rdma_write_imm = wr_rdma_write_imm;
	if (send_ops & IBV_QP_EX_WITH_RDMA_READ)
		qpx->wr_rdma_read = wr_rdma_read;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		qpx->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		qpx->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (send_ops & IBV_QP_EX_WITH_LOCAL_INV)
		qpx->wr_local_inv = wr_local_inv;
	if (send_ops & IBV_QP_EX_WITH_BIND_MW)
		qpx->wr_bind_mw = wr_bind_mw;
}
