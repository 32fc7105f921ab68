// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory window: an STag that work requests bind, mem/mr_ops.c.
 */
#include "verbs/mw.h"

#include "mem/stag.h"
#include "verbs/device.h"
#include "verbs/pd.h"
#include "verbs/ucontext.h"

static struct weft_mw *to_weft_mw(struct ib_mw *ib)
{
	return container_of(ib, struct weft_mw, ib);
}

int weft_alloc_mw(struct ib_mw *ib, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ib->device);
	struct weft_mem_region *region;
	int ret;

	if (ib->type != IB_MW_TYPE_1 && ib->type != IB_MW_TYPE_2)
		return -EOPNOTSUPP;
	ret = weft_udata_check(udata, 0);
	if (ret)
		return ret;

	region = weft_stag_alloc(&dev->stags,
				 ib->type == IB_MW_TYPE_1 ? WEFT_STAG_WINDOW1 : WEFT_STAG_WINDOW2,
				 to_weft_pd(ib->pd)->number);
	if (IS_ERR(region))
		return PTR_ERR(region);

	to_weft_mw(ib)->region = region;
	ib->rkey = region->grant.stag;
	return 0;
}

int weft_dealloc_mw(struct ib_mw *ib)
{
	struct weft_mem_region *region = to_weft_mw(ib)->region;
	int ret;

	ret = weft_stag_revoke(region, true);
	if (ret)
		return ret;
	weft_stag_free(&to_weft_dev(ib->device)->stags, region);
	return 0;
}
