// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two rings of requests under way, each with one producer and one consumer: sent
 * ones (tx pushes, rx pops) and owed ones (rx pushes, tx pops). RFC 5040, 6.1;
 * RFC 6581, 9.1; RFC 7306, 5.2.
 *
 * Indices run freely; a ring has a power of two slots so that they may wrap, and
 * holds no more requests than were negotiated. Each side reads its own index
 * plainly and pairs on the other's:
 *
 *	push (release of tail)	with head, find (acquire of tail): the slot is
 *				filled before it is seen
 *	pop (release of head)	with slot, credit, idle (acquire of head): the
 *				slot is done with before it is filled again
 */
#include "proto/readq.h"
#include "proto/hot.h"

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
 * @mem: weft_readq_bytes() octets, zeroed, aligned for a u64; stays the caller's
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
 * weft_readq_sent_slot - where to note the next request (tx)
 * @q: the rings
 *
 * Return: a slot to fill, what stood there before still in it; NULL without
 * credit.
 */
weft_hot struct weft_readq_sent *weft_readq_sent_slot(struct weft_readq *q)
{
	if (!weft_readq_credit(q))
		return NULL;
	return &q->sent[q->sent_tail & q->sent_mask];
}

/**
 * weft_readq_sent_push - the slot is filled; before the request can be answered (tx)
 * @q: the rings
 */
void weft_hot weft_readq_sent_push(struct weft_readq *q)
{
	/* pairs with weft_readq_sent_head() and weft_readq_sent_find() */
	smp_store_release(&q->sent_tail, q->sent_tail + 1);
}

/**
 * weft_readq_sent_head - the request that is answered next (rx)
 * @q: the rings
 */
weft_hot struct weft_readq_sent *weft_readq_sent_head(struct weft_readq *q)
{
	/* pairs with weft_readq_sent_push() */
	if (q->sent_head == smp_load_acquire(&q->sent_tail))
		return NULL;
	return &q->sent[q->sent_head & q->sent_mask];
}

/**
 * weft_readq_sent_pop - the oldest request is answered and not needed any more (rx)
 * @q: the rings, not empty
 */
void weft_hot weft_readq_sent_pop(struct weft_readq *q)
{
	/* pairs with weft_readq_credit() and weft_readq_idle() */
	smp_store_release(&q->sent_head, q->sent_head + 1);
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

/**
 * weft_readq_owed_slot - where to note a request of the peer (rx)
 * @q: the rings
 *
 * Return: a slot to fill, what stood there before still in it; NULL if the peer
 * asks for more than was negotiated.
 */
weft_hot struct weft_readq_owed *weft_readq_owed_slot(struct weft_readq *q)
{
	/* pairs with weft_readq_owed_pop() */
	if (q->owed_tail - smp_load_acquire(&q->owed_head) >= q->ird)
		return NULL;
	return &q->owed[q->owed_tail & q->owed_mask];
}

/**
 * weft_readq_owed_push - the slot is filled (rx)
 * @q: the rings
 */
void weft_hot weft_readq_owed_push(struct weft_readq *q)
{
	/* pairs with weft_readq_owed_head() */
	smp_store_release(&q->owed_tail, q->owed_tail + 1);
}

/**
 * weft_readq_owed_pop - the oldest request is answered; before the peer can know (tx)
 * @q: the rings, not empty
 *
 * The peer sends its next request as soon as it has the response, so a pop after
 * the last octet went out would find the ring full for no reason.
 */
void weft_hot weft_readq_owed_pop(struct weft_readq *q)
{
	/* pairs with weft_readq_owed_slot() */
	smp_store_release(&q->owed_head, q->owed_head + 1);
}
