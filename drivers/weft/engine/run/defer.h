/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Watching a send queue: while an application streams, posting is a store, and a
 * timer sees to it that nothing lies there for long.
 */
#ifndef WEFT_ENGINE_RUN_DEFER_H
#define WEFT_ENGINE_RUN_DEFER_H

#include <linux/hrtimer.h>
#include <linux/types.h>

struct weft_stream;

/**
 * struct weft_watch - the watch over one send queue, there once it was wished for
 * @st: whose queue
 * @timer: looks at the queue while @on
 * @on: the timer runs; set by the holder of the tx claim, cleared by the timer
 * @waiting: something was posted and not fetched at the last look
 * @idle: looks in a row that found nothing new
 * @late: how often a post lay about; good looks make up for it
 * @seen: what tx had fetched at the last look
 * @rings: the kicks of the process, then
 * @stretch: periods from one look to the next, more while the process kicks
 * @since: jiffies of the last look at which no post had waited
 * @backoff: jiffies to leave the queue alone after the next failure
 * @not_before: jiffies before which the queue is not watched again
 */
struct weft_watch {
	struct weft_stream *st;
	struct hrtimer timer;
	bool on;
	bool waiting;
	u8 idle;
	u8 late;
	u32 seen;
	u32 rings;
	u32 stretch;
	unsigned long since;
	unsigned long backoff;
	unsigned long not_before;
};

void weft_watch_cancel(struct weft_stream *st);
bool weft_watch_begin(struct weft_stream *st);

#endif
