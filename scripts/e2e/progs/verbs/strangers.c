// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A process that connects a QP by its number, which need not be one of its own. */
#define _GNU_SOURCE
#include "verbs.h"

#include <pthread.h>
#include <unistd.h>

#define PORT 7557
#define UNPRIVILEGED 65534

static struct rdma_cm_id *resolved(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct rdma_cm_id *id;

	CHECK(!rdma_getaddrinfo(address, getenv("VERBS_PORT") ?: "7555", &hints, &res));
	CHECK(!rdma_create_ep(&id, res, NULL, NULL));
	return id;
}

/* Run by others, as a process of its own; VERBS_QPN is the number. */
UNLISTED(connects_the_qp_of_another)
{
	struct rdma_conn_param param = { .qp_num = atoi(getenv("VERBS_QPN")) };
	struct rdma_cm_id *id;

	CHECK(param.qp_num);
	CHECK(!setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) &&
	      !setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED));
	id = resolved();
	errno = 0;
	CHECK(rdma_connect(id, &param) && (errno == EINVAL || errno == EPERM));
	rdma_destroy_ep(id);
}

static void *accept_it(void *arg)
{
	accept_end(arg, NULL);
	return NULL;
}

/* The same by a process of the same user, which could do anything to the other one. */
UNLISTED(connects_the_qp_of_a_friend)
{
	struct rdma_conn_param param = { .qp_num = atoi(getenv("VERBS_QPN")) };
	struct rdma_cm_id *id = resolved();
	pthread_t thread;
	struct end other;

	CHECK(param.qp_num && !pthread_create(&thread, NULL, accept_it, &other));
	CHECK(!rdma_connect(id, &param));
	pthread_join(thread, NULL);
	rdma_destroy_ep(id);
	release(&other);
}

/* A process that is started later is told its number. */
static struct ibv_qp *offered_qp(void)
{
	struct ibv_qp_init_attr init = { .cap = { WRS, WRS, 4, 4, 64 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = s.id->send_cq,
					 .recv_cq = s.id->recv_cq };
	struct ibv_qp *qp = ibv_create_qp(s.id->pd, &init);
	char number[16];

	CHECK(qp);
	snprintf(number, sizeof(number), "%u", qp->qp_num);
	setenv("VERBS_QPN", number, 1);
	return qp;
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* A peer that another user chose must not write to its memory, nor take its receives. */
CASE("objects", other_users_cannot_connect_my_qp)
{
	struct ibv_qp *qp = offered_qp();

	ends_well(start_case("connects_the_qp_of_another", PORT));
	CHECK(state_of(qp) == IBV_QPS_INIT);
	CHECK(!ibv_destroy_qp(qp));
	works(&c, &s);
}

CASE("objects", another_process_of_mine_connects_my_qp)
{
	struct ibv_qp *qp = offered_qp();
	double end = now() + SECONDS;

	ends_well(start_case("connects_the_qp_of_a_friend", PORT));
	while (state_of(qp) != IBV_QPS_ERR) /* the connection has gone with that process */
		CHECK(now() < end && !usleep(1000));
	CHECK(!ibv_destroy_qp(qp));
	works(&c, &s);
}
