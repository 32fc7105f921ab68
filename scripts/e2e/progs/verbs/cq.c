// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Completion queues: overrun, other sizes, moderation. */
#define _GNU_SOURCE
#include "verbs.h"

#include <poll.h>
#include <stdbool.h>

static struct end s2, c2;
static struct ibv_cq *small_cq;

static void with_small_cq(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 2, 2, 64 }, .qp_type = IBV_QPT_RC };

	small_cq = ibv_create_cq(e->id->verbs, 2, NULL, NULL, 0);
	CHECK(small_cq);
	attr.recv_cq = small_cq;
	attr.send_cq = ibv_create_cq(e->id->verbs, 64, NULL, NULL, 0);
	CHECK(attr.send_cq && !rdma_create_qp(e->id, NULL, &attr));
	e->id->send_cq = attr.send_cq;
	e->id->recv_cq = small_cq;
}

/* How many events of a CQ's failure there are until none has come for a while. */
static int cq_errors(struct ibv_cq *cq)
{
	struct pollfd p = { .fd = s.id->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event e;
	int errors = 0;

	while (poll(&p, 1, errors ? 300 : SECONDS * 1000) == 1) {
		CHECK(!ibv_get_async_event(s.id->verbs, &e));
		if (e.event_type == IBV_EVENT_CQ_ERR) {
			CHECK(e.element.cq == cq);
			errors++;
		}
		ibv_ack_async_event(&e);
	}
	return errors;
}

static enum ibv_qp_state state_of(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(e->id->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* What no longer fits ends its QP; the event comes once, whatever else is lost then. */
CASE("queues", cq_overrun)
{
	struct ibv_cq *send_cq;
	int cqe;

	connect_pair(&c2, &s2, with_small_cq);
	send_cq = s2.id->send_cq;
	cqe = small_cq->cqe;
	for (int i = 0; i <= cqe && i < WRS; i++)
		CHECK(!recv_sge(&s2, i, sge(s2.own, i, 1)));
	for (int i = 0; i <= cqe && i < WRS; i++)
		CHECK(!send_sge(&c2, i, sge(c2.own, 0, 1), 0));
	CHECK(cq_errors(small_cq) == 1);
	CHECK(state_of(&s2) == IBV_QPS_ERR);
	for (int i = 0; i < cqe; i++)
		expect(small_cq, i, IBV_WC_SUCCESS);
	for (int i = 0; i <= cqe; i++)
		expect(c2.id->send_cq, i, IBV_WC_SUCCESS);
	works(&c, &s);
	release(&c2);
	s2.id->send_cq = s2.id->recv_cq = NULL;
	release(&s2);
	CHECK(!ibv_destroy_cq(small_cq) && !ibv_destroy_cq(send_cq));
}

CASE("queues", cq_resize)
{
	struct ibv_device_attr dev;
	int before = s.id->recv_cq->cqe;

	CHECK(!ibv_query_device(s.id->verbs, &dev));
	for (int i = 0; i < WRS; i++) {
		CHECK(!recv_sge(&s, i, sge(s.own, i, 1)));
		CHECK(!send_sge(&c, i, sge(c.own, i, 1), 0));
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
	}
	CHECK(!ibv_resize_cq(s.id->recv_cq, 1000) && s.id->recv_cq->cqe >= 1000);
	for (int i = 0; i < 5; i++)
		expect(s.id->recv_cq, i, IBV_WC_SUCCESS);
	CHECK(ibv_resize_cq(s.id->recv_cq, 2) == EBUSY);
	CHECK(ibv_resize_cq(s.id->recv_cq, dev.max_cqe + 1) == EINVAL);
	CHECK(s.id->recv_cq->cqe >= 1000);
	CHECK(!ibv_resize_cq(s.id->recv_cq, before));
	for (int i = 5; i < WRS; i++)
		expect(s.id->recv_cq, i, IBV_WC_SUCCESS);
	works(&c, &s);
}

/* --- moderation --------------------------------------------------------------------- */

static void moderate(int count, int period)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = count, .cq_period = period },
	};

	CHECK(!ibv_modify_cq(s.id->recv_cq, &attr));
}

/* @n messages arrive at the server, whose receives stand ready. */
static void arrive(int n)
{
	for (int i = 0; i < n; i++) {
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
		CHECK(!send_sge(&c, i, sge(c.own, 0, 8), 0));
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
	}
}

static void taken(int n)
{
	for (int i = 0; i < n; i++)
		expect(s.id->recv_cq, i, IBV_WC_SUCCESS);
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 0));
}

/*
 * Three do not tell, the fourth does. An event is held back for 65 ms at most: on a slow machine
 * it comes by time before all is looked at. Return: it came by number.
 */
static bool told_by_number(void)
{
	double began = now();
	bool early, in_time;

	arrive(3);
	early = event_within(s.id->recv_cq_channel, 10);
	if (now() - began >= 0.060) {
		CHECK(early || event_within(s.id->recv_cq_channel, 1000));
		taken(3);
		return false;
	}
	CHECK(!early);
	arrive(1);
	CHECK(event_within(s.id->recv_cq_channel, 1000));
	in_time = now() - began < 0.0655;
	for (int i = 0; i < 3; i++)
		expect(s.id->recv_cq, i, IBV_WC_SUCCESS);
	taken(1);
	return in_time;
}

CASE("queues", cq_moderation)
{
	struct ibv_device_attr_ex dev;
	int tries = 50;
	double began;

	CHECK(!ibv_query_device_ex(s.id->verbs, NULL, &dev));
	CHECK(dev.cq_mod_caps.max_cq_count == 65535 && dev.cq_mod_caps.max_cq_period == 65535);
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 0));
	/* By number: the fourth tells. */
	moderate(4, 65535);
	while (!told_by_number())
		CHECK(tries--);
	CHECK(!event_within(s.id->recv_cq_channel, 100));
	/* By time: the first waits no longer than that. */
	moderate(1000, 40000);
	began = now();
	arrive(2);
	CHECK(event_within(s.id->recv_cq_channel, 2000));
	CHECK(now() - began >= 0.040);
	taken(2);
	CHECK(!event_within(s.id->recv_cq_channel, 100));
	/* Switched off: the event held back is raised, and so are all that follow. */
	moderate(1000, 65535);
	arrive(1);
	moderate(0, 0);
	CHECK(event_within(s.id->recv_cq_channel, 20));
	taken(1);
	arrive(1);
	CHECK(event_within(s.id->recv_cq_channel, 1000));
	taken(1);
	/* An error is not held back. */
	moderate(1000, 65535);
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 4)));
	CHECK(!send_sge(&c, 1, sge(c.own, 0, 8), 0));
	began = now();
	CHECK(event_within(s.id->recv_cq_channel, 1000) && now() - began < 0.060);
	expect(s.id->recv_cq, 1, IBV_WC_LOC_LEN_ERR);
}
