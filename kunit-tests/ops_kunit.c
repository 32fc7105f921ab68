// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The tables of operations have a row for each opcode that a process or a peer can name.
 */
#include <linux/workqueue.h>

#include "base/counters.h"
#include "engine/ops/op.h"
#include "mem/mr_ops.h"
#include "mem_world.h"
#include "ring/cq.h"
#include "ring/recvq.h"
#include "ring/sendq.h"
#include "stream_world.h"
#include "suite.h"

static void weft_ops_plan_each_request(struct kunit *test)
{
	const struct weft_tx_op *op;
	u32 i;

	for (i = 0; i < WEFT_WR_OP_COUNT; i++) {
		op = weft_tx_op(i);
		KUNIT_ASSERT_NOT_NULL(test, op);
		KUNIT_EXPECT_TRUE_MSG(test, op->plan, "work request opcode %u", i);
		KUNIT_EXPECT_LE_MSG(test, op->messages, WEFT_MSGS_PER_WR, "opcode %u", i);
		KUNIT_EXPECT_EQ_MSG(test, !op->messages, !!(op->flags & WEFT_TXF_LOCAL),
				    "work request opcode %u", i);
		/* What counts against the depth completes with its answer. */
		KUNIT_EXPECT_EQ_MSG(test, !!(op->flags & WEFT_TXF_CREDIT),
				    !!(op->flags & WEFT_TXF_RESPONSE), "opcode %u", i);
	}
	KUNIT_EXPECT_NULL(test, weft_tx_op(WEFT_WR_OP_COUNT));
	KUNIT_EXPECT_NULL(test, weft_tx_op(255));
}

static void weft_ops_take_each_message(struct kunit *test)
{
	const struct weft_rx_op *op;
	u32 i;

	for (i = 0; i < WEFT_OP_COUNT; i++) {
		if (!weft_rdmap_info(i)->known)
			continue;
		op = weft_rx_op(i);
		KUNIT_EXPECT_TRUE_MSG(test, op->begin && op->place && op->place_batch && op->end,
				      "RDMAP opcode %u", i);
	}
}

/* Faults from the first to the last are counted as Terminates for that reason. */
static const struct reason_row {
	const char *name;
	enum weft_fault first, last;
	u8 reason;
} reason_rows[] = {
	{ "crc", WEFT_FAULT_MPA_CRC, WEFT_FAULT_MPA_CRC, WEFT_TERM_CRC },
	{ "marker", WEFT_FAULT_MPA_MARKER, WEFT_FAULT_MPA_START, WEFT_TERM_MPA },
	{ "negotiation", WEFT_FAULT_MPA_IRD, WEFT_FAULT_MPA_RTR, WEFT_TERM_MPA },
	{ "tagged", WEFT_FAULT_TAGGED_STAG, WEFT_FAULT_TAGGED_WRAP, WEFT_TERM_ACCESS },
	{ "tagged version", WEFT_FAULT_TAGGED_VERSION, WEFT_FAULT_TAGGED_VERSION,
	  WEFT_TERM_PROTOCOL },
	{ "queue number", WEFT_FAULT_UNTAGGED_QN, WEFT_FAULT_UNTAGGED_QN, WEFT_TERM_SEQUENCE },
	{ "no buffer", WEFT_FAULT_UNTAGGED_NO_BUFFER, WEFT_FAULT_UNTAGGED_NO_BUFFER,
	  WEFT_TERM_RQ_EMPTY },
	{ "order", WEFT_FAULT_UNTAGGED_MSN, WEFT_FAULT_UNTAGGED_MO, WEFT_TERM_SEQUENCE },
	{ "too long", WEFT_FAULT_UNTAGGED_TOO_LONG, WEFT_FAULT_UNTAGGED_TOO_LONG,
	  WEFT_TERM_RQ_TOO_SMALL },
	{ "untagged version", WEFT_FAULT_UNTAGGED_VERSION, WEFT_FAULT_UNTAGGED_VERSION,
	  WEFT_TERM_PROTOCOL },
	{ "rdmap", WEFT_FAULT_RDMAP_STAG, WEFT_FAULT_RDMAP_PROTECTION, WEFT_TERM_ACCESS },
	{ "rdmap version", WEFT_FAULT_RDMAP_VERSION, WEFT_FAULT_RDMAP_OPCODE, WEFT_TERM_PROTOCOL },
	{ "ours", WEFT_FAULT_RDMAP_CATASTROPHIC, WEFT_FAULT_RDMAP_GLOBAL, WEFT_TERM_LOCAL_ERROR },
	{ "operation", WEFT_FAULT_RDMAP_OPERATION, WEFT_FAULT_RDMAP_OPERATION, WEFT_TERM_PROTOCOL },
	{ "local", WEFT_FAULT_LOCAL_PROTECTION, WEFT_FAULT_LOCAL_CATASTROPHIC,
	  WEFT_TERM_LOCAL_ERROR },
};

WEFT_ROWS(reason_rows);

static void weft_ops_count_by_reason(struct kunit *test)
{
	const struct reason_row *row = test->param_value;
	u32 i;

	for (i = row->first; i <= row->last; i++)
		KUNIT_EXPECT_EQ_MSG(test, weft_term_reasons[i], row->reason, "fault %u", i);
}

static const struct kind_row {
	u8 opcode, kind;
} kind_rows[] = {
	{ WEFT_OP_SEND, WEFT_MSG_SEND },     { WEFT_OP_SEND_INV, WEFT_MSG_SEND },
	{ WEFT_OP_SEND_SE, WEFT_MSG_SEND },  { WEFT_OP_SEND_SE_INV, WEFT_MSG_SEND },
	{ WEFT_OP_SEND_IMM, WEFT_MSG_SEND }, { WEFT_OP_SEND_SE_IMM, WEFT_MSG_SEND },
	{ WEFT_OP_IMM, WEFT_MSG_IMM },	     { WEFT_OP_IMM_SE, WEFT_MSG_IMM },
};

static void weft_ops_count_by_kind(struct kunit *test)
{
	const struct kind_row *row;

	for (row = kind_rows; row < kind_rows + ARRAY_SIZE(kind_rows); row++) {
		KUNIT_EXPECT_EQ(test, weft_msg_stats[row->opcode].sent,
				WEFT_CTR_TX_KIND + row->kind);
		KUNIT_EXPECT_EQ(test, weft_msg_stats[row->opcode].received,
				WEFT_CTR_RX_KIND + row->kind);
	}
}

/* What a peer echoes in its response names no address of the kernel's. */
static void weft_ops_read_tells_no_kernel_address(struct kunit *test)
{
	struct weft_msg msgs[WEFT_MSGS_PER_WR] = {};
	struct weft_read_req req;
	struct stream_world *w;
	struct weft_swr *swr;

	KUNIT_ASSERT_EQ(test, make_stream(test), 0);
	w = test->priv;
	w->st.tx.mem.kernel = true;
	swr = weft_sendq_wr(&w->sq, 0);
	swr->wqe = (struct weft_sqe){
		.opcode = WEFT_WR_READ,
		.num_sge = 1,
		.rkey = 0x1234,
		.remote_addr = 0x5678,
	};
	swr->length = 8;
	swr->sge[0] = (struct weft_sge){ .addr = (uintptr_t)w, .length = 8 };
	KUNIT_EXPECT_EQ(test, weft_read_plan(&w->st, swr, msgs), WEFT_FAULT_NONE);
	weft_read_req_parse(w->st.tx.hdr, &req);
	KUNIT_EXPECT_EQ(test, req.sink_stag, 0U);
	KUNIT_EXPECT_EQ(test, req.sink_to, 0ULL);
	KUNIT_EXPECT_EQ(test, req.length, 8U);
	KUNIT_EXPECT_EQ(test, req.src_stag, 0x1234U);
	KUNIT_EXPECT_EQ(test, req.src_to, 0x5678ULL);
	free_stream(test);
	test->priv = NULL;
}

/* A receive that is malformed fails by name; an index that is impossible is no lack of receives. */
static void weft_ops_judge_receives(struct kunit *test)
{
	struct weft_rx_seg seg = {};
	struct stream_world *w;
	struct weft_rqe *rqe;
	struct weft_cqe cqe;

	KUNIT_ASSERT_EQ(test, make_stream(test), 0);
	w = test->priv;
	w->rq.ctl->prod = 1000;
	KUNIT_EXPECT_EQ(test, weft_send_begin(&w->st, &seg), WEFT_FAULT_LOCAL_QP_OP);
	KUNIT_EXPECT_EQ(test, weft_cq_poll(&w->recv_cq, &cqe, 1), 0U);

	rqe = weft_ring_entry(&w->rq.ring, 0);
	rqe->wr_id = 7;
	rqe->num_sge = 1000;
	w->rq.ctl->prod = 1;
	KUNIT_EXPECT_EQ(test, weft_send_begin(&w->st, &seg), WEFT_FAULT_LOCAL_QP_OP);
	KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->recv_cq, &cqe, 1), 1U);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, 7ULL);
	KUNIT_EXPECT_EQ(test, cqe.qp_num, STREAM_QPN);
	KUNIT_EXPECT_EQ(test, cqe.opcode, WEFT_WC_RECV);
	KUNIT_EXPECT_EQ(test, cqe.status, WEFT_STATUS_LOC_QP_OP);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, WEFT_FAULT_LOCAL_QP_OP);
	free_stream(test);
	test->priv = NULL;
}

/* A fast-register region whose pages are mapped. */
static struct weft_mem_region *make_mapped(struct kunit *test, struct world *mem)
{
	struct weft_mem_region *mr = make_stag(test, mem, WEFT_STAG_FASTREG);

	mr->next.backing = make_backing(test, mem);
	mr->next.iova = IOVA;
	mr->next.length = LENGTH;
	mr->next.fresh = true;
	return mr;
}

/* The peer may do with a region that is registered what the request says, and no more. */
static void weft_ops_register_grants_what_is_asked(struct kunit *test)
{
	struct world *mem = make_world(test);
	struct weft_mem_region *mr = make_mapped(test, mem);
	struct weft_swr swr = { .kernel = mr, .wqe.rkey = mr->grant.stag };
	u32 stag = mr->grant.stag;
	struct stream_world *w;

	KUNIT_ASSERT_EQ(test, make_stream(test), 0);
	w = test->priv;
	w->st.tx.mem = mem->user;
	swr.wqe.bind.access = RR;
	KUNIT_EXPECT_EQ(test, weft_local_register(&w->st, &swr, NULL), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, touch(mem, stag, IOVA, 4, WEFT_MEM_REMOTE_READ, NULL),
			WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, touch(mem, stag, IOVA, 4, WEFT_MEM_REMOTE_WRITE, NULL),
			WEFT_FAULT_TAGGED_STAG);
	free_stream(test);
	test->priv = NULL;
	drop(test, mem, mr);
	leave(test, mem);
}

/* Another direction's access, which ends while the invalidation waits for it. */
struct access {
	struct delayed_work end;
	struct weft_mem_user user;
	bool ended;
};

static void end_access(struct work_struct *work)
{
	struct access *a = container_of(work, struct access, end.work);

	WRITE_ONCE(a->ended, true);
	weft_mem_release(&a->user);
}

/* What is complete is not accessed any more, and leaves no reference behind: see drop(). */
static void weft_ops_local_invalidate_waits(struct kunit *test)
{
	struct access *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	struct world *mem = make_world(test);
	struct weft_mem_region *mr = make_mapped(test, mem);
	struct weft_swr swr = { .wqe.rkey = mr->grant.stag };
	struct stream_world *w;

	KUNIT_ASSERT_NOT_NULL(test, a);
	INIT_DELAYED_WORK(&a->end, end_access);
	KUNIT_ASSERT_EQ(test, make_stream(test), 0);
	w = test->priv;
	w->st.tx.mem = mem->user;
	a->user = mem->user;
	KUNIT_ASSERT_EQ(test, weft_mem_register(&w->st.tx.mem, mr, swr.wqe.rkey, RR),
			WEFT_FAULT_NONE);
	begin_read(test, &a->user, swr.wqe.rkey);
	schedule_delayed_work(&a->end, HZ / 10);
	KUNIT_EXPECT_EQ(test, weft_local_inv(&w->st, &swr, NULL), WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(a->ended));
	flush_delayed_work(&a->end);
	KUNIT_EXPECT_EQ(test, touch(mem, swr.wqe.rkey, IOVA, 4, WEFT_MEM_REMOTE_READ, NULL),
			WEFT_FAULT_RDMAP_STAG);
	free_stream(test);
	test->priv = NULL;
	drop(test, mem, mr);
	leave(test, mem);
}

static struct kunit_case ops_cases[] = { KUNIT_CASE(weft_ops_plan_each_request),
					 KUNIT_CASE(weft_ops_take_each_message),
					 KUNIT_CASE_PARAM(weft_ops_count_by_reason,
							  reason_rows_gen_params),
					 KUNIT_CASE(weft_ops_count_by_kind),
					 KUNIT_CASE(weft_ops_read_tells_no_kernel_address),
					 KUNIT_CASE(weft_ops_judge_receives),
					 KUNIT_CASE(weft_ops_register_grants_what_is_asked),
					 KUNIT_CASE(weft_ops_local_invalidate_waits),
					 {} };

static struct kunit_suite ops_suite = {
	.name = "weft_ops",
	.test_cases = ops_cases,
};

kunit_test_suite(ops_suite);
