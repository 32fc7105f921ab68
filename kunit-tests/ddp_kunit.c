// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * DDP segments: headers, cutting, offsets that wrap. RFC 5041, 4 to 7.
 */
#include "proto/ddp.h"
#include "proto/rdmap.h"
#include "suite.h"
#include "vectors.h"

#define DDP_RSVD	0x3c	/* RFC 5041, 4.1 */

WEFT_ROWS(weft_vec_segment)

/* Parse @len bytes of which no more than the contract requires can be read. */
static enum weft_fault parse(struct kunit *test, const void *ulpdu, u32 len,
			     struct weft_ddp_hdr *out)
{
	u32 readable = min_t(u32, len, WEFT_DDP_UNTAGGED_LEN);

	return weft_ddp_parse(weft_exact_copy(test, ulpdu, readable), len, out);
}

static void expect_address(struct kunit *test, const struct weft_ddp_hdr *hdr,
			   const struct weft_vec_segment *row)
{
	KUNIT_EXPECT_EQ(test, hdr->stag, row->stag);
	if (row->tagged) {
		KUNIT_EXPECT_EQ(test, hdr->to, row->to);
		return;
	}
	KUNIT_EXPECT_EQ(test, hdr->qn, row->qn);
	KUNIT_EXPECT_EQ(test, hdr->msn, row->msn);
	KUNIT_EXPECT_EQ(test, hdr->mo, row->mo);
}

static void parse_vector(struct kunit *test)
{
	const struct weft_vec_segment *row = test->param_value;
	u32 hdr_len = row->tagged ? 14 : 18;
	struct weft_ddp_hdr hdr;

	KUNIT_ASSERT_EQ(test, parse(test, row->ulpdu, row->len, &hdr), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, hdr.tagged, row->tagged);
	KUNIT_EXPECT_EQ(test, hdr.last, row->last);
	KUNIT_EXPECT_EQ(test, hdr.ulp, 0x40 | row->opcode);
	KUNIT_EXPECT_EQ(test, hdr.hdr_len, hdr_len);
	KUNIT_EXPECT_EQ(test, hdr.payload, row->len - hdr_len);
	expect_address(test, &hdr, row);
}

static void build_vector(struct kunit *test)
{
	const struct weft_vec_segment *row = test->param_value;
	u32 hdr_len = row->tagged ? 14 : 18;
	struct weft_ddp_hdr hdr = {
		.tagged = row->tagged,
		.last = row->last,
		.ulp = weft_rdmap_ulp(row->opcode),
		.stag = row->stag,
		.to = row->to,
		.qn = row->qn,
		.msn = row->msn,
		.mo = row->mo,
	};
	u8 *out = kunit_kzalloc(test, WEFT_DDP_UNTAGGED_LEN, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_EQ(test, weft_ddp_build(&hdr, out), hdr_len);
	KUNIT_EXPECT_EQ(test, memcmp(out, row->ulpdu, hdr_len), 0);
}

/* RFC 5041, 4.1: reserved bits are not checked on receive. */
static void parse_reserved_bits_set(struct kunit *test)
{
	const struct weft_vec_segment *row = test->param_value;
	u8 *ulpdu = weft_exact_copy(test, row->ulpdu, row->len);
	struct weft_ddp_hdr hdr;

	ulpdu[0] |= DDP_RSVD;
	KUNIT_ASSERT_EQ(test, parse(test, ulpdu, row->len, &hdr), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, hdr.tagged, row->tagged);
	KUNIT_EXPECT_EQ(test, hdr.last, row->last);
	expect_address(test, &hdr, row);
}

/* The first byte of a ULPDU against the fault it deserves at its length. */
struct ctrl_row {
	const char *name;
	u8 ctrl;
	u32 len;
	enum weft_fault fault;
};

static const struct ctrl_row ctrl_rows[] = {
	/* RFC 5041, 7.2: codes 1/4 and 2/6 by T */
	{ "tagged_version_0", 0xc0, 14, WEFT_FAULT_TAGGED_VERSION },
	{ "tagged_version_1", 0xc1, 14, WEFT_FAULT_NONE },
	{ "tagged_version_2", 0xc2, 14, WEFT_FAULT_TAGGED_VERSION },
	{ "tagged_version_3", 0xc3, 14, WEFT_FAULT_TAGGED_VERSION },
	{ "untagged_version_0", 0x40, 18, WEFT_FAULT_UNTAGGED_VERSION },
	{ "untagged_version_1", 0x41, 18, WEFT_FAULT_NONE },
	{ "untagged_version_2", 0x42, 18, WEFT_FAULT_UNTAGGED_VERSION },
	{ "untagged_version_3", 0x43, 18, WEFT_FAULT_UNTAGGED_VERSION },
	{ "tagged_version_2_not_last", 0x82, 100, WEFT_FAULT_TAGGED_VERSION },
	{ "untagged_version_2_not_last", 0x02, 100, WEFT_FAULT_UNTAGGED_VERSION },
	/* a ULPDU too short comes before the version: protocol-rules, ORDER-2, CHOICE-17 */
	{ "tagged_one_byte_short", 0xc1, 13, WEFT_FAULT_MPA_MARKER },
	{ "untagged_one_byte_short", 0x41, 17, WEFT_FAULT_MPA_MARKER },
	{ "untagged_as_long_as_tagged", 0x41, 14, WEFT_FAULT_MPA_MARKER },
	{ "tagged_short_and_version_2", 0xc2, 13, WEFT_FAULT_MPA_MARKER },
	{ "untagged_short_and_version_2", 0x42, 17, WEFT_FAULT_MPA_MARKER },
	/* hostile but well-formed lengths */
	{ "tagged_16_bit_length", 0xc1, 65535, WEFT_FAULT_NONE },
	{ "untagged_16_bit_length", 0x41, 65535, WEFT_FAULT_NONE },
};

WEFT_ROWS(ctrl_rows)

static void parse_control_byte(struct kunit *test)
{
	const struct ctrl_row *row = test->param_value;
	u8 head[WEFT_DDP_UNTAGGED_LEN] = { row->ctrl, 0x43 };
	struct weft_ddp_hdr hdr;

	KUNIT_ASSERT_EQ(test, parse(test, head, row->len, &hdr), row->fault);
	if (!row->fault)
		KUNIT_EXPECT_EQ(test, hdr.payload + hdr.hdr_len, row->len);
}

static void parse_every_short_length(struct kunit *test)
{
	u8 head[WEFT_DDP_UNTAGGED_LEN] = {};
	struct weft_ddp_hdr hdr;
	u32 ctrl, len, hdr_len;

	for (ctrl = 0; ctrl < 256; ctrl++) {
		head[0] = ctrl;
		hdr_len = ctrl & 0x80 ? 14 : 18;
		for (len = 0; len < hdr_len; len++)
			KUNIT_EXPECT_EQ_MSG(test, parse(test, head, len, &hdr),
					    WEFT_FAULT_MPA_MARKER, "control %02x, %u bytes", ctrl,
					    len);
	}
}

struct cut_row {
	const char *name;
	u32 left;
	u32 mulpdu;
	u32 hdr_len;
	u32 payload;
	bool last;
};

/* RFC 5041, 5.2: no segment above MULPDU; an empty message is one segment. */
static const struct cut_row cut_rows[] = {
	{ "empty_untagged", 0, 1442, 18, 0, true },
	{ "empty_tagged", 0, 1442, 14, 0, true },
	{ "one_byte", 1, 1442, 18, 1, true },
	{ "one_below_full", 1423, 1442, 18, 1423, true },
	{ "exactly_full", 1424, 1442, 18, 1424, true },
	{ "one_above_full", 1425, 1442, 18, 1424, false },
	{ "exactly_full_tagged", 1428, 1442, 14, 1428, true },
	{ "one_above_full_tagged", 1429, 1442, 14, 1428, false },
	{ "smallest_mulpdu", 2048, 128, 18, 110, false },
	{ "largest_mulpdu", 1 << 20, 64768, 14, 64754, false },
	{ "largest_message", 0xffffffff, 64768, 14, 64754, false },
	{ "vector_send", 2048, 1500, 18, 1482, false },
	{ "vector_send_end", 566, 1500, 18, 566, true },
	{ "vector_write", 2048, 1500, 14, 1486, false },
	{ "vector_write_end", 562, 1500, 14, 562, true },
};

WEFT_ROWS(cut_rows)

static void cut_lengths(struct kunit *test)
{
	const struct cut_row *row = test->param_value;
	bool last = !row->last;

	KUNIT_EXPECT_EQ(test, weft_ddp_cut(row->left, row->mulpdu, row->hdr_len, &last),
			row->payload);
	KUNIT_EXPECT_EQ(test, last, row->last);
}

/* Cut a whole message; returns the number of segments, 0 if something is wrong. */
static u32 segments_of(u32 len, u32 mulpdu, u32 hdr_len)
{
	u32 left = len, n = 0, payload;
	bool last = false;

	while (!last) {
		payload = weft_ddp_cut(left, mulpdu, hdr_len, &last);
		if (payload > left || payload + hdr_len > mulpdu)
			return 0;
		if (!last && !payload)
			return 0;
		left -= payload;
		n++;
	}
	return left ? 0 : n;
}

static void cut_whole_messages(struct kunit *test)
{
	static const u32 mulpdus[] = { 128, 129, 522, 1202, 1442, 8882, 64768 };
	u32 i, len, space;

	for (i = 0; i < ARRAY_SIZE(mulpdus); i++) {
		space = mulpdus[i] - WEFT_DDP_UNTAGGED_LEN;
		for (len = 1; len < 3 * space + 2; len += space / 7) {
			u32 n = segments_of(len, mulpdus[i], WEFT_DDP_UNTAGGED_LEN);

			KUNIT_EXPECT_EQ_MSG(test, n, (len + space - 1) / space,
					    "%u bytes at MULPDU %u", len, mulpdus[i]);
		}
	}
}

/* Rows of weft_vec_segment that are the segments of one message. */
struct message_row {
	const char *name;
	const char *first;
	u32 hdr_len;
};

static const struct message_row message_rows[] = {
	{ "send_2048", "seg_send_2048_mulpdu1500_0", 18 },
	{ "write_2048", "seg_write_2048_mulpdu1500_0", 14 },
};

WEFT_ROWS(message_rows)

static const struct weft_vec_segment *find_segment(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(weft_vec_segment); i++)
		if (!strcmp(weft_vec_segment[i].name, name))
			return &weft_vec_segment[i];
	return NULL;
}

static void cut_and_build_message(struct kunit *test)
{
	const struct message_row *row = test->param_value;
	const struct weft_vec_segment *want = find_segment(row->first);
	u8 head[WEFT_DDP_UNTAGGED_LEN];
	struct weft_ddp_hdr hdr;
	u32 left = 2048, payload;

	KUNIT_ASSERT_NOT_NULL(test, want);
	KUNIT_ASSERT_EQ(test, parse(test, want->ulpdu, want->len, &hdr), WEFT_FAULT_NONE);
	for (hdr.last = false; !hdr.last; want++) {
		payload = weft_ddp_cut(left, 1500, row->hdr_len, &hdr.last);
		KUNIT_ASSERT_EQ(test, weft_ddp_build(&hdr, head), row->hdr_len);
		KUNIT_EXPECT_EQ(test, memcmp(head, want->ulpdu, row->hdr_len), 0);
		KUNIT_EXPECT_EQ(test, payload + row->hdr_len, want->len);
		left -= payload;
		hdr.mo += payload;
		hdr.to += payload;
	}
	KUNIT_EXPECT_EQ(test, left, 0U);
}

struct wrap_row {
	const char *name;
	u64 to;
	u32 len;
	bool wraps;
};

/* RFC 5041, 7.1 (5). A run whose last byte is the last there is does not wrap. */
static const struct wrap_row wrap_rows[] = {
	{ "nothing", 0, 0, false },
	{ "nothing_at_the_end", ~0ULL, 0, false },
	{ "low", 0x1000, 0xffffffff, false },
	{ "last_byte", ~0ULL, 1, false },
	{ "past_the_last_byte", ~0ULL, 2, true },
	{ "up_to_the_end", 0xfffffffffffffff8ULL, 8, false },
	{ "over_the_end", 0xfffffffffffffff8ULL, 9, true },
	{ "vector_term_ddp_to_wrap", 0xfffffffffffffff8ULL, 16, true },
	{ "longest_up_to_the_end", 0xffffffff00000001ULL, 0xffffffff, false },
	{ "longest_over_the_end", 0xffffffff00000002ULL, 0xffffffff, true },
	{ "low_half_carries_only", 0x00000000fffffff8ULL, 16, false },
};

WEFT_ROWS(wrap_rows)

static void to_wraps_table(struct kunit *test)
{
	const struct wrap_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, weft_ddp_to_wraps(row->to, row->len), row->wraps);
}

static struct kunit_case ddp_cases[] = {
	KUNIT_CASE_PARAM(parse_vector, weft_vec_segment_gen_params),
	KUNIT_CASE_PARAM(build_vector, weft_vec_segment_gen_params),
	KUNIT_CASE_PARAM(parse_reserved_bits_set, weft_vec_segment_gen_params),
	KUNIT_CASE_PARAM(parse_control_byte, ctrl_rows_gen_params),
	KUNIT_CASE(parse_every_short_length),
	KUNIT_CASE_PARAM(cut_lengths, cut_rows_gen_params),
	KUNIT_CASE(cut_whole_messages),
	KUNIT_CASE_PARAM(cut_and_build_message, message_rows_gen_params),
	KUNIT_CASE_PARAM(to_wraps_table, wrap_rows_gen_params),
	{},
};

static struct kunit_suite ddp_suite = {
	.name = "weft_ddp",
	.test_cases = ddp_cases,
};

kunit_test_suite(ddp_suite);
