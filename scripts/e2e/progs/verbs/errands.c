// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A thread that polls in vain is given errands by the kernel: it reads long messages
 * and answers long Reads. Every octet is looked at; whoever does not come for its
 * errands, or comes without any, is served all the same.
 */
#include "verbs.h"

#include <pthread.h>
#include <unistd.h>

#include "../../../../drivers/weft/uapi/weft-abi.h"

#define LONG (1U << 20)
#define MESSAGES 32
#define AREA (2 * LONG)

static unsigned char *from, *to;
static struct ibv_mr *from_mr, *to_mr;
static volatile int stop;

static struct ibv_mr *area(struct end *e, unsigned char **at)
{
	struct ibv_mr *mr;

	*at = calloc(1, AREA);
	CHECK(*at);
	mr = ibv_reg_mr(e->id->pd, *at, AREA,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	return mr;
}

static void open_areas(void)
{
	from_mr = area(&c, &from);
	to_mr = area(&s, &to);
}

static void close_areas(void)
{
	CHECK(!ibv_dereg_mr(from_mr) && !ibv_dereg_mr(to_mr));
	free(from);
	free(to);
}

static void pattern(unsigned char *at, uint32_t seed)
{
	for (uint32_t i = 0; i < LONG / sizeof(seed); i++)
		((uint32_t *)at)[i] = (i + 1) * 2654435761U ^ seed;
}

/* Nothing comes into this queue: whoever polls it polls in vain. */
static void *poll_in_vain(void *arg)
{
	while (!stop)
		CHECK(!ibv_poll_cq(arg, 1, &(struct ibv_wc){}));
	return NULL;
}

/* For a while, then for a longer while not at all. */
static void *poll_now_and_then(void *arg)
{
	while (!stop) {
		for (int i = 0; i < 5000; i++)
			CHECK(!ibv_poll_cq(arg, 1, &(struct ibv_wc){}));
		usleep(3000);
	}
	return NULL;
}

static void done(uint64_t id)
{
	double end = now() + SECONDS;
	struct ibv_wc wc;

	while (!ibv_poll_cq(c.id->send_cq, 1, &wc))
		CHECK(now() < end);
	CHECK(wc.wr_id == id && wc.status == IBV_WC_SUCCESS);
}

static void written(uint32_t seed)
{
	pattern(from, seed);
	CHECK(!post(&c, seed, IBV_WR_RDMA_WRITE, sge(from_mr, 0, LONG), (uintptr_t)to, to_mr->rkey,
		    0));
	CHECK(!post(&c, seed, IBV_WR_RDMA_READ, sge(from_mr, LONG, LONG), (uintptr_t)to,
		    to_mr->rkey, IBV_SEND_SIGNALED));
	done(seed);
	CHECK(!memcmp(to, from, LONG) && !memcmp(from + LONG, from, LONG));
}

static void sent(uint32_t seed)
{
	double end = now() + SECONDS;
	struct ibv_wc wc;

	pattern(from, ~seed);
	CHECK(!recv_sge(&s, seed, sge(to_mr, LONG, LONG)));
	CHECK(!send_sge(&c, seed, sge(from_mr, 0, LONG), IBV_SEND_SIGNALED));
	while (!ibv_poll_cq(s.id->recv_cq, 1, &wc))
		CHECK(now() < end);
	CHECK(wc.wr_id == seed && wc.status == IBV_WC_SUCCESS && wc.byte_len == LONG);
	CHECK(!memcmp(to + LONG, from, LONG));
	done(seed);
}

static unsigned long traffic(void)
{
	unsigned long before = counted("errands");

	for (uint32_t i = 1; i <= MESSAGES; i++) {
		written(i);
		sent(i);
	}
	return counted("errands") - before;
}

/* Beside a thread that does @what with the CQ that server never sends by. */
static unsigned long traffic_beside(void *(*what)(void *))
{
	unsigned long errands;
	pthread_t thread;

	open_areas();
	stop = 0;
	CHECK(!pthread_create(&thread, NULL, what, s.id->send_cq));
	errands = traffic();
	stop = 1;
	CHECK(!pthread_join(thread, NULL));
	close_areas();
	return errands;
}

/* Where both threads have the same CPU for a while there is nobody to spare. */
static void who_polls_is_given_errands(void)
{
	double end = now() + SECONDS;
	unsigned long errands;

	do {
		errands = traffic_beside(poll_in_vain);
		printf("%lu errands for %d messages of each kind\n", errands, MESSAGES);
	} while (!errands && now() < end);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		CHECK(errands > 0);
}

/* With the knob at 0. */
static void nobody_is_given_errands(void)
{
	CHECK(!traffic_beside(poll_in_vain));
}

static void who_polls_now_and_then_waits_for_nothing(void)
{
	double begin = now();

	printf("%lu errands\n", traffic_beside(poll_now_and_then));
	CHECK(now() - begin < SECONDS);
}

/* --- somebody who lies -------------------------------------------------------- */

static void *count_without_polling(void *arg)
{
	struct weft_ctx_ctl *ctl = arg;

	while (!stop)
		__atomic_add_fetch(&ctl->polls, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void write_and_look(uint32_t seed)
{
	double end = now() + SECONDS;

	pattern(from, seed);
	CHECK(!post(&c, seed, IBV_WR_RDMA_WRITE, sge(from_mr, 0, LONG), (uintptr_t)to, to_mr->rkey,
		    0));
	while (memcmp(to, from, LONG))
		CHECK(now() < end);
}

/* Nobody polls, so nobody sees that there are errands. */
static void who_lies_waits_a_little(void)
{
	struct weft_ctx_ctl *ctl = control_block();
	unsigned long begin = counted("errands_late"), late;
	double end = now() + SECONDS;
	uint32_t seed = 0;
	pthread_t thread;

	open_areas();
	stop = 0;
	CHECK(!pthread_create(&thread, NULL, count_without_polling, ctl));
	do {
		for (int i = 0; i < MESSAGES; i++)
			write_and_look(++seed);
		late = counted("errands_late") - begin;
	} while (!late && now() < end);
	stop = 1;
	CHECK(!pthread_join(thread, NULL));
	printf("%lu errands that nobody came for, in %u messages\n", late, seed);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		CHECK(late > 0);
	close_areas();
	works(&c, &s);
}

/* Comes again and again, also when there is nothing, or the device is about to go. */
static void *help_always(void *arg)
{
	while (!stop) {
		help_unasked();
		CHECK(!ibv_poll_cq(arg, 1, &(struct ibv_wc){}));
	}
	return NULL;
}

static void who_comes_unasked_finds_nothing(void)
{
	traffic_beside(help_always);
}

/* Connections end while a thread may be at errands for them. */
static void errands_end_with_their_connection(void)
{
	pthread_t thread;

	stop = 0;
	CHECK(!pthread_create(&thread, NULL, help_always, s.id->send_cq));
	for (int i = 0; i < 30; i++) {
		struct end client = {}, server = {};
		struct ibv_mr *mr;
		unsigned char *at;

		connect_pair(&client, &server, NULL);
		mr = area(&server, &at);
		for (int k = 0; k < WRS; k++)
			CHECK(!post(&client, k, IBV_WR_RDMA_READ, sge(client.own, 0, BYTES),
				    (uintptr_t)at, mr->rkey, IBV_SEND_SIGNALED));
		for (int k = 0; k < 200 * i; k++)
			ibv_poll_cq(server.id->send_cq, 1, &(struct ibv_wc){});
		rdma_disconnect(i & 1 ? client.id : server.id);
		rdma_destroy_qp(i & 2 ? client.id : server.id);
		CHECK(!ibv_dereg_mr(mr));
		release(i & 1 ? &server : &client);
		release(i & 1 ? &client : &server);
		free(at);
	}
	stop = 1;
	CHECK(!pthread_join(thread, NULL));
	works(&c, &s);
}

const struct test_case errand_cases[] = {
	CASE(who_polls_is_given_errands),
	CASE(nobody_is_given_errands),
	CASE(who_polls_now_and_then_waits_for_nothing),
	CASE(who_lies_waits_a_little),
	CASE(who_comes_unasked_finds_nothing),
	CASE(errands_end_with_their_connection),
	{},
};
