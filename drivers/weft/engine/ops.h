/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The one place that knows every opcode: work requests going out, RDMAP
 * messages coming in.
 */
#ifndef WEFT_ENGINE_OPS_H
#define WEFT_ENGINE_OPS_H

#include "engine/op.h"

const struct weft_tx_op *weft_tx_op(u8 wr_opcode);
const struct weft_rx_op *weft_rx_op(u8 rdmap_opcode);
int weft_ops_check(void);

#endif
