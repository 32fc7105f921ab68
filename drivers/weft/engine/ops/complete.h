/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Work requests leave in the order they came: done bits, completions, flush.
 */
#ifndef WEFT_ENGINE_OPS_COMPLETE_H
#define WEFT_ENGINE_OPS_COMPLETE_H

#include <linux/types.h>

#include "proto/fault.h"

struct weft_cq_batch;
struct weft_stream;
struct weft_swr;
struct weft_cqe;

/* Any context. */
void weft_complete_done(struct weft_stream *st, struct weft_swr *swr, enum weft_fault fault,
			struct weft_cq_batch *batch);
void weft_complete_pushed(struct weft_stream *st, u64 pushed, struct weft_cq_batch *batch);
bool weft_complete_is_sent(const struct weft_stream *st, const struct weft_swr *swr);
void weft_complete_receive(struct weft_stream *st, const struct weft_cqe *cqe,
			   struct weft_cq_batch *batch);

/* Holder of the tx claim, once the stream may not send any more. */
void weft_complete_flush_sends(struct weft_stream *st, struct weft_cq_batch *batch);
void weft_complete_flush_receives(struct weft_stream *st, struct weft_cq_batch *batch);
struct weft_swr *weft_complete_named(const struct weft_stream *st);

#endif
