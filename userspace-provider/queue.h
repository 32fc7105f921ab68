/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A mapped queue: one control block, then entries of fixed stride. */
#ifndef WEFT_QUEUE_H
#define WEFT_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "region.h"
#include "uapi/weft-abi.h"

struct weft_queue {
	uint8_t *base;		/* NULL: the object has no such queue */
	struct weft_region *region;	/* what is mapped; the queue is somewhere in it */
	uint32_t entries;
	uint32_t stride;
};

/*
 * Returns 0 or an errno. A map without a key leaves @queue empty and succeeds. @room may be
 * NULL.
 */
int weft_queue_map(struct weft_queue *queue, struct weft_regions *regions,
		   const struct weft_queue_map *map, size_t min_stride, struct weft_va_range *room);

/* Room for a queue that the kernel grants for a request of @entries. */
int weft_queue_reserve(struct weft_va_range *room, uint32_t entries, size_t stride);
void weft_queue_unmap(struct weft_queue *queue);

/* A limit of the caller, or what the queue holds. */
static inline uint32_t weft_at_most(uint32_t value, size_t limit)
{
	return value < limit ? value : (uint32_t)limit;
}

/* The entry a free running index stands for. */
static inline void *weft_queue_entry(const struct weft_queue *queue, uint32_t index)
{
	size_t slot = index & (queue->entries - 1);

	return queue->base + WEFT_CTL_BYTES + slot * queue->stride;
}

/* Elements behind the head of an entry. One is the rule, and takes no call. */
static inline void weft_queue_put_sges(void *to, const struct ibv_sge *sges, size_t count)
{
	if (count == 1)
		memcpy(to, sges, sizeof(*sges));
	else if (count)
		memcpy(to, sges, count * sizeof(*sges));
}

#endif
