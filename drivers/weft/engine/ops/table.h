/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The one place that knows every opcode: work requests going out, RDMAP
 * messages coming in.
 */
#ifndef WEFT_ENGINE_OPS_TABLE_H
#define WEFT_ENGINE_OPS_TABLE_H

#include <linux/kernel.h>
#include <linux/nospec.h>

#include "engine/ops/op.h"
#include "uapi/weft-abi.h"

extern const struct weft_tx_op weft_tx_ops[WEFT_WR_OP_COUNT];
extern const struct weft_rx_op weft_rx_ops[WEFT_OP_COUNT];

int weft_ops_check(void);

/**
 * weft_tx_op - row of a work request opcode
 * @wr_opcode: as found in a private copy, any value
 *
 * Return: the row, NULL for an unknown opcode.
 */
static inline const struct weft_tx_op *weft_tx_op(u8 wr_opcode)
{
	if (wr_opcode >= ARRAY_SIZE(weft_tx_ops))
		return NULL;
	return &weft_tx_ops[array_index_nospec(wr_opcode, ARRAY_SIZE(weft_tx_ops))];
}

/**
 * weft_rx_op - row of an RDMAP opcode
 * @rdmap_opcode: of a segment that passed weft_rdmap_check()
 */
static inline const struct weft_rx_op *weft_rx_op(u8 rdmap_opcode)
{
	return &weft_rx_ops[array_index_nospec(rdmap_opcode & WEFT_RDMAP_OP_MASK,
					       ARRAY_SIZE(weft_rx_ops))];
}

#endif
