/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Reading on another CPU. On one host the receiver's callback runs on top of the
 * sender, so that one CPU does both sides' copies and checksums. What takes long
 * is handed over.
 */
#ifndef WEFT_ENGINE_AWAY_H
#define WEFT_ENGINE_AWAY_H

#include <linux/interrupt.h>
#include <linux/smp.h>
#include <linux/types.h>

#include "base/trial.h"
#include "net/inbox.h"

struct weft_stream;

/* Octets that tell something about the pace, or are worth a call. */
#define WEFT_AWAY_BULK	16384U

/* Octets of a message from which on two CPUs are better than one. */
#define WEFT_AWAY_LONG	(256U * 1024)

enum weft_away_state {
	WEFT_AWAY_HOME, /* rx belongs to the holder of the socket lock */
	WEFT_AWAY_OUT, /* to the CPU that was called */
	WEFT_AWAY_PARKED, /* again to the holder of the lock: the inbox goes back first */
	WEFT_AWAY_LENT, /* to the holder of the lock, but a process is to come for it */
};

/**
 * struct weft_trip - what it takes to read on another CPU
 * @csd: calls it
 * @st: stream that is read
 * @inbox: what is read there
 * @task: runs there
 * @lent: of ktime_get_ns(), when it was left to a process
 * @trial: of reading by the process and here, enum weft_away_way
 */
struct weft_trip {
	call_single_data_t csd;
	struct weft_stream *st;
	struct weft_inbox inbox;
	struct tasklet_struct task;
	u64 lent;
	struct weft_trial trial;
};

enum weft_away_way {
	WEFT_AWAY_BY_PROCESS,
	WEFT_AWAY_HERE,
};

/**
 * struct weft_away - who reads, and how long it takes
 * @state: of enum weft_away_state; OUT is left by the CPU that was called only
 * @pace: nanoseconds per 1024 octets, the fastest of late
 * @told: completions when @run began
 * @run: octets read since, WEFT_AWAY_LONG and more are all the same
 * @run_before: of these, between the two completions before
 * @trip: there from the first time on
 */
struct weft_away {
	u8 state;
	u32 pace;
	u32 told;
	u32 run;
	u32 run_before;
	struct weft_trip *trip;
};

/**
 * weft_away_is_home - does rx belong to the holder of the socket lock, as a rule?
 * @away: of the stream
 *
 * Context: socket lock held. Return: false: weft_away_home() knows more.
 */
static inline bool weft_away_is_home(const struct weft_away *away)
{
	return smp_load_acquire(&away->state) == WEFT_AWAY_HOME; /* pairs with set_state() */
}

/* Has it ever been left to a process? Context: any; a hint. */
static inline bool weft_away_was_lent(const struct weft_away *away)
{
	const struct weft_trip *trip = READ_ONCE(away->trip);

	return trip && READ_ONCE(trip->lent);
}

void weft_away_stop(struct weft_stream *st);
void weft_away_serve(struct weft_stream *st);

/* Context: socket lock held. */
bool weft_away_takes_over(struct weft_stream *st, u32 octets);
bool weft_away_home(struct weft_stream *st);
void weft_away_recall(struct weft_stream *st);

/* Context: owner of rx. */
void weft_away_learn(struct weft_stream *st, u32 octets, u64 since);

#endif
