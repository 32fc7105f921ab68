/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Where FPDUs are staged: room in the page fragment of the running task, and the runs
 * of octets written there that make a train. All in process context, by the holder of
 * the tx claim.
 */
#ifndef WEFT_NET_TXROOM_H
#define WEFT_NET_TXROOM_H

#include <linux/bits.h>
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <net/sock.h>

#include "net/txsock.h"

#define WEFT_TXROOM_MIN 256U /* a rest of a page fragment worth using */

DECLARE_PER_CPU(struct page_frag, weft_softirq_frag);

int weft_txroom_get_many_vecs(struct weft_txsock *tx);

/*
 * The fragment that is written to. The interrupted task may be in the middle of its own, so
 * where nothing may sleep it is one of this CPU, which bottom halves that are off protect.
 */
static __always_inline struct page_frag *weft_txroom_frag(const struct weft_txsock *tx)
{
	return unlikely(tx->atomic) ? this_cpu_ptr(&weft_softirq_frag) : &current->task_frag;
}

static inline gfp_t weft_txroom_gfp(const struct weft_txsock *tx)
{
	gfp_t gfp = tx->allocation;

	if (tx->atomic)
		gfp = GFP_ATOMIC | (gfp & __GFP_MEMALLOC);
	return gfp | __GFP_NOWARN;
}

/* Room for the runs of an FPDU of @len octets, even if only single pages are had. */
static inline int weft_txroom_make(struct weft_txsock *tx, u32 len)
{
	u32 extra = tx->lending ? WEFT_LENT_EXTRA : WEFT_STAGED_EXTRA;

	if (tx->count + len / PAGE_SIZE + extra <= tx->vecs || tx->vec != tx->few)
		return 0;
	return weft_txroom_get_many_vecs(tx);
}

static __always_inline bool weft_txroom_extends(const struct weft_txsock *tx,
						const struct page_frag *frag)
{
	const struct bio_vec *last;

	if (tx->count == tx->head || tx->eor & BIT_ULL(tx->count - 1))
		return false;
	last = &tx->vec[tx->count - 1];
	return last->bv_page == frag->page && last->bv_offset + last->bv_len == frag->offset;
}

static __always_inline int weft_txroom_add_run(struct weft_txsock *tx, struct page *page,
					       u32 offset, u32 len)
{
	if (WARN_ON_ONCE(tx->count == tx->vecs))
		return -ENOBUFS;
	get_page(page);
	tx->vec[tx->count++] = (struct bio_vec){
		.bv_page = page,
		.bv_offset = offset,
		.bv_len = len,
	};
	return 0;
}

/* What was written in the open room joins the train. */
static __always_inline int weft_txroom_add_fresh(struct weft_txsock *tx)
{
	struct page_frag *frag = weft_txroom_frag(tx);
	u32 len = tx->fresh;
	int ret = 0;

	tx->fresh = 0;
	if (weft_txroom_extends(tx, frag))
		tx->vec[tx->count - 1].bv_len += len;
	else
		ret = weft_txroom_add_run(tx, frag->page, frag->offset, len);
	frag->offset += len;
	return ret;
}

/* The room is closed. */
static __always_inline int weft_txroom_close(struct weft_txsock *tx)
{
	tx->room = 0;
	return tx->fresh ? weft_txroom_add_fresh(tx) : 0;
}

/*
 * Room for the rest of the FPDU, or for some of it, in the fragment of this task.
 * Nothing that is done before weft_txroom_close() may want another fragment.
 */
static __always_inline int weft_txroom_open(struct weft_txsock *tx)
{
	struct page_frag *frag = weft_txroom_frag(tx);
	u32 len = tx->end - tx->pos;

	if (WARN_ON_ONCE(!len))
		return -EMSGSIZE;
	if (!skb_page_frag_refill(min(len, WEFT_TXROOM_MIN), frag, weft_txroom_gfp(tx))) {
		tx->no_memory = true;
		return -ENOMEM;
	}
	tx->room = min(len, frag->size - frag->offset);
	tx->to = (u8 *)page_address(frag->page) + frag->offset;
	return 0;
}

/* By field: a compound literal is cleared first, octet by octet on some CPUs. */
static inline void weft_txroom_mark(struct weft_txsock *tx)
{
	struct weft_txmark *mark = &tx->mark;

	mark->pos = tx->pos;
	mark->eor = tx->eor;
	mark->seg_fill = tx->seg_fill;
	mark->count = tx->count;
	mark->last_len = tx->count > tx->head ? tx->vec[tx->count - 1].bv_len : 0;
	mark->big = tx->big;
}

#endif
