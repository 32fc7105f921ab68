/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The rx loop: from whole ULPDUs to placed payload and completions. All with the socket lock
 * held.
 */
#ifndef WEFT_ENGINE_PATH_RX_H
#define WEFT_ENGINE_PATH_RX_H

#include "proto/fault.h"

struct weft_cq_batch;
struct weft_mem_region;
struct weft_mpa_rx_events;
struct weft_stream;
struct weft_ulpdu;

extern const struct weft_mpa_rx_events weft_rx_mpa_events;

int weft_rx_read(struct weft_stream *st, struct weft_cq_batch *batch);
enum weft_fault weft_rx_take(struct weft_stream *st, const struct weft_ulpdu *u,
			     struct weft_cq_batch *batch);
struct weft_mem_region *weft_rx_settle(struct weft_stream *st, struct weft_cq_batch *batch);
void weft_rx_discard(struct weft_stream *st);
void weft_rx_check_fin(struct weft_stream *st);

#endif
