/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef WEFT_ENGINE_OPS_ATOMIC_H
#define WEFT_ENGINE_OPS_ATOMIC_H

#include "engine/ops/op.h"

struct weft_readq_owed;

enum weft_fault weft_atomic_fadd_plan(struct weft_stream *st, struct weft_swr *swr,
				      struct weft_msg *msgs);
enum weft_fault weft_atomic_cswap_plan(struct weft_stream *st, struct weft_swr *swr,
				       struct weft_msg *msgs);
enum weft_fault weft_atomic_request_end(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_atomic_response_end(struct weft_stream *st, struct weft_rx_seg *seg);

enum weft_fault weft_atomic_answer(struct weft_stream *st, const struct weft_readq_owed *owed,
				   struct weft_msg *msg);

#endif
