/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Everything a peer or a local access can do wrong, and what follows from it:
 * Terminate fields, headers to attach, status of the work request.
 */
#ifndef WEFT_PROTO_FAULT_H
#define WEFT_PROTO_FAULT_H

#include "proto/env.h"

enum weft_fault {
	WEFT_FAULT_NONE,

	/* MPA, layer 2 type 0 */
	WEFT_FAULT_MPA_CLOSED,		/* 1: connection closed, reset, timed out */
	WEFT_FAULT_MPA_CRC,		/* 2 */
	WEFT_FAULT_MPA_MARKER,		/* 3: also an FPDU shorter than its header */
	WEFT_FAULT_MPA_START,		/* 4: invalid request or reply frame */
	WEFT_FAULT_MPA_LOCAL,		/* 5: local catastrophic, RFC 6581 */
	WEFT_FAULT_MPA_IRD,		/* 6: insufficient IRD */
	WEFT_FAULT_MPA_RTR,		/* 7: no matching RTR option */

	/* DDP tagged, 1/1 */
	WEFT_FAULT_TAGGED_STAG,
	WEFT_FAULT_TAGGED_BOUNDS,
	WEFT_FAULT_TAGGED_STREAM,
	WEFT_FAULT_TAGGED_WRAP,
	WEFT_FAULT_TAGGED_VERSION,

	/* DDP untagged, 1/2 */
	WEFT_FAULT_UNTAGGED_QN,
	WEFT_FAULT_UNTAGGED_NO_BUFFER,
	WEFT_FAULT_UNTAGGED_MSN,
	WEFT_FAULT_UNTAGGED_MO,
	WEFT_FAULT_UNTAGGED_TOO_LONG,
	WEFT_FAULT_UNTAGGED_VERSION,

	/* RDMAP remote protection, 0/1 */
	WEFT_FAULT_RDMAP_STAG,
	WEFT_FAULT_RDMAP_BOUNDS,
	WEFT_FAULT_RDMAP_ACCESS,
	WEFT_FAULT_RDMAP_STREAM,
	WEFT_FAULT_RDMAP_WRAP,
	WEFT_FAULT_RDMAP_INVALIDATE,
	WEFT_FAULT_RDMAP_PROTECTION,	/* ff */

	/* RDMAP remote operation, 0/2 */
	WEFT_FAULT_RDMAP_VERSION,
	WEFT_FAULT_RDMAP_OPCODE,
	WEFT_FAULT_RDMAP_CATASTROPHIC,	/* 07, also a misaligned atomic */
	WEFT_FAULT_RDMAP_GLOBAL,	/* 08 */
	WEFT_FAULT_RDMAP_OPERATION,	/* ff */

	/* our own side; sent as RDMAP local catastrophic, 0/0/0 */
	WEFT_FAULT_LOCAL_PROTECTION,	/* lkey, bounds or rights of an own buffer */
	WEFT_FAULT_LOCAL_LENGTH,
	WEFT_FAULT_LOCAL_QP_OP,		/* malformed work request, corrupt queue */
	WEFT_FAULT_LOCAL_BIND,
	WEFT_FAULT_LOCAL_CATASTROPHIC,

	/* nothing is sent for these; they only give a status */
	WEFT_FAULT_REMOTE_ACCESS,	/* learnt from a received Terminate */
	WEFT_FAULT_REMOTE_OPERATION,
	WEFT_FAULT_REMOTE_INVALID,
	WEFT_FAULT_BAD_RESPONSE,	/* to our request; what the peer is told says more */
	WEFT_FAULT_UNREACHABLE,		/* no connection in time, or no answer */
	WEFT_FAULT_NO_RECEIVE,		/* the peer had no receive for it, and was waited for */
	WEFT_FAULT_FLUSHED,
	WEFT_FAULT_STOPPED,		/* the stream takes no more segments */
	WEFT_FAULT_NOT_READY,		/* the segment is to be handed over again, later */

	WEFT_FAULT_COUNT
};

/* Values of enum ib_wc_status, which this room may not include. */
enum weft_status {
	WEFT_STATUS_SUCCESS		= 0,
	WEFT_STATUS_LOC_LEN		= 1,
	WEFT_STATUS_LOC_QP_OP		= 2,
	WEFT_STATUS_LOC_PROT		= 4,
	WEFT_STATUS_FLUSH		= 5,
	WEFT_STATUS_MW_BIND		= 6,
	WEFT_STATUS_BAD_RESP		= 7,
	WEFT_STATUS_LOC_ACCESS		= 8,
	WEFT_STATUS_REM_INV_REQ		= 9,
	WEFT_STATUS_REM_ACCESS		= 10,
	WEFT_STATUS_REM_OP		= 11,
	WEFT_STATUS_RETRY_EXC		= 12,
	WEFT_STATUS_RNR_RETRY_EXC	= 13,
	WEFT_STATUS_FATAL		= 19,
	WEFT_STATUS_GENERAL		= 21,
};

/* Which headers of the offending segment a Terminate carries. */
enum weft_fault_headers {
	WEFT_HDR_NONE		= 0,
	WEFT_HDR_DDP		= 1 << 0,	/* M and D */
	WEFT_HDR_READ_REQ	= 1 << 1,	/* R, if the segment was a Read Request */
};

/**
 * struct weft_fault_info - a row of the fault table
 * @name: for logs and tests
 * @layer, @etype, @ecode: Terminate fields
 * @headers: enum weft_fault_headers
 * @terminate: a Terminate is due
 * @status: enum weft_status of the local work request it hits
 */
struct weft_fault_info {
	const char *name;
	u8 layer;
	u8 etype;
	u8 ecode;
	u8 headers;
	bool terminate;
	u8 status;
};

const struct weft_fault_info *weft_fault_info(enum weft_fault fault);
enum weft_fault weft_fault_of_terminate(u8 layer, u8 etype, u8 ecode);
enum weft_fault weft_fault_from_terminate(u8 layer, u8 etype, u8 ecode);

#endif
