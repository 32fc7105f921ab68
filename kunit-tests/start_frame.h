/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A start frame: room to build it in, and what is read from it.
 */
#ifndef WEFT_KUNIT_START_FRAME_H
#define WEFT_KUNIT_START_FRAME_H

#include "proto/mpa_start.h"
#include "suite.h"

#define RTR_ALL	(WEFT_RTR_SEND | WEFT_RTR_WRITE | WEFT_RTR_READ)
#define BAD	WEFT_FAULT_MPA_START	/* no such frame, or none that is due */

/* Both steps of parsing, of exactly @len bytes. */
static inline enum weft_fault parse(struct kunit *test, const void *wire, u32 len, bool request,
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

/* For the longest there is. */
static inline u8 *frame_space(struct kunit *test)
{
	u8 *out = kunit_kzalloc(test, WEFT_MPA_FRAME_MAX, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, out);
	memset(out, 0xa5, WEFT_MPA_FRAME_MAX);
	return out;
}

#endif
