// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receives that are posted after the message has come: it waits for them, with all that stands
 * behind it; other connections, and the other direction, do not. Where nothing else is said, the
 * attribute rnr_timeout_ms is ten minutes: a doorbell that is lost ends the test.
 */
#define _GNU_SOURCE
#include "verbs.h"

#include <pthread.h>
#include <unistd.h>

#define MIB	(1024 * 1024)
#define LONGS	4
#define CLIENTS	4
#define STORM	3000

/* How long a test waits before it does what comes late. */
static void be_late(void)
{
	usleep(300000);
}

/* Message @id carries its number to a place of its own. */
static void send_id(struct end *from, int id)
{
	from->buf[BYTES + id] = id * 3 + 1;
	CHECK(!send_sge(from, id, sge(from->own, id, 1), 0));
	expect(from->id->send_cq, id, IBV_WC_SUCCESS);
}

static void recv_id(struct end *e, int id)
{
	CHECK(!recv_sge(e, id, sge(e->own, BYTES / 2 + id, 1)));
}

static void expect_id(struct end *e, int id)
{
	expect(e->id->recv_cq, id, IBV_WC_SUCCESS);
	CHECK(e->buf[BYTES + BYTES / 2 + id] == id * 3 + 1);
}

/* A Write and a Read that stand behind the messages wait with them; this direction does not. */
CASE_WITH("late", late_receives, "rnr_timeout_ms=600000")
{
	unsigned long waits = counted("rnr_waits"), timeouts = counted("rnr_timeouts");

	fill(&s, 7);
	for (int i = 1; i <= 3; i++)
		send_id(&c, i);
	CHECK(!post(&c, 10, IBV_WR_RDMA_READ, sge(c.own, 1000, 500), (uintptr_t)s.buf, s.open->rkey,
		    IBV_SEND_SIGNALED));
	be_late();
	nothing(c.id->send_cq);
	nothing(s.id->recv_cq);
	recv_id(&c, 20);
	send_id(&s, 20);
	expect_id(&c, 20);
	for (int i = 1; i <= 3; i++)
		recv_id(&s, i);
	for (int i = 1; i <= 3; i++)
		expect_id(&s, i);
	expect(c.id->send_cq, 10, IBV_WC_SUCCESS);
	CHECK(!memcmp(c.buf + BYTES + 1000, s.buf, 500));
	CHECK(counted("rnr_waits") > waits && counted("rnr_timeouts") == timeouts);
	works(&c, &s);
}

static void *post_late(void *arg)
{
	be_late();
	recv_id(arg, 1);
	return NULL;
}

CASE_WITH("late", late_receive_of_another_thread, "rnr_timeout_ms=600000")
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, post_late, &s));
	send_id(&c, 1);
	expect_id(&s, 1);
	pthread_join(thread, NULL);
	works(&c, &s);
}

/* Both ends wait for each other's receive. */
CASE_WITH("late", late_receives_both_ways, "rnr_timeout_ms=600000")
{
	send_id(&c, 1);
	send_id(&s, 2);
	be_late();
	recv_id(&c, 2);
	expect_id(&c, 2);
	recv_id(&s, 1);
	expect_id(&s, 1);
	works(&c, &s);
}

CASE_WITH("late", late_immediate, "rnr_timeout_ms=600000")
{
	fill(&c, 3);
	CHECK(!post(&c, 1, IBV_WR_RDMA_WRITE_WITH_IMM, sge(c.open, 0, 100), (uintptr_t)s.buf,
		    s.open->rkey, IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 1, IBV_WC_SUCCESS);
	be_late();
	nothing(s.id->recv_cq);
	post_empty_recv(&s);
	CHECK(next(s.id->recv_cq).wc_flags & IBV_WC_WITH_IMM);
	CHECK(!memcmp(s.buf, c.buf, 100));
	works(&c, &s);
}

/* More than TCP's window has room for. */
CASE_WITH("late", late_long_messages, "rnr_timeout_ms=600000")
{
	unsigned char *from = malloc(MIB), *to = malloc(MIB);
	struct ibv_mr *out, *in;

	CHECK(from && to);
	out = ibv_reg_mr(c.id->pd, from, MIB, 0);
	in = ibv_reg_mr(s.id->pd, to, MIB, IBV_ACCESS_LOCAL_WRITE);
	CHECK(out && in);
	for (int i = 0; i < MIB; i++)
		from[i] = i * 7 + i / 253;
	for (int i = 0; i < LONGS; i++)
		CHECK(!send_sge(&c, i, sge(out, i, MIB - i), 0));
	for (int i = 0; i < LONGS; i++) {
		be_late();
		memset(to, 0, MIB);
		CHECK(!recv_sge(&s, i, sge(in, 0, MIB)));
		CHECK(expect(s.id->recv_cq, i, IBV_WC_SUCCESS).byte_len == MIB - (unsigned)i);
		CHECK(!memcmp(to, from + i, MIB - i));
	}
	for (int i = 0; i < LONGS; i++)
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(out) && !ibv_dereg_mr(in));
	free(from);
	free(to);
	works(&c, &s);
}

/* How long it took until a connection has failed for want of a receive. */
static double until_it_fails(void)
{
	double began = now();
	struct ibv_async_event ev;

	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), 0));
	next(c.id->send_cq);
	do {
		CHECK(!ibv_get_async_event(s.id->verbs, &ev));
		ibv_ack_async_event(&ev);
	} while (ev.event_type != IBV_EVENT_QP_REQ_ERR);
	began = now() - began;
	printf("after %.3f s\n", began);
	flushes(&c);
	flushes(&s);
	return began;
}

/* The attribute says 600 ms. */
CASE_WITH("late", late_never, "rnr_timeout_ms=600")
{
	unsigned long timeouts = counted("rnr_timeouts");
	double took = until_it_fails();

	CHECK(took >= 0.6 && took < 5);
	CHECK(counted("rnr_timeouts") == timeouts + 1);
}

/* The attribute says 0. */
CASE_WITH("late", late_not_allowed, "rnr_timeout_ms=0")
{
	unsigned long waits = counted("rnr_waits");

	CHECK(until_it_fails() < 5);
	CHECK(counted("rnr_waits") == waits);
}

/*
 * What the peer sent before it closed is delivered, then its end is seen. The peer waits for the
 * other end to close, as long as close_timeout_ms says.
 */
CASE_WITH("late", late_peer_disconnects, "rnr_timeout_ms=600000 close_timeout_ms=1000")
{
	send_id(&c, 1);
	send_id(&c, 2);
	CHECK(!rdma_disconnect(c.id));
	be_late();
	nothing(s.id->recv_cq);
	recv_id(&s, 1);
	recv_id(&s, 2);
	expect_id(&s, 1);
	expect_id(&s, 2);
	flushes(&s);
}

/* The attribute says 600 ms; nothing is posted. */
CASE_WITH("late", late_peer_disconnects_for_nothing, "rnr_timeout_ms=600")
{
	double began = now();

	send_id(&c, 1);
	CHECK(!rdma_disconnect(c.id));
	flushes(&s);
	CHECK(now() - began < 5);
}

CASE_WITH("late", late_disconnect_here, "rnr_timeout_ms=600000")
{
	double began;

	send_id(&c, 1);
	be_late();
	began = now();
	CHECK(!rdma_disconnect(s.id));
	flushes(&s);
	flushes(&c);
	CHECK(now() - began < 4);
}

CASE_WITH("late", late_destroy, "rnr_timeout_ms=600000")
{
	double began;

	send_id(&c, 1);
	be_late();
	began = now();
	rdma_destroy_qp(s.id);
	CHECK(now() - began < 2);
	flushes(&c);
}

/* A receive after each message, at any time. */
static void *send_storm(void *arg)
{
	struct end *from = arg;

	for (int i = 0; i < STORM; i++) {
		CHECK(!send_sge(from, i, sge(from->own, 0, 8), 0));
		good(from->id->send_cq, 1);
	}
	return NULL;
}

CASE_WITH("late", late_storm, "rnr_timeout_ms=600000")
{
	unsigned long waits = counted("rnr_waits");
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, send_storm, &c));
	for (int i = 0; i < STORM; i++) {
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
		CHECK(polled(s.id->recv_cq).wr_id == (uint64_t)i);
		if (i % 64 == 0)
			usleep(i % 1000);
	}
	pthread_join(thread, NULL);
	printf("%lu of %d waited\n", counted("rnr_waits") - waits, STORM);
	CHECK(counted("rnr_waits") > waits);
}

/* --- shared receive queues ------------------------------------------------- */

static struct ibv_srq *srq;
static struct end cs[CLIENTS], ss[CLIENTS];

static void with_srq(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 2, 2, 64 },
					 .qp_type = IBV_QPT_RC,
					 .srq = srq };

	CHECK(!rdma_create_qp(e->id, NULL, &attr));
}

static void begin_many_conns(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 64, .max_sge = 2 } };

	srq = ibv_create_srq(s.id->pd, &attr);
	CHECK(srq);
	for (int i = 0; i < CLIENTS; i++)
		connect_pair(&cs[i], &ss[i], with_srq);
}

static void end_many_conns(void)
{
	for (int i = 0; i < CLIENTS; i++) {
		release(&cs[i]);
		release(&ss[i]);
	}
	CHECK(!ibv_destroy_srq(srq));
}

static void give(int id)
{
	struct ibv_sge sg = sge(s.own, id, 8);
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 };

	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

/* Each receive goes to the connection that has waited longest. */
CASE_WITH("late", late_srq, "rnr_timeout_ms=600000")
{
	begin_many_conns();
	for (int i = 0; i < CLIENTS; i++) {
		send_id(&cs[i], i + 1);
		usleep(50000);
	}
	for (int i = 0; i < CLIENTS; i++) {
		nothing(ss[i].id->recv_cq);
		give(i);
		expect(ss[i].id->recv_cq, i, IBV_WC_SUCCESS);
	}
	end_many_conns();
}

/* A connection that goes leaves its turn to the next; the queue grows meanwhile. */
CASE_WITH("late", late_srq_changes, "rnr_timeout_ms=600000")
{
	struct ibv_srq_attr attr = { .max_wr = 500 };

	begin_many_conns();
	for (int i = 0; i < CLIENTS; i++) {
		send_id(&cs[i], i + 1);
		usleep(50000);
	}
	rdma_destroy_qp(ss[0].id);
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	for (int i = 1; i < CLIENTS; i++) {
		give(i);
		expect(ss[i].id->recv_cq, i, IBV_WC_SUCCESS);
	}
	end_many_conns();
}

CASE_WITH("late", late_srq_storm, "rnr_timeout_ms=600000")
{
	pthread_t threads[CLIENTS];
	int got = 0, given = 0;
	double end = now() + 60;
	struct ibv_wc wc;

	begin_many_conns();
	for (int i = 0; i < CLIENTS; i++)
		CHECK(!pthread_create(&threads[i], NULL, send_storm, &cs[i]));
	while (got < CLIENTS * STORM && now() < end) {
		if (given - got < 3)
			give(given++ % 1000);
		for (int i = 0; i < CLIENTS; i++) {
			if (ibv_poll_cq(ss[i].id->recv_cq, 1, &wc) != 1)
				continue;
			CHECK(wc.status == IBV_WC_SUCCESS);
			got++;
		}
	}
	CHECK(got == CLIENTS * STORM);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	while (got++ < given)
		send_id(&cs[0], 1);
	end_many_conns();
}
