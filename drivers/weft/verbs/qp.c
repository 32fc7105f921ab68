// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A queue pair: creation with its rings and stream, its end, and the references that
 * iw_cm holds.
 */
#include "verbs/qp.h"

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>

#include "base/compat.h"
#include "cm/cm.h"
#include "engine/life/introspect.h"
#include "engine/life/stream.h"
#include "uapi/weft-abi.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/pd.h"
#include "verbs/srq.h"
#include "verbs/ucontext.h"

/* Programs that take what they get, rsockets among them, should get some. */
#define MIN_INLINE	96U

static const enum ib_event_type qp_events[] = {
	[WEFT_STREAM_FATAL] = IB_EVENT_QP_FATAL,
	[WEFT_STREAM_REQ_ERR] = IB_EVENT_QP_REQ_ERR,
	[WEFT_STREAM_ACCESS_ERR] = IB_EVENT_QP_ACCESS_ERR,
	[WEFT_STREAM_LAST_WQE] = IB_EVENT_QP_LAST_WQE_REACHED,
};

/* One line for the operator; what goes on is counted (verbs/stats.c). */
static void log_end(const struct weft_qp *qp)
{
	struct ib_device *ib = qp->ib.device;
	u32 qpn = qp->ib.qp_num;
	struct weft_stream_end why;

	weft_stream_get_error(qp->stream, &why);
	if (why.fault != WEFT_FAULT_NONE)
		ibdev_notice_ratelimited(ib, "QP %u: error detected: %s\n", qpn,
					 weft_fault_info(why.fault)->name);
	else if (why.peer_terminated)
		ibdev_notice_ratelimited(ib, "QP %u: Terminate received: %s\n", qpn,
					 weft_fault_info(why.peer_fault)->name);
}

static void on_async(void *owner, enum weft_stream_event event)
{
	struct weft_qp *qp = owner;
	struct ib_event ev = {
		.device = qp->ib.device,
		.element.qp = &qp->ib,
		.event = qp_events[event],
	};

	if (event != WEFT_STREAM_LAST_WQE)
		log_end(qp);
	if (!READ_ONCE(qp->muted) && !weft_tracked_is_hidden(&qp->tracked) && qp->ib.event_handler)
		qp->ib.event_handler(&ev, qp->ib.qp_context);
}

static const struct weft_stream_qp_events stream_events = {
	.async = on_async,
};

static int check_init(const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (init->qp_type != IB_QPT_RC || init->create_flags)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > WEFT_MAX_WR || cap->max_send_sge > WEFT_MAX_SGE ||
	    cap->max_inline_data > WEFT_MAX_INLINE)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > WEFT_MAX_WR || cap->max_recv_sge > WEFT_MAX_SGE))
		return -EINVAL;
	return 0;
}

static int init_queues(struct weft_qp *qp, const struct ib_qp_init_attr *init,
		       struct weft_ring_space *space)
{
	const struct ib_qp_cap *cap = &init->cap;
	int ret;

	ret = weft_sendq_init(&qp->sq, roundup_pow_of_two(max(cap->max_send_wr, 1U)),
			      max(cap->max_send_sge, 1U), max(cap->max_inline_data, MIN_INLINE),
			      space);
	if (ret || init->srq)
		return ret;
	ret = weft_recvq_init(&qp->rq, roundup_pow_of_two(max(cap->max_recv_wr, 1U)),
			      max(cap->max_recv_sge, 1U), space);
	if (ret)
		weft_sendq_free(&qp->sq);
	return ret;
}

static void free_queues(struct weft_qp *qp)
{
	if (!qp->ib.srq)
		weft_recvq_free(&qp->rq);
	weft_sendq_free(&qp->sq);
}

static int init_qp_stream(struct weft_qp *qp, const struct ib_qp_init_attr *init,
			  struct ib_udata *udata)
{
	struct weft_ucontext *uctx = rdma_udata_to_drv_context(udata, struct weft_ucontext, ib);
	struct weft_device *dev = to_weft_dev(qp->ib.device);
	struct ib_pd *rq_pd = init->srq ? init->srq->pd : qp->ib.pd;
	struct weft_stream_config cfg = {
		.ifindex = dev->netdev->ifindex,
		.pd = to_weft_pd(qp->ib.pd)->number,
		.rq_pd = to_weft_pd(rq_pd)->number,
		.kernel = !udata,
		.signal_all = qp->signal_all,
		.shared_rq = init->srq,
		.sq = &qp->sq,
		.rq = init->srq ? &to_weft_srq(init->srq)->rq : &qp->rq,
		.send_cq = &to_weft_cq(init->send_cq)->cq,
		.recv_cq = &to_weft_cq(init->recv_cq)->cq,
		.stags = &dev->stags,
		.counters = &dev->counters,
		.db_stat = uctx ? &uctx->db_stat : NULL,
		.events = &stream_events,
		.owner = qp,
	};

	qp->stream = weft_stream_create(&dev->streams, &cfg);
	if (IS_ERR(qp->stream))
		return PTR_ERR(qp->stream);
	weft_stream_set_access(qp->stream, weft_qp_attrs_access(&qp->attrs));
	qp->ib.qp_num = weft_stream_qpn(qp->stream);
	return 0;
}

/**
 * weft_qp_caps - what was granted, which is at least what was asked for
 * @qp: QP whose queues are there
 * @srq: it has a shared receive queue
 * @cap: written completely
 *
 * Context: any.
 */
void weft_qp_caps(const struct weft_qp *qp, bool srq, struct ib_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.ring.entries;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = srq ? 0 : qp->rq.ring.entries;
	cap->max_recv_sge = srq ? 0 : qp->rq.max_sge;
}

static int respond_create_qp(const struct weft_qp *qp, bool srq, struct ib_udata *udata)
{
	struct weft_uresp_create_qp resp = {
		.max_inline = qp->sq.max_inline,
	};

	if (!udata)
		return 0;
	weft_ring_describe(&qp->sq.ring, &resp.sq);
	if (!srq)
		weft_ring_describe(&qp->rq.ring, &resp.rq);
	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

int weft_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ib->device);
	struct weft_qp *qp = to_weft_qp(ib);
	int ret;

	ret = check_init(init) ?: weft_udata_check(udata, 0);
	if (ret)
		return ret;
	ret = weft_charge(&dev->num_qp, WEFT_MAX_QP);
	if (ret)
		return ret;

	qp->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	mutex_init(&qp->modify_lock);
	weft_tracked_init(&qp->tracked);
	ret = init_queues(qp, init, weft_udata_ring_space(udata));
	if (ret)
		goto uncharge;
	ret = respond_create_qp(qp, init->srq, udata);
	if (ret)
		goto free_queues;
	weft_qp_caps(qp, init->srq, &init->cap);
	/* Findable by number from here on, so this comes last. */
	ret = init_qp_stream(qp, init, udata);
	if (ret)
		goto free_queues;
	return 0;

free_queues:
	free_queues(qp);
uncharge:
	weft_uncharge(&dev->num_qp);
	return ret;
}

int weft_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ib->device);
	struct weft_qp *qp = to_weft_qp(ib);
	struct weft_stream_info info;

	/*
	 * What destroying it does to the stream is no news for its owner. A process would
	 * have to acknowledge the event before this returns, and a kernel consumer's handler
	 * would run inside of ib_destroy_qp().
	 */
	weft_tracked_hide(&qp->tracked);
	/* A process that is killed while it connects must not wait for the peer. */
	weft_stream_query(qp->stream, &info);
	if (info.state == WEFT_QP_IDLE)
		weft_cm_cancel_pending(&dev->cm, qp->stream);
	weft_stream_end(qp->stream);
	mutex_lock(&qp->modify_lock);
	weft_qp_direct_end(qp);
	mutex_unlock(&qp->modify_lock);
	/*
	 * What iw_cm has found by its number it takes a reference to in the same critical
	 * section, with interrupts off: a grace period is enough. Mostly there is nothing to
	 * wait for. Pairs with weft_iw_add_ref().
	 */
	if (atomic_read_acquire(&qp->lookups))
		synchronize_rcu();
	weft_tracked_end(&qp->tracked);
	weft_stream_drain(qp->stream);
	weft_stream_put(qp->stream);
	weft_forget_qp(ib->send_cq, ib->qp_num);
	weft_forget_qp(ib->recv_cq, ib->qp_num);
	free_queues(qp);
	mutex_destroy(&qp->modify_lock);
	weft_uncharge(&dev->num_qp);
	return 0;
}

/*
 * A process may name any number. What it connects to a peer of its choice has to be its own, or
 * of another process of its user, which it can do anything to. Those of the kernel:
 * verbs/iw.c.
 */
static bool may_name(const struct weft_qp *qp)
{
	struct task_struct *maker = qp->ib.res.task;

	if (!qp->ib.uobject || !maker)
		return true;
	return same_thread_group(maker, current) ||
	       uid_eq(task_cred_xxx(maker, euid), current_euid());
}

/*
 * It may be the number of a QP that is being destroyed. Under the lock of the index it is not
 * gone, and its end sees the lookup.
 */
struct ib_qp *weft_iw_get_qp(struct ib_device *ib, int qpn)
{
	struct xarray *streams = &to_weft_dev(ib)->streams.xa;
	struct weft_stream *st;
	struct weft_qp *qp;
	unsigned long flags;

	xa_lock_irqsave(streams, flags);
	st = xa_load(streams, qpn);
	qp = st ? weft_stream_owner(st) : NULL;
	if (qp && !may_name(qp))
		qp = NULL;
	if (qp)
		atomic_inc(&qp->lookups);
	xa_unlock_irqrestore(streams, flags);
	return qp ? &qp->ib : NULL;
}

void weft_iw_add_ref(struct ib_qp *ib)
{
	struct weft_qp *qp = to_weft_qp(ib);

	refcount_inc(&qp->tracked.refs);
	atomic_inc(&qp->iw_refs);
	atomic_dec_if_positive(&qp->lookups); /* ordered behind the reference */
}

static void drop_iw_ref(struct weft_qp *qp)
{
	if (atomic_dec_and_test(&qp->iw_refs))
		wake_up_var(&qp->iw_refs);	/* RESET; the full barrier is the decrement's */
	weft_tracked_put(&qp->tracked);
}

/*
 * References that iw_cm has and a QP does not wait for. iw_cm puts each some time later, when
 * the QP may be gone: then @qp is only an address. Should it be another QP's by then, that one
 * waits until iw_cm has put both.
 */
struct disowned_ref {
	struct list_head entry;
	const struct ib_qp *qp;
};

static DEFINE_SPINLOCK(disowned_lock); /* disowned_refs */
static LIST_HEAD(disowned_refs);

void weft_iw_rem_ref(struct ib_qp *ib)
{
	struct disowned_ref *ref, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&disowned_lock, flags);
	list_for_each_entry(ref, &disowned_refs, entry)
		if (ref->qp == ib) {
			found = ref;
			list_del(&ref->entry);
			break;
		}
	spin_unlock_irqrestore(&disowned_lock, flags);
	if (!found)
		drop_iw_ref(to_weft_qp(ib));
	kfree(found);
}

/**
 * weft_iw_disown - a QP does not wait for the reference of an id that is out of use
 * @ib: the device
 * @qpn: of a QP that iw_cm has a reference to
 *
 * iw_cm keeps the reference until its id is destroyed, and programs destroy the QP before it.
 * Context: process. Without memory for it, the QP waits.
 */
void weft_iw_disown(struct ib_device *ib, u32 qpn)
{
	struct disowned_ref *ref = kmalloc(sizeof(*ref), GFP_KERNEL);
	struct xarray *streams = &to_weft_dev(ib)->streams.xa;
	struct weft_stream *st;
	struct weft_qp *qp;

	/* Not what iw_cm names by itself: any QP that is still found by its number. */
	xa_lock_irq(streams);
	st = xa_load(streams, qpn);
	qp = st ? weft_stream_owner(st) : NULL;
	if (qp && !weft_tracked_get_hidden(&qp->tracked))
		qp = NULL;
	xa_unlock_irq(streams);
	if (ref && qp) {
		ref->qp = &qp->ib;
		spin_lock_irq(&disowned_lock);
		list_add_tail(&ref->entry, &disowned_refs);
		spin_unlock_irq(&disowned_lock);
		ref = NULL;
		drop_iw_ref(qp);
	}
	kfree(ref);
	if (qp)
		weft_tracked_put(&qp->tracked);
}
