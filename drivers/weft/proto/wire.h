/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Sizes, offsets and bit names of everything on the wire; no decisions.
 * RFC 5044 (MPA), 5041 (DDP), 5040 (RDMAP), 6581 (enhanced start), 7306.
 */
#ifndef WEFT_PROTO_WIRE_H
#define WEFT_PROTO_WIRE_H

#include "proto/env.h"

/* MPA start frames: RFC 5044, 7.1; RFC 6581, 4. */
#define WEFT_MPA_KEY_LEN	16
#define WEFT_MPA_KEY_REQ	"MPA ID Req Frame"
#define WEFT_MPA_KEY_REP	"MPA ID Rep Frame"
#define WEFT_MPA_START_LEN	20	/* key, flags, revision, PD_Length */
#define WEFT_MPA_FLAGS_AT	16
#define WEFT_MPA_REV_AT		17
#define WEFT_MPA_PDLEN_AT	18
#define WEFT_MPA_FLAG_M		0x80
#define WEFT_MPA_FLAG_C		0x40
#define WEFT_MPA_FLAG_R		0x20
#define WEFT_MPA_FLAG_S		0x10
#define WEFT_MPA_PD_MAX		512
#define WEFT_MPA_ENH_LEN	4
#define WEFT_MPA_ENH_A		0x8000	/* word 0: peer-to-peer model */
#define WEFT_MPA_ENH_B		0x4000	/* word 0: zero-length Send */
#define WEFT_MPA_ENH_C		0x8000	/* word 1: zero-length Write */
#define WEFT_MPA_ENH_D		0x4000	/* word 1: zero-length Read */
#define WEFT_MPA_ENH_DEPTH	0x3fff

/* FPDU: RFC 5044, 4. */
#define WEFT_MPA_LEN_BYTES	2
#define WEFT_MPA_CRC_BYTES	4
#define WEFT_MPA_MARKER_BYTES	4
#define WEFT_MPA_MARKER_EVERY	512
#define WEFT_MPA_MULPDU_MIN	128
#define WEFT_MPA_MULPDU_MAX	64768

/* DDP: RFC 5041, 4. */
#define WEFT_DDP_TAGGED		0x80
#define WEFT_DDP_LAST		0x40
#define WEFT_DDP_DV_MASK	0x03
#define WEFT_DDP_DV		0x01
#define WEFT_DDP_TAGGED_LEN	14
#define WEFT_DDP_UNTAGGED_LEN	18
#define WEFT_DDP_QUEUES		4
#define WEFT_QN_SEND		0
#define WEFT_QN_REQUEST		1
#define WEFT_QN_TERMINATE	2
#define WEFT_QN_ATOMIC		3	/* Atomic Response, RFC 7306, 4 */

/* RDMAP: RFC 5040, 4; RFC 7306, 4. */
#define WEFT_RDMAP_RV_MASK	0xc0
#define WEFT_RDMAP_RV		0x40
#define WEFT_RDMAP_OP_MASK	0x0f

enum weft_rdmap_opcode {
	WEFT_OP_WRITE		= 0,
	WEFT_OP_READ_REQ	= 1,
	WEFT_OP_READ_RESP	= 2,
	WEFT_OP_SEND		= 3,
	WEFT_OP_SEND_INV	= 4,
	WEFT_OP_SEND_SE		= 5,
	WEFT_OP_SEND_SE_INV	= 6,
	WEFT_OP_TERMINATE	= 7,
	WEFT_OP_IMM		= 8,
	WEFT_OP_IMM_SE		= 9,
	WEFT_OP_ATOMIC_REQ	= 10,
	WEFT_OP_ATOMIC_RESP	= 11,
	WEFT_OP_SEND_IMM	= 12,	/* of directly connected QPs, proto/direct.h */
	WEFT_OP_SEND_SE_IMM	= 13,
	WEFT_OP_COUNT		= 16,
};

#define WEFT_READ_REQ_LEN	28
#define WEFT_ATOMIC_REQ_LEN	52
#define WEFT_ATOMIC_RESP_LEN	12
#define WEFT_IMM_LEN		8
#define WEFT_TERM_CTRL_LEN	4
#define WEFT_TERM_MAX_LEN	(WEFT_TERM_CTRL_LEN + 2 + WEFT_DDP_UNTAGGED_LEN + WEFT_READ_REQ_LEN)
#define WEFT_RDMAP_HDR_MAX	WEFT_ATOMIC_REQ_LEN
#define WEFT_ULPDU_HDR_MAX	(WEFT_DDP_UNTAGGED_LEN + WEFT_RDMAP_HDR_MAX)

#define WEFT_TERM_M		0x8000	/* low half of the control word */
#define WEFT_TERM_D		0x4000
#define WEFT_TERM_R		0x2000

static_assert(WEFT_TERM_MAX_LEN == 52);
static_assert(WEFT_ULPDU_HDR_MAX == 70);

#endif
