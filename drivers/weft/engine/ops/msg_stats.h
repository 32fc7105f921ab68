/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which counters a message of a stream moves.
 */
#ifndef WEFT_ENGINE_OPS_MSG_STATS_H
#define WEFT_ENGINE_OPS_MSG_STATS_H

#include <linux/types.h>

#include "base/counters.h"
#include "proto/fault.h"
#include "proto/wire.h"

struct weft_stream;
struct weft_term;

/* Counters of an opcode. */
struct weft_tally {
	u8 sent;
	u8 received;
};

extern const struct weft_tally weft_tallies[WEFT_OP_COUNT];

/**
 * weft_tally_sent - a message is staged
 * @c: of its stream
 * @opcode: RDMAP opcode
 */
static inline void weft_tally_sent(struct weft_counters *c, u8 opcode)
{
	weft_count_two(c, WEFT_CTR_TX_MSGS, 1, weft_tallies[opcode].sent, 1);
}

/**
 * weft_tally_received - a message is there in full
 * @c: of its stream
 * @opcode: RDMAP opcode, known
 */
static inline void weft_tally_received(struct weft_counters *c, u8 opcode)
{
	weft_count_two(c, WEFT_CTR_RX_MSGS, 1, weft_tallies[opcode].received, 1);
}

void weft_tally_term_sent(struct weft_stream *st, enum weft_fault fault);
void weft_tally_term_received(struct weft_stream *st, const struct weft_term *term);

#endif
