/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Deferred doorbells: while an application streams, posting is a store, and a timer sees to it
 * that nothing lies there for long.
 */
#ifndef WEFT_ENGINE_RUN_DEFER_H
#define WEFT_ENGINE_RUN_DEFER_H

#include <linux/types.h>

struct weft_stream;

/* Queues under watch at most: a look is an interrupt's work, which no cgroup pays for. */
#define WEFT_DEFER_PROCESS_MAX	512
#define WEFT_DEFER_DEVICE_MAX	2048

/**
 * struct weft_db_stat - how a process rings doorbells, over all its queues; written by tx
 * @rings: doorbells so far
 * @inside: one is being served
 * @watched: queues left WATCHED
 *
 * A process that rings one doorbell after the other comes to each queue, however long the
 * first ones take. All but @watched are hints: threads that ring at the same time may spoil
 * each other's, which costs a look too early.
 */
struct weft_db_stat {
	u32 rings;
	bool inside;
	atomic_t watched;
};

void weft_defer_cancel(struct weft_stream *st);
bool weft_defer_is_active(const struct weft_stream *st);
bool weft_defer_begin(struct weft_stream *st);

#endif
