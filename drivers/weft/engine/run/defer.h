/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Deferred doorbells: while an application streams, posting is a store, and a timer bounds how
 * long a post waits.
 */
#ifndef WEFT_ENGINE_RUN_DEFER_H
#define WEFT_ENGINE_RUN_DEFER_H

#include <linux/atomic.h>
#include <linux/types.h>

struct weft_stream;

/* Queues polled at most: a poll is an interrupt's work, which no cgroup pays for. */
#define WEFT_DEFER_PROCESS_MAX	1024
#define WEFT_DEFER_DEVICE_MAX	2048

/**
 * struct weft_db_stat - how a process rings doorbells, over all its queues; written by tx
 * @polled: queues left POLLED
 */
struct weft_db_stat {
	atomic_t polled;
};

void weft_defer_cancel(struct weft_stream *st);
bool weft_defer_is_active(const struct weft_stream *st);
bool weft_defer_begin(struct weft_stream *st);

#endif
