/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The way down: what the end of a stream takes, done by a worker.
 */
#ifndef WEFT_ENGINE_DOWN_H
#define WEFT_ENGINE_DOWN_H

#include <linux/timer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "proto/qp_fsm.h"

struct weft_stream;

/* What the worker does of all that the state machine orders. */
#define WEFT_DOWN_ACTIONS                                                                \
	(WEFT_QPA_STOP_RX | WEFT_QPA_TELL_CM | WEFT_QPA_HALF_CLOSE | WEFT_QPA_DEADLINE | \
	 WEFT_QPA_RELEASE | WEFT_QPA_REPORT)

/**
 * struct weft_down - where a stream stands on its way down
 * @work: does what is in the stream's @todo
 * @deadline: for the peer, while we wait for it
 * @acked, @received: what it had taken and sent when the deadline was set; under @lifecycle
 * @renewals: of the deadline while a Terminate goes out; @work's
 * @late: @deadline has passed
 * @told_closing: cm was; @work's
 * @over: the socket is gone and everybody has been told
 */
struct weft_down {
	struct work_struct work;
	struct timer_list deadline;
	u64 acked;
	u64 received;
	u8 renewals;
	bool late;
	bool told_closing;
	bool over;
};

void weft_down_init(struct weft_stream *st);
void weft_down_wake(struct weft_stream *st);
void weft_down_wait(struct weft_stream *st);
void weft_down_end(struct weft_stream *st);

#endif
