// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counters: names that the rdma tool can show, and adds that end where they should.
 */
#include "base/counters.h"

#include <linux/string.h>

#include "suite.h"

/* A netlink message of the core has one page for all values of a port. */
#define MESSAGE		3700U
#define PER_VALUE	28U	/* three headers, a value, padding */

static void every_counter_has_a_name_of_its_own(struct kunit *test)
{
	size_t bytes = 0;
	u32 i, j;

	for (i = 0; i < WEFT_CTR_COUNT; i++) {
		KUNIT_ASSERT_NOT_NULL_MSG(test, weft_counter_name(i), "%u", i);
		bytes += PER_VALUE + ALIGN(strlen(weft_counter_name(i)) + 1, 4);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, weft_counter_name(i), weft_counter_name(j));
	}
	KUNIT_EXPECT_LT(test, bytes, MESSAGE);
}

static void adds_move_one_counter(struct kunit *test)
{
	struct weft_counters c;
	u32 i;

	KUNIT_ASSERT_EQ(test, weft_counters_init(&c), 0);
	for (i = 0; i < WEFT_CTR_COUNT; i++)
		weft_count_add(&c, i, 1 + i);
	weft_count(&c, WEFT_CTR_COUNT - 1);
	for (i = 0; i < WEFT_CTR_COUNT; i++)
		KUNIT_EXPECT_EQ(test, weft_counters_read(&c, i),
				(u64)i + (i == WEFT_CTR_COUNT - 1 ? 2 : 1));
	weft_counters_free(&c);
}

static void adds_move_two_counters(struct kunit *test)
{
	struct weft_counters c;

	KUNIT_ASSERT_EQ(test, weft_counters_init(&c), 0);
	weft_count_add2(&c, WEFT_CTR_RX_SEGS, 3, WEFT_CTR_RX_BYTES, 500);
	weft_count_add2(&c, WEFT_CTR_RX_BYTES, 70, WEFT_CTR_RX_SEGS, 20);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&c, WEFT_CTR_RX_SEGS), 23ULL);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&c, WEFT_CTR_RX_BYTES), 570ULL);
	weft_counters_free(&c);
}

/* A stream counts in its device's block, then in another, then again in the first. */
static void redirected_adds_end_elsewhere(struct kunit *test)
{
	struct weft_counters device, other, stream;

	KUNIT_ASSERT_EQ(test, weft_counters_init(&device), 0);
	KUNIT_ASSERT_EQ(test, weft_counters_init(&other), 0);
	stream = device;
	weft_count(&stream, WEFT_CTR_TX_MSGS);
	weft_counters_redirect(&stream, &other);
	weft_count_add(&stream, WEFT_CTR_TX_MSGS, 10);
	weft_count_add(&device, WEFT_CTR_TX_MSGS, 100);
	weft_counters_redirect(&stream, &device);
	weft_count_add(&stream, WEFT_CTR_TX_MSGS, 1000);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&device, WEFT_CTR_TX_MSGS), 1101ULL);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&other, WEFT_CTR_TX_MSGS), 10ULL);
	weft_counters_free(&other);
	weft_counters_free(&device);
}

static struct kunit_case counters_cases[] = { KUNIT_CASE(every_counter_has_a_name_of_its_own),
					      KUNIT_CASE(adds_move_one_counter),
					      KUNIT_CASE(adds_move_two_counters),
					      KUNIT_CASE(redirected_adds_end_elsewhere),
					      {} };

static struct kunit_suite counters_suite = {
	.name = "weft_counters",
	.test_cases = counters_cases,
};

kunit_test_suite(counters_suite);
