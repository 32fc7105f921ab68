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
#include <linux/uio.h>
#include <asm/barrier.h>

#include "base/compat.h"
#include "base/copy.h"
#include "proto/hot.h"

static int copy_out(const struct weft_ulpdu *u, u32 offset, u32 len, struct iov_iter *to)
{
	if (u->linear)
		return copy_to_iter(u->linear + offset, len, to) == len ? 0 : -EFAULT;
	if (u->skb)
		return skb_copy_datagram_iter(u->skb, u->skb_offset + offset, to, len);
	while (len) {
		u32 at = offset_in_page(offset);
		u32 n = min_t(u32, len, PAGE_SIZE - at);

		if (copy_to_iter(page_address(u->pages[offset / PAGE_SIZE]) + at, n, to) != n)
			return -EFAULT;
		offset += n;
		len -= n;
	}
	return 0;
}

/* The size of the largest aligned word, up to @len, that ends at @end. */
static u32 last_word(unsigned long end, u32 len)
{
	u32 word = sizeof(u64);

	while (word > len || end & (word - 1))
		word /= 2;
	return word;
}

/**
 * weft_ulpdu_copy - place a part of a ULPDU
 * @u: the ULPDU, during the callback that handed it over
 * @offset: first byte, counted from the DDP header
 * @len: bytes
 * @to: kernel memory (bvec or kvec) with room for them, advanced
 *
 * The last aligned word is written last: programs poll it to learn that the rest is
 * there, and a memcpy() may go backwards. Elements of @to end at word boundaries, but
 * for the last one.
 *
 * Context: any. Return: 0, or -EFAULT if not all were copied.
 */
int weft_ulpdu_copy(const struct weft_ulpdu *u, u32 offset, u32 len, struct iov_iter *to)
{
	unsigned long next;
	u32 tail;
	int ret;

	if (WARN_ON_ONCE(offset > u->len || len > u->len - offset))
		return -EFAULT;
	if (!len)
		return 0;
	next = iov_iter_is_kvec(to) ? (unsigned long)to->kvec->iov_base : to->bvec->bv_offset;
	tail = last_word(next + to->iov_offset + len, len);
	ret = copy_out(u, offset, len - tail, to);
	if (ret)
		return ret;
	smp_wmb(); /* pairs with whatever the poller has behind its last look */
	return copy_out(u, offset + len - tail, tail, to);
}

/* An aligned word in one store. */
static void store_word(u8 *to, const u8 *from, u32 size)
{
	if (size == sizeof(u64))
		WRITE_ONCE(*(u64 *)to, get_unaligned((const u64 *)from));
	else if (size == sizeof(u32))
		WRITE_ONCE(*(u32 *)to, get_unaligned((const u32 *)from));
	else if (size == sizeof(u16))
		WRITE_ONCE(*(u16 *)to, get_unaligned((const u16 *)from));
	else
		WRITE_ONCE(*to, *from);
}

/**
 * weft_ulpdu_copy_flat - place a part of a ULPDU in memory that is mapped
 * @u: the ULPDU, during the callback that handed it over
 * @offset: first byte, counted from the DDP header
 * @len: bytes
 * @to: where
 *
 * The last aligned word is written last, as with weft_ulpdu_copy().
 * Context: any. Return: 0, or -EFAULT if not all were copied.
 */
int weft_hot weft_ulpdu_copy_flat(const struct weft_ulpdu *u, u32 offset, u32 len, u8 *to)
{
	const u8 *from = u->linear + offset;
	struct kvec kvec = { .iov_base = to, .iov_len = len };
	struct iov_iter iter;
	u32 tail;

	if (!u->linear) {
		iov_iter_kvec(&iter, ITER_DEST, &kvec, 1, len);
		return weft_ulpdu_copy(u, offset, len, &iter);
	}
	if (WARN_ON_ONCE(offset > u->len || len > u->len - offset))
		return -EFAULT;
	if (!len)
		return 0;
	tail = last_word((unsigned long)to + len, len);
	len -= tail;
	weft_copy(to, from, len);
	smp_wmb(); /* as in weft_ulpdu_copy() */
	store_word(to + len, from + len, tail);
	return 0;
}
