/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What one device can hold. Reported by query_device and enforced at creation,
 * so that every number here is true on both sides.
 */
#ifndef WEFT_BASE_LIMITS_H
#define WEFT_BASE_LIMITS_H

#define WEFT_MAX_SGE		32U
#define WEFT_MAX_INLINE		512U
#define WEFT_MAX_WR		65536U
#define WEFT_MAX_CQE		4194304U
#define WEFT_MAX_QP		65536U
#define WEFT_MAX_CQ		65536U
#define WEFT_MAX_PD		65536U
#define WEFT_MAX_SRQ		65536U
#define WEFT_MAX_STAG		16777215U	/* 24-bit index but for 0; 8-bit key */
#define WEFT_MAX_MR_SIZE	0x10000000000ULL
#define WEFT_MAX_FAST_REG_PAGES 4096U
#define WEFT_MAX_MSG		0xffffffffU
#define WEFT_MAX_IRD		1024U
#define WEFT_MAX_ORD		1024U

#endif
