// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Requests under way in both directions: order, limits, wrap of the indices.
 * RFC 5040, 5.2 and 6.1; RFC 6581, 9.1; RFC 7306, 5.2.
 */
#include "proto/readq.h"
#include "suite.h"

struct depth_row {
	const char *name;
	u32 ord;
	u32 ird;
};

/* Depths as negotiated, so any number, and the two unlike. */
static const struct depth_row depth_rows[] = {
	{ "none", 0, 0 },
	{ "ord_only", 1, 0 },
	{ "ird_only", 0, 1 },
	{ "one", 1, 1 },
	{ "two", 2, 2 },
	{ "three_and_five", 3, 5 },
	{ "seven_and_four", 7, 4 },
	{ "usual", 16, 16 },
	{ "uneven", 127, 33 },
	{ "largest_negotiable", 0x3ffe, 1 },
	{ "many_owed", 1, 1023 },
};

WEFT_ROWS(depth_rows)

static void init(struct kunit *test, struct weft_readq *q, const struct depth_row *row)
{
	/* 0: KUnit's allocations are never empty, the answer may be */
	size_t bytes = weft_readq_bytes(row->ord, row->ird);
	void *mem = kunit_kzalloc(test, bytes ?: 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	memset(q, 0xa5, sizeof(*q));
	weft_readq_init(q, mem, row->ord, row->ird);
}

/* Shortly before the indices wrap, still empty. */
static void wind_on(struct weft_readq *q, u32 index)
{
	q->sent_head = index;
	q->sent_tail = index;
	q->owed_head = index;
	q->owed_tail = index;
}

static bool push_sent(struct weft_readq *q, u32 msn)
{
	struct weft_readq_sent *slot = weft_readq_sent_slot(q);

	if (!slot)
		return false;
	memset(slot, 0, sizeof(*slot));
	slot->msn = msn;
	slot->sink_to = ~(u64)msn;
	weft_readq_sent_push(q);
	return true;
}

static bool push_owed(struct weft_readq *q, u32 id)
{
	struct weft_readq_owed *slot = weft_readq_owed_slot(q);

	if (!slot)
		return false;
	memset(slot, 0, sizeof(*slot));
	slot->op.id = id;
	slot->headers[sizeof(slot->headers) - 1] = id;
	weft_readq_owed_push(q);
	return true;
}

static void init_empty(struct kunit *test)
{
	const struct depth_row *row = test->param_value;
	struct weft_readq q;

	init(test, &q, row);
	KUNIT_EXPECT_TRUE(test, weft_readq_idle(&q));
	KUNIT_EXPECT_EQ(test, weft_readq_credit(&q), row->ord > 0);
	KUNIT_EXPECT_NULL(test, weft_readq_sent_head(&q));
	KUNIT_EXPECT_NULL(test, weft_readq_sent_find(&q, 0));
	KUNIT_EXPECT_NULL(test, weft_readq_owed_head(&q));
	KUNIT_EXPECT_EQ(test, !weft_readq_owed_slot(&q), row->ird == 0);
}

/* RFC 5040, 6.1: never more than ORD requests without an answer. */
static void sent_slot_up_to_ord(struct kunit *test)
{
	const struct depth_row *row = test->param_value;
	struct weft_readq q;
	u32 i;

	init(test, &q, row);
	for (i = 0; i < row->ord; i++) {
		KUNIT_EXPECT_TRUE(test, weft_readq_credit(&q));
		KUNIT_ASSERT_TRUE(test, push_sent(&q, i));
		KUNIT_EXPECT_FALSE(test, weft_readq_idle(&q));
	}
	KUNIT_EXPECT_FALSE(test, weft_readq_credit(&q));
	KUNIT_EXPECT_NULL(test, weft_readq_sent_slot(&q));
	for (i = 0; i < row->ord; i++) {
		struct weft_readq_sent *head = weft_readq_sent_head(&q);

		KUNIT_ASSERT_NOT_NULL(test, head);
		KUNIT_EXPECT_EQ(test, head->msn, i);
		KUNIT_EXPECT_EQ(test, head->sink_to, ~(u64)i);
		weft_readq_sent_pop(&q);
		KUNIT_EXPECT_TRUE(test, weft_readq_credit(&q));
	}
	KUNIT_EXPECT_TRUE(test, weft_readq_idle(&q));
	KUNIT_EXPECT_NULL(test, weft_readq_sent_head(&q));
}

/* RFC 5040, 6.1: not a request more than IRD is taken in; all are kept in order. */
static void owed_slot_up_to_ird(struct kunit *test)
{
	const struct depth_row *row = test->param_value;
	struct weft_readq q;
	u32 i;

	init(test, &q, row);
	for (i = 0; i < row->ird; i++)
		KUNIT_ASSERT_TRUE(test, push_owed(&q, i));
	KUNIT_EXPECT_NULL(test, weft_readq_owed_slot(&q));
	for (i = 0; i < row->ird; i++) {
		struct weft_readq_owed *head = weft_readq_owed_head(&q);

		KUNIT_ASSERT_NOT_NULL(test, head);
		KUNIT_EXPECT_EQ(test, head->op.id, i);
		KUNIT_EXPECT_EQ(test, head->headers[sizeof(head->headers) - 1], (u8)i);
		weft_readq_owed_pop(&q);
		KUNIT_EXPECT_NOT_NULL(test, weft_readq_owed_slot(&q));
	}
	KUNIT_EXPECT_NULL(test, weft_readq_owed_head(&q));
}

/* An index modulo a depth that is no power of two would jump where it wraps. */
static void sent_order_over_index_wrap(struct kunit *test)
{
	const struct depth_row *row = test->param_value;
	u32 in = 0, out = 0, rounds = 3 * row->ord + 8;
	struct weft_readq q;

	init(test, &q, row);
	wind_on(&q, 0U - row->ord - 3);
	while (row->ord && out < rounds) {
		while (push_sent(&q, in))
			in++;
		KUNIT_ASSERT_EQ(test, in - out, row->ord);
		KUNIT_ASSERT_EQ(test, weft_readq_sent_head(&q)->msn, out);
		weft_readq_sent_pop(&q);
		out++;
	}
}

static void owed_order_over_index_wrap(struct kunit *test)
{
	const struct depth_row *row = test->param_value;
	u32 in = 0, out = 0, rounds = 3 * row->ird + 8;
	struct weft_readq q;

	init(test, &q, row);
	wind_on(&q, 0U - row->ird - 3);
	while (row->ird && out < rounds) {
		while (push_owed(&q, in))
			in++;
		KUNIT_ASSERT_EQ(test, in - out, row->ird);
		KUNIT_ASSERT_EQ(test, weft_readq_owed_head(&q)->op.id, out);
		weft_readq_owed_pop(&q);
		out++;
	}
}

static void sent_find_only_what_waits(struct kunit *test)
{
	static const struct depth_row depths = { "", 5, 0 };
	struct weft_readq q;
	u32 msn;

	init(test, &q, &depths);
	wind_on(&q, 0xfffffffe);
	for (msn = 0xfffffffd; msn != 2; msn++)		/* MSNs wrap as well */
		KUNIT_ASSERT_TRUE(test, push_sent(&q, msn));
	weft_readq_sent_pop(&q);
	weft_readq_sent_pop(&q);
	KUNIT_EXPECT_NULL(test, weft_readq_sent_find(&q, 0xfffffffd));
	KUNIT_EXPECT_NULL(test, weft_readq_sent_find(&q, 0xfffffffe));
	for (msn = 0xffffffff; msn != 2; msn++) {
		struct weft_readq_sent *found = weft_readq_sent_find(&q, msn);

		KUNIT_ASSERT_NOT_NULL(test, found);
		KUNIT_EXPECT_EQ(test, found->msn, msn);
	}
	KUNIT_EXPECT_NULL(test, weft_readq_sent_find(&q, 2));
}

/* A slot that was not pushed is not seen: tx may prepare one and think again. */
static void sent_slot_without_push(struct kunit *test)
{
	static const struct depth_row depths = { "", 2, 2 };
	struct weft_readq q;

	init(test, &q, &depths);
	weft_readq_sent_slot(&q)->msn = 9;
	weft_readq_sent_slot(&q)->length = 9;
	KUNIT_EXPECT_TRUE(test, weft_readq_idle(&q));
	KUNIT_EXPECT_NULL(test, weft_readq_sent_head(&q));
	KUNIT_EXPECT_NULL(test, weft_readq_sent_find(&q, 9));
	weft_readq_owed_slot(&q)->op.id = 9;
	KUNIT_EXPECT_NULL(test, weft_readq_owed_head(&q));
}

/*
 * The two rings share memory, never bytes. A depth that is no power of two is rounded up: the
 * requests begin where they reach the additional slots as well.
 */
static void rings_do_not_touch(struct kunit *test)
{
	const struct depth_row *row = test->param_value;
	struct weft_readq q;
	u32 i;

	init(test, &q, row);
	q.sent_head = row->ord - 1;
	q.sent_tail = q.sent_head;
	q.owed_head = row->ird - 1;
	q.owed_tail = q.owed_head;
	for (i = 0; i < row->ord; i++)
		KUNIT_ASSERT_TRUE(test, push_sent(&q, i));
	for (i = 0; i < row->ird; i++)
		KUNIT_ASSERT_TRUE(test, push_owed(&q, ~i));
	for (i = 0; i < row->ord; i++) {
		KUNIT_EXPECT_EQ(test, weft_readq_sent_head(&q)->msn, i);
		weft_readq_sent_pop(&q);
	}
	for (i = 0; i < row->ird; i++) {
		KUNIT_EXPECT_EQ(test, weft_readq_owed_head(&q)->op.id, ~i);
		weft_readq_owed_pop(&q);
	}
}

static struct kunit_case readq_cases[] = {
	KUNIT_CASE_PARAM(init_empty, depth_rows_gen_params),
	KUNIT_CASE_PARAM(sent_slot_up_to_ord, depth_rows_gen_params),
	KUNIT_CASE_PARAM(owed_slot_up_to_ird, depth_rows_gen_params),
	KUNIT_CASE_PARAM(sent_order_over_index_wrap, depth_rows_gen_params),
	KUNIT_CASE_PARAM(owed_order_over_index_wrap, depth_rows_gen_params),
	KUNIT_CASE(sent_find_only_what_waits),
	KUNIT_CASE(sent_slot_without_push),
	KUNIT_CASE_PARAM(rings_do_not_touch, depth_rows_gen_params),
	{},
};

static struct kunit_suite readq_suite = {
	.name = "weft_readq",
	.test_cases = readq_cases,
};

kunit_test_suite(readq_suite);
