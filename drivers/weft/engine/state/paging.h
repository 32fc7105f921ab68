/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A direction of a stream that waits for pages of memory that is paged on demand.
 */
#ifndef WEFT_ENGINE_STATE_PAGING_H
#define WEFT_ENGINE_STATE_PAGING_H

#include <linux/types.h>
#include <linux/workqueue.h>

#include "mem/odp.h"

struct weft_stream;

/**
 * struct weft_paging - a wait for pages
 * @want: which; owned by the direction
 * @work: faults them in, then has the direction go on
 * @st: the stream, referred to while @work is queued or runs
 * @muted: nothing is to go on any more; under the stream's @lock
 */
struct weft_paging {
	struct weft_odp_want want;
	struct work_struct work;
	struct weft_stream *st;
	bool muted;
};

#endif
