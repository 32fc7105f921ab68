// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A queue pair: creation with its rings and stream, the verbs' view of the
 * stream's states, and the references that iw_cm holds.
 */
#include "verbs/qp.h"

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/wait_bit.h>

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

#define HAND_MADE	(IB_QP_AV | IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_SQ_PSN)
#define KNOWN_ACCESS	(IB_ACCESS_SUPPORTED | IB_ACCESS_OPTIONAL)

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

	weft_stream_why(qp->stream, &why);
	if (why.fault != WEFT_FAULT_NONE)
		ibdev_notice_ratelimited(ib, "qp %u ends: %s\n", qpn,
					 weft_fault_info(why.fault)->name);
	else if (why.peer_terminated)
		ibdev_notice_ratelimited(ib, "qp %u: the peer ends it: %s\n", qpn,
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
	if (!READ_ONCE(qp->destroyed) && qp->ib.event_handler)
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

static u32 entries_for(u32 wanted)
{
	return roundup_pow_of_two(max(wanted, 1U));
}

static int init_queues(struct weft_qp *qp, const struct ib_qp_init_attr *init,
		       struct weft_ring_space *space)
{
	const struct ib_qp_cap *cap = &init->cap;
	int ret;

	ret = weft_sendq_init(&qp->sq, entries_for(cap->max_send_wr), max(cap->max_send_sge, 1U),
			      max(cap->max_inline_data, MIN_INLINE), space);
	if (ret || init->srq)
		return ret;
	ret = weft_recvq_init(&qp->rq, entries_for(cap->max_recv_wr), max(cap->max_recv_sge, 1U),
			      space);
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

static int init_stream(struct weft_qp *qp, const struct ib_qp_init_attr *init,
		       struct ib_udata *udata)
{
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
		.db_stat = weft_udata_db_stat(udata),
		.events = &stream_events,
		.owner = qp,
	};

	qp->stream = weft_stream_create(&dev->streams, &cfg);
	if (IS_ERR(qp->stream))
		return PTR_ERR(qp->stream);
	qp->ib.qp_num = weft_stream_qpn(qp->stream);
	return 0;
}

/* What was granted, which is at least what was asked for. */
static void report_caps(const struct weft_qp *qp, bool srq, struct ib_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.ring.entries;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = srq ? 0 : qp->rq.ring.entries;
	cap->max_recv_sge = srq ? 0 : qp->rq.max_sge;
}

static int respond(const struct weft_qp *qp, bool srq, struct ib_udata *udata)
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

	ret = check_init(init);
	if (ret)
		return ret;
	ret = weft_charge(&dev->num_qp, WEFT_MAX_QP);
	if (ret)
		return ret;

	qp->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	refcount_set(&qp->refs, 1);
	ret = init_queues(qp, init, weft_udata_space(udata));
	if (ret)
		goto uncharge;
	ret = respond(qp, init->srq, udata);
	if (ret)
		goto free_queues;
	report_caps(qp, init->srq, &init->cap);
	/* Findable by number from here on, so this comes last. */
	ret = init_stream(qp, init, udata);
	if (ret)
		goto free_queues;
	return 0;

free_queues:
	free_queues(qp);
uncharge:
	weft_uncharge(&dev->num_qp);
	return ret;
}

/* clang-format off */
static const enum ib_qp_state shown_states[] = {
	[WEFT_QP_IDLE] = IB_QPS_INIT,
	[WEFT_QP_RTS] = IB_QPS_RTS,
	[WEFT_QP_CLOSING] = IB_QPS_SQD,
	[WEFT_QP_TERMINATE] = IB_QPS_ERR,
	[WEFT_QP_ERROR] = IB_QPS_ERR,
};

/* clang-format on */

int weft_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct weft_qp *qp = to_weft_qp(ib);
	struct weft_stream_info info;

	weft_stream_query(qp->stream, &info);
	attr->qp_state = shown_states[info.state];
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = info.state == WEFT_QP_CLOSING && !info.sq_drained;
	attr->path_mtu = ib_mtu_int_to_enum(to_weft_dev(ib->device)->netdev->mtu);
	attr->qp_access_flags = qp->access;
	attr->max_rd_atomic = min(info.ord, 255U);
	attr->max_dest_rd_atomic = min(info.ird, 255U);
	attr->port_num = 1;
	report_caps(qp, ib->srq, &attr->cap);

	init->qp_type = ib->qp_type;
	init->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_context = ib->qp_context;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->srq = ib->srq;
	init->cap = attr->cap;
	return 0;
}

/* A second life after an error is not to be had. */
static int to_reset(struct weft_qp *qp, enum weft_qp_state now)
{
	return weft_stream_reset(qp->stream);
}

static int to_init(struct weft_qp *qp, enum weft_qp_state now)
{
	return now == WEFT_QP_IDLE ? 0 : -EINVAL;
}

/* rdma_cm asks for this before it accepts; it means nothing to iWARP. */
static int to_receiving(struct weft_qp *qp, enum weft_qp_state now)
{
	return now == WEFT_QP_IDLE || now == WEFT_QP_RTS ? 0 : -EINVAL;
}

/* Only a connection makes a QP ready; iw_cm brings it, not the application. */
static int to_ready(struct weft_qp *qp, enum weft_qp_state now)
{
	return now == WEFT_QP_RTS ? 0 : -EINVAL;
}

/* rdma_disconnect() comes here and passes our error on to the application. */
static int to_drained(struct weft_qp *qp, enum weft_qp_state now)
{
	weft_stream_close(qp->stream);
	return 0;
}

static int to_error(struct weft_qp *qp, enum weft_qp_state now)
{
	weft_stream_abort(qp->stream);
	return 0;
}

/* clang-format off */
static int (*const transitions[])(struct weft_qp *qp, enum weft_qp_state now) = {
	[IB_QPS_RESET] = to_reset,
	[IB_QPS_INIT] = to_init,
	[IB_QPS_RTR] = to_receiving,
	[IB_QPS_RTS] = to_ready,
	[IB_QPS_SQD] = to_drained,
	[IB_QPS_ERR] = to_error,
};

/* clang-format on */

static int change_state(struct weft_qp *qp, enum ib_qp_state wanted)
{
	struct weft_stream_info info;

	if (wanted >= ARRAY_SIZE(transitions) || !transitions[wanted])
		return -EINVAL;
	weft_stream_query(qp->stream, &info);
	return transitions[wanted](qp, info.state);
}

static int check_modify(const struct ib_qp_attr *attr, int mask)
{
	if (mask & ~IB_QP_ATTR_STANDARD_BITS || mask & IB_QP_CAP)
		return -EOPNOTSUPP;
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EINVAL;
	/* A path set by hand: there is no TCP connection behind it. */
	if (mask & HAND_MADE)
		return -EINVAL;
	if (mask & IB_QP_ACCESS_FLAGS && attr->qp_access_flags & ~KNOWN_ACCESS)
		return -EINVAL;
	return 0;
}

/*
 * Access flags are kept to be shown and no more: rdma_cm hands out 0 for the
 * active side before it connects and never the atomic bit, while programs
 * everywhere read, write and do atomics at such QPs. An STag's own rights rule.
 */
int weft_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct weft_qp *qp = to_weft_qp(ib);
	int ret;

	ret = check_modify(attr, mask);
	if (ret)
		return ret;
	if (mask & IB_QP_ACCESS_FLAGS)
		qp->access = attr->qp_access_flags;
	if (mask & IB_QP_STATE)
		ret = change_state(qp, attr->qp_state);
	return ret;
}

/* Held while iw_cm finds a QP and takes a reference to it; iw_cm holds a lock of its own. */
static DEFINE_SPINLOCK(iw_get_lock);

/* The QP is not found by its number any more: wait for what has just found it. */
static void settle_iw_get(void)
{
	spin_lock_irq(&iw_get_lock);
	spin_unlock_irq(&iw_get_lock);
}

static void drop_ref(struct weft_qp *qp)
{
	if (!refcount_dec_and_test(&qp->refs))
		return;
	smp_mb__after_atomic();	/* pairs with the one of prepare_to_wait_event() */
	wake_up_var(&qp->refs);	/* only an address: the QP may be gone */
}

/* A process that is killed while it connects must not wait for the peer. */
static void give_up_connecting(struct weft_qp *qp)
{
	struct weft_stream_info info;

	weft_stream_query(qp->stream, &info);
	if (info.state == WEFT_QP_IDLE)
		weft_cm_forsake(&to_weft_dev(qp->ib.device)->cm, qp->stream);
}

int weft_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct weft_qp *qp = to_weft_qp(ib);

	/*
	 * What destroying it does to the stream is no news for its owner. A process would
	 * have to acknowledge the event before this returns, and a kernel consumer's handler
	 * would run inside of ib_destroy_qp().
	 */
	WRITE_ONCE(qp->destroyed, true);
	give_up_connecting(qp);
	weft_stream_destroy(qp->stream);
	settle_iw_get();
	drop_ref(qp);
	wait_var_event(&qp->refs, !refcount_read(&qp->refs));
	weft_forget_qp(ib->send_cq, ib->qp_num);
	weft_forget_qp(ib->recv_cq, ib->qp_num);
	free_queues(qp);
	weft_uncharge(&to_weft_dev(ib->device)->num_qp);
	return 0;
}

struct ib_qp *weft_iw_get_qp(struct ib_device *ib, int qpn)
{
	struct ib_qp *found;
	unsigned long flags;

	spin_lock_irqsave(&iw_get_lock, flags);
	found = weft_qp_find(&to_weft_dev(ib)->streams, qpn);
	if (found)
		refcount_inc(&to_weft_qp(found)->refs);
	spin_unlock_irqrestore(&iw_get_lock, flags);
	return found;
}

/* iw_cm takes its reference right after it has found the QP: that one is taken already. */
void weft_iw_add_ref(struct ib_qp *ib)
{
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

static LIST_HEAD(disowned_refs); /* under iw_get_lock */

static struct disowned_ref *take_disowned(const struct ib_qp *qp)
{
	struct disowned_ref *ref, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&iw_get_lock, flags);
	list_for_each_entry(ref, &disowned_refs, entry)
		if (ref->qp == qp) {
			found = ref;
			list_del(&ref->entry);
			break;
		}
	spin_unlock_irqrestore(&iw_get_lock, flags);
	return found;
}

void weft_iw_rem_ref(struct ib_qp *ib)
{
	struct disowned_ref *ref = take_disowned(ib);

	if (!ref)
		drop_ref(to_weft_qp(ib));
	kfree(ref);
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
	struct ib_qp *qp = weft_iw_get_qp(ib, qpn);

	if (!ref || !qp) {
		kfree(ref);
		if (qp)
			drop_ref(to_weft_qp(qp));
		return;
	}
	ref->qp = qp;
	spin_lock_irq(&iw_get_lock);
	list_add_tail(&ref->entry, &disowned_refs);
	spin_unlock_irq(&iw_get_lock);
	drop_ref(to_weft_qp(qp));	/* the one just taken, and that of iw_cm */
	drop_ref(to_weft_qp(qp));
}
