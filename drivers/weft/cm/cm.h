/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Connection management of one device: what its connections and listeners share.
 */
#ifndef WEFT_CM_CM_H
#define WEFT_CM_CM_H

#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "cm/directs.h"
#include "net/tcp_sockopts.h"
#include "proto/mpa_start.h"

struct net;
struct net_device;
struct weft_counters;
struct weft_sock;
struct weft_stream;
struct weft_stream_index;
struct workqueue_struct;

/**
 * struct weft_cm_deadlines - how long each step of a handshake may take, milliseconds
 * @connect: TCP
 * @request: an initiator, for its whole request
 * @decision: a consumer, to accept or reject; longer than any initiator waits
 * @reply: a responder and its consumer
 * @rtr: an initiator, for the ready-to-receive message
 */
struct weft_cm_deadlines {
	u32 connect;
	u32 request;
	u32 decision;
	u32 reply;
	u32 rtr;
};

/**
 * struct weft_cm - connection management of one device
 * @streams: of the device, by QP number
 * @netdev: of the device, held by it; sockets live in its network namespace
 * @counters: of the device
 * @wq: handshakes, upcalls, teardown
 * @policy: what is offered and accepted by default; fields may be changed at any
 *	time and count for connections begun later
 * @deadlines: as @policy
 * @ord_max: as @policy; requests that may wait for their response
 * @private_data_max: as @policy; bytes a start frame may bring for the consumer
 * @opts: as @policy, for sockets
 * @opts_lock: protects the name in @opts
 * @listeners: open ones
 * @listeners_lock: protects the list, not what is in it
 * @directs: QPs that are connected by ibv_modify_qp()
 * @conns: every connection that is not closed yet, by handle
 * @by_context: those that have an id, by what its consumer gave iw_cm
 * @by_context_lock: protects it
 * @next_handle: handles are not reused soon, so that a stale one finds nothing
 * @users: connections and listeners, plus one for the device
 * @idle: the last user is gone
 */
struct weft_cm {
	struct weft_stream_index *streams;
	struct net_device *netdev;
	struct weft_counters *counters;
	struct workqueue_struct *wq;
	struct weft_mpa_policy policy;
	struct weft_cm_deadlines deadlines;
	u32 ord_max;
	u32 private_data_max;
	struct weft_sock_opts opts;
	struct mutex opts_lock; /* the name in opts */
	struct list_head listeners;
	struct mutex listeners_lock; /* listeners, weft_listener.all */
	struct weft_directs directs;
	struct xarray conns;
	DECLARE_HASHTABLE(by_context, 9);
	spinlock_t by_context_lock; /* by_context, weft_conn.by_context */
	u32 next_handle;
	refcount_t users;
	struct completion idle;
};

int weft_cm_init(struct weft_cm *cm, struct weft_stream_index *streams, struct net_device *netdev,
		 struct weft_counters *counters);
void weft_cm_abort(struct weft_cm *cm);
void weft_cm_cancel_pending(struct weft_cm *cm, const struct weft_stream *stream);
void weft_cm_exit(struct weft_cm *cm);

int weft_cm_set_congestion(struct weft_cm *cm, const char *name);
void weft_cm_get_congestion(struct weft_cm *cm, char *name);

/* What a consumer has said about the type of service, if it is no byte. */
#define WEFT_TOS_NONE	-1	/* nothing: the operator's counts */
#define WEFT_TOS_KEEP	-2	/* settled already, by the listener */

/* Within this room. */
void weft_cm_tune(struct weft_cm *cm, struct weft_sock *s, int tos);
void weft_cm_get(struct weft_cm *cm);
void weft_cm_put(struct weft_cm *cm);
struct net *weft_cm_get_net(struct weft_cm *cm);

#endif
