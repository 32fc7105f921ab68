// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Placing the payload of a received ULPDU.
 */
#include "net/ulpdu.h"

#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/uio.h>

static int copy_pages(struct page **pages, u32 offset, u32 len, struct iov_iter *to)
{
	while (len) {
		u32 at = offset_in_page(offset);
		u32 n = min_t(u32, len, PAGE_SIZE - at);

		if (copy_to_iter(page_address(pages[offset / PAGE_SIZE]) + at, n, to) != n)
			return -EFAULT;
		offset += n;
		len -= n;
	}
	return 0;
}

/**
 * weft_ulpdu_copy - place a part of a ULPDU
 * @u: the ULPDU, during the callback that handed it over
 * @offset: first octet, counted from the DDP header
 * @len: octets
 * @to: kernel memory (bvec or kvec) with room for them, advanced
 *
 * Context: any. Return: 0, or -EFAULT if not all were copied.
 */
int weft_ulpdu_copy(const struct weft_ulpdu *u, u32 offset, u32 len, struct iov_iter *to)
{
	if (WARN_ON_ONCE(offset > u->len || len > u->len - offset))
		return -EFAULT;
	if (u->linear)
		return copy_to_iter(u->linear + offset, len, to) == len ? 0 : -EFAULT;
	if (u->skb)
		return skb_copy_datagram_iter(u->skb, u->skb_offset + offset, to, len);
	return copy_pages(u->pages, offset, len, to);
}
