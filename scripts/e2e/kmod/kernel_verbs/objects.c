// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Objects that are refused, a request that is, and a connection of its own whose ends share a
 * receive queue.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include "objects.h"

#include <linux/random.h>
#include <linux/string.h>
#include <net/netlink.h>

#include "op.h"
#include "world.h"

#define RECEIVES	2
#define ENTRIES		4

static struct {
	struct self self;
	struct ib_srq *srq;
	struct completion limit;
} s;

static struct ib_qp_init_attr plain_qp(void)
{
	return (struct ib_qp_init_attr){
		.cap = { .max_send_wr = ENTRIES,
			 .max_recv_wr = ENTRIES,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = world.cq,
		.recv_cq = world.cq,
	};
}

static bool qp_is_refused(struct ib_qp_init_attr *attr)
{
	struct ib_qp *qp = ib_create_qp(world.pd, attr);

	if (IS_ERR(qp))
		return PTR_ERR(qp) == -EOPNOTSUPP;
	ib_destroy_qp(qp);
	return false;
}

static bool mr_is_refused(struct ib_mr *mr)
{
	if (IS_ERR(mr))
		return PTR_ERR(mr) == -EOPNOTSUPP;
	world.pd->device->ops.dereg_mr(mr, NULL);
	return false;
}

static bool srq_is_refused(struct ib_srq_init_attr *attr)
{
	struct ib_srq *srq = ib_create_srq(world.pd, attr);

	if (IS_ERR(srq))
		return PTR_ERR(srq) == -EOPNOTSUPP;
	ib_destroy_srq(srq);
	return false;
}

static bool cq_is_refused(u32 flags)
{
	struct ib_cq_init_attr attr = { .cqe = 4, .flags = flags };
	struct ib_cq *cq = ib_create_cq(world.pd->device, NULL, NULL, NULL, &attr);

	if (IS_ERR(cq))
		return PTR_ERR(cq) == -EOPNOTSUPP;
	ib_destroy_cq(cq);
	return false;
}

/* A string of what the driver tells of a region. */
static bool mr_tells(struct ib_mr *mr, const char *word)
{
	struct sk_buff *msg = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	const size_t len = strlen(word) + 1;
	bool found = false;
	unsigned int i;

	if (!msg)
		return false;
	if (!mr->device->ops.fill_res_mr_entry(msg, mr))
		for (i = 0; i + len <= msg->len && !found; i++)
			found = !memcmp(msg->data + i, word, len);
	nlmsg_free(msg);
	return found;
}

/* Of a process, the core or the provider would not let them through. */
int case_refused_objects(void)
{
	const struct ib_device_ops *ops = &world.pd->device->ops;
	struct ib_srq_init_attr tagged = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.srq_type = IB_SRQT_TM,
		.ext.cq = world.cq,
	};
	struct ib_qp_init_attr attr = plain_qp();
	struct ib_mr *mr;
	int odd, even;
	bool told;

	attr.qp_type = IB_QPT_UC;
	CHECK(qp_is_refused(&attr));
	attr = plain_qp();
	attr.create_flags = IB_QP_CREATE_CROSS_CHANNEL;
	CHECK(qp_is_refused(&attr));
	CHECK(srq_is_refused(&tagged));
	CHECK(cq_is_refused(IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN));

	/* Of the driver itself: the core has no call for the second. */
	CHECK(mr_is_refused(ops->alloc_mr(world.pd, IB_MR_TYPE_SG_GAPS, 1)));
	CHECK(mr_is_refused(ops->get_dma_mr(world.pd, IB_ACCESS_ON_DEMAND)));

	mr = ib_alloc_mr(world.pd, IB_MR_TYPE_MEM_REG, 1);
	CHECK(!IS_ERR(mr));
	odd = ib_map_mr_sg(mr, world.a.sgt.sgl, 1, NULL, 3 * PAGE_SIZE);
	even = ib_map_mr_sg(mr, world.a.sgt.sgl, 1, NULL, PAGE_SIZE);
	told = mr_tells(mr, "fast-register") && mr_tells(mr, "invalid");
	CHECK(!ib_dereg_mr(mr));
	CHECK(odd == -EINVAL && even == 1 && told);
	return 0;
}

/* A list of one request more than there is room for: which one that is the poster is told. */
static int post_too_many_sends(struct ib_qp *qp)
{
	struct ib_send_wr wr[ENTRIES + 1] = {};
	const struct ib_send_wr *bad = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wr); i++) {
		wr[i].opcode = IB_WR_SEND;
		wr[i].next = i < ENTRIES ? &wr[i + 1] : NULL;
	}
	CHECK(ib_post_send(qp, wr, &bad) == -ENOMEM && bad == &wr[ENTRIES]);
	return 0;
}

static int post_too_many_receives(struct ib_qp *qp)
{
	struct ib_recv_wr wr[ENTRIES + 1] = {};
	const struct ib_recv_wr *bad = NULL;
	size_t i;

	for (i = 0; i < ENTRIES; i++)
		wr[i].next = &wr[i + 1];
	CHECK(ib_post_recv(qp, wr, &bad) == -ENOMEM && bad == &wr[ENTRIES]);
	return 0;
}

int case_full_queues(void)
{
	struct ib_cq *cq = ib_alloc_cq(world.pd->device, NULL, 4 * ENTRIES, 0, IB_POLL_DIRECT);
	struct ib_qp_init_attr attr = plain_qp();
	struct ib_qp *qp;
	int ret;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ib_create_qp(world.pd, &attr);
	ret = PTR_ERR_OR_ZERO(qp);
	if (!ret) {
		ret = post_too_many_sends(qp) ?: post_too_many_receives(qp);
		ib_destroy_qp(qp);
	}
	ib_free_cq(cq);
	return ret;
}

/* A work request fails with its QP, of which a RESET leaves no completion in either queue. */
static int forgotten(struct ib_cq *sends, struct ib_cq *receives)
{
	struct ib_qp_init_attr attr = plain_qp();
	struct ib_qp_attr to = { .qp_state = IB_QPS_ERR };
	struct ib_qp *qp;
	struct ib_wc wc;
	struct op op[2];
	int ret;

	attr.send_cq = sends;
	attr.recv_cq = receives;
	qp = ib_create_qp(world.pd, &attr);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	op_init(&op[0]);
	op_init(&op[1]);
	ret = op_post_send(qp, &op[0], IB_WR_SEND, 0) ?: op_post_recv(qp, &op[1]);
	ret = ret ?: ib_modify_qp(qp, &to, IB_QP_STATE);
	to.qp_state = IB_QPS_RESET;
	ret = ret ?: ib_modify_qp(qp, &to, IB_QP_STATE);
	if (!ret && (ib_poll_cq(sends, 1, &wc) || ib_poll_cq(receives, 1, &wc)))
		ret = -EINVAL;
	ib_destroy_qp(qp);
	return ret;
}

int case_reset(void)
{
	struct ib_cq *sends = ib_alloc_cq(world.pd->device, NULL, 8, 0, IB_POLL_DIRECT);
	struct ib_cq *receives = ib_alloc_cq(world.pd->device, NULL, 8, 0, IB_POLL_DIRECT);
	int ret = -ENOMEM;

	if (!IS_ERR(sends) && !IS_ERR(receives))
		ret = forgotten(sends, receives);
	if (!IS_ERR(sends))
		ib_free_cq(sends);
	if (!IS_ERR(receives))
		ib_free_cq(receives);
	return ret;
}

static void on_srq_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED && event->element.srq == s.srq)
		complete(context);
}

static int no_objects(struct ib_device *dev)
{
	return 0;
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = plain_qp();

	attr.srq = s.srq;
	return rdma_create_qp(id, world.pd, &attr);
}

static const struct self_maker maker = {
	.objects = no_objects,
	.qp = make_qp,
	.depth = 1,
};

static struct sockaddr_in port_beside(int distance)
{
	struct sockaddr_in sa = *(struct sockaddr_in *)&world.self.to.client->route.addr.dst_addr;

	sa.sin_port = htons(ntohs(sa.sin_port) + distance);
	return sa;
}

static int make_qp_of_client(struct rdma_cm_id *id)
{
	return id == s.self.to.client ? make_qp(id) : -ENOMEM;
}

static const struct self_maker refuser = {
	.objects = no_objects,
	.qp = make_qp_of_client,
	.depth = 1,
};

/* An error of the handler is an answer: the peer is told, and the handler is not asked again. */
int case_refused_request(void)
{
	struct sockaddr_in sa = port_beside(2);
	int ret;

	memset(&s, 0, sizeof(s));
	ret = self_connect(&s.self, &refuser, (struct sockaddr *)&sa);
	self_drop(&s.self);
	CHECK(ret == -ECONNREFUSED);
	return 0;
}

/* The receives of the QP are those of the SRQ. */
static int query_with_srq(void)
{
	struct ib_qp *qp = s.self.server->qp;
	const struct ib_recv_wr *bad = NULL;
	struct ib_qp_init_attr init = {};
	const struct ib_recv_wr wr = {};
	struct ib_qp_attr attr = {};

	CHECK(ib_post_recv(qp, &wr, &bad) == -EINVAL && bad == &wr);
	CHECK(!ib_query_qp(qp, &attr, IB_QP_CAP, &init));
	CHECK(init.srq == s.srq);
	return 0;
}

/* What is posted moves to the new ring, unless it has no room. */
static int resize_srq(void)
{
	struct ib_srq_attr attr = { .max_wr = 1 };

	CHECK(ib_modify_srq(s.srq, &attr, IB_SRQ_MAX_WR) == -EBUSY);
	CHECK(!ib_query_srq(s.srq, &attr) && attr.max_wr == RECEIVES);
	attr.max_wr = 4 * RECEIVES;
	CHECK(!ib_modify_srq(s.srq, &attr, IB_SRQ_MAX_WR));
	CHECK(!ib_query_srq(s.srq, &attr) && attr.max_wr == 4 * RECEIVES);
	return 0;
}

/* Each receive completes as one of the QP that took it; the last has less than the limit left. */
static int receive_from_srq(void)
{
	struct ib_srq_attr limit = { .srq_limit = 1 };
	struct ib_recv_wr wr[RECEIVES] = {};
	struct ib_sge sge = op_half(1);
	struct op recv[RECEIVES], send;
	int i, ret;

	for (i = 0; i < RECEIVES; i++) {
		op_init(&recv[i]);
		op_expect(&recv[i], s.self.server->qp, IB_WC_RECV);
		wr[i].wr_cqe = &recv[i].cqe;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].next = i + 1 < RECEIVES ? &wr[i + 1] : NULL;
	}
	CHECK(!ib_post_srq_recv(s.srq, wr, NULL));
	ret = resize_srq();
	if (ret)
		return ret;
	CHECK(!ib_modify_srq(s.srq, &limit, IB_SRQ_LIMIT));
	for (i = 0; i < RECEIVES; i++) {
		CHECK(!completion_done(&s.limit));
		get_random_bytes(world.small, PAGE_SIZE);
		op_init(&send);
		ret = op_post_send(s.self.to.client->qp, &send, IB_WR_SEND, 0) ?:
			      op_wait(&send)					 ?:
										 op_wait(&recv[i]);
		if (ret)
			return ret;
		CHECK(recv[i].byte_len == PAGE_SIZE / 2);
		CHECK(!memcmp(world.small, world.small + PAGE_SIZE / 2, PAGE_SIZE / 2));
	}
	CHECK(wait_for_completion_timeout(&s.limit, WAIT));
	return 0;
}

int case_srq(void)
{
	struct sockaddr_in sa = port_beside(1);
	struct ib_srq_init_attr attr = {
		.event_handler = on_srq_event,
		.srq_context = &s.limit,
		.attr = { .max_wr = RECEIVES, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	int ret;

	memset(&s, 0, sizeof(s));
	init_completion(&s.limit);
	s.srq = ib_create_srq(world.pd, &attr);
	if (IS_ERR(s.srq))
		return PTR_ERR(s.srq);
	ret = self_connect(&s.self, &maker, (struct sockaddr *)&sa) ?:
		      query_with_srq()				    ?:
								      receive_from_srq();
	self_drop(&s.self);
	ib_destroy_srq(s.srq);
	return ret;
}
