// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Map and unmap queues as the kernel describes them. */
#include "queue.h"

#include <errno.h>
#include <unistd.h>

int weft_queue_map(struct weft_queue *queue, struct weft_regions *regions,
		   const struct weft_queue_map *map, size_t min_stride, struct weft_va_range *room)
{
	uint64_t need = (uint64_t)map->entries * map->stride + WEFT_CTL_BYTES + map->offset;
	struct weft_region *region;
	int ret;

	if (!map->key)
		return 0;
	/*
	 * A kernel that speaks our ABI version never fails this; the check keeps a
	 * wrong description from becoming a wild pointer.
	 */
	if (!map->entries || (map->entries & (map->entries - 1)) || map->stride < min_stride ||
	    map->stride % 8 || map->offset % WEFT_CTL_BYTES || map->bytes < need)
		return EPROTO;

	ret = weft_region_get(regions, map->key, map->bytes, room, &region);
	if (ret)
		return ret;

	queue->region = region;
	queue->base = region->base + map->offset;
	queue->entries = map->entries;
	queue->stride = map->stride;
	return 0;
}

/* A power of two, and whole pages; a region of another size is mapped elsewhere. */
int weft_queue_reserve(struct weft_va_range *room, uint32_t entries, size_t stride)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t granted = 1;
	uint64_t bytes;

	while (granted < entries)
		granted *= 2;
	bytes = (WEFT_CTL_BYTES + granted * stride + page - 1) & ~(page - 1);
	return bytes <= SIZE_MAX ? weft_va_reserve(room, (size_t)bytes) : ENOMEM;
}

void weft_queue_unmap(struct weft_queue *queue)
{
	if (queue->base)
		weft_region_put(queue->region);
	queue->base = NULL;
}
