// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How long an FPDU is made so that it stands in one segment.
 */
#include "net/txalign.h"

#include <linux/minmax.h>

#include "proto/mpa_frame.h"

/**
 * weft_txsock_fill_segment - RFC 5044, 4.5: MULPDU where a segment has begun
 * @tx: the writer, between two FPDUs
 * @ulpdu_len: of the next one if MULPDU allowed it; more than MULPDU if others follow
 *
 * What would reach beyond the end of the segment fills it. What would leave a rest that cannot
 * be filled leaves one that can, and so does what has to straddle, in the next segment.
 *
 * Context: process, tx claim. Return: octets.
 */
u32 weft_txsock_fill_segment(const struct weft_txsock *tx, u32 ulpdu_len)
{
	u32 room = tx->mss - tx->seg_fill;
	u32 wire = weft_mpa_bare_len(min(tx->mulpdu, ulpdu_len));
	bool all = ulpdu_len <= tx->mulpdu;

	if (wire < WEFT_ALIGN_FROM)
		return tx->mulpdu;
	if (room < WEFT_FILL_FROM)
		return weft_mpa_mulpdu(room + tx->mss - WEFT_FILL_FROM, false);
	if (wire > room)
		return weft_mpa_mulpdu(room, false);
	if (!all && wire < room && room - wire < WEFT_FILL_FROM)
		return weft_mpa_mulpdu(room - WEFT_FILL_FROM, false);
	return tx->mulpdu;
}
