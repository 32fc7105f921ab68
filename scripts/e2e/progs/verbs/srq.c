// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Shared receive queues: limit, other sizes, one that runs dry, domains, events. */
#define _GNU_SOURCE
#include "verbs.h"

#include <poll.h>
#include <pthread.h>

static struct end s2, c2;
static struct ibv_srq *srq;

static struct ibv_srq *make_srq(uint32_t wrs)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = wrs, .max_sge = 2 } };
	struct ibv_srq *made = ibv_create_srq(s.id->pd, &attr);

	CHECK(made && attr.attr.max_wr >= wrs && attr.attr.max_sge >= 2);
	return made;
}

static void with_srq(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 2, 2, 64 },
					 .qp_type = IBV_QPT_RC,
					 .srq = srq };

	CHECK(!rdma_create_qp(e->id, NULL, &attr));
}

/* Receive @id is for byte @id of the server's private region. */
static int give(int id)
{
	struct ibv_sge sg = sge(s.own, id, 1);
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 };

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static void one_message(int id)
{
	c2.buf[BYTES] = id * 3;
	CHECK(!send_sge(&c2, id, sge(c2.own, 0, 1), 0));
	expect(c2.id->send_cq, id, IBV_WC_SUCCESS);
	CHECK(expect(s2.id->recv_cq, id, IBV_WC_SUCCESS).qp_num == s2.id->qp->qp_num);
	CHECK(s.buf[BYTES + id] == (unsigned char)(id * 3));
}

static void begin_srq(uint32_t wrs)
{
	srq = make_srq(wrs);
	connect_pair(&c2, &s2, with_srq);
}

static void end_srq(void)
{
	release(&c2);
	release(&s2);
	CHECK(!ibv_destroy_srq(srq));
}

static uint32_t depth_of_srq(void)
{
	struct ibv_srq_attr attr;

	CHECK(!ibv_query_srq(srq, &attr) && attr.max_sge >= 2);
	return attr.max_wr;
}

/* Only what is asked for; more than that is refused as a full queue. */
CASE("queues", srq_limit_event)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct ibv_async_event e;
	struct pollfd p = { .fd = s.id->verbs->async_fd, .events = POLLIN };

	begin_srq(8);
	for (int i = 0; i < 5; i++)
		CHECK(!give(i));
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	CHECK(!ibv_query_srq(srq, &attr) && attr.srq_limit == 3);
	one_message(0);
	one_message(1);
	CHECK(poll(&p, 1, 50) == 0);
	one_message(2);
	CHECK(!ibv_get_async_event(s.id->verbs, &e));
	CHECK(e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == srq);
	ibv_ack_async_event(&e);
	CHECK(!ibv_query_srq(srq, &attr) && attr.srq_limit == 0);
	attr.srq_limit = 100000;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
	end_srq();
}

/* What waits stays, in order, in a larger queue and in a smaller one again. */
CASE("queues", srq_resize)
{
	struct ibv_device_attr dev;
	struct ibv_srq_attr attr = { .max_wr = 1000 };
	int posted = 0, got = 0;

	CHECK(!ibv_query_device(s.id->verbs, &dev));
	CHECK(dev.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	begin_srq(8);
	while (posted < 8)
		CHECK(!give(posted++));
	CHECK(give(99) == ENOMEM);
	for (; got < 3; got++)
		one_message(got);
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	CHECK(depth_of_srq() >= 1000);
	while (posted < 203)
		CHECK(!give(posted++));
	for (; got < 190; got++)
		one_message(got);
	attr.max_wr = 8;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EBUSY);
	attr.max_wr = dev.max_srq_wr + 1;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	attr.max_wr = 0;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	CHECK(depth_of_srq() >= 1000);
	attr.max_wr = 20;
	attr.srq_limit = 21;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL);
	CHECK(depth_of_srq() >= 1000);
	attr.srq_limit = 2;
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	CHECK(depth_of_srq() >= 20 && depth_of_srq() < 1000);
	CHECK(!ibv_query_srq(srq, &attr) && attr.srq_limit == 2);
	/* As many as the query says: 13 wait. */
	while (posted < 190 + (int)depth_of_srq())
		CHECK(!give(posted++));
	CHECK(give(posted) == ENOMEM);
	while (got < posted)
		one_message(got++);
	end_srq();
}

/*
 * A QP that shares a queue has none of its own. What is granted is told, also where nothing was
 * asked for.
 */
CASE("queues", srq_takes_all_receives)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 5 } };
	struct ibv_recv_wr *bad = NULL, wr = { .wr_id = 9 };
	struct ibv_qp_init_attr how;
	struct ibv_srq_attr got;
	struct ibv_qp_attr attr;
	struct ibv_srq *other;

	begin_srq(8);
	CHECK(ibv_post_recv(s2.id->qp, &wr, &bad) == EINVAL && bad == &wr);
	CHECK(!ibv_query_qp(s2.id->qp, &attr, IBV_QP_CAP, &how) && how.srq == srq);
	CHECK(!how.cap.max_recv_wr && !how.cap.max_recv_sge);
	CHECK(!give(1));
	one_message(1);
	end_srq();

	other = ibv_create_srq(s.id->pd, &init);
	CHECK(other && init.attr.max_sge >= 1);
	CHECK(!ibv_query_srq(other, &got) && got.max_sge == init.attr.max_sge);
	CHECK(got.max_wr == 8 && init.attr.max_wr == 8); /* the next power of two */
	CHECK(ibv_modify_srq(other, &got, 1 << 4) == EOPNOTSUPP);
	CHECK(!ibv_destroy_srq(other));
}

/* The QP that finds nothing fails; others that share the queue continue. */
CASE("queues", srq_run_dry)
{
	struct end c3, s3;

	begin_srq(8);
	connect_pair(&c3, &s3, with_srq);
	CHECK(!give(0));
	one_message(0);
	CHECK(!send_sge(&c3, 50, sge(c3.own, 0, 1), 0));
	next(c3.id->send_cq);
	flushes(&c3);
	CHECK(!give(1));
	one_message(1);
	nothing(s3.id->recv_cq);
	release(&c3);
	release(&s3);
	end_srq();
}

/* --- an SRQ for QPs of other protection domains ------------------------------------------- */

static struct ibv_pd *other;

static void with_srq_of_another_domain(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 2, 2, 64 },
					 .qp_type = IBV_QPT_RC,
					 .srq = srq };

	other = ibv_alloc_pd(e->id->verbs);
	CHECK(other && !rdma_create_qp(e->id, other, &attr) && e->id->qp->pd == other);
}

static int give_sge(int id, struct ibv_sge sg)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 };

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static void begin_other_domain(void)
{
	srq = make_srq(8);
	connect_pair(&c2, &s2, with_srq_of_another_domain);
}

static void end_other_domain(void)
{
	end_srq();
	CHECK(!ibv_dealloc_pd(other));
}

/* The buffers are of the domain of the SRQ; what the peer names is of that of the QP. */
CASE("queues", srq_of_another_domain)
{
	begin_other_domain();
	for (int i = 0; i < 8; i++) {
		fill(&c2, i);
		CHECK(!give_sge(i, sge(s.own, 0, BYTES)));
		CHECK(!send_sge(&c2, i, sge(c2.own, 0, BYTES), 0));
		expect(c2.id->send_cq, i, IBV_WC_SUCCESS);
		CHECK(expect(s2.id->recv_cq, i, IBV_WC_SUCCESS).byte_len == BYTES);
		CHECK(!memcmp(s.own->addr, c2.own->addr, BYTES));
		CHECK(!post(&c2, 10 + i, IBV_WR_RDMA_WRITE, sge(c2.own, 0, BYTES),
			    (uintptr_t)s2.buf, s2.open->rkey, IBV_SEND_SIGNALED));
		expect(c2.id->send_cq, 10 + i, IBV_WC_SUCCESS);
		CHECK(!post(&s2, 20 + i, IBV_WR_RDMA_READ, sge(s2.own, 0, BYTES), (uintptr_t)c2.buf,
			    c2.open->rkey, IBV_SEND_SIGNALED));
		expect(s2.id->send_cq, 20 + i, IBV_WC_SUCCESS);
		CHECK(!memcmp(s2.buf, c2.own->addr, BYTES));
		CHECK(!memcmp(s2.own->addr, c2.buf, BYTES));
	}
	end_other_domain();
}

/* A key of the QP's domain is no key of the SRQ's. */
CASE("queues", srq_buffer_of_the_qp)
{
	begin_other_domain();
	CHECK(!give_sge(1, sge(s2.own, 0, 8)));
	CHECK(!send_sge(&c2, 2, sge(c2.own, 0, 8), 0));
	expect(s2.id->recv_cq, 1, IBV_WC_LOC_PROT_ERR);
	end_other_domain();
}

/* Nor can the peer write to what only the SRQ has. */
CASE("queues", srq_buffer_of_the_peer)
{
	begin_other_domain();
	fill(&s, 5);
	fill(&c, 5);
	CHECK(!post(&c2, 1, IBV_WR_RDMA_WRITE, sge(c2.own, 0, 8), (uintptr_t)s.buf, s.open->rkey,
		    IBV_SEND_SIGNALED));
	next(c2.id->send_cq);
	flushes(&c2);
	CHECK(!memcmp(s.buf, c.buf, BYTES));
	end_other_domain();
}

/* --- asynchronous events: once what it took is told, and not of its own destruction ------ */

static void no_event(struct end *e)
{
	struct pollfd p = { .fd = e->id->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	if (poll(&p, 1, 100) == 0)
		return;
	CHECK(!ibv_get_async_event(e->id->verbs, &ev));
	printf("event: %s\n", ibv_event_type_str(ev.event_type));
	exit(1);
}

/*
 * Destroying waits until its events are acknowledged, which this thread cannot do meanwhile: so
 * another one looks for them. The core frees those that have not been read.
 */
static volatile int destroyed;

static void *watch_events(void *arg)
{
	struct pollfd p = { .fd = s.id->verbs->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	while (!destroyed) {
		if (poll(&p, 1, 1) == 0)
			continue;
		CHECK(!ibv_get_async_event(s.id->verbs, &ev));
		printf("event: %s\n", ibv_event_type_str(ev.event_type));
		exit(1);
	}
	return arg;
}

static struct ibv_qp *bare_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { WRS, WRS, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
		.srq = srq,
		.send_cq = s.id->send_cq,
		.recv_cq = s.id->recv_cq,
	};
	struct ibv_qp *qp = ibv_create_qp(s.id->pd, &attr);

	CHECK(qp);
	return qp;
}

CASE("queues", destroying_is_silent)
{
	pthread_t thread;

	srq = make_srq(8);
	CHECK(!pthread_create(&thread, NULL, watch_events, NULL));
	for (int i = 0; i < 30; i++)
		CHECK(!ibv_destroy_qp(bare_qp()));
	for (int i = 0; i < 10; i++) {
		connect_pair(&c2, &s2, with_srq);
		CHECK(!give(i));
		one_message(i);
		rdma_destroy_qp(s2.id);
		release(&c2);
		release(&s2);
	}
	destroyed = 1;
	pthread_join(thread, NULL);
	no_event(&s);
	CHECK(!ibv_destroy_srq(srq));
}

/* A QP in error says once that it takes no more. */
CASE("queues", last_wqe_reached)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event ev;
	struct ibv_qp *qp;

	srq = make_srq(8);
	qp = bare_qp();
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	CHECK(!ibv_get_async_event(s.id->verbs, &ev));
	CHECK(ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && ev.element.qp == qp);
	ibv_ack_async_event(&ev);
	no_event(&s);
	CHECK(!ibv_destroy_qp(qp));
	no_event(&s);
	CHECK(!ibv_destroy_srq(srq));
}
