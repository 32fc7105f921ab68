// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The two tables of the engine. A new opcode is one row in each and a file.
 */
#include "engine/ops/op.h"

#define REQUEST	(WEFT_TXF_CREDIT | WEFT_TXF_RESPONSE)

const struct weft_tx_op weft_tx_ops[WEFT_WR_OP_COUNT] = {
	[WEFT_WR_SEND] = { .flags = WEFT_TXF_INLINE, .messages = 1, .plan = weft_send_plan },
	[WEFT_WR_SEND_INV] = { .flags = WEFT_TXF_INLINE, .messages = 1, .plan = weft_send_plan },
	[WEFT_WR_WRITE] = { .flags = WEFT_TXF_INLINE, .messages = 1, .plan = weft_write_plan },
	[WEFT_WR_WRITE_IMM] = { .flags = WEFT_TXF_INLINE,
				.messages = 2,
				.plan = weft_write_imm_plan },
	[WEFT_WR_READ] = { .flags = REQUEST, .messages = 1, .plan = weft_read_plan },
	[WEFT_WR_SEND_IMM] = { .flags = WEFT_TXF_INLINE, .messages = 1, .plan = weft_send_plan },
	[WEFT_WR_READ_INV] = { .flags = REQUEST, .messages = 1, .plan = weft_read_plan },
	[WEFT_WR_ATOMIC_FADD] = { .flags = REQUEST, .messages = 1, .plan = weft_atomic_plan },
	[WEFT_WR_ATOMIC_CSWAP] = { .flags = REQUEST, .messages = 1, .plan = weft_atomic_plan },
	[WEFT_WR_LOCAL_INV] = { .flags = WEFT_TXF_LOCAL, .messages = 0, .plan = weft_local_inv },
	[WEFT_WR_BIND_MW] = { .flags = WEFT_TXF_LOCAL, .messages = 0, .plan = weft_local_bind },
	[WEFT_WR_REG_MR] = { .flags = WEFT_TXF_LOCAL, .messages = 0, .plan = weft_local_register },
};

#define SEND						\
	{						\
		.begin = weft_send_begin, .place = weft_send_place,         \
		.place_batch = weft_send_place_batch, .end = weft_send_end, \
	}
#define SEND_IMMEDIATE					\
	{						\
		.begin = weft_send_imm_begin, .place = weft_send_place,     \
		.place_batch = weft_send_place_batch, .end = weft_send_end, \
	}
#define IMMEDIATE					\
	{						\
		.begin = weft_send_begin, .place = weft_rx_nothing,       \
		.place_batch = weft_rx_place_single, .end = weft_imm_end, \
	}

const struct weft_rx_op weft_rx_ops[WEFT_OP_COUNT] = {
	[WEFT_OP_WRITE] = {
		.begin = weft_write_begin,
		.place = weft_write_place,
		.place_batch = weft_write_place,
		.end = weft_rx_nothing,
	},
	[WEFT_OP_READ_REQ] = {
		.begin = weft_rx_nothing,
		.place = weft_rx_nothing,
		.place_batch = weft_rx_place_single,
		.end = weft_read_request_end,
	},
	[WEFT_OP_READ_RESP] = {
		.begin = weft_read_response_begin,
		.place = weft_read_response_place,
		.place_batch = weft_read_response_place_batch,
		.end = weft_read_response_end,
	},
	[WEFT_OP_SEND] = SEND,
	[WEFT_OP_SEND_INV] = SEND,
	[WEFT_OP_SEND_SE] = SEND,
	[WEFT_OP_SEND_SE_INV] = SEND,
	[WEFT_OP_TERMINATE] = {
		.begin = weft_rx_nothing,
		.place = weft_rx_nothing,
		.place_batch = weft_rx_place_single,
		.end = weft_term_end,
	},
	[WEFT_OP_IMM] = IMMEDIATE,
	[WEFT_OP_IMM_SE] = IMMEDIATE,
	[WEFT_OP_ATOMIC_REQ] = {
		.begin = weft_rx_nothing,
		.place = weft_rx_nothing,
		.place_batch = weft_rx_place_single,
		.end = weft_atomic_request_end,
	},
	[WEFT_OP_SEND_IMM] = SEND_IMMEDIATE,
	[WEFT_OP_SEND_SE_IMM] = SEND_IMMEDIATE,
	[WEFT_OP_ATOMIC_RESP] = {
		.begin = weft_rx_nothing,
		.place = weft_atomic_response_place,
		.place_batch = weft_rx_place_single,
		.end = weft_atomic_response_end,
	},
};

/* The step an opcode has no need of. */
enum weft_fault weft_rx_nothing(struct weft_stream *st, struct weft_rx_seg *seg)
{
	return WEFT_FAULT_NONE;
}

/* Messages of this opcode are a single segment. */
enum weft_fault weft_rx_place_single(struct weft_stream *st, struct weft_rx_seg *seg)
{
	return WEFT_FAULT_RDMAP_OPERATION;
}
