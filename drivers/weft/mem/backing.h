/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The memory behind an STag, whatever its kind.
 */
#ifndef WEFT_MEM_BACKING_H
#define WEFT_MEM_BACKING_H

#include <linux/build_bug.h>
#include <linux/bvec.h>
#include <linux/kconfig.h>
#include <linux/mm.h>
#include <linux/types.h>

#include "mem/odp.h"

struct ib_umem;
struct weft_atomic_op;

/**
 * struct weft_backing - pages of a region, or all of kernel memory
 * @umem: pinned user memory, owned, NULL for other kinds
 * @odp: memory that is paged on demand, owned, NULL for other kinds
 * @release: gives other memory back when the backing goes, or NULL
 * @owner: handed to it
 * @vec: one element per page of the region: @pages; NULL: there is @odp, or offsets are kernel
 *	addresses
 * @count: elements in use
 * @capacity: elements allocated (fast-register)
 * @first: offset of the region's first byte in its first page
 * @page_shift: size of an element
 * @pages: next to what is looked at with each of them
 *
 * Owned by a region; the windows bound to it borrow it, and keep the region
 * from going away while they do.
 */
struct weft_backing {
	struct ib_umem *umem;
	struct weft_odp *odp;
	void (*release)(void *owner);
	void *owner;
	struct bio_vec *vec;
	u32 count;
	u32 capacity;
	u32 first;
	u32 page_shift;
	struct bio_vec pages[];
};

struct weft_backing *weft_backing_from_umem(struct ib_umem *umem);
struct weft_backing *weft_backing_from_odp(struct weft_odp *odp);
struct weft_backing *weft_backing_kernel(void);
struct weft_backing *weft_backing_pages(u32 capacity);
void weft_backing_free(struct weft_backing *b);

void weft_backing_reset(struct weft_backing *b, u32 page_shift);
int weft_backing_add(struct weft_backing *b, void *page);

/*
 * Pages of a region are touched by the CPU at their addresses. With high memory some have none;
 * then the RDMA core has no software devices either (INFINIBAND_VIRT_DMA).
 */
static_assert(!IS_ENABLED(CONFIG_HIGHMEM));

/**
 * weft_backing_span - the address of part of a region
 * @b: pages, not all of kernel memory; on demand: entered for them
 * @offset: first byte
 * @span: set to the bytes that lie in a span from there on
 *
 * Context: any.
 */
static inline u8 *weft_backing_span(const struct weft_backing *b, u64 offset, u32 *span)
{
	u64 at = offset + b->first;
	const struct bio_vec *bv;
	u32 skip;

	if (unlikely(!b->vec))
		return weft_odp_span(b->odp, offset, span);
	bv = &b->vec[at >> b->page_shift];
	skip = at & ((1UL << b->page_shift) - 1);
	*span = bv->bv_len - skip;
	return (u8 *)page_address(bv->bv_page) + bv->bv_offset + skip;
}

u64 weft_backing_atomic(const struct weft_backing *b, u64 offset, const struct weft_atomic_op *op);
bool weft_backing_aligned8(const struct weft_backing *b, u64 offset);

#endif
