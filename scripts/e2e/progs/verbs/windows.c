// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory windows of both types, invalidation, and regions that go away. */
#define _GNU_SOURCE
#include "verbs.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct end s2, c2;
static struct ibv_mr *region;
static struct ibv_mw *mw;

/* A region that windows may be bound to, which itself opens nothing to a peer. */
static void prepare(enum ibv_mw_type type)
{
	region = ibv_reg_mr(s.id->pd, s.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(s.id->pd, type);
	CHECK(region && mw);
	fill(&c, 1);
	memset(s.buf, 0, BYTES);
}

static void done(void)
{
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(region));
}

static int bind2(struct end *e, uint64_t id, uint32_t rkey, size_t offset, size_t length)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw,
			.rkey = rkey,
			.bind_info = { region, (uintptr_t)s.buf + offset, length, ACCESS },
		},
	};

	return ibv_post_send(e->id->qp, &wr, &bad);
}

/* Binds the window to the server's QP, bytes 1000 to 3000. */
static void bound(void)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	CHECK(!bind2(&s, 10, rkey, 1000, 2000));
	CHECK(expect(s.id->send_cq, 10, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW);
	mw->rkey = rkey;
}

static int write_to(struct end *e, uint64_t id, size_t offset, uint32_t length, uint32_t rkey)
{
	return post(e, id, IBV_WR_RDMA_WRITE, sge(e->own, 0, length), (uintptr_t)s.buf + offset,
		    rkey, IBV_SEND_SIGNALED);
}

/* A Read tells what a Write alone would not: whether the peer took it. */
static void reads(struct end *e, size_t offset, uint32_t length, uint32_t rkey,
		  enum ibv_wc_status status)
{
	CHECK(!post(e, 21, IBV_WR_RDMA_READ, sge(e->own, 30000, length), (uintptr_t)s.buf + offset,
		    rkey, IBV_SEND_SIGNALED));
	expect(e->id->send_cq, 21, status);
}

static void writes(struct end *e, size_t offset, uint32_t length, uint32_t rkey)
{
	CHECK(!write_to(e, 20, offset, length, rkey));
	expect(e->id->send_cq, 20, IBV_WC_SUCCESS);
	reads(e, offset, length, rkey, IBV_WC_SUCCESS);
	CHECK(!memcmp(s.buf + offset, e->buf + BYTES, length));
	CHECK(!memcmp(e->buf + BYTES + 30000, e->buf + BYTES, length));
}

/* What a peer may not reach: it gets an error, and the memory keeps its bytes. */
static void refuses(struct end *client, struct end *server, size_t offset, uint32_t rkey)
{
	unsigned char before[BYTES];

	memcpy(before, s.buf, BYTES);
	reads(client, offset, 100, rkey, IBV_WC_REM_ACCESS_ERR);
	flushes(client);
	flushes(server);
	CHECK(!memcmp(before, s.buf, BYTES));
}

CASE("windows", window1)
{
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	uint32_t old;

	prepare(IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){ region, (uintptr_t)s.buf, 2000, ACCESS };
	CHECK(!ibv_bind_mw(s.id->qp, mw, &bind));
	expect(s.id->send_cq, 5, IBV_WC_SUCCESS);
	writes(&c, 100, 1000, mw->rkey);
	/* Bound again, elsewhere: the old key is invalid. */
	old = mw->rkey;
	bind.bind_info.addr += 4096;
	CHECK(!ibv_bind_mw(s.id->qp, mw, &bind));
	expect(s.id->send_cq, 5, IBV_WC_SUCCESS);
	CHECK(mw->rkey != old);
	writes(&c, 4096, 2000, mw->rkey);
	CHECK(ibv_dereg_mr(region) == EBUSY);
	refuses(&c, &s, 100, old);
	done();
}

/* A bind that finds no room in the queue is none: the window is what it was. */
CASE("windows", window1_whose_bind_is_not_posted)
{
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = s.id->send_cq,
					 .recv_cq = s.id->recv_cq };
	struct ibv_qp *full = ibv_create_qp(s.id->pd, &attr);
	uint32_t key;
	int ret;

	CHECK(full);
	while (!(ret = ibv_post_send(full, &wr, &bad)))
		;
	CHECK(ret == ENOMEM);
	prepare(IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){ region, (uintptr_t)s.buf, 2000, ACCESS };
	CHECK(!ibv_bind_mw(s.id->qp, mw, &bind));
	expect(s.id->send_cq, 5, IBV_WC_SUCCESS);
	key = mw->rkey;
	CHECK(ibv_bind_mw(full, mw, &bind) == ENOMEM && mw->rkey == key);
	writes(&c, 100, 1000, key);
	CHECK(!ibv_destroy_qp(full));
	done();
}

/* A region that a window is bound to stays as it is, and pins no more than before. */
CASE("windows", rereg_under_a_window)
{
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	long before = pinned();

	prepare(IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){ region, (uintptr_t)s.buf, 2000, ACCESS };
	CHECK(!ibv_bind_mw(s.id->qp, mw, &bind));
	expect(s.id->send_cq, 5, IBV_WC_SUCCESS);
	CHECK(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s.buf, 8192, 0));
	CHECK(errno == EBUSY && region->length == BYTES);
	writes(&c, 100, 1000, mw->rkey);
	done();
	CHECK(pinned() == before);
}

/* The library gives a window a new key when a bind is posted, not when it has succeeded. */
CASE("windows", window1_after_binds_that_failed)
{
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };

	prepare(IBV_MW_TYPE_1);
	connect_pair(&c2, &s2, NULL);
	bind.bind_info = (struct ibv_mw_bind_info){ region, (uintptr_t)s.buf, BYTES * 2, ACCESS };
	CHECK(!ibv_bind_mw(s2.id->qp, mw, &bind));
	expect(s2.id->send_cq, 5, IBV_WC_MW_BIND_ERR);
	CHECK(!ibv_bind_mw(s2.id->qp, mw, &bind));
	expect(s2.id->send_cq, 5, IBV_WC_WR_FLUSH_ERR);
	release(&c2);
	release(&s2);

	bind.bind_info.length = 2000;
	CHECK(!ibv_bind_mw(s.id->qp, mw, &bind));
	expect(s.id->send_cq, 5, IBV_WC_SUCCESS);
	writes(&c, 100, 1000, mw->rkey);
	CHECK(ibv_dereg_mr(region) == EBUSY);
	bind.bind_info.length = 0;
	CHECK(!ibv_bind_mw(s.id->qp, mw, &bind));
	expect(s.id->send_cq, 5, IBV_WC_SUCCESS);
	refuses(&c, &s, 100, mw->rkey);
	done();
}

CASE("windows", window2)
{
	prepare(IBV_MW_TYPE_2);
	bound();
	writes(&c, 1000, 2000, mw->rkey);
	works(&c, &s);
	fill(&c, 1);
	memset(s.buf, 0, BYTES);
	refuses(&c, &s, 999, mw->rkey);
	done();
}

static int invalidate(struct end *e, uint64_t id, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = { .wr_id = id, .opcode = IBV_WR_LOCAL_INV };

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.invalidate_rkey = rkey;
	return ibv_post_send(e->id->qp, &wr, &bad);
}

CASE("windows", window_after_local_invalidate)
{
	prepare(IBV_MW_TYPE_2);
	bound();
	writes(&c, 1000, 100, mw->rkey);
	CHECK(!invalidate(&s, 11, mw->rkey));
	CHECK(expect(s.id->send_cq, 11, IBV_WC_SUCCESS).opcode == IBV_WC_LOCAL_INV);
	/* It can be bound again, and opens what it opened then. */
	bound();
	writes(&c, 1500, 100, mw->rkey);
	CHECK(!invalidate(&s, 11, mw->rkey));
	expect(s.id->send_cq, 11, IBV_WC_SUCCESS);
	refuses(&c, &s, 1000, mw->rkey);
	done();
}

CASE("windows", window_after_remote_invalidate)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 12, .opcode = IBV_WR_SEND_WITH_INV };
	struct ibv_sge sg = sge(c.own, 0, 8);
	struct ibv_wc wc;

	prepare(IBV_MW_TYPE_2);
	bound();
	wr.sg_list = &sg;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.invalidate_rkey = mw->rkey;
	CHECK(!recv_sge(&s, 1, sge(s.own, 0, 8)));
	CHECK(!ibv_post_send(c.id->qp, &wr, &bad));
	expect(c.id->send_cq, 12, IBV_WC_SUCCESS);
	wc = expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
	CHECK(wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == mw->rkey);
	refuses(&c, &s, 1000, mw->rkey);
	done();
}

/* The poster chose the key, and need not store it in the library's object. */
CASE("windows", window_bound_again)
{
	uint32_t rkey, original;

	prepare(IBV_MW_TYPE_2);
	original = mw->rkey;
	for (int i = 1; i <= 3; i++) {
		rkey = (original & ~0xffU) | (original + i) % 256;
		CHECK(!bind2(&s, 10, rkey, 1000 * i, 500));
		expect(s.id->send_cq, 10, IBV_WC_SUCCESS);
		writes(&c, 1000 * i, 500, rkey);
		CHECK(!invalidate(&s, 11, rkey));
		expect(s.id->send_cq, 11, IBV_WC_SUCCESS);
		CHECK(mw->rkey == original);
	}
	refuses(&c, &s, 1000, rkey);
	done();
}

CASE("windows", window_bound_twice)
{
	prepare(IBV_MW_TYPE_2);
	connect_pair(&c2, &s2, NULL);
	bound();
	CHECK(!bind2(&s, 13, ibv_inc_rkey(mw->rkey), 5000, 100));
	expect(s.id->send_cq, 13, IBV_WC_MW_BIND_ERR);
	flushes(&s);
	flushes(&c);
	works(&c2, &s2);
	release(&c2);
	release(&s2);
	done();
}

CASE("windows", window_over_another_qp)
{
	prepare(IBV_MW_TYPE_2);
	connect_pair(&c2, &s2, NULL);
	fill(&c2, 9);
	bound();
	refuses(&c2, &s2, 1000, mw->rkey);
	writes(&c, 1000, 2000, mw->rkey);
	release(&c2);
	release(&s2);
	done();
}

/* Of another domain, and beyond the region it is bound to. */
CASE("windows", window_beyond_region)
{
	prepare(IBV_MW_TYPE_2);
	CHECK(!bind2(&s, 14, ibv_inc_rkey(mw->rkey), BYTES - 100, 101));
	expect(s.id->send_cq, 14, IBV_WC_MW_BIND_ERR);
	flushes(&s);
	done();
}

/* What a QP has bound is unusable once it is gone. */
CASE("windows", window_after_its_qp)
{
	uint32_t rkey;

	prepare(IBV_MW_TYPE_2);
	connect_pair(&c2, &s2, NULL);
	fill(&c2, 9);
	rkey = ibv_inc_rkey(mw->rkey);
	CHECK(!bind2(&s2, 15, rkey, 1000, 2000));
	expect(s2.id->send_cq, 15, IBV_WC_SUCCESS);
	writes(&c2, 1000, 2000, rkey);
	CHECK(ibv_dereg_mr(region) == EBUSY);
	release(&c2);
	release(&s2);
	refuses(&c, &s, 1000, rkey);
	CHECK(!ibv_dereg_mr(region));
	CHECK(!ibv_dealloc_mw(mw));
}

/* And nothing else: not what another QP has bound, nor a window of type 1, which is the domain's. */
CASE("windows", windows_of_others_outlast_a_qp)
{
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw *stays, *of_domain;

	prepare(IBV_MW_TYPE_2);
	connect_pair(&c2, &s2, NULL);
	bound();
	stays = mw;
	mw = ibv_alloc_mw(s.id->pd, IBV_MW_TYPE_2);
	of_domain = ibv_alloc_mw(s.id->pd, IBV_MW_TYPE_1);
	CHECK(mw && of_domain);
	CHECK(!bind2(&s2, 15, ibv_inc_rkey(mw->rkey), 4000, 2000));
	expect(s2.id->send_cq, 15, IBV_WC_SUCCESS);
	bind.bind_info = (struct ibv_mw_bind_info){ region, (uintptr_t)s.buf, 10000, ACCESS };
	CHECK(!ibv_bind_mw(s2.id->qp, of_domain, &bind));
	expect(s2.id->send_cq, 5, IBV_WC_SUCCESS);
	release(&c2);
	release(&s2);
	writes(&c, 1000, 2000, stays->rkey);
	writes(&c, 8000, 2000, of_domain->rkey);
	CHECK(!ibv_dealloc_mw(stays) && !ibv_dealloc_mw(of_domain));
	done();
}

/* --- a region deregistered under a writer ---------------------------------------- */

static void *keep_writing(void *result)
{
	struct ibv_wc wc;
	int posted = 0;

	for (;;) {
		if (!post(&c, 30, IBV_WR_RDMA_READ, sge(c.own, 30000, 20000), (uintptr_t)s.buf,
			  region->rkey, IBV_SEND_SIGNALED))
			posted++;
		post(&c, 31, IBV_WR_RDMA_WRITE, sge(c.own, 0, 20000), (uintptr_t)s.buf,
		     region->rkey, 0);
		wc = next(c.id->send_cq);
		if (wc.status != IBV_WC_SUCCESS)
			break;
	}
	CHECK(posted > 1);
	*(enum ibv_wc_status *)result = wc.status;
	return NULL;
}

CASE("windows", dereg_while_written)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct ibv_mr *key;
	pthread_t writer;

	connect_pair(&c2, &s2, NULL);
	memset(c.buf, 0x11, 2 * BYTES);
	key = region = ibv_reg_mr(s.id->pd, s.buf, BYTES, IBV_ACCESS_LOCAL_WRITE | ACCESS);
	CHECK(region);
	region = memcpy(malloc(sizeof(*key)), key, sizeof(*key));
	pthread_create(&writer, NULL, keep_writing, &status);
	usleep(100000);
	for (double end = now() + SECONDS; *(volatile char *)s.buf != 0x11 && now() < end;)
		usleep(1000);
	CHECK(s.buf[0] == 0x11);
	CHECK(!ibv_dereg_mr(key));
	/* From here on there are no more writes. */
	memset(s.buf, 0x22, BYTES);
	pthread_join(writer, NULL);
	CHECK(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_WR_FLUSH_ERR);
	for (int i = 0; i < BYTES; i++)
		CHECK(s.buf[i] == 0x22);
	flushes(&s);
	works(&c2, &s2);
	release(&c2);
	release(&s2);
	free(region);
}
