/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Running CRC32c of an FPDU (RFC 5044, 4.2), seed and final inversion included.
 */
#ifndef WEFT_PROTO_CRC_H
#define WEFT_PROTO_CRC_H

#include "proto/env.h"

#ifdef __KERNEL__
#include <linux/crc32c.h>
#else
u32 crc32c(u32 crc, const void *data, size_t len);
#endif

#define WEFT_CRC_SEED	0xffffffffU

static inline u32 weft_crc_update(u32 crc, const void *data, u32 len)
{
	return crc32c(crc, data, len);
}

/* Store the finished CRC in the order of the wire: least significant byte first. */
static inline void weft_crc_store(u32 crc, void *out)
{
	put_unaligned_le32(~crc, out);
}

static inline bool weft_crc_matches(u32 crc, const void *wire)
{
	return get_unaligned_le32(wire) == (u32)~crc;
}

#endif
