/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef WEFT_ENGINE_OPS_TERMINATE_H
#define WEFT_ENGINE_OPS_TERMINATE_H

#include "engine/ops/op.h"

void weft_term_message(struct weft_stream *st, struct weft_msg *msg);
enum weft_fault weft_term_end(struct weft_stream *st, struct weft_rx_seg *seg);
struct weft_swr *weft_term_named(const struct weft_stream *st);

#endif
