/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A connection of a module with itself: a listener and two ends.
 */
#ifndef WEFT_TEST_SELF_H
#define WEFT_TEST_SELF_H

#include "connect.h"

/* What the module adds: its objects once the device is known, a QP for each end. */
struct self_maker {
	int (*objects)(struct ib_device *dev);
	int (*qp)(struct rdma_cm_id *id);
	u8 depth;
};

struct self {
	const struct self_maker *maker;
	struct connecting to;
	struct rdma_cm_id *listener, *server;
};

/* An id whose request fails is the connection manager's to destroy, its QP is ours. */
static inline int self_accept(struct self *s, struct rdma_cm_id *id)
{
	int ret;

	s->server = id;
	ret = s->maker->qp(id) ?: connect_accept(id, s->maker->depth);
	if (!ret)
		return 0;
	s->server = NULL;
	if (id->qp)
		rdma_destroy_qp(id);
	return ret;
}

static inline int self_on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct self *s = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return self_accept(s, id);
	connect_told(&s->to, id, event);
	return 0;
}

static inline int self_connect(struct self *s, const struct self_maker *maker, struct sockaddr *sa)
{
	s->maker = maker;
	s->listener = connect_id(self_on_event, s);
	return connect_listen(s->listener, sa, 1) ?:
		       connect_resolve(&s->to, connect_id(self_on_event, s), sa) ?:
		       maker->objects(s->to.client->device)			 ?:
		       maker->qp(s->to.client)					 ?:
		       connect_finish(&s->to, maker->depth);
}

/* Connected or not. */
static inline void self_drop(struct self *s)
{
	connect_drop(s->to.client);
	connect_drop(s->server);
	connect_drop(s->listener);
}

#endif
