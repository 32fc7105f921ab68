// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMA connections, both ends, driven by one event loop with a window of
 * connections under way. The queue pairs are small and share one CQ.
 */
#include "idle_conns.h"
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#define WINDOW	32
#define DEPTH	4
#define MSECS	20000

static struct rdma_event_channel *channel;
static struct sockaddr_in to;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static int begun, ready;	/* clients begun; ends that are connected */

static void begin(void)
{
	struct rdma_cm_id *id;

	CHECK("rdma_create_id", !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK("rdma_resolve_addr", !rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, MSECS));
	begun++;
}

static void add_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	if (!pd) {
		pd = ibv_alloc_pd(id->verbs);
		CHECK("ibv_alloc_pd", pd);
		cq = ibv_create_cq(id->verbs, 128, NULL, NULL, 0);
		CHECK("ibv_create_cq", cq);
	}
	attr.send_cq = cq;
	attr.recv_cq = cq;
	CHECK("rdma_create_qp", !rdma_create_qp(id, pd, &attr));
}

/* What an event asks for is done before it is acknowledged, or after it was. */
static void handle(enum rdma_cm_event_type event, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 1,
					 .initiator_depth = 1,
					 .retry_count = 7,
					 .rnr_retry_count = 7 };

	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		CHECK("rdma_resolve_route", !rdma_resolve_route(id, MSECS));
		return;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		add_qp(id);
		CHECK("rdma_connect", !rdma_connect(id, &param));
		return;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		add_qp(id);
		CHECK("rdma_accept", !rdma_accept(id, &param));
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		ready++;
		return;
	default:
		fprintf(stderr, "unexpected: %s, after %d ends\n", rdma_event_str(event), ready);
		exit(1);
	}
}

void rdma_open(const char *address, int port, int count)
{
	struct rdma_cm_id *listener;

	to.sin_family = AF_INET;
	to.sin_port = htons(port);
	CHECK("address", inet_pton(AF_INET, address, &to.sin_addr) == 1);
	channel = rdma_create_event_channel();
	CHECK("rdma_create_event_channel", channel);
	CHECK("rdma_create_id", !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	CHECK("rdma_bind_addr", !rdma_bind_addr(listener, (struct sockaddr *)&to));
	CHECK("rdma_listen", !rdma_listen(listener, 1024));
	while (ready < 2 * count) {
		enum rdma_cm_event_type event;
		struct rdma_cm_event *got;
		struct rdma_cm_id *id;

		while (begun < count && begun - ready / 2 < WINDOW)
			begin();
		CHECK("rdma_get_cm_event", !rdma_get_cm_event(channel, &got));
		event = got->event;
		id = got->id;
		rdma_ack_cm_event(got);
		handle(event, id);
	}
}
