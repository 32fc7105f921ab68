/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Looking at connections and listeners from outside: resource tracking.
 */
#ifndef WEFT_CM_INSPECT_H
#define WEFT_CM_INSPECT_H

#include <linux/types.h>

#include "proto/conn_fsm.h"
#include "proto/mpa_start.h"

struct weft_cm;

/**
 * struct weft_conn_details - a connection
 * @handle: its number in traces
 * @initiator: this side connects
 * @deadline_ms: what is left of the time for the present step, 0: no clock runs
 * @settled: both sides have agreed on @mpa
 */
struct weft_conn_details {
	u32 handle;
	enum weft_conn_state state;
	bool initiator;
	u32 deadline_ms;
	bool settled;
	struct weft_mpa_result mpa;
};

/**
 * struct weft_listener_details - a listener
 * @backlog: requests that the consumer is told of before it has answered one
 * @waiting: connections whose request is not complete
 * @queued: those whose request is, and the consumer is not told
 * @undecided: those the consumer was told of and has not answered
 */
struct weft_listener_details {
	u32 backlog;
	u32 waiting;
	u32 queued;
	u32 undecided;
};

/* @context: whose; what iw_cm hands back to the consumer. False: there is none. */
bool weft_cm_inspect_conn(struct weft_cm *cm, const void *context, struct weft_conn_details *out);
bool weft_cm_inspect_listener(struct weft_cm *cm, const void *context,
			      struct weft_listener_details *out);

#endif
