/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Protection domain: a number that STags and QPs are compared by.
 */
#ifndef WEFT_VERBS_PD_H
#define WEFT_VERBS_PD_H

#include <rdma/ib_verbs.h>

struct weft_pd {
	struct ib_pd ib;
	u32 number;
};

static inline struct weft_pd *to_weft_pd(struct ib_pd *ib)
{
	return container_of(ib, struct weft_pd, ib);
}

int weft_alloc_pd(struct ib_pd *ib, struct ib_udata *udata);
int weft_dealloc_pd(struct ib_pd *ib, struct ib_udata *udata);

#endif
