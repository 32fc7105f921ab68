// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Long messages both ways at once, with every byte compared; to a process that is stopped
 * or killed; and connections that end amid Writes and Reads while another thread polls.
 */
#include "verbs.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG (1U << 20)
#define MESSAGES 4 /* of a kind, at once */
#define ROUNDS 8
#define PORT 7556 /* of the first that is started */
#define STOPS 12
#define KILLS 10
#define ENDS 8 /* each takes a second beside a thread that polls */

/* What an end sends, what it gets by Sends and by Writes, and what it reads into. */
struct side {
	struct end *e;
	uint32_t *out, *in, *target, *back;
	struct ibv_mr *out_mr, *in_mr, *target_mr, *back_mr;
	struct side *peer;
};

static uint32_t *region(struct end *e, struct ibv_mr **mr)
{
	void *at = calloc(MESSAGES, LONG);

	CHECK(at);
	*mr = ibv_reg_mr(e->id->pd, at, MESSAGES * LONG,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(*mr);
	return at;
}

static void drop(uint32_t *at, struct ibv_mr *mr)
{
	CHECK(!ibv_dereg_mr(mr));
	free(at);
}

static void open_side(struct side *side, struct end *e, struct side *peer)
{
	side->e = e;
	side->peer = peer;
	side->out = region(e, &side->out_mr);
	side->in = region(e, &side->in_mr);
	side->target = region(e, &side->target_mr);
	side->back = region(e, &side->back_mr);
}

static void close_side(struct side *side)
{
	drop(side->out, side->out_mr);
	drop(side->in, side->in_mr);
	drop(side->target, side->target_mr);
	drop(side->back, side->back_mr);
}

static void write_words(uint32_t *at, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes / sizeof(*at); i++)
		at[i] = word_of(i, seed);
}

static void check_words(const uint32_t *at, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes / sizeof(*at); i++)
		CHECK(at[i] == word_of(i, seed));
}

/* --- both ends poll ------------------------------------------------------------- */

/* Each end's words of a round. */
static uint32_t seed_of(const struct side *side, int round)
{
	return round << 1 | (side->e == &c);
}

/* For the Sends of a round, the one that says that Writes are done, and the last one. */
static void receives(struct side *side)
{
	for (int i = 0; i < MESSAGES; i++)
		CHECK(!recv_sge(side->e, i, sge(side->in_mr, i * LONG, LONG)));
	for (int i = 0; i < 2; i++)
		CHECK(!recv_sge(side->e, MESSAGES + i, sge(side->e->own, 0, 8)));
}

static void post_longs(struct side *side, enum ibv_wr_opcode op, struct ibv_mr *local,
		       struct ibv_mr *remote)
{
	for (int i = 0; i < MESSAGES; i++)
		CHECK(!post(side->e, i, op, sge(local, i * LONG, LONG),
			    (uintptr_t)remote->addr + i * LONG, remote->rkey, IBV_SEND_SIGNALED));
}

static void one_round(struct side *side, int round)
{
	struct rdma_cm_id *id = side->e->id;
	uint32_t theirs = seed_of(side->peer, round);

	write_words(side->out, MESSAGES * LONG, seed_of(side, round));
	post_longs(side, IBV_WR_SEND, side->out_mr, side->out_mr);
	post_longs(side, IBV_WR_RDMA_WRITE, side->out_mr, side->peer->target_mr);
	CHECK(!send_sge(side->e, MESSAGES, sge(side->e->own, 8, 8), 0));
	good(id->recv_cq, MESSAGES + 1);
	check_words(side->in, MESSAGES * LONG, theirs);
	check_words(side->target, MESSAGES * LONG, theirs);
	good(id->send_cq, 2 * MESSAGES + 1);
	post_longs(side, IBV_WR_RDMA_READ, side->back_mr, side->peer->out_mr);
	good(id->send_cq, MESSAGES);
	check_words(side->back, MESSAGES * LONG, theirs);
	receives(side);
	CHECK(!send_sge(side->e, MESSAGES + 1, sge(side->e->own, 8, 8), 0));
	good(id->send_cq, 1);
	good(id->recv_cq, 1);
}

static void *all_rounds(void *arg)
{
	for (int round = 1; round <= ROUNDS; round++)
		one_round(arg, round);
	return NULL;
}

CASE("long messages", long_messages_arrive_whole)
{
	struct side a = {}, b = {};
	pthread_t thread;

	open_side(&a, &c, &b);
	open_side(&b, &s, &a);
	receives(&a);
	receives(&b);
	CHECK(!pthread_create(&thread, NULL, all_rounds, &b));
	all_rounds(&a);
	pthread_join(thread, NULL);
	close_side(&a);
	close_side(&b);
}

/* --- the other end is a process that stops -------------------------------------- */

/* Run by the cases below, as a process of its own, until the other end goes. */
UNLISTED(receives_long_messages)
{
	struct end mine = {};
	struct ibv_mr *mr;
	uint32_t *in;

	unsetenv("VERBS_PORT"); /* connect to the process that started us */
	connect_end(&mine);
	in = region(&mine, &mr);
	for (int i = 0; i < MESSAGES; i++)
		CHECK(!recv_sge(&mine, i, sge(mr, i * LONG, LONG)));
	send_empty(&mine);
	for (uint32_t n = 0;; n++) {
		uint32_t *at = in + n % MESSAGES * (LONG / sizeof(*in));
		struct ibv_wc wc = polled(mine.id->recv_cq);

		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			break;
		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == n % MESSAGES);
		check_words(at, LONG, n / MESSAGES);
		CHECK(!recv_sge(&mine, wc.wr_id, sge(mr, wc.wr_id * LONG, LONG)));
		if (n % MESSAGES == MESSAGES - 1)
			send_empty(&mine);
	}
	drop(in, mr);
	release(&mine);
}

/* As many as it has room for; the words of each say which round it is. */
static void send_longs(struct end *e, struct ibv_mr *mr, uint32_t round)
{
	for (int i = 0; i < MESSAGES; i++) {
		write_words((uint32_t *)mr->addr + i * (LONG / 4), LONG, round);
		CHECK(!send_sge(e, i, sge(mr, i * LONG, LONG), 0));
	}
}

static pid_t start_receiver(struct end *e, int port)
{
	pid_t pid = start_case("receives_long_messages", port);

	accept_end(e, make_receiving);
	good(e->id->recv_cq, 1);
	return pid;
}

/* It polled and does not any more: what it has posted receives for arrives all the same. */
CASE("long messages", stopped_process_delays_no_other)
{
	struct end mine = {};
	struct ibv_mr *mr;
	uint32_t *out;
	pid_t pid;

	pid = start_receiver(&mine, PORT);
	out = region(&mine, &mr);
	for (int round = 0; round < STOPS; round++) {
		double begin;

		send_longs(&mine, mr, round);
		usleep(round % 2 * round * 100);
		CHECK(!kill(pid, SIGSTOP));
		begin = now();
		good(mine.id->send_cq, MESSAGES);
		CHECK(now() - begin < 5);
		CHECK(!kill(pid, SIGCONT));
		post_empty_recv(&mine);
		good(mine.id->recv_cq, 1);
	}
	rdma_disconnect(mine.id);
	ends_well(pid);
	drop(out, mr);
	release(&mine);
}

CASE("long messages", kill_isolated)
{
	for (int i = 0; i < KILLS; i++) {
		struct end mine = {};
		struct ibv_mr *mr;
		uint32_t *out;
		pid_t pid;

		pid = start_receiver(&mine, PORT + i);
		out = region(&mine, &mr);
		send_longs(&mine, mr, 0);
		usleep(i * 150);
		CHECK(!kill(pid, SIGKILL));
		CHECK(waitpid(pid, NULL, 0) == pid);
		for (int n = 0; n < MESSAGES; n++)
			polled(mine.id->send_cq);
		rdma_disconnect(mine.id);
		drop(out, mr);
		release(&mine);
		works(&c, &s);
	}
}

/* --- connections end while a thread polls ------------------------------------------ */

static volatile int stop;

static void *poll_empty(void *cq)
{
	while (!stop)
		CHECK(!ibv_poll_cq(cq, 1, &(struct ibv_wc){}));
	return NULL;
}

/* Both ends go, one of them first, after @i has said how much of it is done. */
static void end_amid(enum ibv_wr_opcode op, int i)
{
	struct end client = {}, server = {};

	connect_pair(&client, &server, NULL);
	for (int k = 0; k < WRS; k++)
		CHECK(!post(&client, k, op, sge(client.own, 0, BYTES), (uintptr_t)server.buf,
			    server.open->rkey, IBV_SEND_SIGNALED));
	if (i % 4)
		usleep(i * 50);
	else
		good(client.id->send_cq, WRS);
	rdma_disconnect(i & 1 ? client.id : server.id);
	rdma_destroy_qp(i & 2 ? client.id : server.id);
	release(i & 1 ? &server : &client);
	release(i & 1 ? &client : &server);
}

static void ends_amid(enum ibv_wr_opcode op)
{
	pthread_t thread;

	stop = 0;
	CHECK(!pthread_create(&thread, NULL, poll_empty, s.id->send_cq));
	for (int i = 0; i < ENDS; i++)
		end_amid(op, i);
	stop = 1;
	pthread_join(thread, NULL);
	works(&c, &s);
}

CASE("long messages", queue_pairs_end_amid_writes)
{
	ends_amid(IBV_WR_RDMA_WRITE);
}

CASE("long messages", queue_pairs_end_amid_reads)
{
	ends_amid(IBV_WR_RDMA_READ);
}
