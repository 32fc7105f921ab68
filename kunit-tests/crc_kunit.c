// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * CRC32c and its place on the wire: RFC 5044, 4.4 (RFC 3720, B.4 for the values).
 */
#include "proto/crc.h"
#include "suite.h"
#include "vectors.h"

WEFT_ROWS(weft_vec_crc)

static void update_known_value(struct kunit *test)
{
	const struct weft_vec_crc *row = test->param_value;
	u32 crc = weft_crc_update(WEFT_CRC_SEED, row->data, row->len);
	u8 wire[4];

	KUNIT_EXPECT_EQ(test, (u32)~crc, row->crc);
	weft_crc_store(crc, wire);
	KUNIT_EXPECT_EQ(test, memcmp(wire, row->wire, sizeof(wire)), 0);
	KUNIT_EXPECT_TRUE(test, weft_crc_matches(crc, row->wire));
}

static void update_in_two_pieces(struct kunit *test)
{
	const struct weft_vec_crc *row = test->param_value;
	u32 cut, crc;

	for (cut = 0; cut <= row->len; cut++) {
		crc = weft_crc_update(WEFT_CRC_SEED, row->data, cut);
		crc = weft_crc_update(crc, (const u8 *)row->data + cut, row->len - cut);
		KUNIT_EXPECT_TRUE_MSG(test, weft_crc_matches(crc, row->wire), "cut at %u", cut);
	}
}

static void update_empty(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, weft_crc_update(WEFT_CRC_SEED, "", 0), WEFT_CRC_SEED);
}

static void matches_any_bit_flipped(struct kunit *test)
{
	const struct weft_vec_crc *row = test->param_value;
	u32 crc = weft_crc_update(WEFT_CRC_SEED, row->data, row->len);
	u8 wire[4];
	u32 bit;

	for (bit = 0; bit < 32; bit++) {
		memcpy(wire, row->wire, sizeof(wire));
		wire[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_FALSE_MSG(test, weft_crc_matches(crc, wire), "bit %u", bit);
	}
}

/* Polynomial long division, most significant bit first, turned round at both ends. */
static u32 divide_by_polynomial(const u8 *data, u32 len)
{
	u32 reg = ~0U, out = 0, i, bit;

	for (i = 0; i < 8 * len; i++) {
		bit = (data[i / 8] >> i % 8 & 1) ^ reg >> 31;
		reg = reg << 1 ^ (bit ? 0x1edc6f41 : 0);
	}
	for (i = 0; i < 32; i++)
		out |= (reg >> i & 1) << (31 - i);
	return ~out;
}

static void update_against_long_division(struct kunit *test)
{
	u64 seed = 0x3720;
	u8 data[300];
	u32 len, crc;

	for (len = 0; len < sizeof(data); len++)
		data[len] = weft_next_random(&seed);
	for (len = 0; len <= sizeof(data); len++) {
		crc = weft_crc_update(WEFT_CRC_SEED, data, len);
		KUNIT_EXPECT_EQ_MSG(test, (u32)~crc, divide_by_polynomial(data, len), "%u bytes",
				    len);
	}
}

static struct kunit_case crc_cases[] = {
	KUNIT_CASE_PARAM(update_known_value, weft_vec_crc_gen_params),
	KUNIT_CASE_PARAM(update_in_two_pieces, weft_vec_crc_gen_params),
	KUNIT_CASE(update_empty),
	KUNIT_CASE_PARAM(matches_any_bit_flipped, weft_vec_crc_gen_params),
	KUNIT_CASE(update_against_long_division),
	{},
};

static struct kunit_suite crc_suite = {
	.name = "weft_crc",
	.test_cases = crc_cases,
};

kunit_test_suite(crc_suite);
