// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Objects of every kind, made, changed and destroyed, in the context and PD of all. */
#define _GNU_SOURCE
#include "races.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#define REGION (64U << 10)

static bool pds(unsigned int nth)
{
	struct ibv_pd *pd = ibv_alloc_pd(home.context);

	TRY(pd);
	TRY0(ibv_dealloc_pd(pd));
	return true;
}

static bool cqs(unsigned int nth)
{
	struct ibv_cq *cq = ibv_create_cq(home.context, 16, NULL, home.channel, 0);
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { 4, 100 } };
	struct ibv_wc wc;

	TRY(cq);
	TRY0(ibv_req_notify_cq(cq, nth % 2));
	TRY0(ibv_resize_cq(cq, nth % 3 ? 1000 : 100));
	TRY(ibv_poll_cq(cq, 1, &wc) == 0);
	TRY0(ibv_modify_cq(cq, &attr));
	TRY0(ibv_resize_cq(cq, 16));
	TRY0(ibv_destroy_cq(cq));
	return true;
}

static bool to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	TRY0(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	return true;
}

static bool use_qp(struct ibv_qp *qp, unsigned int nth)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_recv_wr *bad, wr = { .wr_id = ~0ULL };

	TRY0(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	attr.qp_access_flags = nth % 2 ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	TRY0(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
	if (!qp->srq)
		TRY0(ibv_post_recv(qp, &wr, &bad));
	if (nth % 3 == 1)
		return to_state(qp, IBV_QPS_RESET);
	if (nth % 3 == 2)
		return to_state(qp, IBV_QPS_ERR);
	return true;
}

/* On CQs that others poll, arm and resize. */
static bool qps(unsigned int nth)
{
	struct ibv_qp_init_attr attr = { .cap = { 64 << nth % 4, 64, 2, 2, 64 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = home.cq[0],
					 .recv_cq = home.cq[nth % 2] };
	struct ibv_qp *qp = ibv_create_qp(home.pd, &attr);

	TRY(qp);
	if (!use_qp(qp, nth))
		return false;
	reap(home.cq[nth % 2]);
	TRY0(ibv_destroy_qp(qp));
	return true;
}

static bool change_srq(struct ibv_srq *srq, unsigned int nth)
{
	struct ibv_srq_attr attr = { .max_wr = 1000, .srq_limit = 1 };
	struct ibv_recv_wr *bad, wr = {};

	for (int i = 0; i < 5; i++)
		TRY0(ibv_post_srq_recv(srq, &wr, &bad));
	TRY0(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	TRY0(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	TRY0(ibv_query_srq(srq, &attr));
	attr.max_wr = 10;
	TRY0(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	return true;
}

static bool srqs(unsigned int nth)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 10, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(home.pd, &attr);
	struct ibv_qp_init_attr init = { .cap = { 16, 0, 1, 0, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = home.cq[0],
					 .recv_cq = home.cq[1],
					 .srq = srq };
	struct ibv_qp *qp;

	TRY(srq);
	if (!change_srq(srq, nth))
		return false;
	qp = ibv_create_qp(home.pd, &init);
	TRY(qp);
	if (!use_qp(qp, nth))
		return false;
	TRY0(ibv_destroy_qp(qp));
	TRY0(ibv_destroy_srq(srq));
	return true;
}

static bool mrs(unsigned int nth)
{
	void *buf = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(buf != MAP_FAILED);
	mr = ibv_reg_mr(home.pd, buf, REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	TRY(mr);
	/* Its result is a code of its own; errno tells why. */
	TRY(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	TRY(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, REGION / 2, 0));
	TRY(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, home.pd, NULL, 0, 0));
	TRY0(ibv_dereg_mr(mr));
	munmap(buf, REGION);
	return true;
}

static bool mws(unsigned int nth)
{
	struct ibv_mw *mw = ibv_alloc_mw(home.pd, nth % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);

	TRY(mw);
	TRY0(ibv_dealloc_mw(mw));
	return true;
}

static bool channels(unsigned int nth)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(home.context);
	struct pollfd fd;
	struct ibv_cq *cq;

	TRY(channel);
	cq = ibv_create_cq(home.context, 16, NULL, channel, 0);
	TRY(cq);
	TRY0(ibv_req_notify_cq(cq, 0));
	fd = (struct pollfd){ .fd = channel->fd, .events = POLLIN };
	poll(&fd, 1, 0);
	TRY0(ibv_destroy_cq(cq));
	TRY0(ibv_destroy_comp_channel(channel));
	return true;
}

/* What it leaves goes with its context. */
static bool contexts(unsigned int nth)
{
	struct ibv_context *context = ibv_open_device(home.context->device);
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_cq *cq;

	TRY(context);
	TRY0(ibv_query_device(context, &attr));
	TRY0(ibv_query_port(context, 1, &port));
	TRY(ibv_alloc_pd(context));
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	TRY(cq);
	TRY0(ibv_destroy_cq(cq));
	TRY0(ibv_close_device(context));
	return true;
}

/* Another thread may have taken what poll() has seen. */
static bool async_events(unsigned int nth)
{
	struct pollfd fd = { .fd = home.context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	CHECK(nth || !fcntl(fd.fd, F_SETFL, O_NONBLOCK));
	if (poll(&fd, 1, 10) == 1 && !ibv_get_async_event(home.context, &event))
		ibv_ack_async_event(&event);
	return true;
}

const struct activity object_activities[] = {
	{ .name = "pds", .round = pds },
	{ .name = "cqs", .round = cqs },
	{ .name = "qps", .round = qps },
	{ .name = "srqs", .round = srqs },
	{ .name = "mrs", .round = mrs },
	{ .name = "mws", .round = mws },
	{ .name = "channels", .round = channels },
	{ .name = "contexts", .round = contexts },
	{ .name = "async_events", .round = async_events },
	{},
};
