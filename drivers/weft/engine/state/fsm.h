/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Steps of a stream's state machine, and the interface upward.
 */
#ifndef WEFT_ENGINE_STATE_FSM_H
#define WEFT_ENGINE_STATE_FSM_H

#include <linux/kref.h>
#include <linux/types.h>

#include "proto/fault.h"
#include "proto/qp_fsm.h"

struct weft_stream;

/* What is left to teardown of all that the state machine orders. */
#define WEFT_TEARDOWN_ACTIONS                                                                \
	(WEFT_QPA_STOP_RX | WEFT_QPA_TELL_CM | WEFT_QPA_HALF_CLOSE | WEFT_QPA_DEADLINE | \
	 WEFT_QPA_RELEASE | WEFT_QPA_REPORT)

/**
 * struct weft_stream_hooks - what lower layers of the engine have upper ones do
 * @release: the last reference is gone; any context
 * @teardown: there is something in @todo; any context up to softirq
 * @want_tx: there is something to send; any context up to softirq, also with the socket locked
 * @want_rx: there may be something to read that no callback announces; any context
 * @defer: may an empty queue be left without asking for doorbells? tx claim held, any context
 */
struct weft_stream_hooks {
	void (*release)(struct kref *ref);
	void (*teardown)(struct weft_stream *st);
	void (*want_tx)(struct weft_stream *st);
	void (*want_rx)(struct weft_stream *st);
	bool (*defer)(struct weft_stream *st);
};

/* Steps the state machine and sees to its actions. Any context. */
void weft_stream_step(struct weft_stream *st, enum weft_qp_event event);

/* The peer has closed, or the connection is lost, as @event says. Any context. */
void weft_stream_lose(struct weft_stream *st, enum weft_qp_event event);

/* Records why, once, with the offending headers or none, then steps. Any context. */
void weft_stream_fault(struct weft_stream *st, enum weft_fault fault, const u8 *head, u32 head_len,
		       u32 ulpdu_len);

#endif
