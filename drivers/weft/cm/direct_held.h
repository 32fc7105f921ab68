/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Requests that wait for a directly connected QP.
 */
#ifndef WEFT_CM_DIRECT_HELD_H
#define WEFT_CM_DIRECT_HELD_H

#include "proto/direct.h"

struct weft_conn;

enum weft_direct_reason weft_direct_read_request(struct weft_conn *conn,
						 struct weft_direct_hello *out);
enum weft_direct_reason weft_direct_queue_request(struct weft_conn *conn, u32 qpn);
void weft_direct_drop_held(struct weft_conn *conn);

#endif
