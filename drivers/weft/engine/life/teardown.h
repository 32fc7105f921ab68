/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The way down: what the end of a stream takes, done by a worker.
 */
#ifndef WEFT_ENGINE_LIFE_TEARDOWN_H
#define WEFT_ENGINE_LIFE_TEARDOWN_H

#include <linux/container_of.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "engine/state/stream.h"
#include "net/tcp_info.h"

/**
 * struct weft_teardown - where a stream stands on its way down
 * @work: does what is in the stream's @todo
 * @deadline: for the peer, while we wait for it
 * @acked, @received: what it had taken and sent when the deadline was set; under @lifecycle
 * @handed, @taken: likewise, of what went without TCP
 * @renewals: of the deadline while a Terminate goes out; @work's
 * @late: @deadline has passed
 * @told_closing: cm was; @work's
 * @over: the socket is gone and everybody has been told
 */
struct weft_teardown {
	struct work_struct work;
	struct timer_list deadline;
	u64 acked;
	u64 received;
	u64 handed;
	u64 taken;
	u8 renewals;
	bool late;
	bool told_closing;
	bool over;
};

/**
 * struct weft_stream_life - a stream, and what only its birth and its end are about
 * @st: the stream
 * @down: the way down
 * @tcp_counted: what of TCP's counts is in the stream's; under its @lifecycle
 */
struct weft_stream_life {
	struct weft_stream st;
	struct weft_teardown down;
	struct weft_tcp_stats tcp_counted;
};

static inline struct weft_stream_life *weft_stream_life(struct weft_stream *st)
{
	return container_of(st, struct weft_stream_life, st);
}

/* The way down of a stream. */
static inline struct weft_teardown *weft_stream_teardown(struct weft_stream *st)
{
	return &weft_stream_life(st)->down;
}

void weft_teardown_init(struct weft_stream *st);
void weft_teardown_wake(struct weft_stream *st);
void weft_teardown_wait(struct weft_stream *st);
void weft_teardown_end(struct weft_stream *st);
void weft_teardown_renew(struct weft_stream *st);

#endif
