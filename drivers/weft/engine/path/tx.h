/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The tx loop: choose the next message (engine/path/tx_sched.h), stage its segments
 * (engine/path/tx_segment.h), push. One owner at a time, by the tx claim
 * (engine/state/claim.h), in one of the contexts below.
 */
#ifndef WEFT_ENGINE_PATH_TX_H
#define WEFT_ENGINE_PATH_TX_H

#include <linux/types.h>

struct weft_stream;

/**
 * struct weft_tx_run - in which context tx runs, and for how long
 * @atomic: in a callback of the socket: its lock is held, bottom halves are off, nothing may
 *	sleep. Else process context without the lock.
 * @bytes: of the outgoing stream that may still be staged; @atomic only
 * @end: jiffies until which it may go on; process context only
 * @peer: stream of this host whose tx is to run afterwards, for weft_loopback_peer_done(), or NULL
 *
 * One budget for all turns of a call.
 */
struct weft_tx_run {
	bool atomic;
	s64 bytes;
	unsigned long end;
	struct weft_stream *peer;
};

/* What a turn came to. */
enum weft_tx_result {
	WEFT_TX_DONE,		/* nothing to send, or an event will say when to go on */
	WEFT_TX_MORE,		/* the budget is spent */
	WEFT_TX_NEEDS_PROCESS,	/* what is next may sleep, and this context may not */
	WEFT_TX_NO_MEMORY,	/* to be tried again after a while: no event will come */
};

void weft_tx_run_process(struct weft_tx_run *run);
void weft_tx_run_atomic(struct weft_tx_run *run, u64 acked);

enum weft_tx_result weft_tx_turn(struct weft_stream *st, struct weft_tx_run *run);
bool weft_tx_spent(const struct weft_tx_run *run);

void weft_tx_leave_peer(struct weft_tx_run *run);

void weft_tx_claim_wait(struct weft_stream *st);
void weft_tx_limit_ord(struct weft_stream *st, u32 ord);
void weft_tx_settle(struct weft_stream *st);
void weft_tx_flush(struct weft_stream *st);

#endif
