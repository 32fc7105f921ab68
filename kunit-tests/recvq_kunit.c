// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A ring, and the receive queue that stands in one: hostile indices, malformed
 * entries, the limit of a shared one, another size.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/string.h>

#include "ring/recvq.h"
#include "ring/ring.h"
#include "suite.h"

#define ENTRIES	8U
#define SGES	4U

static void weft_ring_init_refuses(struct kunit *test)
{
	struct weft_ring ring = {};

	KUNIT_EXPECT_EQ(test, weft_ring_init(&ring, 0, 64, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, weft_ring_init(&ring, 3, 64, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, weft_ring_init(&ring, 1U << 31, 64, NULL), -EINVAL);
	KUNIT_EXPECT_NULL(test, ring.mem);
	weft_ring_free(&ring);
}

#define LONG	16384U

/* More than are copied at once, from a place where the ring wraps; nothing else is written. */
static void weft_ring_copy_ahead_copies_all(struct kunit *test)
{
	struct weft_ring from, to;
	u32 begin = U32_MAX - LONG / 4, end = begin + LONG - 2;
	u32 wrong = 0;
	u32 i;

	KUNIT_ASSERT_EQ(test, weft_ring_init(&from, LONG, sizeof(u64), NULL), 0);
	KUNIT_ASSERT_EQ(test, weft_ring_init(&to, LONG, sizeof(u64), NULL), 0);
	for (i = begin; i != begin + LONG; i++)
		*(u64 *)weft_ring_entry(&from, i) = i + 1ULL;
	weft_ring_copy_ahead(&to, &from, begin, end);
	for (i = begin; i != end; i++)
		wrong += *(u64 *)weft_ring_entry(&to, i) != i + 1ULL;
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	for (; i != begin + LONG; i++)
		KUNIT_EXPECT_EQ(test, *(u64 *)weft_ring_entry(&to, i), 0ULL);
	weft_ring_free(&from);
	weft_ring_free(&to);
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
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), -ENOENT);
	KUNIT_EXPECT_EQ(test, raised, 1U);

	spin_lock_irq(&rq->lock);
	for (i = 0; weft_recvq_reserve(rq); i++)
		weft_recvq_commit(rq);
	spin_unlock_irq(&rq->lock);
	KUNIT_EXPECT_EQ(test, i, ENTRIES);

	KUNIT_EXPECT_EQ(test, weft_recvq_set_limit(rq, ENTRIES), 0); /* no less than that */
	KUNIT_EXPECT_EQ(test, raised, 1U);
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

/* A process says that more is posted than either ring holds: nothing of it is copied. */
static void weft_recvq_resize_hostile_prod(struct kunit *test)
{
	static const u32 sizes[] = { ENTRIES / 2, ENTRIES, 4 * ENTRIES };
	struct weft_recvq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);
	struct weft_ring ring;
	u32 i;

	KUNIT_ASSERT_EQ(test, weft_recvq_init(rq, ENTRIES, SGES, NULL), 0);
	rq->user = true;
	rq->shared = true;
	for (i = 0; i < ENTRIES; i++)
		user_rqe(rq, i, SGES);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KUNIT_ASSERT_EQ(test, weft_ring_init(&ring, sizes[i], rq->ring.stride, NULL), 0);
		rq->ctl->prod = rq->cons + ENTRIES + 1;
		KUNIT_EXPECT_EQ(test, weft_recvq_resize(rq, &ring), -EIO);
		if (sizes[i] < ENTRIES) {
			rq->ctl->prod = rq->cons + ENTRIES;
			KUNIT_EXPECT_EQ(test, weft_recvq_resize(rq, &ring), -EBUSY);
		}
		KUNIT_EXPECT_NULL(test, memchr_inv(ring.mem, 0, weft_ring_bytes(&ring)));
		weft_ring_free(&ring);
	}
	weft_recvq_free(rq);
}

struct looker {
	struct weft_recvq *rq;
	struct weft_recvq_details seen;
	struct completion done;
};

static int look(void *arg)
{
	struct looker *l = arg;

	weft_recvq_inspect(l->rq, &l->seen);
	complete(&l->done);
	return 0;
}

static int other_cpu(void)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (cpu != smp_processor_id())
			return cpu;
	return -1;
}

/* While a ring is replaced by another one, neither of them is read. */
static void weft_recvq_inspect_takes_the_lock(struct kunit *test)
{
	struct weft_recvq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);
	struct looker l = { .rq = rq };
	struct task_struct *task;
	int cpu;

	KUNIT_ASSERT_EQ(test, weft_recvq_init(rq, ENTRIES, SGES, NULL), 0);
	rq->shared = true;
	rq->limit = 2;
	rq->ctl->prod = 3;
	init_completion(&l.done);
	task = kthread_create(look, &l, "weft_look");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	migrate_disable();
	cpu = other_cpu();
	if (cpu >= 0)
		kthread_bind(task, cpu);
	spin_lock_irq(&rq->lock);
	wake_up_process(task);
	mdelay(cpu >= 0 ? 50 : 0);
	KUNIT_EXPECT_FALSE(test, completion_done(&l.done));
	spin_unlock_irq(&rq->lock);
	migrate_enable();
	wait_for_completion(&l.done);
	KUNIT_EXPECT_EQ(test, l.seen.entries, ENTRIES);
	KUNIT_EXPECT_EQ(test, l.seen.max_sge, SGES);
	KUNIT_EXPECT_EQ(test, l.seen.waiting, 3U);
	KUNIT_EXPECT_EQ(test, l.seen.consumed, 0U);
	KUNIT_EXPECT_EQ(test, l.seen.limit, 2U);
	weft_recvq_free(rq);
}

static void weft_recvq_discard_takes_what_is_posted(struct kunit *test)
{
	struct weft_recvq *rq = kunit_kzalloc(test, sizeof(*rq), GFP_KERNEL);
	struct weft_rwr *rwr = empty_rwr(test);

	KUNIT_ASSERT_EQ(test, weft_recvq_init(rq, ENTRIES, SGES, NULL), 0);
	rq->user = true;
	user_rqe(rq, 0, 1);
	rq->ctl->prod = 1;
	KUNIT_ASSERT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	rq->ctl->prod = 1 + ENTRIES;
	KUNIT_EXPECT_EQ(test, weft_recvq_discard(rq), 0);
	KUNIT_EXPECT_EQ(test, rq->ctl->cons, 1 + ENTRIES);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), -ENOENT);
	user_rqe(rq, 1 + ENTRIES, 1);
	rq->ctl->prod = 2 + ENTRIES;
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(rq, rwr), 0);
	KUNIT_EXPECT_EQ(test, rwr->wr_id, 0x1000ULL + 1 + ENTRIES);
	rq->ctl->prod = rq->cons + ENTRIES + 1;
	KUNIT_EXPECT_EQ(test, weft_recvq_discard(rq), -EIO);
	weft_recvq_free(rq);
}

static struct kunit_case recvq_cases[] = {
	KUNIT_CASE(weft_ring_init_refuses),
	KUNIT_CASE(weft_ring_copy_ahead_copies_all),
	KUNIT_CASE(weft_recvq_fetch_judges),
	KUNIT_CASE(weft_recvq_discard_takes_what_is_posted),
	KUNIT_CASE(weft_recvq_inspect_takes_the_lock),
	KUNIT_CASE(weft_recvq_limit_is_raised_once),
	KUNIT_CASE(weft_recvq_resize_moves_entries),
	KUNIT_CASE(weft_recvq_resize_hostile_prod),
	{},
};

static struct kunit_suite recvq_suite = {
	.name = "weft_recvq",
	.test_cases = recvq_cases,
};

kunit_test_suite(recvq_suite);
