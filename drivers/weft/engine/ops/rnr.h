/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A receive that comes late: the stream waits for it.
 */
#ifndef WEFT_ENGINE_OPS_RNR_H
#define WEFT_ENGINE_OPS_RNR_H

#include <linux/types.h>

#include "proto/fault.h"

struct weft_stream;

void weft_rnr_init(struct weft_stream *st);

/* Context: owner of rx. */
int weft_rnr_fetch(struct weft_stream *st);
enum weft_fault weft_rnr_wait(struct weft_stream *st);
bool weft_rnr_holds(struct weft_stream *st);
bool weft_rnr_cancel(struct weft_stream *st);

void weft_rnr_doorbell(struct weft_stream *st);

#endif
