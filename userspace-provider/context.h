/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A device that the process has opened. */
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "private-abi/private.h"
#include "region.h"

/* libibverbs' part comes first: it allocates all of it. */
struct weft_context {
	struct verbs_context vctx;
	struct weft_regions regions;
	bool heritable;		/* the kernel tells a child when all of it is the child's */
	uint32_t generation;	/* of the process it belongs to, as far as that is known */
};

static inline struct weft_context *weft_context(struct ibv_context *context)
{
	return (struct weft_context *)((char *)context -
				       offsetof(struct weft_context, vctx.context));
}

static inline struct weft_regions *weft_regions(struct ibv_context *context)
{
	return &weft_context(context)->regions;
}

#endif
