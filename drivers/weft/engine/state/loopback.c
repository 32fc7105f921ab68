// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which way the next segment takes, and which end has to go on. A segment goes to a peer on this
 * host if nothing staged for TCP is in front of it, and the peer takes it when it has read all
 * that TCP was given before. So either way may be taken at any segment, and nothing is lost,
 * doubled or reordered.
 */
#include "engine/state/loopback.h"

#include "engine/state/fsm.h"
#include "net/mpa_tx.h"

/**
 * weft_loopback_route - which way does the next segment take?
 * @st: stream with @loopback, tx claim held
 *
 * Context: as tx runs.
 */
enum weft_route weft_loopback_route(struct weft_stream *st)
{
	struct weft_loopback *lb = st->loopback;
	struct weft_loopback_end *peer = weft_loopback_peer(&lb->end);
	const struct weft_stream *to;
	bool allowed;

	if (!peer || !weft_mpa_tx_empty(&st->tx.sock))
		return WEFT_ROUTE_TCP;
	if (lb->entered)
		return WEFT_ROUTE_LOOPBACK;
	/* Both ends have to allow it. */
	if (READ_ONCE(st->index->loopback) < lb->end.mode || !weft_loopback_enter(peer))
		return WEFT_ROUTE_TCP;
	to = peer->owner;
	allowed = READ_ONCE(to->index->loopback) >= peer->mode;
	lb->entered = allowed && !st->tx.sock.atomic;
	if (lb->entered)
		return WEFT_ROUTE_LOOPBACK;
	weft_loopback_exit(peer);
	return allowed ? WEFT_ROUTE_LATER : WEFT_ROUTE_TCP;
}

/**
 * weft_loopback_batch_end - let go of the peer, or have its tx run
 * @st: stream with @loopback, tx claim held
 * @earlier: what the last call of this turn returned, or NULL
 *
 * A peer that is to run does so in this context when tx of @st is through, or, if that goes on,
 * in a worker. Context: as tx runs. Return: stream to run and to hand to
 * weft_loopback_peer_done(), or NULL.
 */
struct weft_stream *weft_loopback_batch_end(struct weft_stream *st, struct weft_stream *earlier)
{
	struct weft_loopback *lb = st->loopback;
	struct weft_stream *peer;

	lb->batch = 0;
	if (!lb->entered)
		return earlier;
	lb->entered = false;
	peer = weft_loopback_peer(&lb->end)->owner;
	if (earlier) {
		peer->hooks->want_tx(peer);
		weft_loopback_peer_done(earlier);
	}
	if (!lb->peer_runs) {
		weft_loopback_peer_done(peer);
		return NULL;
	}
	lb->peer_runs = false;
	return peer;
}

/* Context: any, the peer was entered. */
void weft_loopback_peer_done(struct weft_stream *peer)
{
	weft_loopback_exit(&peer->loopback->end);
}

/**
 * weft_loopback_resume - the peer's tx goes on if it waits
 * @st: stream with @loopback, socket lock held, that may take segments now, or none any more
 *
 * Context: any up to softirq.
 */
void weft_loopback_resume(struct weft_stream *st)
{
	struct weft_loopback_end *end = weft_loopback_peer(&st->loopback->end);
	struct weft_stream *peer;

	if (!st->loopback->peer_waits)
		return;
	st->loopback->peer_waits = false;
	if (!weft_loopback_enter(end))
		return;
	peer = end->owner;
	peer->hooks->want_tx(peer);
	weft_loopback_exit(end);
}
