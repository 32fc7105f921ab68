// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Placing the payload of a received ULPDU.
 */
#include "net/ulpdu_copy.h"

#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/string.h>
#include <asm/barrier.h>

#include "base/compat.h"
#include "base/copy.h"
#include "proto/hot.h"

/* @len bytes from @offset of the payload, all of which is there. */
static void copy_pieces(const struct weft_ulpdu_piece *piece, u32 offset, u32 len, u8 *to)
{
	for (; offset >= piece->len; piece++)
		offset -= piece->len;
	for (; len; piece++) {
		u32 n = min(len, piece->len - offset);

		weft_copy(to, piece->at + offset, n);
		offset = 0;
		to += n;
		len -= n;
	}
}

/* From a ULPDU that is not contiguous. */
static int copy_scattered(const struct weft_ulpdu *u, u32 offset, u32 len, u8 *to)
{
	if (u->skb)
		return skb_copy_bits(u->skb, u->skb_offset + offset, to, len);
	if (u->pieces) {
		copy_pieces(u->pieces, offset - u->pieces_at, len, to);
		return 0;
	}
	while (len) {
		u32 at = offset_in_page(offset);
		u32 n = min_t(u32, len, PAGE_SIZE - at);

		weft_copy(to, (u8 *)page_address(u->pages[offset / PAGE_SIZE]) + at, n);
		offset += n;
		to += n;
		len -= n;
	}
	return 0;
}

/**
 * weft_ulpdu_copy - place a part of a ULPDU
 * @u: the ULPDU, during the callback that handed it over
 * @offset: first byte, counted from the DDP header
 * @len: bytes
 * @to: where
 *
 * The last aligned word is written last: programs poll it to learn that the rest is there, and a
 * memcpy() may go backwards.
 *
 * Context: any. Return: 0, or -EFAULT if not all were copied.
 */
int weft_hot weft_ulpdu_copy(const struct weft_ulpdu *u, u32 offset, u32 len, u8 *to)
{
	const u8 *end = to + len;
	u32 tail = sizeof(u64);
	u8 word[sizeof(u64)];
	const u8 *last = word;

	if (WARN_ON_ONCE(offset > u->len || len > u->len - offset))
		return -EFAULT;
	if (!len)
		return 0;
	/* The largest word that fits, and is aligned. */
	while (tail > len || (unsigned long)end & (tail - 1))
		tail /= 2;
	len -= tail;
	if (u->linear) {
		weft_copy(to, u->linear + offset, len);
		last = u->linear + offset + len;
	} else if (copy_scattered(u, offset, len, to) ||
		   copy_scattered(u, offset + len, tail, word)) {
		return -EFAULT;
	}
	smp_wmb(); /* pairs with whatever the poller has behind its last look */
	to += len;
	if (tail == sizeof(u64))
		WRITE_ONCE(*(u64 *)to, get_unaligned((const u64 *)last));
	else if (tail == sizeof(u32))
		WRITE_ONCE(*(u32 *)to, get_unaligned((const u32 *)last));
	else if (tail == sizeof(u16))
		WRITE_ONCE(*(u16 *)to, get_unaligned((const u16 *)last));
	else
		WRITE_ONCE(*to, *last);
	return 0;
}
