// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory of a process that is paged on demand.
 *
 * A region is divided into chunks of 512 pages, made when one of their pages is wanted first. So
 * one of the whole address space takes as much as is used of it. A chunk is a child of the core's
 * implicit ODP memory, which faults pages in and registers the MMU notifier, and a table of the
 * pages that may be accessed.
 *
 * Accesses look into the tables and copy under a lock that readers share, also in softirq. Before
 * a page goes elsewhere (unmapped, moved, copied on write, reclaimed) the notifier takes it from
 * the table under the same lock, so it waits for copies under way and for nothing else. A reader
 * must not allocate memory that reclaim has to free: reclaim calls the notifier.
 *
 * Only the page that the table names is touched, never what the core's list says at that moment:
 * another fault of the same pages may be writing there.
 */
#include "mem/odp.h"

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/device.h>
#include <linux/gfp.h>
#include <linux/hmm.h>
#include <linux/kref.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem_odp.h>

#include "base/compat.h"

#define CHUNK_PAGES	(PAGE_SIZE / sizeof(unsigned long))
#define CHUNK_BYTES	(CHUNK_PAGES * PAGE_SIZE)
#define WINDOW_BYTES	(64 * PAGE_SIZE) /* looked through beside a fault */
#define PREFETCHES_MOST 16 /* of a region, that no call waits for */
#define EMPTY		XA_MARK_0

/* An entry of a table is the address of a page with these, or 0. */
#define PRESENT_BIT	0
#define WRITABLE_BIT	1
#define WRITTEN_BIT	2
#define PRESENT		BIT(PRESENT_BIT)
#define WRITABLE	BIT(WRITABLE_BIT)
#define WRITTEN		BIT(WRITTEN_BIT)
#define PAGE_BITS	(~(PRESENT | WRITABLE | WRITTEN))

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
	rwlock_t lock;
	struct xarray chunks;
	struct mutex grow; /* chunks, their users */
	struct work_struct reap;
	struct work_struct release;
	atomic_t prefetches;
	atomic64_t faulted;
	atomic64_t invalidated;
	atomic64_t prefetched;
};

/**
 * struct odp_chunk - CHUNK_PAGES pages
 * @odp: which memory they are of
 * @umem: the core's
 * @index: in @chunks
 * @fault_lock: one fault at a time writes the core's list of pages
 * @users: faults under way; under @grow
 * @present: entries in use; under umem_mutex
 * @page: the table; entries are written under umem_mutex and, exclusively, the lock of @odp, but
 *	for WRITTEN, which accesses set
 */
struct odp_chunk {
	struct weft_odp *odp;
	struct ib_umem_odp *umem;
	unsigned long index;
	struct mutex fault_lock; /* the core's list of pages */
	u32 users;
	u32 present;
	unsigned long *page;
};

/* A fault may take as long as a disk does, so nothing else is done here. */
static struct workqueue_struct *odp_wq;

int weft_odp_module_init(void)
{
	odp_wq = alloc_workqueue("weft_odp", WQ_UNBOUND, 0);
	return odp_wq ? 0 : -ENOMEM;
}

/* When it returns no fault is under way any more. */
void weft_odp_module_exit(void)
{
	destroy_workqueue(odp_wq);
}

/* Work that faults pages in. Context: any. */
void weft_odp_queue(struct work_struct *work)
{
	queue_work(odp_wq, work);
}

static struct page *odp_page_of(unsigned long entry)
{
	return (struct page *)(entry & PAGE_BITS);
}

static u32 slot_of(u64 addr)
{
	return (addr >> PAGE_SHIFT) % CHUNK_PAGES;
}

/* --- pages go ----------------------------------------------------------------- */

/* The chunk is empty; that it is not used is for the worker to see. Any context. */
static void ask_for_reaping(struct odp_chunk *chunk)
{
	struct weft_odp *odp = chunk->odp;

	if (!kref_get_unless_zero(&odp->ref))
		return;
	xa_lock_bh(&odp->chunks);
	if (xa_load(&odp->chunks, chunk->index) == chunk)
		__xa_set_mark(&odp->chunks, chunk->index, EMPTY);
	xa_unlock_bh(&odp->chunks);
	if (!queue_work(odp_wq, &odp->reap))
		weft_odp_put(odp);
}

/*
 * Memory that was written through the kernel's mapping is dirty, whatever the process' page
 * tables say of it. umem_mutex keeps the page where it is until this is told.
 */
static u32 drop_entries(struct odp_chunk *chunk, u32 first, u32 count)
{
	unsigned long *entry = chunk->page + first;
	u32 dropped = 0;

	for (; count; count--, entry++) {
		if (!*entry)
			continue;
		if (*entry & WRITTEN)
			set_page_dirty(compound_head(odp_page_of(*entry)));
		*entry = 0;
		dropped++;
	}
	return dropped;
}

/* From here on no access finds them, and none that did is under way. */
static void forbid_entries(struct odp_chunk *chunk, u32 first, u32 count)
{
	unsigned long *entry = chunk->page + first;

	write_lock_bh(&chunk->odp->lock);
	for (; count; count--, entry++)
		*entry &= ~PRESENT;
	write_unlock_bh(&chunk->odp->lock);
}

/* Addresses from @from up to @last are not accessed any more. */
static void forget_pages(struct odp_chunk *chunk, u64 from, u64 last)
	__must_hold(&chunk->umem->umem_mutex)
{
	u32 first = slot_of(from), count = slot_of(last) - first + 1;
	u32 dropped;

	lockdep_assert_held(&chunk->umem->umem_mutex);
	if (!chunk->present)
		return;
	forbid_entries(chunk, first, count);
	dropped = drop_entries(chunk, first, count);
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

static void free_chunk(struct odp_chunk *chunk)
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

/* The core's part: of the chunk's addresses those that are of the region. */
static struct ib_umem_odp *make_child(struct weft_odp *odp, struct odp_chunk *chunk)
{
	u64 base = (u64)chunk->index * CHUNK_BYTES;
	u64 from = max_t(u64, base, odp->start & PAGE_MASK);
	u64 last = min_t(u64, base + CHUNK_BYTES - 1, odp->last | ~PAGE_MASK);
	struct ib_umem_odp *umem;

	umem = ib_umem_odp_alloc_child(odp->root, from, last - from + 1, &notifier_ops);
	if (IS_ERR(umem))
		return umem;
	mutex_lock(&umem->umem_mutex);
	umem->private = chunk;
	mutex_unlock(&umem->umem_mutex);
	return umem;
}

static struct odp_chunk *make_chunk(struct weft_odp *odp, unsigned long index)
	__must_hold(&odp->grow)
{
	struct odp_chunk *chunk = kzalloc(sizeof(*chunk), GFP_KERNEL_ACCOUNT);
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
	umem = make_child(odp, chunk);
	err = PTR_ERR_OR_ZERO(umem);
	if (err)
		goto free;
	chunk->umem = umem;
	err = xa_err(xa_store_bh(&odp->chunks, index, chunk, GFP_KERNEL_ACCOUNT));
	if (!err)
		return chunk;
free:
	free_chunk(chunk);
	return ERR_PTR(err);
}

static struct odp_chunk *use_chunk(struct weft_odp *odp, unsigned long index)
{
	struct odp_chunk *chunk;

	mutex_lock(&odp->grow);
	chunk = xa_load(&odp->chunks, index) ?: make_chunk(odp, index);
	if (!IS_ERR(chunk))
		chunk->users++;
	mutex_unlock(&odp->grow);
	return chunk;
}

/* Whoever looks for it finds it before, or does not find it: the readers' lock says so. */
static void take_away(struct odp_chunk *chunk) __must_hold(&chunk->odp->grow)
{
	struct weft_odp *odp = chunk->odp;

	lockdep_assert_held(&chunk->odp->grow);
	write_lock_bh(&odp->lock);
	xa_erase_bh(&odp->chunks, chunk->index);
	write_unlock_bh(&odp->lock);
	free_chunk(chunk);
}

static void take_away_if_idle(struct odp_chunk *chunk) __must_hold(&chunk->odp->grow)
{
	lockdep_assert_held(&chunk->odp->grow);
	if (!chunk->users && !READ_ONCE(chunk->present))
		take_away(chunk);
}

/* One that brought nothing goes at once, so that bad addresses take no memory. */
static void unuse_chunk(struct odp_chunk *chunk)
{
	struct weft_odp *odp = chunk->odp;

	mutex_lock(&odp->grow);
	chunk->users--;
	take_away_if_idle(chunk);
	mutex_unlock(&odp->grow);
}

static void reap(struct work_struct *work)
{
	struct weft_odp *odp = container_of(work, struct weft_odp, reap);
	struct odp_chunk *chunk;
	unsigned long index;

	mutex_lock(&odp->grow);
	xa_for_each_marked(&odp->chunks, index, chunk, EMPTY) {
		xa_lock_bh(&odp->chunks);
		__xa_clear_mark(&odp->chunks, index, EMPTY);
		xa_unlock_bh(&odp->chunks);
		take_away_if_idle(chunk);
		cond_resched();
	}
	mutex_unlock(&odp->grow);
	weft_odp_put(odp);
}

/* --- birth and end ------------------------------------------------------------ */

static void destroy(struct weft_odp *odp)
{
	struct ib_device *ib = odp->root->umem.ibdev;
	struct odp_chunk *chunk;
	unsigned long index;

	mutex_lock(&odp->grow);
	xa_for_each(&odp->chunks, index, chunk) {
		take_away(chunk);
		cond_resched();
	}
	mutex_unlock(&odp->grow);
	xa_destroy(&odp->chunks);
	mutex_destroy(&odp->grow);
	ib_umem_odp_release(odp->root);
	mmdrop(odp->mm);
	put_device(&ib->dev);
	kfree(odp);
}

static void destroy_now(struct kref *ref)
{
	destroy(container_of(ref, struct weft_odp, ref));
}

static void release_work(struct work_struct *work)
{
	destroy(container_of(work, struct weft_odp, release));
}

static void destroy_later(struct kref *ref)
{
	weft_odp_queue(&container_of(ref, struct weft_odp, ref)->release);
}

/**
 * weft_odp_create - memory of the calling process, paged on demand
 * @ib: the device; a fault that hangs may outlive its objects, so it is referred to
 * @start: address of the first byte
 * @length: bytes, not 0; 0 and U64_MAX are all of the address space
 * @access: enum ib_access_flags
 *
 * Context: process. Return: the memory, for weft_odp_destroy(), or an ERR_PTR.
 */
struct weft_odp *weft_odp_create(struct ib_device *ib, u64 start, u64 length, int access)
{
	struct weft_odp *odp = kzalloc(sizeof(*odp), GFP_KERNEL_ACCOUNT);
	struct ib_umem_odp *root;

	if (!odp)
		return ERR_PTR(-ENOMEM);
	/* What size the process' pages are makes no difference to the CPU that copies. */
	root = ib_umem_odp_alloc_implicit(ib, access & ~IB_ACCESS_HUGETLB);
	if (IS_ERR(root)) {
		kfree(odp);
		return ERR_CAST(root);
	}
	kref_init(&odp->ref);
	odp->root = root;
	odp->mm = current->mm;
	odp->start = start;
	odp->last = start + length - 1;
	odp->writable = root->umem.writable;
	rwlock_init(&odp->lock);
	xa_init_flags(&odp->chunks, XA_FLAGS_LOCK_BH | XA_FLAGS_ACCOUNT);
	mutex_init(&odp->grow);
	INIT_WORK(&odp->reap, reap);
	INIT_WORK(&odp->release, release_work);
	mmgrab(odp->mm);
	get_device(&ib->dev);
	return odp;
}

void weft_odp_get(struct weft_odp *odp)
{
	kref_get(&odp->ref);
}

/* Context: any. */
void weft_odp_put(struct weft_odp *odp)
{
	kref_put(&odp->ref, destroy_later);
}

/* The region goes; faults that are under way go on. Context: may sleep. */
void weft_odp_destroy(struct weft_odp *odp)
{
	kref_put(&odp->ref, destroy_now);
}

bool weft_odp_is_writable(const struct weft_odp *odp)
{
	return odp->writable;
}

u64 weft_odp_start(const struct weft_odp *odp)
{
	return odp->start;
}

/* Is it memory of the calling process? */
bool weft_odp_is_own(const struct weft_odp *odp)
{
	return odp->mm == current->mm;
}

void weft_odp_query(const struct weft_odp *odp, struct weft_odp_stats *stats)
{
	stats->faulted = atomic64_read(&odp->faulted);
	stats->invalidated = atomic64_read(&odp->invalidated);
	stats->prefetched = atomic64_read(&odp->prefetched);
}

/* --- accesses ----------------------------------------------------------------- */

static unsigned long *entry_at(struct weft_odp *odp, u64 addr)
{
	struct odp_chunk *chunk = xa_load(&odp->chunks, addr / CHUNK_BYTES);

	return chunk ? &chunk->page[slot_of(addr)] : NULL;
}

static bool odp_allows(const unsigned long *entry, bool write)
{
	unsigned long needed = write ? PRESENT | WRITABLE : PRESENT;

	return entry && (*entry & needed) == needed;
}

/**
 * weft_odp_enter - begin an access
 * @odp: the memory
 * @offset: of the first byte
 * @len: bytes, not 0
 * @write: they are written
 *
 * The pages stay until weft_odp_leave(); nothing in between sleeps, or allocates memory in a way
 * that may reclaim some. Context: any. Return: false if a page is not there, then there is
 * nothing to leave.
 */
bool weft_odp_enter(struct weft_odp *odp, u64 offset, u32 len, bool write)
{
	u64 addr = odp->start + offset;
	u32 pages = (offset_in_page(addr) + (u64)len + PAGE_SIZE - 1) >> PAGE_SHIFT;
	unsigned long *entry;

	read_lock(&odp->lock);
	for (; pages; pages--, addr += PAGE_SIZE) {
		entry = entry_at(odp, addr);
		if (!odp_allows(entry, write)) {
			read_unlock(&odp->lock);
			return false;
		}
		if (write && !(READ_ONCE(*entry) & WRITTEN))
			set_bit(WRITTEN_BIT, entry);
	}
	__release(&odp->lock); /* for sparse, which knows no lock that only some returns hold */
	return true;
}

void weft_odp_leave(struct weft_odp *odp)
{
	__acquire(&odp->lock); /* see above */
	read_unlock(&odp->lock);
}

/**
 * weft_odp_span - where a byte is
 * @odp: the memory, entered for it
 * @offset: of the byte
 * @span: set to the bytes that are contiguous from there on
 *
 * Context: any.
 */
u8 *weft_odp_span(struct weft_odp *odp, u64 offset, u32 *span)
{
	u64 addr = odp->start + offset;
	u32 skip = offset_in_page(addr);

	*span = PAGE_SIZE - skip;
	return (u8 *)page_address(odp_page_of(READ_ONCE(*entry_at(odp, addr)))) + skip;
}

/* --- pages come --------------------------------------------------------------- */

/* Is it in the kernel's mapping? That of memfd_secret() is not. */
static bool is_mapped(struct page *page)
{
	u8 byte;

	return !get_kernel_nofault(byte, (u8 *)page_address(page));
}

/* What the core has found at an address. Return: it may be accessed as @how says. */
static bool take_page(struct odp_chunk *chunk, u32 slot, unsigned long pfn, enum weft_odp_how how,
		      u32 *taken)
{
	unsigned long old = chunk->page[slot];
	unsigned long bits = PRESENT;
	struct page *page;

	if (!(pfn & HMM_PFN_VALID) || (pfn & HMM_PFN_ERROR))
		return false;
	page = hmm_pfn_to_page(pfn);
	if (!old && !is_mapped(page))
		return false;
	if ((pfn & HMM_PFN_WRITE) && chunk->odp->writable)
		bits |= WRITABLE;
	if (how == WEFT_ODP_WRITE && !(bits & WRITABLE))
		return false;
	if (WARN_ON_ONCE(old && odp_page_of(old) != page)) /* it has not been taken back */
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

/*
 * The core has mapped @pages of them. What is not taken must not stay mapped: whatever the core
 * has is in the table.
 */
static bool take_mapped(struct odp_chunk *chunk, u64 addr, int pages, enum weft_odp_how how,
			u32 *taken) __must_hold(&chunk->umem->umem_mutex)
{
	struct ib_umem_odp *umem = chunk->umem;
	unsigned long *pfn =
		compat_odp_pfns(umem) + ((addr - ib_umem_start(umem)) >> PAGE_SHIFT);
	bool all = true;

	for (; pages; pages--, addr += PAGE_SIZE) {
		if (take_page(chunk, slot_of(addr), *pfn++, how, taken))
			continue;
		all = false;
		if (!chunk->page[slot_of(addr)])
			ib_umem_odp_unmap_dma_pages(umem, addr, addr + PAGE_SIZE);
	}
	return all;
}

static int take_pages(struct odp_chunk *chunk, u64 addr, u64 len, enum weft_odp_how how, u32 *taken)
	__must_hold(&chunk->fault_lock)
{
	u64 mask = COMPAT_ODP_READ | (how == WEFT_ODP_WRITE ? COMPAT_ODP_WRITE : 0);
	bool fault = how != WEFT_ODP_PRESENT;
	bool all;
	int pages;

	lockdep_assert_held(&chunk->fault_lock);
	pages = ib_umem_odp_map_dma_and_lock(chunk->umem, addr, len, mask, fault);
	if (pages < 0)
		return pages;
	all = take_mapped(chunk, addr, pages, how, taken);
	mutex_unlock(&chunk->umem->umem_mutex);
	return all || !fault ? 0 : -EFAULT;
}

/*
 * Pages that the process has, and the table has not. munmap() takes an address out of the process
 * before the notifier hears of it. To find nothing where the core has a page makes it warn, so it
 * is asked for what it has not: @fault_lock lets entries only go meanwhile.
 */
static int take_present(struct odp_chunk *chunk, u64 addr, u64 len, u32 *taken)
	__must_hold(&chunk->fault_lock)
{
	u64 end = PAGE_ALIGN(addr + len);
	int err = 0;
	u64 from;

	for (addr &= PAGE_MASK; addr < end && !err;) {
		from = addr;
		while (addr < end && !READ_ONCE(chunk->page[slot_of(addr)]))
			addr += PAGE_SIZE;
		if (addr > from)
			err = take_pages(chunk, from, addr - from, WEFT_ODP_PRESENT, taken);
		else
			addr += PAGE_SIZE;
	}
	return err;
}

/* Pages around that the process has anyway: they spare a fault each, and cost it nothing. */
static void take_window(struct odp_chunk *chunk, u64 addr, u32 *taken)
	__must_hold(&chunk->fault_lock)
{
	u64 from = max_t(u64, addr & ~(WINDOW_BYTES - 1), ib_umem_start(chunk->umem));
	u64 end = min_t(u64, (addr & ~(WINDOW_BYTES - 1)) + WINDOW_BYTES, ib_umem_end(chunk->umem));

	take_present(chunk, from, end - from, taken);
}

/* A piece of the region that is in one chunk. */
static int fault_in_pages(struct weft_odp *odp, u64 addr, u64 len, enum weft_odp_how how,
			  u32 *taken)
{
	struct odp_chunk *chunk = use_chunk(odp, addr / CHUNK_BYTES);
	int err;

	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	mutex_lock(&chunk->fault_lock);
	if (how == WEFT_ODP_PRESENT)
		err = take_present(chunk, addr, len, taken);
	else
		err = take_pages(chunk, addr, len, how, taken);
	if (!err && how != WEFT_ODP_PRESENT)
		take_window(chunk, addr + len - 1, taken);
	mutex_unlock(&chunk->fault_lock);
	unuse_chunk(chunk);
	return err;
}

static int fault_range(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how, u32 *taken)
{
	u64 addr = odp->start + offset;
	int err = 0;
	u64 piece;

	for (; len && !err; len -= piece, addr += piece) {
		piece = min_t(u64, len, CHUNK_BYTES - addr % CHUNK_BYTES);
		err = fault_in_pages(odp, addr, piece, how, taken);
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	return err;
}

/**
 * weft_odp_fault - have pages for an access
 * @odp: the memory, referred to
 * @offset: of the first byte
 * @len: bytes, within the region
 * @how: what for
 *
 * They may be gone again when this returns. Context: may sleep, for as long as the memory behind
 * the pages takes. Return: 0, -EBUSY if they are being changed all the time, or another -errno
 * if there are none.
 */
int weft_odp_fault(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how)
{
	u32 taken = 0;
	int err = fault_range(odp, offset, len, how, &taken);

	atomic64_add(taken, &odp->faulted);
	return err;
}

/* --- advice ------------------------------------------------------------------- */

/* struct prefetch - pages to be made present; no call waits for them */
struct prefetch {
	struct work_struct work;
	struct weft_odp *odp;
	u64 offset;
	u64 len;
	enum weft_odp_how how;
};

static int prefetch_now(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how)
{
	u32 taken = 0;
	int err = fault_range(odp, offset, len, how, &taken);

	atomic64_add(taken, &odp->prefetched);
	return err;
}

static void prefetch_work(struct work_struct *work)
{
	struct prefetch *p = container_of(work, struct prefetch, work);

	prefetch_now(p->odp, p->offset, p->len, p->how);
	atomic_dec(&p->odp->prefetches);
	weft_odp_destroy(p->odp);
	kfree(p);
}

static struct prefetch *make_prefetch(struct weft_odp *odp)
{
	struct prefetch *p;

	if (!atomic_add_unless(&odp->prefetches, 1, PREFETCHES_MOST))
		return NULL;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		atomic_dec(&odp->prefetches);
	return p;
}

/**
 * weft_odp_prefetch - have pages ready for use
 * @odp: the memory, referred to
 * @offset: of the first byte
 * @len: bytes, within the region
 * @how: what for
 * @wait: until they are there, or cannot be
 *
 * A process that asks for more at a time than is reasonable waits in any case. Context: process.
 * Return: 0, or -errno of one that was waited for.
 */
int weft_odp_prefetch(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how, bool wait)
{
	struct prefetch *p = wait ? NULL : make_prefetch(odp);
	int err;

	if (!p) {
		err = prefetch_now(odp, offset, len, how);
		return wait ? err : 0;
	}
	weft_odp_get(odp);
	p->odp = odp;
	p->offset = offset;
	p->len = len;
	p->how = how;
	INIT_WORK(&p->work, prefetch_work);
	weft_odp_queue(&p->work);
	return 0;
}

/* --- what an access lacks ------------------------------------------------------ */

/* Is what is wanted a part of this access? */
static bool is_part_of(const struct weft_odp_want *want, const struct weft_odp *odp, u64 offset,
		       u32 len, bool write)
{
	return want->odp == odp && want->write <= write && want->offset >= offset &&
	       want->len <= len && want->offset - offset <= len - want->len;
}

/* Is this access a part of what is wanted? */
static bool covers(const struct weft_odp_want *want, const struct weft_odp *odp, u64 offset,
		   u32 len, bool write)
{
	return want->odp == odp && want->write >= write && offset >= want->offset &&
	       len <= want->len && offset - want->offset <= want->len - len;
}

/* Has a worker tried, and found that there are none? */
static bool has_failed(const struct weft_odp_want *want)
{
	return want->state == WEFT_ODP_DONE && !want->moot && want->err && want->err != -EBUSY;
}

/* It is not wanted any more. Context: owner of the direction. */
void weft_odp_forget(struct weft_odp_want *want)
{
	/* Pairs with the release by which the worker says that it has tried. */
	u8 state = smp_load_acquire(&want->state);

	if (state == WEFT_ODP_STARTED) {
		want->moot = true;
		return;
	}
	if (state == WEFT_ODP_ASKED)
		weft_odp_put(want->odp);
	want->odp = NULL;
	want->state = WEFT_ODP_IDLE;
}

/* An access found its pages. Context: owner of the direction. */
void weft_odp_satisfied(struct weft_odp_want *want)
{
	if (want && READ_ONCE(want->state) != WEFT_ODP_IDLE)
		weft_odp_forget(want);
}

/**
 * weft_odp_must_wait - an access lacks pages: shall they be waited for?
 * @want: of the direction, or NULL where nothing waits
 * @odp: the memory, of a region that is pinned
 * @offset: of the access
 * @len: its bytes
 * @write: it writes
 *
 * Segments are tried many at once, and then one by one. So a longer access that was just tried,
 * of which this is a part, is what is wanted; and a longer one fails with any part of it that has.
 *
 * Context: owner of the direction. Return: true: to be tried again when a worker has faulted
 * them in; false: one has tried that, and there are none.
 */
bool weft_odp_must_wait(struct weft_odp_want *want, struct weft_odp *odp, u64 offset, u32 len,
			bool write)
{
	u8 state;

	if (!want)
		return false;
	state = smp_load_acquire(&want->state); /* pairs with the worker's release */
	if (state == WEFT_ODP_STARTED)
		return true;
	if (state == WEFT_ODP_ASKED && covers(want, odp, offset, len, write))
		return true;
	if (has_failed(want) && is_part_of(want, odp, offset, len, write))
		return false;
	weft_odp_forget(want);
	weft_odp_get(odp);
	want->odp = odp;
	want->offset = offset;
	want->len = len;
	want->write = write;
	want->moot = false;
	want->state = WEFT_ODP_ASKED;
	return true;
}
