// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two streams of this host: a segment goes from the sender's memory to the receiver's, in the
 * context of the sender, with the receiver's socket locked. That lock is the claim of rx whatever
 * the way a segment comes, so the receiver runs the code that it runs for TCP.
 *
 * The sender holds its tx claim and no socket lock, so it may wait for that lock. It never runs
 * tx of the peer from here: that comes when it has let its own claim go.
 */
#include "engine/path/loopback.h"

#include <linux/build_bug.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/stddef.h>

#include "base/copy.h"
#include "engine/ops/op.h"
#include "engine/ops/rnr.h"
#include "engine/path/rx.h"
#include "engine/state/fsm.h"
#include "engine/state/loopback.h"
#include "mem/access.h"
#include "net/mpa_rx.h"
#include "ring/cq.h"

static_assert(offsetof(struct weft_loopback, end) == 0, "it is freed by its end");

/* --- the two ends --- */

/**
 * weft_loopback_start - let the stream find a peer on this host
 * @st: stream that was given its connection, and has read nothing yet; @lifecycle held
 *
 * Without memory it goes by TCP. Context: process.
 */
void weft_loopback_start(struct weft_stream *st) __must_hold(&st->lifecycle)
{
	struct weft_loopback *lb;

	lockdep_assert_held(&st->lifecycle);
	if (!weft_loopback_may_find(st->sock, READ_ONCE(st->index->loopback)))
		return;
	lb = kzalloc(sizeof(*lb), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!lb)
		return;
	st->loopback = lb;
	weft_loopback_join(&lb->end, st->sock, st);
}

/* A receive was asked for on behalf of a message that has not gone by TCP: it will not come. */
static void withdraw(struct weft_loopback_end *end, u32 pos)
{
	struct weft_stream *to;
	bool slow;

	if (!weft_loopback_enter(end))
		return;
	to = end->owner;
	slow = weft_loopback_lock(end);
	to->loopback->peer_waits = false;
	if (to->rx.sock.pos == pos && weft_mpa_rx_idle(&to->rx.sock) && weft_rnr_cancel(to))
		to->hooks->want_rx(to);
	weft_loopback_unlock(end, slow);
	weft_loopback_exit(end);
}

/**
 * weft_loopback_end - the peer cannot reach the stream any more, nor the stream its peer
 * @st: stream whose rx is stopped; tx claim and @lifecycle held
 *
 * Context: process, may sleep.
 */
void weft_loopback_end(struct weft_stream *st) __must_hold(&st->lifecycle)
{
	struct weft_loopback *lb = st->loopback;
	struct weft_loopback_end *peer;
	bool slow;

	lockdep_assert_held(&st->lifecycle);
	if (!lb)
		return;
	weft_loopback_leave(&lb->end);
	peer = weft_loopback_peer(&lb->end);
	slow = weft_loopback_lock(&lb->end);
	weft_loopback_resume(st);
	st->loopback = NULL;
	weft_loopback_unlock(&lb->end, slow);
	if (peer) {
		withdraw(peer, st->tx.sock.pushed);
		weft_loopback_put(peer);
	}
	if (lb->bounce)
		__free_page(lb->bounce);
	weft_loopback_put(&lb->end);
}

/**
 * weft_loopback_progress - bytes that went without TCP
 * @st: stream, @lifecycle held
 * @received: of the peer; else by this end
 *
 * Context: process.
 */
u64 weft_loopback_progress(const struct weft_stream *st, bool received)
{
	const struct weft_loopback *lb = st->loopback;

	if (!lb)
		return 0;
	return received ? READ_ONCE(lb->taken) : READ_ONCE(lb->handed);
}

/* --- the payload --- */

static void add_piece(struct weft_loopback_seg *seg, const u8 *at, u32 len)
{
	seg->piece[seg->count++] = (struct weft_ulpdu_piece){ .at = at, .len = len };
	seg->payload += len;
}

/*
 * Memory that is paged on demand is locked while it is read, and what it is copied to may be, too:
 * so it goes through a page. Nothing may sleep here.
 */
static enum weft_fault add_paged(struct weft_loopback_seg *seg, const struct weft_mem_ref *ref)
{
	struct weft_loopback *lb = seg->st->loopback;
	u32 len = min_t(u32, ref->len, PAGE_SIZE);
	u32 at, row;
	u8 *to;

	if (!lb->bounce)
		lb->bounce = alloc_page(GFP_NOWAIT | __GFP_NOWARN);
	if (!lb->bounce) {
		seg->st->tx.sock.no_memory = true;
		return WEFT_FAULT_LOCAL_CATASTROPHIC;
	}
	to = page_address(lb->bounce);
	for (at = 0; at < len; at += row) {
		const u8 *from = weft_mem_span(ref, at, &row);

		row = min(row, len - at);
		weft_copy(to + at, from, row);
	}
	add_piece(seg, to, len);
	return WEFT_FAULT_NONE;
}

/**
 * weft_loopback_add - a weft_mem_copy_fn: some of what is granted becomes payload
 * @arg: the segment, without payload
 * @done: not looked at
 * @ref: memory that stays pinned until the segment has been handed over
 */
enum weft_fault weft_loopback_add(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	struct weft_loopback_seg *seg = arg;
	u32 at, len;

	if (unlikely(weft_mem_is_paged(ref)))
		return add_paged(seg, ref);
	for (at = 0; at < ref->len && seg->count < WEFT_LOOPBACK_PIECES; at += len) {
		const u8 *from = weft_mem_span(ref, at, &len);

		add_piece(seg, from, len);
	}
	return WEFT_FAULT_NONE;
}

/* --- handing over --- */

/* It has to have read all that came by TCP, and to hold nothing back. Socket lock held. */
static bool may_take(const struct weft_stream *to, u32 pos)
{
	enum weft_qp_state state = READ_ONCE(to->state);
	const struct weft_rx *rx = &to->rx;

	return (state == WEFT_QP_RTS || state == WEFT_QP_CLOSING) && rx->sock.pos == pos &&
	       !weft_mpa_rx_is_stopped(&rx->sock) && weft_mpa_rx_idle(&rx->sock) && !rx->held.busy;
}

/*
 * A request that the receiver refuses, or finds it in error, is not complete: as on any other
 * reliable transport it ends with the reason, which comes by TCP, or is flushed. Only one that is
 * to be answered counts as sent, since the Terminate names it as such. Socket lock of the receiver
 * held.
 */
static enum weft_handed take(struct weft_stream *to, const struct weft_loopback_seg *seg, u32 pos,
			     struct weft_cq_batch *batch)
{
	struct weft_rx *rx = &to->rx;
	enum weft_fault fault;

	rx->tx_needed = false;
	/*
	 * A message that finds no receive goes by TCP: it is complete when TCP has it, and waits
	 * in the socket.
	 */
	if (to->rnr_waits && weft_rnr_holds(to))
		return WEFT_HANDED_REFUSED;
	if (!may_take(to, pos)) {
		to->loopback->peer_waits = true;
		return WEFT_HANDED_WAITS;
	}
	fault = weft_rx_take(to, &seg->u, batch);
	if (fault == WEFT_FAULT_NOT_READY && to->rnr_waits)
		return WEFT_HANDED_REFUSED;
	if (fault == WEFT_FAULT_NOT_READY) {
		to->loopback->peer_waits = true;
		if (!weft_paging_start(to, &rx->paging))
			to->hooks->want_rx(to);
		return WEFT_HANDED_WAITS;
	}
	if (fault != WEFT_FAULT_NONE && !seg->answered)
		return WEFT_HANDED_WAITS;
	if (unlikely(rx->held.busy))
		to->hooks->want_rx(to);
	WRITE_ONCE(to->loopback->taken, to->loopback->taken + seg->u.len);
	return WEFT_HANDED_TAKEN;
}

static void describe_handed(struct weft_loopback_seg *seg, u32 head_len)
{
	struct weft_ulpdu *u = &seg->u;

	u->len = head_len + seg->payload;
	u->head_len = head_len;
	u->skb = NULL;
	u->pages = NULL;
	u->pieces = seg->piece;
	u->pieces_at = head_len;
	/* Of the header, what is read is @head. */
	u->linear = seg->count == 1 ? seg->piece[0].at - head_len : NULL;
}

/**
 * weft_loopback_hand - hand a segment to the peer
 * @seg: all filled in but what describes the payload
 * @head_len: bytes of the DDP and RDMAP headers
 *
 * Context: process, tx claim of the sender held, the peer entered.
 */
enum weft_handed weft_loopback_hand(struct weft_loopback_seg *seg, u32 head_len)
{
	struct weft_stream *st = seg->st;
	struct weft_loopback *lb = st->loopback;
	struct weft_loopback_end *end = weft_loopback_peer(&lb->end);
	struct weft_stream *to = end->owner;
	struct weft_cq_batch batch;
	enum weft_handed handed;
	bool slow, has_tx;

	describe_handed(seg, head_len);
	batch.count = 0;
	non_block_end(); /* the one wait with a region pinned: see decision 24 */
	slow = weft_loopback_lock(end);
	handed = take(to, seg, st->tx.sock.pos, &batch);
	has_tx = to->rx.tx_needed;
	weft_loopback_unlock(end, slow);
	non_block_start();
	weft_cq_batch_fire(&batch);
	/* A kernel consumer's context does not do a process's work, which may wait for memory. */
	if (has_tx && (to->cfg.kernel || !st->cfg.kernel))
		lb->peer_runs = true;
	else if (has_tx)
		to->hooks->want_tx(to);
	if (handed != WEFT_HANDED_TAKEN)
		return handed;
	lb->batch += max(seg->payload, WEFT_LOOPBACK_SEGMENT_COST);
	WRITE_ONCE(lb->handed, lb->handed + seg->u.len);
	weft_count_add2(st->cfg.counters, WEFT_CTR_LOOPBACK_TX_SEGS, 1, WEFT_CTR_LOOPBACK_TX_BYTES,
			seg->payload);
	return handed;
}
