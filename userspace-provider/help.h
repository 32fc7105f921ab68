/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A thread that polls in vain has a CPU to spare. The kernel sees by a count that it
 * polls, and tells by a word beside it that there is something for it to do.
 */
#ifndef WEFT_HELP_H
#define WEFT_HELP_H

#include <stdint.h>

#include "queue.h"

/* Of a context; without a control block where the kernel knows nothing of this. */
struct weft_help {
	int fd;
	struct weft_queue queue;
	struct weft_ctx_ctl *ctl;
};

/* What the kernel says of the control block may be nothing at all. */
void weft_help_init(struct weft_help *help, struct weft_regions *regions, int fd,
		    const struct weft_queue_map *map);
void weft_help_fini(struct weft_help *help);

void weft_help_give(struct weft_help *help);

/* A poll has found nothing. Threads may spoil each other's count, not the word. */
static inline void weft_help_offer(struct weft_help *help)
{
	struct weft_ctx_ctl *ctl = help->ctl;

	if (!ctl)
		return;
	__atomic_store_n(&ctl->polls, ctl->polls + 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&ctl->work, __ATOMIC_RELAXED))
		weft_help_give(help);
}

#endif
