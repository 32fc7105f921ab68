/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which FPDUs of a train stand in one segment.
 *
 * Alignment (RFC 5044, 5): TCP cuts a train at multiples of its MSS, counted
 * from the start of the socket buffer. FPDUs of exactly one MSS need nothing. One of
 * 512 octets or more that would straddle a cut is made to end there, if the rest allows it
 * (RFC 5044, 4.5: MULPDU may be reduced). If not it straddles, but no further than that the
 * next one can end the segment. Smaller ones just straddle. With markers, where MULPDU is not
 * reduced, TCP is made to start a new buffer instead.
 *
 * A buffer of TCP has so many fragments, and an FPDU that is lent is several: one that would
 * not be complete in it starts the next. Lent and copied FPDUs do not share a buffer:
 * what is lent is back when its buffer is gone.
 */
#ifndef WEFT_NET_TXALIGN_H
#define WEFT_NET_TXALIGN_H

#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>
#include <linux/types.h>

#include "net/txsock.h"

#define WEFT_ALIGN_FROM 512U /* octets of an FPDU that is worth aligning */

/* Most runs of an FPDU of @len octets; its end and the next one's start are one. */
static inline u32 weft_txalign_lent_runs(u32 len)
{
	return len / PAGE_SIZE + WEFT_LENT_EXTRA - 2;
}

/* May what is staged next not join the run in front of it? The train is not empty. */
static inline bool weft_txalign_parts(const struct weft_txsock *tx, u32 len)
{
	u32 first = max_t(u32, fls64(tx->eor), tx->head);

	if (tx->lending != !!(tx->lent & BIT_ULL(tx->count - 1)))
		return true;
	return tx->lending && tx->count - first + weft_txalign_lent_runs(len) > MAX_SKB_FRAGS;
}

/* A train of lent FPDUs is full buffers, at least one and about as much as others. */
static inline u32 weft_txalign_lent_goal(u32 mss, u32 goal)
{
	u32 fpdus = max_t(u32, MAX_SKB_FRAGS / weft_txalign_lent_runs(mss), 1);

	return roundup(goal, fpdus * mss);
}

/* TCP starts a new buffer behind what is staged, which is not nothing. */
static inline void weft_txalign_cut(struct weft_txsock *tx)
{
	tx->eor |= BIT_ULL(tx->count - 1);
	tx->seg_fill = 0;
}

/**
 * weft_txalign_place - plan the segments: may an FPDU follow without a cut in it?
 * @tx: the writer, between two FPDUs
 * @len: octets of the next one
 *
 * Context: process, tx claim.
 */
static inline void weft_txalign_place(struct weft_txsock *tx, u32 len)
{
	if (unlikely(tx->loan) && tx->count > tx->head && weft_txalign_parts(tx, len))
		weft_txalign_cut(tx);
	if (len >= WEFT_ALIGN_FROM) {
		tx->big = true;
		if (tx->markers && tx->seg_fill && tx->seg_fill + len > tx->mss &&
		    tx->count > tx->head)
			weft_txalign_cut(tx);
	}
	tx->seg_fill += len;
	if (tx->seg_fill >= tx->mss) /* as a rule not: divisions are slow */
		tx->seg_fill %= tx->mss;
}

#endif
