/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The face towards iw_cm: its requests in, its events out. No other file looks into
 * a struct iw_cm_id.
 */
#ifndef WEFT_CM_IWCM_H
#define WEFT_CM_IWCM_H

#include <linux/types.h>

#include "cm/listen.h"

struct iw_cm_conn_param;
struct iw_cm_id;
struct net;
struct weft_cm;
struct weft_conn;

/* The device operations of the same names. */
int weft_cm_connect(struct weft_cm *cm, struct iw_cm_id *id, const struct iw_cm_conn_param *param);
int weft_cm_accept(struct weft_cm *cm, struct iw_cm_id *id, const struct iw_cm_conn_param *param);
int weft_cm_reject(struct weft_cm *cm, struct iw_cm_id *id, const void *pd, u8 pd_len,
		   u32 *withdrawn);
int weft_cm_listen(struct weft_cm *cm, struct iw_cm_id *id, int backlog, const struct net *net,
		   enum weft_wildcard_scope scope);
int weft_cm_listen_destroy(struct weft_cm *cm, struct iw_cm_id *id);

/* Within this room; the worker of the connection. */
int weft_iwcm_tell_request(struct weft_conn *conn);
void weft_iwcm_tell_reply(struct weft_conn *conn);
void weft_iwcm_tell_established(struct weft_conn *conn);
void weft_iwcm_tell_disconnect(struct weft_conn *conn);
void weft_iwcm_tell_close(struct weft_conn *conn);
void weft_iwcm_forget(struct weft_conn *conn);
void weft_iwcm_get_id(struct iw_cm_id *id);
void weft_iwcm_put_id(struct iw_cm_id *id);
struct weft_conn *weft_iwcm_find(struct weft_cm *cm, const void *context);
bool weft_iwcm_is_of(const struct iw_cm_id *id, const void *context);

#endif
