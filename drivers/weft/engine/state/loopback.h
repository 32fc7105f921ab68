/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a stream knows of a peer on this host.
 */
#ifndef WEFT_ENGINE_STATE_LOOPBACK_H
#define WEFT_ENGINE_STATE_LOOPBACK_H

#include <linux/sizes.h>
#include <linux/types.h>

#include "engine/state/stream.h"
#include "net/loopback.h"

struct page;

/* What is handed over before completions are posted, and pins dropped. */
#define WEFT_LOOPBACK_BATCH	SZ_256K
#define WEFT_LOOPBACK_SEGMENT_COST	SZ_2K	/* that a segment counts for at least */

/**
 * struct weft_loopback - the loopback transport of a stream
 * @end: of its connection; first, since it is what is freed
 * @peer_waits: the peer's tx waits for this stream's rx; socket lock
 * @taken: bytes that rx has taken from the peer; written with the socket lock
 * @entered: this batch is at work on the peer
 * @peer_runs: the peer's tx has something to do
 * @batch: what has been handed over in this batch
 * @handed: bytes that tx has handed over
 * @bounce: for payload in memory that is paged on demand, or NULL
 *
 * Without a lock named, owner: the tx claim.
 */
struct weft_loopback {
	struct weft_loopback_end end;
	bool peer_waits;
	u64 taken;
	bool entered;
	bool peer_runs;
	u32 batch;
	u64 handed;
	struct page *bounce;
};

enum weft_route {
	WEFT_ROUTE_TCP,
	WEFT_ROUTE_LOOPBACK,
	WEFT_ROUTE_LATER,	/* loopback, but this context may not sleep */
};

enum weft_route weft_loopback_route(struct weft_stream *st);
struct weft_stream *weft_loopback_batch_end(struct weft_stream *st, struct weft_stream *earlier);
void weft_loopback_resume(struct weft_stream *st);
void weft_loopback_peer_done(struct weft_stream *peer);

/* Is it time to end the batch? Context: tx claim. */
static inline bool weft_loopback_is_full(const struct weft_stream *st)
{
	return unlikely(st->loopback) && st->loopback->batch >= WEFT_LOOPBACK_BATCH;
}

#endif
