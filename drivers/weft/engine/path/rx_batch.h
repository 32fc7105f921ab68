/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Segments of one message that lie in a row, placed at once.
 */
#ifndef WEFT_ENGINE_PATH_RX_BATCH_H
#define WEFT_ENGINE_PATH_RX_BATCH_H

#include <linux/types.h>

struct weft_rx_seg;
struct weft_stream;
struct weft_ulpdu_span;

/* Context: owner of rx. */
void weft_rxrow_expect(struct weft_stream *st, const struct weft_rx_seg *seg);
u32 weft_rxrow_take(void *owner, const struct weft_ulpdu_span *row);

#endif
