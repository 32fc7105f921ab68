// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues: hostile indices, overflow, when the consumer is notified, another
 * size.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>

#include "base/compat.h"
#include "base/counters.h"
#include "proto/fault.h"
#include "ring/cq.h"
#include "suite.h"

#define ENTRIES	8U

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

/* As if a process owned it, with a ring that the test can still write to. */
static void give_to_a_process(struct weft_cq *cq)
{
	cq->user = true;
	weft_ring_lock_init(&cq->lock, true);
}

static void weft_cq_overflow_is_reported_once(struct kunit *test)
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
	struct weft_cq_details details;
	struct weft_cqe cqe = {};
	u32 i;

	give_to_a_process(cq);
	cq->stamped = true;
	cq->ctl->cons = 1;	/* ahead of prod: not looked at while there is room */
	for (i = 0; i < ENTRIES; i++)
		KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), 0);
	cq->ctl->cons = ENTRIES + 1;
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), -ENOSPC);
	weft_cq_inspect(cq, &details);
	KUNIT_EXPECT_EQ(test, details.waiting, ENTRIES);
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
	/* Armed again before the batch ends, a queue still gets one event. */
	cq->ctl->arm = row->arm;
	weft_cq_post(cq, &cqe, &batch);
	KUNIT_EXPECT_EQ(test, seen.completions, 0U);
	weft_cq_batch_fire(&batch);
	KUNIT_EXPECT_EQ(test, seen.completions, row->events);
	KUNIT_EXPECT_EQ(test, batch.count, 0U);
	weft_cq_free(cq);
}

/* A queue that finds no room in the batch is told at once, the others at its end. */
static void weft_cq_batch_tells_each_queue(struct kunit *test)
{
	struct weft_cq_batch batch = {};
	struct cq_seen seen[ARRAY_SIZE(batch.cq) + 1] = {};
	struct weft_cq *cq[ARRAY_SIZE(seen)];
	struct weft_cqe cqe = {};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(seen); i++) {
		cq[i] = make_cq(test, &seen[i]);
		cq[i]->ctl->arm = WEFT_ARM_NEXT;
		weft_cq_post(cq[i], &cqe, &batch);
		KUNIT_EXPECT_EQ(test, seen[i].completions, i == ARRAY_SIZE(batch.cq) ? 1U : 0U);
	}
	weft_cq_batch_fire(&batch);
	for (i = 0; i < ARRAY_SIZE(seen); i++) {
		KUNIT_EXPECT_EQ(test, seen[i].completions, 1U);
		weft_cq_free(cq[i]);
	}
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
	KUNIT_EXPECT_EQ(test, cq->ctl->cons, cq->cons);
	KUNIT_EXPECT_EQ(test, weft_cq_poll(cq, out, ENTRIES), 4U);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, out[i].wr_id, i + 2ULL);
	cqe.flags = WEFT_WCF_SOLICITED;
	KUNIT_EXPECT_EQ(test, weft_cq_post(cq, &cqe, NULL), 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	weft_cq_free(cq);
}

/*
 * What a process claims is in the ring may be more than the ring has, and less than a new one.
 * Nothing of it is copied.
 */
static void weft_cq_resize_hostile_cons(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	struct weft_cqe cqe = { .wr_id = 1 };
	struct weft_ring ring;

	give_to_a_process(cq);
	weft_cq_post(cq, &cqe, NULL);
	KUNIT_ASSERT_EQ(test, weft_ring_init(&ring, 4 * ENTRIES, sizeof(cqe), NULL), 0);
	cq->ctl->cons = cq->prod - ENTRIES - 1;
	KUNIT_EXPECT_EQ(test, weft_cq_resize(cq, &ring), -EBUSY);
	KUNIT_EXPECT_NULL(test, memchr_inv(ring.mem, 0, weft_ring_bytes(&ring)));
	cq->ctl->cons = cq->prod + 1;
	KUNIT_EXPECT_EQ(test, weft_cq_resize(cq, &ring), -EBUSY);
	KUNIT_EXPECT_EQ(test, cq->ring.entries, ENTRIES);
	cq->ctl->cons = cq->prod - ENTRIES;
	KUNIT_EXPECT_EQ(test, weft_cq_resize(cq, &ring), 0);
	KUNIT_EXPECT_EQ(test, cq->ring.entries, 4 * ENTRIES);
	KUNIT_EXPECT_EQ(test, cq->ctl->cons, cq->prod - ENTRIES);
	weft_ring_free(&ring);
	weft_cq_free(cq);
}

#define LONG	16384U

static int post_numbered(void *arg)
{
	struct weft_cqe cqe = {};

	while (!kthread_should_stop()) {
		if (!weft_cq_post(arg, &cqe, NULL))
			cqe.wr_id++;
		udelay(5);
		cond_resched();
	}
	return 0;
}

/* Completions that come while a queue is copied are in the new ring as well. */
static void weft_cq_resize_amid_posts(struct kunit *test)
{
	struct weft_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	u32 first = U32_MAX - LONG / 8; /* indices wrap during the test */
	struct cq_seen seen = {};
	struct task_struct *poster;
	struct weft_ring ring;
	u32 wrong = 0;
	u32 i;

	KUNIT_ASSERT_EQ(test, weft_cq_init(cq, LONG, NULL, &cq_events, &seen, &counters), 0);
	give_to_a_process(cq);
	cq->prod = first;
	cq->cons = first - LONG / 4;
	cq->ctl->cons = cq->cons;
	poster = kthread_run(post_numbered, cq, "weft_cq_poster");
	KUNIT_ASSERT_FALSE(test, IS_ERR(poster));
	for (i = 0; i < 50; i++) {
		KUNIT_ASSERT_EQ(test, weft_ring_init(&ring, LONG, sizeof(struct weft_cqe), NULL),
				0);
		KUNIT_EXPECT_EQ(test, weft_cq_resize(cq, &ring), 0);
		weft_ring_free(&ring);
	}
	kthread_stop(poster);
	for (i = first; i != cq->prod; i++) {
		const struct weft_cqe *cqe = weft_ring_entry(&cq->ring, i);

		wrong += cqe->wr_id != i - first;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	KUNIT_EXPECT_EQ(test, seen.completions, 0U);
	weft_cq_free(cq);
}

/* struct interruption - a consumer that comes as soon as interrupts are on again */
struct interruption {
	struct hrtimer timer;
	struct weft_cq *cq;
	u32 taken;
};

static enum hrtimer_restart poll_amid_poll(struct hrtimer *timer)
{
	struct interruption *in = container_of(timer, struct interruption, timer);
	struct weft_cqe cqe;

	in->taken = weft_cq_poll(in->cq, &cqe, 1);
	return HRTIMER_NORESTART;
}

/* Whichever of two consumers gets a completion, the other one does not. */
static void weft_cq_pollers_share(struct kunit *test)
{
	struct weft_cqe *out = kvmalloc_array(LONG, sizeof(*out), GFP_KERNEL);
	struct interruption *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	struct weft_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	struct cq_seen seen = {};
	struct weft_cqe cqe = {};
	u32 round, i, n;

	KUNIT_ASSERT_TRUE(test, out && in && cq);
	KUNIT_ASSERT_EQ(test, weft_cq_init(cq, LONG, NULL, &cq_events, &seen, &counters), 0);
	in->cq = cq;
	hrtimer_setup(&in->timer, poll_amid_poll, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	for (round = 0; round < 10; round++) {
		for (i = 0; i < LONG; i++)
			weft_cq_post(cq, &cqe, NULL);
		in->taken = 0;
		/* As a rule it is due while the many are copied, with the lock held. */
		hrtimer_start(&in->timer, ns_to_ktime(20 * NSEC_PER_USEC), HRTIMER_MODE_REL_HARD);
		n = weft_cq_poll(cq, out, LONG);
		hrtimer_cancel(&in->timer);
		KUNIT_EXPECT_EQ(test, n + in->taken, LONG);
	}
	weft_cq_free(cq);
	kvfree(out);
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

/* A QP is destroyed with an event held back: it is raised at once, and none comes later. */
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

/* What was held back went with an error: when its time is up there is nothing to tell. */
static void weft_cq_moderate_tells_no_more_than_there_is(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);

	weft_cq_moderate(cq, 3, U16_MAX);
	post_armed(cq, 1, 0);
	post_armed(cq, 1, WEFT_STATUS_FLUSH);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&cq->moderation.timer));
	weft_cq_arm(cq, WEFT_ARM_NEXT);
	msleep(200);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&cq->moderation.timer));
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	weft_cq_free(cq);
}

static void weft_cq_moderate_holds_back(struct kunit *test)
{
	struct cq_seen seen = {};
	struct weft_cq *cq = make_cq(test, &seen);
	u32 i;

	/* By number. */
	weft_cq_moderate(cq, 4, U16_MAX);
	post_armed(cq, 3, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 0U);
	post_armed(cq, 1, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	post_armed(cq, 2, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 1U);
	/* An error goes ahead, and takes what was held with it. */
	post_armed(cq, 1, WEFT_STATUS_FLUSH);
	KUNIT_EXPECT_EQ(test, seen.completions, 2U);
	post_armed(cq, 3, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 2U);
	post_armed(cq, 1, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 3U);
	/* By time; what is not armed starts nothing. */
	weft_cq_moderate(cq, 1000, 2000);
	msleep(20);
	KUNIT_EXPECT_EQ(test, seen.completions, 3U);
	for (i = 1; i <= 2; i++) {
		post_armed(cq, 2, 0);
		msleep(100);
		KUNIT_EXPECT_EQ(test, seen.completions, 3U + i);
	}
	/* Given up, with one held back. */
	weft_cq_moderate(cq, 1000, U16_MAX);
	post_armed(cq, 1, 0);
	weft_cq_moderate(cq, 1000, 0);
	KUNIT_EXPECT_EQ(test, cq->moderation.count, 0U);	/* and not by a timer of 0 */
	KUNIT_EXPECT_EQ(test, seen.completions, 6U);
	post_armed(cq, 1, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 7U);
	/* What was told when the numbers changed counts no more. */
	weft_cq_moderate(cq, 3, U16_MAX);
	post_armed(cq, 2, 0);
	weft_cq_moderate(cq, 3, U16_MAX);
	KUNIT_EXPECT_EQ(test, seen.completions, 8U);
	post_armed(cq, 2, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 8U);
	post_armed(cq, 1, 0);
	KUNIT_EXPECT_EQ(test, seen.completions, 9U);
	/* Freed with the timer running. */
	weft_cq_moderate(cq, 9, U16_MAX);
	post_armed(cq, 1, 0);
	weft_cq_free(cq);
	msleep(100);
	KUNIT_EXPECT_EQ(test, seen.completions, 9U);
}

static int make_counters(struct kunit_suite *suite)
{
	return weft_counters_init(&counters);
}

static void free_counters(struct kunit_suite *suite)
{
	weft_counters_free(&counters);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(weft_cq_overflow_is_reported_once),
	KUNIT_CASE(weft_cq_post_hostile_cons),
	KUNIT_CASE_PARAM(weft_cq_post_notifies, arm_rows_gen_params),
	KUNIT_CASE(weft_cq_batch_tells_each_queue),
	KUNIT_CASE(weft_cq_arm_is_not_weakened),
	KUNIT_CASE(weft_cq_purge_keeps_others),
	KUNIT_CASE(weft_cq_resize_moves_entries),
	KUNIT_CASE(weft_cq_resize_hostile_cons),
	KUNIT_CASE(weft_cq_resize_amid_posts),
	KUNIT_CASE(weft_cq_pollers_share),
	KUNIT_CASE(weft_cq_moderate_holds_back),
	KUNIT_CASE(weft_cq_moderate_tells_no_more_than_there_is),
	KUNIT_CASE(weft_cq_tell_held_is_the_last_event),
	{},
};

static struct kunit_suite cq_suite = {
	.name = "weft_cq",
	.suite_init = make_counters,
	.suite_exit = free_counters,
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
