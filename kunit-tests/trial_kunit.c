// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Trials: the faster of two ways is gone nearly always, whichever that is by now.
 */
#include "base/trial.h"

#include "suite.h"

#define CHUNK	(64U * 1024)

/* Something that is done, at a pace of each way in nanoseconds for CHUNK. */
struct course {
	struct weft_trial trial;
	u32 pace[2];
	u64 now;
	u64 went[2];
};

static void go(struct course *c, u32 windows)
{
	u64 chunks = (u64)windows * (WEFT_TRIAL_WINDOW / CHUNK);

	memset(c->went, 0, sizeof(c->went));
	while (chunks--) {
		u8 way = c->trial.way;

		c->now += c->pace[way];
		c->went[way]++;
		weft_trial_add(&c->trial, CHUNK, c->now);
	}
}

static u32 percent(const struct course *c, u8 way)
{
	return div64_u64(100 * c->went[way], c->went[0] + c->went[1]);
}

static void the_faster_way_is_gone(struct kunit *test)
{
	struct course first = { .pace = { 15000, 25000 }, .now = NSEC_PER_SEC };
	struct course second = { .pace = { 25000, 15000 }, .now = NSEC_PER_SEC };

	go(&first, 1000);
	KUNIT_EXPECT_GE(test, percent(&first, 0), 97U);
	go(&second, 1000);
	KUNIT_EXPECT_GE(test, percent(&second, 1), 97U);
}

static void the_other_is_tried_ever_more_rarely(struct kunit *test)
{
	struct course c = { .pace = { 15000, 16000 }, .now = NSEC_PER_SEC };

	go(&c, 100);
	KUNIT_EXPECT_GE(test, c.went[1], 1ULL);
	go(&c, 2000);
	go(&c, 4 * WEFT_TRIAL_MAX);
	KUNIT_EXPECT_GE(test, c.went[1], 1ULL);
	KUNIT_EXPECT_LE(test, c.went[1], 10ULL * (WEFT_TRIAL_WINDOW / CHUNK));
}

static void a_change_is_noticed(struct kunit *test)
{
	struct course c = { .pace = { 15000, 25000 }, .now = NSEC_PER_SEC };

	go(&c, 4000);
	KUNIT_EXPECT_EQ(test, c.trial.way, 0);
	swap(c.pace[0], c.pace[1]);
	go(&c, 2 * WEFT_TRIAL_MAX);
	go(&c, 1000);
	KUNIT_EXPECT_GE(test, percent(&c, 1), 90U);
}

/* Who rests between two messages is not slow. */
static void rests_do_not_count(struct kunit *test)
{
	struct course c = { .pace = { 15000, 25000 }, .now = NSEC_PER_SEC };
	u32 before;

	go(&c, 100);
	before = c.trial.pace[c.trial.way];
	c.now += 5 * NSEC_PER_SEC;
	weft_trial_add(&c.trial, CHUNK, c.now);
	go(&c, 3);
	KUNIT_EXPECT_LE(test, c.trial.pace[0], before + before / 8);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(the_faster_way_is_gone),
	KUNIT_CASE(the_other_is_tried_ever_more_rarely),
	KUNIT_CASE(a_change_is_noticed),
	KUNIT_CASE(rests_do_not_count),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_trial",
	.test_cases = cases,
};

kunit_test_suite(suite);
