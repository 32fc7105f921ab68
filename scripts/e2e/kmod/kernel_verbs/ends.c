// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The cases that end the connection: an error, and what is drained or goes all the same.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include "ends.h"

#include <linux/delay.h>

#include "event.h"
#include "op.h"
#include "world.h"

#define FLUSHED	8
#define READS	8

/* Microseconds for which an event may be held back: as many as there can be. */
#define LONG	65535

/* A key that does not exist ends the connection, whatever is posted afterwards. */
int case_bad_key_and_drain(void)
{
	struct ib_sge sge = { .addr = (uintptr_t)world.small, .length = 8, .lkey = 0xdead00 };
	struct op recv[FLUSHED], bad;
	const struct ib_send_wr wr = {
		.wr_cqe = &bad.cqe,
		.opcode = IB_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IB_SEND_SIGNALED,
	};
	int i;

	op_init(&bad);
	op_expect(&bad, world.self.to.client->qp, IB_WC_SEND);
	for (i = 0; i < FLUSHED; i++) {
		op_init(&recv[i]);
		CHECK(!op_post_recv(i % 2 ? world.self.to.client->qp : world.self.server->qp,
				    &recv[i]));
	}
	CHECK(!ib_post_send(world.self.to.client->qp, &wr, NULL));
	CHECK(op_comes(&bad));
	CHECK(bad.status == IB_WC_LOC_PROT_ERR && op_is_as_due(&bad));
	ib_drain_qp(world.self.to.client->qp);
	ib_drain_qp(world.self.server->qp);
	for (i = 0; i < FLUSHED; i++) {
		CHECK(completion_done(&recv[i].done));
		CHECK(recv[i].status == IB_WC_WR_FLUSH_ERR && op_is_as_due(&recv[i]));
	}
	return 0;
}

/* After the drain, the memory of outstanding requests is no longer written to. */
int case_drain_reads(void)
{
	static struct op reads[READS];
	int i;

	area_fill(&world.b, 5);
	for (i = 0; i < READS; i++)
		CHECK(!area_post_rdma(&reads[i], IB_WR_RDMA_READ, &world.a, &world.b));
	ib_drain_sq(world.self.to.client->qp);
	for (i = 0; i < READS; i++)
		CHECK(completion_done(&reads[i].done) && op_is_as_due(&reads[i]));
	CHECK(reads[READS - 1].status == IB_WC_WR_FLUSH_ERR);
	area_fill(&world.a, 6);
	msleep(50);
	CHECK(area_is_filled(&world.a, 6));
	ib_drain_qp(world.self.server->qp);
	return 0;
}

/* Both ends and then the queue go, with an event held back and nothing drained. */
int case_goes_with_event_held(void)
{
	static struct op send, recv;
	int before;

	msleep(SETTLED); /* the queue is armed again */
	before = event_count();
	CHECK(!rdma_set_cq_moderation(world.cq, 100, LONG));
	op_init(&send);
	op_init(&recv);
	CHECK(!op_post_recv(world.self.server->qp, &recv));
	CHECK(!op_post_send(world.self.to.client->qp, &send, IB_WR_SEND, 0));
	msleep(5);
	rdma_destroy_qp(world.self.to.client);
	/* While there is a QP; where the queue is polled by hand there are no events. */
	CHECK(world.context == IB_POLL_DIRECT || event_count() > before);
	rdma_destroy_qp(world.self.server);
	return 0;
}
