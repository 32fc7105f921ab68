// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared receive queue: the core's object around a receive queue.
 */
#include "verbs/srq.h"

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "base/limits.h"
#include "uapi/weft-abi.h"
#include "verbs/device.h"
#include "verbs/post.h"
#include "verbs/ucontext.h"

static void report_limit(struct work_struct *work)
{
	struct weft_srq *srq = container_of(work, struct weft_srq, limit_work);
	struct ib_event ev = {
		.device = srq->ib.device,
		.element.srq = &srq->ib,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (srq->ib.event_handler)
		srq->ib.event_handler(&ev, srq->ib.srq_context);
}

/* A stream fetches with its socket locked; that is no place for the owner's code. */
static void on_limit(void *owner)
{
	struct weft_srq *srq = owner;

	schedule_work(&srq->limit_work);
}

static int exchange_create_srq(struct weft_srq *srq, struct ib_udata *udata)
{
	struct weft_uresp_create_srq resp = {};
	struct weft_ureq_create_srq req = {};
	int ret;

	if (!udata)
		return 0;
	ret = ib_copy_from_udata(&req, udata, min(sizeof(req), udata->inlen)) ?:
		      weft_udata_check(udata, sizeof(req));
	if (ret)
		return ret;
	if (req.flags & ~WEFT_SRQ_DOORBELL || req.reserved)
		return -EOPNOTSUPP;
	/* A process that says so rings when a message waits for a receive. */
	srq->rq.has_doorbell = req.flags & WEFT_SRQ_DOORBELL;
	weft_ring_describe(&srq->rq.ring, &resp.rq);
	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

static int init_srq_ring(struct weft_srq *srq, struct ib_srq_attr *attr, struct ib_udata *udata)
{
	int ret;

	ret = weft_recvq_init(&srq->rq, roundup_pow_of_two(attr->max_wr), max(attr->max_sge, 1U),
			      weft_udata_ring_space(udata));
	if (ret)
		return ret;
	ret = exchange_create_srq(srq, udata);
	if (ret) {
		weft_recvq_free(&srq->rq);
		return ret;
	}
	srq->rq.shared = true;
	srq->rq.limit_event = on_limit;
	srq->rq.owner = srq;
	attr->max_wr = srq->rq.ring.entries;
	attr->max_sge = srq->rq.max_sge;
	return 0;
}

/**
 * weft_create_srq - make a shared receive queue
 * @ib: allocated by the core
 * @init: what is wanted; receives what was granted, at least that
 * @udata: tells a process where to map it; NULL for a kernel consumer
 *
 * Context: may sleep. Return: 0 or -errno.
 */
int weft_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ib->device);
	struct weft_srq *srq = to_weft_srq(ib);
	int ret;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > WEFT_MAX_WR ||
	    init->attr.max_sge > WEFT_MAX_SGE)
		return -EINVAL;

	ret = weft_charge(&dev->num_srq, WEFT_MAX_SRQ);
	if (ret)
		return ret;
	INIT_WORK(&srq->limit_work, report_limit);
	mutex_init(&srq->resizing);
	ret = init_srq_ring(srq, &init->attr, udata);
	if (ret) {
		weft_uncharge(&dev->num_srq);
		return ret;
	}
	weft_tracked_init(&srq->tracked);
	return 0;
}

/* The command has no answer, so the process says where it wants to read it. */
static int tell_map(const struct weft_ring *ring, struct ib_udata *udata)
{
	struct weft_ureq_modify_srq req;
	struct weft_queue_map map;
	int ret;

	if (!udata)
		return 0;
	if (udata->inlen < sizeof(req))
		return -EOPNOTSUPP;
	ret = weft_udata_check(udata, sizeof(req)) ?: ib_copy_from_udata(&req, udata, sizeof(req));
	if (ret)
		return ret;
	weft_ring_describe(ring, &map);
	return copy_to_user(u64_to_user_ptr(req.map), &map, sizeof(map)) ? -EFAULT : 0;
}

static int resize_srq(struct weft_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct weft_ring ring;
	int ret;

	if (!max_wr || max_wr > WEFT_MAX_WR)
		return -EINVAL;
	ret = weft_ring_init(&ring, roundup_pow_of_two(max_wr), srq->rq.ring.stride,
			     srq->rq.user ? weft_udata_ring_space(udata) : NULL);
	if (ret)
		return ret;
	/* Before the switch: a process that does not learn of it could not go on. */
	mutex_lock(&srq->resizing);
	ret = tell_map(&ring, srq->rq.user ? udata : NULL) ?: weft_recvq_resize(&srq->rq, &ring);
	mutex_unlock(&srq->resizing);
	weft_ring_free(&ring);
	return ret;
}

/**
 * weft_modify_srq - resize, arm the limit event
 * @ib: the queue; the process does not post to it while it is resized
 * @attr: new values
 * @mask: IB_SRQ_MAX_WR, IB_SRQ_LIMIT; both are done in this order
 * @udata: tells a process where to map the new ring
 *
 * Context: may sleep. Return: 0; -EBUSY when more receives wait than fit, -EINVAL.
 */
int weft_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		    struct ib_udata *udata)
{
	struct weft_srq *srq = to_weft_srq(ib);
	int ret;

	ret = weft_udata_check(udata, sizeof(struct weft_ureq_modify_srq));
	if (ret)
		return ret;
	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EOPNOTSUPP;
	if ((mask & IB_SRQ_MAX_WR) && (mask & IB_SRQ_LIMIT) && attr->srq_limit > attr->max_wr)
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR)
		ret = resize_srq(srq, attr->max_wr, udata);
	if (!ret && (mask & IB_SRQ_LIMIT))
		ret = weft_recvq_set_limit(&srq->rq, attr->srq_limit);
	return ret;
}

int weft_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	struct weft_recvq_details d;

	weft_recvq_inspect(&to_weft_srq(ib)->rq, &d);
	attr->max_wr = d.entries;
	attr->max_sge = d.max_sge;
	attr->srq_limit = d.limit;
	return 0;
}

/**
 * weft_destroy_srq - destroy a queue that no QP uses any more
 * @ib: the queue
 * @udata: unused
 *
 * Context: may sleep. Return: 0.
 */
int weft_destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	struct weft_srq *srq = to_weft_srq(ib);

	weft_tracked_hide(&srq->tracked);
	cancel_work_sync(&srq->limit_work);
	weft_tracked_end(&srq->tracked);
	/* A process whose device is gone may still post, and is to see that it fails. */
	weft_recvq_set_flushing(&srq->rq, true);
	weft_recvq_free(&srq->rq);
	mutex_destroy(&srq->resizing);
	weft_uncharge(&to_weft_dev(ib->device)->num_srq);
	return 0;
}

int weft_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad)
{
	return weft_post_recv_list(&to_weft_srq(ib)->rq, wr, bad);
}
