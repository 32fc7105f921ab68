// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What a change of a QP's state does to what is posted. */
#include "verbs.h"

#define OLD 4
#define SLOT 64

static struct end s2, c2;
static struct ibv_srq *srq;

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	CHECK(!ibv_modify_qp(qp, &attr, mask));
}

static void reset(struct end *e)
{
	to_state(e->id->qp, IBV_QPS_RESET);
	to_state(e->id->qp, IBV_QPS_INIT);
}

/* Receive @id is for slot @id of the first server's private region. */
static void give(struct end *e, int id)
{
	CHECK(!recv_sge(e, id, sge(s.own, id * SLOT, SLOT)));
}

static void give_some_and_reset(struct end *e)
{
	make_qp(e);
	for (int id = 0; id < OLD; id++)
		give(e, id);
	reset(e);
	give(e, OLD);
}

static void send_some_and_reset(struct end *e)
{
	fill(e, 3);
	for (int id = 0; id < OLD; id++)
		CHECK(!send_sge(e, id, sge(e->own, id * SLOT, SLOT), 0));
	reset(e);
	CHECK(!send_sge(e, OLD, sge(e->own, OLD * SLOT, SLOT), 0));
}

static void end_pair(void)
{
	release(&c2);
	release(&s2);
}

static void reset_empties_the_receive_queue(void)
{
	connect_pair(&c2, &s2, give_some_and_reset);
	fill(&c2, 3);
	fill(&s, 9);
	fill(&c, 9);
	CHECK(!send_sge(&c2, 1, sge(c2.own, 0, SLOT), 0));
	expect(c2.id->send_cq, 1, IBV_WC_SUCCESS);
	expect(s2.id->recv_cq, OLD, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.buf + BYTES + OLD * SLOT, c2.own->addr, SLOT));
	CHECK(!memcmp(s.own->addr, c.own->addr, OLD * SLOT));
	nothing(s2.id->recv_cq);
	end_pair();
}

static void with_receives(struct end *e)
{
	make_qp(e);
	for (int id = 0; id <= OLD; id++)
		give(e, id);
}

static void reset_empties_the_send_queue(void)
{
	before_connecting = send_some_and_reset;
	connect_pair(&c2, &s2, with_receives);
	expect(s2.id->recv_cq, 0, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.own->addr, c2.buf + BYTES + OLD * SLOT, SLOT));
	expect(c2.id->send_cq, OLD, IBV_WC_SUCCESS);
	nothing(s2.id->recv_cq);
	nothing(c2.id->send_cq);
	end_pair();
}

static void fill_queues_and_reset(struct end *e)
{
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < WRS; k++) {
			CHECK(!send_sge(e, 100 + k, sge(e->own, 0, 0), 0));
			CHECK(!recv_sge(e, 100 + k, sge(e->own, 0, 8)));
		}
		CHECK(send_sge(e, 0, sge(e->own, 0, 0), 0) == ENOMEM);
		CHECK(recv_sge(e, 0, sge(e->own, 0, 0)) == ENOMEM);
		reset(e);
	}
}

/* All of a queue can be posted anew, and the QP works as if nothing had been. */
static void reset_makes_room(void)
{
	before_connecting = fill_queues_and_reset;
	connect_pair(&c2, &s2, NULL);
	works(&c2, &s2);
	end_pair();
}

static void with_srq_and_reset(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .srq = srq };

	CHECK(!rdma_create_qp(e->id, NULL, &attr));
	reset(e);
}

/* Its receives belong to whoever comes next. */
static void reset_leaves_the_srq_alone(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = WRS, .max_sge = 1 } };
	struct ibv_sge sg = sge(s.own, 0, SLOT);
	struct ibv_recv_wr *bad, wr = { .wr_id = 5, .sg_list = &sg, .num_sge = 1 };

	srq = ibv_create_srq(s.id->pd, &attr);
	CHECK(srq && !ibv_post_srq_recv(srq, &wr, &bad));
	connect_pair(&c2, &s2, with_srq_and_reset);
	CHECK(!send_sge(&c2, 1, sge(c2.own, 0, SLOT), 0));
	expect(s2.id->recv_cq, 5, IBV_WC_SUCCESS);
	end_pair();
	CHECK(!ibv_destroy_srq(srq));
}

/* A QP that is connected, or was, is not reset. */
static void reset_of_a_connected_qp_is_refused(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	CHECK(ibv_modify_qp(c.id->qp, &attr, IBV_QP_STATE) == EINVAL);
	works(&c, &s);
}

const struct test_case state_cases[] = {
	CASE(reset_empties_the_receive_queue),
	CASE(reset_empties_the_send_queue),
	CASE(reset_makes_room),
	CASE(reset_leaves_the_srq_alone),
	CASE(reset_of_a_connected_qp_is_refused),
	{},
};
