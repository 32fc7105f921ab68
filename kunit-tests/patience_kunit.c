// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Patience: what pays is always tried, what does not ever more rarely, but again.
 */
#include "base/patience.h"

#include "suite.h"

/* Loses each time it is tried. Return: how many chances passed before that. */
static u32 lose(struct weft_patience *p)
{
	u32 passed = 0;

	while (!weft_patience_try(p))
		passed++;
	weft_patience_lost(p);
	return passed;
}

static void failures_are_spared_ever_more(struct kunit *test)
{
	static const u32 passed[] = { 0, 1, 3, 7, 15, 31, 63, 127, 255, 255, 255 };
	struct weft_patience p = {};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(passed); i++)
		KUNIT_EXPECT_EQ(test, lose(&p), passed[i]);
}

static void a_success_makes_good(struct kunit *test)
{
	struct weft_patience p = {};
	u32 i;

	for (i = 0; i < 20; i++)
		lose(&p);
	KUNIT_EXPECT_FALSE(test, weft_patience_try(&p));
	weft_patience_won(&p);
	for (i = 0; i < 20; i++) {
		KUNIT_EXPECT_TRUE(test, weft_patience_try(&p));
		weft_patience_won(&p);
	}
	KUNIT_EXPECT_EQ(test, lose(&p), 0);
	KUNIT_EXPECT_EQ(test, lose(&p), 1);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(failures_are_spared_ever_more),
	KUNIT_CASE(a_success_makes_good),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_patience",
	.test_cases = cases,
};

kunit_test_suite(suite);
