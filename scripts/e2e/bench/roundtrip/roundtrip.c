// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Round trips to a process of which is known what it does meanwhile: perftest's responder
 * polls for the end of the run, so that it can neither be idle nor be stopped.
 *
 * roundtrip serve ADDRESS PORT idle|spin|stop|echo
 *	accepts one connection, then sleeps, never leaves its CPU, stops itself, or sends
 *	back what it receives, for which it sleeps
 * roundtrip measure ADDRESS PORT read|write|add|swap|send poll|sleep SIZE COUNT DEPTH
 *	prints "bytes per second, min, p50, avg, p99, p99.9, max" of COUNT operations,
 *	DEPTH of them outstanding, polling or sleeping until they complete; times in
 *	microseconds. A send is complete when it has come back; it has a DEPTH of 1.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

#define REGION		(2 << 20)
#define MSECS		10000
#define MOST_DEPTH	128
#define READS		16	/* outstanding at the responder, if the device can */
#define SETTLE		50000	/* microseconds until the responder does what it is to do */

/* The responder's memory, as its private data tells. */
struct target {
	uint64_t addr;
	uint32_t key;
	uint32_t reads;
};

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct target target;
	int sleeps;	/* until something completes */
};

static struct sockaddr_in address_of(const char *address, const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	CHECK("address", inet_pton(AF_INET, address, &to.sin_addr) == 1);
	return to;
}

/* The next event of the connection manager, which has to be this one. */
static struct rdma_cm_event *expect(struct end *end, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK("rdma_get_cm_event", !rdma_get_cm_event(end->channel, &event));
	if (event->event != type) {
		fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event),
			rdma_event_str(type));
		exit(1);
	}
	return event;
}

static uint32_t reads_of(struct ibv_context *verbs)
{
	struct ibv_device_attr attr;

	CHECK("ibv_query_device", !ibv_query_device(verbs, &attr));
	return attr.max_qp_rd_atom < READS ? attr.max_qp_rd_atom : READS;
}

static void prepare(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = MOST_DEPTH,
			 .max_recv_wr = 2,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_pd *pd = ibv_alloc_pd(end->id->verbs);
	char *memory = aligned_alloc(4096, REGION);

	CHECK("ibv_alloc_pd", pd);
	CHECK("aligned_alloc", memory);
	memset(memory, 1, REGION);
	end->completions = ibv_create_comp_channel(end->id->verbs);
	CHECK("ibv_create_comp_channel", end->completions);
	end->cq = ibv_create_cq(end->id->verbs, 2 * MOST_DEPTH, NULL, end->completions, 0);
	CHECK("ibv_create_cq", end->cq);
	end->mr = ibv_reg_mr(pd, memory, REGION,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	if (!end->mr) /* siw has no atomics */
		end->mr = ibv_reg_mr(pd, memory, REGION,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					     IBV_ACCESS_REMOTE_WRITE);
	CHECK("ibv_reg_mr", end->mr);
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	CHECK("rdma_create_qp", !rdma_create_qp(end->id, pd, &attr));
}

/* --- what both do --------------------------------------------------------- */

static void post(struct end *end, enum ibv_wr_opcode opcode, uint32_t size)
{
	struct ibv_sge sge = { (uintptr_t)end->mr->addr, size, end->mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE) {
		wr.wr.rdma.remote_addr = end->target.addr;
		wr.wr.rdma.rkey = end->target.key;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.atomic.remote_addr = end->target.addr;
		wr.wr.atomic.rkey = end->target.key;
		wr.wr.atomic.compare_add = 1;
	}
	CHECK("ibv_post_send", !ibv_post_send(end->id->qp, &wr, &bad));
}

static void post_receive(struct end *end)
{
	struct ibv_sge sge = { (uintptr_t)end->mr->addr, REGION, end->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	CHECK("ibv_post_recv", !ibv_post_recv(end->id->qp, &wr, &bad));
}

static void sleep_until_event(struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	CHECK("ibv_get_cq_event", !ibv_get_cq_event(end->completions, &cq, &context));
	ibv_ack_cq_events(cq, 1);
}

/* The next completion; 0 when it says that the connection is gone. */
static int await_one(struct end *end, struct ibv_wc *wc)
{
	int found;

	for (;;) {
		found = ibv_poll_cq(end->cq, 1, wc);
		if (!found && end->sleeps) {
			CHECK("ibv_req_notify_cq", !ibv_req_notify_cq(end->cq, 0));
			found = ibv_poll_cq(end->cq, 1, wc);
			if (!found)
				sleep_until_event(end);
		}
		CHECK("ibv_poll_cq", found >= 0);
		if (found)
			break;
	}
	return wc->status != IBV_WC_WR_FLUSH_ERR;
}

static void await_success(struct end *end, struct ibv_wc *wc)
{
	await_one(end, wc);
	if (wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "completed with: %s\n", ibv_wc_status_str(wc->status));
		exit(1);
	}
}

/* --- the responder -------------------------------------------------------- */

static void accept_one(struct end *end, struct sockaddr_in *at)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;
	struct target target;

	CHECK("rdma_create_id", !rdma_create_id(end->channel, &listener, NULL, RDMA_PS_TCP));
	CHECK("rdma_bind_addr", !rdma_bind_addr(listener, (struct sockaddr *)at));
	CHECK("rdma_listen", !rdma_listen(listener, 1));
	event = expect(end, RDMA_CM_EVENT_CONNECT_REQUEST);
	end->id = event->id;
	rdma_ack_cm_event(event);
	prepare(end);
	target.addr = (uintptr_t)end->mr->addr;
	target.key = end->mr->rkey;
	target.reads = reads_of(end->id->verbs);
	param.responder_resources = target.reads;
	param.initiator_depth = target.reads;
	param.private_data = &target;
	param.private_data_len = sizeof(target);
	post_receive(end);
	CHECK("rdma_accept", !rdma_accept(end->id, &param));
	rdma_ack_cm_event(expect(end, RDMA_CM_EVENT_ESTABLISHED));
}

/* What comes goes back, until the connection ends. */
static void echo(struct end *end)
{
	struct ibv_wc wc;

	end->sleeps = 1;
	while (await_one(end, &wc) && wc.status == IBV_WC_SUCCESS) {
		if (wc.opcode != IBV_WC_RECV)
			continue;
		post_receive(end);
		post(end, IBV_WR_SEND, wc.byte_len);
	}
}

static int serve(char **words)
{
	struct sockaddr_in at = address_of(words[0], words[1]);
	struct end end = { .channel = rdma_create_event_channel() };

	CHECK("rdma_create_event_channel", end.channel);
	accept_one(&end, &at);
	if (!strcmp(words[2], "spin"))
		for (;;)
			;
	if (!strcmp(words[2], "stop"))
		raise(SIGSTOP);
	if (!strcmp(words[2], "echo"))
		echo(&end);
	rdma_ack_cm_event(expect(&end, RDMA_CM_EVENT_DISCONNECTED));
	return 0;
}

/* --- the requester -------------------------------------------------------- */

static void connect_to(struct end *end, struct sockaddr_in *to)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_event *event;

	CHECK("rdma_create_id", !rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP));
	CHECK("rdma_resolve_addr", !rdma_resolve_addr(end->id, NULL, (struct sockaddr *)to, MSECS));
	rdma_ack_cm_event(expect(end, RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK("rdma_resolve_route", !rdma_resolve_route(end->id, MSECS));
	rdma_ack_cm_event(expect(end, RDMA_CM_EVENT_ROUTE_RESOLVED));
	prepare(end);
	param.initiator_depth = reads_of(end->id->verbs);
	param.responder_resources = param.initiator_depth;
	CHECK("rdma_connect", !rdma_connect(end->id, &param));
	event = expect(end, RDMA_CM_EVENT_ESTABLISHED);
	post_receive(end);
	CHECK("private data", event->param.conn.private_data_len >= sizeof(end->target));
	memcpy(&end->target, event->param.conn.private_data, sizeof(end->target));
	rdma_ack_cm_event(event);
}

static const struct verb {
	const char *name;
	enum ibv_wr_opcode opcode;
} verbs[] = {
	{ "read", IBV_WR_RDMA_READ },
	{ "write", IBV_WR_RDMA_WRITE },
	{ "add", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "swap", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "send", IBV_WR_SEND },
};

static enum ibv_wr_opcode opcode_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, name))
			return verbs[i].opcode;
	fprintf(stderr, "no operation is called %s\n", name);
	exit(2);
}

/* Microseconds; a system call in User-Mode Linux, so not for each operation. */
static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1e6 + at.tv_nsec / 1e3;
}

static double ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* took is in ticks, of which there are so many in a microsecond. */
static void print(double *took, long count, double scale, double bytes_per_second)
{
	double sum = 0;
	long i;

	qsort(took, count, sizeof(*took), by_size);
	for (i = 0; i < count; i++)
		sum += took[i] /= scale;
	printf("%.0f %.2f %.2f %.2f %.2f %.2f %.2f\n", bytes_per_second, took[0], took[count / 2],
	       sum / count, took[(long)(count * 0.99)], took[(long)(count * 0.999)],
	       took[count - 1]);
}

/* Its completion; of a send, that of the receive of what came back. */
static void await_operation(struct end *end, enum ibv_wr_opcode opcode)
{
	struct ibv_wc wc;

	do {
		await_success(end, &wc);
	} while (opcode == IBV_WR_SEND && wc.opcode != IBV_WC_RECV);
	if (opcode == IBV_WR_SEND)
		post_receive(end);
}

static int measure(char **words)
{
	struct sockaddr_in to = address_of(words[0], words[1]);
	struct end end = { .channel = rdma_create_event_channel() };
	enum ibv_wr_opcode opcode = opcode_of(words[2]);
	long size = atol(words[4]), count = atol(words[5]), depth = atol(words[6]), i;
	double *began, *took, start, start_ticks, used;

	CHECK("rdma_create_event_channel", end.channel);
	CHECK("size", size > 0 && size <= REGION && count > 0 && depth > 0);
	CHECK("depth", depth <= (opcode == IBV_WR_SEND ? 1 : MOST_DEPTH));
	end.sleeps = !strcmp(words[3], "sleep");
	began = calloc(count, sizeof(*began));
	took = calloc(count, sizeof(*took));
	CHECK("calloc", began && took);
	connect_to(&end, &to);
	usleep(SETTLE);
	start = now();
	start_ticks = ticks();
	for (i = 0; i < count + depth; i++) {
		/* completions come in the order of the requests */
		if (i >= depth && i - depth < count) {
			await_operation(&end, opcode);
			took[i - depth] = ticks() - began[i - depth];
		}
		if (i < count) {
			began[i] = ticks();
			post(&end, opcode, size);
		}
	}
	used = now() - start;
	print(took, count, (ticks() - start_ticks) / used, count * size / (used / 1e6));
	rdma_disconnect(end.id);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "serve"))
		return serve(argv + 2);
	if (argc == 9 && !strcmp(argv[1], "measure"))
		return measure(argv + 2);
	fprintf(stderr, "usage: roundtrip serve|measure, see the source\n");
	return 2;
}
