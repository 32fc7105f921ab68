/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Kicks: there is something to send, or may be.
 */
#ifndef WEFT_ENGINE_KICK_H
#define WEFT_ENGINE_KICK_H

#include <linux/types.h>

struct weft_stream;

void weft_kick_init(struct weft_stream *st);
void weft_kick_end(struct weft_stream *st);

void weft_kick(struct weft_stream *st);
void weft_kick_atomic(struct weft_stream *st);
void weft_kick_soon(struct weft_stream *st);
void weft_kick_long(struct weft_stream *st, bool train);
void weft_kick_room(struct weft_stream *st);

#endif
