/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A module that connects with itself: what the connection manager wants, one
 * step after the other.
 */
#ifndef WEFT_TEST_CONNECT_H
#define WEFT_TEST_CONNECT_H

#include <linux/completion.h>
#include <linux/err.h>
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/* Longer than anything takes that goes well. */
#define WAIT	(20 * HZ)

/* The end that is being connected, and what the last step came to. */
struct connecting {
	struct rdma_cm_id *client;
	struct completion event;
	int status;
};

static inline int connect_address(struct sockaddr_in *sa, const char *address, u16 port)
{
	*sa = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	return in4_pton(address, -1, (u8 *)&sa->sin_addr, -1, NULL) ? 0 : -EINVAL;
}

static inline struct rdma_cm_id *connect_id(rdma_cm_event_handler handler, void *context)
{
	return rdma_create_id(&init_net, handler, context, RDMA_PS_TCP, IB_QPT_RC);
}

static inline int connect_listen(struct rdma_cm_id *id, struct sockaddr *sa, int backlog)
{
	return PTR_ERR_OR_ZERO(id) ?: rdma_bind_addr(id, sa) ?: rdma_listen(id, backlog);
}

static inline struct rdma_conn_param connect_depths(u8 depth)
{
	return (struct rdma_conn_param){
		.responder_resources = depth,
		.initiator_depth = depth,
	};
}

static inline int connect_accept(struct rdma_cm_id *id, u8 depth)
{
	struct rdma_conn_param param = connect_depths(depth);

	return rdma_accept(id, &param);
}

/* For the handler: an event that is none of the passive end's. */
static inline void connect_told(struct connecting *c, const struct rdma_cm_id *id,
				const struct rdma_cm_event *event)
{
	if (id != c->client || event->event == RDMA_CM_EVENT_DISCONNECTED ||
	    event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return;
	c->status = event->status;
	complete(&c->event);
}

/* connect_waited - wait for the event of a step that has begun, if @ret says so */
static inline int connect_waited(struct connecting *c, int ret)
{
	if (!ret && !wait_for_completion_timeout(&c->event, WAIT))
		ret = -ETIMEDOUT;
	return ret ?: c->status;
}

/* First the device is found; then the caller makes a QP, and connects. @from may be NULL. */
static inline int connect_resolve_from(struct connecting *c, struct rdma_cm_id *id,
				       struct sockaddr *from, struct sockaddr *to)
{
	if (IS_ERR(id))
		return PTR_ERR(id);
	c->client = id;
	init_completion(&c->event);
	return connect_waited(c, rdma_resolve_addr(id, from, to, 2000)) ?:
		       connect_waited(c, rdma_resolve_route(id, 2000));
}

static inline int connect_resolve(struct connecting *c, struct rdma_cm_id *id, struct sockaddr *sa)
{
	return connect_resolve_from(c, id, NULL, sa);
}

static inline int connect_finish(struct connecting *c, u8 depth)
{
	struct rdma_conn_param param = connect_depths(depth);

	return connect_waited(c, rdma_connect(c->client, &param));
}

/* An end, connected or not, or a listener; when it returns, its completions are through. */
static inline void connect_drop(struct rdma_cm_id *id)
{
	if (IS_ERR_OR_NULL(id))
		return;
	if (id->qp) {
		rdma_disconnect(id);
		ib_drain_qp(id->qp);
		rdma_destroy_qp(id);
	}
	rdma_destroy_id(id);
}

#endif
