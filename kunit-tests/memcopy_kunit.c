// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copies, short and long: each length and alignment, and not a byte more.
 */
#include "base/copy.h"

#include <linux/string.h>

#include "suite.h"

#define LENGTHS		(WEFT_COPY_SHORT + 140)
#define SKEWS		40
#define GUARD		0xa5

static void every_byte_and_no_other(struct kunit *test)
{
	u8 *from = kunit_kmalloc(test, LENGTHS + 2 * SKEWS, GFP_KERNEL);
	u8 *to = kunit_kmalloc(test, LENGTHS + 2 * SKEWS, GFP_KERNEL);
	u32 len, skew, i;

	KUNIT_ASSERT_NOT_NULL(test, from);
	KUNIT_ASSERT_NOT_NULL(test, to);
	for (i = 0; i < LENGTHS + 2 * SKEWS; i++)
		from[i] = i % 163;
	for (len = 0; len <= LENGTHS; len++) {
		for (skew = 1; skew < SKEWS; skew += 3) {
			memset(to, GUARD, LENGTHS + 2 * SKEWS);
			weft_copy(to + skew, from + SKEWS - skew, len);
			KUNIT_ASSERT_EQ(test, memcmp(to + skew, from + SKEWS - skew, len), 0);
			KUNIT_ASSERT_EQ(test, to[skew - 1], GUARD);
			KUNIT_ASSERT_EQ(test, to[skew + len], GUARD);
		}
	}
}

static struct kunit_case copy_cases[] = { KUNIT_CASE(every_byte_and_no_other), {} };

static struct kunit_suite copy_suite = {
	.name = "weft_copy",
	.test_cases = copy_cases,
};

kunit_test_suite(copy_suite);
