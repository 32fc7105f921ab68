// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Very many Reads at once, short ones and long ones, so that further requests wait for many
 * responses, from a process that polls, by one that polls too. They complete in order and
 * whole, and none waits for ever.
 */
#include <pthread.h>
#include <unistd.h>

#include "reader.h"
#include "target_region.h"
#include "verbs.h"

#define PORT 7556
#define SHORT (64U << 10)
#define LONG (8U << 20)
#define SEED 33
#define READS 240 /* at once */
#define NTH 60 /* of them is long */
#define FENCED 89 /* waits for all before */
#define ROUNDS 2
#define STREAM 960 /* one after the other, READS of them at a time */
#define GOES 12

/* --- the target ------------------------------------------------------------------ */

/* A kernel that checks everything takes a minute for a case. */
static void poll_for_long(struct end *e)
{
	double end = now() + 6 * SECONDS;
	unsigned int polls = 0;
	struct ibv_wc wc;

	while (!ibv_poll_cq(e->id->recv_cq, 1, &wc))
		CHECK(++polls % 4096 || now() < end);
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
}

/* Run by the cases below, as a process of its own. */
UNLISTED(keeps_much_and_polls)
{
	struct ibv_mr *mr, *place_mr;
	struct end mine = {};
	struct place place;
	uint32_t *words = malloc(LONG);

	CHECK(words);
	for (uint32_t i = 0; i < LONG / sizeof(*words); i++)
		words[i] = word_of(i, SEED);
	unsetenv("VERBS_PORT"); /* connect to the process that started us */
	read_depth = 128;
	connect_end(&mine);
	post_empty_recv(&mine);
	mr = ibv_reg_mr(mine.id->pd, words, LONG, IBV_ACCESS_REMOTE_READ);
	place_mr = ibv_reg_mr(mine.id->pd, &place, sizeof(place), 0);
	CHECK(mr && place_mr);
	place = (struct place){ (uintptr_t)words, mr->rkey };
	CHECK(!send_sge(&mine, 0, sge(place_mr, 0, sizeof(place)), 0));
	good(mine.id->send_cq, 1);
	poll_for_long(&mine);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(place_mr));
	free(words);
	release(&mine);
}

/* --- the reader ------------------------------------------------------------------ */

static struct reader r;
static struct ibv_mr *sink_mr;
static unsigned char *sink;

static void make_deep_reader(struct end *e)
{
	struct ibv_qp_init_attr attr = { .cap = { READS, WRS, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	CHECK(!rdma_create_qp(e->id, NULL, &attr));
	reader_listens(&r);
}

static uint32_t length_of(uint32_t i)
{
	return i % READS % NTH == NTH / 2 ? LONG : SHORT;
}

/* Where it is read from; of the long ones all is. */
static uint32_t from(uint32_t i)
{
	return length_of(i) == LONG ? 0 : i * SHORT % LONG;
}

/* Where it is read to: all before it have been, too. */
static size_t to(uint32_t i)
{
	uint32_t n = i % READS, longs = (n + NTH / 2 - 1) / NTH;

	return (size_t)longs * LONG + (size_t)(n - longs) * SHORT;
}

static void start(int port, uint32_t depth)
{
	size_t all = to(READS - 1) + LONG;

	r = (struct reader){};
	read_depth = depth;
	r.pid = start_case("keeps_much_and_polls", port);
	accept_end(&r.e, make_deep_reader);
	good(r.e.id->recv_cq, 1);
	sink = malloc(all);
	CHECK(sink);
	sink_mr = ibv_reg_mr(r.e.id->pd, sink, all, IBV_ACCESS_LOCAL_WRITE);
	CHECK(sink_mr);
}

static void leave(void)
{
	CHECK(!ibv_dereg_mr(sink_mr));
	free(sink);
	reader_leaves(&r);
	ends_well(r.pid);
}

static void post_nth(uint32_t i)
{
	int fence = i % READS == FENCED ? IBV_SEND_FENCE : 0;

	memset(sink + to(i), 0, length_of(i));
	CHECK(!post(&r.e, i, IBV_WR_RDMA_READ, sge(sink_mr, to(i), length_of(i)), r.at.to + from(i),
		    r.at.rkey, IBV_SEND_SIGNALED | fence));
}

static void next_is(uint32_t i)
{
	const uint32_t *words = (const uint32_t *)(sink + to(i));
	uint32_t first = from(i) / sizeof(*words);
	struct ibv_wc wc = polled(r.e.id->send_cq);

	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == i);
	for (uint32_t k = 0; k < length_of(i) / sizeof(*words); k++)
		CHECK(words[k] == word_of(first + k, SEED));
}

static void one_by_one(void)
{
	for (uint32_t i = 0; i < READS; i++)
		post_nth(i);
	for (uint32_t i = 0; i < STREAM; i++) {
		next_is(i);
		if (i + READS < STREAM)
			post_nth(i + READS);
	}
}

static void read_all(uint32_t depth)
{
	start(PORT, depth);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < READS; i++)
			post_nth(i);
		for (uint32_t i = 0; i < READS; i++)
			next_is(i);
	}
	one_by_one();
	rdma_disconnect(r.e.id);
	leave();
}

CASE("reads", reads_of_any_length_complete_in_order)
{
	read_all(128);
}

/* Then they wait for each other's credit, too. */
CASE("reads", few_reads_at_a_time_complete_in_order)
{
	read_all(3);
}

/* While others wait for the answers: whatever is not answered is flushed, in order. */
CASE("reads", readers_go_amid_their_reads)
{
	for (uint32_t n = 0; n < GOES; n++) {
		struct ibv_wc wc;
		uint32_t i;

		start(PORT + n, 128);
		for (i = 0; i < READS; i++)
			post_nth(i);
		for (i = 0; i < n * 8; i++)
			next_is(i);
		rdma_disconnect(r.e.id);
		for (; i < READS; i++) {
			wc = polled(r.e.id->send_cq);
			CHECK(wc.wr_id == i);
		}
		CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
		leave();
	}
}
