// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Work requests and objects, good and bad, over connections to ourselves: what
 * each completes with, on both sides, and what became of the memory.
 *
 * Usage: [VERBS_PORT=PORT] verbs ADDRESS CASE	status 0: as expected; 77: nothing to test
 *        verbs --list				groups, cases, attributes
 */
#define _GNU_SOURCE
#include "verbs.h"

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct end s, c;
static struct rdma_cm_id *listener;
const char *address;
unsigned int read_depth = 4;
void (*before_connecting)(struct end *e);

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void prepare(struct end *e)
{
	e->buf = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(e->buf != MAP_FAILED);
	e->open = ibv_reg_mr(e->id->pd, e->buf, BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ);
	e->own = ibv_reg_mr(e->id->pd, e->buf + BYTES, BYTES, IBV_ACCESS_LOCAL_WRITE);
	CHECK(e->open && e->own);
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){ .cap = { WRS, WRS, 4, 4, 64 }, .qp_type = IBV_QPT_RC };
}

static struct rdma_addrinfo *resolve(int flags)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = flags }, *res;

	CHECK(!rdma_getaddrinfo(address, getenv("VERBS_PORT") ?: "7555", &hints, &res));
	return res;
}

struct rdma_cm_id *the_listener(void)
{
	return listener;
}

void make_qp(struct end *e)
{
	struct ibv_qp_init_attr attr = qp_attr();

	CHECK(!rdma_create_qp(e->id, NULL, &attr));
}

void connect_end(struct end *e)
{
	struct rdma_conn_param param = { .initiator_depth = read_depth,
					 .responder_resources = read_depth };
	struct ibv_qp_init_attr attr = qp_attr();

	CHECK(!rdma_create_ep(&e->id, resolve(0), NULL, &attr));
	prepare(e);
	if (before_connecting)
		before_connecting(e);
	CHECK(!rdma_connect(e->id, &param));
}

void accept_end(struct end *e, void (*make)(struct end *))
{
	struct rdma_conn_param param = { .initiator_depth = read_depth,
					 .responder_resources = read_depth };

	CHECK(!rdma_get_request(listener, &e->id));
	(make ?: make_qp)(e);
	prepare(e);
	CHECK(!rdma_accept(e->id, &param));
}

static void *connect_thread(void *arg)
{
	connect_end(arg);
	return NULL;
}

void connect_pair(struct end *client, struct end *server, void (*make_server_qp)(struct end *))
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, connect_thread, client));
	accept_end(server, make_server_qp);
	pthread_join(thread, NULL);
}

void release(struct end *e)
{
	CHECK(!ibv_dereg_mr(e->open) && !ibv_dereg_mr(e->own));
	rdma_destroy_ep(e->id);
	munmap(e->buf, 2 * BYTES);
}

/* The QP with its queues goes over to a new id; the old one has no connection any more. */
static void take_qp_to(struct end *e, struct rdma_cm_id *id)
{
	struct rdma_cm_id *old = e->id;

	id->qp = old->qp;
	id->send_cq = old->send_cq;
	id->send_cq_channel = old->send_cq_channel;
	id->recv_cq = old->recv_cq;
	id->recv_cq_channel = old->recv_cq_channel;
	old->qp = NULL;
	old->send_cq = NULL;
	old->send_cq_channel = NULL;
	old->recv_cq = NULL;
	old->recv_cq_channel = NULL;
	rdma_destroy_ep(old);
	e->id = id;
}

static void *reconnect_thread(void *arg)
{
	struct rdma_conn_param param = { .initiator_depth = read_depth,
					 .responder_resources = read_depth };
	struct end *e = arg;
	struct rdma_cm_id *id;

	CHECK(!rdma_create_ep(&id, resolve(0), NULL, NULL));
	take_qp_to(e, id);
	CHECK(!rdma_connect(e->id, &param));
	return NULL;
}

void reconnect_pair(struct end *client, struct end *server)
{
	struct rdma_conn_param param = { .initiator_depth = read_depth,
					 .responder_resources = read_depth };
	struct rdma_cm_id *id;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, reconnect_thread, client));
	CHECK(!rdma_get_request(listener, &id));
	take_qp_to(server, id);
	CHECK(!rdma_accept(server->id, &param));
	pthread_join(thread, NULL);
}

static unsigned long number_in(const char *folder, const char *name)
{
	unsigned long value;
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s/%s",
		 ibv_get_device_name(c.id->verbs->device), folder, name);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%lu", &value) == 1);
	fclose(f);
	return value;
}

/* The core refreshes its counters with a delay. */
unsigned long counted(const char *name)
{
	usleep(50000);
	return number_in("ports/1/hw_counters", name);
}

unsigned long attribute(const char *name)
{
	return number_in("params", name);
}

enum ibv_wc_status status_of_refused(enum ibv_wc_status reason)
{
	return attribute("loopback") ? reason : IBV_WC_SUCCESS;
}

/* The next completion of a CQ, with a deadline. */
struct ibv_wc next(struct ibv_cq *cq)
{
	double end = now() + SECONDS;
	struct ibv_wc wc;
	int n;

	while (now() < end) {
		n = ibv_poll_cq(cq, 1, &wc);
		CHECK(n >= 0);
		if (n == 1) {
			printf("wr %lu: %s\n", (unsigned long)wc.wr_id,
			       ibv_wc_status_str(wc.status));
			return wc;
		}
		usleep(100);
	}
	printf("no completion within %d s\n", SECONDS);
	exit(1);
}

struct ibv_wc polled(struct ibv_cq *cq)
{
	double end = now() + SECONDS;
	unsigned int polls = 0;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		CHECK(++polls % 4096 || now() < end);
	CHECK(n == 1);
	return wc;
}

void good(struct ibv_cq *cq, int count)
{
	while (count--)
		CHECK(polled(cq).status == IBV_WC_SUCCESS);
}

struct ibv_wc expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next(cq);

	if (wc.wr_id != wr_id || wc.status != status) {
		printf("expected wr %lu: %s\n", (unsigned long)wr_id, ibv_wc_status_str(status));
		exit(1);
	}
	return wc;
}

void nothing(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	usleep(100000);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
}

int event_within(struct ibv_comp_channel *channel, int milliseconds)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, milliseconds) != 1)
		return 0;
	CHECK(!ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return 1;
}

struct ibv_sge sge(struct ibv_mr *mr, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)mr->addr + offset, length, mr->lkey };
}

/* post_send with one element; answers as ibv_post_send() does. */
int post(struct end *e, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge sg, uint64_t to,
	 uint32_t rkey, int flags)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .opcode = op, .sg_list = &sg, .num_sge = 1, .send_flags = flags
	};

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(e->id->qp, &wr, &bad);
}

int post_atomic(struct end *e, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge sg, uint64_t to,
		uint32_t rkey, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *bad, wr = { .wr_id = id, .opcode = op, .sg_list = &sg, .num_sge = 1 };

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.atomic.remote_addr = to;
	wr.wr.atomic.rkey = rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return ibv_post_send(e->id->qp, &wr, &bad);
}

int send_sge(struct end *e, uint64_t id, struct ibv_sge sg, int flags)
{
	return post(e, id, IBV_WR_SEND, sg, 0, 0, flags | IBV_SEND_SIGNALED);
}

int recv_sge(struct end *e, uint64_t id, struct ibv_sge sg)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 };

	return ibv_post_recv(e->id->qp, &wr, &bad);
}

void post_empty_recv(struct end *e)
{
	struct ibv_recv_wr *bad, wr = {};

	CHECK(!ibv_post_recv(e->id->qp, &wr, &bad));
}

void send_empty(struct end *e)
{
	CHECK(!send_sge(e, 0, sge(e->own, 0, 0), 0));
	good(e->id->send_cq, 1);
}

void make_receiving(struct end *e)
{
	make_qp(e);
	post_empty_recv(e);
	post_empty_recv(e);
}

/* The stream has failed: what is posted now, or was, is flushed. */
void flushes(struct end *e)
{
	struct ibv_wc wc;
	int ret, tries = 0;

	do {
		ret = send_sge(e, 900 + tries, sge(e->own, 0, 8), 0);
		CHECK(!ret);
		wc = next(e->id->send_cq);
	} while (wc.status == IBV_WC_SUCCESS && ++tries < 50 && !usleep(100000));
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!recv_sge(e, 950, sge(e->own, 0, 8)));
	do {
		wc = next(e->id->recv_cq);
		CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	} while (wc.wr_id != 950);
}

uint32_t word_of(uint32_t i, uint32_t seed)
{
	return (i + 1) * 2654435761U ^ seed;
}

void fill(struct end *e, int seed)
{
	for (int i = 0; i < 2 * BYTES; i++)
		e->buf[i] = seed + i * 7 + i / 251;
}

static void message(struct end *from, struct end *to, uint64_t id)
{
	fill(from, id);
	CHECK(!recv_sge(to, id, sge(to->own, 0, 3000)));
	CHECK(!send_sge(from, id, sge(from->open, 1, 3000), 0));
	expect(from->id->send_cq, id, IBV_WC_SUCCESS);
	CHECK(expect(to->id->recv_cq, id, IBV_WC_SUCCESS).byte_len == 3000);
	CHECK(!memcmp(to->own->addr, from->buf + 1, 3000));
}

void works(struct end *client, struct end *server)
{
	message(client, server, 7001);
	message(server, client, 7002);
}

extern const struct test_case *const __start_test_cases[], *const __stop_test_cases[];

static const struct test_case *find(const char *name)
{
	const struct test_case *const *t;

	for (t = __start_test_cases; t < __stop_test_cases; t++) {
		if (!strcmp((*t)->name, name))
			return *t;
	}
	return NULL;
}

/* Fields have a tab between them. */
static int list(void)
{
	const struct test_case *const *t;

	for (t = __start_test_cases; t < __stop_test_cases; t++) {
		if ((*t)->group)
			printf("%s\t%s\t%s\n", (*t)->group, (*t)->name, (*t)->attributes);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct test_case *t = argc == 3 ? find(argv[2]) : NULL;

	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list();
	if (!t) {
		fprintf(stderr, "usage: verbs ADDRESS CASE | verbs --list\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	address = argv[1];
	CHECK(!rdma_create_ep(&listener, resolve(RAI_PASSIVE), NULL, NULL));
	CHECK(!rdma_listen(listener, 4));
	connect_pair(&c, &s, NULL);
	t->run();
	release(&c);
	release(&s);
	rdma_destroy_ep(listener);
	return 0;
}
