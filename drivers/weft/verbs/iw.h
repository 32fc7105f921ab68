/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What iw_cm calls, found by device and passed on to cm/.
 */
#ifndef WEFT_VERBS_IW_H
#define WEFT_VERBS_IW_H

#include <linux/types.h>

struct iw_cm_conn_param;
struct iw_cm_id;

int weft_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int weft_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int weft_iw_reject(struct iw_cm_id *id, const void *pdata, u8 pdata_len);
int weft_iw_create_listen(struct iw_cm_id *id, int backlog);
int weft_iw_destroy_listen(struct iw_cm_id *id);

#endif
