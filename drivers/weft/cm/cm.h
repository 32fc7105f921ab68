/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Connection management of one device: what its connections and listeners share.
 */
#ifndef WEFT_CM_CM_H
#define WEFT_CM_CM_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "proto/mpa_start.h"

struct net;
struct net_device;
struct weft_counters;
struct weft_stream;
struct weft_stream_index;
struct workqueue_struct;

/**
 * struct weft_cm_deadlines - how long each step of a handshake may take, jiffies
 * @connect: TCP
 * @request: an initiator, for its whole request
 * @decision: a consumer, to accept or reject; longer than any initiator waits
 * @reply: a responder and its consumer
 * @rtr: an initiator, for the ready-to-receive message
 */
struct weft_cm_deadlines {
	unsigned long connect;
	unsigned long request;
	unsigned long decision;
	unsigned long reply;
	unsigned long rtr;
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
 * @conns: every connection that is not closed yet, by handle
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
	struct xarray conns;
	u32 next_handle;
	refcount_t users;
	struct completion idle;
};

int weft_cm_init(struct weft_cm *cm, struct weft_stream_index *streams, struct net_device *netdev,
		 struct weft_counters *counters);
void weft_cm_abort(struct weft_cm *cm);
void weft_cm_forsake(struct weft_cm *cm, const struct weft_stream *stream);
void weft_cm_exit(struct weft_cm *cm);

/* Within this room. */
void weft_cm_get(struct weft_cm *cm);
void weft_cm_put(struct weft_cm *cm);
struct net *weft_cm_get_net(struct weft_cm *cm);

#endif
