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
struct net;
struct weft_cm;
struct weft_conn;
struct weft_sock;
struct weft_wildcard;

/* What a device listens for when the consumer asks for a wildcard. */
enum weft_wildcard_scope {
	WEFT_WILDCARD_SHARED,	/* all addresses, together with the other devices */
	WEFT_WILDCARD_DEVICE,	/* those of its own network device */
	WEFT_WILDCARD_NONE,	/* nothing: another driver does that on its network device */
};

/**
 * struct weft_listener_config - what a consumer listens for
 * @id: of iw_cm; a reference is taken
 * @addr: where
 * @backlog: requests that the consumer is told of before it has answered one
 * @tos: for the connections, -1: none
 * @v6only: no IPv4 peers
 * @net: network namespace of the consumer
 * @scope: what a wildcard means
 */
struct weft_listener_config {
	struct iw_cm_id *id;
	const struct sockaddr_storage *addr;
	int backlog;
	int tos;
	bool v6only;
	const struct net *net;
	enum weft_wildcard_scope scope;
};

/**
 * struct weft_listener - a listening consumer
 * @all: in weft_cm.listeners, from open to close
 * @id: its id, a reference held
 * @sock: its own socket, NULL: none
 * @wildcard: what it shares with others, NULL: nothing. Without either nothing is ever heard
 * @at_wildcard: in the list there
 * @tos: of its connections, or WEFT_TOS_KEEP
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
	struct weft_wildcard *wildcard;
	struct list_head at_wildcard;
	int tos;
	struct weft_backlog backlog;
};

struct weft_listener *weft_listener_open(struct weft_cm *cm,
					 const struct weft_listener_config *cfg);
void weft_listener_close(struct weft_listener *l);
void weft_listener_leave(struct weft_conn *conn);

/* For what several share. Context: the backlog's work. */
void weft_listener_adopt(struct weft_listener *l, struct weft_sock *s);

#endif
