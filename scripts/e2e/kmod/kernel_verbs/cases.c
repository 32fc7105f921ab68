// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What storage consumers do, and what they must not: the cases of a round.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include "cases.h"

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/string.h>

#include "ends.h"
#include "event.h"
#include "objects.h"
#include "op.h"
#include "world.h"

/* Microseconds for which an event may be held back. */
#define HOLD	20000

struct named_case {
	const char *name;
	int (*run)(void);
};

/* The n-th CPU, as a consumer counts them. */
static int nth_cpu(int n)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (!n--)
			return cpu;
	return -1;
}

/* The server has received nothing yet; without the peer-to-peer mode it may not send. */
static int case_register_first(void)
{
	struct ib_qp *qp = world.self.server->qp;
	struct op op;

	op_init(&op);
	return area_register_by(qp, &world.b)					  ?:
		       op_post_send(qp, &op, IB_WR_LOCAL_INV, world.b.mr->rkey) ?:
										  op_wait(&op);
}

static int case_send(void)
{
	struct op recv;
	int ret;

	op_init(&recv);
	get_random_bytes(world.small, PAGE_SIZE);
	ret = op_post_recv(world.self.server->qp, &recv) ?:
		      op_do_send(IB_WR_SEND, 0)		 ?:
							   op_wait(&recv);
	if (ret)
		return ret;
	CHECK(recv.byte_len == PAGE_SIZE / 2);
	CHECK(!memcmp(world.small, world.small + PAGE_SIZE / 2, PAGE_SIZE / 2));
	/* Other kinds of consumers are notified on the vector's CPU. */
	if (world.context != IB_POLL_UNBOUND_WORKQUEUE && world.context != IB_POLL_DIRECT &&
	    recv.cpu != nth_cpu(world.vector)) {
		pr_err("vector %d completed on CPU %d\n", world.vector, recv.cpu);
		return -EINVAL;
	}
	return 0;
}

static int case_answer_from_callback(void)
{
	struct op there, answer, back;
	int ret;

	op_init(&there);
	op_init(&back);
	op_init(&answer);
	there.answer = world.self.server->qp;
	there.with = &answer;
	ret = op_post_recv(world.self.server->qp, &there) ?:
		      op_post_recv(world.self.to.client->qp, &back);
	return ret			      ?:
		       op_do_send(IB_WR_SEND, 0) ?:
		       op_wait(&there)	      ?:
		       op_wait(&answer)     ?:
						   op_wait(&back);
}

static int case_longest_list(void)
{
	int ret;

	area_fill(&world.a, 1);
	area_fill(&world.b, 2);
	ret = area_register(&world.a)				    ?:
		      area_register(&world.b)			    ?:
		      area_do_rdma(IB_WR_RDMA_WRITE, &world.a, &world.b) ?:
		      case_send() ?: /* what is received behind the Write says it was placed */
		      area_compare(&world.a, &world.b);
	if (ret)
		return ret;
	area_fill(&world.b, 3);
	return area_do_rdma(IB_WR_RDMA_READ, &world.a, &world.b) ?:
								   area_compare(&world.a, &world.b);
}

/* The end of what a long Read brings is sent, and not what was there before. */
static int case_fence(void)
{
	struct ib_qp *qp = world.self.to.client->qp;
	struct ib_sge end = op_half(0);
	struct op read, send, recv;
	struct ib_send_wr wr = {
		.wr_cqe = &send.cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_FENCE,
		.sg_list = &end,
		.num_sge = 1,
	};

	area_fill(&world.a, 6);
	area_fill(&world.b, 7);
	end.addr = world.a.mr->iova + BYTES - end.length;
	end.lkey = world.a.mr->lkey;
	op_init(&send);
	op_init(&recv);
	op_expect(&send, qp, IB_WC_SEND);
	CHECK(!op_post_recv(world.self.server->qp, &recv));
	CHECK(!area_post_rdma(&read, IB_WR_RDMA_READ, &world.a, &world.b));
	CHECK(!ib_post_send(qp, &wr, NULL));
	CHECK(!op_wait(&read) && !op_wait(&send) && !op_wait(&recv));
	CHECK(!memchr_inv((void *)op_half(1).addr, 7 + (PAGES - 1) * 7, end.length));
	return 0;
}

/* By the event of what tx completes, and of what rx completes with the socket locked. */
static int case_post_from_handler(void)
{
	static const enum ib_wr_opcode opcodes[] = { IB_WR_RDMA_WRITE, IB_WR_RDMA_READ };
	struct op op, answer, back;
	int ret = 0;
	size_t i;

	if (world.context == IB_POLL_DIRECT)
		return 0; /* there are no events */
	for (i = 0; !ret && i < ARRAY_SIZE(opcodes); i++) {
		op_init(&answer);
		op_init(&back);
		CHECK(!op_post_recv(world.self.to.client->qp, &back));
		msleep(SETTLED); /* the queue is armed again */
		event_answer(world.self.server->qp, &answer);
		ret = area_post_rdma_of(&op, opcodes[i], op_half(0), &world.b);
		ret = ret ?: op_wait(&op) ?: op_wait(&answer) ?: op_wait(&back);
		event_answer(NULL, NULL);
	}
	return ret;
}

/* The region can be registered again only if the response has invalidated it. */
static int case_read_with_inv(void)
{
	area_fill(&world.b, 4);
	return area_do_rdma(IB_WR_RDMA_READ_WITH_INV, &world.a, &world.b) ?:
		       area_compare(&world.a, &world.b)			  ?:
									    area_register(&world.a);
}

static int case_local_inv(void)
{
	return op_do_send(IB_WR_LOCAL_INV, world.a.mr->rkey) ?: area_register(&world.a);
}

/* One half of the small memory to or from the beginning of an area. */
static int do_half(enum ib_wr_opcode opcode, int n, struct area *remote)
{
	struct op op;

	return area_post_rdma_of(&op, opcode, op_half(n), remote) ?: op_wait(&op);
}

/* A region whose first byte is not the first of its page. Both halves are the same after a Send. */
static int case_within_a_page(void)
{
	const unsigned int skip = 100;
	char *landed = (char *)page_address(world.b.pages[0]) + skip;
	int ret;

	area_fill(&world.b, 8);
	ret = op_do_send(IB_WR_LOCAL_INV, world.b.mr->rkey);
	ret = ret ?: area_register_from(world.self.to.client->qp, &world.b, skip);
	ret = ret ?: case_send() ?: do_half(IB_WR_RDMA_WRITE, 1, &world.b);
	if (ret)
		return ret;
	memset(world.small, 0, PAGE_SIZE / 2);
	ret = do_half(IB_WR_RDMA_READ, 0, &world.b);
	if (ret)
		return ret;
	CHECK(!memcmp(world.small, world.small + PAGE_SIZE / 2, PAGE_SIZE / 2));
	CHECK(!memcmp(landed, world.small, PAGE_SIZE / 2));
	return op_do_send(IB_WR_LOCAL_INV, world.b.mr->rkey) ?: area_register(&world.b);
}

static int case_send_with_inv(void)
{
	u32 key = world.b.mr->rkey;
	struct op recv;
	int ret;

	op_init(&recv);
	ret = op_post_recv(world.self.server->qp, &recv)   ?:
		      op_do_send(IB_WR_SEND_WITH_INV, key) ?:
							     op_wait(&recv);
	if (ret)
		return ret;
	CHECK(recv.wc_flags & IB_WC_WITH_INVALIDATE);
	CHECK(recv.inv == key);
	return area_register(&world.b);
}

/* The payload is taken at once, and as much as was granted; the completion has the immediate. */
static int case_write_with_imm(void)
{
	struct ib_sge sge[2] = { op_half(0), op_half(0) };
	char *sent = world.small + PAGE_SIZE / 2;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	struct op op, recv;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &op.cqe,
			.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = IB_SEND_SIGNALED | IB_SEND_INLINE,
			.ex.imm_data = cpu_to_be32(0x11223344),
			.sg_list = sge,
			.num_sge = 2,
		},
		.remote_addr = world.b.mr->iova,
		.rkey = world.b.mr->rkey,
	};
	u32 most;
	int ret;

	CHECK(!ib_query_qp(world.self.to.client->qp, &attr, IB_QP_CAP, &init));
	most = attr.cap.max_inline_data;
	sge[0].length = 32;
	sge[1].length = most - 32;
	sge[1].addr += 32;
	op_init(&op);
	op_expect(&op, world.self.to.client->qp, IB_WC_RDMA_WRITE);
	op_init(&recv);
	get_random_bytes(world.small, most);
	memcpy(sent, world.small, most);
	ret = op_post_recv(world.self.server->qp, &recv);
	op_expect(&recv, world.self.server->qp, IB_WC_RECV_RDMA_WITH_IMM);
	ret = ret ?: ib_post_send(world.self.to.client->qp, &wr.wr, NULL);
	if (ret)
		return ret;
	memset(world.small, 0, most);
	ret = op_wait(&op) ?: op_wait(&recv);
	if (ret)
		return ret;
	CHECK(recv.wc_flags & IB_WC_WITH_IMM);
	CHECK(recv.inv == (__force u32)cpu_to_be32(0x11223344));
	CHECK(!memcmp(page_address(world.b.pages[0]), sent, most));
	return 0;
}

/* One event for all, when the first of them has waited long enough. */
static int case_moderated(void)
{
	ktime_t began;
	int ret;

	if (world.context == IB_POLL_DIRECT)
		return 0; /* there are no events */
	msleep(SETTLED); /* the queue is armed again */
	CHECK(!rdma_set_cq_moderation(world.cq, 100, HOLD));
	began = ktime_get();
	ret = case_send();
	if (ret)
		return ret;
	CHECK(ktime_us_delta(ktime_get(), began) >= HOLD);
	return rdma_set_cq_moderation(world.cq, 0, 0);
}

static atomic_t events;

static void count_event(struct ib_cq *cq, void *private)
{
	atomic_inc(&events);
}

/* So many events come, and no more. The core warns of one that comes to its own handler. */
static bool events_come(int due)
{
	unsigned long end = jiffies + WAIT;

	while (atomic_read(&events) < due && time_before(jiffies, end))
		msleep(20);
	msleep(20); /* for one more than is due */
	return atomic_read(&events) == due;
}

/* What a consumer calls with interrupts off leaves them so. Afterwards they are on again. */
static bool irqs_stayed_off(void)
{
	bool off = irqs_disabled();

	local_irq_enable();
	return off;
}

/* Arming says that a completion waits, if it is asked to. Elsewhere the core arms the queue. */
static int case_missed_events(void)
{
	const enum ib_cq_notify_flags asked = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	const ib_comp_handler handler = world.cq->comp_handler;
	struct op op, recv;
	int ret;

	if (world.context != IB_POLL_DIRECT)
		return 0;
	atomic_set(&events, 0);
	world.cq->comp_handler = count_event;
	local_irq_disable();
	ret = ib_req_notify_cq(world.cq, asked);
	CHECK(irqs_stayed_off() && !ret);
	op_init(&op);
	op_init(&recv);
	ret = op_post_recv(world.self.server->qp, &recv) ?:
		      op_post_send(world.self.to.client->qp, &op, IB_WR_SEND, 0);
	if (ret)
		return ret;
	msleep(SETTLED);
	CHECK(events_come(1));
	CHECK(ib_req_notify_cq(world.cq, asked) == 1);
	CHECK(!ib_req_notify_cq(world.cq, IB_CQ_NEXT_COMP));
	ret = op_wait(&op) ?: op_wait(&recv) ?: case_send(); /* the last takes the event */
	CHECK(events_come(2));
	world.cq->comp_handler = handler;
	return ret;
}

/* A message, and @due events so far. */
static int send_and_count(int flags, int due)
{
	struct op op, recv;
	int ret;

	op_init(&op);
	op_init(&recv);
	op.send_flags = flags;
	ret = op_post_recv(world.self.server->qp, &recv) ?:
		      op_post_send(world.self.to.client->qp, &op, IB_WR_SEND, 0) ?:
		      op_wait(&op) ?:
										   op_wait(&recv);
	if (ret)
		return ret;
	CHECK(events_come(due));
	return 0;
}

/* The sender decides which receive raises the event. Elsewhere the core arms the queue. */
static int case_solicited(void)
{
	const ib_comp_handler handler = world.cq->comp_handler;
	int ret;

	if (world.context != IB_POLL_DIRECT)
		return 0;
	atomic_set(&events, 0);
	world.cq->comp_handler = count_event;
	CHECK(!ib_req_notify_cq(world.cq, IB_CQ_SOLICITED));
	ret = send_and_count(0, 0)		     ?:
		      send_and_count(IB_SEND_SOLICITED, 1) ?:
							     send_and_count(IB_SEND_SOLICITED, 1);
	if (ret)
		return ret; /* perhaps still armed, and the core expects no events */
	world.cq->comp_handler = handler;
	return 0;
}

/* As many completions as there is room for, and no more, however many wait. */
static int case_polled_one_by_one(void)
{
	struct op send[3], recv[3];
	struct ib_wc wc[2] = {};
	int taken = 0;
	int i, got;

	if (world.context != IB_POLL_DIRECT)
		return 0;
	for (i = 0; i < 3; i++) {
		op_init(&send[i]);
		op_init(&recv[i]);
		CHECK(!op_post_recv(world.self.server->qp, &recv[i]));
		local_irq_disable();
		got = op_post_send(world.self.to.client->qp, &send[i], IB_WR_SEND, 0);
		CHECK(irqs_stayed_off() && !got);
	}
	msleep(SETTLED); /* so that several wait */
	for (i = 0; i < 1000 && taken < 6; i++) {
		local_irq_disable();
		got = ib_poll_cq(world.cq, 1, wc);
		CHECK(irqs_stayed_off());
		CHECK(got == 0 || got == 1);
		CHECK(!wc[1].wr_cqe);
		taken += got;
		if (got)
			wc[0].wr_cqe->done(world.cq, &wc[0]);
		else
			msleep(20);
	}
	for (i = 0; i < 3; i++) {
		CHECK(completion_done(&send[i].done) && op_is_as_due(&send[i]));
		CHECK(completion_done(&recv[i].done) && op_is_as_due(&recv[i]));
	}
	return 0;
}

/* A receive that is posted when the message is there, from any context. */
static int case_late_receive(void)
{
	struct op recv;
	int ret;

	op_init(&recv);
	get_random_bytes(world.small, PAGE_SIZE);
	ret = op_do_send(IB_WR_SEND, 0);
	if (ret)
		return ret;
	msleep(50);
	local_irq_disable();
	ret = op_post_recv(world.self.server->qp, &recv);
	CHECK(irqs_stayed_off());
	ret = ret ?: op_wait(&recv);
	if (ret)
		return ret;
	CHECK(!memcmp(world.small, world.small + PAGE_SIZE / 2, PAGE_SIZE / 2));
	return case_send();
}

/* Refused where it is posted; the connection does not notice. */
static int case_refused(void)
{
	const struct ib_send_wr *bad = NULL;
	struct ib_sge sge = op_half(0);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1000 };
	struct ib_sge sges[2] = { sge, sge };
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	const struct ib_recv_wr *bad_recv = NULL;
	struct ib_recv_wr recv = { .sg_list = sges, .num_sge = 1000 };

	CHECK(ib_post_send(world.self.to.client->qp, &wr, &bad) == -EINVAL && bad == &wr);
	wr.num_sge = -1;
	CHECK(ib_post_send(world.self.to.client->qp, &wr, &bad) == -EINVAL);
	wr.num_sge = 1;
	wr.opcode = 0x77;
	CHECK(ib_post_send(world.self.to.client->qp, &wr, &bad) == -EOPNOTSUPP);
	wr.opcode = IB_WR_SEND_WITH_IMM; /* below the largest that is known */
	CHECK(ib_post_send(world.self.to.client->qp, &wr, &bad) == -EOPNOTSUPP);
	CHECK(!ib_query_qp(world.self.to.client->qp, &attr, IB_QP_CAP, &init));
	CHECK(attr.cap.max_send_sge < ARRAY_SIZE(sges) && attr.cap.max_recv_sge < ARRAY_SIZE(sges));
	wr.opcode = IB_WR_SEND;
	wr.sg_list = sges;
	wr.num_sge = attr.cap.max_send_sge + 1;
	CHECK(ib_post_send(world.self.to.client->qp, &wr, &bad) == -EINVAL);
	sges[0].length = attr.cap.max_inline_data;
	sges[1].length = 1;
	wr.send_flags = IB_SEND_INLINE;
	wr.num_sge = ARRAY_SIZE(sges);
	CHECK(ib_post_send(world.self.to.client->qp, &wr, &bad) == -EINVAL);
	CHECK(ib_post_recv(world.self.to.client->qp, &recv, &bad_recv) == -EINVAL &&
	      bad_recv == &recv);
	recv.num_sge = attr.cap.max_recv_sge + 1;
	CHECK(ib_post_recv(world.self.to.client->qp, &recv, &bad_recv) == -EINVAL);
	recv.num_sge = -1;
	CHECK(ib_post_recv(world.self.to.client->qp, &recv, &bad_recv) == -EINVAL);
	CHECK(IS_ERR(ib_alloc_mr(world.pd, IB_MR_TYPE_MEM_REG, 1 << 20)));
	return case_send();
}

/* What stands in front of it in a list is posted, and is not left until the next post. */
static int case_refused_in_a_list(void)
{
	struct ib_sge from = op_half(0), to = op_half(1);
	static struct op send, recv;
	struct ib_send_wr bad_send = { .opcode = 0x77 };
	const struct ib_send_wr *refused_send, sends = {
		.next = &bad_send,
		.wr_cqe = &send.cqe,
		.opcode = IB_WR_SEND,
		.sg_list = &from,
		.num_sge = 1,
		.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_recv_wr bad_recv = { .num_sge = -1 };
	const struct ib_recv_wr *refused_recv, recvs = {
		.next = &bad_recv,
		.wr_cqe = &recv.cqe,
		.sg_list = &to,
		.num_sge = 1,
	};

	op_init(&send);
	op_init(&recv);
	op_expect(&send, world.self.to.client->qp, IB_WC_SEND);
	op_expect(&recv, world.self.server->qp, IB_WC_RECV);
	CHECK(ib_post_send(send.due_qp, &sends, &refused_send) == -EOPNOTSUPP);
	CHECK(refused_send == &bad_send && !op_wait(&send));
	msleep(50); /* so that the message waits */
	CHECK(ib_post_recv(recv.due_qp, &recvs, &refused_recv) == -EINVAL);
	CHECK(refused_recv == &bad_recv);
	return op_wait(&recv);
}

/* What the consumer asked for, and what the connection has. */
static int case_query(void)
{
	struct ib_qp *qp = world.self.to.client->qp;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};

	CHECK(!ib_query_qp(qp, &attr, IB_QP_STATE | IB_QP_CAP, &init));
	CHECK(attr.qp_state == IB_QPS_RTS && attr.cur_qp_state == IB_QPS_RTS);
	CHECK(attr.cap.max_send_wr >= 16 && attr.cap.max_recv_wr >= 16);
	CHECK(attr.cap.max_send_sge && attr.cap.max_recv_sge);
	CHECK(attr.max_rd_atomic == world.self.maker->depth);
	CHECK(attr.max_dest_rd_atomic == world.self.maker->depth);
	CHECK(!memcmp(&init.cap, &attr.cap, sizeof(init.cap)));
	CHECK(init.qp_type == IB_QPT_RC && init.sq_sig_type == IB_SIGNAL_REQ_WR);
	CHECK(init.send_cq == world.cq && init.recv_cq == world.cq && !init.srq);
	CHECK(init.qp_context == qp->qp_context);
	return 0;
}

/* Connects @second from the address and port of @first, which TCP cannot do. */
static int connect_from_port_of(struct rdma_cm_id *first, struct self *second)
{
	struct rdma_addr *addr = &first->route.addr;
	struct rdma_cm_id *id = connect_id(self_on_event, second);

	CHECK(!IS_ERR(id) && !rdma_set_reuseaddr(first, 1) && !rdma_set_reuseaddr(id, 1));
	return connect_resolve_from(&second->to, id, (struct sockaddr *)&addr->src_addr,
				    (struct sockaddr *)&addr->dst_addr) ?:
		       second->maker->qp(id)			      ?:
		       connect_finish(&second->to, second->maker->depth);
}

/* As RTRS does. The listener's handler takes the other end for that of the first connection. */
static int case_one_port_twice(void)
{
	struct self *self = &world.self;
	struct self second = { .maker = self->maker };
	struct rdma_cm_id *server = self->server;
	int ret = connect_from_port_of(self->to.client, &second);

	if (self->server != server)
		second.server = self->server;
	self->server = server;
	connect_drop(second.to.client);
	connect_drop(second.server);
	return ret;
}

static const struct named_case cases[] = {
	{ "registration before the first message", case_register_first },
	{ "send", case_send },
	{ "answer from the callback", case_answer_from_callback },
	{ "4096 pages", case_longest_list },
	{ "fence", case_fence },
	{ "post from the handler", case_post_from_handler },
	{ "read with invalidate", case_read_with_inv },
	{ "local invalidate", case_local_inv },
	{ "registration within a page", case_within_a_page },
	{ "send with invalidate", case_send_with_inv },
	{ "write with immediate, inline", case_write_with_imm },
	{ "moderated events", case_moderated },
	{ "solicited events", case_solicited },
	{ "missed events", case_missed_events },
	{ "polled one by one", case_polled_one_by_one },
	{ "late receive", case_late_receive },
	{ "refused", case_refused },
	{ "refused in a list", case_refused_in_a_list },
	{ "refused objects", case_refused_objects },
	{ "refused request", case_refused_request },
	{ "full queues", case_full_queues },
	{ "reset", case_reset },
	{ "query", case_query },
	{ "shared receive queue", case_srq },
	{ "one port twice", case_one_port_twice },
};

/* They end the connection, so a round has one of them. */
static const struct named_case ends[] = {
	{ "bad key, drain", case_bad_key_and_drain },
	{ "drain under reads", case_drain_reads },
	{ "an event is held back", case_goes_with_event_held },
};

static int run_case(const struct named_case *c)
{
	int ret = c->run() ?: event_check();

	if (ret)
		pr_err("\"%s\" failed in context %d on vector %d: %d\n", c->name, world.context,
		       world.vector, ret);
	return ret;
}

/* All of them, and one that ends the connection. */
int cases_run(int round)
{
	size_t i;
	int ret = 0;

	for (i = 0; !ret && i < ARRAY_SIZE(cases); i++)
		ret = run_case(&cases[i]);
	return ret ?: run_case(&ends[round % ARRAY_SIZE(ends)]);
}

size_t cases_count(void)
{
	return ARRAY_SIZE(cases) + ARRAY_SIZE(ends);
}
