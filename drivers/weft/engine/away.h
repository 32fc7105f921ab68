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

#include "net/inbox.h"

struct weft_stream;

enum weft_away_state {
	WEFT_AWAY_HOME,		/* rx belongs to the holder of the socket lock */
	WEFT_AWAY_OUT,		/* to the CPU that was called */
	WEFT_AWAY_PARKED,	/* again to the holder of the lock: the inbox goes back first */
};

/**
 * struct weft_away - who reads, and how long it takes
 * @state: of enum weft_away_state; OUT is left by the CPU that was called only
 * @pace: nanoseconds per 1024 octets, as last seen with enough of them
 * @inbox: what is read elsewhere
 * @csd: calls the other CPU
 * @task: runs there
 */
struct weft_away {
	u8 state;
	u32 pace;
	struct weft_inbox inbox;
	call_single_data_t csd;
	struct tasklet_struct task;
};

void weft_away_init(struct weft_stream *st);
void weft_away_stop(struct weft_stream *st);

/* Context: socket lock held. */
bool weft_away_takes_over(struct weft_stream *st);
bool weft_away_home(struct weft_stream *st);

/* Context: owner of rx. */
u64 weft_away_clock(u32 octets);
void weft_away_measured(struct weft_stream *st, u32 octets, u64 since);

#endif
