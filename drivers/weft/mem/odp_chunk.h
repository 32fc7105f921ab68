/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Chunks of memory that is paged on demand, and their tables: of mem/odp*.c only. */
#ifndef WEFT_MEM_ODP_CHUNK_H
#define WEFT_MEM_ODP_CHUNK_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "mem/odp.h"

struct ib_umem_odp;

#define WEFT_ODP_CHUNK_PAGES	(PAGE_SIZE / sizeof(unsigned long))
#define WEFT_ODP_CHUNK_BYTES	(WEFT_ODP_CHUNK_PAGES * PAGE_SIZE)

/* An entry of a table is the address of a page with these, or 0. */
#define WEFT_ODP_WRITTEN_BIT	2
#define WEFT_ODP_PAGE_PRESENT	BIT(0)
#define WEFT_ODP_PAGE_WRITABLE	BIT(1)
#define WEFT_ODP_PAGE_WRITTEN	BIT(WEFT_ODP_WRITTEN_BIT)
#define WEFT_ODP_PAGE_BITS	GENMASK(WEFT_ODP_WRITTEN_BIT, 0)

/**
 * struct weft_odp - the memory of a region
 * @ref: the region, faults under way, what waits for its turn
 * @root: of the core; has the process, but no pages
 * @mm: address space, referred to; the core's children need it after the process has gone
 * @start: address of the first byte
 * @last: address of the last byte
 * @writable: pages may be written
 * @lock: the tables: shared by accesses, exclusive to change them
 * @chunks: by address; changed under @grow, and taken away under @lock as well
 * @grow: chunks come and go, and their @users
 * @reap: takes empty chunks away
 * @release: the end, where the last reference went in a context that may not sleep
 * @prefetches: how many are under way without a call that waits for them
 * @faulted: pages
 * @invalidated: pages
 * @prefetched: pages
 *
 * Locks, outermost first: @grow; @fault_lock of a chunk; mmap_lock; umem_mutex of a chunk, which
 * the notifier takes; @lock.
 */
struct weft_odp {
	struct kref ref;
	struct ib_umem_odp *root;
	struct mm_struct *mm;
	u64 start;
	u64 last;
	bool writable;
	rwlock_t lock; /* chunks; tables, as described above */
	struct xarray chunks;
	struct mutex grow; /* chunks, weft_odp_chunk.users */
	struct work_struct reap;
	struct work_struct release;
	atomic_t prefetches;
	atomic64_t faulted;
	atomic64_t invalidated;
	atomic64_t prefetched;
};

/**
 * struct weft_odp_chunk - WEFT_ODP_CHUNK_PAGES pages
 * @odp: which memory they are of
 * @umem: the core's
 * @index: in @chunks
 * @fault_lock: one fault at a time writes the core's list of pages
 * @users: faults under way; under @grow
 * @present: entries in use; under umem_mutex
 * @page: the table; entries are written under umem_mutex and, exclusively, the lock of @odp, but
 *	for WEFT_ODP_PAGE_WRITTEN, which accesses set
 */
struct weft_odp_chunk {
	struct weft_odp *odp;
	struct ib_umem_odp *umem;
	unsigned long index;
	struct mutex fault_lock; /* the core's list of pages */
	u32 users;
	u32 present;
	unsigned long *page;
};

static inline struct page *weft_odp_page(unsigned long entry)
{
	return (struct page *)(entry & ~WEFT_ODP_PAGE_BITS);
}

static inline u32 weft_odp_slot(u64 addr)
{
	return (addr >> PAGE_SHIFT) % WEFT_ODP_CHUNK_PAGES;
}

int weft_odp_fault_range(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how,
			 atomic64_t *counter);
void weft_odp_reap(struct work_struct *work);
void weft_odp_free_chunks(struct weft_odp *odp);

#endif
