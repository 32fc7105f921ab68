// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Mapping regions. Small queues stand together in a page; that is mapped with the
 * first of them and unmapped with the last. To look a region up by its key is safe
 * only where the kernel does not give a key again: one whose last queue is gone there
 * may still be known here.
 */
#include "region.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

void weft_regions_init(struct weft_regions *all, int fd, bool shared)
{
	*all = (struct weft_regions){ .fd = fd, .shared = shared };
	pthread_mutex_init(&all->lock, NULL);
}

void weft_regions_fini(struct weft_regions *all)
{
	pthread_mutex_destroy(&all->lock);
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

static int map(struct weft_region *region)
{
	void *base = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->all->fd,
			  (off_t)region->key);
	int err;

	if (base == MAP_FAILED)
		return errno;
	/*
	 * A ring has one producer. A child that inherits the parent's must not
	 * be a second one, so it does not get to see the mapping at all.
	 */
	if (madvise(base, region->bytes, MADV_DONTFORK)) {
		err = errno;
		munmap(base, region->bytes);
		return err;
	}
	region->base = base;
	return 0;
}

static int add(struct weft_regions *all, uint64_t key, size_t bytes, struct weft_region **out)
{
	struct weft_region *region = calloc(1, sizeof(*region));
	int ret;

	if (!region)
		return ENOMEM;
	region->all = all;
	region->key = key;
	region->bytes = bytes;
	ret = map(region);
	if (!ret && all->shared && !tsearch(region, &all->tree, by_key)) {
		munmap(region->base, bytes);
		ret = ENOMEM;
	}
	if (ret)
		free(region);
	else
		*out = region;
	return ret;
}

static int find_or_add(struct weft_regions *all, uint64_t key, size_t bytes,
		       struct weft_region **out)
{
	int ret = 0;

	*out = find(all, key);
	if (!*out)
		ret = add(all, key, bytes, out);
	else if ((*out)->bytes != bytes)
		ret = EPROTO;
	if (!ret)
		(*out)->users++;
	return ret;
}

int weft_region_get(struct weft_regions *all, uint64_t key, size_t bytes, struct weft_region **out)
{
	int ret;

	pthread_mutex_lock(&all->lock);
	ret = find_or_add(all, key, bytes, out);
	pthread_mutex_unlock(&all->lock);
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
	struct weft_regions *all = region->all;

	pthread_mutex_lock(&all->lock);
	drop(region);
	pthread_mutex_unlock(&all->lock);
}
