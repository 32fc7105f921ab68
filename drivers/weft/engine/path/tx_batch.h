/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Segments of a long message that fill a TCP segment each: they differ in one field of
 * their headers, and are staged in one go.
 */
#ifndef WEFT_ENGINE_PATH_TX_BATCH_H
#define WEFT_ENGINE_PATH_TX_BATCH_H

#include "engine/ops/op.h"
#include "net/mpa_tx.h"

struct weft_stream;

bool weft_bulk_stage(struct weft_stream *st, struct weft_msg *msg);

/* Is there enough left of a message, and may a row begin? Context: tx claim. */
static inline bool weft_bulk_is_worth(const struct weft_mpa_tx *sock, const struct weft_msg *msg)
{
	return msg->length - msg->done > 2 * sock->mulpdu && weft_mpa_tx_may_span(sock);
}

#endif
