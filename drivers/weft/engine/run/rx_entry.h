/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Where rx is entered: callbacks of the socket, a worker, the end.
 */
#ifndef WEFT_ENGINE_RUN_RX_ENTRY_H
#define WEFT_ENGINE_RUN_RX_ENTRY_H

struct weft_sock_events;
struct weft_stream;

extern const struct weft_sock_events weft_rx_sock_events;

void weft_rx_entry_init(struct weft_stream *st);
void weft_rx_entry_end(struct weft_stream *st);
void weft_rx_schedule(struct weft_stream *st);
void weft_rx_stop(struct weft_stream *st);

#endif
