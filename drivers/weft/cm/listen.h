/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A listener: takes connections off TCP and lets each go its own way.
 */
#ifndef WEFT_CM_LISTEN_H
#define WEFT_CM_LISTEN_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct iw_cm_id;
struct weft_cm;
struct weft_conn;
struct weft_sock;

/**
 * struct weft_listener_config - what a consumer listens for
 * @id: whom iw_cm knows us by; a reference is taken
 * @addr: where
 * @backlog: connections TCP keeps for us
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
 * @backlog: as the consumer wants it
 * @sock: NULL where nothing can ever be heard
 * @work: takes connections off TCP; cancelled before @sock goes
 * @lock: protects @waiting, @undecided, @num_waiting and @closed
 * @waiting: connections whose request is not complete, oldest first
 * @undecided: those the consumer was told of and has not answered
 * @closed: takes no more
 *
 * Referenced by its consumer and by every connection in either list.
 */
struct weft_listener {
	struct kref ref;
	struct list_head all;
	struct weft_cm *cm;
	struct iw_cm_id *id;
	struct weft_sock *sock;
	struct delayed_work work;
	struct mutex lock;	/* both lists, @num_waiting, @closed */
	struct list_head waiting;
	struct list_head undecided;
	int backlog;
	u32 num_waiting;
	bool closed;
};

struct weft_listener *weft_listener_open(struct weft_cm *cm,
					 const struct weft_listener_config *cfg);
void weft_listener_close(struct weft_listener *l);
bool weft_listener_ready(struct weft_conn *conn);
void weft_listener_leave(struct weft_conn *conn);

#endif
