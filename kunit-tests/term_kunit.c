// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Terminate messages, out and in: RFC 5040, 4.8 and 7.1; RFC 7306, 8.1; readings
 * of protocol-rules, CHOICE-7 to CHOICE-10.
 */
#include "proto/rdmap.h"
#include "proto/term.h"
#include "suite.h"
#include "vectors.h"

WEFT_ROWS(weft_vec_term)

#define MAX_LEN		52
#define HEAD_LEN	70	/* DDP header and the longest RDMAP header */

static u8 *filled(struct kunit *test, u32 len)
{
	u8 *mem = kunit_kzalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	memset(mem, 0xa5, len);
	return mem;
}

static enum weft_fault fault_of(const struct weft_vec_term *row)
{
	u32 fault;

	for (fault = 0; fault < WEFT_FAULT_COUNT; fault++) {
		const struct weft_fault_info *info = weft_fault_info(fault);

		if (info->terminate && info->layer == row->layer && info->etype == row->etype &&
		    info->ecode == row->ecode)
			return fault;
	}
	return WEFT_FAULT_NONE;
}

/* The segment a vector complains about: its copied headers, then other bytes. */
static const u8 *offender(struct kunit *test, const struct weft_vec_term *row)
{
	u8 *ulpdu = filled(test, HEAD_LEN);

	if (row->len > 6)
		memcpy(ulpdu, (const u8 *)row->payload + 6, row->len - 6);
	else
		ulpdu[0] = 0x41;
	return ulpdu;
}

static void build_vector(struct kunit *test)
{
	const struct weft_vec_term *row = test->param_value;
	u32 head_len = row->segment_len ? min_t(u32, row->segment_len, HEAD_LEN) : HEAD_LEN;
	enum weft_fault fault = fault_of(row);
	u8 *out = filled(test, MAX_LEN);
	struct weft_fault_rec rec;

	KUNIT_ASSERT_NE(test, (int)fault, (int)WEFT_FAULT_NONE);
	weft_fault_rec_fill(&rec, fault, offender(test, row), head_len, row->segment_len);
	KUNIT_ASSERT_EQ(test, weft_term_build(&rec, out), row->len);
	KUNIT_EXPECT_EQ(test, memcmp(out, row->payload, row->len), 0);
}

static void expect_segment(struct kunit *test, const struct weft_term *term, const u8 *head)
{
	struct weft_ddp_hdr hdr;

	KUNIT_ASSERT_EQ(test, weft_ddp_parse(head, 18, &hdr), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, term->tagged, hdr.tagged);
	KUNIT_EXPECT_EQ(test, term->opcode, weft_rdmap_opcode(hdr.ulp));
	KUNIT_EXPECT_EQ(test, term->stag, hdr.stag);
	KUNIT_EXPECT_EQ(test, term->to, hdr.to);
	KUNIT_EXPECT_EQ(test, term->qn, hdr.qn);
	KUNIT_EXPECT_EQ(test, term->msn, hdr.msn);
}

static void parse_vector(struct kunit *test)
{
	const struct weft_vec_term *row = test->param_value;
	struct weft_term term;

	memset(&term, 0xa5, sizeof(term));
	KUNIT_ASSERT_EQ(test,
			weft_term_parse(weft_exact_copy(test, row->payload, row->len), row->len,
					&term),
			WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, term.layer, row->layer);
	KUNIT_EXPECT_EQ(test, term.etype, row->etype);
	KUNIT_EXPECT_EQ(test, term.ecode, row->ecode);
	KUNIT_ASSERT_EQ(test, term.has_ddp, row->has_ddp);
	if (row->has_ddp)
		expect_segment(test, &term, offender(test, row));
}

struct attach_row {
	const char *name;
	enum weft_fault fault;
	u8 ctrl;
	u8 ulp;
	u32 head_len;
	u8 ddp_len;
	u8 rdmap_len;
};

/* RFC 5040, 4.8, last table: which headers, by class of error and message. */
static const struct attach_row attach_rows[] = {
	/* remote protection: the Read Request header as well */
	{ "protection_read_request", WEFT_FAULT_RDMAP_BOUNDS, 0x41, 0x41, 46, 18, 28 },
	{ "protection_read_request_reserved", WEFT_FAULT_RDMAP_STAG, 0x7d, 0x71, 46, 18, 28 },
	{ "protection_read_request_and_more", WEFT_FAULT_RDMAP_WRAP, 0x41, 0x41, 70, 18, 28 },
	/* but only of a Read Request (protocol-rules, CHOICE-7; RFC 7306, 8.1 (2)) */
	{ "protection_atomic", WEFT_FAULT_RDMAP_ACCESS, 0x41, 0x4a, 70, 18, 0 },
	{ "protection_send_inv", WEFT_FAULT_RDMAP_INVALIDATE, 0x41, 0x44, 70, 18, 0 },
	{ "protection_write", WEFT_FAULT_RDMAP_PROTECTION, 0xc1, 0x40, 70, 14, 0 },
	{ "protection_tagged_opcode_1", WEFT_FAULT_RDMAP_STAG, 0xc1, 0x41, 70, 14, 0 },
	/* remote operation: DDP header only */
	{ "operation_read_request", WEFT_FAULT_RDMAP_VERSION, 0x41, 0x01, 46, 18, 0 },
	{ "operation_atomic", WEFT_FAULT_RDMAP_CATASTROPHIC, 0x41, 0x4a, 70, 18, 0 },
	{ "operation_imm", WEFT_FAULT_RDMAP_OPERATION, 0x41, 0x48, 26, 18, 0 },
	{ "operation_tagged", WEFT_FAULT_RDMAP_OPCODE, 0xc1, 0x43, 40, 14, 0 },
	/* DDP: both DDP parts, no RDMAP header */
	{ "ddp_tagged", WEFT_FAULT_TAGGED_STAG, 0xc1, 0x40, 30, 14, 0 },
	{ "ddp_tagged_version", WEFT_FAULT_TAGGED_VERSION, 0xc2, 0x40, 30, 14, 0 },
	{ "ddp_untagged_read_request", WEFT_FAULT_UNTAGGED_MSN, 0x41, 0x41, 46, 18, 0 },
	{ "ddp_untagged_version", WEFT_FAULT_UNTAGGED_VERSION, 0x40, 0x43, 42, 18, 0 },
	/* MPA and local: nothing, even if there is a segment */
	{ "mpa_crc", WEFT_FAULT_MPA_CRC, 0x41, 0x43, 70, 0, 0 },
	{ "mpa_marker", WEFT_FAULT_MPA_MARKER, 0x41, 0x43, 70, 0, 0 },
	{ "local_protection", WEFT_FAULT_LOCAL_PROTECTION, 0x41, 0x41, 70, 0, 0 },
	/* what cannot be read as a whole is left out */
	{ "no_bytes", WEFT_FAULT_TAGGED_STAG, 0xc1, 0x40, 0, 0, 0 },
	{ "tagged_13_bytes", WEFT_FAULT_TAGGED_STAG, 0xc1, 0x40, 13, 0, 0 },
	{ "tagged_14_bytes", WEFT_FAULT_TAGGED_STAG, 0xc1, 0x40, 14, 14, 0 },
	{ "untagged_17_bytes", WEFT_FAULT_UNTAGGED_MSN, 0x41, 0x43, 17, 0, 0 },
	{ "untagged_18_bytes", WEFT_FAULT_UNTAGGED_MSN, 0x41, 0x43, 18, 18, 0 },
	{ "read_request_45_bytes", WEFT_FAULT_RDMAP_STAG, 0x41, 0x41, 45, 18, 0 },
	{ "read_request_18_bytes", WEFT_FAULT_RDMAP_STAG, 0x41, 0x41, 18, 18, 0 },
};

WEFT_ROWS(attach_rows)

static void fill_and_build_attached_headers(struct kunit *test)
{
	const struct attach_row *row = test->param_value;
	u8 *ulpdu = filled(test, row->head_len ?: 1), *out = filled(test, MAX_LEN);
	u32 headers = row->ddp_len + row->rdmap_len;
	struct weft_fault_rec rec;
	u16 bits = (row->ddp_len ? 0xc000 : 0) | (row->rdmap_len ? 0x2000 : 0);

	ulpdu[0] = row->ctrl;
	if (row->head_len > 1)
		ulpdu[1] = row->ulp;
	memset(&rec, 0xa5, sizeof(rec));
	weft_fault_rec_fill(&rec, row->fault, ulpdu, row->head_len, 1442);
	KUNIT_EXPECT_EQ(test, (int)rec.fault, (int)row->fault);
	KUNIT_EXPECT_EQ(test, rec.ddp_len, row->ddp_len);
	KUNIT_EXPECT_EQ(test, rec.rdmap_len, row->rdmap_len);

	/* RFC 5040, 4.8: 4; 4+2+14; 4+2+18; 4+2+18+28 bytes; reserved bits zero */
	KUNIT_ASSERT_EQ(test, weft_term_build(&rec, out), 4 + (headers ? 2 + headers : 0));
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(out + 2), bits);
	if (!headers)
		return;
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(out + 4), 1442);
	KUNIT_EXPECT_EQ(test, memcmp(out + 6, ulpdu, headers), 0);
}

/* RFC 5040, 7.1 (1): an error without inbound cause names no segment. */
static void fill_without_segment(struct kunit *test)
{
	u8 *out = filled(test, MAX_LEN);
	struct weft_fault_rec rec;
	u32 fault;

	for (fault = 0; fault < WEFT_FAULT_COUNT; fault++) {
		const struct weft_fault_info *info = weft_fault_info(fault);

		memset(&rec, 0xa5, sizeof(rec));
		weft_fault_rec_fill(&rec, fault, NULL, 0, 0);
		KUNIT_ASSERT_EQ(test, weft_term_build(&rec, out), 4U);
		KUNIT_EXPECT_EQ(test, out[0], info->layer << 4 | info->etype);
		KUNIT_EXPECT_EQ(test, out[1], info->ecode);
		KUNIT_EXPECT_EQ(test, get_unaligned_be16(out + 2), 0);
	}
}

/* ULPDU_Length is any 16-bit number, headers included: RFC 5040, 4.8. */
static void build_segment_length_limits(struct kunit *test)
{
	static const u32 lengths[] = { 18, 255, 256, 0x7fff, 0x8000, 64768, 65535 };
	u8 ulpdu[18] = { 0x41, 0x43 }, *out = filled(test, MAX_LEN);
	struct weft_fault_rec rec;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		weft_fault_rec_fill(&rec, WEFT_FAULT_UNTAGGED_MO, ulpdu, sizeof(ulpdu), lengths[i]);
		weft_term_build(&rec, out);
		KUNIT_EXPECT_EQ(test, (u32)get_unaligned_be16(out + 4), lengths[i]);
	}
}

/* Every fault with every first two bytes a segment may have: back and forth. */
static void parse_what_was_built(struct kunit *test)
{
	u8 ulpdu[HEAD_LEN], *out = filled(test, MAX_LEN);
	u32 fault, opcode, tagged, i, len;
	struct weft_fault_rec rec;
	struct weft_term term;

	for (i = 0; i < HEAD_LEN; i++)
		ulpdu[i] = 37 * i + 11;
	for (i = 0; i < WEFT_FAULT_COUNT * 32; i++) {
		fault = i / 32;
		opcode = i & 15;
		tagged = i & 16;
		ulpdu[0] = tagged ? 0xc1 : 0x41;
		ulpdu[1] = weft_rdmap_ulp(opcode);
		weft_fault_rec_fill(&rec, fault, ulpdu, HEAD_LEN, HEAD_LEN);
		len = weft_term_build(&rec, out);
		KUNIT_ASSERT_LE(test, len, (u32)MAX_LEN);
		KUNIT_ASSERT_EQ(test, weft_term_parse(out, len, &term), WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, term.has_ddp, weft_fault_info(fault)->headers != 0);
		if (term.has_ddp)
			expect_segment(test, &term, ulpdu);
	}
}

struct hostile_row {
	const char *name;
	u8 bits;	/* M, D, R in the upper three */
	u8 ctrl;	/* of the DDP header, if there is one */
	u32 len;
	bool has_ddp;
};

/* After "M=1 D=0 as 2-byte length only; accept zeros": protocol-rules, CHOICE-9. */
static const struct hostile_row hostile_rows[] = {
	{ "control_only", 0x00, 0, 4, false },
	{ "m_without_d", 0x80, 0, 6, false },
	{ "m_without_d_and_header", 0x80, 0x41, 24, false },
	{ "m_and_d_cut_before_length", 0xc0, 0, 4, false },
	{ "m_and_d_cut_within_length", 0xc0, 0, 5, false },
	{ "m_and_d_cut_before_header", 0xc0, 0, 6, false },
	{ "m_and_d_one_byte_of_header", 0xc0, 0xc1, 7, false },
	{ "m_and_d_tagged_cut", 0xc0, 0xc1, 19, false },
	{ "m_and_d_tagged", 0xc0, 0xc1, 20, true },
	{ "m_and_d_untagged_cut", 0xc0, 0x41, 23, false },
	{ "m_and_d_untagged", 0xc0, 0x41, 24, true },
	{ "m_and_d_and_trailing_bytes", 0xc0, 0x41, 52, true },
	{ "m_and_d_zeros_instead", 0xc0, 0x00, 24, false },
	{ "nothing_set_and_zeros", 0x00, 0x00, 52, false },
	{ "nothing_set_and_header", 0x00, 0x41, 24, false },
	{ "all_set", 0xe0, 0x41, 52, true },
	{ "all_set_read_request_cut", 0xe0, 0x41, 51, true },
	{ "r_without_d", 0x20, 0x41, 32, false },
	/* RFC 5040, 4.8: 13 reserved bits are ignored */
	{ "reserved_bits", 0x1f, 0x41, 4, false },
	{ "reserved_bits_with_header", 0xdf, 0x41, 24, true },
};

WEFT_ROWS(hostile_rows)

static void parse_hostile(struct kunit *test)
{
	const struct hostile_row *row = test->param_value;
	u8 *payload = kunit_kzalloc(test, row->len, GFP_KERNEL);
	struct weft_term term;

	KUNIT_ASSERT_NOT_NULL(test, payload);
	payload[0] = 0x12;
	payload[1] = 0x05;
	payload[2] = row->bits;
	payload[3] = row->bits & 0x1f ? 0xff : 0;
	if (row->len > 6)
		payload[6] = row->ctrl;
	KUNIT_ASSERT_EQ(test, weft_term_parse(payload, row->len, &term), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, term.layer, 1);
	KUNIT_EXPECT_EQ(test, term.etype, 2);
	KUNIT_EXPECT_EQ(test, term.ecode, 5);
	KUNIT_EXPECT_EQ(test, term.has_ddp, row->has_ddp);
}

/* RFC 5040, 5.4: an invalid Terminate is an error, told only on this side. */
static void parse_without_control_word(struct kunit *test)
{
	struct weft_term term;
	u32 len;

	for (len = 0; len < 4; len++)
		KUNIT_EXPECT_EQ_MSG(test, weft_term_parse(filled(test, len ?: 1), len, &term),
				    WEFT_FAULT_RDMAP_OPERATION, "%u bytes", len);
}

/* No byte of a Terminate can do more than make it say something odd. */
static void parse_every_length_of_noise(struct kunit *test)
{
	u64 seed = 4048;
	struct weft_term term;
	u32 i, k, len;

	for (i = 0; i < 3000; i++) {
		u8 noise[MAX_LEN];

		for (k = 0; k < MAX_LEN; k++)
			noise[k] = weft_next_random(&seed);
		len = i % (MAX_LEN + 1);
		weft_term_parse(weft_exact_copy(test, noise, len), len, &term);
		KUNIT_EXPECT_FALSE(test, term.has_ddp && len < 6 + 14);
		KUNIT_EXPECT_TRUE(test, len < 4 || term.ecode == noise[1]);
	}
}

static struct kunit_case term_cases[] = {
	KUNIT_CASE_PARAM(build_vector, weft_vec_term_gen_params),
	KUNIT_CASE_PARAM(parse_vector, weft_vec_term_gen_params),
	KUNIT_CASE_PARAM(fill_and_build_attached_headers, attach_rows_gen_params),
	KUNIT_CASE(fill_without_segment),
	KUNIT_CASE(build_segment_length_limits),
	KUNIT_CASE(parse_what_was_built),
	KUNIT_CASE_PARAM(parse_hostile, hostile_rows_gen_params),
	KUNIT_CASE(parse_without_control_word),
	KUNIT_CASE(parse_every_length_of_noise),
	{},
};

static struct kunit_suite term_suite = {
	.name = "weft_term",
	.test_cases = term_cases,
};

kunit_test_suite(term_suite);
