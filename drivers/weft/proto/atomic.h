/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Masked 64-bit arithmetic of RFC 7306, 5.2: pure, the caller makes it atomic.
 */
#ifndef WEFT_PROTO_ATOMIC_H
#define WEFT_PROTO_ATOMIC_H

#include "proto/env.h"

struct weft_atomic_op {
	u8 code;		/* enum weft_atomic_code */
	u64 data;
	u64 mask;
	u64 compare;
	u64 compare_mask;
};

/* The value to store over @old; equal to @old when the comparison fails. */
u64 weft_atomic_apply(const struct weft_atomic_op *op, u64 old);

#endif
