/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * From the message in hand to segments in the train.
 */
#ifndef WEFT_ENGINE_SEGMENT_H
#define WEFT_ENGINE_SEGMENT_H

#include <linux/types.h>

struct weft_stream;

bool weft_segment_next(struct weft_stream *st);

#endif
