/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A device that the process has opened. */
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "private-abi/private.h"
#include "region.h"

/*
 * libibverbs allocates all of it. Its struct verbs_context grows towards lower addresses from
 * release to release, with the public context as its end.
 */
struct weft_context {
	void *lib[WEFT_PABI_POINTERS];
	struct ibv_context ibv;
	struct weft_regions regions;
	bool heritable; /* the kernel tells a child when all of it is the child's */
	uint32_t generation; /* of the process it belongs to, as far as that is known */
};

static inline struct weft_context *weft_context(struct ibv_context *context)
{
	return container_of(context, struct weft_context, ibv);
}

/* What the library's private functions take. */
static inline struct verbs_context *weft_lib_context(struct weft_context *ctx)
{
	return (struct verbs_context *)&ctx->lib[pabi_surplus()];
}

static inline struct weft_regions *weft_regions(struct ibv_context *context)
{
	return &weft_context(context)->regions;
}

#endif
