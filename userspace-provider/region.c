// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Mapping regions. Small queues stand together in a page; that is mapped with the
 * first of them and unmapped with the last. To look a region up by its key is safe
 * only where the kernel does not give a key again: one whose last queue is gone there
 * may still be known here.
 */
#include "region.h"

#include <assert.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The key is handed to mmap() as an offset, and passes 2 GiB in time. */
static_assert(sizeof(off_t) == sizeof(uint64_t), "a key must fit into an offset");

/* weft_regions.tree, weft_region.users */
pthread_mutex_t weft_regions_lock = PTHREAD_MUTEX_INITIALIZER;

static int by_key(const void *a, const void *b)
{
	const struct weft_region *one = a;
	const struct weft_region *other = b;

	return (one->key > other->key) - (one->key < other->key);
}

int weft_va_reserve(struct weft_va_range *room, size_t bytes)
{
	struct weft_region *region = calloc(1, sizeof(*region));
	void *base;
	int ret;

	if (!region)
		return ENOMEM;
	base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		ret = errno;
		free(region);
		return ret;
	}
	region->base = base;
	region->bytes = bytes;
	room->region = region;
	return 0;
}

void weft_va_release(struct weft_va_range *room)
{
	if (!room->region)
		return;
	munmap(room->region->base, room->region->bytes);
	free(room->region);
}

/*
 * The mapping is inherited by children. A ring has one producer, which is one process at a
 * time: a child that goes on where its parent has ended, or one that only exits.
 */
static int add(struct weft_regions *all, uint64_t key, size_t bytes, struct weft_va_range *room,
	       struct weft_region **out)
{
	struct weft_region *region;
	int flags = MAP_SHARED;
	void *base;
	int ret;

	if (room && room->region && room->region->bytes == bytes) {
		region = room->region;
		room->region = NULL;
		flags |= MAP_FIXED;
	} else {
		region = calloc(1, sizeof(*region));
		if (!region)
			return ENOMEM;
	}
	region->all = all;
	region->key = key;
	region->bytes = bytes;

	base = mmap(region->base, bytes, PROT_READ | PROT_WRITE, flags, all->fd, (off_t)key);
	if (base == MAP_FAILED) {
		ret = errno;	/* the room may be gone, and its addresses used anew */
		goto err_free;
	}
	region->base = base;
	if (all->shared && !tsearch(region, &all->tree, by_key)) {
		ret = ENOMEM;
		goto err_unmap;
	}
	*out = region;
	return 0;

err_unmap:
	munmap(base, bytes);
err_free:
	free(region);
	return ret;
}

int weft_region_get(struct weft_regions *all, uint64_t key, size_t bytes,
		    struct weft_va_range *room, struct weft_region **out)
{
	const struct weft_region wanted = { .key = key };
	struct weft_region **found;
	int ret = 0;

	pthread_mutex_lock(&weft_regions_lock);
	found = tfind(&wanted, &all->tree, by_key);
	if (!found)
		ret = add(all, key, bytes, room, out);
	else if ((*found)->bytes == bytes)
		*out = *found;
	else
		ret = EPROTO;
	if (!ret)
		(*out)->users++;
	pthread_mutex_unlock(&weft_regions_lock);
	return ret;
}

void weft_region_put(struct weft_region *region)
{
	struct weft_regions *all = region->all;

	pthread_mutex_lock(&weft_regions_lock);
	if (--region->users == 0) {
		if (all->shared)
			tdelete(region, &all->tree, by_key);
		munmap(region->base, region->bytes);
		free(region);
	}
	pthread_mutex_unlock(&weft_regions_lock);
}
