// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Looking at connections and listeners from outside. Consumers are known by the
 * context they gave iw_cm, which for rdma_cm is its id; it is only compared.
 */
#include "cm/inspect.h"

#include <linux/jiffies.h>

#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/iwcm.h"
#include "cm/listen.h"

/**
 * weft_cm_inspect_conn - the connection of a consumer's id
 * @cm: of the device
 * @context: the consumer's
 * @out: written if there is one
 *
 * Context: process. Return: false if it has none.
 */
bool weft_cm_inspect_conn(struct weft_cm *cm, const void *context, struct weft_conn_details *out)
{
	struct weft_conn *conn = weft_iwcm_find(cm, context);
	unsigned long deadline;
	bool found;

	if (!conn)
		return false;
	mutex_lock(&conn->lock);
	found = conn->id && weft_iwcm_is_of(conn->id, context);
	if (found) {
		*out = (struct weft_conn_details){
			.handle = conn->handle,
			.state = conn->state,
			.initiator = conn->initiator,
			.settled = conn->state == WEFT_CONN_RUNNING ||
				   conn->state == WEFT_CONN_AWAIT_RTR ||
				   conn->state == WEFT_CONN_CLOSING,
			.mpa = conn->result,
		};
		deadline = READ_ONCE(conn->deadline);
		if (READ_ONCE(conn->timing) && time_before(jiffies, deadline))
			out->deadline_ms = jiffies_to_msecs(deadline - jiffies);
	}
	mutex_unlock(&conn->lock);
	weft_conn_put(conn);
	return found;
}

/**
 * weft_cm_inspect_listener - the listener of a consumer's id
 * @cm: of the device
 * @context: the consumer's
 * @out: written if there is one
 *
 * Context: process. Return: false if it has none.
 */
bool weft_cm_inspect_listener(struct weft_cm *cm, const void *context,
			      struct weft_listener_details *out)
{
	struct weft_backlog *b;
	struct weft_listener *l;
	bool found = false;

	mutex_lock(&cm->listeners_lock);
	list_for_each_entry(l, &cm->listeners, all) {
		found = weft_iwcm_is_of(l->id, context);
		if (!found)
			continue;
		b = &l->backlog;
		mutex_lock(&b->lock);
		*out = (struct weft_listener_details){
			.backlog = b->size,
			.waiting = b->num[WEFT_BACKLOG_WAITING] + b->num[WEFT_BACKLOG_DROPPED],
			.queued = b->num[WEFT_BACKLOG_QUEUED],
			.undecided = b->num[WEFT_BACKLOG_OFFERED],
		};
		mutex_unlock(&b->lock);
		break;
	}
	mutex_unlock(&cm->listeners_lock);
	return found;
}
