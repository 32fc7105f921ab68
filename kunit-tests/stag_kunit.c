// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * STags and their pins: RFC 5040, 5.3 and 8.1.1.
 */
#include <linux/kthread.h>
#include <linux/module.h>

#include "base/limits.h"
#include "mem/stag.h"
#include "mem_world.h"
#include "suite.h"

#define NUMBERS	64

/* RFC 5040, 8.1.1 (8): hard to guess, spread over the whole range */
static void weft_stag_alloc_numbers(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr[NUMBERS];
	u32 least = U32_MAX;
	u32 most = 0;
	u32 keys = 0;
	u32 i;

	for (i = 0; i < NUMBERS; i++) {
		mr[i] = make_stag(test, w, WEFT_STAG_REGION);
		KUNIT_EXPECT_NE(test, mr[i]->grant.stag >> 8, 0U);
		least = min(least, mr[i]->grant.stag);
		most = max(most, mr[i]->grant.stag);
		keys |= mr[i]->grant.stag & 0xff;
	}
	KUNIT_EXPECT_GT(test, most - least, 1U << 31);
	KUNIT_EXPECT_EQ(test, keys, 0xffU);
	for (i = 0; i < NUMBERS; i++)
		drop(test, w, mr[i]);
	leave(test, w);
}

#define PINNERS	(WEFT_STAG_RECENT + WEFT_STAG_RECENT / 4)

static void expect_found(struct kunit *test, struct world *w, struct weft_mem_region *mr, u32 stag)
{
	struct weft_mem_region *found = weft_stag_pin(&w->table, stag);

	KUNIT_EXPECT_PTR_EQ(test, found, mr);
	if (found)
		weft_stag_unpin(found);
}

/* Some share a slot of what was made last, and lose it to each other. */
static void weft_stag_pin_concurrently(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region **mr = kunit_kcalloc(test, PINNERS, sizeof(*mr), GFP_KERNEL);
	u32 stag;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	for (i = 0; i < PINNERS; i++) {
		struct weft_stag_grant grant = { .length = 1 };

		mr[i] = make_stag(test, w, WEFT_STAG_WINDOW1);
		grant.stag = mr[i]->grant.stag;
		KUNIT_ASSERT_EQ(test, weft_stag_enable(mr[i], &grant), 0);
	}
	for (i = 0; i < PINNERS; i++)
		expect_found(test, w, mr[i], mr[i]->grant.stag);
	for (i = PINNERS; i--;) {
		stag = mr[i]->grant.stag;
		drop(test, w, mr[i]);
		expect_found(test, w, NULL, stag);
		if (i)
			expect_found(test, w, mr[0], mr[0]->grant.stag);
	}
	for (i = 0; i < WEFT_STAG_RECENT; i++)
		KUNIT_EXPECT_NULL(test, rcu_access_pointer(w->table.recent[i]));
	leave(test, w);
}

static void weft_stag_pin_follows_state(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_REGION);
	struct weft_stag_grant grant = { .stag = mr->grant.stag, .length = 1 };
	u32 stag = mr->grant.stag;

	expect_found(test, w, NULL, stag);
	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), 0);
	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), -EBUSY);
	expect_found(test, w, NULL, stag ^ 1);
	expect_found(test, w, NULL, stag + 256);
	KUNIT_EXPECT_PTR_EQ(test, weft_stag_pin(&w->table, stag), mr);

	KUNIT_EXPECT_TRUE(test, weft_stag_disable(mr));
	KUNIT_EXPECT_FALSE(test, weft_stag_disable(mr));
	KUNIT_EXPECT_TRUE(test, weft_stag_draining(mr));
	expect_found(test, w, NULL, stag);
	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), -EBUSY);
	KUNIT_EXPECT_EQ(test, weft_stag_rename(mr, stag ^ 1), -EBUSY);
	weft_stag_unpin(mr);
	KUNIT_EXPECT_FALSE(test, weft_stag_draining(mr));
	KUNIT_EXPECT_EQ(test, weft_stag_rename(mr, stag ^ 1), 0);

	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), 0);
	KUNIT_EXPECT_EQ(test, weft_stag_revoke(mr, true), 0);
	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), -ENODEV);
	weft_stag_free(&w->table, mr);
	leave(test, w);
}

/* All 16777215 take 5 GB of memory and minutes, so that many are made only when asked for. */
static unsigned int stags = 65536;
module_param(stags, uint, 0444);
MODULE_PARM_DESC(stags, "STags that weft_stag_alloc_many makes, at most 16777215");

static void weft_stag_alloc_many(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr;
	u64 began = ktime_get_ns();
	unsigned long index;
	u32 made;

	for (made = 0; made < stags; made++) {
		mr = weft_stag_alloc(&w->table, WEFT_STAG_REGION, PD);
		if (IS_ERR(mr))
			break;
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, made, min(stags, WEFT_MAX_STAG));
	if (stags >= WEFT_MAX_STAG) {
		mr = weft_stag_alloc(&w->table, WEFT_STAG_REGION, PD);
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(mr), -ENOMEM);
	}
	kunit_info(test, "%u STags of %zu bytes, %llu ns each\n", made, sizeof(*mr),
		   div_u64(ktime_get_ns() - began, max(made, 1U)));
	xa_for_each(&w->table.xa, index, mr) {
		weft_stag_free(&w->table, mr);
		cond_resched();
	}
	leave(test, w);
}

#define TAKEN	(WEFT_MAX_STAG / 256)
#define BEGINS	8192

/* A search begins anywhere, and all from there on may be taken: it goes on at the least number. */
static void weft_stag_alloc_begins_again(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region **mr = kunit_kcalloc(test, BEGINS, sizeof(*mr), GFP_KERNEL);
	u32 first = WEFT_MAX_STAG - TAKEN + 1;
	void *old;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	for (i = first; i <= WEFT_MAX_STAG; i++) {
		old = xa_store(&w->table.xa, i, xa_mk_value(1), GFP_KERNEL);
		KUNIT_ASSERT_EQ(test, xa_err(old), 0);
		cond_resched();
	}
	for (i = 0; i < BEGINS; i++) {
		mr[i] = make_stag(test, w, WEFT_STAG_REGION);
		KUNIT_EXPECT_LT(test, mr[i]->index, first);
	}
	for (i = 0; i < BEGINS; i++)
		drop(test, w, mr[i]);
	for (i = first; i <= WEFT_MAX_STAG; i++) {
		xa_erase(&w->table.xa, i);
		cond_resched();
	}
	leave(test, w);
}

/* Accesses and revocations race; none is seen after its revocation. */
#define RACES	20000U

struct race {
	struct world *w;
	u32 stag;
	atomic_t inside;	/* accesses under way */
	atomic_t granted;
};

static int access_often(void *arg)
{
	struct race *r = arg;
	struct weft_mem_region *mr;

	while (!kthread_should_stop()) {
		mr = weft_stag_pin(&r->w->table, r->stag);
		if (mr) {
			atomic_inc(&r->inside);
			cpu_relax();
			atomic_inc(&r->granted);
			atomic_dec(&r->inside);
			weft_stag_unpin(mr);
		}
		cond_resched();
	}
	return 0;
}

static void weft_stag_revoke_waits_for_accesses(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_REGION);
	struct weft_stag_grant grant = { .stag = mr->grant.stag };
	struct race r = { .w = w, .stag = grant.stag };
	struct task_struct *task[2];
	u32 seen = 0;
	u32 i;

	for (i = 0; i < 2; i++) {
		task[i] = kthread_run(access_often, &r, "weft_mem_access%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(task[i]));
	}
	for (i = 0; i < RACES; i++) {
		KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), 0);
		if (i % 8 == 0)
			cond_resched();
		weft_stag_revoke(mr, false);
		seen += atomic_read(&r.inside);
	}
	KUNIT_EXPECT_EQ(test, seen, 0U);
	for (i = 0; i < 2; i++)
		kthread_stop(task[i]);
	kunit_info(test, "%d accesses granted\n", atomic_read(&r.granted));
	drop(test, w, mr);
	leave(test, w);
}

static struct kunit_case stag_cases[] = {
	KUNIT_CASE(weft_stag_alloc_numbers),
	KUNIT_CASE(weft_stag_pin_follows_state),
	KUNIT_CASE(weft_stag_pin_concurrently),
	KUNIT_CASE(weft_stag_revoke_waits_for_accesses),
	KUNIT_CASE(weft_stag_alloc_begins_again),
	KUNIT_CASE_SLOW(weft_stag_alloc_many),
	{},
};

static struct kunit_suite stag_suite = {
	.name = "weft_stag",
	.test_cases = stag_cases,
};

kunit_test_suite(stag_suite);
