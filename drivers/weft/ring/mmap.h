/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Queue memory in the address space of the process that owns the queue. Small
 * queues of one process stand together in a page.
 */
#ifndef WEFT_RING_MMAP_H
#define WEFT_RING_MMAP_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct ib_ucontext;
struct rdma_user_mmap_entry;
struct vm_area_struct;
struct weft_ring_map;

/**
 * struct weft_ring_space - where the queues of a process are
 * @uctx: its context
 * @shares: it looks at offsets, so its queues may share pages
 * @next: key to try next, in pages: a library may know one for a while after it was
 *	given back
 * @lock: protects @open, and which pieces of a map are in use
 * @open: maps that have room, the latest first
 */
struct weft_ring_space {
	struct ib_ucontext *uctx;
	bool shares;
	atomic_t next;
	struct mutex lock; /* open, weft_ring_map.open, weft_ring_map.used */
	struct list_head open;
};

void weft_ring_space_init(struct weft_ring_space *space, struct ib_ucontext *uctx, bool shares);
void weft_ring_space_destroy(struct weft_ring_space *space);

/* For ring.c. */
struct weft_ring_map *weft_ring_map_get(struct weft_ring_space *space, u32 bytes, void **mem);
void weft_ring_map_put(struct weft_ring_map *map, void *mem, u32 bytes);

/* For struct ib_device_ops. */
int weft_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void weft_ring_mmap_free(struct rdma_user_mmap_entry *entry);

#endif
