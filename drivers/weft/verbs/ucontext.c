// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A process that has opened a weft device. It owns nothing by itself: queues
 * are its queue objects', mappings are the core's. It knows which pages have room.
 */
#include "verbs/ucontext.h"

#include <linux/minmax.h>
#include <rdma/uverbs_ioctl.h>

#include "base/limits.h"
#include "uapi/weft-abi.h"

/**
 * weft_udata_ring_space - where are the queues of the process that makes this call?
 * @udata: of a verbs operation
 *
 * Context: process. Return: the process's, NULL for a kernel consumer.
 */
struct weft_ring_space *weft_udata_ring_space(struct ib_udata *udata)
{
	struct weft_ucontext *uctx = rdma_udata_to_drv_context(udata, struct weft_ucontext, ib);

	return uctx ? &uctx->space : NULL;
}

/**
 * weft_udata_check - refuse what a newer library asks for and this kernel does not know
 * @udata: of a verbs operation, NULL for a kernel consumer
 * @known: bytes of it that have a meaning
 *
 * Context: process. Return: 0, or -EOPNOTSUPP unless all behind @known is zero.
 */
int weft_udata_check(struct ib_udata *udata, size_t known)
{
	if (!udata || udata->inlen <= known)
		return 0;
	return ib_is_udata_cleared(udata, known, udata->inlen - known) ? 0 : -EOPNOTSUPP;
}

int weft_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata)
{
	struct weft_uresp_alloc_ctx resp = {
		.max_inline = WEFT_MAX_INLINE,
		.features = WEFT_FEATURE_UNIQUE_MMAP_KEYS | WEFT_FEATURE_OWNER,
	};
	struct weft_ucontext *uctx = to_weft_ucontext(ib);
	struct weft_ureq_alloc_ctx req = {};
	int ret;

	/* Older libraries say nothing. */
	if (udata->inlen >= sizeof(req)) {
		ret = ib_copy_from_udata(&req, udata, sizeof(req)) ?:
			      weft_udata_check(udata, sizeof(req));
		if (ret)
			return ret;
		if (req.flags & ~WEFT_CTX_SHARED_PAGES || req.reserved)
			return -EOPNOTSUPP;
	}
	weft_ring_space_init(&uctx->space, ib, req.flags & WEFT_CTX_SHARED_PAGES);
	ret = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (ret)
		weft_ring_space_destroy(&uctx->space);
	else
		weft_owner_init(&uctx->owner);
	return ret;
}

/* For a process that was handed the file of another: there is nothing to know. */
int weft_query_ucontext(struct ib_ucontext *ib, struct uverbs_attr_bundle *attrs)
{
	return 0;
}

void weft_dealloc_ucontext(struct ib_ucontext *ib)
{
	struct weft_ucontext *uctx = to_weft_ucontext(ib);

	weft_owner_destroy(&uctx->owner);
	weft_ring_space_destroy(&uctx->space);
}

/*
 * Mapped rings are ordinary memory: they stay, and are not looked at any
 * more. That the operation exists is what lets a device change its namespace.
 */
void weft_disassociate_ucontext(struct ib_ucontext *ib)
{
}
