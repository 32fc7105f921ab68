/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The next message to send. By the holder of the tx claim only.
 */
#ifndef WEFT_ENGINE_PATH_TX_SCHED_H
#define WEFT_ENGINE_PATH_TX_SCHED_H

#include <linux/types.h>

#include "engine/state/stream.h"
#include "proto/fault.h"

struct weft_swr;

enum weft_pick_result {
	WEFT_PICK_NONE,		/* nothing may be sent now */
	WEFT_PICK_MESSAGE,	/* a message is in hand */
	WEFT_PICK_LATER,	/* what is next takes process context */
};

enum weft_pick_result weft_pick(struct weft_stream *st);
void weft_pick_fail(struct weft_stream *st, struct weft_swr *swr, enum weft_fault fault);

/**
 * weft_pick_drop - no message is in hand any more, and nothing more of it is lent
 * @tx: the direction, claim held
 *
 * Context: process.
 */
static inline void weft_pick_drop(struct weft_tx *tx)
{
	tx->msgs = 0;
	tx->cur = 0;
	tx->sock.notif_done = tx->sock.notif;
}

#endif
