// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The rings of requests under way: their memory, and what is rarely done with them.
 */
#include "proto/readq.h"

/* Slots of a ring for @depth requests; depths are at most 16 bits wide. */
static u32 ring_slots(u32 depth)
{
	u32 n = 1;

	while (n < depth)
		n <<= 1;
	return n;
}

/**
 * weft_readq_bytes - memory for both rings
 * @ord: requests that may wait for a response
 * @ird: requests that may be owed one
 */
size_t weft_readq_bytes(u32 ord, u32 ird)
{
	return ring_slots(ord) * sizeof(struct weft_readq_sent) +
	       ring_slots(ird) * sizeof(struct weft_readq_owed);
}

/**
 * weft_readq_init - empty rings
 * @q: before either side uses it
 * @mem: weft_readq_bytes() bytes, zeroed, aligned for a u64; stays the caller's
 * @ord: as in weft_readq_bytes()
 * @ird: as in weft_readq_bytes()
 */
void weft_readq_init(struct weft_readq *q, void *mem, u32 ord, u32 ird)
{
	memset(q, 0, sizeof(*q));
	q->sent = mem;
	q->owed = (void *)(q->sent + ring_slots(ord));
	q->ord = ord;
	q->ird = ird;
	q->sent_mask = ring_slots(ord) - 1;
	q->owed_mask = ring_slots(ird) - 1;
}

/**
 * weft_readq_sent_find - the waiting request of a number, for a Terminate (rx)
 * @q: the rings
 * @msn: its MSN on WEFT_QN_REQUEST
 */
struct weft_readq_sent *weft_readq_sent_find(struct weft_readq *q, u32 msn)
{
	/* pairs with weft_readq_sent_push() */
	u32 tail = smp_load_acquire(&q->sent_tail);
	struct weft_readq_sent *sent;
	u32 i;

	for (i = q->sent_head; i != tail; i++) {
		sent = &q->sent[i & q->sent_mask];
		if (sent->msn == msn)
			return sent;
	}
	return NULL;
}
