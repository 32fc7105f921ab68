// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How long an FPDU is made so that it stands in one segment.
 */
#include "net/txalign.h"

#include <linux/minmax.h>

#include "proto/mpa_frame.h"

#define FILL_FROM 256U /* octets of a rest of a segment that is worth filling */

/* RFC 5044, 4.5: what fills the segment, if the next FPDU would reach beyond its end. */
u32 weft_txsock_fill_segment(const struct weft_txsock *tx, u32 ulpdu_len)
{
	u32 room = tx->mss - tx->seg_fill;
	u32 wire = weft_mpa_bare_len(min(tx->mulpdu, ulpdu_len));

	if (wire <= room || wire < WEFT_ALIGN_FROM || room < FILL_FROM)
		return tx->mulpdu;
	return weft_mpa_mulpdu(room, false);
}
