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
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The key is handed to mmap() as an offset, and passes 2 GiB in time. */
static_assert(sizeof(off_t) == sizeof(uint64_t), "a key must fit into an offset");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void weft_regions_init(struct weft_regions *all, int fd, bool shared)
{
	*all = (struct weft_regions){ .fd = fd, .shared = shared };
}

void weft_regions_lock(void)
{
	pthread_mutex_lock(&lock);
}

void weft_regions_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static int by_key(const void *a, const void *b)
{
	const struct weft_region *one = a;
	const struct weft_region *other = b;

	return (one->key > other->key) - (one->key < other->key);
}

static struct weft_region *find(const struct weft_regions *all, uint64_t key)
{
	const struct weft_region wanted = { .key = key };
	struct weft_region **found = tfind(&wanted, &all->tree, by_key);

	return found ? *found : NULL;
}

static int map(void **base, size_t bytes, int prot, int flags, int fd, uint64_t key)
{
	void *at = mmap(*base, bytes, prot, flags, fd, (off_t)key);

	if (at == MAP_FAILED)
		return errno;
	*base = at;
	return 0;
}

int weft_va_reserve(struct weft_va_range *room, size_t bytes)
{
	struct weft_region *region = calloc(1, sizeof(*region));
	void *base = NULL;
	int ret;

	if (!region)
		return ENOMEM;
	ret = map(&base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ret) {
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

/* One with room of the right size, or with none yet. */
static struct weft_region *new_region(struct weft_va_range *room, size_t bytes)
{
	struct weft_region *region;

	if (!room || !room->region || room->region->bytes != bytes)
		return calloc(1, sizeof(*region));
	region = room->region;
	room->region = NULL;
	return region;
}

/*
 * The mapping is inherited by children. A ring has one producer, which is one process at a
 * time: a child that goes on where its parent has ended, or one that only exits.
 */
static int map_region(struct weft_region *region)
{
	int flags = MAP_SHARED | (region->base ? MAP_FIXED : 0);
	void *base = region->base;
	int ret;

	ret = map(&base, region->bytes, PROT_READ | PROT_WRITE, flags, region->all->fd,
		  region->key);
	/* The room may be somebody else's already. */
	region->base = ret ? NULL : base;
	return ret;
}

static int add(struct weft_regions *all, uint64_t key, size_t bytes, struct weft_va_range *room,
	       struct weft_region **out)
{
	struct weft_region *region = new_region(room, bytes);
	int ret;

	if (!region)
		return ENOMEM;
	region->all = all;
	region->key = key;
	region->bytes = bytes;
	ret = map_region(region);
	if (!ret && all->shared && !tsearch(region, &all->tree, by_key))
		ret = ENOMEM;
	if (!ret) {
		*out = region;
		return 0;
	}
	if (region->base)
		munmap(region->base, bytes);
	free(region);
	return ret;
}

static int find_or_add(struct weft_regions *all, uint64_t key, size_t bytes,
		       struct weft_va_range *room, struct weft_region **out)
{
	int ret = 0;

	*out = find(all, key);
	if (!*out)
		ret = add(all, key, bytes, room, out);
	else if ((*out)->bytes != bytes)
		ret = EPROTO;
	if (!ret)
		(*out)->users++;
	return ret;
}

int weft_region_get(struct weft_regions *all, uint64_t key, size_t bytes,
		    struct weft_va_range *room, struct weft_region **out)
{
	int ret;

	weft_regions_lock();
	ret = find_or_add(all, key, bytes, room, out);
	weft_regions_unlock();
	return ret;
}

static void drop(struct weft_region *region)
{
	struct weft_regions *all = region->all;

	if (--region->users)
		return;
	if (all->shared)
		tdelete(region, &all->tree, by_key);
	munmap(region->base, region->bytes);
	free(region);
}

void weft_region_put(struct weft_region *region)
{
	weft_regions_lock();
	drop(region);
	weft_regions_unlock();
}
