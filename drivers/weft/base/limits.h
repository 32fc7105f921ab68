/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What one device can hold. Reported by query_device and enforced at creation,
 * so that every number here is true on both sides.
 */
#ifndef WEFT_BASE_LIMITS_H
#define WEFT_BASE_LIMITS_H

#define WEFT_MAX_SGE		32U
#define WEFT_MAX_INLINE		512U
#define WEFT_MAX_WR		(1U << 16)
#define WEFT_MAX_CQE		(1U << 22)
#define WEFT_MAX_QP		(1U << 16)
#define WEFT_MAX_CQ		(1U << 16)
#define WEFT_MAX_PD		(1U << 16)
#define WEFT_MAX_SRQ		(1U << 16)
#define WEFT_MAX_STAG		(1U << 24)	/* RFC 5040: 24-bit index, 8-bit key */
#define WEFT_MAX_MR_SIZE	(1ULL << 40)
#define WEFT_MAX_FAST_REG_PAGES 4096U
#define WEFT_MAX_MSG		0xffffffffU
#define WEFT_MAX_IRD		1024U
#define WEFT_MAX_ORD		1024U

#endif
