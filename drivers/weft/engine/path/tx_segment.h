/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What is sent next, as segments in the batch. By the holder of the tx claim only.
 */
#ifndef WEFT_ENGINE_PATH_TX_SEGMENT_H
#define WEFT_ENGINE_PATH_TX_SEGMENT_H

#include <linux/types.h>

struct weft_stream;
struct weft_tx;

enum weft_segment_result {
	WEFT_SEGMENT_NONE,	/* nothing may be sent now */
	WEFT_SEGMENT_STAGED,
	WEFT_SEGMENT_WAITS,	/* for pages, on which a worker calls */
	WEFT_SEGMENT_LATER,	/* it takes process context, or memory that is not to be had */
};

enum weft_segment_result weft_segment_next(struct weft_stream *st);
void weft_segment_drop(struct weft_tx *tx);

#endif
