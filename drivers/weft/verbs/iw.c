// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What iw_cm calls, found by device and passed on to cm/.
 */
#include "verbs/iw.h"

#include <rdma/iw_cm.h>

#include "cm/iwcm.h"
#include "verbs/device.h"
#include "verbs/qp.h"

static struct weft_cm *cm_of(const struct iw_cm_id *id)
{
	return &to_weft_dev(id->device)->cm;
}

int weft_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	return weft_cm_connect(cm_of(id), id, param);
}

int weft_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	return weft_cm_accept(cm_of(id), id, param);
}

int weft_iw_reject(struct iw_cm_id *id, const void *pdata, u8 pdata_len)
{
	u32 withdrawn = 0;
	int ret = weft_cm_reject(cm_of(id), id, pdata, pdata_len, &withdrawn);

	if (withdrawn)
		weft_iw_disown(id->device, withdrawn);
	return ret;
}

int weft_iw_create_listen(struct iw_cm_id *id, int backlog)
{
	return weft_cm_listen(cm_of(id), id, backlog);
}

int weft_iw_destroy_listen(struct iw_cm_id *id)
{
	return weft_cm_listen_destroy(cm_of(id), id);
}
