// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections that are accepted, rejected, ended by either side, given up, or killed. */
#define _GNU_SOURCE
#include "races.h"

/* CQs of its own: those of home are polled by others. */
static bool with_queues(struct pair *p)
{
	p->pd = home.pd;
	p->send_cq = ibv_create_cq(home.context, DEPTH * 4, NULL, NULL, 0);
	TRY(p->send_cq);
	p->recv_cq = p->send_cq;
	return true;
}

static bool one_message(struct pair *p)
{
	TRY0(pair_recv(p, SERVER, 1, 0, 1000));
	TRY0(pair_send(p, CLIENT, 2, IBV_WR_SEND, 0, 1000, IBV_SEND_SIGNALED));
	return completed(p->send_cq, 2);
}

/* Whichever side ends it, both get an event. */
static bool disconnect(struct pair *p, enum side side)
{
	TRY(!rdma_disconnect(p->id[side]));
	return pair_event(p, RDMA_CM_EVENT_DISCONNECTED, NULL) &&
	       pair_event(p, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static bool fail_qp(struct pair *p, enum side side)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	for (int i = 0; i < DEPTH / 2; i++)
		TRY0(pair_send(p, side, i, IBV_WR_RDMA_WRITE, 0, 70000, 0));
	TRY0(ibv_modify_qp(p->id[side]->qp, &attr, IBV_QP_STATE));
	return true;
}

/* The rest of the life of a connection that was accepted; destroying it is one of them. */
static bool live(struct pair *p, unsigned int nth)
{
	if (!one_message(p))
		return false;
	switch (nth % 5) {
	case 0:
		return disconnect(p, CLIENT);
	case 1:
		return disconnect(p, SERVER);
	case 2:
		return fail_qp(p, nth / 5 % SIDES);
	}
	return true;
}

static bool connections(unsigned int nth)
{
	static const enum outcome outcomes[] = { ACCEPTED, ACCEPTED, REJECTED, ABANDONED };
	enum outcome outcome = outcomes[draw() % 4];
	struct pair p = {};

	if (!with_queues(&p) || !pair_join(&p, outcome))
		return false;
	if (outcome == ACCEPTED && !live(&p, nth))
		return false;
	if (!pair_part(&p))
		return false;
	TRY0(ibv_destroy_cq(p.send_cq));
	return true;
}

/* A process that connects and sends, and is killed sooner or later. */
static bool kills(unsigned int nth)
{
	return live_often(nth % 2 ? "traffic" : "connections", "-x",
			  0.02 + (draw() % 100 + nth % 4 * 50) * 0.001);
}

const struct activity connection_activities[] = {
	{ .name = "connections", .round = connections },
	{ .name = "kills", .round = kills },
	{},
};
