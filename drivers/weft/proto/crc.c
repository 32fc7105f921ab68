// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * CRC32c for hosted builds: tests and fuzzers. The kernel brings its own, faster
 * one, so this file is empty there. RFC 5044, 4.4; RFC 3720, 12.1.
 */
#include "proto/crc.h"

#ifndef __KERNEL__

#define CRC32C_REFLECTED	0x82f63b78U

/* Octet by octet and bit by bit: a second opinion has to be obvious, not fast. */
static u32 crc32c_octet(u32 crc, u8 octet)
{
	u32 bit;

	crc ^= octet;
	for (bit = 0; bit < 8; bit++)
		crc = (crc >> 1) ^ (CRC32C_REFLECTED & -(crc & 1));
	return crc;
}

/* The kernel's contract: neither seed nor final inversion happen in here. */
u32 crc32c(u32 crc, const void *data, size_t len)
{
	const u8 *octet = data;
	size_t i;

	for (i = 0; i < len; i++)
		crc = crc32c_octet(crc, octet[i]);
	return crc;
}

#endif
