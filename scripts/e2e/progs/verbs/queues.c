// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Shared receive queues, completion queues, and the extended ways to use them. */
#define _GNU_SOURCE
#include "verbs.h"

#include <arpa/inet.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

static struct end s2, c2;
static struct ibv_srq *srq;

/* --- shared receive queues ------------------------------------------------------- */

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

/* Receive @id is for octet @id of the server's private region. */
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
static void srq_limit_event(void)
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
static void srq_resize(void)
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
	CHECK(depth_of_srq() >= 1000);
	attr.max_wr = 20;
	attr.srq_limit = 21;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL);
	attr.srq_limit = 2;
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	CHECK(depth_of_srq() >= 20 && depth_of_srq() < 1000);
	CHECK(!ibv_query_srq(srq, &attr) && attr.srq_limit == 2);
	while (posted < 210)
		CHECK(!give(posted++));
	while (got < posted)
		one_message(got++);
	end_srq();
}

/* The one who finds nothing fails; who shares the queue goes on. */
static void srq_run_dry(void)
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

/* --- completion queues ------------------------------------------------------------ */

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

static void cq_overrun(void)
{
	struct ibv_async_event e;
	struct ibv_cq *send_cq;
	int cqe;

	connect_pair(&c2, &s2, with_small_cq);
	send_cq = s2.id->send_cq;
	cqe = small_cq->cqe;
	for (int i = 0; i <= cqe && i < WRS; i++)
		CHECK(!recv_sge(&s2, i, sge(s2.own, i, 1)));
	for (int i = 0; i <= cqe && i < WRS; i++)
		CHECK(!send_sge(&c2, i, sge(c2.own, 0, 1), 0));
	do {
		CHECK(!ibv_get_async_event(s.id->verbs, &e));
		ibv_ack_async_event(&e);
	} while (e.event_type != IBV_EVENT_CQ_ERR);
	CHECK(e.element.cq == small_cq);
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

static void cq_resize(void)
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

static void cq_moderation(void)
{
	struct ibv_device_attr_ex dev;
	double began;

	CHECK(!ibv_query_device_ex(s.id->verbs, NULL, &dev));
	CHECK(dev.cq_mod_caps.max_cq_count == 65535 && dev.cq_mod_caps.max_cq_period == 65535);
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 0));
	/* By number: the fourth tells. */
	moderate(4, 65535);
	began = now();
	arrive(3);
	CHECK(!event_within(s.id->recv_cq_channel, 10));
	CHECK(now() - began < 0.060);
	arrive(1);
	CHECK(event_within(s.id->recv_cq_channel, 1000));
	CHECK(now() - began < 0.0655);
	for (int i = 0; i < 3; i++)
		expect(s.id->recv_cq, i, IBV_WC_SUCCESS);
	taken(1);
	CHECK(!event_within(s.id->recv_cq_channel, 100));
	/* By time: the first waits no longer than that. */
	moderate(1000, 40000);
	began = now();
	arrive(2);
	CHECK(event_within(s.id->recv_cq_channel, 2000));
	CHECK(now() - began >= 0.040);
	taken(2);
	CHECK(!event_within(s.id->recv_cq_channel, 100));
	/* Switched off: what is held back is told, and all that follow. */
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

/* --- extended CQs and QPs -------------------------------------------------------------- */

static struct ibv_cq_ex *cq_ex;
static struct ibv_qp_ex *qp_ex;

static const uint64_t all_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
				IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
				IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;

static void extended(struct end *e)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 64,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
			    IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_qp_init_attr_ex attr = {
		.cap = { 32, 32, 4, 4, 512 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = all_ops,
		.pd = s.id->pd,
		.sq_sig_all = 1,
	};

	cq_ex = ibv_create_cq_ex(e->id->verbs, &cq);
	CHECK(cq_ex);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq_ex);
	CHECK(!rdma_create_qp_ex(e->id, &attr));
	CHECK(attr.cap.max_inline_data >= 512);
	e->id->send_cq = e->id->recv_cq = attr.send_cq;
	qp_ex = ibv_qp_to_qp_ex(e->id->qp);
	CHECK(qp_ex);
}

/* Starts a poll that finds @id; the caller reads and ends it. */
static void found(uint64_t id, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	struct ibv_poll_cq_attr none = {};
	double end = now() + SECONDS;
	int ret;

	while ((ret = ibv_start_poll(cq_ex, &none)) == ENOENT)
		CHECK(now() < end);
	CHECK(!ret);
	CHECK(cq_ex->wr_id == id && cq_ex->status == status);
	CHECK(status || ibv_wc_read_opcode(cq_ex) == opcode);
	CHECK(ibv_wc_read_qp_num(cq_ex) == s2.id->qp->qp_num);
}

static void completed(uint64_t id, enum ibv_wc_opcode opcode)
{
	found(id, IBV_WC_SUCCESS, opcode);
	ibv_end_poll(cq_ex);
}

static void begin_wr(uint64_t id)
{
	ibv_wr_start(qp_ex);
	qp_ex->wr_id = id;
	qp_ex->wr_flags = 0;
}

static void end_ex(void)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(cq_ex);

	release(&c2);
	s2.id->send_cq = s2.id->recv_cq = NULL;
	release(&s2);
	CHECK(!ibv_destroy_cq(cq));
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void cq_ex_reads(void)
{
	struct ibv_values_ex clock = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	uint64_t mono = clock_ns(CLOCK_MONOTONIC), wall = clock_ns(CLOCK_REALTIME), stamp;
	struct ibv_device_attr_ex dev;

	connect_pair(&c2, &s2, extended);
	CHECK(!ibv_query_device_ex(s.id->verbs, NULL, &dev));
	CHECK(dev.completion_timestamp_mask == UINT64_MAX && dev.hca_core_clock == 1000000);
	for (int i = 0; i < 3; i++)
		CHECK(!recv_sge(&s2, i, sge(s2.own, 100 * i, 100)));
	for (int i = 0; i < 3; i++)
		CHECK(!send_sge(&c2, i, sge(c2.own, 0, 10 + i), 0));
	for (int i = 0; i < 3; i++)
		expect(c2.id->send_cq, i, IBV_WC_SUCCESS);
	usleep(50000);
	found(0, IBV_WC_SUCCESS, IBV_WC_RECV);
	for (int i = 0; i < 3; i++) {
		CHECK(cq_ex->wr_id == (unsigned int)i && ibv_wc_read_byte_len(cq_ex) == 10U + i);
		stamp = ibv_wc_read_completion_ts(cq_ex);
		CHECK(stamp >= mono && stamp <= clock_ns(CLOCK_MONOTONIC));
		mono = stamp;
		stamp = ibv_wc_read_completion_wallclock_ns(cq_ex);
		CHECK(stamp >= wall - 1000000 && stamp <= clock_ns(CLOCK_REALTIME) + 1000000);
		CHECK(ibv_next_poll(cq_ex) == (i < 2 ? 0 : ENOENT));
	}
	ibv_end_poll(cq_ex);
	CHECK(!ibv_query_rt_values_ex(s.id->verbs, &clock) &&
	      (uint64_t)clock.raw_clock.tv_nsec > mono);
	end_ex();
}

static void qp_ex_data(void)
{
	struct ibv_sge list[2] = { sge(s2.own, 0, 100), sge(s2.open, 0, 50) };
	struct ibv_data_buf bufs[3] = { { "ab", 2 }, { "", 0 }, { "cdef", 4 } };
	struct ibv_wc wc;

	for (int i = 0; i < 3; i++)
		CHECK(!recv_sge(&c2, i, sge(c2.own, 1000 * i, 1000)));
	begin_wr(1);
	ibv_wr_send(qp_ex);
	ibv_wr_set_sge_list(qp_ex, 2, list);
	qp_ex->wr_id = 2;
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data_list(qp_ex, 3, bufs);
	CHECK(!ibv_wr_complete(qp_ex));
	completed(1, IBV_WC_SEND);
	completed(2, IBV_WC_SEND);
	CHECK(expect(c2.id->recv_cq, 0, IBV_WC_SUCCESS).byte_len == 150);
	CHECK(expect(c2.id->recv_cq, 1, IBV_WC_SUCCESS).byte_len == 6);
	CHECK(!memcmp(c2.buf + BYTES, s2.buf + BYTES, 100));
	CHECK(!memcmp(c2.buf + BYTES + 100, s2.buf, 50));
	CHECK(!memcmp(c2.buf + BYTES + 1000, "abcdef", 6));
	begin_wr(3);
	ibv_wr_rdma_write(qp_ex, c2.open->rkey, (uintptr_t)c2.buf + 7);
	ibv_wr_set_inline_data(qp_ex, s2.buf + 512, 512);
	qp_ex->wr_id = 4;
	ibv_wr_rdma_write_imm(qp_ex, c2.open->rkey, (uintptr_t)c2.buf + 3000, htonl(99));
	ibv_wr_set_sge(qp_ex, s2.own->lkey, (uintptr_t)s2.own->addr, 2000);
	CHECK(!ibv_wr_complete(qp_ex));
	completed(3, IBV_WC_RDMA_WRITE);
	completed(4, IBV_WC_RDMA_WRITE);
	wc = expect(c2.id->recv_cq, 2, IBV_WC_SUCCESS);
	CHECK(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htonl(99));
	CHECK(!memcmp(c2.buf + 7, s2.buf + 512, 512));
	CHECK(!memcmp(c2.buf + 3000, s2.buf + BYTES, 2000));
	begin_wr(5);
	ibv_wr_rdma_read(qp_ex, c2.open->rkey, (uintptr_t)c2.buf + 3000);
	ibv_wr_set_sge(qp_ex, s2.own->lkey, (uintptr_t)s2.own->addr + 5000, 700);
	CHECK(!ibv_wr_complete(qp_ex));
	completed(5, IBV_WC_RDMA_READ);
	CHECK(!memcmp(s2.buf + BYTES + 5000, c2.buf + 3000, 700));
}

static void qp_ex_atomics(void)
{
	struct ibv_mr *mr = ibv_reg_mr(c2.id->pd, c2.buf, 64,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	uint64_t *target = (uint64_t *)c2.buf, *old = (uint64_t *)(s2.buf + BYTES);

	CHECK(mr);
	*target = 5;
	begin_wr(1);
	ibv_wr_atomic_fetch_add(qp_ex, mr->rkey, (uintptr_t)target, 7);
	ibv_wr_set_sge(qp_ex, s2.own->lkey, (uintptr_t)&old[0], 8);
	qp_ex->wr_id = 2;
	ibv_wr_atomic_cmp_swp(qp_ex, mr->rkey, (uintptr_t)target, 12, 1000);
	ibv_wr_set_sge(qp_ex, s2.own->lkey, (uintptr_t)&old[1], 8);
	CHECK(!ibv_wr_complete(qp_ex));
	completed(1, IBV_WC_FETCH_ADD);
	completed(2, IBV_WC_COMP_SWAP);
	CHECK(old[0] == 5 && old[1] == 12 && *target == 1000);
	CHECK(!ibv_dereg_mr(mr));
}

static void qp_ex_windows(void)
{
	struct ibv_mr *mr =
		ibv_reg_mr(s2.id->pd, s2.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(s2.id->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = { mr, (uintptr_t)s2.buf, 4096, IBV_ACCESS_REMOTE_WRITE };
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	CHECK(mr && mw);
	begin_wr(1);
	ibv_wr_bind_mw(qp_ex, mw, rkey, &info);
	CHECK(!ibv_wr_complete(qp_ex));
	completed(1, IBV_WC_BIND_MW);
	CHECK(!post(&c2, 9, IBV_WR_RDMA_WRITE, sge(c2.own, 0, 64), (uintptr_t)s2.buf, rkey,
		    IBV_SEND_SIGNALED));
	expect(c2.id->send_cq, 9, IBV_WC_SUCCESS);
	CHECK(!recv_sge(&c2, 3, sge(c2.own, 0, 8)));
	begin_wr(2);
	ibv_wr_local_inv(qp_ex, rkey);
	CHECK(!ibv_wr_complete(qp_ex));
	completed(2, IBV_WC_LOCAL_INV);
	/* Nothing is bound there, so the peer fails the invalidation, and tells. */
	begin_wr(3);
	ibv_wr_send_inv(qp_ex, 0x12345600);
	ibv_wr_set_sge(qp_ex, s2.own->lkey, (uintptr_t)s2.own->addr, 8);
	CHECK(!ibv_wr_complete(qp_ex));
	completed(3, IBV_WC_SEND);
	expect(c2.id->recv_cq, 3, IBV_WC_REM_ACCESS_ERR);
	flushes(&c2);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
}

static void qp_ex_every_opcode(void)
{
	connect_pair(&c2, &s2, extended);
	fill(&s2, 3);
	fill(&c2, 4);
	qp_ex_data();
	qp_ex_atomics();
	qp_ex_windows();
	end_ex();
}

/* A mistake is kept until complete, and then nothing of the batch is posted. */
static void qp_ex_mistakes(void)
{
	static char big[600];

	connect_pair(&c2, &s2, extended);
	begin_wr(1);
	ibv_wr_send(qp_ex);
	ibv_wr_set_sge(qp_ex, s2.own->lkey, (uintptr_t)s2.own->addr, 8);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data(qp_ex, big, sizeof(big));
	CHECK(ibv_wr_complete(qp_ex) == EINVAL);
	begin_wr(2);
	ibv_wr_send(qp_ex);
	ibv_wr_abort(qp_ex);
	nothing(ibv_cq_ex_to_cq(cq_ex));
	works(&c2, &s2);
	end_ex();
}

const struct test_case queue_cases[] = {
	CASE(srq_limit_event), CASE(srq_resize),
	CASE(srq_run_dry),     CASE(cq_overrun),
	CASE(cq_resize),       CASE(cq_moderation),
	CASE(cq_ex_reads),     CASE(qp_ex_every_opcode),
	CASE(qp_ex_mistakes),  {},
};
