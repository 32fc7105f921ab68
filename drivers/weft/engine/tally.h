/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which counters a message of a stream moves.
 */
#ifndef WEFT_ENGINE_TALLY_H
#define WEFT_ENGINE_TALLY_H

#include <linux/types.h>

#include "proto/fault.h"

struct weft_stream;
struct weft_term;

void weft_tally_sent(struct weft_stream *st, u8 opcode);
void weft_tally_received(struct weft_stream *st, u8 opcode);
void weft_tally_term_sent(struct weft_stream *st, enum weft_fault fault);
void weft_tally_term_received(struct weft_stream *st, const struct weft_term *term);

#endif
