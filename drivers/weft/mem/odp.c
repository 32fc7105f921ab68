// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory of a process that is paged on demand.
 *
 * A region is divided into chunks (mem/odp_chunk.c), made when one of their pages is wanted first.
 * So one of the whole address space takes as much as is used of it.
 *
 * Accesses look into the chunks' tables and copy under a lock that readers share, also in softirq.
 * A reader must not allocate memory that reclaim has to free: reclaim calls the notifier, which
 * waits for the reader.
 */
#include "mem/odp.h"

#include <linux/device.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <rdma/ib_umem_odp.h>

#include "mem/odp_chunk.h"

#define PREFETCHES_MOST 16 /* of a region, that no call waits for */

/* A fault may take as long as a disk does, so nothing else is done here. */
static struct workqueue_struct *odp_wq;

/* Memory that is left, of all devices: the module's end waits for it. */
static atomic_t alive;

int weft_odp_module_init(void)
{
	odp_wq = alloc_workqueue("weft_odp", WQ_UNBOUND, 0);
	return odp_wq ? 0 : -ENOMEM;
}

/*
 * When it returns no fault is under way any more. What a fault keeps may be unmapped meanwhile,
 * and a work queue that is being destroyed drops what the notifier then asks for.
 */
void weft_odp_module_exit(void)
{
	wait_var_event(&alive, !atomic_read(&alive));
	destroy_workqueue(odp_wq);
}

/* Work that faults pages in. Context: any. Return: false if it was queued already. */
bool weft_odp_queue(struct work_struct *work)
{
	return queue_work(odp_wq, work);
}

/* --- birth and end ------------------------------------------------------------ */

/* A worker's where the last reference went in a context that may not sleep. */
static void destroy_odp(struct work_struct *work)
{
	struct weft_odp *odp = container_of(work, struct weft_odp, release);
	struct ib_device *ib = odp->root->umem.ibdev;

	weft_odp_free_chunks(odp);
	xa_destroy(&odp->chunks);
	mutex_destroy(&odp->grow);
	ib_umem_odp_release(odp->root);
	mmdrop(odp->mm);
	put_device(&ib->dev);
	kfree(odp);
	if (atomic_dec_and_test(&alive))
		wake_up_var(&alive);
}

static void destroy_now(struct kref *ref)
{
	destroy_odp(&container_of(ref, struct weft_odp, ref)->release);
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
	INIT_WORK(&odp->reap, weft_odp_reap);
	INIT_WORK(&odp->release, destroy_odp);
	mmgrab(odp->mm);
	get_device(&ib->dev);
	atomic_inc(&alive);
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
	unsigned long needed = WEFT_ODP_PAGE_PRESENT | (write ? WEFT_ODP_PAGE_WRITABLE : 0);
	struct weft_odp_chunk *chunk;
	unsigned long *entry;

	read_lock(&odp->lock);
	for (; pages; pages--, addr += PAGE_SIZE) {
		chunk = xa_load(&odp->chunks, addr / WEFT_ODP_CHUNK_BYTES);
		entry = chunk ? &chunk->page[weft_odp_slot(addr)] : NULL;
		if (!entry || (*entry & needed) != needed) {
			read_unlock(&odp->lock);
			return false;
		}
		if (write && !(READ_ONCE(*entry) & WEFT_ODP_PAGE_WRITTEN))
			set_bit(WEFT_ODP_WRITTEN_BIT, entry);
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
	struct weft_odp_chunk *chunk = xa_load(&odp->chunks, addr / WEFT_ODP_CHUNK_BYTES);
	struct page *page = weft_odp_page(READ_ONCE(chunk->page[weft_odp_slot(addr)]));

	*span = PAGE_SIZE - skip;
	return (u8 *)page_address(page) + skip;
}

/* --- pages come --------------------------------------------------------------- */

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
	return weft_odp_fault_range(odp, offset, len, how, &odp->faulted);
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

static void prefetch_work(struct work_struct *work)
{
	struct prefetch *p = container_of(work, struct prefetch, work);

	weft_odp_fault_range(p->odp, p->offset, p->len, p->how, &p->odp->prefetched);
	atomic_dec(&p->odp->prefetches);
	weft_odp_destroy(p->odp);
	kfree(p);
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
	struct prefetch *p = NULL;
	int err;

	if (!wait && atomic_add_unless(&odp->prefetches, 1, PREFETCHES_MOST)) {
		p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
		if (!p)
			atomic_dec(&odp->prefetches);
	}
	if (!p) {
		err = weft_odp_fault_range(odp, offset, len, how, &odp->prefetched);
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
	bool failed;
	u8 state;

	if (!want)
		return false;
	state = smp_load_acquire(&want->state); /* pairs with the worker's release */
	if (state == WEFT_ODP_STARTED)
		return true;
	/* Is this access a part of what is wanted? */
	if (state == WEFT_ODP_ASKED && want->odp == odp && want->write >= write &&
	    offset >= want->offset && len <= want->len && offset - want->offset <= want->len - len)
		return true;
	/* Has a worker tried a part of this access, and found that there are none? */
	failed = state == WEFT_ODP_DONE && !want->moot && want->err && want->err != -EBUSY;
	if (failed && want->odp == odp && want->write <= write && want->offset >= offset &&
	    want->len <= len && want->offset - offset <= len - want->len)
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
