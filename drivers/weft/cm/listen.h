/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A listener: takes connections off TCP and lets each go its own way.
 */
#ifndef WEFT_CM_LISTEN_H
#define WEFT_CM_LISTEN_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/socket.h>
#include <linux/types.h>

#include "cm/backlog.h"

struct iw_cm_id;
struct weft_cm;
struct weft_conn;
struct weft_sock;

/**
 * struct weft_listener_config - what a consumer listens for
 * @id: whom iw_cm knows us by; a reference is taken
 * @addr: where
 * @backlog: requests that the consumer is told of before it has answered one
 * @tos: for the connections, -1: none
 * @v6only: no IPv4 peers
 */
struct weft_listener_config {
	struct iw_cm_id *id;
	const struct sockaddr_storage *addr;
	int backlog;
	int tos;
	bool v6only;
};

/**
 * struct weft_listener - a listening consumer
 * @all: in weft_cm.listeners, from open to close
 * @id: its id, a reference held
 * @sock: NULL where nothing can ever be heard
 * @backlog: connections that are not decided yet
 *
 * Referenced by its consumer and by every connection in @backlog.
 */
struct weft_listener {
	struct kref ref;
	struct list_head all;
	struct weft_cm *cm;
	struct iw_cm_id *id;
	struct weft_sock *sock;
	struct weft_backlog backlog;
};

struct weft_listener *weft_listener_open(struct weft_cm *cm,
					 const struct weft_listener_config *cfg);
void weft_listener_close(struct weft_listener *l);
void weft_listener_leave(struct weft_conn *conn);

#endif
