/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Deferred doorbells: while an application streams, posting is a store, and a timer sees to it
 * that nothing lies there for long.
 */
#ifndef WEFT_ENGINE_RUN_DEFER_H
#define WEFT_ENGINE_RUN_DEFER_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/hrtimer.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "engine/state/config.h"
#include "ring/cq.h"

struct weft_stream;

/**
 * struct weft_db_stat - how a process rings doorbells, over all its queues
 * @watched: queues left WATCHED
 */
struct weft_db_stat {
	atomic_t watched;
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

/* Context: any; @db_stat is NULL for a kernel consumer, as in the functions below. */
static inline void weft_db_stat_watch(struct weft_db_stat *db_stat)
{
	if (db_stat)
		atomic_inc(&db_stat->watched);
}

static inline void weft_db_stat_unwatch(struct weft_db_stat *db_stat)
{
	if (db_stat)
		atomic_dec(&db_stat->watched);
}

/* Context: any. Return: queues under watch, at least one. */
static inline u32 weft_db_stat_watched(const struct weft_db_stat *db_stat)
{
	return db_stat ? max(atomic_read(&db_stat->watched), 1) : 1;
}

/**
 * struct weft_defer - the watch over one send queue, there once it was wished for
 * @st: whose queue
 * @timer: looks at the queue while @on
 * @on: the timer runs; set by the holder of the tx claim, cleared by the timer
 * @waiting: something was posted and not fetched at the last look
 * @idle: looks in a row that found nothing new
 * @late: how often a post lay about; good looks make up for it
 * @seen: what tx had fetched at the last look
 * @rings: the kicks that threads polling for it have made, then
 * @stretch: periods from one look to the next, more while they kick
 * @since: jiffies of the last look at which no post had waited
 * @backoff: jiffies to leave the queue alone after the next failure
 * @not_before: jiffies before which the queue is not watched again
 */
struct weft_defer {
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

void weft_defer_cancel(struct weft_stream *st);
bool weft_defer_begin(struct weft_stream *st);

#endif
