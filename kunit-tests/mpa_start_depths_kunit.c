// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How many RDMA Reads each side takes and asks: RFC 6581, 9.1.
 */
#include "proto/mpa_start.h"
#include "start_frame.h"
#include "suite.h"

#define OPEN	0x3fff	/* not negotiated */
#define DEEP	0x3ffe	/* the deepest there is */

/* RFC 5044 only: depths are up to the consumer, RTR is whatever message is first. */
static void settle_plain_keeps_own_depths(struct kunit *test)
{
	struct weft_mpa_policy own = {
		.revision = 1,
		.ird = 70000,
		.ord = 5,
		.ird_max = 80000,
		.p2p = true,
		.rtr = RTR_ALL,
	};
	struct weft_mpa_frame peer = { .revision = 1 };
	struct weft_mpa_result result;

	KUNIT_EXPECT_EQ(test, weft_mpa_respond(&peer, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, result.revision, 1);
	KUNIT_EXPECT_FALSE(test, result.enhanced);
	KUNIT_EXPECT_EQ(test, result.rtr, 0);
	KUNIT_EXPECT_EQ(test, result.ird, 70000U);
	KUNIT_EXPECT_EQ(test, result.ord, 5U);
	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&peer, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_FALSE(test, result.enhanced);
	KUNIT_EXPECT_EQ(test, result.rtr, 0);
	KUNIT_EXPECT_EQ(test, result.ird, 70000U);
	KUNIT_EXPECT_EQ(test, result.ord, 5U);
	/* A side that gets no limit assumes one. */
	own.ord = 1024;
	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&peer, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, result.ord, 255U);
}

struct respond_row {
	const char *name;
	struct {
		u16 ird;
		u16 ord;
	} request;
	struct {
		u32 ird;
		u32 ord;
		u32 ird_max;
	} own;
	struct {
		u32 ird;
		u32 ord;
	} result, reply;
};

/* RFC 6581, 9.1, at the responder. */
static const struct respond_row respond_rows[] = {
	{ "equal", { 8, 8 }, { 8, 8, 0 }, { 8, 8 }, { 8, 8 } },
	{ "own_ord_lowered", { 2, 8 }, { 8, 16, 0 }, { 8, 2 }, { 8, 2 } },
	{ "own_ord_below", { 16, 8 }, { 8, 3, 0 }, { 8, 3 }, { 8, 3 } },
	{ "own_ord_to_zero", { 0, 8 }, { 8, 3, 0 }, { 8, 0 }, { 8, 0 } },
	{ "own_ird_above", { 8, 2 }, { 8, 8, 0 }, { 8, 8 }, { 8, 8 } },
	{ "own_ird_raised", { 8, 16 }, { 4, 8, 32 }, { 16, 8 }, { 16, 8 } },
	{ "own_ird_raised_to_most", { 8, 16 }, { 4, 8, 10 }, { 10, 8 }, { 10, 8 } },
	{ "own_ird_cannot_rise", { 8, 16 }, { 4, 8, 0 }, { 4, 8 }, { 4, 8 } },
	{ "most_below_own_ird", { 8, 16 }, { 4, 8, 2 }, { 4, 8 }, { 4, 8 } },
	{ "largest", { DEEP, DEEP }, { DEEP, DEEP, 0 }, { DEEP, DEEP }, { DEEP, DEEP } },
	/* 0x3fff: the matching value is left alone and comes back as 0x3fff */
	{ "ird_open", { OPEN, 8 }, { 8, 100, 0 }, { 8, 100 }, { 8, OPEN } },
	{ "ord_open", { 8, OPEN }, { 5, 8, 1000 }, { 5, 8 }, { OPEN, 8 } },
	{ "both_open", { OPEN, OPEN }, { 20000, 30000, 0 }, { 20000, 255 }, { OPEN, OPEN } },
	/* a depth the field cannot hold must not come out as "not negotiated" */
	{ "own_ird_beyond_field", { 8, 8 }, { 20000, 8, 0 }, { 20000, 8 }, { DEEP, 8 } },
	{ "own_ird_just_beyond_field", { 8, 8 }, { 0x3fff, 8, 0 }, { 0x3fff, 8 }, { DEEP, 8 } },
	{ "own_ird_wraps_field", { 8, 8 }, { 0x4001, 8, 0 }, { 0x4001, 8 }, { DEEP, 8 } },
};

WEFT_ROWS(respond_rows)

static void respond_depths(struct kunit *test)
{
	const struct respond_row *row = test->param_value;
	struct weft_mpa_frame reply, request = {
		.revision = 2,
		.enhanced = true,
		.ird = row->request.ird,
		.ord = row->request.ord,
	};
	struct weft_mpa_policy own = {
		.revision = 2,
		.ird = row->own.ird,
		.ord = row->own.ord,
		.ird_max = row->own.ird_max,
	};
	struct weft_mpa_result result;
	u8 *out = frame_space(test);
	int len;

	KUNIT_ASSERT_EQ(test, weft_mpa_respond(&request, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, result.ird, row->result.ird);
	KUNIT_EXPECT_EQ(test, result.ord, row->result.ord);
	KUNIT_EXPECT_TRUE(test, result.enhanced);
	len = weft_mpa_build_accept(&request, &own, &result, NULL, 0, out);
	KUNIT_ASSERT_EQ(test, parse(test, out, len, false, &reply), WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, reply.enhanced);
	KUNIT_EXPECT_EQ(test, reply.revision, 2);
	KUNIT_EXPECT_FALSE(test, reply.p2p);
	KUNIT_EXPECT_EQ(test, (u32)reply.ird, row->reply.ird);
	KUNIT_EXPECT_EQ(test, (u32)reply.ord, row->reply.ord);
}

struct conclude_row {
	const char *name;
	struct {
		u16 ird;
		u16 ord;
	} reply;
	struct {
		u32 ird;
		u32 ord;
		u32 ird_max;
	} sent;
	struct {
		u32 ird;
		u32 ord;
	} result;
	enum weft_fault fault;
};

/* RFC 6581, 9.1, at the initiator. */
static const struct conclude_row conclude_rows[] = {
	{ "equal", { 8, 8 }, { 8, 8, 0 }, { 8, 8 } },
	{ "own_ord_lowered", { 1, 8 }, { 8, 16, 0 }, { 8, 1 } },
	{ "own_ord_to_zero", { 0, 8 }, { 8, 16, 0 }, { 8, 0 } },
	{ "own_ord_stays", { 16, 8 }, { 8, 4, 0 }, { 8, 4 } },
	{ "own_ird_stays", { 8, 3 }, { 8, 8, 0 }, { 8, 8 } },
	{ "own_ird_raised", { 8, 12 }, { 8, 8, 16 }, { 12, 8 } },
	{ "own_ird_raised_to_most", { 8, 16 }, { 8, 8, 16 }, { 16, 8 } },
	{ "own_ird_not_enough", { 8, 17 }, { 8, 8, 16 }, { 16, 8 }, WEFT_FAULT_MPA_IRD },
	{ "own_ird_cannot_rise", { 8, 9 }, { 8, 8, 0 }, { 8, 8 }, WEFT_FAULT_MPA_IRD },
	{ "absurd_ord", { 8, 16000 }, { 8, 8, 16 }, { 16, 8 }, WEFT_FAULT_MPA_IRD },
	{ "ird_open", { OPEN, 8 }, { 8, 100, 0 }, { 8, 100 } },
	{ "ord_open", { 8, OPEN }, { 5, 8, 100 }, { 5, 8 } },
	{ "both_open", { OPEN, OPEN }, { 70000, 80000, 0 }, { 70000, 255 } },
};

WEFT_ROWS(conclude_rows)

static void conclude_depths(struct kunit *test)
{
	const struct conclude_row *row = test->param_value;
	struct weft_mpa_frame reply = {
		.revision = 2,
		.enhanced = true,
		.ird = row->reply.ird,
		.ord = row->reply.ord,
	};
	struct weft_mpa_policy sent = {
		.revision = 2,
		.ird = row->sent.ird,
		.ord = row->sent.ord,
		.ird_max = row->sent.ird_max,
	};
	struct weft_mpa_result result;

	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&reply, &sent, &result), row->fault);
	KUNIT_EXPECT_EQ(test, result.ird, row->result.ird);
	KUNIT_EXPECT_EQ(test, result.ord, row->result.ord);
	KUNIT_EXPECT_EQ(test, result.rtr, 0);
}

static struct kunit_case mpa_start_depths_cases[] = {
	KUNIT_CASE(settle_plain_keeps_own_depths),
	KUNIT_CASE_PARAM(respond_depths, respond_rows_gen_params),
	KUNIT_CASE_PARAM(conclude_depths, conclude_rows_gen_params),
	{},
};

static struct kunit_suite mpa_start_depths_suite = {
	.name = "weft_mpa_start_depths",
	.test_cases = mpa_start_depths_cases,
};

kunit_test_suite(mpa_start_depths_suite);
