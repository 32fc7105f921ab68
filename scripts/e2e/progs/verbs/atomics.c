// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Atomics, and messages with immediate data or an invalidation. */
#define _GNU_SOURCE
#include "verbs.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALL                                                                                    \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |           \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* The server's words that atomics are for, and a bystander's connection. */
static struct ibv_mr *words;
static struct end s2, c2;

static uint64_t *word(int i)
{
	return (uint64_t *)(s.buf + BYTES) + i;
}

static uint64_t *answer(void)
{
	return (uint64_t *)(c.buf + BYTES + 4096);
}

static struct ibv_mr *open_words(int access)
{
	struct ibv_mr *mr = ibv_reg_mr(s.id->pd, word(0), 4096, access);

	CHECK(mr);
	memset(word(0), 0, 8192);
	return mr;
}

static void prepare(void)
{
	words = open_words(ALL);
	*answer() = 0xdeadbeef;
}

static uint64_t do_atomic(enum ibv_wr_opcode op, uint64_t compare_add, uint64_t swap)
{
	enum ibv_wc_opcode wc = op == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP :
								  IBV_WC_FETCH_ADD;
	struct ibv_wc done;

	CHECK(!post_atomic(&c, 5, op, sge(c.own, 4096, 8), (uintptr_t)word(1), words->rkey,
			   compare_add, swap));
	done = expect(c.id->send_cq, 5, IBV_WC_SUCCESS);
	CHECK(done.opcode == wc && done.byte_len == 8);
	return *answer();
}

CASE("atomics", atomic_fetch_add)
{
	prepare();
	*word(1) = 0xfffffffffffffff0;
	CHECK(do_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 0x21, 0) == 0xfffffffffffffff0);
	CHECK(do_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0) == 0x11);
	CHECK(do_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 0) == 0x11);
	CHECK(*word(1) == 0x10 && *word(0) == 0 && *word(2) == 0);
	CHECK(!ibv_dereg_mr(words));
}

CASE("atomics", atomic_cmp_swap)
{
	prepare();
	*word(1) = 0x1122334455667788;
	CHECK(do_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 1, 2) == 0x1122334455667788);
	CHECK(*word(1) == 0x1122334455667788);
	CHECK(do_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 0x1122334455667788, 42) == 0x1122334455667788);
	CHECK(do_atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 42, 43) == 42);
	CHECK(*word(1) == 43 && *word(0) == 0 && *word(2) == 0);
	CHECK(!ibv_dereg_mr(words));
}

CASE("atomics", atomic_capability)
{
	struct ibv_device_attr_ex attr;

	CHECK(!ibv_query_device_ex(c.id->verbs, NULL, &attr));
	CHECK(attr.orig_attr.atomic_cap == IBV_ATOMIC_GLOB);
}

/* The peer's device has its atomics switched off, so it knows no such opcode. */
UNLISTED(atomic_unknown_to_peer)
{
	struct ibv_device_attr_ex attr;

	CHECK(!ibv_query_device_ex(c.id->verbs, NULL, &attr));
	CHECK(attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE);
	CHECK(!(attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC));
	prepare();
	*word(1) = 5;
	CHECK(!post_atomic(&c, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, sge(c.own, 4096, 8),
			   (uintptr_t)word(1), words->rkey, 1, 0));
	expect(c.id->send_cq, 5, IBV_WC_REM_INV_REQ_ERR);
	flushes(&c);
	flushes(&s);
	CHECK(*word(1) == 5);
	CHECK(!ibv_dereg_mr(words));
}

/* Both operations are refused alike; the target does not change, others go on. */
static void refused(enum ibv_wr_opcode op, struct ibv_mr *mr, uint64_t to, uint32_t rkey,
		    enum ibv_wc_status status)
{
	unsigned char before[8192];

	connect_pair(&c2, &s2, NULL);
	memset(word(0), 0x5a, sizeof(before));
	memcpy(before, word(0), sizeof(before));
	*answer() = 77;
	CHECK(!recv_sge(&s, 1, sge(s.own, 60000, 8)));
	CHECK(!post_atomic(&c, 5, op, sge(c.own, 4096, 8), to, rkey, 0x5a5a5a5a5a5a5a5a, 1));
	expect(c.id->send_cq, 5, status);
	expect(s.id->recv_cq, 1, IBV_WC_WR_FLUSH_ERR);
	flushes(&c);
	flushes(&s);
	CHECK(!memcmp(before, word(0), sizeof(before)) && *answer() == 77);
	works(&c2, &s2);
	CHECK(!ibv_dereg_mr(mr));
	release(&c2);
	release(&s2);
}

static void misaligned(enum ibv_wr_opcode op)
{
	prepare();
	refused(op, words, (uintptr_t)word(1) + 4, words->rkey, IBV_WC_REM_OP_ERR);
}

CASE("atomics", atomic_misaligned_fadd)
{
	misaligned(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

CASE("atomics", atomic_misaligned_cswap)
{
	misaligned(IBV_WR_ATOMIC_CMP_AND_SWP);
}

CASE("atomics", atomic_out_of_bounds)
{
	prepare();
	refused(IBV_WR_ATOMIC_FETCH_AND_ADD, words, (uintptr_t)word(512), words->rkey,
		IBV_WC_REM_ACCESS_ERR);
}

CASE("atomics", atomic_across_the_end)
{
	prepare();
	refused(IBV_WR_ATOMIC_CMP_AND_SWP, words, (uintptr_t)word(512) - 4, words->rkey,
		IBV_WC_REM_ACCESS_ERR);
}

CASE("atomics", atomic_without_right)
{
	words = open_words(ALL & ~IBV_ACCESS_REMOTE_ATOMIC);
	refused(IBV_WR_ATOMIC_FETCH_AND_ADD, words, (uintptr_t)word(1), words->rkey,
		IBV_WC_REM_ACCESS_ERR);
}

CASE("atomics", atomic_wrong_key)
{
	prepare();
	refused(IBV_WR_ATOMIC_CMP_AND_SWP, words, (uintptr_t)word(1), words->rkey ^ 1,
		IBV_WC_REM_ACCESS_ERR);
}

CASE("atomics", atomic_key_of_nothing)
{
	prepare();
	refused(IBV_WR_ATOMIC_FETCH_AND_ADD, words, (uintptr_t)word(1), words->rkey ^ 0x5a5a00,
		IBV_WC_REM_ACCESS_ERR);
}

CASE("atomics", atomic_of_another_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(s.id->verbs);
	struct ibv_mr *mr;

	CHECK(pd);
	mr = ibv_reg_mr(pd, word(0), 4096, ALL);
	CHECK(mr);
	refused(IBV_WR_ATOMIC_FETCH_AND_ADD, mr, (uintptr_t)word(1), mr->rkey,
		IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dealloc_pd(pd));
}

/* The place for the answer: of another length, or not ours to write. */
static void bad_place(struct ibv_sge sg, enum ibv_wc_status status)
{
	prepare();
	CHECK(!post_atomic(&c, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, sg, (uintptr_t)word(1), words->rkey,
			   1, 0));
	expect(c.id->send_cq, 5, status);
	flushes(&c);
	CHECK(*word(1) == 0);
	CHECK(!ibv_dereg_mr(words));
}

CASE("atomics", atomic_short_answer)
{
	bad_place(sge(c.own, 4096, 4), IBV_WC_LOC_LEN_ERR);
}

CASE("atomics", atomic_answer_bad_lkey)
{
	struct ibv_sge sg = sge(c.own, 4096, 8);

	sg.lkey ^= 0x5a00;
	bad_place(sg, IBV_WC_LOC_PROT_ERR);
}

static void fetch_into(struct ibv_sge *list, int count)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 5,
					.sg_list = list,
					.num_sge = count,
					.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					.send_flags = IBV_SEND_SIGNALED };

	wr.wr.atomic.remote_addr = (uintptr_t)word(1);
	wr.wr.atomic.rkey = words->rkey;
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	expect(c.id->send_cq, 5, IBV_WC_SUCCESS);
}

CASE("atomics", atomic_answer_in_pieces)
{
	struct ibv_sge list[2] = { sge(c.own, 100, 3), sge(c.own, 200, 5) };
	struct ibv_sge across_pages = sge(c.own, 8192 - 3, 8);
	const unsigned char *own = c.buf + BYTES;
	unsigned char value[8];

	prepare();
	*word(1) = 0x1122334455667788;
	memcpy(value, word(1), sizeof(value));
	fetch_into(list, 2);
	CHECK(!memcmp(own + 100, value, 3) && !memcmp(own + 200, value + 3, 5));
	fetch_into(&across_pages, 1);
	CHECK(!memcmp(own + 8192 - 3, value, sizeof(value)));
	CHECK(!ibv_dereg_mr(words));
}

/* --- eight QPs and a thread on one counter ----------------------------------- */

#define QPS	8
#define ROUNDS	1500

static struct end hc[QPS], hs[QPS];
static volatile int stop;
static uint64_t added_here;

static void *local_adder(void *counter)
{
	while (!stop) {
		__atomic_fetch_add((uint64_t *)counter, 1, __ATOMIC_SEQ_CST);
		added_here++;
	}
	return NULL;
}

/* Even QPs add; odd ones swap the value they saw for one more, until it holds. */
static void *hammer(void *arg)
{
	struct end *e = arg;
	uint64_t *got = (uint64_t *)(e->buf + BYTES);
	uint64_t seen = 0, done = 0;
	int adds = (e - hc) % 2 == 0;
	struct ibv_wc wc;

	while (done < ROUNDS) {
		CHECK(!post_atomic(e, done,
				   adds ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP,
				   sge(e->own, 0, 8), (uintptr_t)word(1), words->rkey,
				   adds ? 1 : seen, seen + 1));
		while (!ibv_poll_cq(e->id->send_cq, 1, &wc))
			;
		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == done);
		done += adds || *got == seen;
		seen = adds || *got != seen ? *got : seen + 1;
		/* The thread below would win for ever. */
		if (!adds && done == ROUNDS / 2)
			stop = 1;
	}
	return NULL;
}

CASE("atomics", atomic_hammer)
{
	pthread_t threads[QPS], local;

	prepare();
	for (int i = 0; i < QPS; i++)
		connect_pair(&hc[i], &hs[i], NULL);
	pthread_create(&local, NULL, local_adder, word(1));
	usleep(1000);
	for (int i = 0; i < QPS; i++)
		pthread_create(&threads[i], NULL, hammer, &hc[i]);
	usleep(200000);
	stop = 1;
	for (int i = 0; i < QPS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(local, NULL);
	printf("%lu: %lu here, %d by peers\n", (unsigned long)*word(1), (unsigned long)added_here,
	       QPS * ROUNDS);
	CHECK(added_here > 0 && *word(1) == added_here + QPS * ROUNDS);
	for (int i = 0; i < QPS; i++) {
		release(&hc[i]);
		release(&hs[i]);
	}
	CHECK(!ibv_dereg_mr(words));
}

/* --- immediate data, invalidation ---------------------------------------------- */

CASE("immediate", write_with_imm)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 2, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_sge sg = sge(c.own, 3, 5000);
	struct ibv_wc wc;

	fill(&c, 1);
	fill(&s, 2);
	wr.sg_list = &sg;
	wr.num_sge = 1;
	wr.imm_data = htonl(0x12345678);
	wr.wr.rdma.remote_addr = (uintptr_t)s.buf + 17;
	wr.wr.rdma.rkey = s.open->rkey;
	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!ibv_req_notify_cq(s.id->recv_cq, 1));
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	CHECK(expect(c.id->send_cq, 2, IBV_WC_SUCCESS).opcode == IBV_WC_RDMA_WRITE);
	CHECK(event_within(s.id->recv_cq_channel, 2000));
	wc = expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wc_flags & IBV_WC_WITH_IMM);
	CHECK(wc.imm_data == htonl(0x12345678) && wc.byte_len == 5000);
	CHECK(!memcmp(s.buf + 17, c.buf + BYTES + 3, 5000));
	/* No byte to write; the receive's own memory is not touched either. */
	wr.num_sge = 0;
	CHECK(!recv_sge(&s, 3, sge(s.own, 0, 8)));
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	wc = expect(s.id->recv_cq, 3, IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 0);
}

/* Ten Writes without a completion at the other end, in the same send queue. */
static void write_silently(uint32_t length)
{
	for (int i = 0; i < 10; i++)
		CHECK(!post(&c, 100 + i, IBV_WR_RDMA_WRITE, sge(c.own, 0, length), (uintptr_t)s.buf,
			    s.open->rkey, IBV_SEND_SIGNALED));
	good(c.id->send_cq, 10);
}

/* byte_len is that of this Write alone. */
static void write_and_tell(uint64_t id, uint32_t length)
{
	struct ibv_send_wr *bad, wr = { .wr_id = id, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_sge sg = sge(c.own, 0, length);
	struct ibv_wc wc;

	wr.sg_list = &sg;
	wr.num_sge = length ? 1 : 0;
	wr.imm_data = htonl(id);
	wr.wr.rdma.remote_addr = (uintptr_t)s.buf;
	wr.wr.rdma.rkey = s.open->rkey;
	wr.send_flags = IBV_SEND_SIGNALED;
	CHECK(!recv_sge(&s, id, sge(s.own, 0, 8)));
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	expect(c.id->send_cq, id, IBV_WC_SUCCESS);
	wc = expect(s.id->recv_cq, id, IBV_WC_SUCCESS);
	printf("byte_len %u, expected %u\n", wc.byte_len, length);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == htonl(id));
	CHECK(wc.byte_len == length);
}

CASE("immediate", write_with_imm_after_writes)
{
	write_silently(BYTES);
	write_and_tell(1, 5000);
	write_silently(BYTES);
	write_and_tell(2, BYTES);
	write_and_tell(3, BYTES);
}

CASE("immediate", empty_write_with_imm)
{
	write_and_tell(1, 0);
	write_silently(BYTES);
	write_and_tell(2, 0);
	write_silently(0);
	write_and_tell(3, 0);
}

CASE("immediate", write_with_imm_after_send)
{
	write_silently(1000);
	CHECK(!recv_sge(&s, 50, sge(s.own, 0, 3000)));
	CHECK(!send_sge(&c, 50, sge(c.own, 0, 3000), 0));
	expect(c.id->send_cq, 50, IBV_WC_SUCCESS);
	CHECK(expect(s.id->recv_cq, 50, IBV_WC_SUCCESS).byte_len == 3000);
	write_and_tell(1, 0);
	write_silently(1000);
	CHECK(!post(&c, 51, IBV_WR_RDMA_READ, sge(c.own, 0, 64), (uintptr_t)s.buf, s.open->rkey,
		    IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 51, IBV_WC_SUCCESS);
	write_and_tell(2, 7);
}

CASE("immediate", write_with_imm_no_receive)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 2, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_sge sg = sge(c.own, 0, 8);

	wr.sg_list = &sg;
	wr.num_sge = 1;
	wr.wr.rdma.remote_addr = (uintptr_t)s.buf;
	wr.wr.rdma.rkey = s.open->rkey;
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	flushes(&c);
	flushes(&s);
}

/* RFC 5040 has no Send with immediate: it is refused when it is asked for. */
CASE("immediate", send_with_imm_refused)
{
	struct ibv_send_wr *bad = NULL, wr = { .opcode = IBV_WR_SEND_WITH_IMM };
	struct ibv_sge sg = sge(c.own, 0, 8), sg_of_acceptor = sge(s.own, 0, 8);
	struct ibv_qp_init_attr_ex attr = {
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.send_cq = c.id->send_cq,
		.recv_cq = c.id->recv_cq,
		.pd = c.id->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	wr.sg_list = &sg;
	wr.num_sge = 1;
	CHECK(ibv_post_send(c.id->qp, &wr, &bad) == EOPNOTSUPP && bad == &wr);
	/* librdmacm moves the QP that accepts to RTR by ibv_modify_qp(). */
	wr.sg_list = &sg_of_acceptor;
	bad = NULL;
	CHECK(ibv_post_send(s.id->qp, &wr, &bad) == EOPNOTSUPP && bad == &wr);
	errno = 0;
	CHECK(!ibv_create_qp_ex(c.id->verbs, &attr) && errno == EOPNOTSUPP);
	works(&c, &s);
}
