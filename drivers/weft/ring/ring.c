// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory of one queue, for a kernel consumer or shared with a process.
 */
#include "ring/ring.h"

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ring/mmap.h"

/* Entries that are copied before others may run. */
#define COPIED_AT_ONCE	4096U

static_assert(sizeof(struct weft_sq_ctl) == WEFT_CTL_BYTES);
static_assert(sizeof(struct weft_rq_ctl) == WEFT_CTL_BYTES);
static_assert(sizeof(struct weft_cq_ctl) == WEFT_CTL_BYTES);

/**
 * weft_ring_init - allocate a queue's memory, all zero
 * @ring: what to fill in
 * @entries: a power of two
 * @stride: bytes from entry to entry, a multiple of 8
 * @space: of the process that may map it, NULL for a kernel queue
 *
 * What a process asks for is charged to its memory cgroup. Context: may sleep.
 * Return: 0, -EINVAL or -ENOMEM.
 */
int weft_ring_init(struct weft_ring *ring, u32 entries, u32 stride, struct weft_ring_space *space)
{
	u64 bytes = WEFT_CTL_BYTES + (u64)entries * stride;
	struct weft_ring_map *map = NULL;
	void *mem;

	if (!is_power_of_2(entries) || PAGE_ALIGN(bytes) > U32_MAX)
		return -EINVAL;

	if (space) {
		map = weft_ring_map_get(space, bytes, &mem);
		if (IS_ERR(map))
			return PTR_ERR(map);
	} else {
		mem = __vmalloc(bytes, GFP_KERNEL | __GFP_ZERO);
		if (!mem)
			return -ENOMEM;
	}
	*ring = (struct weft_ring){ .mem = mem, .entries = entries, .stride = stride, .map = map };
	return 0;
}

/**
 * weft_ring_free - let go of a queue's memory
 * @ring: may be one that was never initialised, all zero
 *
 * The kernel may not touch the entries any more. A process that still has
 * them mapped keeps the pages. Context: may sleep.
 */
void weft_ring_free(struct weft_ring *ring)
{
	if (ring->map)
		weft_ring_map_put(ring->map, ring->mem, weft_ring_bytes(ring));
	else
		vfree(ring->mem);
	memset(ring, 0, sizeof(*ring));
}

/**
 * weft_ring_copy_ahead - the same as weft_ring_copy(), before the lock of the queue is taken
 * @to: not in use yet
 * @from: neither freed nor replaced meanwhile
 * @begin: first entry
 * @end: one after the last
 *
 * A process has as many entries as it likes, and the lock keeps softirqs off its CPU. What it
 * changes meanwhile is its own loss. Context: process.
 */
void weft_ring_copy_ahead(struct weft_ring *to, const struct weft_ring *from, u32 begin, u32 end)
{
	u32 next;

	for (; begin != end; begin = next) {
		next = begin + min(end - begin, COPIED_AT_ONCE);
		weft_ring_copy(to, from, begin, next);
		cond_resched();
	}
}
