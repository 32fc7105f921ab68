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

struct weft_stream;

/* Queues under watch at most: a look is an interrupt's work, which no cgroup pays for. */
#define WEFT_DEFER_PROCESS_MAX	512
#define WEFT_DEFER_DEVICE_MAX	2048

/**
 * struct weft_db_stat - how a process rings doorbells, over all its queues
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

/* Context: any; @db_stat is NULL for a kernel consumer, as in the functions below. */
static inline void weft_db_stat_enter(struct weft_db_stat *db_stat)
{
	if (db_stat)
		WRITE_ONCE(db_stat->inside, true);
}

static inline void weft_db_stat_leave(struct weft_db_stat *db_stat)
{
	if (!db_stat)
		return;
	WRITE_ONCE(db_stat->rings, READ_ONCE(db_stat->rings) + 1);
	WRITE_ONCE(db_stat->inside, false);
}

/**
 * weft_db_stat_rang - is the process kicking, or has it since the last look?
 * @db_stat: of the process
 * @seen: where the caller keeps what it saw
 *
 * Context: any, one caller at a time for each @seen.
 */
static inline bool weft_db_stat_rang(const struct weft_db_stat *db_stat, u32 *seen)
{
	u32 rings = db_stat ? READ_ONCE(db_stat->rings) : 0;
	bool rang = rings != *seen || (db_stat && READ_ONCE(db_stat->inside));

	*seen = rings;
	return rang;
}

/* Counts a queue under watch. Return: false if there are @most. */
static inline bool weft_db_stat_watch(struct weft_db_stat *db_stat, int most)
{
	return !db_stat || atomic_add_unless(&db_stat->watched, 1, most);
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
 * @rings: the kicks of the process, then
 * @stretch: periods from one look to the next, more while the process kicks
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
