// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue pairs. The connection manager moves them between states inside the
 * kernel, so nothing here depends on the state libibverbs remembers: receives
 * may be posted as soon as the QP exists, and it is the kernel that decides
 * what becomes of a send.
 */
#include "qp.h"

#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "pd.h"
#include "process.h"
#include "wr.h"

PABI_RESP(create_qp_resp, ib_uverbs_create_qp_resp, weft_uresp_create_qp);

/* Attributes that may be named as long as they ask for nothing. */
static const uint32_t tolerated = IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;

static int check_attr(const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | tolerated;

	if (attr->qp_type != IBV_QPT_RC || (attr->comp_mask & ~known))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) && attr->max_tso_header)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (attr->send_ops_flags & ~weft_wr_buildable))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || !attr->send_cq ||
	    !attr->recv_cq)
		return EINVAL;
	return 0;
}

static int map_queues(struct weft_qp *qp, struct ibv_context *context,
		      const struct ibv_qp_init_attr_ex *attr,
		      const struct weft_uresp_create_qp *drv)
{
	const struct weft_sq_cap cap = {
		.max_wr = attr->cap.max_send_wr,
		.max_sge = attr->cap.max_send_sge,
		.max_inline = drv->max_inline,
		.send_cq = &weft_cq(attr->send_cq)->defer,
		.recv_cq = &weft_cq(attr->recv_cq)->defer,
		.signal_all = attr->sq_sig_all,
		.single_threaded = weft_pd_is_single_threaded(attr->pd),
	};
	const struct weft_rq_cap rq_cap = {
		.max_wr = attr->cap.max_recv_wr,
		.max_sge = attr->cap.max_recv_sge,
		.single_threaded = cap.single_threaded,
	};
	struct weft_regions *regions = weft_regions(context);
	int ret;

	weft_doorbell_init(&qp->sq.doorbell, context->cmd_fd, UVERBS_OBJECT_QP, qp->vqp.qp.handle);
	ret = weft_sq_init(&qp->sq, regions, &drv->sq, &cap);
	if (ret)
		return ret;

	qp->rq.doorbell = &qp->sq.doorbell;
	ret = weft_rq_init(&qp->rq, regions, &drv->rq, &rq_cap);
	if (ret)
		weft_queue_unmap(&qp->sq.queue);
	return ret;
}

struct ibv_qp *weft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex ask = *attr;
	union create_qp_resp resp = {};
	struct pabi_create_qp cmd = {};
	struct weft_qp *qp;
	int ret;

	ret = check_attr(attr);
	if (ret)
		goto err;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	qp->generation = weft_generation;
	ask.comp_mask &= ~tolerated;
	ret = ibv_cmd_create_qp_ex(context, &qp->vqp, &ask, &cmd, sizeof(cmd), &resp.core,
				   sizeof(resp));
	if (ret)
		goto err_free;
	/* From here on ask.cap is what was granted. */
	ask.cap.max_inline_data = resp.drv.max_inline;
	ret = map_queues(qp, context, &ask, &resp.drv);
	if (ret)
		goto err_destroy;

	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		weft_wr_init(&qp->vqp.qp_ex, attr->send_ops_flags);
		qp->vqp.comp_mask |= PABI_QP_EX;
	}
	attr->cap = ask.cap;
	return &qp->vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_free:
	free(qp);
err:
	errno = ret;
	return NULL;
}

struct ibv_qp *weft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ask = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *ibqp;

	ibqp = weft_create_qp_ex(pd->context, &ask);
	if (ibqp)
		attr->cap = ask.cap;
	return ibqp;
}

int weft_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct pabi_query_qp cmd = {};

	return ibv_cmd_query_qp(ibqp, attr, mask, init_attr, &cmd, sizeof(cmd));
}

/* A QP that is reset or gone has no completions: old ones are dropped. */
static void forget_completions(struct ibv_qp *ibqp)
{
	weft_cq_forget(weft_cq(ibqp->send_cq), ibqp->qp_num);
	if (ibqp->recv_cq != ibqp->send_cq)
		weft_cq_forget(weft_cq(ibqp->recv_cq), ibqp->qp_num);
}

int weft_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct pabi_modify_qp cmd = {};
	int ret;

	ret = weft_must_own(ibqp->context, weft_qp(ibqp)->generation);
	if (ret)
		return ret;
	weft_defer_flush_qp(&weft_qp(ibqp)->sq.defer);
	ret = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (ret || !(mask & IBV_QP_STATE))
		return ret;
	/* librdmacm names no address vector: the kernel connects that one. */
	if (attr->qp_state == IBV_QPS_RTR && (mask & IBV_QP_AV))
		weft_qp(ibqp)->sq.direct = true;
	if (attr->qp_state == IBV_QPS_RESET) {
		weft_qp(ibqp)->sq.direct = false;
		forget_completions(ibqp);
	}
	return 0;
}

/* One that is the parent's is let go of, and its completions stay for the parent. */
int weft_destroy_qp(struct ibv_qp *ibqp)
{
	struct weft_qp *qp = weft_qp(ibqp);
	int ret;

	if (weft_owns(ibqp->context, qp->generation)) {
		weft_defer_flush_qp(&qp->sq.defer);
		weft_defer_remove(&qp->sq.defer);
		ret = ibv_cmd_destroy_qp(ibqp);
		if (ret)
			return ret;
		forget_completions(ibqp);
	} else {
		weft_defer_remove(&qp->sq.defer);
	}

	weft_queue_unmap(&qp->rq.queue);
	weft_queue_unmap(&qp->sq.queue);
	free(qp);
	return 0;
}

int weft_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (ibqp->srq) {
		*bad_wr = wr;
		return EINVAL;
	}
	return weft_rq_post(&weft_qp(ibqp)->rq, wr, bad_wr);
}

/* Binding a window of type 1: the library, not the caller, picks the new key. */
int weft_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags & ~IBV_SEND_INLINE,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info,
		},
	};
	struct ibv_send_wr *bad_wr;
	int ret;

	if (!bind->bind_info.mr && bind->bind_info.length)
		return EINVAL;

	ret = weft_post_send(ibqp, &wr, &bad_wr);
	if (!ret)
		mw->rkey = wr.bind_mw.rkey;
	return ret;
}
