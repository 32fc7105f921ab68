// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Work requests that every RNIC has: Send, Write, Read, their lists and flags. */
#define _GNU_SOURCE
#include "verbs.h"

#include <sys/mman.h>
#include <unistd.h>

/* --- good requests --------------------------------------------------------- */

CASE("good", inline_data)
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

/* Some for a program that takes what it gets (rsockets); else at least what was asked for. */
CASE("good", inline_capability)
{
	static const uint32_t asked[] = { 0, 95, 96, 97, 512 };

	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, asked[i] },
						 .qp_type = IBV_QPT_RC,
						 .send_cq = c.id->send_cq,
						 .recv_cq = c.id->recv_cq };
		struct ibv_qp *qp = ibv_create_qp(c.id->pd, &attr);

		CHECK(qp && attr.cap.max_inline_data >= 96 && attr.cap.max_inline_data >= asked[i]);
		CHECK(!ibv_destroy_qp(qp));
	}
}

CASE("good", several_elements)
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

CASE("good", zero_length)
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
CASE("good", unsignalled)
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
CASE("good", fence)
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

CASE("good", solicited)
{
	for (int i = 0; i < 3; i++)
		CHECK(!recv_sge(&s, i, sge(s.own, 0, 8)));
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 1));
	CHECK(!send_sge(&c, 1, sge(c.own, 0, 8), 0));
	expect(c.id->send_cq, 1, IBV_WC_SUCCESS);
	CHECK(!event_within(s.id->recv_cq_channel, 1000));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), IBV_SEND_SOLICITED));
	CHECK(event_within(s.id->recv_cq_channel, 1000));
	expect(s.id->recv_cq, 0, IBV_WC_SUCCESS);
	expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 0));
	CHECK(!send_sge(&c, 3, sge(c.own, 0, 8), 0));
	CHECK(event_within(s.id->recv_cq_channel, 1000));
}

/* A queue armed for any completion stays so when it is armed for solicited ones as well. */
CASE("good", solicited_beside_any)
{
	for (int first = 0; first < 2; first++) {
		CHECK(!recv_sge(&s, first, sge(s.own, 0, 8)));
		CHECK(!ibv_req_notify_cq(s.id->recv_cq, first));
		CHECK(!ibv_req_notify_cq(s.id->recv_cq, !first));
		CHECK(!send_sge(&c, first, sge(c.own, 0, 8), 0));
		CHECK(event_within(s.id->recv_cq_channel, 5000));
		expect(s.id->recv_cq, first, IBV_WC_SUCCESS);
		expect(c.id->send_cq, first, IBV_WC_SUCCESS);
	}
}

/* Ping-pong far beyond the queues' lengths and back to their beginnings. */
CASE("good", around_the_rings)
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
 * A Write of 4 GiB less one byte, the largest message there is: both regions
 * are the same two megabytes mapped over and over.
 */
UNLISTED(largest_message)
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

CASE("bad", send_bad_lkey)
{
	struct ibv_sge sg = sge(c.own, 0, 8);

	sg.lkey ^= 0x5a00;
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!send_sge(&c, 2, sg, 0));
	expect(c.id->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	flushes(&c);
	expect(s.id->recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
}

CASE("bad", send_beyond_region)
{
	CHECK(!send_sge(&c, 2, sge(c.own, BYTES - 4, 8), 0));
	expect(c.id->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	flushes(&c);
}

CASE("bad", send_of_another_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(c.id->verbs);
	struct ibv_mr *mr = ibv_reg_mr(pd, c.buf, 64, IBV_ACCESS_LOCAL_WRITE);

	CHECK(pd && mr);
	CHECK(!send_sge(&c, 2, sge(mr, 0, 8), 0));
	expect(c.id->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	flushes(&c);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
}

CASE("bad", receive_too_short)
{
	works(&c, &s);
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 9), 0));
	expect(s.id->recv_cq, 1, IBV_WC_LOC_LEN_ERR);
	flushes(&s);
}

CASE("bad", receive_bad_lkey)
{
	struct ibv_sge sg = sge(s.own, 0, 8);

	works(&c, &s);
	sg.lkey ^= 0x5a00;
	CHECK(!recv_sge(&s, 1, sg));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), 0));
	expect(s.id->recv_cq, 1, IBV_WC_LOC_PROT_ERR);
	flushes(&s);
}

/* What the server's memory holds is what fill() left there, whatever was sent to it. */
static void prepared(void)
{
	fill(&c, 11);
	fill(&s, 12);
}

static void untouched(void)
{
	unsigned char *seen = malloc(2 * BYTES);

	CHECK(seen);
	memcpy(seen, s.buf, 2 * BYTES);
	fill(&s, 12);
	CHECK(!memcmp(seen, s.buf, 2 * BYTES));
	free(seen);
}

/*
 * A message is complete when TCP has it; or the Terminate that answers it was faster. Without TCP
 * in between it never is.
 */
static void sent_or_refused(uint64_t id, enum ibv_wc_status reason)
{
	struct ibv_wc wc = next(c.id->send_cq);

	CHECK(wc.wr_id == id);
	CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR ||
	      wc.status == reason);
}

CASE("bad", no_receive_posted)
{
	prepared();
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), 0));
	sent_or_refused(2, IBV_WC_REM_OP_ERR);
	flushes(&c);
	flushes(&s);
	untouched();
}

/* Only what follows a bad Write fails, not what was before it. */
static void bad_write(uint64_t to, uint32_t rkey)
{
	works(&c, &s);
	prepared();
	CHECK(!post(&c, 2, IBV_WR_RDMA_WRITE, sge(c.own, 0, 8), to, rkey, IBV_SEND_SIGNALED));
	sent_or_refused(2, IBV_WC_REM_ACCESS_ERR);
	flushes(&c);
	flushes(&s);
	untouched();
}

CASE("bad", write_bad_rkey)
{
	bad_write((uintptr_t)s.buf, s.open->rkey ^ 0x5a00);
}

CASE("bad", write_without_right)
{
	bad_write((uintptr_t)s.own->addr, s.own->rkey);
}

CASE("bad", write_beyond_region)
{
	bad_write((uintptr_t)s.buf + BYTES - 4, s.open->rkey);
}

/* Nothing of what it asked for arrives. */
static void bad_read(uint64_t from, uint32_t rkey)
{
	unsigned char before[8];

	prepared();
	memcpy(before, c.buf + BYTES, 8);
	CHECK(!post(&c, 2, IBV_WR_RDMA_READ, sge(c.own, 0, 8), from, rkey, IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	flushes(&c);
	flushes(&s);
	CHECK(!memcmp(before, c.buf + BYTES, 8));
	untouched();
}

CASE("bad", read_bad_rkey)
{
	bad_read((uintptr_t)s.buf, s.open->rkey ^ 0x5a00);
}

CASE("bad", read_without_right)
{
	bad_read((uintptr_t)s.own->addr, s.own->rkey);
}

CASE("bad", read_beyond_region)
{
	bad_read((uintptr_t)s.buf + BYTES - 4, s.open->rkey);
}

CASE("bad", refused_at_posting)
{
	struct ibv_sge many[64];
	struct ibv_send_wr *bad = NULL, wr = { .opcode = IBV_WR_SEND, .sg_list = many };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(c.id->qp, &attr, IBV_QP_CAP, &init));
	CHECK(init.cap.max_send_sge < 64);
	for (int i = 0; i < 64; i++)
		many[i] = sge(c.own, 0, 1);
	for (wr.num_sge = init.cap.max_send_sge + 1; wr.num_sge <= 64; wr.num_sge++)
		CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.num_sge = 1;
	wr.opcode = IBV_WR_TSO;
	bad = NULL;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EOPNOTSUPP && bad == &wr);
	wr.opcode = IBV_WR_BIND_MW; /* of no window */
	bad = NULL;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EOPNOTSUPP && bad == &wr);
	wr.opcode = 200;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad));
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_INLINE;
	wr.num_sge = -1;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EINVAL);
	wr.num_sge = 1;
	many[0].length = 60000;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad));
	/* Nor do elements fit together because each of them does. */
	many[0].length = many[1].length = init.cap.max_inline_data / 2 + 1;
	for (wr.num_sge = 2; wr.num_sge <= 3; wr.num_sge++)
		CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.num_sge = 1;
	/* There is no data to take along, however short. */
	many[0].length = 1;
	wr.opcode = IBV_WR_RDMA_READ;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EINVAL && bad == &wr);
	/* None of it harmed the connection, or was sent. */
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!send_sge(&c, 2, sge(c.own, 0, 8), 0));
	expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
	CHECK(expect(s.id->recv_cq, 1, IBV_WC_SUCCESS).byte_len == 8);
}

/* What stands before a bad receive is posted, what stands behind it is not. */
CASE("bad", receives_refused_at_posting)
{
	struct ibv_sge many[64];
	struct ibv_recv_wr wr[3] = {}, *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(s.id->qp, &attr, IBV_QP_CAP, &init));
	CHECK(init.cap.max_recv_sge < 64);
	for (int i = 0; i < 64; i++)
		many[i] = sge(s.own, i, 1);
	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_recv_wr){ i, i < 2 ? &wr[i + 1] : NULL, many, 1 };
	wr[1].num_sge = init.cap.max_recv_sge + 1;
	CHECK(ibv_post_recv(s.id->qp, wr, &bad) == EINVAL && bad == &wr[1]);
	wr[1].num_sge = -1;
	CHECK(ibv_post_recv(s.id->qp, &wr[1], &bad) == EINVAL && bad == &wr[1]);
	CHECK(!send_sge(&c, 5, sge(c.own, 0, 1), 0));
	expect(c.id->send_cq, 5, IBV_WC_SUCCESS);
	expect(s.id->recv_cq, 0, IBV_WC_SUCCESS);
	nothing(s.id->recv_cq);
	works(&c, &s);
}

CASE("bad", full_queues)
{
	int posted = 0, ret;

	while (!(ret = recv_sge(&c, posted, sge(c.own, 0, 8))))
		CHECK(++posted < 10000);
	CHECK(ret == ENOMEM && posted >= WRS);
	CHECK(!rdma_disconnect(c.id));
	for (int i = 0; i < posted; i++)
		expect(c.id->recv_cq, i, IBV_WC_WR_FLUSH_ERR);
}

CASE("bad", disconnect_flushes)
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

CASE("objects", qp_types)
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

/* A QP of these capabilities: 0, or the errno. */
static int qp_of(struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr attr = { .cap = cap,
					 .qp_type = IBV_QPT_RC,
					 .send_cq = c.id->send_cq,
					 .recv_cq = c.id->recv_cq };
	struct ibv_qp *qp = ibv_create_qp(c.id->pd, &attr);

	if (!qp)
		return errno;
	CHECK(!ibv_destroy_qp(qp));
	return 0;
}

static int cq_of(int cqe, int vector)
{
	struct ibv_cq *cq = ibv_create_cq(c.id->verbs, cqe, NULL, NULL, vector);

	if (!cq)
		return errno;
	CHECK(!ibv_destroy_cq(cq));
	return 0;
}

static int mr_of(void *addr, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(c.id->pd, addr, length, access);

	if (!mr)
		return errno;
	CHECK(!ibv_dereg_mr(mr));
	return 0;
}

/* Each limit itself is granted, one more is not. */
CASE("objects", too_large)
{
	struct ibv_device_attr dev;
	uint32_t wr, sge;

	CHECK(!ibv_query_device(c.id->verbs, &dev));
	wr = dev.max_qp_wr;
	sge = dev.max_sge;
	CHECK(!qp_of((struct ibv_qp_cap){ wr, 1, 1, 1, 0 }));
	CHECK(qp_of((struct ibv_qp_cap){ wr + 1, 1, 1, 1, 0 }) == EINVAL);
	CHECK(!qp_of((struct ibv_qp_cap){ 1, wr, 1, 1, 0 }));
	CHECK(qp_of((struct ibv_qp_cap){ 1, wr + 1, 1, 1, 0 }) == EINVAL);
	CHECK(!qp_of((struct ibv_qp_cap){ 1, 1, sge, 1, 0 }));
	CHECK(qp_of((struct ibv_qp_cap){ 1, 1, sge + 1, 1, 0 }) == EINVAL);
	CHECK(!qp_of((struct ibv_qp_cap){ 1, 1, 1, sge, 0 }));
	CHECK(qp_of((struct ibv_qp_cap){ 1, 1, 1, sge + 1, 0 }) == EINVAL);
	CHECK(!qp_of((struct ibv_qp_cap){ 1, 1, 1, 1, 512 }));
	CHECK(qp_of((struct ibv_qp_cap){ 1, 1, 1, 1, 513 }) == EINVAL);
	CHECK(!cq_of(1, 0) && !cq_of(dev.max_cqe, c.id->verbs->num_comp_vectors - 1));
	CHECK(cq_of(0, 0) == EINVAL && cq_of(dev.max_cqe + 1, 0) == EINVAL);
	CHECK(cq_of(1, c.id->verbs->num_comp_vectors) == EINVAL);
	CHECK(!mr_of(c.buf, 1, IBV_ACCESS_LOCAL_WRITE));
	CHECK(mr_of(c.buf, 0, IBV_ACCESS_LOCAL_WRITE) == EINVAL);
	CHECK(mr_of(c.buf + 1, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED) == EINVAL);
	CHECK(mr_of(c.buf, 64, IBV_ACCESS_REMOTE_WRITE) == EINVAL);
	CHECK(mr_of((void *)8, 64, IBV_ACCESS_LOCAL_WRITE) == EFAULT);
}

CASE("objects", query_qp)
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

/* RLIMIT_MEMLOCK applies to processes without CAP_IPC_LOCK: the caller sets both. */
UNLISTED(memlock)
{
	void *big = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(big != MAP_FAILED);
	CHECK(!ibv_reg_mr(c.id->pd, big, 8 << 20, IBV_ACCESS_LOCAL_WRITE));
	CHECK(errno == ENOMEM);
}
