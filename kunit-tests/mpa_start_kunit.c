// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Start frames of both revisions and what two sides make of them: RFC 5044, 7.1;
 * RFC 6581, 6, 9 and 10.
 */
#include "proto/mpa_start.h"
#include "suite.h"
#include "vectors.h"

#define OPEN	0x3fff	/* not negotiated */
#define DEEP	0x3ffe	/* the deepest there is */
#define RTR_ALL		(WEFT_RTR_SEND | WEFT_RTR_WRITE | WEFT_RTR_READ)

WEFT_ROWS(weft_vec_start)

static u8 rtr_of(const struct weft_vec_start *row)
{
	return (row->rtr_send ? WEFT_RTR_SEND : 0) | (row->rtr_write ? WEFT_RTR_WRITE : 0) |
	       (row->rtr_read ? WEFT_RTR_READ : 0);
}

/* Both steps of parsing, of exactly @len octets. */
static enum weft_fault parse(struct kunit *test, const void *wire, u32 len, bool request,
			     struct weft_mpa_frame *out)
{
	const u8 *copy = weft_exact_copy(test, wire, len);
	enum weft_fault fault;
	u16 pd_len = 0xa5a5;

	if (len < WEFT_MPA_START_LEN)
		return weft_mpa_start_parse(copy, len, request, out);
	fault = weft_mpa_start_length(copy, request, &pd_len);
	if (fault || len != (u32)WEFT_MPA_START_LEN + pd_len) {
		KUNIT_EXPECT_EQ(test, weft_mpa_start_parse(copy, len, request, out),
				WEFT_FAULT_MPA_START);
		return fault ?: WEFT_FAULT_MPA_START;
	}
	return weft_mpa_start_parse(copy, len, request, out);
}

static void expect_block(struct kunit *test, const struct weft_mpa_frame *frame,
			 const struct weft_vec_start *row)
{
	KUNIT_EXPECT_EQ(test, frame->enhanced, row->enhanced);
	KUNIT_EXPECT_EQ(test, frame->p2p, row->p2p);
	KUNIT_EXPECT_EQ(test, frame->rtr, rtr_of(row));
	if (!row->enhanced)
		return;
	KUNIT_EXPECT_EQ(test, frame->ird, row->ird);
	KUNIT_EXPECT_EQ(test, frame->ord, row->ord);
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
	expect_block(test, &frame, row);
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

static u8 *frame_room(struct kunit *test)
{
	u8 *out = kunit_kzalloc(test, WEFT_MPA_FRAME_MAX, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, out);
	memset(out, 0xa5, WEFT_MPA_FRAME_MAX);
	return out;
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
	u8 *out = frame_room(test);
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

/* A frame of @pd_len zeros with a flags octet and a revision. */
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

#define BAD	WEFT_FAULT_MPA_START

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
	{ "block_1_octet", true, 0x50, 2, 1, BAD },
	{ "block_3_octets", true, 0x50, 2, 3, BAD },
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
		KUNIT_EXPECT_EQ_MSG(test, parse(test, wire, len, true, &frame), BAD, "%u octets",
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

/* RFC 5044, 7.1.1: 512 octets; RFC 6581, 9: 508 behind the block. */
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
	u8 *pd = kunit_kzalloc(test, 513, GFP_KERNEL), *out = frame_room(test);

	KUNIT_ASSERT_NOT_NULL(test, pd);
	KUNIT_EXPECT_EQ(test, weft_mpa_build_request(&policy, pd, row->pd_len, out), row->built);
	KUNIT_EXPECT_EQ(test,
			weft_mpa_build_accept(&request, &policy, &result, pd, row->pd_len, out),
			row->built);
	KUNIT_EXPECT_EQ(test, weft_mpa_build_reject(&request, &policy, pd, row->pd_len, out),
			row->built);
	KUNIT_EXPECT_EQ(test, weft_mpa_pd_room(row->revision == 2) >= row->pd_len, row->built > 0);
}

static void build_without_private_data(struct kunit *test)
{
	struct weft_mpa_policy policy = { .revision = 1 };
	u8 *out = frame_room(test);

	KUNIT_EXPECT_EQ(test, weft_mpa_build_request(&policy, NULL, 0, out), 20);
	KUNIT_EXPECT_EQ(test, weft_mpa_pd_room(false), 512U);
	KUNIT_EXPECT_EQ(test, weft_mpa_pd_room(true), 508U);
}

/* Only where asked for, and never where the initiator promised a first message. */
static void respond_eagerly(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 2, .p2p = true, .rtr = WEFT_RTR_WRITE };
	struct weft_mpa_frame peer = { .revision = 2, .enhanced = true, .rtr = WEFT_RTR_WRITE };
	struct weft_mpa_result result;
	u32 bits;

	for (bits = 0; bits < 4; bits++) {
		own.eager = bits & 1;
		peer.p2p = bits & 2;
		KUNIT_EXPECT_EQ(test, weft_mpa_respond(&peer, &own, &result), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, result.eager, bits == 1);
	}
	peer = (struct weft_mpa_frame){ .revision = 1 };
	KUNIT_EXPECT_EQ(test, weft_mpa_respond(&peer, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, result.eager);
	own.revision = 1;
	own.p2p = false;
	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&peer, &own, &result), WEFT_FAULT_NONE);
	KUNIT_EXPECT_FALSE(test, result.eager);
}

/* RFC 5044, 7.1.1: M asks the other side; C of either side is for both. */
static void settle_markers_and_crc(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 1 };
	struct weft_mpa_frame peer = { .revision = 1 };
	struct weft_mpa_result result[2];
	u32 bits, i;

	for (bits = 0; bits < 16; bits++) {
		own.markers = bits & 1;
		peer.markers = bits & 2;
		own.crc = bits & 4 ? WEFT_MPA_CRC_ON : WEFT_MPA_CRC_OFF;
		peer.crc = bits & 8;
		KUNIT_EXPECT_EQ(test, weft_mpa_respond(&peer, &own, &result[0]), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&peer, &own, &result[1]), WEFT_FAULT_NONE);
		for (i = 0; i < 2; i++) {
			KUNIT_EXPECT_EQ(test, result[i].markers_tx, peer.markers);
			KUNIT_EXPECT_EQ(test, result[i].markers_rx, own.markers);
			KUNIT_EXPECT_EQ(test, result[i].crc, own.crc || peer.crc);
		}
	}
}

/* RFC 5044 only: depths are the consumer's business, RTR is whatever comes first. */
/* Only who requires CRCs cares what the peer wants; the result has them anyway. */
static void crc_required_of_the_peer(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 1 };
	struct weft_mpa_frame peer = { .revision = 1 };
	struct weft_mpa_result result;
	u32 bits;

	for (bits = 0; bits < 6; bits++) {
		bool missing = bits == WEFT_MPA_CRC_REQUIRE << 1;

		own.crc = bits >> 1;
		peer.crc = bits & 1;
		KUNIT_EXPECT_EQ(test, weft_mpa_crc_missing(&peer, &own), missing);
		KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&peer, &own, &result),
				missing ? WEFT_FAULT_MPA_START : WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, result.crc, own.crc != WEFT_MPA_CRC_OFF || peer.crc);
	}
}

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
	/* Who is not told a limit assumes one. */
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
	u8 *out = frame_room(test);
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

/* RFC 6581, 9.2; preference from wire.md, 9: Write, then Read, then Send. */
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
	u8 *out = frame_room(test);
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

struct reply_row {
	const char *name;
	u8 sent_revision;
	bool sent_p2p;
	struct weft_mpa_frame reply;
	enum weft_fault fault;
};

static const struct reply_row reply_rows[] = {
	{ "plain_to_plain", 1, false, { .revision = 1 } },
	{ "enhanced_to_enhanced", 2, false, { .revision = 2, .enhanced = true } },
	/* RFC 6581, 10: an enhanced request is answered enhanced, a plain one plain */
	{ "plain_to_enhanced", 2, false, { .revision = 2 }, BAD },
	{ "revision_1_to_enhanced", 2, false, { .revision = 1 }, BAD },
	{ "plain_to_peer_to_peer", 2, true, { .revision = 2 }, BAD },
	{ "enhanced_to_plain", 1, false, { .revision = 2, .enhanced = true }, BAD },
	/* 9.2: the responder mirrors A; without it there is no kind in common */
	{ "cs_to_p2p", 2, true, { .revision = 2, .enhanced = true }, WEFT_FAULT_MPA_RTR },
	{ "p2p_to_cs", 2, false, { .revision = 2, .enhanced = true, .p2p = true, .rtr = RTR_ALL } },
};

WEFT_ROWS(reply_rows)

static void conclude_kind_of_reply(struct kunit *test)
{
	const struct reply_row *row = test->param_value;
	struct weft_mpa_policy sent = {
		.revision = row->sent_revision,
		.p2p = row->sent_p2p,
		.rtr = RTR_ALL,
	};
	struct weft_mpa_result result;

	KUNIT_EXPECT_EQ(test, weft_mpa_conclude(&row->reply, &sent, &result), row->fault);
	KUNIT_EXPECT_TRUE(test, result.rtr == 0);
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
	u8 *out = frame_room(test);
	int len = weft_mpa_build_reject(&request, &own, "no", 2, out);

	KUNIT_ASSERT_EQ(test, len, 26);
	KUNIT_ASSERT_EQ(test, parse(test, out, len, false, &reply), WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, reply.reject);
	KUNIT_EXPECT_TRUE(test, reply.enhanced);
	KUNIT_EXPECT_TRUE(test, reply.p2p);
	KUNIT_EXPECT_EQ(test, reply.ord, 16);
	KUNIT_EXPECT_EQ(test, reply.pd_len, 2);
}

/* RFC 6581, 10: a plain request gets a plain reply, whatever we could do. */
static void build_accept_plain(struct kunit *test)
{
	struct weft_mpa_policy own = { .revision = 2, .crc = true, .p2p = true, .rtr = RTR_ALL };
	struct weft_mpa_frame reply, request = { .revision = 1 };
	struct weft_mpa_result result;
	u8 *out = frame_room(test);
	int len;

	KUNIT_ASSERT_EQ(test, weft_mpa_respond(&request, &own, &result), WEFT_FAULT_NONE);
	len = weft_mpa_build_accept(&request, &own, &result, "ok", 2, out);
	KUNIT_ASSERT_EQ(test, len, 22);
	KUNIT_ASSERT_EQ(test, parse(test, out, len, false, &reply), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, reply.revision, 1);
	KUNIT_EXPECT_FALSE(test, reply.enhanced);
	KUNIT_EXPECT_EQ(test, reply.pd_len, 2);
}

/* One handshake over the octets; returns what the initiator concludes. */
struct handshake {
	struct weft_mpa_policy initiator;
	struct weft_mpa_policy responder;
	struct weft_mpa_result at_initiator;
	struct weft_mpa_result at_responder;
};

static enum weft_fault shake_hands(struct kunit *test, struct handshake *h, u8 *wire)
{
	struct weft_mpa_frame request, reply;
	enum weft_fault fault;
	int len = weft_mpa_build_request(&h->initiator, "pd", 2, wire);

	if (weft_mpa_start_parse(wire, len, true, &request))
		return WEFT_FAULT_MPA_START;
	fault = weft_mpa_respond(&request, &h->responder, &h->at_responder);
	if (fault)
		return fault;
	len = weft_mpa_build_accept(&request, &h->responder, &h->at_responder, "pd", 2, wire);
	KUNIT_EXPECT_EQ(test, weft_mpa_start_parse(wire, len, false, &reply), WEFT_FAULT_NONE);
	return weft_mpa_conclude(&reply, &h->initiator, &h->at_initiator);
}

static void random_policy(u64 *seed, struct weft_mpa_policy *policy)
{
	static const u32 depths[] = { 0, 1, 2, 8, 127, 0x3ffe };
	u64 bits = weft_next_random(seed);

	*policy = (struct weft_mpa_policy){
		.revision = 2,
		.crc = bits & 1,
		.markers = bits & 2,
		.p2p = bits & 4,
		.rtr = bits >> 3 & 7,
		.ird = depths[(bits >> 8) % ARRAY_SIZE(depths)],
		.ord = depths[(bits >> 16) % ARRAY_SIZE(depths)],
		.ird_max = depths[(bits >> 24) % ARRAY_SIZE(depths)],
	};
}

static void expect_agreement(struct kunit *test, const struct handshake *h, u32 round)
{
	const struct weft_mpa_result *i = &h->at_initiator, *r = &h->at_responder;

	KUNIT_EXPECT_EQ_MSG(test, i->crc, r->crc, "round %u", round);
	KUNIT_EXPECT_EQ_MSG(test, i->markers_tx, r->markers_rx, "round %u", round);
	KUNIT_EXPECT_EQ_MSG(test, i->markers_rx, r->markers_tx, "round %u", round);
	/* RFC 6581, 9.1: nobody asks for more than the other takes */
	KUNIT_EXPECT_LE_MSG(test, i->ord, r->ird, "round %u", round);
	KUNIT_EXPECT_LE_MSG(test, r->ord, i->ird, "round %u", round);
	/* 9.2: one kind, and one the responder waits for */
	KUNIT_EXPECT_EQ_MSG(test, i->rtr & ~r->rtr, 0, "round %u", round);
	KUNIT_EXPECT_EQ_MSG(test, i->rtr & (i->rtr - 1), 0, "round %u", round);
	KUNIT_EXPECT_EQ_MSG(test, !!i->rtr, h->initiator.p2p, "round %u", round);
	KUNIT_EXPECT_TRUE_MSG(test, i->rtr != WEFT_RTR_READ || i->ord, "round %u", round);
}

static void handshake_both_sides_agree(struct kunit *test)
{
	u64 seed = 6581;
	struct handshake h;
	enum weft_fault fault;
	u8 *wire = frame_room(test);
	u32 round, agreed = 0;

	for (round = 0; round < 20000; round++) {
		random_policy(&seed, &h.initiator);
		random_policy(&seed, &h.responder);
		fault = shake_hands(test, &h, wire);
		if (!fault) {
			expect_agreement(test, &h, round);
			agreed++;
			continue;
		}
		KUNIT_EXPECT_TRUE_MSG(test,
				      fault == WEFT_FAULT_MPA_IRD || fault == WEFT_FAULT_MPA_RTR,
				      "round %u", round);
	}
	KUNIT_EXPECT_GT(test, agreed, 10000U);
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
	KUNIT_CASE(settle_markers_and_crc),
	KUNIT_CASE(crc_required_of_the_peer),
	KUNIT_CASE(respond_eagerly),
	KUNIT_CASE(settle_plain_keeps_own_depths),
	KUNIT_CASE_PARAM(respond_depths, respond_rows_gen_params),
	KUNIT_CASE_PARAM(conclude_depths, conclude_rows_gen_params),
	KUNIT_CASE_PARAM(respond_and_conclude_rtr, rtr_rows_gen_params),
	KUNIT_CASE_PARAM(respond_read_rtr_with_ord_zero, read_rtr_rows_gen_params),
	KUNIT_CASE(conclude_read_rtr_takes_one_place),
	KUNIT_CASE_PARAM(conclude_kind_of_reply, reply_rows_gen_params),
	KUNIT_CASE(build_reject_enhanced),
	KUNIT_CASE(build_accept_plain),
	KUNIT_CASE(handshake_both_sides_agree),
	{},
};

static struct kunit_suite mpa_start_suite = {
	.name = "weft_mpa_start",
	.test_cases = mpa_start_cases,
};

kunit_test_suite(mpa_start_suite);
