// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Messages of either side one by one, each at the step that refuses it. On the wire a later step
 * may refuse it, too, and hide that this one did not.
 */
#include "engine/ops/op.h"
#include "engine/path/rx.h"
#include "mem_world.h"
#include "proto/atomic.h"
#include "stream_world.h"
#include "suite.h"

struct source_row {
	const char *name;
	u32 length;
	bool known;
	enum weft_fault fault;
};

static const struct source_row source_rows[] = {
	{ "all_of_it", LENGTH, true, WEFT_FAULT_NONE },
	{ "one_byte_more", LENGTH + 1, true, WEFT_FAULT_RDMAP_BOUNDS },
	{ "gone", LENGTH, false, WEFT_FAULT_RDMAP_STAG },
	{ "nothing_of_what_is_gone", 0, false, WEFT_FAULT_NONE },
};

WEFT_ROWS(source_rows)

/* A source may go, or become smaller, while the request waits. Then nothing of it is sent. */
static void weft_message_read_is_checked_again(struct kunit *test)
{
	const struct source_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_region(test, m, RR);
	struct weft_readq_owed owed = {
		.read = { .length = row->length, .src_to = IOVA },
	};
	struct weft_msg msg = {};

	owed.read.src_stag = mr->grant.stag ^ !row->known;
	w->st.tx.mem = m->user;
	KUNIT_EXPECT_EQ(test, weft_read_answer(&w->st, &owed, &msg), row->fault);
	weft_mem_release(&w->st.tx.mem);
	drop(test, m, mr);
	leave(test, m);
}

struct atomic_row {
	const char *name;
	u32 offset;
	enum weft_fault fault;
};

static const struct atomic_row atomic_rows[] = {
	{ "aligned", 8, WEFT_FAULT_NONE },
	{ "misaligned", 4, WEFT_FAULT_RDMAP_CATASTROPHIC },
	{ "across_the_end", LENGTH - 4, WEFT_FAULT_RDMAP_BOUNDS },
};

WEFT_ROWS(atomic_rows)

/* The fault is told in its turn, but nothing behind the request is taken. */
static void weft_message_atomic_stops_rx(struct kunit *test)
{
	const struct atomic_row *row = test->param_value;
	bool fine = row->fault == WEFT_FAULT_NONE;
	struct stream_world *w = test->priv;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_region(test, m, RA);
	struct weft_atomic_req req = { .code = WEFT_ATOMIC_FADD };
	u8 head[WEFT_ATOMIC_REQ_LEN];
	struct weft_ulpdu u = { .len = WEFT_DDP_UNTAGGED_LEN + WEFT_ATOMIC_REQ_LEN };
	struct weft_rx_seg seg = { .u = &u, .head = head };
	const struct weft_readq_owed *owed;

	req.stag = mr->grant.stag;
	req.to = IOVA + row->offset;
	weft_atomic_req_build(&req, head);
	w->st.rx.mem = m->user;
	w->st.rx.atomics = true;
	KUNIT_EXPECT_EQ(test, weft_atomic_request_end(&w->st, &seg),
			fine ? WEFT_FAULT_NONE : WEFT_FAULT_STOPPED);
	owed = weft_readq_owed_head(&w->st.readq);
	KUNIT_ASSERT_NOT_NULL(test, owed);
	KUNIT_EXPECT_EQ(test, owed->fault, row->fault);
	KUNIT_EXPECT_TRUE(test, w->st.rx.tx_needed);
	weft_mem_release(&w->st.rx.mem);
	drop(test, m, mr);
	leave(test, m);
}

/* The first message may be an empty Send that the connection is for, and not its consumer. */
static void weft_message_rtr_takes_no_receive(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_rx_seg seg = {};

	w->st.rx.rtr_send = true;
	KUNIT_EXPECT_EQ(test, weft_send_begin(&w->st, &seg), WEFT_FAULT_NONE);
	post_receive(w);
	KUNIT_EXPECT_EQ(test, weft_send_begin(&w->st, &seg), WEFT_FAULT_NONE);
	KUNIT_EXPECT_FALSE(test, w->st.rx.rwr_held);
	KUNIT_EXPECT_EQ(test, weft_send_end(&w->st, &seg), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_send_begin(&w->st, &seg), WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, w->st.rx.rwr_held);
	w->st.rx.rwr_held = false;
	KUNIT_EXPECT_EQ(test, weft_send_begin(&w->st, &seg), WEFT_FAULT_UNTAGGED_NO_BUFFER);
}

/* Consumers find it as the peer's program gave it, in network order. */
static void weft_message_tells_the_immediate(struct kunit *test)
{
	static const u8 want[] = { 1, 2, 3, 4 };
	struct stream_world *w = test->priv;
	struct weft_rx_seg seg = { .ddp.ulp = WEFT_OP_SEND_IMM, .ddp.stag = 0x01020304 };
	struct weft_cqe cqe;

	post_receive(w);
	KUNIT_EXPECT_EQ(test, weft_send_begin(&w->st, &seg), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_send_end(&w->st, &seg), WEFT_FAULT_NONE);
	KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->recv_cq, &cqe, 1), 1U);
	KUNIT_EXPECT_EQ(test, cqe.flags, WEFT_WCF_IMM);
	KUNIT_EXPECT_EQ(test, memcmp(&cqe.imm_or_inv, want, sizeof(want)), 0);
}

struct wrap_row {
	const char *name;
	u64 to;
	u32 length;
	enum weft_fault fault;
};

static const struct wrap_row wrap_rows[] = {
	{ "nothing", U64_MAX, 0, WEFT_FAULT_NONE },
	{ "to_the_end", U64_MAX - 7, 7, WEFT_FAULT_NONE },
	{ "beyond", U64_MAX - 7, 9, WEFT_FAULT_LOCAL_QP_OP },
};

WEFT_ROWS(wrap_rows)

static void weft_message_write_does_not_wrap(struct kunit *test)
{
	const struct wrap_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_swr swr = {
		.wqe = { .opcode = WEFT_WR_WRITE, .remote_addr = row->to },
		.length = row->length,
	};
	struct weft_msg msg = {};

	KUNIT_EXPECT_EQ(test, weft_write_plan(&w->st, &swr, &msg), row->fault);
}

static struct kunit_case message_cases[] = {
	KUNIT_CASE_PARAM(weft_message_read_is_checked_again, source_rows_gen_params),
	KUNIT_CASE_PARAM(weft_message_atomic_stops_rx, atomic_rows_gen_params),
	KUNIT_CASE(weft_message_rtr_takes_no_receive),
	KUNIT_CASE(weft_message_tells_the_immediate),
	KUNIT_CASE_PARAM(weft_message_write_does_not_wrap, wrap_rows_gen_params),
	{},
};

static struct kunit_suite message_suite = {
	.name = "weft_message",
	.init = make_stream,
	.exit = free_stream,
	.test_cases = message_cases,
};

kunit_test_suite(message_suite);
