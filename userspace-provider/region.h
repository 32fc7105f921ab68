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
	pthread_mutex_t lock;	/* of what is below, and the users of each region */
	void *tree;		/* if shared: by key, see tsearch() */
};

struct weft_region {
	struct weft_regions *all;
	uint64_t key;
	uint8_t *base;
	size_t bytes;
	unsigned int users;
};

void weft_regions_init(struct weft_regions *all, int fd, bool shared);
void weft_regions_fini(struct weft_regions *all);

/* Returns 0 or an errno. */
int weft_region_get(struct weft_regions *all, uint64_t key, size_t bytes, struct weft_region **out);
void weft_region_put(struct weft_region *region);

#endif
