/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Deferred doorbells: while an application streams, posting is a store, and a timer sees to it
 * that nothing lies there for long.
 */
#ifndef WEFT_ENGINE_RUN_DEFER_H
#define WEFT_ENGINE_RUN_DEFER_H

#include <linux/types.h>

#include "engine/state/config.h"
#include "ring/cq.h"

struct weft_stream;

/* Queues polled at most: a poll is an interrupt's work, which no cgroup pays for. */
#define WEFT_DEFER_PROCESS_MAX	512
#define WEFT_DEFER_DEVICE_MAX	2048

/**
 * struct weft_db_stat - how a process rings doorbells, over all its queues; written by tx
 * @polled: queues left POLLED
 */
struct weft_db_stat {
	atomic_t polled;
};

/*
 * A thread that finds nothing to poll rings the doorbells of all queue pairs of that
 * completion queue, one after the other: it comes to each, however long the first ones take.
 * Those of other completion queues are other threads' business. Context: any.
 */
static inline void weft_doorbell_enter(const struct weft_stream_config *cfg)
{
	WRITE_ONCE(cfg->send_cq->doorbells.inside, true);
	WRITE_ONCE(cfg->recv_cq->doorbells.inside, true);
}

static inline void weft_doorbell_leave(const struct weft_stream_config *cfg)
{
	struct weft_cq_doorbells *send = &cfg->send_cq->doorbells;
	struct weft_cq_doorbells *recv = &cfg->recv_cq->doorbells;

	WRITE_ONCE(send->rings, READ_ONCE(send->rings) + 1);
	WRITE_ONCE(recv->rings, READ_ONCE(recv->rings) + 1);
	WRITE_ONCE(send->inside, false);
	WRITE_ONCE(recv->inside, false);
}

/**
 * weft_doorbell_rang - has a doorbell been rung near a queue pair?
 * @cfg: of the queue pair
 * @seen: where the caller keeps what it saw
 *
 * By a thread that polls one of its CQs, now or since the last call. Context: any, one
 * caller at a time for each @seen.
 */
static inline bool weft_doorbell_rang(const struct weft_stream_config *cfg, u32 *seen)
{
	const struct weft_cq_doorbells *send = &cfg->send_cq->doorbells;
	const struct weft_cq_doorbells *recv = &cfg->recv_cq->doorbells;
	u32 rings = READ_ONCE(send->rings) + READ_ONCE(recv->rings);
	bool rang = rings != *seen || READ_ONCE(send->inside) || READ_ONCE(recv->inside);

	*seen = rings;
	return rang;
}

void weft_defer_cancel(struct weft_stream *st);
bool weft_defer_is_active(const struct weft_stream *st);
bool weft_defer_begin(struct weft_stream *st);

#endif
