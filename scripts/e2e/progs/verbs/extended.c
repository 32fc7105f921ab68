// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The extended ways to use completion queues and queue pairs. */
#define _GNU_SOURCE
#include "verbs.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static struct end s2, c2;
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp_ex *qp_ex;

static const uint64_t all_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
				IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
				IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;

static void make_extended(struct end *e, int all_signalled)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 64,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
			    IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
			    IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_qp_init_attr_ex attr = {
		.cap = { 32, 32, 4, 4, 512 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = all_ops,
		.pd = s.id->pd,
		.sq_sig_all = all_signalled,
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

static void extended(struct end *e)
{
	make_extended(e, 1);
}

static void extended_unsignalled(struct end *e)
{
	make_extended(e, 0);
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

/* Binds @mw to the first 4096 bytes of @mr. Returns its key. */
static uint32_t bind_window(struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_mw_bind_info info = { mr, (uintptr_t)mr->addr, 4096, IBV_ACCESS_REMOTE_WRITE };
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	begin_wr(1);
	ibv_wr_bind_mw(qp_ex, mw, rkey, &info);
	CHECK(!ibv_wr_complete(qp_ex));
	completed(1, IBV_WC_BIND_MW);
	return rkey;
}

CASE("queues", cq_ex_reads)
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

/* An entry that was read is free again: more come than the queue has room for. */
CASE("queues", cq_ex_frees_what_was_read)
{
	int room;

	connect_pair(&c2, &s2, extended);
	room = ibv_cq_ex_to_cq(cq_ex)->cqe;
	for (int i = 0; i < 2 * room; i++) {
		CHECK(!recv_sge(&s2, i, sge(s2.own, 0, 8)));
		CHECK(!send_sge(&c2, i, sge(c2.own, 0, 8), 0));
		expect(c2.id->send_cq, i, IBV_WC_SUCCESS);
		completed(i, IBV_WC_RECV);
	}
	end_ex();
}

static void stream_write(uint64_t id, int flags)
{
	CHECK(!post(&s2, id, IBV_WR_RDMA_WRITE, sge(s2.own, 0, 1), (uintptr_t)c2.buf, c2.open->rkey,
		    flags));
}

/* As any poll that finds nothing does: the request does not wait for the kernel to look. */
CASE_WITH("queues", cq_ex_rings_for_what_was_put_off, "sq_poll_interval_us=10000")
{
	struct ibv_poll_cq_attr none = {};
	unsigned long before, rang = 0;

	connect_pair(&c2, &s2, extended_unsignalled);
	for (int i = 0; i < 10 && !rang; i++) {
		for (int k = 0; k < 3 * WRS; k++) {
			bool last = k % WRS == WRS - 1;

			stream_write(k, last ? IBV_SEND_SIGNALED : 0);
			if (last)
				completed(k, IBV_WC_RDMA_WRITE);
		}
		stream_write(100, 0);
		before = counted("tx_doorbells");
		CHECK(ibv_start_poll(cq_ex, &none) == ENOENT);
		rang = counted("tx_doorbells") - before;
	}
	CHECK(rang);
	end_ex();
}

/* What came with a message is read with it; nothing, where nothing came. */
CASE("queues", cq_ex_reads_what_came_along)
{
	const __be32 immediate = htonl(0xa1b2c3d4);
	struct ibv_send_wr *bad, wr = { .wr_id = 3, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t rkey;

	connect_pair(&c2, &s2, extended);
	mr = ibv_reg_mr(s2.id->pd, s2.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(s2.id->pd, IBV_MW_TYPE_2);
	CHECK(mr && mw);
	rkey = bind_window(mw, mr);
	for (int i = 2; i < 5; i++)
		CHECK(!recv_sge(&s2, i, sge(s2.own, 0, 100)));
	CHECK(!send_sge(&c2, 2, sge(c2.own, 0, 8), 0));
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.imm_data = immediate;
	wr.wr.rdma.remote_addr = (uintptr_t)s2.buf;
	wr.wr.rdma.rkey = s2.open->rkey;
	CHECK(!ibv_post_send(c2.id->qp, &wr, &bad));
	wr = (struct ibv_send_wr){ .wr_id = 4, .opcode = IBV_WR_SEND_WITH_INV };
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.invalidate_rkey = rkey;
	CHECK(!ibv_post_send(c2.id->qp, &wr, &bad));
	for (int i = 2; i < 5; i++)
		expect(c2.id->send_cq, i, IBV_WC_SUCCESS);

	found(2, IBV_WC_SUCCESS, IBV_WC_RECV);
	CHECK(!ibv_wc_read_wc_flags(cq_ex) && !ibv_wc_read_vendor_err(cq_ex));
	/* What iWARP lacks. */
	CHECK(!ibv_wc_read_src_qp(cq_ex) && !ibv_wc_read_slid(cq_ex) && !ibv_wc_read_sl(cq_ex));
	CHECK(!ibv_wc_read_dlid_path_bits(cq_ex));
	ibv_end_poll(cq_ex);
	found(3, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK(ibv_wc_read_wc_flags(cq_ex) == IBV_WC_WITH_IMM);
	CHECK(ibv_wc_read_imm_data(cq_ex) == immediate);
	ibv_end_poll(cq_ex);
	found(4, IBV_WC_SUCCESS, IBV_WC_RECV);
	CHECK(ibv_wc_read_wc_flags(cq_ex) == IBV_WC_WITH_INV);
	CHECK(ibv_wc_read_invalidated_rkey(cq_ex) == rkey);
	ibv_end_poll(cq_ex);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
	end_ex();
}

/* The fault that either poll tells: the same request fails at an end of each. */
CASE("queues", cq_ex_reads_the_vendors_error)
{
	struct ibv_sge nowhere = { 0x1000, 8, 0x12345 };
	struct ibv_wc wc;

	connect_pair(&c2, &s2, extended);
	CHECK(!send_sge(&s2, 1, nowhere, 0));
	found(1, IBV_WC_LOC_PROT_ERR, IBV_WC_SEND);
	CHECK(!send_sge(&c, 1, nowhere, 0));
	wc = expect(c.id->send_cq, 1, IBV_WC_LOC_PROT_ERR);
	CHECK(wc.vendor_err && ibv_wc_read_vendor_err(cq_ex) == wc.vendor_err);
	ibv_end_poll(cq_ex);
	end_ex();
}

/* A field can be read where it alone was asked for. */
CASE("queues", cq_ex_of_each_field)
{
	static const struct {
		uint64_t flag;
		size_t reader;
	} fields[] = {
		{ IBV_WC_EX_WITH_BYTE_LEN, offsetof(struct ibv_cq_ex, read_byte_len) },
		{ IBV_WC_EX_WITH_IMM, offsetof(struct ibv_cq_ex, read_imm_data) },
		{ IBV_WC_EX_WITH_QP_NUM, offsetof(struct ibv_cq_ex, read_qp_num) },
		{ IBV_WC_EX_WITH_SRC_QP, offsetof(struct ibv_cq_ex, read_src_qp) },
		{ IBV_WC_EX_WITH_SLID, offsetof(struct ibv_cq_ex, read_slid) },
		{ IBV_WC_EX_WITH_SL, offsetof(struct ibv_cq_ex, read_sl) },
		{ IBV_WC_EX_WITH_DLID_PATH_BITS, offsetof(struct ibv_cq_ex, read_dlid_path_bits) },
		{ IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		  offsetof(struct ibv_cq_ex, read_completion_ts) },
		{ IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		  offsetof(struct ibv_cq_ex, read_completion_wallclock_ns) },
	};
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };
	struct ibv_cq_ex *cq;
	void (*reader)(void);

	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		attr.wc_flags = fields[i].flag;
		cq = ibv_create_cq_ex(s.id->verbs, &attr);
		CHECK(cq);
		memcpy(&reader, (char *)cq + fields[i].reader, sizeof(reader));
		CHECK(reader);
		CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	}
}

/* Readers that weft lacks cannot be asked for, so none is missing. */
CASE("queues", cq_ex_of_unknown_fields)
{
	static const uint64_t unknown[] = { IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG,
					    IBV_WC_EX_WITH_TM_INFO };
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };

	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | unknown[i];
		errno = 0;
		CHECK(!ibv_create_cq_ex(s.id->verbs, &attr) && errno == EOPNOTSUPP);
	}
}

/* What a later library may ask for is refused, and not left out. */
CASE("queues", cq_ex_of_unknown_attributes)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .comp_mask = 1 << 30 };
	struct ibv_poll_cq_attr unknown = { .comp_mask = 1 };
	struct ibv_poll_cq_attr none = {};
	struct ibv_cq_ex *cq;

	errno = 0;
	CHECK(!ibv_create_cq_ex(s.id->verbs, &attr) && errno == EOPNOTSUPP);
	/* What is not named is not looked at. */
	attr.comp_mask = 0;
	attr.flags = UINT32_MAX;
	cq = ibv_create_cq_ex(s.id->verbs, &attr);
	CHECK(cq && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	for (attr.flags = 2; attr.flags; attr.flags <<= 1) {
		errno = 0;
		CHECK(!ibv_create_cq_ex(s.id->verbs, &attr) && errno == EOPNOTSUPP);
	}
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq = ibv_create_cq_ex(s.id->verbs, &attr);
	CHECK(cq);
	CHECK(ibv_start_poll(cq, &unknown) == EINVAL && ibv_start_poll(cq, &none) == ENOENT);
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

CASE("queues", clock_values_that_are_unknown)
{
	struct ibv_values_ex clock = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	uint64_t before = clock_ns(CLOCK_MONOTONIC);

	/* Ticks, all of them in one field. */
	clock.raw_clock.tv_sec = 77;
	CHECK(!ibv_query_rt_values_ex(s.id->verbs, &clock) && !clock.raw_clock.tv_sec);
	CHECK((uint64_t)clock.raw_clock.tv_nsec >= before);
	CHECK((uint64_t)clock.raw_clock.tv_nsec <= clock_ns(CLOCK_MONOTONIC));
	clock.comp_mask |= 1 << 1;
	CHECK(ibv_query_rt_values_ex(s.id->verbs, &clock) == EOPNOTSUPP);
}

static struct ibv_qp *qp_with(struct ibv_qp_init_attr_ex attr)
{
	attr.cap = (struct ibv_qp_cap){ 4, 4, 1, 1, 0 };
	attr.qp_type = IBV_QPT_RC;
	attr.send_cq = attr.recv_cq = s.id->send_cq;
	attr.pd = s.id->pd;
	errno = 0;
	return ibv_create_qp_ex(s.id->verbs, &attr);
}

/* The same of a QP. Naming an attribute asks for nothing as long as it is 0. */
CASE("queues", qp_ex_of_unknown_attributes)
{
	const uint32_t harmless = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
				  IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	struct ibv_qp_init_attr_ex attr = { .comp_mask = harmless };
	struct ibv_qp *qp = qp_with(attr);

	CHECK(qp && !ibv_destroy_qp(qp));
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	CHECK(!qp_with(attr) && errno == EOPNOTSUPP);
	attr = (struct ibv_qp_init_attr_ex){ .comp_mask = harmless, .max_tso_header = 64 };
	CHECK(!qp_with(attr) && errno == EOPNOTSUPP);
	attr = (struct ibv_qp_init_attr_ex){ .comp_mask = harmless | IBV_QP_INIT_ATTR_RX_HASH };
	CHECK(!qp_with(attr) && errno == EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
	CHECK(!qp_with(attr) && errno == EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS;
	CHECK(!qp_with(attr) && errno == EINVAL);
}

/* A request that cannot be built is not promised, whichever it is. */
CASE("queues", qp_ex_of_each_operation)
{
	const uint64_t buildable = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |
				   IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
				   IBV_QP_EX_WITH_BIND_MW;
	struct ibv_qp_init_attr_ex attr = {
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};
	struct ibv_qp *qp;

	for (int bit = 0; bit < 64; bit++) {
		attr.send_ops_flags = 1ULL << bit;
		qp = qp_with(attr);
		if (buildable >> bit & 1)
			CHECK(qp && !ibv_destroy_qp(qp));
		else
			CHECK(!qp && errno == EOPNOTSUPP);
	}
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
	uint32_t rkey;

	CHECK(mr && mw);
	rkey = bind_window(mw, mr);
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
	found(3, status_of_refused(IBV_WC_REM_ACCESS_ERR), IBV_WC_SEND);
	ibv_end_poll(cq_ex);
	expect(c2.id->recv_cq, 3, IBV_WC_REM_ACCESS_ERR);
	flushes(&c2);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
}

CASE("queues", qp_ex_every_opcode)
{
	connect_pair(&c2, &s2, extended);
	fill(&s2, 3);
	fill(&c2, 4);
	qp_ex_data();
	qp_ex_atomics();
	qp_ex_windows();
	end_ex();
}

static void send_with_flags(uint64_t id, unsigned int flags)
{
	begin_wr(id);
	qp_ex->wr_flags = flags;
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data(qp_ex, "abc", 3);
	CHECK(!ibv_wr_complete(qp_ex));
}

/* A request completes, and wakes its peer, if it is flagged so. */
CASE("queues", qp_ex_heeds_its_flags)
{
	connect_pair(&c2, &s2, extended_unsignalled);
	CHECK(!recv_sge(&c2, 0, sge(c2.own, 0, 8)) && !recv_sge(&c2, 1, sge(c2.own, 0, 8)));
	CHECK(!ibv_req_notify_cq(c2.id->recv_cq, 1));
	send_with_flags(1, 0);
	expect(c2.id->recv_cq, 0, IBV_WC_SUCCESS);
	CHECK(!event_within(c2.id->recv_cq_channel, 0));
	nothing(ibv_cq_ex_to_cq(cq_ex));
	send_with_flags(2, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	completed(2, IBV_WC_SEND);
	CHECK(event_within(c2.id->recv_cq_channel, 5000));
	expect(c2.id->recv_cq, 1, IBV_WC_SUCCESS);
	end_ex();
}

/* A request to which nothing is added, in a queue that has gone round. */
CASE("queues", qp_ex_goes_round)
{
	connect_pair(&c2, &s2, extended);
	for (int i = 0; i < 100; i++) {
		post_empty_recv(&c2);
		begin_wr(i);
		ibv_wr_send(qp_ex);
		CHECK(!ibv_wr_complete(qp_ex));
		completed(i, IBV_WC_SEND);
		good(c2.id->recv_cq, 1);
	}
	end_ex();
}

/* A mistake is kept until complete, and then nothing of the batch is posted. */
CASE("queues", qp_ex_mistakes)
{
	struct ibv_sge too_many[33] = {};	/* no QP takes more than 32 */
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
	/* The first one counts, though what follows it is right. */
	begin_wr(3);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data(qp_ex, big, sizeof(big));
	ibv_wr_send(qp_ex);
	ibv_wr_set_sge(qp_ex, s2.own->lkey, (uintptr_t)s2.own->addr, 8);
	CHECK(ibv_wr_complete(qp_ex) == EINVAL);
	begin_wr(4);
	ibv_wr_send(qp_ex);
	ibv_wr_set_sge_list(qp_ex, 33, too_many);
	CHECK(ibv_wr_complete(qp_ex) == EINVAL);
	nothing(ibv_cq_ex_to_cq(cq_ex));
	works(&c2, &s2);
	end_ex();
}

/* Nor does payload that is right make up for one that was not, in the same request. */
CASE("queues", qp_ex_mistakes_are_not_made_up_for)
{
	struct ibv_sge too_many[33] = {};
	static char big[600];
	struct ibv_data_buf bufs[2] = { { big, sizeof(big) }, { "ab", 2 } };

	connect_pair(&c2, &s2, extended);
	begin_wr(1);
	ibv_wr_send(qp_ex);
	ibv_wr_set_sge_list(qp_ex, 33, too_many);
	ibv_wr_set_sge(qp_ex, s2.own->lkey, (uintptr_t)s2.own->addr, 8);
	CHECK(ibv_wr_complete(qp_ex) == EINVAL);
	begin_wr(2);
	ibv_wr_send(qp_ex);
	ibv_wr_set_inline_data_list(qp_ex, 2, bufs);
	CHECK(ibv_wr_complete(qp_ex) == EINVAL);
	nothing(ibv_cq_ex_to_cq(cq_ex));
	works(&c2, &s2);
	end_ex();
}

/* A QP without either of its CQs is refused, and no program ends by it. */
CASE("queues", a_qp_has_two_cqs)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	for (int i = 0; i < 3; i++) {
		attr.send_cq = i & 1 ? s.id->send_cq : NULL;
		attr.recv_cq = i & 2 ? s.id->recv_cq : NULL;
		errno = 0;
		CHECK(!ibv_create_qp(s.id->pd, &attr) && errno == EINVAL);
	}
	works(&c, &s);
}
