/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Queue memory in the address space of the process that owns the queue.
 */
#ifndef WEFT_RING_MMAP_H
#define WEFT_RING_MMAP_H

#include <linux/types.h>

struct ib_ucontext;
struct rdma_user_mmap_entry;
struct vm_area_struct;
struct weft_ring_map;

/* For ring.c. */
struct weft_ring_map *weft_ring_map_create(struct ib_ucontext *uctx, void *mem, u32 bytes);
void weft_ring_map_destroy(struct weft_ring_map *map);
u64 weft_ring_map_key(const struct weft_ring_map *map);

/* For struct ib_device_ops. */
int weft_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void weft_ring_mmap_free(struct rdma_user_mmap_entry *entry);

#endif
