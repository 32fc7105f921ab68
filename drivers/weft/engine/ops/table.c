// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The two tables of the engine. A new opcode is one row in each and a file.
 */
#include "engine/ops/op.h"

#define REQUEST	(WEFT_TXF_CREDIT | WEFT_TXF_RESPONSE)

const struct weft_tx_op weft_tx_ops[WEFT_WR_OP_COUNT] = {
	[WEFT_WR_SEND] = { WEFT_TXF_INLINE, 1, weft_send_plan },
	[WEFT_WR_SEND_INV] = { WEFT_TXF_INLINE, 1, weft_send_plan },
	[WEFT_WR_WRITE] = { WEFT_TXF_INLINE, 1, weft_write_plan },
	[WEFT_WR_WRITE_IMM] = { WEFT_TXF_INLINE, 2, weft_write_imm_plan },
	[WEFT_WR_READ] = { REQUEST, 1, weft_read_plan },
	[WEFT_WR_SEND_IMM] = { WEFT_TXF_INLINE, 1, weft_send_plan },
	[WEFT_WR_READ_INV] = { REQUEST, 1, weft_read_plan },
	[WEFT_WR_ATOMIC_FADD] = { REQUEST, 1, weft_atomic_plan },
	[WEFT_WR_ATOMIC_CSWAP] = { REQUEST, 1, weft_atomic_plan },
	[WEFT_WR_LOCAL_INV] = { WEFT_TXF_LOCAL, 0, weft_local_inv },
	[WEFT_WR_BIND_MW] = { WEFT_TXF_LOCAL, 0, weft_local_bind },
	[WEFT_WR_REG_MR] = { WEFT_TXF_LOCAL, 0, weft_local_register },
};

#define SEND                                                    \
	{                                                       \
		weft_send_begin, weft_send_place, weft_send_place_batch, weft_send_end \
	}
#define SEND_IMMEDIATE                                              \
	{                                                           \
		weft_send_imm_begin, weft_send_place, weft_send_place_batch, weft_send_end \
	}
#define IMMEDIATE                                              \
	{                                                      \
		weft_send_begin, weft_rx_nothing, weft_rx_place_single, weft_imm_end \
	}

const struct weft_rx_op weft_rx_ops[WEFT_OP_COUNT] = {
	[WEFT_OP_WRITE] = { weft_write_begin, weft_write_place, weft_write_place, weft_rx_nothing },
	[WEFT_OP_READ_REQ] = { weft_rx_nothing, weft_rx_nothing, weft_rx_place_single,
			       weft_read_request_end },
	[WEFT_OP_READ_RESP] = { weft_read_response_begin, weft_read_response_place,
				weft_read_response_place_batch, weft_read_response_end },
	[WEFT_OP_SEND] = SEND,
	[WEFT_OP_SEND_INV] = SEND,
	[WEFT_OP_SEND_SE] = SEND,
	[WEFT_OP_SEND_SE_INV] = SEND,
	[WEFT_OP_TERMINATE] = { weft_rx_nothing, weft_rx_nothing, weft_rx_place_single,
				weft_term_end },
	[WEFT_OP_IMM] = IMMEDIATE,
	[WEFT_OP_IMM_SE] = IMMEDIATE,
	[WEFT_OP_ATOMIC_REQ] = { weft_rx_nothing, weft_rx_nothing, weft_rx_place_single,
				 weft_atomic_request_end },
	[WEFT_OP_SEND_IMM] = SEND_IMMEDIATE,
	[WEFT_OP_SEND_SE_IMM] = SEND_IMMEDIATE,
	[WEFT_OP_ATOMIC_RESP] = { weft_rx_nothing, weft_atomic_response_place, weft_rx_place_single,
				  weft_atomic_response_end },
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
