/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * ULPDUs of one length that lie in a row, in FPDUs without markers.
 */
#ifndef WEFT_NET_ULPDUROW_H
#define WEFT_NET_ULPDUROW_H

#include <linux/minmax.h>
#include <linux/types.h>

#include "net/skbrow.h"
#include "proto/mpa_frame.h"

/**
 * struct weft_ulpdu_row - where they are
 * @first: octets of the first one
 * @stride: from each to the next
 * @len: octets of each
 * @count: how many
 *
 * Valid only during the callback that hands it over.
 */
struct weft_ulpdu_row {
	const u8 *first;
	u32 stride;
	u32 len;
	u32 count;
};

/**
 * weft_ulpdu_row_find - how many ULPDUs of a length come next?
 * @row: @len is given, the rest is filled in
 * @skb: socket buffer
 * @offset: of an FPDU in it
 * @avail: octets from there on
 *
 * Context: any. Return: false if there is none.
 */
static inline bool weft_ulpdu_row_find(struct weft_ulpdu_row *row, const struct sk_buff *skb,
				       u32 offset, u32 avail)
{
	const u8 *octets;
	u32 most;

	row->stride = weft_mpa_bare_len(row->len);
	row->count = 0;
	if (avail < row->stride)
		return false;
	octets = weft_skb_row(skb, offset, avail, &most);
	if (!octets)
		return false;
	row->first = octets + WEFT_MPA_LEN_OCTETS;
	for (most = min(most, avail) / row->stride; row->count < most; row->count++) {
		if (get_unaligned_be16(octets) != row->len)
			break;
		octets += row->stride;
	}
	return row->count;
}

#endif
