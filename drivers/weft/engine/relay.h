/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Where both ends of a connection are on one host, what we send is received on
 * top of the very task that sends. What that owes a short answer is run by this
 * task when its own work is done, not by a worker that must be woken first.
 */
#ifndef WEFT_ENGINE_RELAY_H
#define WEFT_ENGINE_RELAY_H

#include <linux/types.h>

struct weft_stream;
struct weft_relay_seat;

/* On the stack of a task that runs tx. */
struct weft_relay {
	struct weft_relay_seat *seat;
};

void weft_relay_open(struct weft_relay *relay);
void weft_relay_close(struct weft_relay *relay);

bool weft_relay_offer(struct weft_stream *st);
void weft_relay_wait(struct weft_stream *st);

#endif
