// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The one table of faults: what a Terminate says about each, which headers it
 * carries, and how the work request that is hit completes. RFC 5040, 4.8;
 * RFC 5041, 7.2; RFC 5044, 8; RFC 6581, 8.
 */
#include "proto/fault.h"

#define LAYER_RDMAP		0
#define LAYER_DDP		1
#define LAYER_MPA		2

#define ET_LOCAL		0
#define ET_PROTECTION		1
#define ET_OPERATION		2
#define ET_TAGGED		1
#define ET_UNTAGGED		2

#define ROW(_name, _layer, _etype, _ecode, _headers, _terminate, _status)	\
	[WEFT_FAULT_##_name] = {						\
		.name		= #_name,					\
		.layer		= (_layer),					\
		.etype		= (_etype),					\
		.ecode		= (_ecode),					\
		.headers	= (_headers),					\
		.terminate	= (_terminate),					\
		.status		= WEFT_STATUS_##_status,			\
	}

#define MPA(name, ecode, status) ROW(name, LAYER_MPA, 0, ecode, WEFT_HDR_NONE, true, status)
#define TAGGED(name, ecode, status) \
	ROW(name, LAYER_DDP, ET_TAGGED, ecode, WEFT_HDR_DDP, true, status)
#define UNTAGGED(name, ecode, status) \
	ROW(name, LAYER_DDP, ET_UNTAGGED, ecode, WEFT_HDR_DDP, true, status)
#define PROTECTION(name, ecode) \
	ROW(name, LAYER_RDMAP, ET_PROTECTION, ecode, WEFT_HDR_DDP | WEFT_HDR_READ_REQ, true, \
	    REM_ACCESS)
#define OPERATION(name, ecode, status) \
	ROW(name, LAYER_RDMAP, ET_OPERATION, ecode, WEFT_HDR_DDP, true, status)
#define LOCAL(name, status) ROW(name, LAYER_RDMAP, ET_LOCAL, 0, WEFT_HDR_NONE, true, status)
#define SILENT(name, status) ROW(name, 0, 0, 0, WEFT_HDR_NONE, false, status)

static const struct weft_fault_info faults[WEFT_FAULT_COUNT] = {
	SILENT(NONE, SUCCESS),

	/* no peer is left to read it, or it comes before there are FPDUs */
	ROW(MPA_CLOSED, LAYER_MPA, 0, 0x01, WEFT_HDR_NONE, false, FLUSH),
	MPA(MPA_CRC, 0x02, FLUSH),
	MPA(MPA_MARKER, 0x03, FLUSH),
	ROW(MPA_START, LAYER_MPA, 0, 0x04, WEFT_HDR_NONE, false, FLUSH),
	MPA(MPA_LOCAL, 0x05, FATAL),
	MPA(MPA_IRD, 0x06, FLUSH),
	MPA(MPA_RTR, 0x07, FLUSH),

	TAGGED(TAGGED_STAG, 0x00, REM_ACCESS),
	TAGGED(TAGGED_BOUNDS, 0x01, REM_ACCESS),
	TAGGED(TAGGED_STREAM, 0x02, REM_ACCESS),
	TAGGED(TAGGED_WRAP, 0x03, REM_ACCESS),
	TAGGED(TAGGED_VERSION, 0x04, BAD_RESP),

	UNTAGGED(UNTAGGED_QN, 0x01, BAD_RESP),
	UNTAGGED(UNTAGGED_NO_BUFFER, 0x02, REM_OP),
	UNTAGGED(UNTAGGED_MSN, 0x03, BAD_RESP),
	UNTAGGED(UNTAGGED_MO, 0x04, BAD_RESP),
	UNTAGGED(UNTAGGED_TOO_LONG, 0x05, LOC_LEN),
	UNTAGGED(UNTAGGED_VERSION, 0x06, BAD_RESP),

	PROTECTION(RDMAP_STAG, 0x00),
	PROTECTION(RDMAP_BOUNDS, 0x01),
	PROTECTION(RDMAP_ACCESS, 0x02),
	PROTECTION(RDMAP_STREAM, 0x03),
	PROTECTION(RDMAP_WRAP, 0x04),
	PROTECTION(RDMAP_INVALIDATE, 0x09),
	PROTECTION(RDMAP_PROTECTION, 0xff),

	OPERATION(RDMAP_VERSION, 0x05, BAD_RESP),
	OPERATION(RDMAP_OPCODE, 0x06, BAD_RESP),
	OPERATION(RDMAP_CATASTROPHIC, 0x07, REM_OP),
	OPERATION(RDMAP_GLOBAL, 0x08, REM_OP),
	OPERATION(RDMAP_OPERATION, 0xff, BAD_RESP),

	LOCAL(LOCAL_PROTECTION, LOC_PROT),
	LOCAL(LOCAL_LENGTH, LOC_LEN),
	LOCAL(LOCAL_QP_OP, LOC_QP_OP),
	LOCAL(LOCAL_BIND, MW_BIND),
	LOCAL(LOCAL_CATASTROPHIC, FATAL),

	SILENT(REMOTE_ACCESS, REM_ACCESS),
	SILENT(REMOTE_OPERATION, REM_OP),
	SILENT(REMOTE_INVALID, REM_INV_REQ),
	SILENT(BAD_RESPONSE, BAD_RESP),
	SILENT(UNREACHABLE, RETRY_EXC),
	SILENT(NO_RECEIVE, RNR_RETRY_EXC),
	SILENT(FLUSHED, FLUSH),
	SILENT(STOPPED, FLUSH),
	SILENT(NOT_READY, FLUSH),
};

/**
 * weft_fault_info - the row of a fault
 * @fault: any value below WEFT_FAULT_COUNT
 */
const struct weft_fault_info *weft_fault_info(enum weft_fault fault)
{
	return &faults[fault];
}

/**
 * weft_fault_of_terminate - what the sender of a Terminate has found
 * @layer: of the Terminate control word, any value
 * @etype: error type, any value
 * @ecode: error code, any value
 *
 * Return: the fault that is told so, WEFT_FAULT_NONE for an unknown code. All faults of its own
 * side are told alike: of these, the catastrophic one, which says no more than the peer does.
 */
enum weft_fault weft_fault_of_terminate(u8 layer, u8 etype, u8 ecode)
{
	const struct weft_fault_info *info;
	size_t i;

	for (i = ARRAY_SIZE(faults); i-- > 0;) {
		info = &faults[i];
		if (info->terminate && info->layer == layer && info->etype == etype &&
		    info->ecode == ecode)
			return i;
	}
	return WEFT_FAULT_NONE;
}

/* What a peer's Terminate says about our request; codes first to last. */
struct verdict {
	u8 layer;
	u8 etype;
	u8 first;
	u8 last;
	enum weft_fault fault;
};

/* Everything else is the peer's own trouble: WEFT_FAULT_REMOTE_OPERATION. */
static const struct verdict verdicts[] = {
	{ LAYER_RDMAP, ET_PROTECTION, 0x00, 0xff, WEFT_FAULT_REMOTE_ACCESS },
	{ LAYER_RDMAP, ET_OPERATION, 0x05, 0x06, WEFT_FAULT_REMOTE_INVALID },
	/* "cannot be invalidated" is listed under both types */
	{ LAYER_RDMAP, ET_OPERATION, 0x09, 0x09, WEFT_FAULT_REMOTE_ACCESS },
	{ LAYER_DDP, ET_TAGGED, 0x00, 0x03, WEFT_FAULT_REMOTE_ACCESS },
	{ LAYER_DDP, ET_TAGGED, 0x04, 0x04, WEFT_FAULT_REMOTE_INVALID },
	{ LAYER_DDP, ET_UNTAGGED, 0x05, 0x06, WEFT_FAULT_REMOTE_INVALID },
};

/**
 * weft_fault_from_terminate - what a received Terminate means for our request
 * @layer: of the Terminate control word, any value
 * @etype: error type, any value
 * @ecode: error code, any value
 */
enum weft_fault weft_fault_from_terminate(u8 layer, u8 etype, u8 ecode)
{
	const struct verdict *v;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(verdicts); i++) {
		v = &verdicts[i];
		if (v->layer == layer && v->etype == etype && v->first <= ecode && ecode <= v->last)
			return v->fault;
	}
	return WEFT_FAULT_REMOTE_OPERATION;
}
