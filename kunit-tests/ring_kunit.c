// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queues between a consumer and the engine: hostile indices, malformed entries,
 * the two handshakes, events. A process is played by writing to the mapped
 * words from here.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <rdma/ib_verbs.h>

#include "base/counters.h"
#include "proto/fault.h"
#include "ring/cq.h"
#include "ring/recvq.h"
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
	sq->retired = U32_MAX;
	weft_sendq_ctl(sq)->prod = U32_MAX;
	weft_sendq_ctl(sq)->retired = U32_MAX;
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
	u32 retired;
	u32 fetched;
	u32 prod;
	bool good;
};

static const struct index_row index_rows[] = {
	{ "all_new", 0, 0, ENTRIES, true },
	{ "one_too_many", 0, 0, ENTRIES + 1, false },
	{ "far", 0, 0, 0x80000000, false },
	{ "behind", 5, 7, 6, false },
	{ "behind_retired", 5, 7, 4, false },
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

	sq->retired = row->retired;
	sq->fetched = row->fetched;
	weft_sendq_ctl(sq)->prod = row->prod;
	swr = weft_sendq_fetch(sq);
	if (row->good)
		KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(swr));
	else
		KUNIT_EXPECT_EQ(test, PTR_ERR(swr), -EIO);
	KUNIT_EXPECT_EQ(test, sq->fetched, row->fetched + row->good);
	weft_sendq_free(sq);
}

static void retire_one(struct weft_sendq *sq)
{
	WRITE_ONCE(sq->retired, sq->retired + 1);
	weft_sendq_publish_retired(sq);
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
	retire_one(sq);
	retire_one(sq);

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

/* A consumer that leaves and comes back only when kicked loses nothing. */
#define ROUNDS	50000U

struct handshake {
	struct weft_sendq *sq;
	atomic_t kicks;
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
		if (sqe && weft_sendq_wants_kick(h->sq))
			atomic_inc(&h->kicks);
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
	unsigned long deadline = jiffies + 60 * HZ;
	struct task_struct *task;
	struct weft_swr *swr;
	u32 next = 0;
	u32 idle = 0;

	task = kthread_run(produce, &h, "weft_ring_produce");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	while (next < ROUNDS && time_before(jiffies, deadline)) {
		if (!atomic_xchg(&h.kicks, 0)) {
			cond_resched();
			continue;
		}
		weft_sendq_set_busy(h.sq);
		do {
			while ((swr = weft_sendq_fetch(h.sq))) {
				if (IS_ERR(swr) || swr->wqe.wr_id != next)
					goto out;
				next++;
				retire_one(h.sq);
			}
			idle++;
		} while (!weft_sendq_set_idle(h.sq));
	}
out:
	KUNIT_EXPECT_EQ(test, next, ROUNDS);
	kunit_info(test, "left the queue %u times\n", idle);
	kthread_stop(task);
	weft_sendq_free(h.sq);
}

static void count_limit(void *owner)
{
	(*(u32 *)owner)++;
}

static struct weft_rqe *user_rqe(struct weft_recvq *rq, u32 index, u32 num_sge)
{
	struct weft_rqe *rqe = weft_ring_entry(&rq->ring, index);
	struct weft_sge *sge = (struct weft_sge *)(rqe + 1);
	u32 i;

	rqe->wr_id = 0x1000 + index;
	rqe->num_sge = num_sge;
	for (i = 0; i < min(num_sge, SGES); i++)
		sge[i].length = U32_MAX;
	return rqe;
}

static struct weft_rwr *empty_rwr(struct kunit *test)
{
	struct weft_rwr *rwr = kunit_kzalloc(test, sizeof(*rwr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rwr);
	rwr->sge = kunit_kcalloc(test, SGES, sizeof(*rwr->sge), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rwr->sge);
	return rwr;
}

static void weft_recvq_fetch_judges(struct kunit *test)
{
	struct weft_recvq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);
	struct weft_rwr *rwr = empty_rwr(test);

	KUNIT_ASSERT_EQ(test, weft_recvq_init(rq, ENTRIES, SGES, NULL), 0);
	rq->user = true;
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), -ENOENT);

	user_rqe(rq, 0, SGES);
	user_rqe(rq, 1, SGES + 1);
	user_rqe(rq, 2, 0);
	rq->ctl->prod = 3;
	KUNIT_EXPECT_EQ(test, weft_recvq_depth(rq), 3U);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	KUNIT_EXPECT_EQ(test, rwr->length, 4ULL * U32_MAX);
	KUNIT_EXPECT_EQ(test, rq->ctl->cons, 1U);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), -EINVAL);
	KUNIT_EXPECT_EQ(test, rwr->wr_id, 0x1001ULL);
	KUNIT_EXPECT_EQ(test, rwr->num_sge, 0U);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	KUNIT_EXPECT_EQ(test, rwr->length, 0ULL);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), -ENOENT);

	rq->ctl->prod = 3 + ENTRIES + 1;
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), -EIO);
	KUNIT_EXPECT_EQ(test, weft_recvq_depth(rq), ENTRIES);
	rq->ctl->prod = 2;
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), -EIO);
	KUNIT_EXPECT_EQ(test, rq->cons, 3U);
	rq->ctl->prod = 3 + ENTRIES;
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	weft_recvq_free(rq);
}

static void weft_recvq_limit_is_raised_once(struct kunit *test)
{
	struct weft_recvq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);
	struct weft_rwr *rwr = empty_rwr(test);
	u32 raised = 0;
	u32 i;

	KUNIT_ASSERT_EQ(test, weft_recvq_init(rq, ENTRIES, SGES, NULL), 0);
	rq->shared = true;
	rq->limit_event = count_limit;
	rq->owner = &raised;

	KUNIT_EXPECT_EQ(test, weft_recvq_set_limit(rq, ENTRIES + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, weft_recvq_set_limit(rq, 1), 0);
	KUNIT_EXPECT_EQ(test, raised, 1U);

	spin_lock_irq(&rq->lock);
	for (i = 0; weft_recvq_reserve(rq); i++)
		weft_recvq_commit(rq);
	spin_unlock_irq(&rq->lock);
	KUNIT_EXPECT_EQ(test, i, ENTRIES);

	KUNIT_EXPECT_EQ(test, weft_recvq_set_limit(rq, ENTRIES - 1), 0);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	KUNIT_EXPECT_EQ(test, raised, 1U);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	KUNIT_EXPECT_EQ(test, raised, 2U);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	KUNIT_EXPECT_EQ(test, raised, 2U);
	KUNIT_EXPECT_EQ(test, rq->limit, 0U);
	weft_recvq_free(rq);
}

struct cq_seen {
	u32 completions;
	u32 overflows;
};

static void saw_completion(void *owner)
{
	((struct cq_seen *)owner)->completions++;
}

static void saw_overflow(void *owner)
{
	((struct cq_seen *)owner)->overflows++;
}

static const struct weft_cq_events cq_events = { saw_completion, saw_overflow };

static struct weft_counters counters;

static struct weft_cq *make_cq(struct kunit *test, struct cq_seen *seen)
{
	struct weft_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_EQ(test, weft_cq_init(cq, ENTRIES, NULL, &cq_events, seen, &counters), 0);
	return cq;
}

static void weft_cq_overflow_is_told_once(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	struct weft_cqe cqe = {};
	struct weft_cqe out[3];
	u32 i;

	for (i = 0; i < ENTRIES; i++) {
		cqe.wr_id = i;
		KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), 0);
	}
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), -ENOSPC);
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), -ENOSPC);
	KUNIT_EXPECT_EQ(test, seen.overflows, 1U);
	KUNIT_EXPECT_EQ(test, seen.completions, 0U);
	KUNIT_EXPECT_EQ(test, weft_cq_poll(cq, out, 3), 3U);
	KUNIT_EXPECT_EQ(test, out[2].wr_id, 2ULL);
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), 0);
	weft_cq_free(cq);
}

static void weft_cq_post_hostile_cons(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	struct weft_cqe cqe = {};
	u32 i;

	cq->user = true;
	cq->stamped = true;
	cq->ctl->cons = 1;	/* ahead of prod: not looked at while there is room */
	for (i = 0; i < ENTRIES; i++)
		KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), 0);
	cq->ctl->cons = ENTRIES + 1;
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), -ENOSPC);
	cq->ctl->cons = 0x80000000;
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), -ENOSPC);
	cq->ctl->cons = 0;
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), -ENOSPC);
	cq->ctl->cons = 1;
	cq->ctl->prod = 17;	/* the kernel does not read it back */
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), 0);
	KUNIT_EXPECT_EQ(test, cq->ctl->prod, ENTRIES + 1U);
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), -ENOSPC);
	KUNIT_EXPECT_NE(test, ((struct weft_cqe *)weft_ring_entry(&cq->ring, 0))->timestamp, 0ULL);
	weft_cq_free(cq);
}

struct arm_row {
	const char *name;
	u32 arm;
	u8 flags;
	u8 status;
	u32 events;
};

static const struct arm_row arm_rows[] = {
	{ "not_armed", WEFT_ARM_NONE, WEFT_WCF_SOLICITED, 1, 0 },
	{ "next_any", WEFT_ARM_NEXT, 0, 0, 1 },
	{ "solicited_other", WEFT_ARM_SOLICITED, WEFT_WCF_IMM, 0, 0 },
	{ "solicited_solicited", WEFT_ARM_SOLICITED, WEFT_WCF_SOLICITED, 0, 1 },
	{ "solicited_error", WEFT_ARM_SOLICITED, 0, 5, 1 },
	{ "nonsense", 77, WEFT_WCF_SOLICITED, 5, 0 },
};

WEFT_ROWS(arm_rows)

static void weft_cq_post_notifies(struct kunit *test)
{
	const struct arm_row *row = test->param_value;
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	struct weft_cqe cqe = { .flags = row->flags, .status = row->status };
	struct weft_cq_batch batch = {};

	cq->ctl->arm = row->arm;
	weft_cq_post(cq, &cqe, &batch);
	weft_cq_post(cq, &cqe, &batch);
	KUNIT_EXPECT_EQ(test, seen.completions, 0U);
	weft_cq_batch_fire(&batch);
	KUNIT_EXPECT_EQ(test, seen.completions, row->events);
	KUNIT_EXPECT_EQ(test, batch.count, 0U);
	weft_cq_free(cq);
}

static void weft_cq_arm_is_not_weakened(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	struct weft_cqe cqe = {};

	KUNIT_EXPECT_FALSE(test, weft_cq_arm(cq, WEFT_ARM_NEXT));
	KUNIT_EXPECT_FALSE(test, weft_cq_arm(cq, WEFT_ARM_SOLICITED));
	weft_cq_post(cq, &cqe, NULL);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	KUNIT_EXPECT_TRUE(test, weft_cq_arm(cq, WEFT_ARM_SOLICITED));
	weft_cq_post(cq, &cqe, NULL);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	weft_cq_free(cq);
}

static void weft_cq_purge_keeps_others(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	struct weft_cqe out[ENTRIES];
	struct weft_cqe cqe = {};
	u32 i;

	cq->prod = U32_MAX - 2;
	cq->cons = U32_MAX - 2;
	for (i = 0; i < ENTRIES; i++) {
		cqe.wr_id = i;
		cqe.qp_num = i % 3;
		weft_cq_post(cq, &cqe, NULL);
	}
	weft_cq_purge(cq, 1);
	KUNIT_EXPECT_EQ(test, weft_cq_poll(cq, out, ENTRIES), 5U);
	KUNIT_EXPECT_EQ(test, out[0].wr_id, 0ULL);
	KUNIT_EXPECT_EQ(test, out[1].wr_id, 2ULL);
	KUNIT_EXPECT_EQ(test, out[2].wr_id, 3ULL);
	KUNIT_EXPECT_EQ(test, out[3].wr_id, 5ULL);
	KUNIT_EXPECT_EQ(test, out[4].wr_id, 6ULL);
	weft_cq_free(cq);
}

static void weft_cq_resize_moves_entries(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	struct weft_ring ring;
	struct weft_cqe out[ENTRIES];
	struct weft_cqe cqe = {};
	u32 i;

	cq->prod = U32_MAX - 2;
	cq->cons = U32_MAX - 2;
	weft_cq_arm(cq, WEFT_ARM_SOLICITED);
	for (i = 0; i < 6; i++) {
		cqe.wr_id = i;
		weft_cq_post(cq, &cqe, NULL);
	}
	KUNIT_ASSERT_EQ(test, weft_ring_init(&ring, 4, sizeof(cqe), NULL), 0);
	KUNIT_EXPECT_EQ(test, weft_cq_resize(cq, &ring), -EBUSY);
	KUNIT_EXPECT_EQ(test, weft_cq_poll(cq, out, 2), 2U);
	KUNIT_EXPECT_EQ(test, weft_cq_resize(cq, &ring), 0);
	KUNIT_EXPECT_EQ(test, ring.entries, ENTRIES);
	weft_ring_free(&ring);

	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), -ENOSPC);
	KUNIT_EXPECT_EQ(test, cq->ctl->prod, cq->prod);
	KUNIT_EXPECT_EQ(test, weft_cq_poll(cq, out, ENTRIES), 4U);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, out[i].wr_id, i + 2ULL);
	cqe.flags = WEFT_WCF_SOLICITED;
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	weft_cq_free(cq);
}

/* Indices wrap on the way. */
static void weft_recvq_resize_moves_entries(struct kunit *test)
{
	struct weft_recvq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);
	struct weft_rwr *rwr = empty_rwr(test);
	struct weft_ring ring;
	u32 i;

	KUNIT_ASSERT_EQ(test, weft_recvq_init(rq, ENTRIES, SGES, NULL), 0);
	rq->user = true;
	rq->shared = true;
	rq->cons = U32_MAX - 2;
	for (i = 0; i < 6; i++)
		user_rqe(rq, rq->cons + i, i % SGES);
	rq->ctl->prod = rq->cons + 6;
	rq->limit = 3;

	KUNIT_ASSERT_EQ(test, weft_ring_init(&ring, 4, rq->ring.stride, NULL), 0);
	KUNIT_EXPECT_EQ(test, weft_recvq_resize(rq, &ring), -EBUSY);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	rq->limit = 5;
	KUNIT_EXPECT_EQ(test, weft_recvq_resize(rq, &ring), -EINVAL);
	rq->limit = 3;
	rq->ctl->prod += ENTRIES;
	KUNIT_EXPECT_EQ(test, weft_recvq_resize(rq, &ring), -EIO);
	rq->ctl->prod -= ENTRIES;
	KUNIT_EXPECT_EQ(test, rq->ring.entries, ENTRIES);
	KUNIT_EXPECT_EQ(test, weft_recvq_resize(rq, &ring), 0);
	KUNIT_EXPECT_EQ(test, rq->ring.entries, 4U);
	KUNIT_EXPECT_EQ(test, ring.entries, ENTRIES);
	weft_ring_free(&ring);

	KUNIT_EXPECT_EQ(test, rq->ctl->cons, U32_MAX);
	KUNIT_EXPECT_EQ(test, rq->ctl->prod, 3U);
	for (i = 2; i < 6; i++) {
		KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
		KUNIT_EXPECT_EQ(test, rwr->wr_id, (u64)(0x1000U + U32_MAX - 2U + i));
		KUNIT_EXPECT_EQ(test, rwr->num_sge, i % SGES);
	}
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), -ENOENT);
	KUNIT_EXPECT_EQ(test, rq->limit, 0U);
	weft_recvq_free(rq);
}

static void post_armed(struct weft_cq *cq, u32 count, u8 status)
{
	struct weft_cqe cqe = { .status = status };
	struct weft_cqe out;

	weft_cq_arm(cq, WEFT_ARM_NEXT);
	while (count--) {
		weft_cq_post(cq, &cqe, NULL);
		weft_cq_poll(cq, &out, 1);
	}
}

/* A QP goes with an event held back: it is told at once, and none comes later. */
static void weft_cq_tell_held_is_the_last_event(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	struct weft_cqe cqe = {};

	weft_cq_moderate(cq, 3, U16_MAX);
	weft_cq_tell_held(cq);
	KUNIT_EXPECT_EQ(test, seen.completions, 0U);
	weft_cq_arm(cq, WEFT_ARM_NEXT);
	weft_cq_post(cq, &cqe, NULL);
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&cq->moderation.timer));
	weft_cq_tell_held(cq);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&cq->moderation.timer));
	weft_cq_arm(cq, WEFT_ARM_NEXT);
	msleep(100);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	weft_cq_free(cq);
}

static void weft_cq_moderate_holds_back(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);

	/* By number. */
	weft_cq_moderate(cq, 4, U16_MAX);
	post_armed(cq, 3, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 0U);
	post_armed(cq, 1, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	post_armed(cq, 3, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	/* An error goes ahead, and takes what was held with it. */
	post_armed(cq, 1, WEFT_STATUS_FLUSH);
	KUNIT_EXPECT_EQ(test, seen.completions, 2U);
	/* By time; what is not armed starts nothing. */
	weft_cq_moderate(cq, 1000, 2000);
	msleep(20);
	KUNIT_EXPECT_EQ(test, seen.completions, 2U);
	post_armed(cq, 2, 0);
	msleep(100);
	KUNIT_EXPECT_EQ(test, seen.completions, 3U);
	/* Given up, with one held back. */
	weft_cq_moderate(cq, 1000, U16_MAX);
	post_armed(cq, 1, 0);
	weft_cq_moderate(cq, 1000, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 4U);
	post_armed(cq, 1, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 5U);
	/* Freed with the timer running. */
	weft_cq_moderate(cq, 9, U16_MAX);
	post_armed(cq, 1, 0);
	weft_cq_free(cq);
	msleep(100);
	KUNIT_EXPECT_EQ(test, seen.completions, 5U);
}

static void weft_ring_init_refuses(struct kunit *test)
{
	struct weft_ring ring = {};

	KUNIT_EXPECT_EQ(test, weft_ring_init(&ring, 0, 64, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, weft_ring_init(&ring, 3, 64, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, weft_ring_init(&ring, 1U << 31, 64, NULL), -EINVAL);
	KUNIT_EXPECT_NULL(test, ring.mem);
	weft_ring_free(&ring);
}

static int make_counters(struct kunit_suite *suite)
{
	return weft_counters_init(&counters);
}

static void free_counters(struct kunit_suite *suite)
{
	weft_counters_free(&counters);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(weft_ring_init_refuses),
	KUNIT_CASE(weft_sendq_fetch_copies),
	KUNIT_CASE_PARAM(weft_sendq_fetch_judges, bad_sqe_rows_gen_params),
	KUNIT_CASE_PARAM(weft_sendq_fetch_impossible_index, index_rows_gen_params),
	KUNIT_CASE(weft_sendq_reserve_until_full),
	KUNIT_CASE(weft_sendq_handshake_loses_nothing),
	KUNIT_CASE(weft_recvq_fetch_judges),
	KUNIT_CASE(weft_recvq_limit_is_raised_once),
	KUNIT_CASE(weft_recvq_resize_moves_entries),
	KUNIT_CASE(weft_cq_overflow_is_told_once),
	KUNIT_CASE(weft_cq_post_hostile_cons),
	KUNIT_CASE_PARAM(weft_cq_post_notifies, arm_rows_gen_params),
	KUNIT_CASE(weft_cq_arm_is_not_weakened),
	KUNIT_CASE(weft_cq_purge_keeps_others),
	KUNIT_CASE(weft_cq_resize_moves_entries),
	KUNIT_CASE(weft_cq_moderate_holds_back),
	KUNIT_CASE(weft_cq_tell_held_is_the_last_event),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "weft_ring",
	.suite_init = make_counters,
	.suite_exit = free_counters,
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);
