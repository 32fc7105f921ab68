/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The rx loop: from whole ULPDUs to placed payload and completions.
 */
#ifndef WEFT_ENGINE_RX_H
#define WEFT_ENGINE_RX_H

struct weft_stream;

void weft_rx_poll(struct weft_stream *st);
void weft_rx_stop(struct weft_stream *st);

#endif
