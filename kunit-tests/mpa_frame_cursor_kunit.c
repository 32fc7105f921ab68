// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What parts an FPDU, run by run, and what its markers say: RFC 5044, 4.3.
 */
#include "proto/mpa_frame.h"
#include "suite.h"
#include "vectors.h"

WEFT_ROWS(weft_vec_stream)

/* Where the markers of a vector stand, and what they say. */
static void cursor_ptr_vector(struct kunit *test)
{
	const struct weft_vec_stream *row = test->param_value;
	const struct weft_vec_marker *want = row->marker;
	struct weft_mpa_cursor c;
	enum weft_mpa_run run;
	u32 i, len;

	for (i = 0; i < row->fpdus; i++) {
		weft_mpa_cursor_init(&c, row->fpdu[i].pos, row->fpdu[i].ulpdu_len, row->markers_on);
		for (; (run = weft_mpa_cursor_run(&c, &len)) != WEFT_RUN_END;
		     weft_mpa_cursor_pass(&c, len)) {
			if (run != WEFT_RUN_MARKER)
				continue;
			KUNIT_ASSERT_LT(test, want - row->marker, (long)row->markers);
			KUNIT_EXPECT_EQ(test, len, 4U);
			KUNIT_EXPECT_EQ(test, c.pos, want->pos);
			KUNIT_EXPECT_EQ(test, weft_mpa_cursor_ptr(&c), want->ptr);
			want++;
		}
	}
	KUNIT_EXPECT_EQ(test, want - row->marker, (long)row->markers);
}

/* Where there are no markers nothing parts the bytes of a run. */
static void cursor_run_without_markers(struct kunit *test)
{
	struct weft_mpa_cursor c;
	u32 len;

	weft_mpa_cursor_init(&c, 0, 5000, false);
	KUNIT_EXPECT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_LENGTH);
	KUNIT_EXPECT_EQ(test, len, 2U);
	weft_mpa_cursor_pass(&c, len);
	KUNIT_EXPECT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_ULPDU);
	KUNIT_EXPECT_EQ(test, len, 5000U);
	weft_mpa_cursor_pass(&c, len);
	KUNIT_EXPECT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_PAD);
	KUNIT_EXPECT_EQ(test, len, 2U);
	weft_mpa_cursor_pass(&c, len);
	KUNIT_EXPECT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_CRC);
	KUNIT_EXPECT_EQ(test, len, 4U);
	weft_mpa_cursor_pass(&c, len);
	KUNIT_EXPECT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_END);
}

struct marker_row {
	const char *name;
	u8 marker[4];
	bool ok;
};

/* For a marker whose FPDUPTR ought to be 0x0014. */
static const struct marker_row marker_rows[] = {
	{ "right", { 0x00, 0x00, 0x00, 0x14 }, true },
	/* RFC 5044, 4.2: reserved half ignored, low bits taken as zero */
	{ "reserved_half_set", { 0xbe, 0xef, 0x00, 0x14 }, true },
	{ "low_bits_set", { 0x00, 0x00, 0x00, 0x17 }, true },
	{ "four_too_small", { 0x00, 0x00, 0x00, 0x10 }, false },
	{ "four_too_large", { 0x00, 0x00, 0x00, 0x18 }, false },
	{ "zero", { 0x00, 0x00, 0x00, 0x00 }, false },
	{ "high_byte", { 0x00, 0x00, 0x01, 0x14 }, false },
	{ "in_reserved_half", { 0x00, 0x14, 0x00, 0x00 }, false },
};

WEFT_ROWS(marker_rows)

static void marker_ok_inside_fpdu(struct kunit *test)
{
	const struct marker_row *row = test->param_value;
	struct weft_mpa_cursor c;
	u32 len;

	weft_mpa_cursor_init(&c, 492, 42, true);
	KUNIT_ASSERT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_LENGTH);
	weft_mpa_cursor_pass(&c, len);
	KUNIT_ASSERT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_ULPDU);
	KUNIT_ASSERT_EQ(test, len, 18U);
	weft_mpa_cursor_pass(&c, len);
	KUNIT_ASSERT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_MARKER);
	KUNIT_EXPECT_EQ(test, weft_mpa_marker_ok(&c, row->marker), row->ok);
}

static void marker_ok_between_fpdus(struct kunit *test)
{
	static const u8 back[] = { 0, 0, 1, 0xfc }, none[] = { 0, 0, 0, 0 };
	struct weft_mpa_cursor c;
	u32 len;

	weft_mpa_cursor_init(&c, 512, 42, true);
	KUNIT_ASSERT_EQ(test, weft_mpa_cursor_run(&c, &len), WEFT_RUN_MARKER);
	KUNIT_EXPECT_TRUE(test, weft_mpa_marker_ok(&c, none));
	KUNIT_EXPECT_FALSE(test, weft_mpa_marker_ok(&c, back));
}

/* RFC 5044, 3: the longest ULPDU is such that FPDUPTR still reaches back. */
static void cursor_ptr_longest_fpdu(struct kunit *test)
{
	struct weft_mpa_cursor c;
	enum weft_mpa_run run;
	u32 len, last = 0;

	weft_mpa_cursor_init(&c, 508, WEFT_MPA_MULPDU_MAX, true);
	while ((run = weft_mpa_cursor_run(&c, &len)) != WEFT_RUN_END) {
		if (run == WEFT_RUN_MARKER) {
			last = c.pos - 508;
			KUNIT_EXPECT_EQ(test, (u32)weft_mpa_cursor_ptr(&c), last);
		}
		KUNIT_ASSERT_NE(test, len, 0U);
		weft_mpa_cursor_pass(&c, len);
	}
	KUNIT_EXPECT_LT(test, last, 65536U);
	KUNIT_EXPECT_GT(test, last, 65536U - 2 * 512);
}

static struct kunit_case mpa_frame_cursor_cases[] = {
	KUNIT_CASE_PARAM(cursor_ptr_vector, weft_vec_stream_gen_params),
	KUNIT_CASE(cursor_run_without_markers),
	KUNIT_CASE_PARAM(marker_ok_inside_fpdu, marker_rows_gen_params),
	KUNIT_CASE(marker_ok_between_fpdus),
	KUNIT_CASE(cursor_ptr_longest_fpdu),
	{},
};

static struct kunit_suite mpa_frame_cursor_suite = {
	.name = "weft_mpa_frame_cursor",
	.test_cases = mpa_frame_cursor_cases,
};

kunit_test_suite(mpa_frame_cursor_suite);
