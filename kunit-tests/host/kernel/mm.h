/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Allocations, pages, regions of a process, pointers by number. Included by kernel.h. */
#ifndef WEFT_HOST_MM_H
#define WEFT_HOST_MM_H

#define GFP_NOWAIT		0U
#define __GFP_DIRECT_RECLAIM	(1U << 0)
#define __GFP_NOWARN		(1U << 1)
#define __GFP_NOFAIL		(1U << 2)
#define __GFP_MEMALLOC		(1U << 3)
#define __GFP_ZERO		(1U << 4)
#define __GFP_ACCOUNT		(1U << 5)
#define GFP_KERNEL		__GFP_DIRECT_RECLAIM
#define GFP_KERNEL_ACCOUNT	(GFP_KERNEL | __GFP_ACCOUNT)
#define GFP_ATOMIC		GFP_NOWAIT
#define PAGE_SHIFT		12
#define PAGE_SIZE		4096UL
#define PAGE_ALIGN(n)		ALIGN(n, PAGE_SIZE)
#define offset_in_page(p)	((unsigned long)(p) & (PAGE_SIZE - 1))
#define SLAB_ACCOUNT		0

void *host_alloc(size_t bytes, gfp_t gfp);

#define kmalloc(n, gfp)		host_alloc(n, gfp)
#define kzalloc(n, gfp)		host_alloc(n, (gfp) | __GFP_ZERO)
#define kcalloc(n, size, gfp)	host_alloc((size_t)(n) * (size), (gfp) | __GFP_ZERO)
#define kmalloc_array(n, size, gfp) host_alloc((size_t)(n) * (size), gfp)
#define kvmalloc(n, gfp)	host_alloc(n, gfp)
#define kvzalloc(n, gfp)	kzalloc(n, gfp)
#define kvcalloc(n, size, gfp)	kcalloc(n, size, gfp)
#define __vmalloc(n, gfp)	host_alloc(n, gfp)
#define kfree(p)		free((void *)(p))
#define kvfree(p)		free((void *)(p))
#define vfree(p)		free((void *)(p))

struct kmem_cache;

#define KMEM_CACHE(type, flags)	((struct kmem_cache *)sizeof(struct type))
#define kmem_cache_zalloc(cache, gfp) kzalloc((size_t)(cache), gfp)
#define kmem_cache_free(cache, p) free(p)
#define kmem_cache_destroy(cache)

#define alloc_percpu(type)	((type *)kzalloc(sizeof(type), GFP_KERNEL))
#define free_percpu(p)		free(p)
#define DEFINE_PER_CPU(type, name) __typeof__(type) name
#define this_cpu_ptr(p)		(p)
#define per_cpu_ptr(p, cpu)	((void)(cpu), (p))
#define raw_cpu_ptr(p)		(p)
#define raw_cpu_add(v, n)	((v) += (n))
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)

/* A page, or some in a row: the address of the first, and the references to them. */
struct page {
	u8 *address;
	u32 count;
};

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};

struct page_frag {
	struct page *page;
	u32 offset;
	u32 size;
};

struct page *host_pages(u32 count, gfp_t gfp);
struct page *virt_to_page(const void *addr);
bool virt_addr_valid(const void *addr);
void put_page(struct page *page);
bool skb_page_frag_refill(unsigned int size, struct page_frag *frag, gfp_t gfp);

#define alloc_page(gfp)		host_pages(1, gfp)
#define __free_page(page)	put_page(page)
#define page_address(page)	((void *)(page)->address)

static inline void get_page(struct page *page)
{
	HOST_CHECK(page->count);
	page->count++;
}

/* Memory of a process: pages in any order. */
struct host_sgtable {
	struct page **pages;
	u32 count;
};

struct ib_umem {
	struct {
		struct host_sgtable sgt;
	} sgt_append;
	u32 offset;
};

struct sg_page_iter {
	u32 at;
	const struct host_sgtable *sgt;
};

void ib_umem_release(struct ib_umem *umem);

#define ib_umem_num_pages(umem)	((umem)->sgt_append.sgt.count)
#define ib_umem_offset(umem)	((umem)->offset)
#define sg_page_iter_page(iter)	((iter)->sgt->pages[(iter)->at])
#define for_each_sgtable_page(table, iter, first)				\
	for (*(iter) = (struct sg_page_iter){ (first), (table) }; (iter)->at < (iter)->sgt->count; \
	     (iter)->at++)

enum ib_access_flags {
	IB_ACCESS_LOCAL_WRITE = 1 << 0,
	IB_ACCESS_REMOTE_WRITE = 1 << 1,
	IB_ACCESS_REMOTE_READ = 1 << 2,
	IB_ACCESS_REMOTE_ATOMIC = 1 << 3,
	IB_ACCESS_MW_BIND = 1 << 4,
	IB_ZERO_BASED = 1 << 5,
};

/* --- an array of pointers by number --- */

struct xa_slot {
	unsigned long index;
	void *entry;
};

struct xarray {
	struct xa_slot *slots;
	u32 count;
};

struct xa_limit {
	u32 min;
	u32 max;
};

#define XA_LIMIT(lo, hi)	((struct xa_limit){ .min = (lo), .max = (hi) })
#define xa_init_flags(xa, flags) memset(xa, 0, sizeof(*(xa)))
#define xa_empty(xa)		(!(xa)->count)

int xa_alloc(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, gfp_t gfp);
int xa_alloc_cyclic_irq(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, u32 *next,
			gfp_t gfp);
void *xa_load(struct xarray *xa, unsigned long index);
void xa_store_irq(struct xarray *xa, unsigned long index, void *entry, gfp_t gfp);
void xa_erase(struct xarray *xa, unsigned long index);
void xa_destroy(struct xarray *xa);

#define xa_erase_irq(xa, index)	xa_erase(xa, index)
#define xa_for_each(xa, i, e)							\
	for ((i) = 0; (i) < (xa)->count; (i)++)					\
		if (((e) = (xa)->slots[i].entry))

#endif
