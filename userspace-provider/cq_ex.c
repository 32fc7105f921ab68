// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The extended poll. The lock is held from a start that found something to the
 * end, and only the end tells the kernel, so the entry that is being read
 * cannot be overwritten. Readers translate straight from the mapped entry.
 */
#include "cq_ex.h"

#include <errno.h>
#include <time.h>

#include "cq.h"
#include "ring.h"

#define NSEC_PER_SEC 1000000000

const uint64_t weft_cq_ex_readable =
	IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
	IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
	IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

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
	struct weft_cq *cq = weft_cq(ibv_cq_ex_to_cq(cqx));
	struct timespec real, mono;
	int ret;

	if (attr->comp_mask)
		return EINVAL;

	weft_lock(&cq->lock);
	ret = take(cq);
	if (ret) {
		weft_defer_note_empty(&cq->defer);
		weft_unlock(&cq->lock);
		weft_cq_flush(cq);
	} else if (cq->wants_wall_clock) {
		clock_gettime(CLOCK_REALTIME, &real);
		clock_gettime(CLOCK_MONOTONIC, &mono);
		cq->wall_clock = (int64_t)(real.tv_sec - mono.tv_sec) * NSEC_PER_SEC +
				 real.tv_nsec - mono.tv_nsec;
	}
	return ret;
}

static int next_poll(struct ibv_cq_ex *cqx)
{
	return take(weft_cq(ibv_cq_ex_to_cq(cqx)));
}

static void end_poll(struct ibv_cq_ex *cqx)
{
	struct weft_cq *cq = weft_cq(ibv_cq_ex_to_cq(cqx));

	weft_ring_publish(&cq->ctl->cons, cq->cons);
	if (!weft_cq_pending(cq))
		weft_defer_note_empty(&cq->defer);
	weft_unlock(&cq->lock);
}

/* Translates a field of the entry at which the poll stands. */
#define READER(type, name, value)                                   \
	static type read_##name(struct ibv_cq_ex *cqx)              \
	{                                                           \
		struct weft_cq *cq = weft_cq(ibv_cq_ex_to_cq(cqx)); \
		return value;                                       \
	}

READER(enum ibv_wc_opcode, opcode, weft_cqe_opcode(cq->taken))
READER(uint32_t, vendor_err, cq->taken->vendor_err)
READER(unsigned int, wc_flags, weft_cqe_flags(cq->taken))
READER(uint32_t, byte_len, cq->taken->byte_len)
/* The immediate value in network order, or an invalidated rkey in the host's. */
READER(__be32, imm_data, cq->taken->imm_or_inv)
READER(uint32_t, qp_num, cq->taken->qp_num)
READER(uint64_t, completion_ts, cq->taken->timestamp)
READER(uint64_t, wall_clock, cq->taken->timestamp + (uint64_t)cq->wall_clock)

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
