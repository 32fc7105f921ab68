/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef WEFT_ENGINE_OPS_READ_H
#define WEFT_ENGINE_OPS_READ_H

#include "engine/ops/op.h"

struct weft_readq_owed;
struct weft_readq_sent;

enum weft_fault weft_read_plan(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msgs);
enum weft_fault weft_read_request_end(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_response_begin(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_response_place(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_response_place_row(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_response_end(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_misanswered(struct weft_stream *st, struct weft_rx_seg *seg,
				      enum weft_fault fault);

struct weft_readq_sent *weft_read_awaited(struct weft_stream *st, bool atomic);
enum weft_fault weft_read_answer(struct weft_stream *st, const struct weft_readq_owed *owed,
				 struct weft_msg *msg);

#endif
