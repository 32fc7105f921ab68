/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Two rings of requests under way, each with one producer and one consumer: sent
 * ones (ORD: tx pushes, rx pops) and owed ones (IRD: rx pushes, tx pops). RFC 5040, 6.1;
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
#ifndef WEFT_PROTO_READQ_H
#define WEFT_PROTO_READQ_H

#include "proto/fault.h"
#include "proto/rdmap.h"

/**
 * struct weft_readq_sent - a request we wait for; produced by tx, consumed by rx
 * @wr_index: send queue index, unused with @no_wr (ready-to-receive Read)
 * @received: bytes of the response placed so far; owner: rx
 */
struct weft_readq_sent {
	u32 wr_index;
	bool no_wr;
	bool atomic;
	u32 msn;
	u32 sink_stag;
	u64 sink_to;
	u32 length;
	u32 received;
};

/**
 * struct weft_readq_owed - a request we owe an answer; produced by rx, consumed by tx
 * @fault: what was wrong with it when it came; it is told in its turn, and rx has
 *	stopped behind it
 */
struct weft_readq_owed {
	bool atomic;
	enum weft_fault fault;
	struct weft_read_req read;
	struct weft_atomic_req op;
	u8 headers[WEFT_DDP_UNTAGGED_LEN + WEFT_READ_REQ_LEN];	/* for a Terminate */
	u16 segment_len;
	u8 head_len;
};

/**
 * struct weft_readq - both rings
 * @sent: slots of one ring
 * @owed: of the other
 * @ord: how many requests we may have under way
 * @ird: and the peer
 * @sent_mask: slots of @sent less one
 * @owed_mask: slots of @owed less one
 * @sent_head: next to pop; written by rx
 * @sent_tail: next to push; written by tx
 * @owed_head: next to pop; written by tx
 * @owed_tail: next to push; written by rx
 *
 * Indices and bytes run freely.
 */
struct weft_readq {
	struct weft_readq_sent *sent;
	struct weft_readq_owed *owed;
	u32 ord;
	u32 ird;
	u32 sent_mask;
	u32 owed_mask;
	u32 sent_head, sent_tail;
	u32 owed_head, owed_tail;
};

/* Bytes of caller-provided, zeroed memory for these depths. */
size_t weft_readq_bytes(u32 ord, u32 ird);
void weft_readq_init(struct weft_readq *q, void *mem, u32 ord, u32 ird);

struct weft_readq_sent *weft_readq_sent_find(struct weft_readq *q, u32 msn);

/**
 * weft_readq_credit - may another request be sent? (tx)
 * @q: the rings
 */
static inline bool weft_readq_credit(const struct weft_readq *q)
{
	/* pairs with weft_readq_sent_pop() */
	return q->sent_tail - smp_load_acquire(&q->sent_head) < q->ord;
}

/**
 * weft_readq_sent_slot - where to note the next request (tx)
 * @q: the rings
 *
 * Return: a slot to fill, what stood there before still in it; NULL without
 * credit.
 */
static inline struct weft_readq_sent *weft_readq_sent_slot(struct weft_readq *q)
{
	if (!weft_readq_credit(q))
		return NULL;
	return &q->sent[q->sent_tail & q->sent_mask];
}

/**
 * weft_readq_sent_push - the slot is filled; before the request can be answered (tx)
 * @q: the rings
 */
static inline void weft_readq_sent_push(struct weft_readq *q)
{
	/* pairs with weft_readq_sent_head() and weft_readq_sent_find() */
	smp_store_release(&q->sent_tail, q->sent_tail + 1);
}

/**
 * weft_readq_sent_head - the request that is answered next (rx)
 * @q: the rings
 */
static inline struct weft_readq_sent *weft_readq_sent_head(struct weft_readq *q)
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
static inline void weft_readq_sent_pop(struct weft_readq *q)
{
	/* pairs with weft_readq_credit() and weft_readq_idle() */
	smp_store_release(&q->sent_head, q->sent_head + 1);
}

/**
 * weft_readq_idle - is every request answered? (tx)
 * @q: the rings
 *
 * If so, what the responses brought is placed, and is visible to the caller.
 */
static inline bool weft_readq_idle(const struct weft_readq *q)
{
	/* pairs with weft_readq_sent_pop() */
	return q->sent_tail == smp_load_acquire(&q->sent_head);
}

/**
 * weft_readq_owed_slot - where to note a request of the peer (rx)
 * @q: the rings
 *
 * Return: a slot to fill, what stood there before still in it; NULL if the peer
 * asks for more than was negotiated.
 */
static inline struct weft_readq_owed *weft_readq_owed_slot(struct weft_readq *q)
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
static inline void weft_readq_owed_push(struct weft_readq *q)
{
	/* pairs with weft_readq_owed_head() */
	smp_store_release(&q->owed_tail, q->owed_tail + 1);
}

/* Is there a request to answer? (tx) */
static inline bool weft_readq_owes(const struct weft_readq *q)
{
	return q->owed_head != READ_ONCE(q->owed_tail);
}

/**
 * weft_readq_owed_head - the request to answer next (tx)
 * @q: the rings
 */
static inline struct weft_readq_owed *weft_readq_owed_head(struct weft_readq *q)
{
	/* pairs with weft_readq_owed_push() */
	if (q->owed_head == smp_load_acquire(&q->owed_tail))
		return NULL;
	return &q->owed[q->owed_head & q->owed_mask];
}

/**
 * weft_readq_owed_pop - the oldest request is answered; before the peer can know (tx)
 * @q: the rings, not empty
 *
 * The peer sends its next request as soon as it has the response, so a pop after
 * the last byte went out would find the ring full for no reason.
 */
static inline void weft_readq_owed_pop(struct weft_readq *q)
{
	/* pairs with weft_readq_owed_slot() */
	smp_store_release(&q->owed_head, q->owed_head + 1);
}

#endif
