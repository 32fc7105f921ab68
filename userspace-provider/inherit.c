// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which registered memory a child sees. All regions of the process are in a tree, by context
 * and key, under the lock of the mapped regions; only a child ever searches it.
 */
#include "inherit.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>

#include "mr.h"
#include "process.h"
#include "region.h"

uint32_t weft_inherited_mrs;

static void *tree; /* under weft_regions_lock */
static uint32_t count_of_all; /* under weft_regions_lock */

static int by_key(const void *a, const void *b)
{
	const struct weft_mr *one = a;
	const struct weft_mr *other = b;
	uintptr_t p = (uintptr_t)one->regions;
	uintptr_t q = (uintptr_t)other->regions;

	if (p != q)
		return (p > q) - (p < q);
	return (one->lkey > other->lkey) - (one->lkey < other->lkey);
}

int weft_mr_enter(struct weft_mr *mr)
{
	mr->generation = weft_generation;
	mr->lkey = mr->vmr.ibv_mr.lkey;
	pthread_mutex_lock(&weft_regions_lock);
	mr->listed = tsearch(mr, &tree, by_key);
	if (mr->listed)
		count_of_all++;
	pthread_mutex_unlock(&weft_regions_lock);
	return mr->listed ? 0 : ENOMEM;
}

void weft_mr_leave(struct weft_mr *mr)
{
	if (!mr->listed)
		return;
	pthread_mutex_lock(&weft_regions_lock);
	tdelete(mr, &tree, by_key);
	count_of_all--;
	if (mr->generation != weft_generation)
		weft_inherited_mrs--;
	pthread_mutex_unlock(&weft_regions_lock);
}

void weft_mr_renew(struct weft_mr *mr)
{
	if (!mr->listed)
		return;
	pthread_mutex_lock(&weft_regions_lock);
	if (mr->generation != weft_generation)
		weft_inherited_mrs--;
	mr->generation = weft_generation;
	mr->mapping = WEFT_MR_NOT_LOOKED;
	pthread_mutex_unlock(&weft_regions_lock);
}

void weft_mrs_are_inherited(void)
{
	weft_inherited_mrs = count_of_all;
}

/* All of it, by what the kernel says of this process' mappings. */
static bool is_shared(uintptr_t at, uintptr_t end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512], mode[5];

	if (!maps)
		return false;
	while (at < end && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 || to <= at)
			continue;
		if (from > at || mode[3] != 's')
			break;
		at = to;
	}
	fclose(maps);
	return at >= end;
}

bool weft_sges_look(const struct weft_regions *regions, const struct ibv_sge *sges, size_t count)
{
	struct weft_mr **found, *mr;
	bool seen = true;
	uintptr_t at;
	size_t i;

	pthread_mutex_lock(&weft_regions_lock);
	for (i = 0; i < count && seen; i++) {
		const struct weft_mr wanted = {
			.regions = regions,
			.lkey = sges[i].lkey,
		};

		found = sges[i].length ? tfind(&wanted, &tree, by_key) : NULL;
		mr = found ? *found : NULL;
		if (!mr || mr->generation == weft_generation)
			continue;
		at = (uintptr_t)mr->vmr.ibv_mr.addr;
		if (mr->mapping == WEFT_MR_NOT_LOOKED)
			mr->mapping = is_shared(at, at + mr->vmr.ibv_mr.length) ? WEFT_MR_SHARED :
										  WEFT_MR_PRIVATE;
		seen = mr->mapping == WEFT_MR_SHARED;
	}
	pthread_mutex_unlock(&weft_regions_lock);
	return seen;
}
