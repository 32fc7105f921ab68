/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Requests under way: those we sent and wait for (ORD), those we owe an answer
 * (IRD). Two rings, one producer and one consumer each.
 */
#ifndef WEFT_PROTO_READQ_H
#define WEFT_PROTO_READQ_H

#include "proto/fault.h"
#include "proto/rdmap.h"

/**
 * struct weft_readq_sent - a request we wait for; produced by tx, consumed by rx
 * @wr_index: send queue index, unused with @no_wr (ready-to-receive Read)
 * @received: octets of the response placed so far; owner: rx
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
 * Indices and octets run freely.
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

/* Octets of caller-provided, zeroed memory for these depths. */
size_t weft_readq_bytes(u32 ord, u32 ird);
void weft_readq_init(struct weft_readq *q, void *mem, u32 ord, u32 ird);

struct weft_readq_sent *weft_readq_sent_slot(struct weft_readq *q);	/* to fill, NULL: full */
void weft_readq_sent_push(struct weft_readq *q);
struct weft_readq_sent *weft_readq_sent_head(struct weft_readq *q);	/* oldest, NULL: none */
void weft_readq_sent_pop(struct weft_readq *q);
struct weft_readq_sent *weft_readq_sent_find(struct weft_readq *q, u32 msn);

struct weft_readq_owed *weft_readq_owed_slot(struct weft_readq *q);
void weft_readq_owed_push(struct weft_readq *q);
void weft_readq_owed_pop(struct weft_readq *q);

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

#endif
