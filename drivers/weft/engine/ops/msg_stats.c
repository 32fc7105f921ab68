// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which counters a message of a stream moves: two tables, by opcode and by fault.
 */
#include "engine/ops/op.h"

#include "base/counters.h"
#include "engine/state/stream.h"
#include "proto/term.h"

#define KIND(_kind)                                         \
	{                                                   \
		.sent = WEFT_CTR_TX_KIND + WEFT_MSG_##_kind,     \
		.received = WEFT_CTR_RX_KIND + WEFT_MSG_##_kind, \
	}

const struct weft_msg_stats weft_msg_stats[WEFT_OP_COUNT] = {
	[WEFT_OP_WRITE] = KIND(WRITE),
	[WEFT_OP_READ_REQ] = KIND(READ_REQ),
	[WEFT_OP_READ_RESP] = KIND(READ_RESP),
	[WEFT_OP_SEND] = KIND(SEND),
	[WEFT_OP_SEND_INV] = KIND(SEND),
	[WEFT_OP_SEND_SE] = KIND(SEND),
	[WEFT_OP_SEND_SE_INV] = KIND(SEND),
	[WEFT_OP_SEND_IMM] = KIND(SEND),
	[WEFT_OP_SEND_SE_IMM] = KIND(SEND),
	[WEFT_OP_TERMINATE] = { WEFT_CTR_TX_TERM, WEFT_CTR_RX_TERM },
	[WEFT_OP_IMM] = KIND(IMM),
	[WEFT_OP_IMM_SE] = KIND(IMM),
	[WEFT_OP_ATOMIC_REQ] = KIND(ATOMIC_REQ),
	[WEFT_OP_ATOMIC_RESP] = KIND(ATOMIC_RESP),
};

static_assert(WEFT_CTR_COUNT <= U8_MAX);

/* A peer may use a code we have no name for: fault NONE. */
static const u8 reasons[WEFT_FAULT_COUNT] = {
	[WEFT_FAULT_NONE] = WEFT_TERM_PROTOCOL,

	[WEFT_FAULT_MPA_CLOSED] = WEFT_TERM_MPA,
	[WEFT_FAULT_MPA_CRC] = WEFT_TERM_CRC,
	[WEFT_FAULT_MPA_MARKER] = WEFT_TERM_MPA,
	[WEFT_FAULT_MPA_START] = WEFT_TERM_MPA,
	[WEFT_FAULT_MPA_LOCAL] = WEFT_TERM_LOCAL_ERROR,
	[WEFT_FAULT_MPA_IRD] = WEFT_TERM_MPA,
	[WEFT_FAULT_MPA_RTR] = WEFT_TERM_MPA,

	[WEFT_FAULT_TAGGED_STAG] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_TAGGED_BOUNDS] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_TAGGED_STREAM] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_TAGGED_WRAP] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_TAGGED_VERSION] = WEFT_TERM_PROTOCOL,

	[WEFT_FAULT_UNTAGGED_QN] = WEFT_TERM_SEQUENCE,
	[WEFT_FAULT_UNTAGGED_NO_BUFFER] = WEFT_TERM_RQ_EMPTY,
	[WEFT_FAULT_UNTAGGED_MSN] = WEFT_TERM_SEQUENCE,
	[WEFT_FAULT_UNTAGGED_MO] = WEFT_TERM_SEQUENCE,
	[WEFT_FAULT_UNTAGGED_TOO_LONG] = WEFT_TERM_RQ_TOO_SMALL,
	[WEFT_FAULT_UNTAGGED_VERSION] = WEFT_TERM_PROTOCOL,

	[WEFT_FAULT_RDMAP_STAG] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_RDMAP_BOUNDS] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_RDMAP_ACCESS] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_RDMAP_STREAM] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_RDMAP_WRAP] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_RDMAP_INVALIDATE] = WEFT_TERM_ACCESS,
	[WEFT_FAULT_RDMAP_PROTECTION] = WEFT_TERM_ACCESS,

	[WEFT_FAULT_RDMAP_VERSION] = WEFT_TERM_PROTOCOL,
	[WEFT_FAULT_RDMAP_OPCODE] = WEFT_TERM_PROTOCOL,
	[WEFT_FAULT_RDMAP_CATASTROPHIC] = WEFT_TERM_LOCAL_ERROR,
	[WEFT_FAULT_RDMAP_GLOBAL] = WEFT_TERM_LOCAL_ERROR,
	[WEFT_FAULT_RDMAP_OPERATION] = WEFT_TERM_PROTOCOL,

	[WEFT_FAULT_LOCAL_PROTECTION] = WEFT_TERM_LOCAL_ERROR,
	[WEFT_FAULT_LOCAL_LENGTH] = WEFT_TERM_LOCAL_ERROR,
	[WEFT_FAULT_LOCAL_QP_OP] = WEFT_TERM_LOCAL_ERROR,
	[WEFT_FAULT_LOCAL_BIND] = WEFT_TERM_LOCAL_ERROR,
	[WEFT_FAULT_LOCAL_CATASTROPHIC] = WEFT_TERM_LOCAL_ERROR,
};

/**
 * weft_msg_stats_term_sent - the reason of a Terminate of ours
 * @st: stream
 * @fault: what it tells
 */
void weft_msg_stats_term_sent(struct weft_stream *st, enum weft_fault fault)
{
	weft_count(st->cfg.counters, WEFT_CTR_TX_TERM_FOR + reasons[fault]);
}

/**
 * weft_msg_stats_term_received - the reason of the peer's Terminate
 * @st: stream
 * @term: as parsed
 */
void weft_msg_stats_term_received(struct weft_stream *st, const struct weft_term *term)
{
	enum weft_fault fault = weft_fault_of_terminate(term->layer, term->etype, term->ecode);

	weft_count(st->cfg.counters, WEFT_CTR_RX_TERM_FOR + reasons[fault]);
}
