// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queue: the core's object around a ring of completions.
 */
#include "verbs/cq.h"

#include <linux/log2.h>
#include <linux/minmax.h>

#include "base/limits.h"
#include "engine/life/stream.h"
#include "uapi/weft-abi.h"
#include "verbs/device.h"
#include "verbs/qp.h"
#include "verbs/ucontext.h"

/* Completions taken out of the ring in one go, on the stack. */
#define POLL_BATCH 16

static void report_overflow(struct work_struct *work)
{
	struct weft_ibcq *cq = container_of(work, struct weft_ibcq, overflow_work);
	struct ib_event ev = {
		.device = cq->ib.device,
		.element.cq = &cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ib.event_handler)
		cq->ib.event_handler(&ev, cq->ib.cq_context);
}

static void call_handler(void *owner)
{
	struct weft_ibcq *cq = owner;

	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static void call_handler_on_vector(void *owner)
{
	struct weft_ibcq *cq = owner;

	weft_vector_fire(&cq->vector);
}

/* The context that posts may hold locks; that is no place for the owner's code. */
static void on_overflow(void *owner)
{
	struct weft_ibcq *cq = owner;

	schedule_work(&cq->overflow_work);
}

static const struct weft_cq_events user_events = {
	.completion = call_handler, /* a process is only woken, which can be done anywhere */
	.overflow = on_overflow,
};

static const struct weft_cq_events kernel_events = {
	.completion = call_handler_on_vector,
	.overflow = on_overflow,
};

static int respond_create_cq(const struct weft_ring *ring, struct ib_udata *udata)
{
	struct weft_uresp_create_cq resp = {};

	if (!udata)
		return 0;
	weft_ring_describe(ring, &resp.cq);
	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

/**
 * weft_create_cq - make a completion queue
 * @ib: allocated by the core; its size becomes what was granted
 * @attr: what is wanted
 * @udata: tells a process where to map it; NULL for a kernel consumer
 *
 * Context: may sleep. Return: 0 or -errno.
 */
int weft_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ib->device);
	struct weft_ibcq *cq = to_weft_cq(ib);
	int ret;

	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > WEFT_MAX_CQE)
		return -EINVAL;
	if (attr->comp_vector >= ib->device->num_comp_vectors)
		return -EINVAL;
	ret = weft_udata_check(udata, 0) ?: weft_charge(&dev->num_cq, WEFT_MAX_CQ);
	if (ret)
		return ret;

	INIT_WORK(&cq->overflow_work, report_overflow);
	weft_vector_init(&cq->vector, attr->comp_vector, call_handler, cq);
	ret = weft_cq_init(&cq->cq, roundup_pow_of_two(attr->cqe), weft_udata_ring_space(udata),
			   udata ? &user_events : &kernel_events, cq, &dev->counters);
	if (ret)
		goto uncharge;
	mutex_init(&cq->resizing);
	cq->cq.stamped = attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	ret = respond_create_cq(&cq->cq.ring, udata);
	if (ret)
		goto free_ring;
	ib->cqe = cq->cq.ring.entries;
	weft_tracked_init(&cq->tracked);
	return 0;

free_ring:
	weft_cq_free(&cq->cq);
uncharge:
	weft_uncharge(&dev->num_cq);
	return ret;
}

/**
 * weft_resize_cq - go on in a ring of another size
 * @ib: the queue; the process does not poll it meanwhile
 * @cqe: entries wanted
 * @udata: tells a process where to map the new ring
 *
 * Context: may sleep. Return: 0, -EBUSY when more completions wait than fit.
 */
int weft_resize_cq(struct ib_cq *ib, u32 cqe, struct ib_udata *udata)
{
	struct weft_ibcq *cq = to_weft_cq(ib);
	struct weft_ring ring;
	int ret;

	if (!cqe || cqe > WEFT_MAX_CQE)
		return -EINVAL;
	ret = weft_udata_check(udata, 0);
	if (ret)
		return ret;
	ret = weft_ring_init(&ring, roundup_pow_of_two(cqe), sizeof(struct weft_cqe),
			     weft_udata_ring_space(udata));
	if (ret)
		return ret;
	/* Before the switch: a process that does not learn of it could not go on. */
	mutex_lock(&cq->resizing);
	ret = respond_create_cq(&ring, udata) ?: weft_cq_resize(&cq->cq, &ring);
	if (!ret)
		ib->cqe = cq->cq.ring.entries;
	mutex_unlock(&cq->resizing);
	weft_ring_free(&ring);
	return ret;
}

/**
 * weft_modify_cq - moderate events
 * @ib: the queue
 * @count: completions to an event
 * @period: microseconds after which fewer will do
 *
 * Context: may sleep. Return: 0.
 */
int weft_modify_cq(struct ib_cq *ib, u16 count, u16 period)
{
	weft_cq_moderate(&to_weft_cq(ib)->cq, count, period);
	return 0;
}

/**
 * weft_destroy_cq - destroy a queue that no QP uses any more
 * @ib: the queue
 * @udata: unused
 *
 * Context: may sleep. Return: 0.
 */
int weft_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct weft_ibcq *cq = to_weft_cq(ib);

	weft_tracked_hide(&cq->tracked);
	cancel_work_sync(&cq->overflow_work);
	weft_vector_sync(&cq->vector);
	weft_tracked_end(&cq->tracked);
	weft_cq_free(&cq->cq);
	mutex_destroy(&cq->resizing);
	weft_uncharge(&to_weft_dev(ib->device)->num_cq);
	return 0;
}

/* clang-format off */
static const enum ib_wc_opcode wc_opcodes[] = {
	[WEFT_WC_SEND] = IB_WC_SEND,
	[WEFT_WC_WRITE] = IB_WC_RDMA_WRITE,
	[WEFT_WC_READ] = IB_WC_RDMA_READ,
	[WEFT_WC_FADD] = IB_WC_FETCH_ADD,
	[WEFT_WC_CSWAP] = IB_WC_COMP_SWAP,
	[WEFT_WC_LOCAL_INV] = IB_WC_LOCAL_INV,
	[WEFT_WC_BIND_MW] = IB_WC_BIND_MW,
	[WEFT_WC_REG_MR] = IB_WC_REG_MR,
	[WEFT_WC_RECV] = IB_WC_RECV,
	[WEFT_WC_RECV_IMM] = IB_WC_RECV_RDMA_WITH_IMM,
};

/* clang-format on */

static void fill_wc(struct ib_wc *wc, const struct weft_cqe *cqe, struct ib_qp *qp)
{
	*wc = (struct ib_wc){
		.wr_id = cqe->wr_id,
		.status = cqe->status,
		.opcode = wc_opcodes[cqe->opcode],
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.qp = qp,
	};
	if (cqe->flags & WEFT_WCF_IMM) {
		wc->wc_flags = IB_WC_WITH_IMM;
		wc->ex.imm_data = (__force __be32)cqe->imm_or_inv;
	} else if (cqe->flags & WEFT_WCF_INV) {
		wc->wc_flags = IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = cqe->imm_or_inv;
	}
}

/*
 * Returns how many of @count became work completions: all but those of no QP. A
 * consumer does not poll completions of a QP it is destroying.
 */
static int fill_wcs(struct weft_device *dev, const struct weft_cqe *cqe, u32 count,
		    struct ib_wc *wc)
{
	struct weft_qp *qp = NULL;
	int filled = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		if (!qp || qp->ib.qp_num != cqe[i].qp_num)
			qp = weft_stream_find_owner(&dev->streams, cqe[i].qp_num);
		if (qp)
			fill_wc(&wc[filled++], &cqe[i], &qp->ib);
	}
	return filled;
}

/**
 * weft_poll_cq - take completions for a kernel consumer
 * @ib: its queue; a process reads its own
 * @num: at most so many
 * @wc: where to
 *
 * Context: any. Return: how many, or -EOPNOTSUPP.
 */
int weft_poll_cq(struct ib_cq *ib, int num, struct ib_wc *wc)
{
	struct weft_cq *cq = &to_weft_cq(ib)->cq;
	struct weft_cqe cqe[POLL_BATCH];
	int filled = 0;
	u32 got;

	if (cq->user)
		return -EOPNOTSUPP;
	while (filled < num) {
		got = weft_cq_poll(cq, cqe, min_t(u32, num - filled, POLL_BATCH));
		if (!got)
			break;
		filled += fill_wcs(to_weft_dev(ib->device), cqe, got, wc + filled);
	}
	return filled;
}

/**
 * weft_req_notify_cq - ask for one event
 * @ib: the queue
 * @flags: for which completions, and whether to tell of those that wait
 *
 * Context: any. Return: 1 when asked to tell and completions wait, else 0.
 */
int weft_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	bool waiting;

	waiting = weft_cq_arm(&to_weft_cq(ib)->cq, solicited ? WEFT_ARM_SOLICITED : WEFT_ARM_NEXT);
	return waiting && (flags & IB_CQ_REPORT_MISSED_EVENTS);
}

/**
 * weft_forget_qp - take a QP that is going away out of a queue
 * @ib: its queue
 * @qpn: its number; nothing posts for it any more
 *
 * A kernel consumer that polls later must not meet a QP that is gone, nor hear
 * of it once it frees its queue: ib_core ends the consumer's work before it
 * destroys the queue, so what is held back is told while there is a QP.
 * Context: may sleep.
 */
void weft_forget_qp(struct ib_cq *ib, u32 qpn)
{
	struct weft_ibcq *cq = to_weft_cq(ib);

	if (cq->cq.user)
		return;
	weft_cq_tell_held(&cq->cq);
	weft_vector_sync(&cq->vector);
	weft_cq_purge(&cq->cq, qpn);
}
