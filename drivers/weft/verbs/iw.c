// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What iw_cm calls, found by device and passed on to cm/.
 */
#include "verbs/iw.h"

#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>

#include "cm/iwcm.h"
#include "verbs/device.h"
#include "verbs/qp.h"

static struct weft_cm *cm_of(const struct iw_cm_id *id)
{
	return &to_weft_dev(id->device)->cm;
}

/*
 * A QP of a kernel consumer belongs to an id of rdma_cm. That of a process has none, but may
 * come with any number.
 */
static bool is_of_another(const struct iw_cm_id *id, u32 qpn)
{
	const struct rdma_cm_id *consumer = id->context;
	struct weft_stream *st = weft_stream_find(&to_weft_dev(id->device)->streams, qpn);
	bool kernel = st && weft_stream_serves_kernel(st);

	if (st)
		weft_stream_put(st);
	return kernel && !(consumer->qp && consumer->qp->qp_num == qpn);
}

int weft_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (is_of_another(id, param->qpn))
		return -EPERM;
	return weft_cm_connect(cm_of(id), id, param);
}

int weft_iw_reject(struct iw_cm_id *id, const void *pdata, u8 pdata_len)
{
	u32 withdrawn = 0;
	int ret = weft_cm_reject(cm_of(id), id, pdata, pdata_len, &withdrawn);

	if (withdrawn)
		weft_iw_disown(id->device, withdrawn);
	return ret;
}

int weft_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (is_of_another(id, param->qpn)) {
		weft_iw_reject(id, NULL, 0);
		return -EPERM;
	}
	return weft_cm_accept(cm_of(id), id, param);
}

int weft_iw_create_listen(struct iw_cm_id *id, int backlog)
{
	return weft_cm_listen(cm_of(id), id, backlog);
}

int weft_iw_destroy_listen(struct iw_cm_id *id)
{
	return weft_cm_listen_destroy(cm_of(id), id);
}
