// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Messages on the untagged queues: their numbers, order and space. RFC 5041, 4.3,
 * 5.2 and 7.1.
 */
#include "proto/ddp.h"
#include "suite.h"

/* RFC 5041, 4.3: each queue counts from 1, on its own, modulo 2^32. */
static void tx_msn_each_queue_from_one(struct kunit *test)
{
	struct weft_ddp_tx tx;
	u32 qn, i;

	memset(&tx, 0xa5, sizeof(tx));
	weft_ddp_tx_init(&tx);
	for (qn = 0; qn < WEFT_DDP_QUEUES; qn++)
		for (i = 1; i <= qn + 2; i++)
			KUNIT_EXPECT_EQ(test, weft_ddp_tx_msn(&tx, qn), i);
}

static void tx_msn_wrap(struct kunit *test)
{
	struct weft_ddp_tx tx;

	weft_ddp_tx_init(&tx);
	tx.msn[WEFT_QN_SEND] = 0xffffffff;
	KUNIT_EXPECT_EQ(test, weft_ddp_tx_msn(&tx, WEFT_QN_SEND), 0xffffffffU);
	KUNIT_EXPECT_EQ(test, weft_ddp_tx_msn(&tx, WEFT_QN_SEND), 0U);
	KUNIT_EXPECT_EQ(test, weft_ddp_tx_msn(&tx, WEFT_QN_REQUEST), 1U);
}

/* A receiver that has seen two whole messages on queue 0 and 8 bytes of a third. */
static void rx_in_third_message(struct weft_ddp_rx *rx)
{
	struct weft_ddp_hdr hdr = { .msn = 1, .payload = 8 };

	weft_ddp_rx_init(rx);
	for (hdr.msn = 1; hdr.msn < 4; hdr.msn++) {
		hdr.last = hdr.msn < 3;
		weft_ddp_rx_advance(rx, &hdr);
	}
}

struct rx_row {
	const char *name;
	u32 qn;
	u32 msn;
	u32 mo;
	u32 payload;
	u64 space;
	enum weft_fault fault;	/* of check */
	enum weft_fault offset;	/* of check_offset, if check found nothing */
};

static const struct rx_row rx_rows[] = {
	{ "in_turn", 0, 3, 8, 8, 16 },
	{ "in_turn_ends_short_of_space", 0, 3, 8, 8, 100 },
	{ "empty_in_turn", 0, 3, 8, 0, 8 },
	{ "other_queue_in_turn", 1, 1, 0, 28, 28 },
	{ "terminate_in_turn", 2, 1, 0, 4, 52 },
	{ "atomic_response_in_turn", 3, 1, 0, 12, 12 },
	{ "space_above_32_bits", 0, 3, 8, 8, 1ULL << 40 },
	/* RFC 5041, 7.1 (1): queue; before anything else */
	{ "queue_4", 4, 3, 8, 8, 16, WEFT_FAULT_UNTAGGED_QN },
	{ "queue_all_ones", 0xffffffff, 3, 8, 8, 16, WEFT_FAULT_UNTAGGED_QN },
	{ "queue_sign_bit", 0x80000000, 3, 8, 8, 16, WEFT_FAULT_UNTAGGED_QN },
	{ "queue_and_msn", 4, 9, 8, 8, 16, WEFT_FAULT_UNTAGGED_QN },
	{ "queue_empty_segment", 7, 3, 0, 0, 0, WEFT_FAULT_UNTAGGED_QN },
	/* (5): message number; also for an empty segment */
	{ "msn_zero", 0, 0, 8, 8, 16, WEFT_FAULT_UNTAGGED_MSN },
	{ "msn_repeated", 0, 2, 8, 8, 16, WEFT_FAULT_UNTAGGED_MSN },
	{ "msn_ahead", 0, 4, 0, 8, 16, WEFT_FAULT_UNTAGGED_MSN },
	{ "msn_all_ones", 0, 0xffffffff, 0, 8, 16, WEFT_FAULT_UNTAGGED_MSN },
	{ "msn_empty_segment", 0, 4, 0, 0, 0, WEFT_FAULT_UNTAGGED_MSN },
	{ "msn_of_other_queue", 1, 3, 8, 8, 16, WEFT_FAULT_UNTAGGED_MSN },
	{ "msn_and_offset", 0, 4, 99, 8, 16, WEFT_FAULT_UNTAGGED_MSN },
	/* (3): offset */
	{ "offset_repeated", 0, 3, 0, 8, 16, 0, WEFT_FAULT_UNTAGGED_MO },
	{ "offset_one_below", 0, 3, 7, 8, 16, 0, WEFT_FAULT_UNTAGGED_MO },
	{ "offset_hole", 0, 3, 9, 4, 16, 0, WEFT_FAULT_UNTAGGED_MO },
	{ "offset_all_ones", 0, 3, 0xffffffff, 8, 16, 0, WEFT_FAULT_UNTAGGED_MO },
	{ "offset_of_first", 1, 1, 8, 28, 36, 0, WEFT_FAULT_UNTAGGED_MO },
	{ "offset_and_length", 0, 3, 9, 99, 16, 0, WEFT_FAULT_UNTAGGED_MO },
	/* (4): end */
	{ "one_byte_too_long", 0, 3, 8, 9, 16, 0, WEFT_FAULT_UNTAGGED_TOO_LONG },
	{ "space_used_up", 0, 3, 8, 1, 8, 0, WEFT_FAULT_UNTAGGED_TOO_LONG },
	{ "no_room_at_all", 1, 1, 0, 1, 0, 0, WEFT_FAULT_UNTAGGED_TOO_LONG },
	{ "longest_segment", 0, 3, 8, 65517, 65524, 0, WEFT_FAULT_UNTAGGED_TOO_LONG },
};

WEFT_ROWS(rx_rows)

static void rx_check_untagged(struct kunit *test)
{
	const struct rx_row *row = test->param_value;
	struct weft_ddp_hdr hdr = {
		.last = true,
		.qn = row->qn,
		.msn = row->msn,
		.mo = row->mo,
		.payload = row->payload,
	};
	struct weft_ddp_rx rx, before;

	rx_in_third_message(&rx);
	memcpy(&before, &rx, sizeof(rx));
	KUNIT_ASSERT_EQ(test, weft_ddp_rx_check(&rx, &hdr), row->fault);
	if (!row->fault)
		KUNIT_EXPECT_EQ(test, weft_ddp_rx_check_offset(&rx, &hdr, row->space), row->offset);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &rx, sizeof(rx)), 0);
}

/* RFC 5041, 5.2: a message is shorter than 2^32 bytes, however large the buffer. */
static void rx_check_offset_message_of_4_gib(struct kunit *test)
{
	struct weft_ddp_hdr hdr = { .msn = 1, .mo = 0xffffff00, .payload = 0x100 };
	struct weft_ddp_rx rx;

	weft_ddp_rx_init(&rx);
	rx.open[0] = true;
	rx.mo[0] = hdr.mo;
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check_offset(&rx, &hdr, ~0ULL),
			WEFT_FAULT_UNTAGGED_TOO_LONG);
	hdr.payload = 0xff;
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check_offset(&rx, &hdr, ~0ULL), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check_offset(&rx, &hdr, 0xfffffffe),
			WEFT_FAULT_UNTAGGED_TOO_LONG);
}

static void rx_init_every_queue_at_one(struct kunit *test)
{
	struct weft_ddp_hdr hdr = { .msn = 1, .last = true };
	struct weft_ddp_rx rx;

	memset(&rx, 0xa5, sizeof(rx));
	weft_ddp_rx_init(&rx);
	for (hdr.qn = 0; hdr.qn < WEFT_DDP_QUEUES; hdr.qn++) {
		KUNIT_EXPECT_EQ(test, weft_ddp_rx_check(&rx, &hdr), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, weft_ddp_rx_check_offset(&rx, &hdr, 0), WEFT_FAULT_NONE);
		KUNIT_EXPECT_FALSE(test, rx.open[hdr.qn]);
	}
}

static void rx_advance_through_message(struct kunit *test)
{
	struct weft_ddp_hdr hdr = { .qn = 1, .msn = 1, .payload = 10 };
	struct weft_ddp_rx rx;

	weft_ddp_rx_init(&rx);
	for (hdr.mo = 0; hdr.mo < 40; hdr.mo += hdr.payload) {
		hdr.last = hdr.mo == 30;
		KUNIT_EXPECT_EQ(test, weft_ddp_rx_check(&rx, &hdr), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, weft_ddp_rx_check_offset(&rx, &hdr, 40), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, rx.open[hdr.qn], hdr.mo != 0);
		weft_ddp_rx_advance(&rx, &hdr);
	}
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check(&rx, &hdr), WEFT_FAULT_UNTAGGED_MSN);
	hdr.msn = 2;
	hdr.mo = 0;
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check(&rx, &hdr), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check_offset(&rx, &hdr, 40), WEFT_FAULT_NONE);
	KUNIT_EXPECT_FALSE(test, rx.open[hdr.qn]);
}

/* An empty first segment without L opens its message although MO stays 0. */
static void rx_first_after_empty_segment(struct kunit *test)
{
	struct weft_ddp_hdr hdr = { .msn = 1 };
	struct weft_ddp_rx rx;

	weft_ddp_rx_init(&rx);
	KUNIT_EXPECT_FALSE(test, rx.open[hdr.qn]);
	weft_ddp_rx_advance(&rx, &hdr);
	KUNIT_EXPECT_TRUE(test, rx.open[hdr.qn]);
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check(&rx, &hdr), WEFT_FAULT_NONE);
	hdr.last = true;
	weft_ddp_rx_advance(&rx, &hdr);
	hdr.msn = 2;
	KUNIT_EXPECT_FALSE(test, rx.open[hdr.qn]);
}

static void rx_advance_other_queues_stay(struct kunit *test)
{
	struct weft_ddp_hdr hdr = { .msn = 1, .payload = 4 };
	struct weft_ddp_rx rx;

	weft_ddp_rx_init(&rx);
	weft_ddp_rx_advance(&rx, &hdr);
	for (hdr.qn = 1; hdr.qn < WEFT_DDP_QUEUES; hdr.qn++) {
		KUNIT_EXPECT_EQ(test, weft_ddp_rx_check(&rx, &hdr), WEFT_FAULT_NONE);
		KUNIT_EXPECT_FALSE(test, rx.open[hdr.qn]);
		KUNIT_EXPECT_EQ(test, weft_ddp_rx_check_offset(&rx, &hdr, 4), WEFT_FAULT_NONE);
	}
}

static void rx_advance_msn_wrap(struct kunit *test)
{
	struct weft_ddp_hdr hdr = { .msn = 0xffffffff, .last = true };
	struct weft_ddp_rx rx;

	weft_ddp_rx_init(&rx);
	rx.msn[0] = 0xffffffff;
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check(&rx, &hdr), WEFT_FAULT_NONE);
	weft_ddp_rx_advance(&rx, &hdr);
	hdr.msn = 0;
	KUNIT_EXPECT_EQ(test, weft_ddp_rx_check(&rx, &hdr), WEFT_FAULT_NONE);
}

static struct kunit_case ddp_queue_cases[] = {
	KUNIT_CASE(tx_msn_each_queue_from_one),
	KUNIT_CASE(tx_msn_wrap),
	KUNIT_CASE_PARAM(rx_check_untagged, rx_rows_gen_params),
	KUNIT_CASE(rx_check_offset_message_of_4_gib),
	KUNIT_CASE(rx_init_every_queue_at_one),
	KUNIT_CASE(rx_advance_through_message),
	KUNIT_CASE(rx_first_after_empty_segment),
	KUNIT_CASE(rx_advance_other_queues_stay),
	KUNIT_CASE(rx_advance_msn_wrap),
	{},
};

static struct kunit_suite ddp_queue_suite = {
	.name = "weft_ddp_queue",
	.test_cases = ddp_queue_cases,
};

kunit_test_suite(ddp_queue_suite);
