// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Map and unmap queues as the kernel describes them. */
#include "queue.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

/*
 * A kernel that speaks our ABI version never fails this; the check keeps a
 * wrong description from becoming a wild pointer.
 */
static bool is_sane(const struct weft_queue_map *map, size_t min_stride)
{
	uint64_t need = (uint64_t)map->entries * map->stride + WEFT_CTL_BYTES + map->offset;

	return map->entries && !(map->entries & (map->entries - 1)) && map->stride >= min_stride &&
	       map->stride % 8 == 0 && map->offset % WEFT_CTL_BYTES == 0 && map->bytes >= need;
}

int weft_queue_map(struct weft_queue *queue, int fd, const struct weft_queue_map *map,
		   size_t min_stride)
{
	void *base;

	if (!map->key)
		return 0;
	if (!is_sane(map, min_stride))
		return EPROTO;

	base = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)map->key);
	if (base == MAP_FAILED)
		return errno;

	/*
	 * A ring has one producer. A child that inherits the parent's must not
	 * be a second one, so it does not get to see the mapping at all.
	 */
	if (madvise(base, map->bytes, MADV_DONTFORK)) {
		int err = errno;

		munmap(base, map->bytes);
		return err;
	}

	queue->region = base;
	queue->base = queue->region + map->offset;
	queue->bytes = map->bytes;
	queue->entries = map->entries;
	queue->stride = map->stride;
	return 0;
}

void weft_queue_unmap(struct weft_queue *queue)
{
	if (queue->base)
		munmap(queue->region, queue->bytes);
	queue->base = NULL;
}
