/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Memory regions and windows. */
#ifndef WEFT_MR_H
#define WEFT_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "private-abi/private.h"

struct weft_regions;

/* Of the memory below an inherited region, in this process. */
enum weft_mr_mapping {
	WEFT_MR_NOT_LOOKED,
	WEFT_MR_SHARED,
	WEFT_MR_PRIVATE,
};

struct weft_mr {
	struct verbs_mr vmr;
	uint32_t generation;		/* that registered it */
	const struct weft_regions *regions;	/* of its context */
	uint32_t lkey;
	bool listed;			/* what is imported is not */
	enum weft_mr_mapping mapping;	/* see inherit.c */
};

struct weft_mw {
	struct ibv_mw mw;
	uint32_t generation;		/* that made it */
};

struct ibv_mr *weft_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access);
struct ibv_mr *weft_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				  int fd, int access);
int weft_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access);
int weft_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *weft_import_mr(struct ibv_pd *pd, uint32_t handle);
void weft_unimport_mr(struct ibv_mr *mr);

struct ibv_mw *weft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int weft_dealloc_mw(struct ibv_mw *mw);

#endif
