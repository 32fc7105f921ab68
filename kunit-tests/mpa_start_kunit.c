// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Start frames of both revisions, parsed and built: RFC 5044, 7.1; RFC 6581, 6 and 9.
 */
#include "proto/mpa_start.h"
#include "start_frame.h"
#include "suite.h"
#include "vectors.h"

WEFT_ROWS(weft_vec_start)

static u8 rtr_of(const struct weft_vec_start *row)
{
	return (row->rtr_send ? WEFT_RTR_SEND : 0) | (row->rtr_write ? WEFT_RTR_WRITE : 0) |
	       (row->rtr_read ? WEFT_RTR_READ : 0);
}

static void parse_vector(struct kunit *test)
{
	const struct weft_vec_start *row = test->param_value;
	u32 block = row->enhanced ? 4 : 0;
	struct weft_mpa_frame frame;

	if (!row->legal) {
		KUNIT_EXPECT_EQ(test, parse(test, row->wire, row->len, row->request, &frame),
				WEFT_FAULT_MPA_START);
		return;
	}
	KUNIT_ASSERT_EQ(test, parse(test, row->wire, row->len, row->request, &frame),
			WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, frame.revision, row->revision);
	KUNIT_EXPECT_EQ(test, frame.markers, row->markers);
	KUNIT_EXPECT_EQ(test, frame.crc, row->crc);
	KUNIT_EXPECT_EQ(test, frame.reject, row->reject);
	KUNIT_EXPECT_EQ(test, frame.enhanced, row->enhanced);
	KUNIT_EXPECT_EQ(test, frame.p2p, row->p2p);
	KUNIT_EXPECT_EQ(test, frame.rtr, rtr_of(row));
	if (row->enhanced) {
		KUNIT_EXPECT_EQ(test, frame.ird, row->ird);
		KUNIT_EXPECT_EQ(test, frame.ord, row->ord);
	}
	KUNIT_ASSERT_EQ(test, (u32)frame.pd_len, row->pd_len - block);
	KUNIT_EXPECT_EQ(test, memcmp(frame.pd, (const u8 *)row->wire + 20 + block, frame.pd_len),
			0);
}

/* An initiator takes no request for a reply, and the other way round (7.1.2 (8)). */
static void parse_vector_as_other_kind(struct kunit *test)
{
	const struct weft_vec_start *row = test->param_value;
	struct weft_mpa_frame frame;

	KUNIT_EXPECT_EQ(test, parse(test, row->wire, row->len, !row->request, &frame),
			WEFT_FAULT_MPA_START);
}

static int build_reply(const struct weft_vec_start *row, const struct weft_mpa_policy *policy,
		       const void *pd, u32 pd_len, u8 *out)
{
	struct weft_mpa_frame request = {
		.revision = row->revision,
		.enhanced = row->enhanced,
		.p2p = row->p2p,
		.rtr = rtr_of(row),
		.ird = row->ord,
		.ord = row->ird,
	};
	struct weft_mpa_result result = {
		.revision = row->revision,
		.enhanced = row->enhanced,
		.rtr = rtr_of(row),
		.ird = row->ird,
		.ord = row->ord,
	};

	if (row->reject)
		return weft_mpa_build_reject(&request, policy, pd, pd_len, out);
	return weft_mpa_build_accept(&request, policy, &result, pd, pd_len, out);
}

static void build_vector(struct kunit *test)
{
	const struct weft_vec_start *row = test->param_value;
	u32 block = row->enhanced ? 4 : 0, pd_len = row->pd_len - block;
	const u8 *pd = weft_exact_copy(test, (const u8 *)row->wire + 20 + block, pd_len);
	struct weft_mpa_policy policy = {
		.revision = row->revision,
		.crc = row->crc,
		.markers = row->markers,
		.p2p = row->p2p,
		.rtr = rtr_of(row),
		.ird = row->ird,
		.ord = row->ord,
	};
	u8 *out = frame_space(test);
	int len;

	len = row->request ? weft_mpa_build_request(&policy, pd, pd_len, out) :
			     build_reply(row, &policy, pd, pd_len, out);
	if (!row->legal) {
		KUNIT_EXPECT_EQ(test, len, -EINVAL);
		return;
	}
	KUNIT_ASSERT_EQ(test, len, (int)row->len);
	KUNIT_EXPECT_EQ(test, memcmp(out, row->wire, row->len), 0);
}

/* A frame of @pd_len zeros with a flags byte and a revision. */
static const u8 *make_frame(struct kunit *test, bool request, u8 flags, u8 revision, u16 pd_len)
{
	u8 *frame = kunit_kzalloc(test, 20 + pd_len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, frame);
	memcpy(frame, request ? "MPA ID Req Frame" : "MPA ID Rep Frame", 16);
	frame[16] = flags;
	frame[17] = revision;
	put_unaligned_be16(pd_len, frame + 18);
	return frame;
}

struct fixed_row {
	const char *name;
	bool request;
	u8 flags;
	u8 revision;
	u16 pd_len;
	enum weft_fault fault;
};

static const struct fixed_row fixed_rows[] = {
	/* RFC 5044, 7.1.1: Rev; RFC 6581, 6 */
	{ "revision_0", true, 0x40, 0, 0, BAD },
	{ "revision_1", true, 0x40, 1, 0 },
	{ "revision_2", true, 0x40, 2, 0 },
	{ "revision_3", true, 0x40, 3, 0, BAD },
	{ "revision_255", true, 0x40, 255, 0, BAD },
	{ "reply_revision_0", false, 0x40, 0, 0, BAD },
	{ "reply_revision_3", false, 0x40, 3, 0, BAD },
	/* reserved bits are not checked */
	{ "reserved_bits", true, 0x4f, 1, 3 },
	{ "reserved_bits_reply", false, 0x4f, 1, 3 },
	{ "all_flags_clear", true, 0x00, 1, 0 },
	{ "reject_bit_in_request", true, 0x60, 1, 0 },
	/* PD_Length */
	{ "longest", true, 0x40, 1, 512 },
	{ "one_too_long", true, 0x40, 1, 513, BAD },
	{ "one_too_long_reply", false, 0x40, 1, 513, BAD },
	{ "far_too_long", true, 0x40, 1, 0xffff, BAD },
	{ "sign_bit", true, 0x40, 1, 0x8000, BAD },
	/* RFC 6581, 6 and 9: S needs its block */
	{ "block_missing", true, 0x50, 2, 0, BAD },
	{ "block_1_byte", true, 0x50, 2, 1, BAD },
	{ "block_3_bytes", true, 0x50, 2, 3, BAD },
	{ "block_only", true, 0x50, 2, 4 },
	{ "block_missing_reply", false, 0x50, 2, 3, BAD },
	{ "block_and_longest", true, 0x50, 2, 512 },
	{ "block_and_one_too_long", true, 0x50, 2, 513, BAD },
	/* in revision 1 that bit is a reserved one */
	{ "revision_1_with_s", true, 0x50, 1, 3 },
};

WEFT_ROWS(fixed_rows)

static void parse_fixed_part(struct kunit *test)
{
	const struct fixed_row *row = test->param_value;
	bool block = row->revision >= 2 && (row->flags & 0x10);
	const u8 *wire = make_frame(test, row->request, row->flags, row->revision, row->pd_len);
	struct weft_mpa_frame frame;

	KUNIT_ASSERT_EQ(test, parse(test, wire, 20 + row->pd_len, row->request, &frame),
			row->fault);
	if (row->fault)
		return;
	KUNIT_EXPECT_EQ(test, frame.enhanced, block);
	KUNIT_EXPECT_EQ(test, frame.pd_len, row->pd_len - (block ? 4 : 0));
	KUNIT_EXPECT_FALSE(test, row->request && frame.reject);
}

static void start_length_any_key_bit_flipped(struct kunit *test)
{
	u8 wire[20];
	u16 pd_len;
	u32 bit;

	for (bit = 0; bit < 128; bit++) {
		memcpy(wire, make_frame(test, bit % 2, 0x40, 1, 0), sizeof(wire));
		KUNIT_EXPECT_EQ(test, weft_mpa_start_length(wire, bit % 2, &pd_len),
				WEFT_FAULT_NONE);
		wire[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_EQ_MSG(test, weft_mpa_start_length(wire, bit % 2, &pd_len), BAD,
				    "bit %u", bit);
	}
}

static void start_length_every_revision(struct kunit *test)
{
	u32 revision;
	u16 pd_len;

	for (revision = 0; revision < 256; revision++) {
		const u8 *wire = make_frame(test, true, 0, revision, 0);
		bool known = revision == 1 || revision == 2;

		KUNIT_EXPECT_EQ_MSG(test, weft_mpa_start_length(wire, true, &pd_len) == 0, known,
				    "revision %u", revision);
	}
}

/* RFC 5044, 7.1.1: PD_Length must agree with what is there. */
static void parse_every_length(struct kunit *test)
{
	const u8 *wire = make_frame(test, true, 0x50, 2, 9);
	struct weft_mpa_frame frame;
	u32 len;

	for (len = 0; len < 29; len++)
		KUNIT_EXPECT_EQ_MSG(test, parse(test, wire, len, true, &frame), BAD, "%u bytes",
				    len);
	KUNIT_EXPECT_EQ(test, parse(test, wire, 29, true, &frame), WEFT_FAULT_NONE);
	wire = make_frame(test, true, 0x50, 2, 10);
	put_unaligned_be16(9, (u8 *)wire + 18);
	KUNIT_EXPECT_EQ(test, parse(test, wire, 30, true, &frame), BAD);
}

/* RFC 6581, 9: every combination of A, B, C and D. */
static void parse_every_rtr_combination(struct kunit *test)
{
	struct weft_mpa_frame frame;
	u32 bits;

	for (bits = 0; bits < 16; bits++) {
		u8 *wire = (u8 *)make_frame(test, true, 0x50, 2, 4);
		u8 rtr = (bits & 4 ? WEFT_RTR_SEND : 0) | (bits & 2 ? WEFT_RTR_WRITE : 0) |
			 (bits & 1 ? WEFT_RTR_READ : 0);

		put_unaligned_be16((bits >> 2) << 14 | 5, wire + 20);
		put_unaligned_be16((bits & 3) << 14 | 6, wire + 22);
		KUNIT_ASSERT_EQ(test, parse(test, wire, 24, true, &frame), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, frame.p2p, !!(bits & 8));
		/* without A the others say nothing */
		KUNIT_EXPECT_EQ(test, frame.rtr, bits & 8 ? rtr : 0);
		KUNIT_EXPECT_EQ(test, frame.ird, 5);
		KUNIT_EXPECT_EQ(test, frame.ord, 6);
	}
}

struct pd_row {
	const char *name;
	u8 revision;
	u32 pd_len;
	int built;
};

/* RFC 5044, 7.1.1: 512 bytes; RFC 6581, 9: 508 behind the block. */
static const struct pd_row pd_rows[] = {
	{ "plain_none", 1, 0, 20 },
	{ "plain_one", 1, 1, 21 },
	{ "plain_longest", 1, 512, 532 },
	{ "plain_one_too_many", 1, 513, -EINVAL },
	{ "enhanced_none", 2, 0, 24 },
	{ "enhanced_longest", 2, 508, 532 },
	{ "enhanced_one_too_many", 2, 509, -EINVAL },
	{ "enhanced_512", 2, 512, -EINVAL },
	{ "absurd", 1, 0xffffffff, -EINVAL },
	{ "absurd_enhanced", 2, 0xfffffffc, -EINVAL },
};

WEFT_ROWS(pd_rows)

static void build_private_data(struct kunit *test)
{
	const struct pd_row *row = test->param_value;
	struct weft_mpa_policy policy = { .revision = row->revision, .crc = true };
	struct weft_mpa_frame request = { .revision = row->revision,
					  .enhanced = row->revision == 2 };
	struct weft_mpa_result result = { .revision = row->revision };
	u8 *pd = kunit_kzalloc(test, 513, GFP_KERNEL), *out = frame_space(test);

	KUNIT_ASSERT_NOT_NULL(test, pd);
	KUNIT_EXPECT_EQ(test, weft_mpa_build_request(&policy, pd, row->pd_len, out), row->built);
	KUNIT_EXPECT_EQ(test,
			weft_mpa_build_accept(&request, &policy, &result, pd, row->pd_len, out),
			row->built);
	KUNIT_EXPECT_EQ(test, weft_mpa_build_reject(&request, &policy, pd, row->pd_len, out),
			row->built);
	KUNIT_EXPECT_EQ(test, weft_mpa_pd_space(row->revision == 2) >= row->pd_len, row->built > 0);
}

static void build_without_private_data(struct kunit *test)
{
	struct weft_mpa_policy policy = { .revision = 1 };
	u8 *out = frame_space(test);

	KUNIT_EXPECT_EQ(test, weft_mpa_build_request(&policy, NULL, 0, out), 20);
	KUNIT_EXPECT_EQ(test, weft_mpa_pd_space(false), 512U);
	KUNIT_EXPECT_EQ(test, weft_mpa_pd_space(true), 508U);
}

/* RFC 6581, 9.1: a reject may say which ORD would be needed. */
static void build_reject_enhanced(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 2, .crc = true, .ird = 6, .ord = 16 };
	struct weft_mpa_frame reply, request = {
		.revision = 2,
		.enhanced = true,
		.p2p = true,
		.rtr = WEFT_RTR_WRITE,
		.ird = 2,
		.ord = 2,
	};
	u8 *out = frame_space(test);
	int len = weft_mpa_build_reject(&request, &own, "no", 2, out);

	KUNIT_ASSERT_EQ(test, len, 26);
	KUNIT_ASSERT_EQ(test, parse(test, out, len, false, &reply), WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, reply.reject);
	KUNIT_EXPECT_TRUE(test, reply.enhanced);
	KUNIT_EXPECT_TRUE(test, reply.p2p);
	KUNIT_EXPECT_EQ(test, reply.rtr, WEFT_RTR_WRITE);
	KUNIT_EXPECT_EQ(test, reply.ord, 16);
	KUNIT_EXPECT_EQ(test, reply.pd_len, 2);
}

/* RFC 6581, 10: a plain request gets a plain reply, whatever we could do. */
static void build_accept_plain(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 2, .crc = true, .p2p = true, .rtr = RTR_ALL };
	struct weft_mpa_frame reply, request = { .revision = 1 };
	struct weft_mpa_result result;
	u8 *out = frame_space(test);
	int len;

	KUNIT_ASSERT_EQ(test, weft_mpa_respond(&request, &own, &result), WEFT_FAULT_NONE);
	len = weft_mpa_build_accept(&request, &own, &result, "ok", 2, out);
	KUNIT_ASSERT_EQ(test, len, 22);
	KUNIT_ASSERT_EQ(test, parse(test, out, len, false, &reply), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, reply.revision, 1);
	KUNIT_EXPECT_FALSE(test, reply.enhanced);
	KUNIT_EXPECT_EQ(test, reply.pd_len, 2);
}

static struct kunit_case mpa_start_cases[] = {
	KUNIT_CASE_PARAM(parse_vector, weft_vec_start_gen_params),
	KUNIT_CASE_PARAM(parse_vector_as_other_kind, weft_vec_start_gen_params),
	KUNIT_CASE_PARAM(build_vector, weft_vec_start_gen_params),
	KUNIT_CASE_PARAM(parse_fixed_part, fixed_rows_gen_params),
	KUNIT_CASE(start_length_any_key_bit_flipped),
	KUNIT_CASE(start_length_every_revision),
	KUNIT_CASE(parse_every_length),
	KUNIT_CASE(parse_every_rtr_combination),
	KUNIT_CASE_PARAM(build_private_data, pd_rows_gen_params),
	KUNIT_CASE(build_without_private_data),
	KUNIT_CASE(build_reject_enhanced),
	KUNIT_CASE(build_accept_plain),
	{},
};

static struct kunit_suite mpa_start_suite = {
	.name = "weft_mpa_start",
	.test_cases = mpa_start_cases,
};

kunit_test_suite(mpa_start_suite);
