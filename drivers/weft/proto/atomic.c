// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What FetchAdd and CmpSwap store: masked arithmetic on one 64-bit value in host
 * order. The caller makes it atomic. RFC 7306, 5.1.1 and 5.1.2.
 */
#include "proto/atomic.h"
#include "proto/rdmap.h"

/**
 * weft_atomic_apply - result of an atomic operation
 * @op: a checked operation: its code is one weft_atomic_req_parse() accepts
 * @old: value found at the target, host order
 *
 * Return: the value to store; @old itself when a comparison fails.
 */
u64 weft_atomic_apply(const struct weft_atomic_op *op, u64 old)
{
	u64 below;

	if (op->code == WEFT_ATOMIC_FADD) {
		/*
		 * All fields at once; the mask has their top bits. The bits below may carry
		 * within a field, the top bits are added without carry: nothing gets into the
		 * field above. Bit 63 needs no mark: its carry has nowhere to go.
		 */
		below = (old & ~op->mask) + (op->data & ~op->mask);
		return below ^ ((old ^ op->data) & op->mask);
	}
	if ((op->compare ^ old) & op->compare_mask)
		return old;
	return (old & ~op->mask) | (op->data & op->mask);
}
