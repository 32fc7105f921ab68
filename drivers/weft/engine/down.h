/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The way down: what the end of a stream takes, done by a worker.
 */
#ifndef WEFT_ENGINE_DOWN_H
#define WEFT_ENGINE_DOWN_H

#include "proto/qp_fsm.h"

struct weft_stream;

/* What the worker does of all that the state machine orders. */
#define WEFT_DOWN_ACTIONS                                                                \
	(WEFT_QPA_STOP_RX | WEFT_QPA_TELL_CM | WEFT_QPA_HALF_CLOSE | WEFT_QPA_DEADLINE | \
	 WEFT_QPA_RELEASE | WEFT_QPA_REPORT)

void weft_down_init(struct weft_stream *st);
void weft_down_wake(struct weft_stream *st);
void weft_down_wait(struct weft_stream *st);
void weft_down_end(struct weft_stream *st);

#endif
