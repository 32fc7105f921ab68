// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory regions: of a process, of all kernel memory, and those that kernel
 * consumers fill by fast registration.
 */
#include "verbs/mr.h"

#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "base/compat.h"
#include "base/limits.h"
#include "mem/backing.h"
#include "mem/dmabuf.h"
#include "mem/stag.h"
#include "verbs/device.h"
#include "verbs/pd.h"
#include "verbs/ucontext.h"

#define RIGHTS                                                                                     \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |                  \
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND)

/* What needs no support: hints, and the address a region starts at. */
#define HARMLESS (IB_ACCESS_OPTIONAL | IB_ACCESS_HUGETLB | IB_ZERO_BASED)

static int check_access(int access)
{
	return access & ~(RIGHTS | HARMLESS) ? -EOPNOTSUPP : 0;
}

static struct weft_mr *make_mr(struct ib_pd *ibpd, enum weft_stag_kind kind)
{
	struct weft_device *dev = to_weft_dev(ibpd->device);
	struct weft_mr *mr;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	mr->region = weft_stag_alloc(&dev->stags, kind, to_weft_pd(ibpd)->number);
	if (IS_ERR(mr->region)) {
		void *err = ERR_CAST(mr->region);

		kfree(mr);
		return err;
	}
	mr->ib.device = ibpd->device;
	mr->ib.lkey = mr->region->grant.stag;
	mr->ib.rkey = mr->region->grant.stag;
	return mr;
}

static void free_mr(struct weft_mr *mr)
{
	weft_backing_free(mr->region->grant.backing);
	weft_backing_free(mr->region->next.backing);
	weft_stag_free(&to_weft_dev(mr->ib.device)->stags, mr->region);
	kfree(mr);
}

/* Takes over @backing, also when it fails. */
static struct ib_mr *make_valid_mr(struct ib_pd *ibpd, struct weft_backing *backing, u64 iova,
				   u64 length, int access)
{
	struct weft_stag_grant grant = {
		.access = access & RIGHTS,
		.iova = iova,
		.length = length,
		.backing = backing,
	};
	struct weft_mr *mr = make_mr(ibpd, WEFT_STAG_REGION);

	if (IS_ERR(mr)) {
		weft_backing_free(backing);
		return ERR_CAST(mr);
	}
	mr->ib.iova = iova;
	mr->ib.length = length;
	mr->zero_based = access & IB_ZERO_BASED;
	grant.stag = mr->region->grant.stag;
	/* Cannot fail: the region is not known elsewhere yet. */
	WARN_ON_ONCE(weft_stag_enable(mr->region, &grant));
	return &mr->ib;
}

/**
 * weft_get_dma_mr - all of kernel memory, by address
 * @ibpd: domain
 * @access: enum ib_access_flags
 *
 * Context: may sleep. Return: the region or an ERR_PTR.
 */
struct ib_mr *weft_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct weft_backing *backing;
	int ret;

	ret = check_access(access);
	if (ret)
		return ERR_PTR(ret);
	backing = weft_backing_kernel();
	if (IS_ERR(backing))
		return ERR_CAST(backing);
	return make_valid_mr(ibpd, backing, 0, U64_MAX, access);
}

/* Paged on demand, or pinned: memlock limits are the core's business. */
static struct weft_backing *back_user(struct ib_device *ib, u64 start, u64 length, int access)
{
	struct weft_backing *backing;
	struct weft_odp *odp;
	struct ib_umem *umem;

	if (access & IB_ACCESS_ON_DEMAND) {
		odp = weft_odp_create(ib, start, length, access);
		if (IS_ERR(odp))
			return ERR_CAST(odp);
		backing = weft_backing_from_odp(odp);
		if (IS_ERR(backing))
			weft_odp_destroy(odp);
		return backing;
	}
	umem = ib_umem_get_va(ib, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	backing = weft_backing_from_umem(umem);
	if (IS_ERR(backing))
		ib_umem_release(umem);
	return backing;
}

static int check_range(u64 length, u64 iova)
{
	if (!length || length > WEFT_MAX_MR_SIZE || iova + length - 1 < iova)
		return -EINVAL;
	return 0;
}

/* What is where is not asked before it is accessed, but addresses have an end. */
static int check_user_range(u64 start, u64 length, u64 iova, int access)
{
	if (access & IB_ACCESS_ON_DEMAND) {
		/* All of the process' memory, wherever and whenever it is. */
		if (!start && length == U64_MAX)
			return iova ? -EINVAL : 0;
		if (start + length < start)
			return -EINVAL;
	}
	return check_range(length, iova);
}

/**
 * weft_reg_user_mr - register memory of the calling process
 * @ibpd: domain
 * @start: address
 * @length: bytes, not 0; 0 and U64_MAX, on demand: all of its memory
 * @iova: tagged offset that stands for @start
 * @access: enum ib_access_flags
 * @udata: of the call, nothing of ours in it
 *
 * Context: may sleep. Return: the region or an ERR_PTR.
 */
struct ib_mr *weft_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
			       struct ib_udata *udata)
{
	struct weft_backing *backing;
	int ret;

	if (access & IB_ZERO_BASED)
		iova = 0;
	ret = weft_udata_check(udata, 0)		  ?:
		      check_access(access & ~IB_ACCESS_ON_DEMAND) ?:
		      check_user_range(start, length, iova, access);
	if (ret)
		return ERR_PTR(ret);
	backing = back_user(ibpd->device, start, length, access);
	if (IS_ERR(backing))
		return ERR_CAST(backing);
	return make_valid_mr(ibpd, backing, iova, length, access);
}

/**
 * weft_reg_dmabuf_mr - register part of a dma-buf
 * @ibpd: domain
 * @offset: of the part in the buffer
 * @length: bytes, not 0
 * @iova: tagged offset that stands for @offset
 * @fd: of the buffer, in the calling process
 * @access: enum ib_access_flags
 *
 * Context: may sleep. Return: the region or an ERR_PTR.
 */
struct ib_mr *weft_reg_dmabuf_mr(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd,
				 int access)
{
	struct weft_backing *backing;
	int ret;

	ret = check_access(access) ?: check_range(length, iova);
	if (ret)
		return ERR_PTR(ret);
	backing = weft_backing_from_dmabuf(fd, offset, length);
	if (IS_ERR(backing))
		return ERR_CAST(backing);
	return make_valid_mr(ibpd, backing, iova, length, access);
}

/**
 * weft_mr_query_odp - count the pages of a region that is paged on demand
 * @ib: the region
 * @stats: filled in
 *
 * Context: any. Return: false for a region of another kind, or one that is just being changed.
 */
bool weft_mr_query_odp(struct ib_mr *ib, struct weft_odp_stats *stats)
{
	struct weft_mem_region *region;
	struct weft_odp *odp;

	region = weft_stag_pin(&to_weft_dev(ib->device)->stags, ib->lkey);
	if (!region)
		return false;
	odp = region->grant.backing->odp;
	if (odp)
		weft_odp_query(odp, stats);
	weft_stag_unpin(region);
	return odp;
}

/*
 * What an advice names must be there, and be the caller's to use that way. Memory that is pinned is
 * ready then.
 */
static int advise_region(struct ib_pd *ibpd, const struct ib_sge *sge, enum weft_odp_how how,
			 bool wait)
{
	const struct weft_stag_grant *g;
	struct weft_mem_region *region;
	struct weft_odp *odp = NULL;
	u64 offset = 0;
	int ret = 0;

	region = weft_stag_pin(&to_weft_dev(ibpd->device)->stags, sge->lkey);
	if (!region)
		return -ENOENT;
	g = &region->grant;
	if (region->kind != WEFT_STAG_REGION || region->pd != to_weft_pd(ibpd)->number) {
		ret = -ENOENT;
	} else if (sge->addr < g->iova || sge->length > g->length ||
		   sge->addr - g->iova > g->length - sge->length) {
		ret = -EFAULT;
	} else if (how == WEFT_ODP_WRITE && !(g->access & IB_ACCESS_LOCAL_WRITE)) {
		ret = -EPERM;
	} else if (g->backing->odp) {
		odp = g->backing->odp;
		offset = sge->addr - g->iova;
		weft_odp_get(odp);
	}
	weft_stag_unpin(region);
	if (!odp)
		return ret;
	ret = weft_odp_prefetch(odp, offset, sge->length, how, wait);
	weft_odp_destroy(odp);
	return ret;
}

/**
 * weft_advise_mr - have memory ready for use
 * @ibpd: domain
 * @advice: enum ib_uverbs_advise_mr_advice
 * @flags: IB_UVERBS_ADVISE_MR_FLAG_FLUSH: wait until it is
 * @sg_list: what will be used
 * @num_sge: its elements
 * @attrs: of the call, nothing of ours in it
 *
 * Memory that is pinned is ready, so such an advice has been followed already.
 *
 * Context: may sleep. Return: 0; -ENOENT for a key that is not one of the domain,
 * -EFAULT outside of its region, -EPERM for writing where that is not allowed; with FLUSH
 * also -errno where there is no memory.
 */
int weft_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		   struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	static const enum weft_odp_how how[] = {
		[IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH] = WEFT_ODP_READ,
		[IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE] = WEFT_ODP_WRITE,
		[IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT] = WEFT_ODP_PRESENT,
	};
	bool wait = flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH;
	int ret = 0;
	u32 i;

	if (advice >= ARRAY_SIZE(how))
		return -EOPNOTSUPP;
	for (i = 0; i < num_sge && !ret; i++)
		ret = advise_region(ibpd, &sg_list[i],
				    how[array_index_nospec(advice, ARRAY_SIZE(how))], wait);
	return ret;
}

/* Fills @grant with what the region is to be. */
static int plan_rereg(struct weft_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
		      struct weft_stag_grant *grant)
{
	const struct weft_backing *old = mr->region->grant.backing;
	bool writable = old->odp ? weft_odp_is_writable(old->odp) :
				   !old->umem || old->umem->writable;
	int ret;

	*grant = mr->region->grant;
	grant->access = access & RIGHTS;
	/* Writing to pages that were pinned for reading only would miss a copy on write. */
	if (!(flags & IB_MR_REREG_TRANS) && !(access & IB_ACCESS_ON_DEMAND) == !old->odp &&
	    (writable || !ib_access_writable(access)))
		return 0;

	/* A dma-buf cannot turn into memory of the process. */
	if (!old->umem && !old->odp)
		return -EOPNOTSUPP;
	if (flags & IB_MR_REREG_TRANS) {
		grant->iova = access & IB_ZERO_BASED ? 0 : iova;
		grant->length = length;
	} else {
		/* Is it memory of the caller? That of another process may share the context. */
		if (old->odp ? !weft_odp_is_own(old->odp) : old->umem->owning_mm != current->mm)
			return -EOPNOTSUPP;
		start = old->odp ? weft_odp_start(old->odp) : old->umem->address;
	}
	ret = check_user_range(start, grant->length, grant->iova, access);
	if (ret)
		return ret;
	grant->backing = back_user(mr->ib.device, start, grant->length, access);
	return PTR_ERR_OR_ZERO(grant->backing);
}

/**
 * weft_rereg_user_mr - change a region, which keeps its STag
 * @ib: region of a process
 * @flags: IB_MR_REREG_*, what to change
 * @start: with TRANS, address
 * @length: with TRANS, bytes
 * @iova: with TRANS, tagged offset
 * @access: with ACCESS, enum ib_access_flags
 * @ibpd: domain from now on
 * @udata: of the call, nothing of ours in it
 *
 * Accesses in between are refused. On failure the region stays as it was.
 *
 * Context: may sleep. Return: NULL, or an ERR_PTR.
 */
struct ib_mr *weft_rereg_user_mr(struct ib_mr *ib, int flags, u64 start, u64 length, u64 iova,
				 int access, struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct weft_mr *mr = to_weft_mr(ib);
	struct weft_backing *old = mr->region->grant.backing;
	struct weft_stag_grant grant;
	int ret;

	if (!(flags & IB_MR_REREG_ACCESS)) /* as it was registered */
		access = mr->region->grant.access | (mr->zero_based ? IB_ZERO_BASED : 0) |
			 (old->odp ? IB_ACCESS_ON_DEMAND : 0);
	ret = weft_udata_check(udata, 0) ?: check_access(access & ~IB_ACCESS_ON_DEMAND);
	if (!ret)
		ret = plan_rereg(mr, flags, start, length, iova, access, &grant);
	if (ret)
		return ERR_PTR(ret);

	ret = weft_stag_revoke(mr->region, false);
	if (ret) {
		if (grant.backing != old)
			weft_backing_free(grant.backing);
		return ERR_PTR(ret);
	}
	mr->region->pd = to_weft_pd(ibpd)->number;
	mr->zero_based = access & IB_ZERO_BASED;
	/* Cannot fail: only its owner makes a region valid, and that is us. */
	WARN_ON_ONCE(weft_stag_enable(mr->region, &grant));
	if (grant.backing != old)
		weft_backing_free(old);
	return NULL;
}

/* One set of pages in use, one to map into. */
static int alloc_page_lists(struct weft_mem_region *region, u32 pages)
{
	struct weft_backing *used = weft_backing_pages(pages);
	struct weft_backing *next;

	if (IS_ERR(used))
		return PTR_ERR(used);
	region->grant.backing = used;
	next = weft_backing_pages(pages);
	if (IS_ERR(next))
		return PTR_ERR(next);
	region->next.backing = next;
	return 0;
}

/**
 * weft_alloc_mr - a region for fast registration, not valid yet
 * @ibpd: domain
 * @type: only IB_MR_TYPE_MEM_REG
 * @max_num_sg: pages at most, up to WEFT_MAX_FAST_REG_PAGES
 *
 * Context: may sleep. Return: the region or an ERR_PTR.
 */
struct ib_mr *weft_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct weft_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > WEFT_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);

	mr = make_mr(ibpd, WEFT_STAG_FASTREG);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ret = alloc_page_lists(mr->region, max_num_sg);
	if (ret) {
		free_mr(mr);
		return ERR_PTR(ret);
	}
	return &mr->ib;
}

static int add_page(struct ib_mr *ib, u64 addr)
{
	return weft_backing_add(to_weft_mr(ib)->region->next.backing, (void *)(uintptr_t)addr);
}

/**
 * weft_map_mr_sg - choose the pages of the next fast registration
 * @ib: fast-register region, in whatever state; its page size is set
 * @sg: mapped for DMA, so its addresses are the CPU's
 * @nents: elements
 * @offset: bytes to skip
 *
 * Context: any, by the consumer that owns the region.
 * Return: elements that fit in, or -EINVAL.
 */
int weft_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct weft_stag_mapping *next = &to_weft_mr(ib)->region->next;
	int mapped;

	if (!is_power_of_2(ib->page_size))
		return -EINVAL;

	weft_backing_reset(next->backing, ilog2(ib->page_size));
	mapped = ib_sg_to_pages(ib, sg, nents, offset, add_page);
	next->backing->first = ib->iova & (ib->page_size - 1);
	next->fresh = mapped > 0;
	return mapped;
}

/**
 * weft_mr_prepare - hand a region to a registration that is being posted
 * @ib: fast-register region, of a kernel consumer
 *
 * Consumers may set another iova after mapping; the offset in the page stays.
 *
 * Context: any. Return: what goes with the work request.
 */
struct weft_mem_region *weft_mr_prepare(struct ib_mr *ib)
{
	struct weft_mem_region *region = to_weft_mr(ib)->region;

	region->next.iova = ib->iova;
	region->next.length = ib->length;
	return region;
}

/**
 * weft_dereg_mr - destroy a region of any kind
 * @ib: the region
 * @udata: unused
 *
 * Context: may sleep. Return: 0, or -EBUSY while windows are bound to it.
 */
int weft_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct weft_mr *mr = to_weft_mr(ib);
	int ret;

	ret = weft_stag_revoke(mr->region, true);
	if (ret)
		return ret;
	free_mr(mr);
	return 0;
}
