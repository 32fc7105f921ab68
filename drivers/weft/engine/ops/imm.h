/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef WEFT_ENGINE_OPS_IMM_H
#define WEFT_ENGINE_OPS_IMM_H

#include "engine/ops/op.h"

void weft_imm_message(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msg);
enum weft_fault weft_imm_end(struct weft_stream *st, struct weft_rx_seg *seg);

#endif
