/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Where both ends of a connection are on one host, a process that polls in vain while
 * its peer reads its memory may stay in the kernel for a while and look at the peer's
 * send queue: it is the porter at that one's door. Then a post is a store, and who
 * posts need not enter the kernel.
 */
#ifndef WEFT_ENGINE_PORTER_H
#define WEFT_ENGINE_PORTER_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "base/patience.h"

struct weft_stream;

/**
 * struct weft_porter - a process as porter
 * @at: whose porter it is asked to be, or is
 * @inside: it has come
 * @missed: how often it was wanted since it was asked
 * @polls: in vain, as last seen
 * @looked: of ktime_get_ns(), when that was
 * @known: @news when it last left the kernel, or was asked to come
 * @patience: with one that is called away, or does not come
 * @news: goes up with whatever the process may be waiting for; any context, no lock
 */
struct weft_porter {
	struct weft_stream *at;
	bool inside;
	u8 missed;
	u32 polls;
	u64 looked;
	u32 known;
	struct weft_patience patience;
	u32 news;
};

/**
 * struct weft_door - where posts come in, of a stream
 * @porter: who is asked to be there, or is
 * @closed: nobody may be asked any more
 * @kicks: answered on the spot since it was @tick
 * @tick: jiffies, cut off
 * @events: of the process that posts, as last seen
 *
 * The first two and the last under the lock of all porters. Threads that kick at once may spoil
 * the others for each other, to no harm.
 */
struct weft_door {
	struct weft_porter *porter;
	bool closed;
	u8 kicks;
	u16 tick;
	u32 events;
};

void weft_porter_meet(struct weft_stream *st, struct weft_stream *answers);
bool weft_porter_serve(struct weft_porter *porter);
void weft_porter_destroy(struct weft_porter *porter);
void weft_porter_end(struct weft_stream *st);

/* Two at once may count as one: it is only asked whether there was any. */
static inline void weft_porter_news(u32 *news)
{
	WRITE_ONCE(*news, READ_ONCE(*news) + 1);
}

#endif
