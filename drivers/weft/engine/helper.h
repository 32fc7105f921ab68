/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A process that polls its completion queues in vain has a CPU, and nothing to do
 * with it. It is given errands: to read what has come for it, to go on sending. So
 * both ends of a connection on one host work at the same time, as those of plain TCP.
 */
#ifndef WEFT_ENGINE_HELPER_H
#define WEFT_ENGINE_HELPER_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "base/patience.h"
#include "engine/porter.h"

struct weft_stream;

/* Shared with a process that helps; none does any more. */
struct weft_ctx_ctl {
	u32 polls;
	u32 work;
};

enum weft_errand {
	WEFT_ERRAND_READ = 1 << 0,
	WEFT_ERRAND_SEND = 1 << 1,
	WEFT_ERRAND_TRAIN = 1 << 2, /* with one of them: it is for short Reads, many at once */
};

/**
 * struct weft_helper - a process
 * @ctl: shared with it; NULL: it does not help
 * @lock: what is below, and the errands of its streams
 * @waiting: streams with errands, by @errands.node
 * @polls: in vain, as last seen
 * @row: how many looks of late it has polled between
 * @since: of ktime_get_ns(), when @waiting was last empty
 * @reading: patience with a process that does not come to read; it has less time for that
 * @sending: with one that does not come to send
 * @timed: @timer is set, or at work and will be again
 * @timer: for errands that nobody comes for
 * @porter: it, at the door of another
 */
struct weft_helper {
	struct weft_ctx_ctl *ctl;
	spinlock_t lock; /* bh */
	struct list_head waiting;
	u32 polls;
	u8 row;
	bool timed;
	struct weft_patience reading;
	struct weft_patience sending;
	u64 since;
	struct hrtimer timer;
	struct weft_porter porter;
};

/**
 * struct weft_errands - of a stream
 * @node: in the list of its helper, if there are any
 * @todo: enum weft_errand
 * @running: threads at one of them
 *
 * Under the lock of the helper.
 */
struct weft_errands {
	struct list_head node;
	u8 todo;
	u32 running;
};

void weft_helper_init(struct weft_helper *helper, struct weft_ctx_ctl *ctl);
void weft_helper_destroy(struct weft_helper *helper);
void weft_helper_run(struct weft_helper *helper);

bool weft_helper_may_read(struct weft_stream *st);
void weft_helper_wants(struct weft_stream *st, u8 errand);
bool weft_helper_sends(struct weft_stream *st, bool train);
void weft_helper_failed(struct weft_stream *st);

void weft_errands_init(struct weft_errands *errands);
void weft_errands_end(struct weft_stream *st);

#endif
