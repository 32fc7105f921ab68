/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef WEFT_ENGINE_OPS_WRITE_H
#define WEFT_ENGINE_OPS_WRITE_H

#include "engine/ops/op.h"

enum weft_fault weft_write_plan(struct weft_stream *st, struct weft_swr *swr,
				struct weft_msg *msgs);
enum weft_fault weft_write_imm_plan(struct weft_stream *st, struct weft_swr *swr,
				    struct weft_msg *msgs);
enum weft_fault weft_write_begin(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_write_place(struct weft_stream *st, struct weft_rx_seg *seg);

#endif
