// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The memory behind an STag, whatever its kind. Elements have one size per region, so that an
 * offset finds its element by a shift.
 */
#include "mem/backing.h"

#include <linux/atomic.h>
#include <linux/bvec.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>

#include "proto/atomic.h"

/**
 * weft_backing_pages - room for the pages of a fast-register region
 * @capacity: pages at most
 *
 * Context: may sleep. Return: an empty backing or an ERR_PTR.
 */
struct weft_backing *weft_backing_pages(u32 capacity)
{
	struct weft_backing *b;
	size_t bytes = struct_size(b, pages, capacity);

	/* kvmalloc() refuses what a region of half a terabyte needs. */
	if (bytes > INT_MAX)
		b = __vmalloc(bytes, GFP_KERNEL_ACCOUNT);
	else
		b = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!b)
		return ERR_PTR(-ENOMEM);

	*b = (struct weft_backing){
		.vec = b->pages,
		.capacity = capacity,
		.page_shift = PAGE_SHIFT,
	};
	return b;
}

/**
 * weft_backing_from_umem - the pages of pinned user memory
 * @umem: owned by the backing if this succeeds
 *
 * Context: may sleep. Return: the backing or an ERR_PTR.
 */
struct weft_backing *weft_backing_from_umem(struct ib_umem *umem)
{
	struct sg_page_iter piter;
	struct weft_backing *b;
	size_t pages = ib_umem_num_pages(umem);

	if (pages > U32_MAX)
		return ERR_PTR(-EINVAL);
	b = weft_backing_pages(pages);
	if (IS_ERR(b))
		return b;

	for_each_sgtable_page(&umem->sgt_append.sgt, &piter, 0) {
		if (WARN_ON_ONCE(b->count == b->capacity))
			break;
		b->vec[b->count++] = (struct bio_vec){
			.bv_page = sg_page_iter_page(&piter),
			.bv_len = PAGE_SIZE,
		};
	}
	b->first = ib_umem_offset(umem);
	b->umem = umem;
	return b;
}

/**
 * weft_backing_from_odp - memory that is paged on demand
 * @odp: owned by the backing if this succeeds
 *
 * Context: may sleep. Return: the backing or an ERR_PTR.
 */
struct weft_backing *weft_backing_from_odp(struct weft_odp *odp)
{
	struct weft_backing *b = kzalloc(sizeof(*b), GFP_KERNEL_ACCOUNT);

	if (!b)
		return ERR_PTR(-ENOMEM);
	b->first = offset_in_page(weft_odp_start(odp));
	b->odp = odp;
	return b;
}

/**
 * weft_backing_kernel - all of kernel memory, offsets are addresses
 *
 * Context: may sleep. Return: the backing or an ERR_PTR.
 */
struct weft_backing *weft_backing_kernel(void)
{
	struct weft_backing *b = kzalloc(sizeof(*b), GFP_KERNEL);

	return b ? b : ERR_PTR(-ENOMEM);
}

/**
 * weft_backing_free - unpin and free
 * @b: no longer accessed; NULL does nothing
 *
 * Context: may sleep.
 */
void weft_backing_free(struct weft_backing *b)
{
	if (!b)
		return;
	if (b->umem)
		ib_umem_release(b->umem);
	if (b->odp)
		weft_odp_destroy(b->odp);
	if (b->release)
		b->release(b->owner);
	kvfree(b);
}

/**
 * weft_backing_reset - forget the pages of a fast-register region
 * @b: from weft_backing_pages()
 * @page_shift: size of the pages that will be added
 *
 * Context: any, by the owner of the mapping.
 */
void weft_backing_reset(struct weft_backing *b, u32 page_shift)
{
	b->count = 0;
	b->first = 0;
	b->page_shift = page_shift;
}

/**
 * weft_backing_add - append a page to a fast-register region
 * @b: from weft_backing_pages(), reset for pages of this size
 * @page: directly mapped memory
 *
 * Context: any, by the owner of the mapping. Return: 0 or -ENOMEM.
 */
int weft_backing_add(struct weft_backing *b, void *page)
{
	if (b->count == b->capacity)
		return -ENOMEM;
	b->vec[b->count++] = (struct bio_vec){
		.bv_page = virt_to_page(page),
		.bv_offset = offset_in_page(page),
		.bv_len = 1U << b->page_shift,
	};
	return 0;
}

/**
 * weft_backing_aligned8 - may an atomic work on this word?
 * @b: any backing
 * @offset: of the word
 *
 * Context: any.
 */
bool weft_backing_aligned8(const struct weft_backing *b, u64 offset)
{
	return IS_ALIGNED(b->first + offset, sizeof(u64));
}

/**
 * weft_backing_atomic - read, modify and write one word, in host byte order
 * @b: any backing
 * @offset: of the word; weft_backing_aligned8() said yes, all 8 bytes granted
 * @op: what to do
 *
 * Atomic against other such calls and against the CPU.
 *
 * Context: any. Return: the value before.
 */
u64 weft_backing_atomic(const struct weft_backing *b, u64 offset, const struct weft_atomic_op *op)
{
	u64 *word = (u64 *)(uintptr_t)offset;
	u64 old, seen;
	u32 span;

	if (b->vec || b->odp)
		word = (u64 *)weft_backing_span(b, offset, &span);
	old = READ_ONCE(*word);
	for (;;) {
		seen = cmpxchg64(word, old, weft_atomic_apply(op, old));
		if (seen == old)
			return old;
		old = seen;
	}
}
