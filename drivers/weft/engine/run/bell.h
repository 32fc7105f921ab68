/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A process at its doorbell. One that kicks its queues one after the other comes to
 * each of them, however long the first ones take: nobody else need step in.
 */
#ifndef WEFT_ENGINE_RUN_BELL_H
#define WEFT_ENGINE_RUN_BELL_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct weft_bell - of one process, for all its queues
 * @rings: kicks so far
 * @inside: one is being served
 * @watched: queues under watch (engine/run/defer.c)
 *
 * All but @watched are hints: threads that kick at the same time may spoil each other's,
 * which costs a look too early.
 */
struct weft_bell {
	u32 rings;
	bool inside;
	atomic_t watched;
};

/* Context: any; @bell is NULL for a kernel consumer, as in the functions below. */
static inline void weft_bell_enter(struct weft_bell *bell)
{
	if (bell)
		WRITE_ONCE(bell->inside, true);
}

static inline void weft_bell_leave(struct weft_bell *bell)
{
	if (!bell)
		return;
	WRITE_ONCE(bell->rings, READ_ONCE(bell->rings) + 1);
	WRITE_ONCE(bell->inside, false);
}

/**
 * weft_bell_rang - is the process kicking, or has it since the last look?
 * @bell: of the process
 * @seen: where the caller keeps what it saw
 *
 * Context: any, one caller at a time for each @seen.
 */
static inline bool weft_bell_rang(const struct weft_bell *bell, u32 *seen)
{
	u32 rings = bell ? READ_ONCE(bell->rings) : 0;
	bool rang = rings != *seen || (bell && READ_ONCE(bell->inside));

	*seen = rings;
	return rang;
}

static inline void weft_bell_watch(struct weft_bell *bell)
{
	if (bell)
		atomic_inc(&bell->watched);
}

static inline void weft_bell_unwatch(struct weft_bell *bell)
{
	if (bell)
		atomic_dec(&bell->watched);
}

/* Context: any. Return: queues under watch, at least one. */
static inline u32 weft_bell_watched(const struct weft_bell *bell)
{
	return bell ? max(atomic_read(&bell->watched), 1) : 1;
}

#endif
