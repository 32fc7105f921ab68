/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Contiguous bytes of a socket buffer, which can be read in place: in its head, in a
 * fragment, or in fragments that follow each other in memory.
 */
#ifndef WEFT_NET_SKB_SPAN_H
#define WEFT_NET_SKB_SPAN_H

#include <linux/skbuff.h>
#include <linux/types.h>

static inline const u8 *weft_skb_frag(const struct sk_buff *skb, u32 i)
{
	return skb_frag_address_safe(&skb_shinfo(skb)->frags[i]);
}

/*
 * How many bytes are contiguous from @data, the start of fragment @i, up to @want? TCP makes
 * a fragment of each page it is handed, also where the pages are contiguous.
 */
static inline u32 weft_skb_frags_span(const struct sk_buff *skb, u32 i, const u8 *data, u32 want)
{
	u32 span = skb_frag_size(&skb_shinfo(skb)->frags[i]);

	while (span < want && ++i < skb_shinfo(skb)->nr_frags &&
	       weft_skb_frag(skb, i) == data + span)
		span += skb_frag_size(&skb_shinfo(skb)->frags[i]);
	return span;
}

/* weft_skb_span() for bytes in fragments. */
static inline const u8 *weft_skb_span_in_frags(const struct sk_buff *skb, u32 offset, u32 want,
					       u32 *span)
{
	u32 i;

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		u32 size = skb_frag_size(&skb_shinfo(skb)->frags[i]);
		const u8 *data;

		if (offset >= size) {
			offset -= size;
			continue;
		}
		data = weft_skb_frag(skb, i);
		if (!data)
			return NULL;
		*span = weft_skb_frags_span(skb, i, data, offset + want) - offset;
		return data + offset;
	}
	return NULL;
}

/* The buffer of a fragment list that holds @offset, which becomes relative to it. */
static inline const struct sk_buff *weft_skb_part(const struct sk_buff *skb, u32 *offset)
{
	const struct sk_buff *part;
	u32 own;

	if (!skb_has_frag_list(skb))
		return skb;
	own = skb_pagelen(skb);
	if (*offset < own)
		return skb;
	*offset -= own;
	skb_walk_frags(skb, part) {
		if (*offset < part->len)
			return part;
		*offset -= part->len;
	}
	return NULL;
}

/**
 * weft_skb_span - the address of bytes of a socket buffer
 * @skb: the buffer
 * @offset: of the first of them
 * @want: how many are wanted in one piece
 * @span: set to how many are contiguous; more than @want are not looked for
 *
 * Context: any. Return: the address of the first, or NULL if it is not mapped.
 */
static __always_inline const u8 *weft_skb_span(const struct sk_buff *skb, u32 offset, u32 want,
					       u32 *span)
{
	const struct sk_buff *part = weft_skb_part(skb, &offset);
	u32 head;

	*span = 0;
	if (!part)
		return NULL;
	head = skb_headlen(part);
	if (offset >= head)
		return weft_skb_span_in_frags(part, offset - head, want, span);
	*span = head - offset;
	return part->data + offset;
}

#endif
