// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory that is paged on demand, and is not there when a segment needs it. tx and rx run where
 * nothing may sleep, and hold what others wait for, so neither faults pages in. The segment stays
 * in hand, or in the socket, a worker faults in what it lacks, and the direction tries again.
 *
 * What is behind waits: in the socket's buffer, where TCP's window makes the peer wait, or in
 * the send queue. The other direction goes on.
 *
 * A fault may take long, even forever where a process serves the pages. So nothing waits for the
 * worker: a stream that goes down mutes it, and a region that goes is kept by it.
 */
#include "engine/ops/op.h"

#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "mem/odp.h"

/* Goes on also if there are no pages: the access finds out. */
static void paging_work(struct work_struct *work)
{
	struct weft_paging *paging = container_of(work, struct weft_paging, work);
	struct weft_odp_want *want = &paging->want;
	struct weft_stream *st = paging->st;
	int err;

	err = weft_odp_fault(want->odp, want->offset, want->len,
			     want->write ? WEFT_ODP_WRITE : WEFT_ODP_READ);
	weft_odp_put(want->odp);
	want->err = err;
	spin_lock_bh(&st->lock);
	/* Pairs with the acquire of the direction's owner. */
	smp_store_release(&want->state, WEFT_ODP_DONE);
	if (paging->muted)
		;
	else if (paging == &st->tx.paging)
		st->hooks->want_tx(st);
	else
		st->hooks->want_rx(st);
	spin_unlock_bh(&st->lock);
	kref_put(&st->ref, st->hooks->release);
}

/* For a stream that is being made. */
void weft_paging_init(struct weft_stream *st)
{
	INIT_WORK(&st->tx.paging.work, paging_work);
	INIT_WORK(&st->rx.paging.work, paging_work);
	st->tx.paging.st = st;
	st->rx.paging.st = st;
	st->tx.mem.want = &st->tx.paging.want;
	st->rx.mem.want = &st->rx.paging.want;
	st->rx.rq_mem.want = &st->rx.paging.want;
}

/**
 * weft_paging_start - a direction can do nothing but wait
 * @st: stream
 * @paging: of the direction
 *
 * Context: owner of the direction. Return: true if it is for pages; then it is told to go on.
 */
bool weft_paging_start(struct weft_stream *st, struct weft_paging *paging)
{
	if (paging->want.state != WEFT_ODP_ASKED)
		return READ_ONCE(paging->want.state) == WEFT_ODP_STARTED;
	weft_count(st->cfg.counters, WEFT_CTR_ODP_PAGE_WAITS);
	paging->want.state = WEFT_ODP_STARTED;
	kref_get(&st->ref);
	weft_odp_queue(&paging->work);
	return true;
}

/**
 * weft_paging_end - nothing waits any more
 * @st: stream whose directions have both stopped for good
 *
 * Context: may sleep.
 */
void weft_paging_end(struct weft_stream *st)
{
	spin_lock_bh(&st->lock);
	st->tx.paging.muted = true;
	st->rx.paging.muted = true;
	spin_unlock_bh(&st->lock);
	weft_odp_forget(&st->tx.paging.want);
	weft_odp_forget(&st->rx.paging.want);
}

/* The stream may wait again. Context: as for weft_paging_end(). */
void weft_paging_renew(struct weft_stream *st)
{
	spin_lock_bh(&st->lock);
	st->tx.paging.muted = false;
	st->rx.paging.muted = false;
	spin_unlock_bh(&st->lock);
}
