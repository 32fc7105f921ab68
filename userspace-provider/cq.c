// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues. The kernel's index is read once for a batch and ours
 * written once behind it; neither polling nor arming makes a system call.
 */
#include "cq.h"

#include <errno.h>

#include "ring.h"

int weft_cq_init(struct weft_cq *cq, struct weft_regions *regions, const struct weft_queue_map *map,
		 bool single_threaded)
{
	int ret;

	ret = weft_queue_map(&cq->queue, regions, map, sizeof(struct weft_cqe), NULL);
	if (ret)
		return ret;
	if (!cq->queue.base)
		return EPROTO;

	weft_lock_init(&cq->lock, single_threaded);
	weft_lock_init(&cq->arming, single_threaded);
	weft_lock_init(&cq->defer.lock, false);
	cq->generation = weft_generation;
	cq->ctl = (void *)cq->queue.base;
	return 0;
}

/* Indices run on: what stood at cons in the old region does so in the new. */
int weft_cq_move(struct weft_cq *cq, struct weft_regions *regions, const struct weft_queue_map *map,
		 struct weft_va_range *room)
{
	static struct weft_cq_ctl nowhere = { .prod = 1 };
	struct weft_queue fresh = {};
	int ret;

	ret = weft_queue_map(&fresh, regions, map, sizeof(struct weft_cqe), room);
	if (!ret && !fresh.base)
		ret = EPROTO;

	weft_queue_unmap(&cq->queue);
	if (ret) {
		/* The kernel fills a queue out of reach: from now on weft_cq_pending() says EIO. */
		cq->queue.entries = 0;
		cq->cons = 0;
		cq->ctl = &nowhere;
		return ret;
	}
	cq->queue = fresh;
	cq->ctl = (void *)fresh.base;
	return 0;
}

int weft_cq_pending(const struct weft_cq *cq)
{
	uint32_t pending = weft_ring_observe(&cq->ctl->prod) - cq->cons;

	/* More than the ring holds: it could not be mapped, or its index was overwritten. */
	return pending <= cq->queue.entries ? (int)pending : -EIO;
}

static const uint8_t wc_opcodes[] = {
	[WEFT_WC_SEND] = IBV_WC_SEND,
	[WEFT_WC_WRITE] = IBV_WC_RDMA_WRITE,
	[WEFT_WC_READ] = IBV_WC_RDMA_READ,
	[WEFT_WC_FADD] = IBV_WC_FETCH_ADD,
	[WEFT_WC_CSWAP] = IBV_WC_COMP_SWAP,
	[WEFT_WC_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[WEFT_WC_BIND_MW] = IBV_WC_BIND_MW,
	[WEFT_WC_REG_MR] = IBV_WC_DRIVER1,	/* kernel users only */
	[WEFT_WC_RECV] = IBV_WC_RECV,
	[WEFT_WC_RECV_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
};

enum ibv_wc_opcode weft_cqe_opcode(const struct weft_cqe *cqe)
{
	if (cqe->opcode >= sizeof(wc_opcodes))
		return IBV_WC_DRIVER1;
	return wc_opcodes[cqe->opcode];
}

unsigned int weft_cqe_flags(const struct weft_cqe *cqe)
{
	unsigned int flags = 0;

	if (cqe->flags & WEFT_WCF_IMM)
		flags |= IBV_WC_WITH_IMM;
	if (cqe->flags & WEFT_WCF_INV)
		flags |= IBV_WC_WITH_INV;
	return flags;
}

int weft_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct weft_cq *cq = weft_cq(ibcq);
	int pending;
	int count;
	int i;

	weft_lock(&cq->lock);
	pending = weft_cq_pending(cq);
	count = pending < num ? pending : num;
	for (i = 0; i < count; i++) {
		const struct weft_cqe *cqe = weft_queue_entry(&cq->queue, cq->cons++);

		wc[i] = (struct ibv_wc){
			.wr_id = cqe->wr_id,
			.status = cqe->status,
			.opcode = weft_cqe_opcode(cqe),
			.vendor_err = cqe->vendor_err,
			.byte_len = cqe->byte_len,
			.invalidated_rkey = cqe->imm_or_inv,
			.qp_num = cqe->qp_num,
			.wc_flags = weft_cqe_flags(cqe),
		};
	}
	if (count > 0)
		weft_ring_publish(&cq->ctl->cons, cq->cons);
	if (count == pending)
		weft_defer_note_empty(&cq->defer);
	weft_unlock(&cq->lock);
	if (count <= 0)
		weft_cq_flush(cq);
	return count;
}

/* A thread that sleeps until an event polls nothing: no post may wait for that any more. */
int weft_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct weft_cq *cq = weft_cq(ibcq);

	weft_lock(&cq->arming);
	if (weft_ring_arm(&cq->ctl->arm, solicited_only))
		weft_defer_arm(&cq->defer);
	weft_unlock(&cq->arming);
	weft_cq_flush(cq);
	return 0;
}

/*
 * libibverbs hands an event of this CQ to the application. It was asked for once; a thread that
 * has armed the CQ since then waits for another.
 */
void weft_cq_event(struct ibv_cq *ibcq)
{
	weft_defer_disarm(&weft_cq(ibcq)->defer);
}

/*
 * What lies between cons and prod is ours alone, so it can be packed: entries
 * that stay move towards prod, in order, and cons skips the hole.
 */
void weft_cq_forget(struct weft_cq *cq, uint32_t qp_num)
{
	uint32_t dropped = 0;
	int pending;
	int i;

	weft_lock(&cq->lock);
	pending = weft_cq_pending(cq);
	for (i = pending - 1; i >= 0; i--) {
		uint32_t at = cq->cons + (uint32_t)i;
		struct weft_cqe *cqe = weft_queue_entry(&cq->queue, at);

		if (cqe->qp_num == qp_num)
			dropped++;
		else if (dropped)
			*(struct weft_cqe *)weft_queue_entry(&cq->queue, at + dropped) = *cqe;
	}
	cq->cons += dropped;
	if (dropped)
		weft_ring_publish(&cq->ctl->cons, cq->cons);
	weft_unlock(&cq->lock);
}
