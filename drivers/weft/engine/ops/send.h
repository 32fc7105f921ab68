/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef WEFT_ENGINE_OPS_SEND_H
#define WEFT_ENGINE_OPS_SEND_H

#include "engine/ops/op.h"

enum weft_fault weft_send_plan(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msgs);
enum weft_fault weft_send_imm_plan(struct weft_stream *st, struct weft_swr *swr,
				   struct weft_msg *msgs);
enum weft_fault weft_send_inv_plan(struct weft_stream *st, struct weft_swr *swr,
				   struct weft_msg *msgs);

enum weft_fault weft_send_begin(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_send_imm_begin(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_send_place(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_send_place_row(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_send_end(struct weft_stream *st, struct weft_rx_seg *seg);

#endif
