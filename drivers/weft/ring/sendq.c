// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The send queue as the engine sees it. Whatever the application wrote is copied
 * once and judged in the copy; a malformed entry still becomes a work request,
 * because its poster is owed a completion.
 */
#include "ring/sendq.h"

#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <asm/barrier.h>

#include "base/copy.h"
#include "base/limits.h"
#include "proto/fault.h"
#include "proto/hot.h"

#define KNOWN_FLAGS (WEFT_WRF_SIGNALED | WEFT_WRF_SOLICITED | WEFT_WRF_FENCE | WEFT_WRF_INLINE)

static_assert(sizeof(struct weft_swr) + WEFT_MAX_SGE * sizeof(struct weft_sge) <= U16_MAX);
static_assert(sizeof(struct weft_swr) + WEFT_MAX_INLINE <= U16_MAX);

/**
 * weft_sendq_init - set up an empty send queue
 * @sq: what to fill in
 * @entries: a power of two
 * @max_sge: elements a work request may have, up to WEFT_MAX_SGE
 * @max_inline: inline bytes a work request may have, up to WEFT_MAX_INLINE
 * @space: of the process that posts, NULL for a kernel consumer
 *
 * Context: may sleep. Return: 0 or -errno, with nothing to clean up.
 */
int weft_sendq_init(struct weft_sendq *sq, u32 entries, u32 max_sge, u32 max_inline,
		    struct weft_ring_space *space)
{
	u32 tail = ALIGN(max_t(u32, max_sge * sizeof(struct weft_sge), max_inline), sizeof(u64));
	int ret;

	memset(sq, 0, sizeof(*sq));
	if (max_sge > WEFT_MAX_SGE || max_inline > WEFT_MAX_INLINE)
		return -EINVAL;

	ret = weft_ring_init(&sq->ring, entries, sizeof(struct weft_sqe) + tail, space);
	if (ret)
		return ret;

	weft_ring_lock_init(&sq->post_lock, space);
	sq->user = space;
	sq->max_sge = max_sge;
	sq->max_inline = max_inline;
	sq->wr_stride = sizeof(struct weft_swr) + tail;
	/* Most connections of a process with thousands rest: see weft_sendq_prepare(). */
	if (sq->user && (u64)entries * sq->wr_stride <= PAGE_SIZE)
		return 0;
	sq->wr = kvcalloc(entries, sq->wr_stride, GFP_KERNEL_ACCOUNT);
	if (!sq->user)
		sq->side = kvcalloc(entries, sizeof(*sq->side), GFP_KERNEL);
	if (sq->wr && (sq->user || sq->side))
		return 0;
	weft_sendq_free(sq);
	return -ENOMEM;
}

/**
 * weft_sendq_free - give the memory back
 * @sq: a queue that is no longer used, or one that was never initialised
 *
 * Context: may sleep.
 */
void weft_sendq_free(struct weft_sendq *sq)
{
	kvfree(sq->side);
	kvfree(sq->wr);
	weft_ring_free(&sq->ring);
	sq->side = NULL;
	sq->wr = NULL;
}

static enum weft_fault copy_sqe(const struct weft_sendq *sq, struct weft_swr *swr,
				const struct weft_sqe *from)
{
	u8 opcodes = sq->user ? WEFT_WR_KERNEL_FIRST : WEFT_WR_OP_COUNT;
	struct weft_sqe *wqe = &swr->wqe;
	u64 length = 0;
	u32 i;

	memcpy(wqe, from, sizeof(*wqe));
	barrier(); /* the checks below are made on the copy */
	if (wqe->opcode >= opcodes || wqe->flags & ~KNOWN_FLAGS || wqe->num_sge > sq->max_sge)
		return WEFT_FAULT_LOCAL_QP_OP;

	if (wqe->flags & WEFT_WRF_INLINE) {
		wqe->num_sge = 0;
		if (wqe->inline_len > sq->max_inline)
			return WEFT_FAULT_LOCAL_LENGTH;
		swr->length = wqe->inline_len;
		weft_copy((u8 *)swr->sge, (const u8 *)(from + 1), wqe->inline_len);
		return WEFT_FAULT_NONE;
	}

	wqe->inline_len = 0;
	weft_copy((u8 *)swr->sge, (const u8 *)(from + 1), wqe->num_sge * sizeof(*swr->sge));
	barrier(); /* the sum below is that of the copy */
	for (i = 0; i < wqe->num_sge; i++)
		length += swr->sge[i].length;
	if (length > WEFT_MAX_MSG)
		return WEFT_FAULT_LOCAL_LENGTH;
	swr->length = length;
	return WEFT_FAULT_NONE;
}

/**
 * weft_sendq_prepare - memory for the requests of a queue that had none
 * @sq: the queue
 *
 * What was posted must be completed, and a page or less is always to be had. Context: holder of
 * the tx claim, may sleep; no region is pinned, since an invalidation would wait for reclaim.
 */
void weft_sendq_prepare(struct weft_sendq *sq)
{
	if (!sq->wr)
		sq->wr =
			kcalloc(sq->ring.entries, sq->wr_stride, GFP_KERNEL_ACCOUNT | __GFP_NOFAIL);
}

/**
 * weft_sendq_fetch - take the next entry
 * @sq: the queue, with memory
 *
 * The work request is the caller's until it is completed. One that has a status
 * already was malformed: it must be completed with that status and @vendor_err,
 * in its turn.
 *
 * Context: holder of the tx claim. Return: a FETCHED work request, NULL when
 * there is none, ERR_PTR(-EIO) when the producer index is impossible, which
 * will not mend itself.
 */
weft_hot struct weft_swr *weft_sendq_fetch(struct weft_sendq *sq)
{
	/* Pairs with weft_ring_publish() of the provider and weft_sendq_commit(). */
	u32 prod = smp_load_acquire(&weft_sendq_ctl(sq)->prod);
	/*
	 * An honest producer has seen at most what was cons when it stored
	 * prod; reading in this order we see at least that.
	 */
	u32 cons = READ_ONCE(sq->cons);
	u32 in_flight = sq->fetched - cons;
	struct weft_swr *swr;
	enum weft_fault fault;
	u32 index;

	if (prod == sq->fetched)
		return NULL;
	if (prod - cons > sq->ring.entries || prod - cons < in_flight)
		return ERR_PTR(-EIO);

	index = sq->fetched;
	WRITE_ONCE(sq->fetched, index + 1); /* others count with it */
	swr = weft_sendq_wr(sq, index);
	swr->index = index;
	swr->length = 0;
	swr->tx_end = 0;
	WRITE_ONCE(swr->state, WEFT_SWR_FETCHED); /* weft_sendq_done_head() */
	swr->status = 0;
	swr->vendor_err = WEFT_FAULT_NONE;
	swr->wc_len = 0;
	swr->awaits_response = false;
	swr->kernel = sq->side ? sq->side[index & (sq->ring.entries - 1)] : NULL;
	fault = copy_sqe(sq, swr, weft_ring_entry(&sq->ring, index));
	if (fault != WEFT_FAULT_NONE) {
		/* Only what a completion needs remains; every other field is harmless. */
		swr->wqe = (struct weft_sqe){
			.wr_id = swr->wqe.wr_id,
			.flags = WEFT_WRF_SIGNALED,
		};
		swr->length = 0;
		swr->status = weft_fault_info(fault)->status;
		swr->vendor_err = fault;
	}
	return swr;
}

/**
 * weft_sendq_discard - forget all that is posted
 * @sq: the queue; all that was fetched has cons
 *
 * Context: holder of the tx claim, complete_lock held. Return: 0, or -EIO when the producer
 * index is impossible.
 */
int weft_sendq_discard(struct weft_sendq *sq)
{
	/* Pairs with weft_ring_publish() of the provider and weft_sendq_commit(). */
	u32 prod = smp_load_acquire(&weft_sendq_ctl(sq)->prod);

	if (WARN_ON_ONCE(sq->fetched != sq->cons) || prod - sq->fetched > sq->ring.entries)
		return -EIO;
	WRITE_ONCE(sq->fetched, prod);
	WRITE_ONCE(sq->cons, prod);
	weft_sendq_publish_cons(sq);
	return 0;
}

/**
 * weft_sendq_waiting - how many entries wait to be fetched
 * @sq: the queue
 *
 * Context: any. Return: a snapshot, at most the size of the queue.
 */
u32 weft_sendq_waiting(const struct weft_sendq *sq)
{
	return min(READ_ONCE(weft_sendq_ctl(sq)->prod) - READ_ONCE(sq->fetched), sq->ring.entries);
}

/**
 * weft_sendq_reserve - the next entry for a kernel producer to fill in
 * @sq: a kernel queue
 *
 * Nothing is consumed until weft_sendq_commit(); a caller that changes its mind
 * just does not commit. The head is zeroed.
 *
 * Context: @sq->post_lock held. Return: the entry, NULL when the queue is full.
 */
struct weft_sqe *weft_sendq_reserve(struct weft_sendq *sq) __must_hold(&sq->post_lock)
{
	struct weft_sqe *sqe;

	lockdep_assert_held(&sq->post_lock);
	/* Pairs with weft_sendq_publish_cons(). */
	if (sq->prod - smp_load_acquire(&weft_sendq_ctl(sq)->cons) >= sq->ring.entries)
		return NULL;

	sq->side[sq->prod & (sq->ring.entries - 1)] = NULL;
	sqe = weft_ring_entry(&sq->ring, sq->prod);
	memset(sqe, 0, sizeof(*sqe));
	return sqe;
}

/**
 * weft_sendq_attach - hand a region over with the reserved entry
 * @sq: a kernel queue
 * @mr: stays valid until the work request has completed
 *
 * Context: @sq->post_lock held, between reserve and commit.
 */
void weft_sendq_attach(struct weft_sendq *sq, struct weft_mem_region *mr)
	__must_hold(&sq->post_lock)
{
	lockdep_assert_held(&sq->post_lock);
	sq->side[sq->prod & (sq->ring.entries - 1)] = mr;
}

/**
 * weft_sendq_commit - publish the reserved entry
 * @sq: a kernel queue
 *
 * Context: @sq->post_lock held, after a successful weft_sendq_reserve().
 */
void weft_sendq_commit(struct weft_sendq *sq) __must_hold(&sq->post_lock)
{
	lockdep_assert_held(&sq->post_lock);
	sq->prod++;
	/* Pairs with weft_sendq_fetch(). */
	smp_store_release(&weft_sendq_ctl(sq)->prod, sq->prod);
}

/**
 * weft_sendq_needs_doorbell - must the engine be told of what was committed?
 * @sq: a kernel queue
 *
 * Once per posted list, after the last commit. Context: any.
 */
bool weft_sendq_needs_doorbell(const struct weft_sendq *sq)
{
	smp_mb(); /* pairs with the one in weft_sendq_leave() */
	return READ_ONCE(weft_sendq_ctl(sq)->state) == WEFT_SQ_NEED_DOORBELL;
}
