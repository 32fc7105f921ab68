// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The tables of operations have a row for each opcode that a process or a peer can name.
 */
#include "engine/ops/op.h"
#include "suite.h"

static void weft_ops_plan_each_request(struct kunit *test)
{
	const struct weft_tx_op *op;
	u32 i;

	for (i = 0; i < WEFT_WR_OP_COUNT; i++) {
		op = weft_tx_op(i);
		KUNIT_ASSERT_NOT_NULL(test, op);
		KUNIT_EXPECT_TRUE_MSG(test, op->plan, "work request opcode %u", i);
		KUNIT_EXPECT_LE_MSG(test, op->messages, WEFT_MSGS_PER_WR, "opcode %u", i);
		KUNIT_EXPECT_EQ_MSG(test, !op->messages, !!(op->flags & WEFT_TXF_LOCAL),
				    "work request opcode %u", i);
	}
	KUNIT_EXPECT_NULL(test, weft_tx_op(WEFT_WR_OP_COUNT));
	KUNIT_EXPECT_NULL(test, weft_tx_op(255));
}

static void weft_ops_take_each_message(struct kunit *test)
{
	const struct weft_rx_op *op;
	u32 i;

	for (i = 0; i < WEFT_OP_COUNT; i++) {
		if (!weft_rdmap_info(i)->known)
			continue;
		op = weft_rx_op(i);
		KUNIT_EXPECT_TRUE_MSG(test, op->begin && op->place && op->place_batch && op->end,
				      "RDMAP opcode %u", i);
	}
}

static struct kunit_case ops_cases[] = { KUNIT_CASE(weft_ops_plan_each_request),
					 KUNIT_CASE(weft_ops_take_each_message),
					 {} };

static struct kunit_suite ops_suite = {
	.name = "weft_ops",
	.test_cases = ops_cases,
};

kunit_test_suite(ops_suite);
