// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copies of more than some dozen bytes.
 */
#include "base/copy.h"

#define ROW	32U	/* what memcpy() writes in a row, where it has a loop for that */

/*
 * Staged bytes go to lines that another CPU has just read, and a line that is to be
 * written has to be fetched from there first. Stores are carried out in turn: a row of
 * them that reaches into the next line costs up to twice as much. memcpy() need not
 * care, and neither do headers, behind which payload stands anywhere.
 */
void weft_copy_long(u8 *to, const u8 *from, u32 len)
{
	u32 head = -(unsigned long)to & (ROW - 1);
	u32 middle = (len - head) & ~(ROW - 1);

	weft_copy_short(to, from, head);
	memcpy(to + head, from + head, middle);
	head += middle;
	weft_copy_short(to + head, from + head, len - head);
}
