// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The first message of a peer-to-peer connection: RFC 6581, 9.2.
 */
#include "proto/mpa_start.h"
#include "start_frame.h"
#include "suite.h"

struct rtr_row {
	const char *name;
	u8 offered;	/* by the initiator */
	u8 own;		/* of the responder */
	u8 replied;
	u8 chosen;	/* 0: none */
};

#define S	WEFT_RTR_SEND
#define W	WEFT_RTR_WRITE
#define R	WEFT_RTR_READ

/* RFC 6581, 9.2; preference from protocol-rules, CHOICE-14: Write, then Read, then Send. */
static const struct rtr_row rtr_rows[] = {
	{ "all_of_both", RTR_ALL, RTR_ALL, RTR_ALL, W },
	{ "send_only", S, RTR_ALL, S, S },
	{ "write_only", W, RTR_ALL, W, W },
	{ "read_only", R, RTR_ALL, R, R },
	{ "send_or_read", S | R, RTR_ALL, S | R, R },
	{ "responder_takes_send", RTR_ALL, S, S, S },
	{ "responder_takes_read", RTR_ALL, R, R, R },
	{ "responder_takes_send_or_write", RTR_ALL, S | W, S | W, W },
	/* at least one bit is set, even if nothing matches */
	{ "nothing_in_common", S, W, W, 0 },
	{ "nothing_in_common_of_two", S | R, W, W, 0 },
	{ "nothing_offered", 0, W, W, 0 },
	/* an enhanced responder supports at least one kind */
	{ "responder_has_no_opinion", W | R, 0, W | R, W },
};

#undef S
#undef W
#undef R

WEFT_ROWS(rtr_rows)

static void respond_and_conclude_rtr(struct kunit *test)
{
	const struct rtr_row *row = test->param_value;
	struct weft_mpa_policy sent = {
		.revision = 2, .p2p = true, .rtr = row->offered, .ird = 4, .ord = 4
	};
	struct weft_mpa_policy own = { .revision = 2, .rtr = row->own, .ird = 4, .ord = 4 };
	struct weft_mpa_frame request, reply;
	struct weft_mpa_result result;
	u8 *out = frame_space(test);
	int len;

	len = weft_mpa_build_request(&sent, NULL, 0, out);
	KUNIT_ASSERT_EQ(test, parse(test, out, len, true, &request), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, request.rtr, row->offered);
	KUNIT_ASSERT_EQ(test, weft_mpa_respond(&request, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, result.rtr, row->replied);
	len = weft_mpa_build_accept(&request, &own, &result, NULL, 0, out);
	KUNIT_ASSERT_EQ(test, parse(test, out, len, false, &reply), WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, reply.p2p);
	KUNIT_EXPECT_EQ(test, reply.rtr, row->replied);
	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&reply, &sent, &result),
			row->chosen ? WEFT_FAULT_NONE : WEFT_FAULT_MPA_RTR);
	KUNIT_EXPECT_EQ(test, result.rtr, row->chosen);
}

struct read_rtr_row {
	const char *name;
	u8 offered;
	u32 ird;
	u32 ird_max;
	enum weft_fault fault;
	u8 rtr;
	u32 ird_used;
};

/* RFC 6581, 9.1: a Read as RTR needs a place though ORD is 0. */
static const struct read_rtr_row read_rtr_rows[] = {
	{ "place_there", WEFT_RTR_READ, 4, 4, WEFT_FAULT_NONE, WEFT_RTR_READ, 4 },
	{ "place_made", WEFT_RTR_READ, 0, 4, WEFT_FAULT_NONE, WEFT_RTR_READ, 1 },
	{ "no_read_no_place", WEFT_RTR_WRITE, 0, 4, WEFT_FAULT_NONE, WEFT_RTR_WRITE, 0 },
	{ "no_place_but_others", RTR_ALL, 0, 0, WEFT_FAULT_NONE, WEFT_RTR_SEND | WEFT_RTR_WRITE,
	  0 },
	{ "no_place_and_nothing_else", WEFT_RTR_READ, 0, 0, WEFT_FAULT_MPA_IRD, 0, 0 },
};

WEFT_ROWS(read_rtr_rows)

static void respond_read_rtr_with_ord_zero(struct kunit *test)
{
	const struct read_rtr_row *row = test->param_value;
	struct weft_mpa_frame request = {
		.revision = 2,
		.enhanced = true,
		.p2p = true,
		.rtr = row->offered,
		.ird = 4,
	};
	struct weft_mpa_policy own = {
		.revision = 2,
		.rtr = RTR_ALL,
		.ird = row->ird,
		.ird_max = row->ird_max,
	};
	struct weft_mpa_result result;

	KUNIT_EXPECT_EQ(test, weft_mpa_respond(&request, &own, &result), row->fault);
	KUNIT_EXPECT_EQ(test, result.rtr, row->rtr);
	KUNIT_EXPECT_EQ(test, result.ird, row->ird_used);
}

/* The initiator then has one request under way, whatever its consumer wanted. */
static void conclude_read_rtr_takes_one_place(struct kunit *test)
{
	struct weft_mpa_policy sent = { .revision = 2, .p2p = true, .rtr = WEFT_RTR_READ };
	struct weft_mpa_frame reply = {
		.revision = 2,
		.enhanced = true,
		.p2p = true,
		.rtr = WEFT_RTR_READ,
		.ird = 1,
	};
	struct weft_mpa_result result;

	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&reply, &sent, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, result.rtr, WEFT_RTR_READ);
	KUNIT_EXPECT_EQ(test, result.ord, 1U);
	reply.ird = 0;
	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&reply, &sent, &result), WEFT_FAULT_MPA_RTR);
}

static struct kunit_case mpa_start_rtr_cases[] = {
	KUNIT_CASE_PARAM(respond_and_conclude_rtr, rtr_rows_gen_params),
	KUNIT_CASE_PARAM(respond_read_rtr_with_ord_zero, read_rtr_rows_gen_params),
	KUNIT_CASE(conclude_read_rtr_takes_one_place),
	{},
};

static struct kunit_suite mpa_start_rtr_suite = {
	.name = "weft_mpa_start_rtr",
	.test_cases = mpa_start_rtr_cases,
};

kunit_test_suite(mpa_start_rtr_suite);
