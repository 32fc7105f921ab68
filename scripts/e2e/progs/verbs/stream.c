// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * An application that streams posts without system calls; one that does not poll
 * is served all the same. Writes of one octet tell when a post has got through.
 */
#define _GNU_SOURCE
#include "verbs.h"

#include <pthread.h>
#include <unistd.h>

#define ROUNDS 200
#define POSTS (ROUNDS * WRS)

static volatile unsigned char *target(void)
{
	return s.buf;
}

/* A write of octet @value; nothing comes back but with IBV_SEND_SIGNALED. */
static void write_octet(int value, int flags)
{
	c.buf[BYTES] = value;
	CHECK(!post(&c, value, IBV_WR_RDMA_WRITE, sge(c.own, 0, 1), (uintptr_t)s.buf, s.open->rkey,
		    flags));
}

static void arrives(int value)
{
	double end = now() + SECONDS;

	while (*target() != (unsigned char)value)
		CHECK(now() < end);
}

/* As much as the queue takes, then its last completion, again and again. */
static void stream(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		for (int k = 1; k < WRS; k++)
			write_octet(k, 0);
		write_octet(WRS, IBV_SEND_SIGNALED);
		while (ibv_poll_cq(c.id->send_cq, 1, &(struct ibv_wc){}) == 0)
			;
	}
	arrives(WRS);
}

/* What the device has counted; the core reads its counters afresh by and by. */
static unsigned long counted(const char *name)
{
	unsigned long value;
	char path[256];
	FILE *f;

	usleep(50000);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(c.id->verbs->device), name);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%lu", &value) == 1);
	fclose(f);
	return value;
}

static void a_stream_of_posts_makes_few_calls(void)
{
	unsigned long before = counted("kicks_inline"), calls;

	stream(ROUNDS);
	calls = counted("kicks_inline") - before;
	printf("%d posts, %lu calls\n", POSTS, calls);
	CHECK(calls > 0 && calls < POSTS / 8);
}

/* No polling, no event: only the kernel can find these. */
static void a_post_that_nobody_polls_for_goes_out(void)
{
	double begin;

	stream(20);
	begin = now();
	for (int i = 0; i < 100; i++) {
		write_octet(100 + i, 0);
		arrives(100 + i);
	}
	printf("100 posts took %.1f ms\n", (now() - begin) * 1e3);
	CHECK(now() - begin < 5);
}

static void a_post_before_sleeping_goes_out(void)
{
	stream(20);
	for (int i = 0; i < 20; i++) {
		CHECK(!ibv_req_notify_cq(c.id->send_cq, 0));
		write_octet(i, IBV_SEND_SIGNALED);
		CHECK(event_within(c.id->send_cq_channel, 5000));
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
		stream(1);
	}
}

/* What was posted before the sleep was announced goes out with the announcement. */
static void arming_announces_what_was_posted(void)
{
	stream(20);
	for (int i = 0; i < 20; i++) {
		write_octet(i, IBV_SEND_SIGNALED);
		CHECK(!ibv_req_notify_cq(c.id->send_cq, 0));
		if (!ibv_poll_cq(c.id->send_cq, 1, &(struct ibv_wc){})) {
			CHECK(event_within(c.id->send_cq_channel, 5000));
			expect(c.id->send_cq, i, IBV_WC_SUCCESS);
		}
		stream(1);
	}
}

/* A message that was posted last is not lost with its queue pair. */
static void a_post_before_destroying_goes_out(void)
{
	stream(20);
	write_octet(77, 0);
	rdma_destroy_qp(c.id);
	arrives(77);
}

/* --- somebody who writes where the kernel reads -------------------------------- */

#define REGIONS 64
#define WORDS 32	/* of the control block in front of every queue */

static struct end s2, c2;
static volatile uint32_t *control[REGIONS];
static int regions;
static volatile int stop;

/* The mappings of the verbs device, which are queues. */
static int queues(volatile uint32_t **found)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	CHECK(f);
	while (n < REGIONS && fgets(line, sizeof(line), f))
		if (strstr(line, "uverbs"))
			found[n++] = (void *)strtoul(line, NULL, 16);
	fclose(f);
	return n;
}

static int is_one_of(volatile uint32_t *const *list, int n, volatile uint32_t *queue)
{
	while (n--)
		if (list[n] == queue)
			return 1;
	return 0;
}

/* Another connection; @control is what its queues are controlled with. */
static void connect_victims(void)
{
	volatile uint32_t *before[REGIONS], *after[REGIONS];
	int old = queues(before), all;

	connect_pair(&c2, &s2, NULL);
	all = queues(after);
	while (all--)
		if (!is_one_of(before, old, after[all]))
			control[regions++] = after[all];
	CHECK(regions >= 4);
}

static void *scribble(void *arg)
{
	unsigned int seed = 1;

	while (!stop)
		control[rand_r(&seed) % regions][rand_r(&seed) % WORDS] =
			rand_r(&seed) % 3 ? (uint32_t)rand_r(&seed) : (uint32_t)rand_r(&seed) % 4;
	return arg;
}

static void scribbled_words_hurt_nobody_else(void)
{
	struct ibv_wc wc;
	pthread_t thread;
	double end;

	connect_victims();
	CHECK(!pthread_create(&thread, NULL, scribble, NULL));
	for (end = now() + 1; now() < end; works(&c, &s)) {
		for (int i = 0; i < WRS; i++)
			post(&c2, i, IBV_WR_SEND, sge(c2.own, 0, 8), 0, 0, IBV_SEND_SIGNALED);
		recv_sge(&s2, 1, sge(s2.own, 0, 8));
		ibv_poll_cq(c2.id->send_cq, 1, &wc);
		ibv_poll_cq(s2.id->recv_cq, 1, &wc);
	}
	stop = 1;
	pthread_join(thread, NULL);
	release(&c2);
	release(&s2);
	works(&c, &s);
}

const struct test_case stream_cases[] = {
	CASE(a_stream_of_posts_makes_few_calls),
	CASE(a_post_that_nobody_polls_for_goes_out),
	CASE(a_post_before_sleeping_goes_out),
	CASE(arming_announces_what_was_posted),
	CASE(a_post_before_destroying_goes_out),
	CASE(scribbled_words_hurt_nobody_else),
	{},
};
