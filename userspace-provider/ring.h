/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The application's half of the barriers on a mapped queue. Each function
 * names its partner in the kernel's half, drivers/weft/ring/; the whole
 * protocol is told in Documentation/abi.md.
 */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "uapi/weft-abi.h"

/*
 * Hand entries before @index to the kernel, or give it back entries of a CQ.
 * Pairs with the kernel's acquire load of the same word: what was written to
 * (read from) the entries comes before the index that passes them on.
 */
static inline void weft_ring_publish(__u32 *word, uint32_t index)
{
	__atomic_store_n(word, index, __ATOMIC_RELEASE);
}

/*
 * Learn how far the kernel has come. Pairs with its release store: it is done
 * with an entry it lets us reuse, and has filled a completion it shows us.
 */
static inline uint32_t weft_ring_observe(const __u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/*
 * Is a doorbell due for what was just published? The fence pairs
 * with the one the kernel has between storing NEED_DOORBELL and its
 * last look at prod: it sees our index, or we see its wish, never neither.
 */
static inline uint32_t weft_ring_state(const __u32 *state)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(state, __ATOMIC_RELAXED);
}

/*
 * Ask for an event. A wish for any completion is never weakened to one for
 * solicited ones. The fence pairs with the kernel's between publishing prod
 * and taking @arm: either it finds the queue armed, or the poll which every
 * application does after arming finds the completion. Returns false if the queue was
 * armed before: one event serves both.
 */
static inline bool weft_ring_arm(__u32 *arm, bool solicited_only)
{
	__u32 was = WEFT_ARM_NONE;

	if (solicited_only)
		__atomic_compare_exchange_n(arm, &was, WEFT_ARM_SOLICITED, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	else
		was = __atomic_exchange_n(arm, WEFT_ARM_NEXT, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return was == WEFT_ARM_NONE;
}

#endif
