// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The send queue between a consumer and the engine: hostile indices, malformed
 * entries, the handshake between the poster and the sender. A process is played by writing
 * to the mapped words from here.
 */
#include <linux/kthread.h>

#include "proto/fault.h"
#include "ring/sendq.h"
#include "suite.h"

#define ENTRIES	8U
#define SGES	4U
#define INLINE	48U

static struct weft_sendq *make_sendq(struct kunit *test, bool user)
{
	struct weft_sendq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sq);
	KUNIT_ASSERT_EQ(test, weft_sendq_init(sq, ENTRIES, SGES, INLINE, NULL), 0);
	sq->user = user;
	return sq;
}

static struct weft_sqe *user_sqe(struct weft_sendq *sq, u32 index)
{
	struct weft_sqe *sqe = weft_ring_entry(&sq->ring, index);

	memset(sqe, 0, sq->ring.stride);
	sqe->wr_id = 0x1000 + index;
	return sqe;
}

static void weft_sendq_fetch_copies(struct kunit *test)
{
	struct weft_sendq *sq = make_sendq(test, true);
	struct weft_sqe *sqe;
	struct weft_sge *sge;
	struct weft_swr *swr;

	/* All counters wrap during the test. */
	sq->fetched = U32_MAX;
	sq->cons = U32_MAX;
	weft_sendq_ctl(sq)->prod = U32_MAX;
	weft_sendq_ctl(sq)->cons = U32_MAX;
	KUNIT_EXPECT_NULL(test, weft_sendq_fetch(sq));
	KUNIT_EXPECT_FALSE(test, weft_sendq_pending(sq));

	sqe = user_sqe(sq, U32_MAX);
	sqe->opcode = WEFT_WR_WRITE;
	sqe->num_sge = 2;
	sqe->inline_len = 12345;
	sge = (struct weft_sge *)(sqe + 1);
	sge[0] = (struct weft_sge){ .addr = 1, .length = 100, .lkey = 7 };
	sge[1] = (struct weft_sge){ .addr = 2, .length = 11, .lkey = 8 };
	sqe = user_sqe(sq, 0);
	sqe->opcode = WEFT_WR_SEND;
	sqe->flags = WEFT_WRF_INLINE;
	sqe->num_sge = 3;
	sqe->inline_len = 5;
	memcpy(sqe + 1, "hello", 5);
	weft_sendq_ctl(sq)->prod = 1;

	KUNIT_EXPECT_TRUE(test, weft_sendq_pending(sq));
	swr = weft_sendq_fetch(sq);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(swr));
	sge[0].length = 5000;
	KUNIT_EXPECT_EQ(test, swr->index, U32_MAX);
	KUNIT_EXPECT_EQ(test, swr->status, 0);
	KUNIT_EXPECT_EQ(test, swr->state, WEFT_SWR_FETCHED);
	KUNIT_EXPECT_EQ(test, swr->length, 111U);
	KUNIT_EXPECT_EQ(test, swr->wqe.inline_len, 0U);
	KUNIT_EXPECT_EQ(test, swr->sge[0].length, 100U);
	KUNIT_EXPECT_PTR_EQ(test, swr, weft_sendq_wr(sq, U32_MAX));

	swr = weft_sendq_fetch(sq);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(swr));
	KUNIT_EXPECT_EQ(test, swr->wqe.num_sge, 0);
	KUNIT_EXPECT_EQ(test, swr->length, 5U);
	KUNIT_EXPECT_EQ(test, memcmp(swr->sge, "hello", 5), 0);
	KUNIT_EXPECT_NULL(test, weft_sendq_fetch(sq));
	weft_sendq_free(sq);
}

/* Nothing is left of the request that had the place before. */
static void weft_sendq_fetch_renews(struct kunit *test)
{
	struct weft_sendq *sq = make_sendq(test, true);
	struct weft_swr *swr;

	memset(sq->wr, 0xa5, (size_t)ENTRIES * sq->wr_stride);
	user_sqe(sq, 0)->opcode = WEFT_WR_SEND;
	weft_sendq_ctl(sq)->prod = 1;
	swr = weft_sendq_fetch(sq);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(swr));
	KUNIT_EXPECT_EQ(test, swr->index, 0U);
	KUNIT_EXPECT_EQ(test, swr->length, 0U);
	KUNIT_EXPECT_EQ(test, swr->tx_end, 0ULL);
	KUNIT_EXPECT_EQ(test, swr->state, WEFT_SWR_FETCHED);
	KUNIT_EXPECT_EQ(test, swr->status, 0);
	KUNIT_EXPECT_EQ(test, swr->vendor_err, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, swr->wc_len, 0U);
	KUNIT_EXPECT_FALSE(test, swr->awaits_response);
	weft_sendq_free(sq);
}

struct bad_sqe_row {
	const char *name;
	bool user;
	u8 opcode;
	u8 flags;
	u16 num_sge;
	u32 inline_len;
	u32 len;		/* of every element */
	u8 status;
};

static const struct bad_sqe_row bad_sqe_rows[] = {
	{ "good", true, WEFT_WR_BIND_MW, WEFT_WRF_SIGNALED, SGES, 0, 4, 0 },
	{ "user_read_inv", true, WEFT_WR_READ_INV, 0, 1, 0, 4, WEFT_STATUS_LOC_QP_OP },
	{ "user_reg_mr", true, WEFT_WR_REG_MR, 0, 0, 0, 0, WEFT_STATUS_LOC_QP_OP },
	{ "kernel_reg_mr", false, WEFT_WR_REG_MR, 0, 0, 0, 0, 0 },
	{ "no_opcode", false, WEFT_WR_OP_COUNT, 0, 0, 0, 0, WEFT_STATUS_LOC_QP_OP },
	{ "opcode_255", true, 255, 0, 0, 0, 0, WEFT_STATUS_LOC_QP_OP },
	{ "flag", true, WEFT_WR_SEND, 0x80, 0, 0, 0, WEFT_STATUS_LOC_QP_OP },
	{ "sges", true, WEFT_WR_SEND, 0, SGES + 1, 0, 4, WEFT_STATUS_LOC_QP_OP },
	{ "sges_65535", true, WEFT_WR_SEND, 0, 65535, 0, 4, WEFT_STATUS_LOC_QP_OP },
	{ "inline_sges", true, WEFT_WR_SEND, WEFT_WRF_INLINE, 65535, 4, 0, WEFT_STATUS_LOC_QP_OP },
	{ "inline_most", true, WEFT_WR_SEND, WEFT_WRF_INLINE, 0, INLINE, 0, 0 },
	{ "inline_more", true, WEFT_WR_SEND, WEFT_WRF_INLINE, 0, INLINE + 1, 0,
	  WEFT_STATUS_LOC_LEN },
	{ "inline_4g", true, WEFT_WR_SEND, WEFT_WRF_INLINE, 0, U32_MAX, 0, WEFT_STATUS_LOC_LEN },
	{ "length_most", true, WEFT_WR_WRITE, 0, 1, 0, U32_MAX, 0 },
	{ "length_4g", true, WEFT_WR_WRITE, 0, 2, 0, 0x80000000, WEFT_STATUS_LOC_LEN },
	{ "length_wraps", true, WEFT_WR_WRITE, 0, 4, 0, U32_MAX, WEFT_STATUS_LOC_LEN },
};

WEFT_ROWS(bad_sqe_rows)

static void weft_sendq_fetch_judges(struct kunit *test)
{
	const struct bad_sqe_row *row = test->param_value;
	struct weft_sendq *sq = make_sendq(test, row->user);
	struct weft_sqe *sqe = user_sqe(sq, 0);
	struct weft_sge *sge = (struct weft_sge *)(sqe + 1);
	struct weft_swr *swr;
	u32 i;

	sqe->opcode = row->opcode;
	sqe->flags = row->flags;
	sqe->num_sge = row->num_sge;
	sqe->inline_len = row->inline_len;
	for (i = 0; i < min_t(u32, row->num_sge, SGES); i++)
		sge[i].length = row->len;
	weft_sendq_ctl(sq)->prod = 1;

	swr = weft_sendq_fetch(sq);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(swr));
	KUNIT_EXPECT_EQ(test, swr->status, row->status);
	KUNIT_EXPECT_EQ(test, swr->wqe.wr_id, 0x1000ULL);
	if (row->status) {
		KUNIT_EXPECT_EQ(test, swr->wqe.flags, WEFT_WRF_SIGNALED);
		KUNIT_EXPECT_EQ(test, weft_fault_info(swr->vendor_err)->status, row->status);
		KUNIT_EXPECT_EQ(test, swr->wqe.num_sge, 0);
		KUNIT_EXPECT_EQ(test, swr->wqe.inline_len, 0U);
		KUNIT_EXPECT_EQ(test, swr->length, 0U);
		KUNIT_EXPECT_LT(test, swr->wqe.opcode, WEFT_WR_KERNEL_FIRST);
	}
	KUNIT_EXPECT_NULL(test, weft_sendq_fetch(sq));
	weft_sendq_free(sq);
}

struct index_row {
	const char *name;
	u32 cons;
	u32 fetched;
	u32 prod;
	bool good;
};

static const struct index_row index_rows[] = {
	{ "all_new", 0, 0, ENTRIES, true },
	{ "one_too_many", 0, 0, ENTRIES + 1, false },
	{ "far", 0, 0, 0x80000000, false },
	{ "behind", 5, 7, 6, false },
	{ "behind_cons", 5, 7, 4, false },
	{ "in_flight_full", 5, 5 + ENTRIES - 1, 5 + ENTRIES, true },
	{ "over_in_flight", 5, 5 + ENTRIES - 1, 6 + ENTRIES, false },
	{ "wrapped", U32_MAX - 1, 1, 3, true },
	{ "wrapped_too_many", U32_MAX - 1, 1, ENTRIES - 1, false },
};

WEFT_ROWS(index_rows)

static void weft_sendq_fetch_impossible_index(struct kunit *test)
{
	const struct index_row *row = test->param_value;
	struct weft_sendq *sq = make_sendq(test, true);
	struct weft_swr *swr;

	sq->cons = row->cons;
	sq->fetched = row->fetched;
	weft_sendq_ctl(sq)->prod = row->prod;
	KUNIT_EXPECT_LE(test, weft_sendq_waiting(sq), ENTRIES); /* for an operator */
	swr = weft_sendq_fetch(sq);
	if (row->good)
		KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(swr));
	else
		KUNIT_EXPECT_EQ(test, PTR_ERR(swr), -EIO);
	KUNIT_EXPECT_EQ(test, sq->fetched, row->fetched + row->good);
	weft_sendq_free(sq);
}

static void complete_oldest(struct weft_sendq *sq)
{
	WRITE_ONCE(sq->cons, sq->cons + 1);
	weft_sendq_publish_cons(sq);
}

static void weft_sendq_reserve_until_full(struct kunit *test)
{
	struct weft_sendq *sq = make_sendq(test, false);
	struct weft_mem_region *mr = (void *)sq;
	unsigned long flags;
	struct weft_sqe *sqe;
	u32 i;

	spin_lock_irqsave(&sq->post_lock, flags);
	for (i = 0; i < ENTRIES; i++) {
		sqe = weft_sendq_reserve(sq);
		KUNIT_EXPECT_PTR_EQ(test, sqe, weft_sendq_reserve(sq));
		if (!sqe)
			break;
		sqe->wr_id = i;
		if (i == 1)
			weft_sendq_attach(sq, mr);
		weft_sendq_commit(sq);
	}
	KUNIT_EXPECT_NULL(test, weft_sendq_reserve(sq));
	spin_unlock_irqrestore(&sq->post_lock, flags);

	KUNIT_EXPECT_NULL(test, weft_sendq_fetch(sq)->kernel);
	KUNIT_EXPECT_PTR_EQ(test, weft_sendq_fetch(sq)->kernel, mr);
	complete_oldest(sq);
	complete_oldest(sq);

	spin_lock_irqsave(&sq->post_lock, flags);
	weft_sendq_reserve(sq);
	weft_sendq_commit(sq);
	weft_sendq_reserve(sq);
	weft_sendq_commit(sq);
	KUNIT_EXPECT_NULL(test, weft_sendq_reserve(sq));
	spin_unlock_irqrestore(&sq->post_lock, flags);
	for (i = 0; i < ENTRIES; i++)
		KUNIT_EXPECT_NULL(test, weft_sendq_fetch(sq)->kernel);
	weft_sendq_free(sq);
}

/* A queue is left for rest, polled or not, only when nothing came meanwhile. */
static void weft_sendq_left_by_tx(struct kunit *test)
{
	struct weft_sendq *sq = make_sendq(test, true);
	struct weft_sq_ctl *ctl = weft_sendq_ctl(sq);

	weft_sendq_set_busy(sq);
	KUNIT_EXPECT_EQ(test, ctl->state, (u32)WEFT_SQ_BUSY);
	KUNIT_EXPECT_TRUE(test, weft_sendq_leave(sq, WEFT_SQ_POLLED));
	KUNIT_EXPECT_TRUE(test, weft_sendq_is_polled(sq));
	KUNIT_EXPECT_TRUE(test, weft_sendq_leave(sq, WEFT_SQ_NEED_DOORBELL));
	KUNIT_EXPECT_FALSE(test, weft_sendq_is_polled(sq));
	KUNIT_EXPECT_EQ(test, ctl->state, (u32)WEFT_SQ_NEED_DOORBELL);

	/* Posted while the queue was BUSY, so without a doorbell. */
	weft_sendq_set_busy(sq);
	user_sqe(sq, 0);
	ctl->prod = 1;
	KUNIT_EXPECT_FALSE(test, weft_sendq_leave(sq, WEFT_SQ_POLLED));
	KUNIT_EXPECT_TRUE(test, weft_sendq_is_polled(sq));
	KUNIT_EXPECT_FALSE(test, weft_sendq_leave(sq, WEFT_SQ_NEED_DOORBELL));
	KUNIT_EXPECT_EQ(test, ctl->state, (u32)WEFT_SQ_NEED_DOORBELL);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(weft_sendq_fetch(sq)));
	KUNIT_EXPECT_TRUE(test, weft_sendq_leave(sq, WEFT_SQ_POLLED));
	KUNIT_EXPECT_TRUE(test, weft_sendq_leave(sq, WEFT_SQ_NEED_DOORBELL));
	weft_sendq_free(sq);
}

/* A consumer that leaves and comes back only for a doorbell loses nothing. */
#define ROUNDS	50000U

struct handshake {
	struct weft_sendq *sq;
	atomic_t doorbells;
};

static int produce(void *arg)
{
	struct handshake *h = arg;
	unsigned long flags;
	struct weft_sqe *sqe;
	u32 i = 0;

	while (i < ROUNDS && !kthread_should_stop()) {
		spin_lock_irqsave(&h->sq->post_lock, flags);
		sqe = weft_sendq_reserve(h->sq);
		if (sqe) {
			sqe->wr_id = i++;
			weft_sendq_commit(h->sq);
		}
		spin_unlock_irqrestore(&h->sq->post_lock, flags);
		if (sqe && weft_sendq_needs_doorbell(h->sq))
			atomic_inc(&h->doorbells);
		if (!sqe)
			cond_resched();
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static void weft_sendq_handshake_loses_nothing(struct kunit *test)
{
	struct handshake h = { .sq = make_sendq(test, false) };
	unsigned long deadline = jiffies + 30 * HZ;
	struct task_struct *task;
	struct weft_swr *swr;
	u32 next = 0;
	u32 idle = 0;

	task = kthread_run(produce, &h, "weft_ring_produce");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	while (next < ROUNDS && time_before(jiffies, deadline)) {
		if (!atomic_xchg(&h.doorbells, 0)) {
			cond_resched();
			continue;
		}
		weft_sendq_set_busy(h.sq);
		do {
			while ((swr = weft_sendq_fetch(h.sq))) {
				if (IS_ERR(swr) || swr->wqe.wr_id != next)
					goto out;
				next++;
				complete_oldest(h.sq);
			}
			idle++;
		} while (!weft_sendq_leave(h.sq, WEFT_SQ_NEED_DOORBELL));
	}
out:
	KUNIT_EXPECT_EQ(test, next, ROUNDS);
	kunit_info(test, "left the queue %u times\n", idle);
	kthread_stop(task);
	weft_sendq_free(h.sq);
}

static struct kunit_case sendq_cases[] = {
	KUNIT_CASE(weft_sendq_fetch_copies),
	KUNIT_CASE(weft_sendq_fetch_renews),
	KUNIT_CASE_PARAM(weft_sendq_fetch_judges, bad_sqe_rows_gen_params),
	KUNIT_CASE_PARAM(weft_sendq_fetch_impossible_index, index_rows_gen_params),
	KUNIT_CASE(weft_sendq_reserve_until_full),
	KUNIT_CASE(weft_sendq_left_by_tx),
	KUNIT_CASE(weft_sendq_handshake_loses_nothing),
	{},
};

static struct kunit_suite sendq_suite = {
	.name = "weft_sendq",
	.test_cases = sendq_cases,
};

kunit_test_suite(sendq_suite);
