// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A queue pair: creation with its rings and stream, its end, and the references that
 * iw_cm holds.
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
	if (!READ_ONCE(qp->muted) && qp->ib.event_handler)
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
	mutex_init(&qp->modify_lock);
	refcount_set(&qp->refs, 1);
	ret = init_queues(qp, init, weft_udata_space(udata));
	if (ret)
		goto uncharge;
	ret = respond(qp, init->srq, udata);
	if (ret)
		goto free_queues;
	weft_qp_caps(qp, init->srq, &init->cap);
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

/* Destroy waits for the last one, and RESET for the last but one. */
static void drop_ref(struct weft_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		smp_mb__after_atomic();	/* as below */
	else
		smp_mb();	/* pairs with the one of prepare_to_wait_event() */
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
	WRITE_ONCE(qp->muted, true);
	give_up_connecting(qp);
	weft_stream_destroy(qp->stream);
	mutex_lock(&qp->modify_lock);
	weft_qp_direct_end(qp);
	mutex_unlock(&qp->modify_lock);
	drop_ref(qp);
	wait_var_event(&qp->refs, !refcount_read(&qp->refs));
	weft_forget_qp(ib->send_cq, ib->qp_num);
	weft_forget_qp(ib->recv_cq, ib->qp_num);
	free_queues(qp);
	mutex_destroy(&qp->modify_lock);
	weft_uncharge(&to_weft_dev(ib->device)->num_qp);
	return 0;
}

struct ib_qp *weft_iw_get_qp(struct ib_device *ib, int qpn)
{
	return weft_qp_find(&to_weft_dev(ib)->streams, qpn);
}

void weft_iw_add_ref(struct ib_qp *ib)
{
	refcount_inc(&to_weft_qp(ib)->refs);
}

void weft_iw_rem_ref(struct ib_qp *ib)
{
	drop_ref(to_weft_qp(ib));
}
