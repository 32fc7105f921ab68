/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The rx loop: from whole ULPDUs to placed payload and completions.
 */
#ifndef WEFT_ENGINE_RX_H
#define WEFT_ENGINE_RX_H

struct weft_cq_batch;
struct weft_inbox;
struct weft_stream;

/* Context: process. */
void weft_rx_poll(struct weft_stream *st);
void weft_rx_stop(struct weft_stream *st);

/* Context: owner of rx. */
void weft_rx_read(struct weft_stream *st, struct weft_inbox *in, struct weft_cq_batch *batch);
void weft_rx_judge(struct weft_stream *st);

#endif
