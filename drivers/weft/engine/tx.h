/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The tx loop: pick the next message (pick.h), stage its segments (segment.h), push.
 * Whoever holds the claim runs it.
 */
#ifndef WEFT_ENGINE_TX_H
#define WEFT_ENGINE_TX_H

#include <linux/types.h>

struct weft_stream;

bool weft_tx_mark(struct weft_stream *st);
bool weft_tx_turn(struct weft_stream *st);
void weft_tx_run(struct weft_stream *st);
void weft_tx_claim_wait(struct weft_stream *st);
bool weft_tx_try_claim(struct weft_stream *st);
void weft_tx_unclaim(struct weft_stream *st);
bool weft_tx_rest(struct weft_stream *st);
void weft_tx_settle(struct weft_stream *st);
void weft_tx_flush(struct weft_stream *st);

#endif
