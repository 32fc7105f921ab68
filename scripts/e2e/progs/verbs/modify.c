// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What ibv_modify_qp() takes, what it refuses, and what a QP's access flags keep a peer from. */
#include "verbs.h"

#define OPEN (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define TO_RTR                                                                              \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |     \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static struct end s2, c2;

static struct ibv_qp *lone_qp(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = c.id->send_cq,
					 .recv_cq = c.id->recv_cq };
	struct ibv_qp *qp = ibv_create_qp(c.id->pd, &attr);

	CHECK(qp);
	return qp;
}

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	memset(&attr, 0x5a, sizeof(attr));
	CHECK(!ibv_query_qp(qp, &attr, (1 << 21) - 1, &init));
	return attr;
}

static int modify(struct ibv_qp *qp, int mask, struct ibv_qp_attr attr)
{
	attr.port_num = 1;
	return ibv_modify_qp(qp, &attr, mask);
}

static int to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	return modify(qp, IBV_QP_STATE, (struct ibv_qp_attr){ .qp_state = state });
}

/* As a program that connects by hand does. */
static void init_with(struct ibv_qp *qp, unsigned int access)
{
	CHECK(!modify(qp, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		      (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .qp_access_flags = access }));
}

static void restrict_to(struct end *e, unsigned int access)
{
	CHECK(!modify(e->id->qp, IBV_QP_ACCESS_FLAGS,
		      (struct ibv_qp_attr){ .qp_access_flags = access }));
	CHECK(query(e->id->qp).qp_access_flags == access);
}

/* The same modify as it should be, but for one thing, changes nothing at all. */
CASE("modify", a_refused_modify_changes_nothing)
{
	struct ibv_qp_attr want = { .qp_state = IBV_QPS_RTS,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_qp *qp = lone_qp();

	init_with(qp, IBV_ACCESS_REMOTE_WRITE);
	CHECK(modify(qp, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, want) == EINVAL);
	want.qp_state = IBV_QPS_ERR;
	CHECK(modify(qp, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, want) == EINVAL);
	want.qp_state = IBV_QPS_RESET;
	CHECK(modify(qp, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, want) == EINVAL);
	CHECK(modify(qp, IBV_QP_ACCESS_FLAGS | IBV_QP_CAP, want) == EOPNOTSUPP);
	want.pkey_index = 7;
	CHECK(modify(qp, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, want) == EINVAL);
	CHECK(query(qp).qp_state == IBV_QPS_INIT);
	CHECK(query(qp).qp_access_flags == IBV_ACCESS_REMOTE_WRITE);
	CHECK(!ibv_destroy_qp(qp));

	want.min_rnr_timer = 32;
	want.qp_state = IBV_QPS_SQD;
	CHECK(modify(c.id->qp, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER, want) == EINVAL);
	CHECK(modify(c.id->qp, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, want) == EINVAL);
	CHECK(query(c.id->qp).qp_access_flags == OPEN);
	works(&c, &s);
}

CASE("modify", a_modify_heeds_the_current_state)
{
	struct ibv_qp_attr want = { .qp_state = IBV_QPS_ERR, .cur_qp_state = IBV_QPS_SQD };
	int mask = IBV_QP_STATE | IBV_QP_CUR_STATE;
	struct ibv_qp *qp = lone_qp();

	CHECK(modify(c.id->qp, mask, want) == EINVAL);
	CHECK(modify(c.id->qp, IBV_QP_CUR_STATE, want) == EINVAL);
	works(&c, &s);
	want.cur_qp_state = IBV_QPS_RTS;
	CHECK(modify(qp, mask, want) == EINVAL && query(qp).qp_state == IBV_QPS_INIT);
	CHECK(!modify(c.id->qp, mask, want) && query(c.id->qp).qp_state == IBV_QPS_ERR);
	want = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .cur_qp_state = IBV_QPS_RESET };
	CHECK(!modify(qp, mask, want));	/* fresh: libibverbs says RESET, too */
	CHECK(modify(qp, mask, want) == EINVAL);
	CHECK(!ibv_destroy_qp(qp));
}

/* State by state: what is asked for is done, or refused. */
CASE("modify", a_qp_without_a_connection)
{
	struct ibv_qp *qp = lone_qp();

	CHECK(query(qp).qp_state == IBV_QPS_INIT);	/* as rdma-core's tests ask for */
	CHECK(to(qp, IBV_QPS_RTR) == EINVAL && to(qp, IBV_QPS_RTS) == EINVAL);
	CHECK(to(qp, IBV_QPS_SQD) == EINVAL && to(qp, IBV_QPS_SQE) == EINVAL);
	CHECK(!to(qp, IBV_QPS_RESET) && query(qp).qp_state == IBV_QPS_RESET);
	CHECK(to(qp, IBV_QPS_SQD) == EINVAL && to(qp, IBV_QPS_RTR) == EINVAL);
	CHECK(!to(qp, IBV_QPS_INIT) && query(qp).qp_state == IBV_QPS_INIT);
	CHECK(!to(qp, IBV_QPS_INIT));
	CHECK(to(qp, IBV_QPS_SQD) == EINVAL && to(qp, IBV_QPS_RTS) == EINVAL);
	CHECK(to(qp, IBV_QPS_RTR) == EINVAL && query(qp).qp_state == IBV_QPS_INIT);
	CHECK(!to(qp, IBV_QPS_ERR) && query(qp).qp_state == IBV_QPS_ERR);
	CHECK(to(qp, IBV_QPS_INIT) == EINVAL && to(qp, IBV_QPS_RTS) == EINVAL);
	CHECK(to(qp, IBV_QPS_SQD) == EINVAL && to(qp, IBV_QPS_RTR) == EINVAL);
	CHECK(!to(qp, IBV_QPS_ERR) && !to(qp, IBV_QPS_RESET) && !to(qp, IBV_QPS_RESET));
	CHECK(query(qp).qp_state == IBV_QPS_RESET && !query(qp).qp_access_flags);
	CHECK(!ibv_destroy_qp(qp));
}

static void refuses(struct ibv_qp *qp, int mask, struct ibv_qp_attr attr, int error)
{
	int ret = modify(qp, mask, attr);

	if (ret != error) {
		printf("mask %#x: %s, not %s\n", mask, strerror(ret), strerror(error));
		exit(1);
	}
}

/* What weft does not do, and values that no device accepts. */
CASE("modify", what_is_not_done_is_refused)
{
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_qp_attr bad = { .pkey_index = 1,
				   .min_rnr_timer = 32,
				   .path_mig_state = IBV_MIG_ARMED,
				   .qp_access_flags = 1 << 19 };
	struct ibv_qp *qp = c.id->qp;

	refuses(qp, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, sqd, EOPNOTSUPP);
	refuses(qp, IBV_QP_PKEY_INDEX, bad, EINVAL);
	refuses(qp, IBV_QP_MIN_RNR_TIMER, bad, EINVAL);
	refuses(qp, IBV_QP_PATH_MIG_STATE, bad, EOPNOTSUPP);
	refuses(qp, IBV_QP_ACCESS_FLAGS, bad, EINVAL);
	refuses(qp, IBV_QP_QKEY, bad, EINVAL);
	refuses(qp, IBV_QP_CAP, bad, EOPNOTSUPP);
	refuses(qp, IBV_QP_TIMEOUT, (struct ibv_qp_attr){ .timeout = 14 }, EINVAL);
	refuses(qp, IBV_QP_RETRY_CNT, (struct ibv_qp_attr){ .retry_cnt = 7 }, EINVAL);
	refuses(qp, IBV_QP_DEST_QPN, (struct ibv_qp_attr){ .dest_qp_num = 2 }, EINVAL);
	refuses(qp, IBV_QP_STATE, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR }, EINVAL);
	refuses(qp, IBV_QP_STATE, (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT }, EINVAL);
	CHECK(!modify(qp, IBV_QP_PORT, bad));	/* rdma_cm's, for RTR and RTS */
	CHECK(!to(qp, IBV_QPS_RTS));
	works(&c, &s);
}

/* To the server's QP, by that address vector. */
static struct ibv_qp_attr rtr_by(struct ibv_ah_attr ah)
{
	return (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = s.id->qp->qp_num,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 12,
				     .ah_attr = ah };
}

/* No address vector makes a path where there is none. */
CASE("modify", rtr_without_a_path_is_refused)
{
	struct ibv_qp_attr rtr = rtr_by((struct ibv_ah_attr){ .dlid = 1, .port_num = 1 });
	struct ibv_qp *qp = lone_qp();

	refuses(qp, TO_RTR, rtr, EINVAL);
	init_with(qp, 0);
	refuses(qp, TO_RTR, rtr, EINVAL);
	refuses(qp, TO_RTR & ~IBV_QP_AV, rtr, EINVAL);
	refuses(qp, IBV_QP_AV | IBV_QP_PORT, rtr, EINVAL);
	CHECK(query(qp).qp_state == IBV_QPS_INIT && !query(qp).dest_qp_num);
	CHECK(!ibv_destroy_qp(qp));
	refuses(c.id->qp, TO_RTR, rtr, EINVAL);
	works(&c, &s);
}

static int send_imm(struct ibv_qp *qp)
{
	static char data[4];
	struct ibv_sge sg = { (uintptr_t)data, sizeof(data), 0 };
	struct ibv_send_wr *bad, wr = { .wr_id = 1,
					.opcode = IBV_WR_SEND_WITH_IMM,
					.sg_list = &sg,
					.num_sge = 1,
					.send_flags = IBV_SEND_INLINE };

	return ibv_post_send(qp, &wr, &bad);
}

/* Immediate data is for a QP that has a peer, which a RESET takes from it. */
CASE("modify", a_reset_qp_has_no_peer)
{
	struct ibv_qp_attr rtr = rtr_by((struct ibv_ah_attr){ .is_global = 1, .port_num = 1 });
	struct ibv_qp *qp = lone_qp();

	rtr.ah_attr.grh.sgid_index = 1;
	CHECK(!ibv_query_gid(c.id->verbs, 1, 1, &rtr.ah_attr.grh.dgid));
	CHECK(send_imm(qp) == EOPNOTSUPP);
	init_with(qp, 0);
	CHECK(send_imm(qp) == EOPNOTSUPP);
	CHECK(!modify(qp, TO_RTR, rtr) && query(qp).dest_qp_num == s.id->qp->qp_num);
	CHECK(!send_imm(qp));
	CHECK(!to(qp, IBV_QPS_RESET) && !query(qp).dest_qp_num);
	CHECK(send_imm(qp) == EOPNOTSUPP);
	CHECK(!ibv_destroy_qp(qp));
}

/* Nothing in it is left as the kernel happened to have it. */
CASE("modify", query_tells_what_holds)
{
	struct ibv_qp_attr set = { .min_rnr_timer = 17 }, got = query(c.id->qp);
	struct ibv_port_attr port;

	CHECK(got.qp_state == IBV_QPS_RTS && got.cur_qp_state == IBV_QPS_RTS && got.port_num == 1);
	CHECK(got.max_rd_atomic == read_depth && got.max_dest_rd_atomic == read_depth);
	CHECK(!got.qkey && !got.rq_psn && !got.sq_psn && !got.dest_qp_num && !got.pkey_index);
	CHECK(!got.timeout && !got.retry_cnt && !got.rnr_retry && !got.min_rnr_timer);
	CHECK(!got.ah_attr.port_num && !got.ah_attr.dlid && !got.alt_port_num);
	CHECK(!got.alt_pkey_index && !got.alt_timeout);
	CHECK(!ibv_query_port(c.id->verbs, 1, &port) && got.path_mtu == port.active_mtu);
	CHECK(!modify(c.id->qp, IBV_QP_MIN_RNR_TIMER, set));
	CHECK(query(c.id->qp).min_rnr_timer == 17);
	works(&c, &s);
}

CASE("modify", query_tells_how_a_qp_was_made)
{
	struct ibv_qp_init_attr attr = { .cap = { 5, 9, 2, 3, 64 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = c.id->send_cq,
					 .recv_cq = c.id->recv_cq };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got;
	struct ibv_qp *qp;

	for (int all = 0; all < 2; all++) {
		attr.sq_sig_all = all;
		qp = ibv_create_qp(c.id->pd, &attr);
		CHECK(qp);
		memset(&init, 0x5a, sizeof(init));
		CHECK(!ibv_query_qp(qp, &got, IBV_QP_CAP, &init));
		CHECK(init.sq_sig_all == all && init.qp_type == IBV_QPT_RC);
		CHECK(init.send_cq == attr.send_cq && init.recv_cq == attr.recv_cq && !init.srq);
		/* Queues are powers of two, and creating has told what was granted. */
		CHECK(init.cap.max_send_wr == 8 && init.cap.max_recv_wr == 16);
		CHECK(init.cap.max_send_sge >= 2 && init.cap.max_recv_sge >= 3);
		CHECK(init.cap.max_inline_data >= 64);
		CHECK(!memcmp(&attr.cap, &init.cap, sizeof(attr.cap)));
		CHECK(!ibv_destroy_qp(qp));
	}
}

/* 255 Reads stand for as many as the device has, which is more than a query can tell. */
CASE("modify", query_tells_no_more_than_8_bits)
{
	read_depth = 255;
	connect_pair(&c2, &s2, NULL);
	CHECK(query(c2.id->qp).max_rd_atomic == 255 && query(s2.id->qp).max_rd_atomic == 255);
	CHECK(query(c2.id->qp).max_dest_rd_atomic == 255);
	CHECK(query(s2.id->qp).max_dest_rd_atomic == 255);
	works(&c2, &s2);
	release(&c2);
	release(&s2);
}

/* rdma_disconnect() asks for SQD first, and fails if that does. */
CASE("modify", a_disconnect_never_fails)
{
	double end = now() + SECONDS;

	CHECK(!rdma_disconnect(c.id));
	while (query(s.id->qp).qp_state != IBV_QPS_ERR)
		CHECK(now() < end);
	CHECK(!rdma_disconnect(s.id));
	CHECK(!to(s.id->qp, IBV_QPS_SQD) && !to(c.id->qp, IBV_QPS_SQD));
	CHECK(query(s.id->qp).qp_state == IBV_QPS_ERR);
	flushes(&c);
	flushes(&s);
}

/* --- access flags -------------------------------------------------------------------------- */

static struct ibv_mr *words;

static uint64_t *word(int i)
{
	return (uint64_t *)s.buf + i;
}

/* The server's memory, open to everything as far as the key goes. */
static void prepare(void)
{
	words = ibv_reg_mr(s.id->pd, s.buf, 4096, OPEN | IBV_ACCESS_LOCAL_WRITE);
	CHECK(words);
	memset(s.buf, 0x11, 4096);
	memset(c.buf, 0x22, 4096);
}

static int ask(enum ibv_wr_opcode op)
{
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return post_atomic(&c, op, op, sge(c.open, 0, 8), (uintptr_t)word(1), words->rkey,
				   1, 0);
	return post(&c, op, op, sge(c.open, 0, 8), (uintptr_t)word(1), words->rkey,
		    IBV_SEND_SIGNALED);
}

static void allowed(enum ibv_wr_opcode op)
{
	CHECK(!ask(op));
	expect(c.id->send_cq, op, IBV_WC_SUCCESS);
}

static void event_of(struct end *e, enum ibv_event_type type)
{
	struct ibv_async_event event;

	for (;;) {
		CHECK(!ibv_get_async_event(e->id->verbs, &event));
		ibv_ack_async_event(&event);
		if (event.element.qp == e->id->qp)
			break;
	}
	CHECK(event.event_type == type);
}

/* The request fails by name, if it has not completed yet, and touches nothing. */
static void refused(enum ibv_wr_opcode op)
{
	struct ibv_wc wc;

	CHECK(!ask(op));
	wc = next(c.id->send_cq);
	CHECK(wc.wr_id == op && (wc.status == IBV_WC_REM_ACCESS_ERR ||
				 (op == IBV_WR_RDMA_WRITE && wc.status == IBV_WC_SUCCESS)));
	event_of(&s, IBV_EVENT_QP_ACCESS_ERR);
	for (int i = 0; i < 512; i++)
		CHECK(*word(i) == 0x1111111111111111);
	for (int i = 0; i < 8 && op != IBV_WR_RDMA_WRITE; i++)
		CHECK(c.buf[i] == 0x22);
	flushes(&c);
	flushes(&s);
	CHECK(!ibv_dereg_mr(words));
}

/* rdma_cm names nothing for one side, Read and Write for the other, and never atomics. */
CASE("access flags", rdma_cm_restricts_nothing)
{
	prepare();
	CHECK(query(s.id->qp).qp_access_flags == OPEN && query(c.id->qp).qp_access_flags == OPEN);
	allowed(IBV_WR_RDMA_WRITE);
	allowed(IBV_WR_RDMA_READ);
	allowed(IBV_WR_ATOMIC_FETCH_AND_ADD);
	CHECK(!ibv_dereg_mr(words));
}

CASE("access flags", a_qp_without_write)
{
	prepare();
	restrict_to(&s, OPEN & ~IBV_ACCESS_REMOTE_WRITE);
	allowed(IBV_WR_RDMA_READ);
	memset(c.buf, 0x22, 8);
	refused(IBV_WR_RDMA_WRITE);
}

CASE("access flags", a_qp_without_read)
{
	prepare();
	restrict_to(&s, OPEN & ~IBV_ACCESS_REMOTE_READ);
	allowed(IBV_WR_RDMA_WRITE);
	allowed(IBV_WR_ATOMIC_FETCH_AND_ADD);
	memset(s.buf, 0x11, 4096);
	memset(c.buf, 0x22, 8);
	refused(IBV_WR_RDMA_READ);
}

CASE("access flags", a_qp_without_atomics)
{
	prepare();
	restrict_to(&s, OPEN & ~IBV_ACCESS_REMOTE_ATOMIC);
	allowed(IBV_WR_RDMA_WRITE);
	allowed(IBV_WR_RDMA_READ);
	memset(s.buf, 0x11, 4096);
	memset(c.buf, 0x22, 8);
	refused(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

/* It opens nothing to its peer, and does everything itself. */
CASE("access flags", a_closed_qp_is_no_worse_off)
{
	restrict_to(&c, 0);
	works(&c, &s);
	fill(&s, 6);
	CHECK(!post(&c, 1, IBV_WR_RDMA_READ, sge(c.own, 0, 3000), (uintptr_t)s.buf, s.open->rkey,
		    IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 1, IBV_WC_SUCCESS);
	CHECK(!memcmp(c.own->addr, s.buf, 3000));
	CHECK(!post(&c, 2, IBV_WR_RDMA_WRITE, sge(c.own, 0, 3000), (uintptr_t)s.buf, s.open->rkey,
		    IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
	works(&c, &s);
}

/* What was taken away can be given back. */
CASE("access flags", rights_come_and_go)
{
	prepare();
	for (int i = 0; i < 20; i++) {
		restrict_to(&s, i % 2 ? OPEN : IBV_ACCESS_REMOTE_WRITE);
		allowed(IBV_WR_RDMA_WRITE);
		if (i % 2)
			allowed(IBV_WR_ATOMIC_FETCH_AND_ADD);
	}
	restrict_to(&s, 0);
	memset(s.buf, 0x11, 4096);
	memset(c.buf, 0x22, 8);
	refused(IBV_WR_RDMA_READ);
}

static void make_restricted(struct end *e)
{
	make_qp(e);
	restrict_to(e, IBV_ACCESS_REMOTE_READ);
}

/* rdma_accept() sets Read and Write, without effect. */
CASE("access flags", own_flags_outlast_rdma_cm)
{
	connect_pair(&c2, &s2, make_restricted);
	CHECK(query(s2.id->qp).qp_access_flags == IBV_ACCESS_REMOTE_READ);
	works(&c2, &s2);
	CHECK(!post(&c2, 1, IBV_WR_RDMA_READ, sge(c2.own, 0, 8), (uintptr_t)s2.buf, s2.open->rkey,
		    IBV_SEND_SIGNALED));
	expect(c2.id->send_cq, 1, IBV_WC_SUCCESS);
	memset(s2.buf, 0x11, 8);
	CHECK(!post(&c2, 2, IBV_WR_RDMA_WRITE, sge(c2.own, 0, 8), (uintptr_t)s2.buf, s2.open->rkey,
		    IBV_SEND_SIGNALED));
	next(c2.id->send_cq);
	event_of(&s2, IBV_EVENT_QP_ACCESS_ERR);
	for (int i = 0; i < 8; i++)
		CHECK(s2.buf[i] == 0x11);
	release(&c2);
	release(&s2);
}

/* A long Read is under way while its right is taken away: it ends, whole or not at all. */
CASE("access flags", a_right_goes_amid_a_read)
{
	struct ibv_wc wc;

	memset(s.buf, 0x33, BYTES);
	for (int i = 0; i < WRS; i++)
		CHECK(!post(&c, i, IBV_WR_RDMA_READ, sge(c.open, 0, BYTES), (uintptr_t)s.buf,
			    s.open->rkey, IBV_SEND_SIGNALED));
	restrict_to(&s, IBV_ACCESS_REMOTE_WRITE);
	for (int i = 0, failed = 0; i < WRS; i++) {
		wc = next(c.id->send_cq);
		CHECK(wc.wr_id == (uint64_t)i);
		CHECK(failed ? wc.status == IBV_WC_WR_FLUSH_ERR :
			       wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ACCESS_ERR ||
				       wc.status == IBV_WC_WR_FLUSH_ERR);
		failed |= wc.status != IBV_WC_SUCCESS;
	}
}
