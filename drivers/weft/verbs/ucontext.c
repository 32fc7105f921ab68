// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A process that has opened a weft device. It owns nothing by itself: queues
 * are its queue objects', mappings are the core's.
 */
#include "verbs/ucontext.h"

#include <linux/minmax.h>
#include <rdma/uverbs_ioctl.h>

#include "base/limits.h"
#include "uapi/weft-abi.h"

/**
 * weft_udata_context - who makes this call?
 * @udata: of a verbs operation
 *
 * Context: process. Return: the process's context, NULL for a kernel consumer.
 */
struct ib_ucontext *weft_udata_context(struct ib_udata *udata)
{
	struct weft_ucontext *uctx = rdma_udata_to_drv_context(udata, struct weft_ucontext, ib);

	return uctx ? &uctx->ib : NULL;
}

int weft_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata)
{
	const struct weft_uresp_alloc_ctx resp = {
		.max_inline = WEFT_MAX_INLINE,
	};

	return ib_copy_to_udata(udata, (void *)&resp, min(sizeof(resp), udata->outlen));
}

/* For a process that was handed the file of another: there is nothing to know. */
int weft_query_ucontext(struct ib_ucontext *ib, struct uverbs_attr_bundle *attrs)
{
	return 0;
}

void weft_dealloc_ucontext(struct ib_ucontext *ib)
{
}

/*
 * Mapped rings are ordinary memory: they stay, and nobody looks at them any
 * more. That the operation exists is what lets a device change its namespace.
 */
void weft_disassociate_ucontext(struct ib_ucontext *ib)
{
}
