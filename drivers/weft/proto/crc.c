// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * CRC32c for hosted builds: tests and fuzzers. The kernel brings its own, faster
 * one, so this file is empty there. RFC 5044, 4.4; RFC 3720, 12.1.
 */
#include "proto/crc.h"

#ifndef __KERNEL__

#define CRC32C_REFLECTED	0x82f63b78U

/*
 * The kernel's contract: neither seed nor final inversion happen in here. Byte by byte and
 * bit by bit: a second opinion has to be obvious, not fast.
 */
u32 crc32c(u32 crc, const void *data, size_t len)
{
	const u8 *byte = data;
	size_t i;
	u32 bit;

	for (i = 0; i < len; i++) {
		crc ^= byte[i];
		for (bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (CRC32C_REFLECTED & -(crc & 1));
	}
	return crc;
}

#endif
