/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staying with a send queue: a worker that has served a streaming application
 * looks for more for a while, so that nobody has to tell it.
 */
#ifndef WEFT_ENGINE_POLL_H
#define WEFT_ENGINE_POLL_H

#include <linux/types.h>

struct weft_stream;

/**
 * struct weft_poll - what was learned about the worker of a stream
 * @asked: local_clock() when it was asked to take over, 0: it came
 * @backoff: jiffies to do without it when it is late the next time
 * @not_before: jiffies before which it is not asked again
 */
struct weft_poll {
	u64 asked;
	unsigned long backoff;
	unsigned long not_before;
};

void weft_poll_init(struct weft_poll *poll);
u32 weft_poll_default(void);
bool weft_poll_takes_over(struct weft_stream *st);
void weft_poll_arrived(struct weft_poll *poll);
bool weft_poll_stay(struct weft_stream *st);

#endif
