// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Protection domain: a number that STags and QPs are compared by.
 */
#include "verbs/pd.h"

#include <linux/idr.h>

#include "base/limits.h"
#include "verbs/device.h"
#include "verbs/ucontext.h"

int weft_alloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	int number;
	int ret;

	ret = weft_udata_check(udata, 0);
	if (ret)
		return ret;
	number = ida_alloc_range(&to_weft_dev(ib->device)->pds, 1, WEFT_MAX_PD, GFP_KERNEL);
	if (number < 0)
		return -ENOMEM;
	to_weft_pd(ib)->number = number;
	return 0;
}

int weft_dealloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	ida_free(&to_weft_dev(ib->device)->pds, to_weft_pd(ib)->number);
	return 0;
}
