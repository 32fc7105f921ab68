/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The contexts of tx: the process that rings the doorbell, a callback of the socket, a worker.
 */
#ifndef WEFT_ENGINE_RUN_DOORBELL_H
#define WEFT_ENGINE_RUN_DOORBELL_H

#include <linux/types.h>

struct weft_stream;

void weft_doorbell_init(struct weft_stream *st);
void weft_doorbell_end(struct weft_stream *st);

void weft_doorbell(struct weft_stream *st);
void weft_tx_process(struct weft_stream *st);
void weft_tx_schedule(struct weft_stream *st);
void weft_tx_softirq(struct weft_stream *st);

#endif
