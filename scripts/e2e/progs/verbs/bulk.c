// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Much data at once, both ways at the same time, every byte looked at; and
 * connections that end while much data is on its way.
 */
#include "verbs.h"

#include <unistd.h>

#define BULK (4U << 20)
#define MESSAGE (BULK / (WRS / 2))
#define ROUNDS 3
#define ENDS 20

/* What an end sends from, what its peer writes to, and what it reads into. */
struct bulk {
	struct end *e;
	unsigned char *out, *in, *back;
	struct ibv_mr *out_mr, *in_mr, *back_mr;
};

static unsigned char *region(struct end *e, struct ibv_mr **mr)
{
	unsigned char *at = calloc(1, BULK);

	CHECK(at);
	*mr = ibv_reg_mr(e->id->pd, at, BULK,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(*mr);
	return at;
}

static void open_bulk(struct bulk *b, struct end *e)
{
	b->e = e;
	b->out = region(e, &b->out_mr);
	b->in = region(e, &b->in_mr);
	b->back = region(e, &b->back_mr);
}

static void close_bulk(struct bulk *b)
{
	CHECK(!ibv_dereg_mr(b->out_mr) && !ibv_dereg_mr(b->in_mr) && !ibv_dereg_mr(b->back_mr));
	free(b->out);
	free(b->in);
	free(b->back);
}

/* No two words of a region, and no two rounds, are the same. */
static void pattern(struct bulk *b, uint32_t seed)
{
	uint32_t *word = (uint32_t *)b->out;

	for (uint32_t i = 0; i < BULK / sizeof(*word); i++)
		word[i] = (i + 1) * 2654435761U ^ seed;
}

static void post_all(struct bulk *b, enum ibv_wr_opcode op, struct ibv_mr *local,
		     struct ibv_mr *remote)
{
	for (uint32_t at = 0; at < BULK; at += MESSAGE)
		CHECK(!post(b->e, at, op, sge(local, at, MESSAGE), (uintptr_t)remote->addr + at,
			    remote->rkey, IBV_SEND_SIGNALED));
}

static void all_done(struct bulk *b)
{
	for (uint32_t at = 0; at < BULK; at += MESSAGE)
		expect(b->e->id->send_cq, at, IBV_WC_SUCCESS);
}

/* Writes there, tells so, and reads back what was written. */
CASE("bulk", bulk_both_ways)
{
	struct bulk a, b;

	open_bulk(&a, &c);
	open_bulk(&b, &s);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		pattern(&a, round);
		pattern(&b, ~round);
		CHECK(!recv_sge(&c, 1, sge(c.own, 0, 8)) && !recv_sge(&s, 1, sge(s.own, 0, 8)));
		post_all(&a, IBV_WR_RDMA_WRITE, a.out_mr, b.in_mr);
		post_all(&b, IBV_WR_RDMA_WRITE, b.out_mr, a.in_mr);
		CHECK(!send_sge(&c, 2, sge(c.own, 8, 8), 0) &&
		      !send_sge(&s, 2, sge(s.own, 8, 8), 0));
		expect(c.id->recv_cq, 1, IBV_WC_SUCCESS);
		CHECK(!memcmp(a.in, b.out, BULK));
		expect(s.id->recv_cq, 1, IBV_WC_SUCCESS);
		CHECK(!memcmp(b.in, a.out, BULK));
		all_done(&a);
		all_done(&b);
		expect(c.id->send_cq, 2, IBV_WC_SUCCESS);
		expect(s.id->send_cq, 2, IBV_WC_SUCCESS);
		post_all(&a, IBV_WR_RDMA_READ, a.back_mr, b.in_mr);
		post_all(&b, IBV_WR_RDMA_READ, b.back_mr, a.in_mr);
		all_done(&a);
		all_done(&b);
		CHECK(!memcmp(a.back, a.out, BULK) && !memcmp(b.back, b.out, BULK));
	}
	close_bulk(&a);
	close_bulk(&b);
}

/* Each end of a connection in turn closes in the middle; the first one stays intact. */
CASE("bulk", bulk_and_the_end)
{
	for (int i = 0; i < ENDS; i++) {
		struct end client = {}, server = {};

		connect_pair(&client, &server, NULL);
		for (int k = 0; k < WRS; k++)
			CHECK(!post(&client, k, IBV_WR_RDMA_WRITE, sge(client.own, 0, BYTES),
				    (uintptr_t)server.buf, server.open->rkey, IBV_SEND_SIGNALED));
		usleep(i * 200);
		rdma_disconnect(i & 1 ? client.id : server.id);
		release(i & 1 ? &server : &client);
		release(i & 1 ? &client : &server);
	}
	works(&c, &s);
}
