// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Work requests, good and bad, over a connection to ourselves: what each
 * completes with, on both sides.
 *
 * Usage: verbs ADDRESS CASE	status 0: as expected; 77: nothing to test
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BYTES 65536
#define WRS 16
#define SECONDS 20

/* One end: its id, a region that the peer may read and write, and a private one. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *open;
	struct ibv_mr *own;
	unsigned char *buf;
};

static struct rdma_cm_id *listener;
static struct end s, c;

#define CHECK(what)                                                               \
	do {                                                                      \
		if (!(what)) {                                                    \
			printf("line %d: %s (errno %s)\n", __LINE__, #what, strerror(errno)); \
			exit(1);                                                  \
		}                                                                 \
	} while (0)

static double now(void)
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

static void *connect_thread(void *arg)
{
	struct rdma_conn_param param = { .initiator_depth = 4, .responder_resources = 4 };

	(void)arg;
	CHECK(!rdma_connect(c.id, &param));
	return NULL;
}

static void connect_ends(const char *address)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr attr = { .cap = { WRS, WRS, 4, 4, 64 }, .qp_type = IBV_QPT_RC };
	struct rdma_conn_param param = { .initiator_depth = 4, .responder_resources = 4 };
	pthread_t thread;

	hints.ai_flags = RAI_PASSIVE;
	CHECK(!rdma_getaddrinfo(address, "7555", &hints, &res));
	attr.sq_sig_all = 0;
	CHECK(!rdma_create_ep(&listener, res, NULL, &attr));
	CHECK(!rdma_listen(listener, 4));
	hints.ai_flags = 0;
	CHECK(!rdma_getaddrinfo(address, "7555", &hints, &res));
	attr.sq_sig_all = 0;
	CHECK(!rdma_create_ep(&c.id, res, NULL, &attr));
	prepare(&c);
	pthread_create(&thread, NULL, connect_thread, NULL);
	CHECK(!rdma_get_request(listener, &s.id));
	prepare(&s);
	CHECK(!rdma_accept(s.id, &param));
	pthread_join(thread, NULL);
}

/* The next completion of a CQ, with a deadline. */
static struct ibv_wc next(struct ibv_cq *cq)
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

static void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next(cq);

	if (wc.wr_id != wr_id || wc.status != status) {
		printf("expected wr %lu: %s\n", (unsigned long)wr_id, ibv_wc_status_str(status));
		exit(1);
	}
}

static struct ibv_sge sge(struct ibv_mr *mr, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)mr->addr + offset, length, mr->lkey };
}

/* post_send with one element; answers as ibv_post_send() does. */
static int post(struct end *e, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge sg, uint64_t to,
		uint32_t rkey, int flags)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .opcode = op, .sg_list = &sg, .num_sge = 1, .send_flags = flags
	};

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(e->id->qp, &wr, &bad);
}

static int send_sge(struct end *e, uint64_t id, struct ibv_sge sg, int flags)
{
	return post(e, id, IBV_WR_SEND, sg, 0, 0, flags | IBV_SEND_SIGNALED);
}

static int recv_sge(struct end *e, uint64_t id, struct ibv_sge sg)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 };

	return ibv_post_recv(e->id->qp, &wr, &bad);
}

/* The stream has failed: what is posted now, or was, is flushed. */
static void flushes(struct end *e)
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

/* --- good requests --------------------------------------------------------- */

static void fill(struct end *e, int seed)
{
	for (int i = 0; i < 2 * BYTES; i++)
		e->buf[i] = seed + i * 7 + i / 251;
}

static void inline_data(void)
{
	fill(&c, 1);
	fill(&s, 2);
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 96)));
	struct ibv_sge sg = { (uintptr_t)c.buf + BYTES, 64, 0xdead };

	CHECK(!post(&c, 2, IBV_WR_SEND, sg, 0, 0, IBV_SEND_INLINE | IBV_SEND_SIGNALED));
	memset(c.buf + BYTES, 0, 64);
	expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	fill(&c, 1);
	CHECK(!memcmp(s.buf + BYTES, c.buf + BYTES, 64));
}

static void inline_capability(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 96 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = c.id->send_cq,
					 .recv_cq = c.id->recv_cq };
	struct ibv_qp *qp = ibv_create_qp(c.id->pd, &attr);

	CHECK(qp && attr.cap.max_inline_data >= 96);
	CHECK(!ibv_destroy_qp(qp));
}

static void several_elements(void)
{
	struct ibv_sge out[3] = { sge(c.own, 0, 100), sge(c.open, 5, 3000), sge(c.own, 200, 7) };
	struct ibv_sge in[4] = { sge(s.own, 0, 1), sge(s.own, 4096, 1500), sge(s.open, 9, 1600),
				 sge(s.own, 9000, 100) };
	struct ibv_recv_wr *bad_r, rwr = { .wr_id = 1, .sg_list = in, .num_sge = 4 };
	struct ibv_send_wr *bad_s, swr = { .wr_id = 2,
					   .opcode = IBV_WR_SEND,
					   .sg_list = out,
					   .num_sge = 3,
					   .send_flags = IBV_SEND_SIGNALED };
	unsigned char sent[3107], got[3107];
	struct ibv_wc wc;

	fill(&c, 3);
	fill(&s, 4);
	CHECK(!ibv_post_recv(s.id->qp, &rwr, &bad_r));
	CHECK(!ibv_post_send(c.id->qp, &swr, &bad_s));
	expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
	wc = next(s.id->recv_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(sent));
	memcpy(sent, c.buf + BYTES, 100);
	memcpy(sent + 100, c.buf + 5, 3000);
	memcpy(sent + 3100, c.buf + BYTES + 200, 7);
	memcpy(got, s.buf + BYTES, 1);
	memcpy(got + 1, s.buf + BYTES + 4096, 1500);
	memcpy(got + 1501, s.buf + 9, 1600);
	memcpy(got + 3101, s.buf + BYTES + 9000, 6);
	CHECK(!memcmp(sent, got, sizeof(sent)));
}

static void zero_length(void)
{
	struct ibv_wc wc;

	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 0)));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 0), 0));
	CHECK(!post(&c, 3, IBV_WR_RDMA_WRITE, sge(c.own, 0, 0), (uintptr_t)s.buf, s.open->rkey,
		    IBV_SEND_SIGNALED));
	CHECK(!post(&c, 4, IBV_WR_RDMA_READ, sge(c.own, 0, 0), (uintptr_t)s.buf, s.open->rkey,
		    IBV_SEND_SIGNALED));
	for (int id = 2; id <= 4; id++)
		expect(c.id->send_cq, id, IBV_WC_SUCCESS);
	wc = next(s.id->recv_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 0);
}

/* Many Writes without completions, a Send behind them that tells they are there. */
static void unsignalled(void)
{
	fill(&c, 5);
	fill(&s, 6);
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	for (int i = 0; i < WRS - 1; i++)
		CHECK(!post(&c, i, IBV_WR_RDMA_WRITE, sge(c.own, i * 4000, 4000),
			    (uintptr_t)s.buf + i * 4000, s.open->rkey, 0));
	CHECK(!send_sge(&c, 99, sge(c.own, 0, 8), IBV_SEND_FENCE));
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.buf, c.buf + BYTES, (WRS - 1) * 4000));
	expect(c.id->send_cq, 99, IBV_WC_SUCCESS);
}

/* A fenced Send of what a Read before it fetched. */
static void fence(void)
{
	fill(&c, 7);
	fill(&s, 8);
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 30000)));
	CHECK(!post(&c, 2, IBV_WR_RDMA_READ, sge(c.own, 0, 30000), (uintptr_t)s.buf + 11,
		    s.open->rkey, IBV_SEND_SIGNALED));
	CHECK(!send_sge(&c, 3, sge(c.own, 0, 30000), IBV_SEND_FENCE));
	expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
	expect(c.id->send_cq, 3, IBV_WC_SUCCESS);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.buf + BYTES, s.buf + 11, 30000));
}

/* Wait for an event of a channel: 1 if it came within a second. */
static int event(struct rdma_cm_id *id)
{
	fd_set set;
	struct timeval t = { 1, 0 };
	struct ibv_cq *cq;
	void *context;

	FD_ZERO(&set);
	FD_SET(id->recv_cq_channel->fd, &set);
	if (select(id->recv_cq_channel->fd + 1, &set, NULL, NULL, &t) != 1)
		return 0;
	CHECK(!ibv_get_cq_event(id->recv_cq_channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return 1;
}

static void solicited(void)
{
	for (int i = 0; i < 3; i++)
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 1));
	CHECK(!send_sge(&c, 1, sge(c.own, 0, 8), 0));
	expect(c.id->send_cq, 1, IBV_WC_SUCCESS);
	CHECK(!event(s.id));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), IBV_SEND_SOLICITED));
	CHECK(event(s.id));
	expect(s.id->recv_cq, 0, IBV_WC_SUCCESS);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 0));
	CHECK(!send_sge(&c, 3, sge(c.own, 0, 8), 0));
	CHECK(event(s.id));
}

/* Ping-pong far beyond the queues' lengths and back to their beginnings. */
static void around_the_rings(void)
{
	for (int i = 0; i < 50 * WRS; i++) {
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 64)));
		c.buf[BYTES] = i;
		CHECK(!send_sge(&c, i, sge(c.own, 0, 64), 0));
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
		expect(s.id->recv_cq, i, IBV_WC_SUCCESS);
		CHECK(s.buf[BYTES] == (i & 255));
	}
}

/*
 * A Write of 4 GiB less one octet, the largest message there is: both regions
 * are the same two megabytes mapped over and over.
 */
static void largest_message(void)
{
	const size_t chunk = 2 << 20, all = 1UL << 32;
	int fd = memfd_create("weft", 0);
	unsigned char *base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(fd >= 0 && base != MAP_FAILED && !ftruncate(fd, chunk));
	for (size_t at = 0; at < all; at += chunk)
		CHECK(mmap(base + at, chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			   0) != MAP_FAILED);
	mr = ibv_reg_mr(c.id->pd, base, all - 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	CHECK(!ibv_dereg_mr(s.open));
	s.open = ibv_reg_mr(s.id->pd, base, all - 1,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(s.open);
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!post(&c, 2, IBV_WR_RDMA_WRITE, sge(mr, 0, all - 1), (uintptr_t)base, s.open->rkey,
		    IBV_SEND_SIGNALED));
	CHECK(!send_sge(&c, 3, sge(c.own, 0, 8), 0));
	for (int i = 0; i < 20; i++) {
		struct ibv_wc wc;

		if (ibv_poll_cq(c.id->send_cq, 1, &wc) == 1) {
			CHECK(wc.wr_id == 2 && wc.status == IBV_WC_SUCCESS);
			break;
		}
		sleep(i < 19 ? 10 : 0);
	}
	expect(c.id->send_cq, 3, IBV_WC_SUCCESS);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr));
}

/* --- bad requests ---------------------------------------------------------- */

static void send_bad_lkey(void)
{
	struct ibv_sge sg = sge(c.own, 0, 8);

	sg.lkey ^= 0x5a00;
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!send_sge(&c, 2, sg, 0));
	expect(c.id->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	flushes(&c);
	expect(s.id->recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
}

static void send_beyond_region(void)
{
	CHECK(!send_sge(&c, 2, sge(c.own, BYTES - 4, 8), 0));
	expect(c.id->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	flushes(&c);
}

static void send_of_another_domain(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(c.id->verbs);
	struct ibv_mr *mr = ibv_reg_mr(pd, c.buf, 64, IBV_ACCESS_LOCAL_WRITE);

	CHECK(pd && mr);
	CHECK(!send_sge(&c, 2, sge(mr, 0, 8), 0));
	expect(c.id->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	flushes(&c);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
}

static void receive_too_short(void)
{
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 9), 0));
	expect(s.id->recv_cq, 1, IBV_WC_LOC_LEN_ERR);
	flushes(&s);
}

static void receive_bad_lkey(void)
{
	struct ibv_sge sg = sge(s.own, 0, 8);

	sg.lkey ^= 0x5a00;
	CHECK(!recv_sge(&s, 1, sg));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), 0));
	expect(s.id->recv_cq, 1, IBV_WC_LOC_PROT_ERR);
	flushes(&s);
}

static void no_receive_posted(void)
{
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), 0));
	next(c.id->send_cq);
	flushes(&c);
	flushes(&s);
}

/* A Write is complete when TCP has it, so only what follows it fails. */
static void bad_write(uint64_t to, uint32_t rkey)
{
	CHECK(!post(&c, 2, IBV_WR_RDMA_WRITE, sge(c.own, 0, 8), to, rkey, IBV_SEND_SIGNALED));
	next(c.id->send_cq);
	flushes(&c);
	flushes(&s);
}

static void write_bad_rkey(void)
{
	bad_write((uintptr_t)s.buf, s.open->rkey ^ 0x5a00);
}

static void write_without_right(void)
{
	bad_write((uintptr_t)s.own->addr, s.own->rkey);
}

static void write_beyond_region(void)
{
	bad_write((uintptr_t)s.buf + BYTES - 4, s.open->rkey);
}

static void bad_read(uint64_t from, uint32_t rkey)
{
	CHECK(!post(&c, 2, IBV_WR_RDMA_READ, sge(c.own, 0, 8), from, rkey, IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	flushes(&c);
	flushes(&s);
}

static void read_bad_rkey(void)
{
	bad_read((uintptr_t)s.buf, s.open->rkey ^ 0x5a00);
}

static void read_without_right(void)
{
	bad_read((uintptr_t)s.own->addr, s.own->rkey);
}

static void read_beyond_region(void)
{
	bad_read((uintptr_t)s.buf + BYTES - 4, s.open->rkey);
}

static void refused_at_posting(void)
{
	struct ibv_sge many[64];
	struct ibv_send_wr *bad = NULL, wr = { .opcode = IBV_WR_SEND, .sg_list = many };

	for (int i = 0; i < 64; i++)
		many[i] = sge(c.own, 0, 1);
	wr.num_sge = 64;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.num_sge = 1;
	wr.opcode = IBV_WR_TSO;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad));
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad));
	wr.opcode = 200;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad));
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_INLINE;
	many[0].length = 60000;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad));
	/* None of it harmed the connection. */
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), 0));
	expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
}

static void full_queues(void)
{
	int posted = 0, ret;

	while (!(ret = recv_sge(&c, posted, sge(c.own, 0, 8))))
		CHECK(++posted < 10000);
	CHECK(ret == ENOMEM && posted >= WRS);
	CHECK(!rdma_disconnect(c.id));
	for (int i = 0; i < posted; i++)
		expect(c.id->recv_cq, i, IBV_WC_WR_FLUSH_ERR);
}

static void disconnect_flushes(void)
{
	struct rdma_cm_event *e;

	for (int i = 0; i < 10; i++) {
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
		CHECK(!recv_sge(&c, i, sge(c.own, 0, 8)));
	}
	CHECK(!rdma_disconnect(c.id));
	CHECK(!rdma_get_cm_event(s.id->channel, &e));
	CHECK(e->event == RDMA_CM_EVENT_DISCONNECTED);
	rdma_ack_cm_event(e);
	for (int i = 0; i < 10; i++) {
		expect(s.id->recv_cq, i, IBV_WC_WR_FLUSH_ERR);
		expect(c.id->recv_cq, i, IBV_WC_WR_FLUSH_ERR);
	}
	flushes(&c);
	flushes(&s);
}

/* --- objects ----------------------------------------------------------------- */

static void qp_types(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET,
						  IBV_QPT_XRC_SEND };

	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 },
						 .qp_type = types[i],
						 .send_cq = c.id->send_cq,
						 .recv_cq = c.id->recv_cq };

		errno = 0;
		CHECK(!ibv_create_qp(c.id->pd, &attr));
		CHECK(errno == EOPNOTSUPP);
	}
}

static void too_large(void)
{
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .send_cq = c.id->send_cq,
					 .recv_cq = c.id->recv_cq };

	CHECK(!ibv_query_device(c.id->verbs, &dev));
	attr.cap = (struct ibv_qp_cap){ dev.max_qp_wr + 1, 1, 1, 1, 0 };
	CHECK(!ibv_create_qp(c.id->pd, &attr) && (errno == EINVAL || errno == ENOMEM));
	attr.cap = (struct ibv_qp_cap){ 1, 1, dev.max_sge + 1, 1, 0 };
	CHECK(!ibv_create_qp(c.id->pd, &attr) && (errno == EINVAL || errno == ENOMEM));
	attr.cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 1 << 20 };
	CHECK(!ibv_create_qp(c.id->pd, &attr) && (errno == EINVAL || errno == ENOMEM));
	CHECK(!ibv_create_cq(c.id->verbs, dev.max_cqe + 1, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!ibv_reg_mr(c.id->pd, c.buf, 64, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	CHECK(!ibv_reg_mr(c.id->pd, (void *)8, 64, IBV_ACCESS_LOCAL_WRITE));
}

static void query_qp(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int all = IBV_QP_STATE | IBV_QP_CAP | IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_QP_RD_ATOMIC |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MTU;

	CHECK(!ibv_query_qp(c.id->qp, &attr, all, &init));
	CHECK(attr.qp_state == IBV_QPS_RTS && init.qp_type == IBV_QPT_RC);
	CHECK(attr.cap.max_send_wr >= WRS && attr.cap.max_recv_wr >= WRS);
	CHECK(attr.cap.max_send_sge >= 4 && attr.cap.max_inline_data >= 64);
	CHECK(attr.max_rd_atomic >= 1 && attr.max_dest_rd_atomic >= 1);
	CHECK(init.send_cq == c.id->send_cq && init.recv_cq == c.id->recv_cq);
}

/* RLIMIT_MEMLOCK counts for whoever lacks CAP_IPC_LOCK: the caller sets both. */
static void memlock(void)
{
	void *big = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(big != MAP_FAILED);
	CHECK(!ibv_reg_mr(c.id->pd, big, 8 << 20, IBV_ACCESS_LOCAL_WRITE));
	CHECK(errno == ENOMEM);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name)          \
	{                   \
#name, name \
	}
	CASE(inline_data),
	CASE(inline_capability),
	CASE(several_elements),
	CASE(zero_length),
	CASE(unsignalled),
	CASE(fence),
	CASE(solicited),
	CASE(around_the_rings),
	CASE(largest_message),
	CASE(send_bad_lkey),
	CASE(send_beyond_region),
	CASE(send_of_another_domain),
	CASE(receive_too_short),
	CASE(receive_bad_lkey),
	CASE(no_receive_posted),
	CASE(write_bad_rkey),
	CASE(write_without_right),
	CASE(write_beyond_region),
	CASE(read_bad_rkey),
	CASE(read_without_right),
	CASE(read_beyond_region),
	CASE(refused_at_posting),
	CASE(full_queues),
	CASE(disconnect_flushes),
	CASE(qp_types),
	CASE(too_large),
	CASE(query_qp),
	CASE(memlock),
};

static void release(struct end *e)
{
	CHECK(!ibv_dereg_mr(e->open) && !ibv_dereg_mr(e->own));
	rdma_destroy_ep(e->id);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned int i = 0; argc == 3 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[2]))
			continue;
		connect_ends(argv[1]);
		cases[i].run();
		release(&c);
		release(&s);
		rdma_destroy_ep(listener);
		return 0;
	}
	fprintf(stderr, "usage: verbs ADDRESS CASE\n");
	return 2;
}
