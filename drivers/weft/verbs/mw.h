/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Memory window: an STag that work requests bind, mem/mr_ops.h.
 */
#ifndef WEFT_VERBS_MW_H
#define WEFT_VERBS_MW_H

#include <rdma/ib_verbs.h>

struct weft_mem_region;

struct weft_mw {
	struct ib_mw ib;
	struct weft_mem_region *region;
};

int weft_alloc_mw(struct ib_mw *ib, struct ib_udata *udata);
int weft_dealloc_mw(struct ib_mw *ib);

#endif
