// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The extended poll. The lock is held from a start that found something to the
 * end, and only the end tells the kernel, so the entry that is being read
 * cannot be overwritten. Readers translate straight from the mapped entry.
 */
#include "cq_ex.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "cq.h"
#include "ring.h"

#define NSEC_PER_SEC 1000000000

const uint64_t weft_cq_ex_readable =
	IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
	IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
	IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

static struct weft_cq *from_ex(struct ibv_cq_ex *cqx)
{
	return (struct weft_cq *)((char *)cqx - offsetof(struct weft_cq, vcq.cq_ex));
}

static const struct weft_cqe *taken(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->taken;
}

static int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static int take(struct weft_cq *cq)
{
	struct ibv_cq_ex *cqx = &cq->vcq.cq_ex;
	int pending = weft_cq_pending(cq);

	if (pending <= 0)
		return pending ? -pending : ENOENT;

	cq->taken = weft_queue_entry(&cq->queue, cq->cons++);
	cqx->wr_id = cq->taken->wr_id;
	cqx->status = cq->taken->status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *cqx, struct ibv_poll_cq_attr *attr)
{
	struct weft_cq *cq = from_ex(cqx);
	int ret;

	if (attr->comp_mask)
		return EINVAL;

	weft_lock(&cq->lock);
	ret = take(cq);
	if (ret) {
		weft_cq_rest(cq);
		weft_unlock(&cq->lock);
		weft_cq_flush(cq);
	} else if (cq->wants_wall_clock) {
		cq->wall_clock = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
	}
	return ret;
}

static int next_poll(struct ibv_cq_ex *cqx)
{
	return take(from_ex(cqx));
}

static void end_poll(struct ibv_cq_ex *cqx)
{
	struct weft_cq *cq = from_ex(cqx);

	weft_ring_publish(&cq->ctl->cons, cq->cons);
	if (!weft_cq_pending(cq))
		weft_cq_rest(cq);
	weft_unlock(&cq->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cqx)
{
	return weft_cqe_opcode(taken(cqx));
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cqx)
{
	return taken(cqx)->vendor_err;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cqx)
{
	return weft_cqe_flags(taken(cqx));
}

static uint32_t read_byte_len(struct ibv_cq_ex *cqx)
{
	return taken(cqx)->byte_len;
}

/* The immediate value in network order, or an invalidated rkey in the host's. */
static __be32 read_imm_data(struct ibv_cq_ex *cqx)
{
	return taken(cqx)->imm_or_inv;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cqx)
{
	return taken(cqx)->qp_num;
}

/* Addressing that iWARP does not have. */
static uint32_t read_no_u32(struct ibv_cq_ex *cqx)
{
	(void)cqx;
	return 0;
}

static uint8_t read_no_u8(struct ibv_cq_ex *cqx)
{
	(void)cqx;
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cqx)
{
	return taken(cqx)->timestamp;
}

static uint64_t read_wall_clock(struct ibv_cq_ex *cqx)
{
	return taken(cqx)->timestamp + (uint64_t)from_ex(cqx)->wall_clock;
}

void weft_cq_ex_init(struct weft_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *cqx = &cq->vcq.cq_ex;

	cqx->start_poll = start_poll;
	cqx->next_poll = next_poll;
	cqx->end_poll = end_poll;
	cqx->read_opcode = read_opcode;
	cqx->read_vendor_err = read_vendor_err;
	cqx->read_wc_flags = read_wc_flags;

	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cqx->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cqx->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cqx->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cqx->read_src_qp = read_no_u32;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cqx->read_slid = read_no_u32;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cqx->read_sl = read_no_u8;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cqx->read_dlid_path_bits = read_no_u8;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cqx->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) {
		cqx->read_completion_wallclock_ns = read_wall_clock;
		cq->wants_wall_clock = true;
	}
}
