// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue memory in the address space of the process that owns the queue. An
 * entry of the core's offset table owns the memory, so that a mmap() under way
 * cannot lose it; established mappings hold the pages themselves.
 */
#include "ring/mmap.h"

#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

/* Offset 0 stands for "no such queue" in struct weft_queue_map. */
#define FIRST_PAGE 1

struct weft_ring_map {
	struct rdma_user_mmap_entry entry;
	void *mem;
};

/**
 * weft_ring_map_create - let a process map queue memory
 * @uctx: its context
 * @mem: from __vmalloc(), zeroed; the map owns it if this succeeds
 * @bytes: its length, whole pages
 *
 * Context: may sleep. Return: the map or an ERR_PTR.
 */
struct weft_ring_map *weft_ring_map_create(struct ib_ucontext *uctx, void *mem, u32 bytes)
{
	struct weft_ring_map *map;
	int ret;

	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);

	map->mem = mem;
	ret = rdma_user_mmap_entry_insert_range(uctx, &map->entry, bytes, FIRST_PAGE, U32_MAX);
	if (ret) {
		kfree(map);
		return ERR_PTR(ret);
	}
	return map;
}

/**
 * weft_ring_map_destroy - take no new mappings, free the memory with the last
 * @map: from weft_ring_map_create(), the caller's use of it ends
 *
 * Context: may sleep.
 */
void weft_ring_map_destroy(struct weft_ring_map *map)
{
	rdma_user_mmap_entry_remove(&map->entry);
}

/* The offset for mmap(). Context: any. */
u64 weft_ring_map_key(const struct weft_ring_map *map)
{
	return rdma_user_mmap_get_offset(&map->entry);
}

/*
 * As remap_vmalloc_range() does it, which takes memory of vmalloc_user() only; and
 * that is charged to nobody.
 */
static int insert(struct vm_area_struct *vma, void *mem)
{
	unsigned long size = vma->vm_end - vma->vm_start;
	unsigned long off;
	int ret;

	for (off = 0; off < size; off += PAGE_SIZE) {
		ret = vm_insert_page(vma, vma->vm_start + off, vmalloc_to_page(mem + off));
		if (ret)
			return ret;
	}
	return 0;
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
	struct rdma_user_mmap_entry *entry;
	struct weft_ring_map *map;
	int ret;

	/* Checks for a shared mapping, the offset, and the exact length. */
	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;

	map = container_of(entry, struct weft_ring_map, entry);
	ret = insert(vma, map->mem);
	rdma_user_mmap_entry_put(entry);
	return ret;
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

	vfree(map->mem);
	kfree(map);
}
