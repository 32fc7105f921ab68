// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue memory in the address space of the process that owns the queue. An
 * entry of the core's offset table owns the memory, so that a mmap() under way
 * cannot lose it; established mappings hold the pages themselves.
 *
 * A page of its own would be too much for each small queue of thousands of idle
 * connections. A process can overwrite its queues anyway, so those of one context share
 * pages, those of two contexts never. A context is what a process got by opening the device;
 * another one has it too if it was handed the file (ibv_import_device()), and with it all
 * queues, to destroy them for instance.
 */
#include "ring/mmap.h"

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

#include "base/compat.h"
#include "ring/ring.h"
#include "uapi/weft-abi.h"

/* Offset 0 stands for "no such queue" in struct weft_queue_map. */
#define FIRST_PAGE 1U

/* A queue begins with its control block, so this keeps cache lines apart. */
#define SLOT_BYTES	WEFT_CTL_BYTES
#define SLOTS		(PAGE_SIZE / SLOT_BYTES)
/* Of the maps with room only the latest are tried, so a search has an end. */
#define TRIES		4

/**
 * struct weft_ring_map - what a process can map
 * @entry: the core's; its last reference frees all this
 * @space: whose it is
 * @mem: the memory
 * @bytes: of it, whole pages
 * @open: in the space's list while there is room; a lone queue's is in none
 * @used: slots of a shared page that are in use
 */
struct weft_ring_map {
	struct rdma_user_mmap_entry entry;
	struct weft_ring_space *space;
	void *mem;
	u32 bytes;
	struct list_head open;
	DECLARE_BITMAP(used, SLOTS);
};

void weft_ring_space_init(struct weft_ring_space *space, struct ib_ucontext *uctx, bool shares)
{
	space->uctx = uctx;
	space->shares = shares;
	atomic_set(&space->next, FIRST_PAGE);
	mutex_init(&space->lock);
	INIT_LIST_HEAD(&space->open);
}

/* Its queues are gone. */
void weft_ring_space_destroy(struct weft_ring_space *space)
{
	WARN_ON_ONCE(!list_empty(&space->open));
	mutex_destroy(&space->lock);
}

/**
 * weft_ring_mmap_free - the device's mmap_free operation
 * @entry: of a struct weft_ring_map whose last reference is gone
 *
 * Context: may sleep.
 */
void weft_ring_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct weft_ring_map *map = container_of(entry, struct weft_ring_map, entry);

	if (is_vmalloc_addr(map->mem))
		vfree(map->mem);
	else
		free_page((unsigned long)map->mem);
	kfree(map);
}

static struct weft_ring_map *create_map(struct weft_ring_space *space, u32 bytes)
{
	struct weft_ring_map *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	u32 next;
	int ret;

	if (!map)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&map->open);
	map->space = space;
	map->bytes = bytes;
	/* Zeroed, and charged to the memory cgroup of the process. */
	if (bytes == PAGE_SIZE)
		map->mem = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	else
		map->mem = __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!map->mem) {
		kfree(map);
		return ERR_PTR(-ENOMEM);
	}
	/* A key that no map had before, until all 2^32 were used. */
	next = atomic_fetch_add(bytes >> PAGE_SHIFT, &space->next);
	ret = rdma_user_mmap_entry_insert_range(space->uctx, &map->entry, bytes,
						max(next, FIRST_PAGE), U32_MAX);
	if (ret)
		ret = rdma_user_mmap_entry_insert_range(space->uctx, &map->entry, bytes, FIRST_PAGE,
							U32_MAX);
	if (!ret)
		return map;
	weft_ring_mmap_free(&map->entry);
	return ERR_PTR(ret);
}

/* Returns the first of @slots free ones in a row, NULL if the page has none. */
static void *take_slots(struct weft_ring_map *map, u32 slots) __must_hold(&map->space->lock)
{
	unsigned long at = bitmap_find_next_zero_area(map->used, SLOTS, 0, slots, 0);

	lockdep_assert_held(&map->space->lock);
	if (at >= SLOTS)
		return NULL;
	bitmap_set(map->used, at, slots);
	if (bitmap_full(map->used, SLOTS))
		list_del_init(&map->open);
	return map->mem + at * SLOT_BYTES;
}

/* Does a queue of that size have a map for itself? */
static bool is_alone(const struct weft_ring_space *space, u32 bytes)
{
	return !space->shares || bytes > PAGE_SIZE / 2;
}

/**
 * weft_ring_map_get - memory that a process may map
 * @space: of the process
 * @bytes: how much
 * @mem: set to where it is, all zero
 *
 * Context: may sleep. Return: what to map, for weft_ring_map_put(), or an ERR_PTR.
 */
struct weft_ring_map *weft_ring_map_get(struct weft_ring_space *space, u32 bytes, void **mem)
{
	u32 slots = DIV_ROUND_UP(bytes, SLOT_BYTES);
	struct weft_ring_map *map;
	u32 tries = 0;

	if (is_alone(space, bytes)) {
		map = create_map(space, PAGE_ALIGN(bytes));
		if (!IS_ERR(map))
			*mem = map->mem;
		return map;
	}
	mutex_lock(&space->lock);
	list_for_each_entry(map, &space->open, open) {
		if (tries++ == TRIES)
			break;
		*mem = take_slots(map, slots);
		if (*mem) {
			memset(*mem, 0, slots * SLOT_BYTES);
			goto unlock;
		}
	}
	map = create_map(space, PAGE_SIZE);
	if (!IS_ERR(map)) {
		list_add(&map->open, &space->open);
		*mem = take_slots(map, slots);
	}
unlock:
	mutex_unlock(&space->lock);
	return map;
}

/**
 * weft_ring_map_put - let go of memory
 * @map: from weft_ring_map_get()
 * @mem: set there
 * @bytes: given there
 *
 * What the process has mapped it keeps, and may find another of its queues in it.
 * Context: may sleep.
 */
void weft_ring_map_put(struct weft_ring_map *map, void *mem, u32 bytes)
{
	struct weft_ring_space *space = map->space;
	bool last = is_alone(space, bytes);

	if (!last) {
		mutex_lock(&space->lock);
		bitmap_clear(map->used, (mem - map->mem) / SLOT_BYTES,
			     DIV_ROUND_UP(bytes, SLOT_BYTES));
		last = bitmap_empty(map->used, SLOTS);
		if (last)
			list_del_init(&map->open);
		else if (list_empty(&map->open))
			list_add(&map->open, &space->open);
		mutex_unlock(&space->lock);
	}
	if (last)
		rdma_user_mmap_entry_remove(&map->entry);
}

/**
 * weft_ring_describe - tell the provider where a queue is found
 * @ring: a ring that may be mapped, or one that was never initialised
 * @out: written completely
 *
 * Context: any.
 */
void weft_ring_describe(const struct weft_ring *ring, struct weft_queue_map *out)
{
	*out = (struct weft_queue_map){
		.entries = ring->entries,
		.stride = ring->stride,
	};
	if (!ring->map)
		return;
	out->key = rdma_user_mmap_get_offset(&ring->map->entry);
	out->bytes = ring->map->bytes;
	out->offset = ring->mem - ring->map->mem;
}

/**
 * weft_ring_mmap - the device's mmap operation
 * @uctx: context whose queues may be mapped
 * @vma: must be shared and cover exactly one region
 *
 * Context: process, mmap lock held. Return: 0 or -errno.
 */
int weft_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	unsigned long size = vma->vm_end - vma->vm_start;
	struct rdma_user_mmap_entry *entry;
	struct weft_ring_map *map;
	unsigned long off;
	int ret = 0;

	/* Checks for a shared mapping, the offset, and the exact length. */
	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;

	map = container_of(entry, struct weft_ring_map, entry);
	/* Not into core dumps, nor larger than it is. */
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	/*
	 * As remap_vmalloc_range() does it, which takes memory of vmalloc_user() only; and
	 * that is charged to no cgroup.
	 */
	for (off = 0; !ret && off < size; off += PAGE_SIZE) {
		void *mem = map->mem + off;
		struct page *page = is_vmalloc_addr(mem) ? vmalloc_to_page(mem) : virt_to_page(mem);

		ret = vm_insert_page(vma, vma->vm_start + off, page);
	}
	rdma_user_mmap_entry_put(entry);
	return ret;
}
