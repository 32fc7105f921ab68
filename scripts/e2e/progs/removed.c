// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A program whose device is taken away while it uses everything: a connection
 * with Writes in flight, a blocked event channel, posted receives. It must be
 * told, get errors instead of hanging, and be able to clean up.
 *
 * Usage: removed ADDRESS	prints "ready", then waits for the removal
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES 65536
#define SECONDS 20

static struct rdma_cm_id *listener, *server, *client;
static struct ibv_mr *from, *to;
static struct ibv_srq *srq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp *other;
static char buffer[2 * BYTES];

#define CHECK(what)                                                                           \
	do {                                                                                  \
		if (!(what)) {                                                                \
			printf("line %d: %s (errno %s)\n", __LINE__, #what, strerror(errno)); \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *connect_thread(void *arg)
{
	(void)arg;
	CHECK(!rdma_connect(client, NULL));
	return NULL;
}

static void connect_ends(const char *address)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr attr = { .cap = { 16, 16, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	pthread_t thread;

	hints.ai_flags = RAI_PASSIVE;
	CHECK(!rdma_getaddrinfo(address, "7556", &hints, &res));
	CHECK(!rdma_create_ep(&listener, res, NULL, &attr));
	CHECK(!rdma_listen(listener, 4));
	hints.ai_flags = 0;
	CHECK(!rdma_getaddrinfo(address, "7556", &hints, &res));
	attr.sq_sig_all = 0;
	CHECK(!rdma_create_ep(&client, res, NULL, &attr));
	CHECK(!pthread_create(&thread, NULL, connect_thread, NULL));
	CHECK(!rdma_get_request(listener, &server));
	from = ibv_reg_mr(client->pd, buffer, BYTES, IBV_ACCESS_LOCAL_WRITE);
	to = ibv_reg_mr(server->pd, buffer + BYTES, BYTES,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	srq = ibv_create_srq(server->pd, &(struct ibv_srq_init_attr){ .attr = { 16, 1, 0 } });
	CHECK(from && to && srq);
	CHECK(!rdma_post_recv(server, NULL, buffer + BYTES, 64, to));
	CHECK(!ibv_post_srq_recv(srq, &(struct ibv_recv_wr){}, &(struct ibv_recv_wr *){ NULL }));
	CHECK(!rdma_accept(server, NULL));
	pthread_join(thread, NULL);
}

/* Of the extended interfaces, where the device has them: a CQ that was read, a QP that failed. */
static void make_extended(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 8 };
	struct ibv_qp_init_attr_ex attr = {
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.pd = client->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	double end = now() + SECONDS;
	int ret;

	cq_ex = ibv_create_cq_ex(client->verbs, &init);
	if (!cq_ex && errno == EOPNOTSUPP)
		return;
	CHECK(cq_ex);
	attr.send_cq = ibv_cq_ex_to_cq(cq_ex);
	attr.recv_cq = attr.send_cq;
	other = ibv_create_qp_ex(client->verbs, &attr);
	CHECK(other && !ibv_modify_qp(other, &error, IBV_QP_STATE));
	CHECK(!ibv_post_recv(other, &(struct ibv_recv_wr){}, &(struct ibv_recv_wr *){ NULL }));
	while ((ret = ibv_start_poll(cq_ex, &(struct ibv_poll_cq_attr){})) == ENOENT)
		CHECK(now() < end && !usleep(1000));
	CHECK(!ret);
	ibv_end_poll(cq_ex);
}

static void nothing_extended_works(void)
{
	struct ibv_qp_ex *qp_ex = ibv_qp_to_qp_ex(other);

	ibv_wr_start(qp_ex);
	qp_ex->wr_flags = 0;
	ibv_wr_send(qp_ex);
	CHECK(ibv_wr_complete(qp_ex) == EIO);
	CHECK(!ibv_destroy_qp(other) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)));
}

/* Writes as fast as they complete, until one fails: then all do. */
static void *write_thread(void *arg)
{
	double end = now() + SECONDS;
	struct ibv_wc wc;
	int posted = 0, n;

	(void)arg;
	while (now() < end) {
		if (posted < 8) {
			if (rdma_post_write(client, NULL, buffer, BYTES, from, IBV_SEND_SIGNALED,
					    (uintptr_t)to->addr, to->rkey))
				return NULL;
			posted++;
			continue;
		}
		n = ibv_poll_cq(client->send_cq, 1, &wc);
		if (n < 0 || (n > 0 && wc.status != IBV_WC_SUCCESS))
			return NULL;
		posted -= n;
	}
	printf("writing never failed\n");
	exit(1);
}

/* Sleeps for a completion that does not come. */
static void *event_thread(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	CHECK(!ibv_req_notify_cq(server->recv_cq, 0));
	while (!ibv_get_cq_event(server->recv_cq_channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	printf("the blocked reader got %s\n", strerror(errno));
	return NULL;
}

static void told_fatal(void)
{
	struct pollfd fd = { .fd = client->verbs->async_fd, .events = POLLIN };
	double end = now() + SECONDS;
	struct ibv_async_event event;

	CHECK(!fcntl(fd.fd, F_SETFL, O_NONBLOCK));
	while (now() < end) {
		poll(&fd, 1, 100);
		if (ibv_get_async_event(client->verbs, &event))
			continue;
		printf("event: %s\n", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			return;
	}
	printf("the removal was not reported\n");
	exit(1);
}

static void nothing_works(void)
{
	struct ibv_recv_wr *bad = NULL, wr = {}, malformed = { .num_sge = 1000 };
	struct ibv_send_wr *bad_send = NULL, send = { .opcode = IBV_WR_SEND };
	struct ibv_port_attr port;
	struct ibv_context *verbs = client->verbs;

	CHECK(ibv_post_srq_recv(srq, &wr, &bad) == EIO && bad == &wr);
	/* One that is refused behind it hides nothing: neither will complete. */
	wr.next = &malformed;
	bad = NULL;
	CHECK(ibv_post_srq_recv(srq, &wr, &bad) == EIO && bad == &wr);
	CHECK(ibv_post_send(server->qp, &send, &bad_send) == EIO && bad_send == &send);
	CHECK(ibv_query_port(verbs, 1, &port));
	CHECK(!ibv_alloc_pd(verbs));
	CHECK(!ibv_create_cq(verbs, 16, NULL, NULL, 0));
	CHECK(!ibv_reg_mr(client->pd, buffer, 4096, 0));
}

static void clean_up(void)
{
	CHECK(!ibv_dereg_mr(from));
	CHECK(!ibv_dereg_mr(to));
	CHECK(!ibv_destroy_srq(srq));
	rdma_destroy_ep(client);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
}

int main(int argc, char **argv)
{
	pthread_t writer, reader;
	double began;

	CHECK(argc == 2);
	setbuf(stdout, NULL);
	connect_ends(argv[1]);
	make_extended();
	CHECK(!pthread_create(&writer, NULL, write_thread, NULL));
	CHECK(!pthread_create(&reader, NULL, event_thread, NULL));
	printf("ready\n");
	told_fatal();
	began = now();
	pthread_join(writer, NULL);
	pthread_join(reader, NULL);
	nothing_works();
	if (cq_ex)
		nothing_extended_works();
	clean_up();
	printf("cleaned up after %.1f s\n", now() - began);
	return 0;
}
