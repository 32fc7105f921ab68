/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The send queue as the engine sees it: entries are copied out of shared memory
 * once, bounds-checked, and live as private work requests until they are completed.
 */
#ifndef WEFT_RING_SENDQ_H
#define WEFT_RING_SENDQ_H

#include <linux/bug.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "proto/fault.h"
#include "ring/ring.h"
#include "uapi/weft-abi.h"

struct weft_mem_region;

enum weft_swr_state {
	WEFT_SWR_FREE,
	WEFT_SWR_FETCHED,	/* private copy made, nothing sent */
	WEFT_SWR_SENT,		/* all bytes are TCP's, a response may be due */
	WEFT_SWR_DONE,		/* waits for its turn to be completed */
};

/**
 * struct weft_swr - a private, checked copy of a send queue entry
 * @wqe: the head, @wqe.num_sge and @wqe.inline_len within the queue's limits
 * @index: free-running position in the queue
 * @length: sum of the elements or the inline bytes; below 4 GiB
 * @tx_end: position in the outgoing stream of the byte behind its last FPDU
 * @state: enum weft_swr_state
 * @status: enum ib_wc_status, valid once DONE; not 0 in a FETCHED one: the entry
 *	was malformed and must only be completed, its lists are empty
 * @vendor_err: fault that made @status, valid once DONE
 * @wc_len: byte_len of the completion (reads and atomics)
 * @msn: number of its Send or Immediate Data, once planned
 * @awaits_response: it is not done when it is sent; once planned
 * @kernel: what a kernel consumer attached (memory region of REG_MR), never
 *	taken from shared memory
 * @sge: gather list; with INLINE the payload itself
 *
 * Owner: the holder of the tx claim until SENT; then the context that finds it under
 * the complete_lock.
 */
struct weft_swr {
	struct weft_sqe wqe;
	u32 index;
	u32 length;
	u64 tx_end;
	u8 state;
	u8 status;
	u8 vendor_err;
	u32 wc_len;
	u32 msn;
	bool awaits_response;
	struct weft_mem_region *kernel;
	struct weft_sge sge[];
};

/**
 * struct weft_sendq - a send queue
 * @ring: memory
 * @user: a process posts to it
 * @max_sge: elements an entry has room for
 * @max_inline: inline bytes an entry has room for
 * @wr_stride: bytes from one private work request to the next
 * @wr: private work requests, one per entry; NULL: a small queue not used yet, see
 *	weft_sendq_prepare()
 * @fetched: next entry to copy out; owner: tx claim
 * @cons: entries before it are free; written under the stream's complete_lock,
 *	with WRITE_ONCE
 * @post_lock: serialises kernel producers: @prod, @side
 * @prod: kernel producers' private producer index
 * @side: per slot, what a kernel consumer attaches beside the shared entry
 *
 * A cache line: with more, a QP would be in the next size class.
 */
struct weft_sendq {
	struct weft_ring ring;
	bool user;
	u16 max_sge;
	u16 max_inline;
	u16 wr_stride;
	void *wr;
	u32 fetched;
	u32 cons;
	spinlock_t post_lock; /* prod, side; irqsave */
	u32 prod;
	struct weft_mem_region **side;
};

int weft_sendq_init(struct weft_sendq *sq, u32 entries, u32 max_sge, u32 max_inline,
		    struct weft_ring_space *space);
void weft_sendq_free(struct weft_sendq *sq);

/* Its control block, where its memory begins. */
static inline struct weft_sq_ctl *weft_sendq_ctl(const struct weft_sendq *sq)
{
	return sq->ring.mem;
}

/* Engine side. */
void weft_sendq_prepare(struct weft_sendq *sq);
struct weft_swr *weft_sendq_fetch(struct weft_sendq *sq);
int weft_sendq_discard(struct weft_sendq *sq);
u32 weft_sendq_waiting(const struct weft_sendq *sq);

/* Kernel producers; verbs/post.c. */
struct weft_sqe *weft_sendq_reserve(struct weft_sendq *sq);
void weft_sendq_attach(struct weft_sendq *sq, struct weft_mem_region *mr);
void weft_sendq_commit(struct weft_sendq *sq);
bool weft_sendq_needs_doorbell(const struct weft_sendq *sq);

/**
 * weft_sendq_wr - a private work request by its place in the queue
 * @sq: the queue
 * @index: free-running index of a fetched and not yet completed entry
 *
 * Context: any.
 */
static inline struct weft_swr *weft_sendq_wr(const struct weft_sendq *sq, u32 index)
{
	return sq->wr + (size_t)(index & (sq->ring.entries - 1)) * sq->wr_stride;
}

/**
 * weft_sendq_in_flight - how many entries were fetched and are not completed
 * @sq: the queue
 *
 * They begin at @cons. Context: complete_lock held. Return: at most the size of the queue.
 */
static inline u32 weft_sendq_in_flight(const struct weft_sendq *sq)
{
	u32 count = READ_ONCE(sq->fetched) - sq->cons;

	return WARN_ON_ONCE(count > sq->ring.entries) ? 0 : count;
}

/**
 * weft_sendq_pending - is there an entry to fetch?
 * @sq: the queue
 *
 * Context: holder of the tx claim. Return: true also for a corrupt queue.
 */
static inline bool weft_sendq_pending(const struct weft_sendq *sq)
{
	return READ_ONCE(weft_sendq_ctl(sq)->prod) != sq->fetched;
}

/**
 * weft_sendq_set_busy - spare producers the doorbell
 * @sq: the queue; the caller looks at it again before weft_sendq_leave()
 *
 * Context: holder of the tx claim.
 */
static inline void weft_sendq_set_busy(struct weft_sendq *sq)
{
	WRITE_ONCE(weft_sendq_ctl(sq)->state, WEFT_SQ_BUSY);
}

/**
 * weft_sendq_leave - tell producers how to announce what they post, and look a last time
 * @sq: the queue
 * @state: WEFT_SQ_NEED_DOORBELL, or WEFT_SQ_POLLED: a timer will look at it after a while
 *
 * Context: holder of the tx claim. Return: true when the queue is empty and may be left; false
 * when an entry came meanwhile, whose producer may still have seen BUSY: the caller goes on, or
 * makes sure that another context does.
 */
static inline bool weft_sendq_leave(struct weft_sendq *sq, u32 state)
{
	WRITE_ONCE(weft_sendq_ctl(sq)->state, state);
	/*
	 * Pairs with the fence in weft_ring_state() of the provider, and
	 * that in weft_sendq_needs_doorbell(): we see their index or they our wish.
	 */
	smp_mb();
	return !weft_sendq_pending(sq);
}

/**
 * weft_sendq_defers_doorbell - does the application ring only when its CQ is empty?
 * @sq: the queue
 *
 * Context: any. Return: a hint of the application's, which may change its mind.
 */
static inline bool weft_sendq_defers_doorbell(const struct weft_sendq *sq)
{
	return sq->user && READ_ONCE(weft_sendq_ctl(sq)->defer_doorbell);
}

/**
 * weft_sendq_is_polled - is it left to itself?
 * @sq: the queue
 *
 * Context: any. Return: a hint: the application can write to that word too.
 */
static inline bool weft_sendq_is_polled(const struct weft_sendq *sq)
{
	return READ_ONCE(weft_sendq_ctl(sq)->state) == WEFT_SQ_POLLED;
}

/**
 * weft_sendq_done - a work request has its outcome
 * @swr: fetched; the first outcome stays
 * @fault: WEFT_FAULT_NONE for success
 *
 * Context: complete_lock held.
 */
static inline void weft_sendq_done(struct weft_swr *swr, enum weft_fault fault)
{
	if (swr->state == WEFT_SWR_DONE)
		return;
	WRITE_ONCE(swr->state, WEFT_SWR_DONE); /* rx looks at it */
	swr->vendor_err = fault;
	swr->status = fault == WEFT_FAULT_NONE ? WEFT_STATUS_SUCCESS :
						 weft_fault_info(fault)->status;
}

/**
 * weft_sendq_pushed - TCP has accepted the stream up to a position
 * @sq: the queue
 * @sent: index behind the requests that are known to be sent
 * @pushed: that position
 *
 * A response may come before we do. Then the slot of its request is free, or another's.
 *
 * Context: holder of the tx claim, complete_lock held. Return: the new @sent.
 */
static inline u32 weft_sendq_pushed(struct weft_sendq *sq, u32 sent, u64 pushed)
{
	struct weft_swr *swr;

	if ((s32)(sq->cons - sent) > 0)
		sent = sq->cons;
	for (; sent != sq->fetched; sent++) {
		swr = weft_sendq_wr(sq, sent);
		if (swr->tx_end > pushed)
			break;
		if (swr->state == WEFT_SWR_DONE)
			continue;
		if (swr->awaits_response)
			WRITE_ONCE(swr->state, WEFT_SWR_SENT); /* rx looks at it */
		else
			weft_sendq_done(swr, WEFT_FAULT_NONE);
	}
	return sent;
}

/**
 * weft_sendq_done_head - the request to complete next
 * @sq: a queue that was used
 *
 * Context: complete_lock held. Return: the oldest request if it is done, else NULL.
 */
static inline struct weft_swr *weft_sendq_done_head(const struct weft_sendq *sq)
{
	struct weft_swr *swr = weft_sendq_wr(sq, sq->cons);

	/* It may be fetched just now, which is done without the lock. */
	return READ_ONCE(swr->state) == WEFT_SWR_DONE ? swr : NULL;
}

/**
 * weft_sendq_publish_cons - let producers reuse what is completed
 * @sq: the queue; @sq->cons was advanced
 *
 * Context: complete_lock held.
 */
static inline void weft_sendq_publish_cons(struct weft_sendq *sq)
{
	/* Pairs with weft_ring_observe() of the provider and weft_sendq_reserve(). */
	smp_store_release(&weft_sendq_ctl(sq)->cons, sq->cons);
}

/**
 * weft_sendq_advance_cons - let go of the oldest request
 * @sq: the queue
 * @swr: from weft_sendq_done_head(); not to be looked at any more
 *
 * Context: complete_lock held.
 */
static inline void weft_sendq_advance_cons(struct weft_sendq *sq, struct weft_swr *swr)
{
	swr->state = WEFT_SWR_FREE;
	WRITE_ONCE(sq->cons, sq->cons + 1);
	weft_sendq_publish_cons(sq);
}

#endif
