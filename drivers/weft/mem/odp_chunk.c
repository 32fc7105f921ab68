// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Chunks of memory that is paged on demand: how they come and go, and the pages in them.
 *
 * A chunk is a child of the core's implicit ODP memory, which faults pages in and registers the
 * MMU notifier, and a table of the pages that may be accessed. Before a page goes elsewhere
 * (unmapped, moved, copied on write, reclaimed) the notifier takes it from the table, exclusively,
 * so it waits for copies under way and for nothing else.
 *
 * Only the page that the table names is touched, never what the core's list says at that moment:
 * another fault of the same pages may be writing there.
 */
#include "mem/odp_chunk.h"

#include <linux/gfp.h>
#include <linux/hmm.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem_odp.h>

#include "base/compat.h"

#define WINDOW_BYTES	(64 * PAGE_SIZE) /* looked through beside a fault */
#define EMPTY		XA_MARK_0

/* --- pages go ----------------------------------------------------------------- */

/* The chunk is empty; that it is not used is for the worker to see. Any context. */
static void ask_for_reaping(struct weft_odp_chunk *chunk)
{
	struct weft_odp *odp = chunk->odp;

	if (!kref_get_unless_zero(&odp->ref))
		return;
	xa_lock_bh(&odp->chunks);
	if (xa_load(&odp->chunks, chunk->index) == chunk)
		__xa_set_mark(&odp->chunks, chunk->index, EMPTY);
	xa_unlock_bh(&odp->chunks);
	if (!weft_odp_queue(&odp->reap))
		weft_odp_put(odp);
}

/* Addresses from @from up to @last are not accessed any more. */
static void forget_pages(struct weft_odp_chunk *chunk, u64 from, u64 last)
	__must_hold(&chunk->umem->umem_mutex)
{
	unsigned long *first = &chunk->page[weft_odp_slot(from)];
	unsigned long *end = &chunk->page[weft_odp_slot(last)] + 1;
	unsigned long *entry;
	u32 dropped = 0;

	lockdep_assert_held(&chunk->umem->umem_mutex);
	if (!chunk->present)
		return;
	/* From here on no access finds them, and none that did is under way. */
	write_lock_bh(&chunk->odp->lock);
	for (entry = first; entry < end; entry++)
		*entry &= ~WEFT_ODP_PAGE_PRESENT;
	write_unlock_bh(&chunk->odp->lock);
	/*
	 * Memory that was written through the kernel's mapping is dirty, whatever the process'
	 * page tables say of it. umem_mutex keeps the page where it is until this is told.
	 */
	for (entry = first; entry < end; entry++) {
		if (!*entry)
			continue;
		if (*entry & WEFT_ODP_PAGE_WRITTEN)
			set_page_dirty(compound_head(weft_odp_page(*entry)));
		*entry = 0;
		dropped++;
	}
	chunk->present -= dropped;
	atomic64_add(dropped, &chunk->odp->invalidated);
	if (dropped && !chunk->present)
		ask_for_reaping(chunk);
}

/*
 * The process or the kernel is about to change what is at those addresses. The core's child
 * may be called for before it knows its chunk: then there are no pages.
 */
static bool invalidate(struct mmu_interval_notifier *mni, const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);
	u64 from, end;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	from = max_t(u64, range->start, ib_umem_start(umem));
	end = min_t(u64, range->end, ib_umem_end(umem));
	if (umem->private && from < end)
		forget_pages(umem->private, from, end - 1);
	ib_umem_odp_unmap_dma_pages(umem, from, end);
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/* --- chunks ------------------------------------------------------------------- */

static void free_chunk(struct weft_odp_chunk *chunk)
{
	struct ib_umem_odp *umem = chunk->umem;

	if (umem) {
		mutex_lock(&umem->umem_mutex);
		forget_pages(chunk, ib_umem_start(umem), ib_umem_end(umem) - 1);
		mutex_unlock(&umem->umem_mutex);
		ib_umem_odp_release(umem);
	}
	mutex_destroy(&chunk->fault_lock);
	free_page((unsigned long)chunk->page);
	kfree(chunk);
}

static struct weft_odp_chunk *make_chunk(struct weft_odp *odp, unsigned long index)
	__must_hold(&odp->grow)
{
	struct weft_odp_chunk *chunk = kzalloc(sizeof(*chunk), GFP_KERNEL_ACCOUNT);
	u64 base = (u64)index * WEFT_ODP_CHUNK_BYTES;
	u64 from = max_t(u64, base, odp->start & PAGE_MASK);
	u64 last = min_t(u64, base + WEFT_ODP_CHUNK_BYTES - 1, odp->last | ~PAGE_MASK);
	struct ib_umem_odp *umem;
	int err = -ENOMEM;

	lockdep_assert_held(&odp->grow);
	if (!chunk)
		return ERR_PTR(err);
	chunk->odp = odp;
	chunk->index = index;
	mutex_init(&chunk->fault_lock);
	chunk->page = (unsigned long *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!chunk->page)
		goto free;
	/* The core's part: of the chunk's addresses those that are of the region. */
	umem = ib_umem_odp_alloc_child(odp->root, from, last - from + 1, &notifier_ops);
	err = PTR_ERR_OR_ZERO(umem);
	if (err)
		goto free;
	chunk->umem = umem; /* before the notifier finds the chunk */
	mutex_lock(&umem->umem_mutex);
	umem->private = chunk;
	mutex_unlock(&umem->umem_mutex);
	err = xa_err(xa_store_bh(&odp->chunks, index, chunk, GFP_KERNEL_ACCOUNT));
	if (!err)
		return chunk;
free:
	free_chunk(chunk);
	return ERR_PTR(err);
}

/* A reader finds it before, or does not find it: the readers' lock says so. */
static void take_away(struct weft_odp_chunk *chunk) __must_hold(&chunk->odp->grow)
{
	struct weft_odp *odp = chunk->odp;

	lockdep_assert_held(&chunk->odp->grow);
	write_lock_bh(&odp->lock);
	xa_erase_bh(&odp->chunks, chunk->index);
	write_unlock_bh(&odp->lock);
	free_chunk(chunk);
}

/* A worker takes empty chunks away. Context: a worker. */
void weft_odp_reap(struct work_struct *work)
{
	struct weft_odp *odp = container_of(work, struct weft_odp, reap);
	struct weft_odp_chunk *chunk;
	unsigned long index;

	mutex_lock(&odp->grow);
	xa_for_each_marked(&odp->chunks, index, chunk, EMPTY) {
		xa_lock_bh(&odp->chunks);
		__xa_clear_mark(&odp->chunks, index, EMPTY);
		xa_unlock_bh(&odp->chunks);
		if (!chunk->users && !READ_ONCE(chunk->present))
			take_away(chunk);
		cond_resched();
	}
	mutex_unlock(&odp->grow);
	weft_odp_put(odp);
}

/* The end: no fault is under way. Context: may sleep. */
void weft_odp_free_chunks(struct weft_odp *odp)
{
	struct weft_odp_chunk *chunk;
	unsigned long index;

	mutex_lock(&odp->grow);
	xa_for_each(&odp->chunks, index, chunk) {
		take_away(chunk);
		cond_resched();
	}
	mutex_unlock(&odp->grow);
}

/* --- pages come --------------------------------------------------------------- */

/* What the core has found at an address. Return: it may be accessed as @how says. */
static bool take_page(struct weft_odp_chunk *chunk, u32 slot, unsigned long pfn,
		      enum weft_odp_how how, u32 *taken)
{
	unsigned long old = chunk->page[slot];
	unsigned long bits = WEFT_ODP_PAGE_PRESENT;
	struct page *page;
	u8 byte;

	if (!(pfn & HMM_PFN_VALID) || (pfn & HMM_PFN_ERROR))
		return false;
	page = hmm_pfn_to_page(pfn);
	/* Is it in the kernel's mapping? That of memfd_secret() is not. */
	if (!old && get_kernel_nofault(byte, (u8 *)page_address(page)))
		return false;
	if ((pfn & HMM_PFN_WRITE) && chunk->odp->writable)
		bits |= WEFT_ODP_PAGE_WRITABLE;
	if (how == WEFT_ODP_WRITE && !(bits & WEFT_ODP_PAGE_WRITABLE))
		return false;
	if (WARN_ON_ONCE(old && weft_odp_page(old) != page)) /* it has not been taken back */
		return false;
	write_lock_bh(&chunk->odp->lock);
	chunk->page[slot] |= (unsigned long)page | bits;
	write_unlock_bh(&chunk->odp->lock);
	if (!old) {
		chunk->present++;
		++*taken;
	}
	return true;
}

static int take_pages(struct weft_odp_chunk *chunk, u64 addr, u64 len, enum weft_odp_how how,
		      u32 *taken) __must_hold(&chunk->fault_lock)
{
	u64 mask = COMPAT_ODP_READ | (how == WEFT_ODP_WRITE ? COMPAT_ODP_WRITE : 0);
	struct ib_umem_odp *umem = chunk->umem;
	bool fault = how != WEFT_ODP_PRESENT;
	unsigned long *pfn;
	bool all = true;
	int pages;

	lockdep_assert_held(&chunk->fault_lock);
	pages = ib_umem_odp_map_dma_and_lock(umem, addr, len, mask, fault);
	if (pages < 0)
		return pages;
	/*
	 * The core has mapped them, and holds umem_mutex since. What is not taken must not stay
	 * mapped: whatever the core has is in the table.
	 */
	pfn = compat_odp_pfns(umem) + ((addr - ib_umem_start(umem)) >> PAGE_SHIFT);
	for (; pages; pages--, addr += PAGE_SIZE) {
		if (take_page(chunk, weft_odp_slot(addr), *pfn++, how, taken))
			continue;
		all = false;
		if (!chunk->page[weft_odp_slot(addr)])
			ib_umem_odp_unmap_dma_pages(umem, addr, addr + PAGE_SIZE);
	}
	mutex_unlock(&umem->umem_mutex);
	return all || !fault ? 0 : -EFAULT;
}

/*
 * Pages that the process has, and the table has not. munmap() takes an address out of the process
 * before the notifier is told. To find nothing where the core has a page makes it warn, so it
 * is asked for what it has not: @fault_lock lets entries only go meanwhile.
 */
static int take_present(struct weft_odp_chunk *chunk, u64 addr, u64 len, u32 *taken)
	__must_hold(&chunk->fault_lock)
{
	u64 end = PAGE_ALIGN(addr + len);
	int err = 0;
	u64 from;

	lockdep_assert_held(&chunk->fault_lock);
	for (addr &= PAGE_MASK; addr < end && !err;) {
		from = addr;
		while (addr < end && !READ_ONCE(chunk->page[weft_odp_slot(addr)]))
			addr += PAGE_SIZE;
		if (addr > from)
			err = take_pages(chunk, from, addr - from, WEFT_ODP_PRESENT, taken);
		else
			addr += PAGE_SIZE;
	}
	return err;
}

/* A piece of the region that is in one chunk. */
static int fault_in_pages(struct weft_odp *odp, u64 addr, u64 len, enum weft_odp_how how,
			  u32 *taken)
{
	unsigned long index = addr / WEFT_ODP_CHUNK_BYTES;
	u64 window = (addr + len - 1) & ~(WINDOW_BYTES - 1);
	struct weft_odp_chunk *chunk;
	u64 from, end;
	int err;

	mutex_lock(&odp->grow);
	chunk = xa_load(&odp->chunks, index) ?: make_chunk(odp, index);
	if (!IS_ERR(chunk))
		chunk->users++;
	mutex_unlock(&odp->grow);
	if (IS_ERR(chunk))
		return PTR_ERR(chunk);

	mutex_lock(&chunk->fault_lock);
	if (how == WEFT_ODP_PRESENT) {
		err = take_present(chunk, addr, len, taken);
	} else {
		err = take_pages(chunk, addr, len, how, taken);
		if (!err) {
			/* Pages around that the process has anyway spare a fault each. */
			from = max_t(u64, window, ib_umem_start(chunk->umem));
			end = min_t(u64, window + WINDOW_BYTES, ib_umem_end(chunk->umem));
			take_present(chunk, from, end - from, taken);
		}
	}
	mutex_unlock(&chunk->fault_lock);

	/* A chunk that brought nothing goes at once, so that bad addresses take no memory. */
	mutex_lock(&odp->grow);
	chunk->users--;
	if (!chunk->users && !READ_ONCE(chunk->present))
		take_away(chunk);
	mutex_unlock(&odp->grow);
	return err;
}

/**
 * weft_odp_fault_range - have pages for an access
 * @odp: the memory, referred to
 * @offset: of the first byte
 * @len: bytes
 * @how: what for
 * @counter: of @odp; pages that were not in the tables before are added to it
 *
 * Chunks, and the process' page tables, are charged to the process also where a worker makes
 * them. Context: may sleep. Return: 0 or -errno.
 */
int weft_odp_fault_range(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how,
			 atomic64_t *counter)
{
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(odp->mm);
	struct mem_cgroup *outer = set_active_memcg(memcg);
	u64 addr = odp->start + offset;
	u32 taken = 0;
	int err = 0;
	u64 piece;

	for (; len && !err; len -= piece, addr += piece) {
		piece = min_t(u64, len, WEFT_ODP_CHUNK_BYTES - addr % WEFT_ODP_CHUNK_BYTES);
		err = fault_in_pages(odp, addr, piece, how, &taken);
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	set_active_memcg(outer);
	mem_cgroup_put(memcg);
	atomic64_add(taken, counter);
	return err;
}
