/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A process that has opened a weft device. Its mappings: ring/mmap.h.
 */
#ifndef WEFT_VERBS_UCONTEXT_H
#define WEFT_VERBS_UCONTEXT_H

#include <rdma/ib_verbs.h>

#include "engine/run/defer.h"
#include "ring/mmap.h"
#include "verbs/owner.h"

/**
 * struct weft_ucontext - a process
 * @ib: of the core
 * @space: where its queues are
 * @db_stat: how it rings the doorbells of its queues
 * @owner: the process, or a child that has outlived it
 */
struct weft_ucontext {
	struct ib_ucontext ib;
	struct weft_ring_space space;
	struct weft_db_stat db_stat;
	struct weft_owner owner;
};

static inline struct weft_ucontext *to_weft_ucontext(struct ib_ucontext *ib)
{
	return container_of(ib, struct weft_ucontext, ib);
}

struct weft_ring_space *weft_udata_ring_space(struct ib_udata *udata);
int weft_udata_check(struct ib_udata *udata, size_t known);

int weft_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata);
int weft_query_ucontext(struct ib_ucontext *ib, struct uverbs_attr_bundle *attrs);
void weft_dealloc_ucontext(struct ib_ucontext *ib);
void weft_disassociate_ucontext(struct ib_ucontext *ib);

#endif
