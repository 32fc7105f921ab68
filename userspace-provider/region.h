/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a process has mapped of a device: each region once, for all queues in it. */
#ifndef WEFT_REGION_H
#define WEFT_REGION_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All regions of a context. */
struct weft_regions {
	int fd;
	bool shared;		/* a key stands for one region for good */
	void *tree;		/* if shared: by key, see tsearch() */
};

struct weft_region {
	struct weft_regions *all;
	uint64_t key;
	uint8_t *base;
	size_t bytes;
	unsigned int users;
};

/* Room in the address space for a region that is yet to come. */
struct weft_va_range {
	struct weft_region *region;	/* NULL once it is used */
};

/* Over all contexts: the trees, and the users of each region. Taken around fork(), too. */
extern pthread_mutex_t weft_regions_lock __attribute__((visibility("hidden")));

/*
 * Keeps room for @bytes: mapping a region of that size into it does not fail for want of
 * address space. Returns 0 or an errno. Give it back when done, used or not.
 */
int weft_va_reserve(struct weft_va_range *room, size_t bytes);
void weft_va_release(struct weft_va_range *room);

/* Returns 0 or an errno. @room may be NULL. */
int weft_region_get(struct weft_regions *all, uint64_t key, size_t bytes,
		    struct weft_va_range *room, struct weft_region **out);
void weft_region_put(struct weft_region *region);

#endif
