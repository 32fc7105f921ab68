/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Memory regions: of a process, of all kernel memory, and those that kernel
 * consumers fill by fast registration.
 */
#ifndef WEFT_VERBS_MR_H
#define WEFT_VERBS_MR_H

#include <rdma/ib_verbs.h>

#include "mem/odp.h"

struct weft_mem_region;

/**
 * struct weft_mr - a memory region
 * @ib: of the core
 * @region: its STag; of a fast-register one also the pages mapped next
 * @zero_based: offsets count from 0, also when it is moved
 */
struct weft_mr {
	struct ib_mr ib;
	struct weft_mem_region *region;
	bool zero_based;
};

static inline struct weft_mr *to_weft_mr(struct ib_mr *ib)
{
	return container_of(ib, struct weft_mr, ib);
}

struct ib_mr *weft_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *weft_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
			       struct ib_udata *udata);
struct ib_mr *weft_reg_dmabuf_mr(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd,
				 int access);
int weft_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		   struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs);
struct ib_mr *weft_rereg_user_mr(struct ib_mr *ib, int flags, u64 start, u64 length, u64 iova,
				 int access, struct ib_pd *ibpd, struct ib_udata *udata);
struct ib_mr *weft_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int weft_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents, unsigned int *offset);
int weft_dereg_mr(struct ib_mr *ib, struct ib_udata *udata);

/* For restrack.c. */
bool weft_mr_query_odp(struct ib_mr *ib, struct weft_odp_stats *stats);

/* For post.c. */
struct weft_mem_region *weft_mr_prepare(struct ib_mr *ib);

#endif
