/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A received ULPDU: whole, its CRC checked, free of markers and padding, in the
 * memory that TCP received it in.
 */
#ifndef WEFT_NET_ULPDU_COPY_H
#define WEFT_NET_ULPDU_COPY_H

#include <linux/types.h>

struct page;
struct sk_buff;

/* Longest DDP and RDMAP header: untagged DDP with an Atomic Request. */
#define WEFT_ULPDU_HEAD	72U

/* Bytes in memory. */
struct weft_ulpdu_piece {
	const u8 *at;
	u32 len;
};

/**
 * struct weft_ulpdu - one DDP segment as received
 * @len: bytes
 * @head_len: min(@len, WEFT_ULPDU_HEAD)
 * @head: linear copy of its first bytes
 * @linear: all of it, when it is contiguous, else NULL
 * @skb: socket buffer that holds all of it, or NULL
 * @skb_offset: where it starts in @skb
 * @pages: reassembled copy from the first byte of the first page on, when it
 *	spanned socket buffers or held markers; NULL when @skb is set
 * @pieces: where the payload is if the sender is on this host; looked at if there is neither
 *	@linear nor @skb
 * @pieces_at: bytes of the headers in front of it
 *
 * Valid only during the callback that hands it over.
 */
struct weft_ulpdu {
	u32 len;
	u32 head_len;
	u8 head[WEFT_ULPDU_HEAD];
	const u8 *linear;
	struct sk_buff *skb;
	u32 skb_offset;
	struct page **pages;
	const struct weft_ulpdu_piece *pieces;
	u32 pieces_at;
};

int weft_ulpdu_copy(const struct weft_ulpdu *u, u32 offset, u32 len, u8 *to);

#endif
