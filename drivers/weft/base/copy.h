/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copies. memcpy() of some dozen bytes, of a length that the compiler does not know,
 * is a call and, as a rule, a string instruction, which is slow to start; of more, it
 * does not care where lines begin.
 */
#ifndef WEFT_BASE_COPY_H
#define WEFT_BASE_COPY_H

#include <linux/string.h>
#include <linux/types.h>

#define WEFT_COPY_SHORT 256U

/* weft_copy() of more than WEFT_COPY_SHORT bytes. */
void weft_copy_long(u8 *to, const u8 *from, u32 len);

/* weft_copy() of few bytes. */
static __always_inline void weft_copy_short(u8 *to, const u8 *from, u32 len)
{
	for (; len >= 32; len -= 32, to += 32, from += 32)
		memcpy(to, from, 32); /* of known length: some loads and stores */
	for (; len >= 8; len -= 8, to += 8, from += 8)
		memcpy(to, from, 8);
	if (len >= 4) {
		memcpy(to, from, 4);
		len -= 4;
		to += 4;
		from += 4;
	}
	while (len--)
		*to++ = *from++;
}

/**
 * weft_copy - copy bytes that do not overlap
 * @to: where to
 * @from: where from
 * @len: how many
 *
 * Context: any.
 */
static __always_inline void weft_copy(u8 *to, const u8 *from, u32 len)
{
	if (len > WEFT_COPY_SHORT)
		weft_copy_long(to, from, len);
	else
		weft_copy_short(to, from, len);
}

#endif
