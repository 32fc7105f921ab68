// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * An application that streams posts without system calls; one that does not poll
 * is served all the same. Writes of one byte tell when a post has got through.
 */
#define _GNU_SOURCE
#include "verbs.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 200
#define POSTS (ROUNDS * WRS)

static volatile unsigned char *target(void)
{
	return s.buf;
}

/* A write of byte @value; nothing comes back but with IBV_SEND_SIGNALED. */
static void write_byte(int value, int flags)
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
			write_byte(k, 0);
		write_byte(WRS, IBV_SEND_SIGNALED);
		while (ibv_poll_cq(c.id->send_cq, 1, &(struct ibv_wc){}) == 0)
			;
	}
	arrives(WRS);
}

static void few_calls(void)
{
	unsigned long before = counted("tx_doorbells"), calls;

	stream(ROUNDS);
	calls = counted("tx_doorbells") - before;
	printf("%d posts, %lu calls\n", POSTS, calls);
	CHECK(calls > 0 && calls < POSTS / 8);
}

CASE("streams", a_stream_of_posts_makes_few_calls)
{
	few_calls();
}

/* An event that has come is not waited for any more, however often it was asked for. */
CASE("streams", a_stream_after_an_event_makes_few_calls)
{
	for (int armings = 1; armings <= 3; armings++) {
		for (int i = 0; i < armings; i++)
			CHECK(!ibv_req_notify_cq(c.id->send_cq, i & 1));
		write_byte(1, IBV_SEND_SIGNALED);
		CHECK(event_within(c.id->send_cq_channel, 5000));
		expect(c.id->send_cq, 1, IBV_WC_SUCCESS);
		few_calls();
	}
}

/* Were its posts left to a thread of the kernel, that one might not get a CPU from a poller. */
CASE("streams", a_polling_process_needs_no_worker)
{
	unsigned long before = counted("tx_work_queued"), queued;

	stream(ROUNDS);
	queued = counted("tx_work_queued") - before;
	printf("%d rounds, %lu workers\n", ROUNDS, queued);
	CHECK(queued < ROUNDS / 8);
}

/* No polling, no event: only the kernel can find these. */
CASE("streams", unpolled_post_goes_out)
{
	double begin;

	stream(20);
	begin = now();
	for (int i = 0; i < 100; i++) {
		write_byte(100 + i, 0);
		arrives(100 + i);
	}
	printf("100 posts took %.1f ms\n", (now() - begin) * 1e3);
	CHECK(now() - begin < 5);
}

static struct end s2, c2;
static atomic_bool stop;

static void *keep_ringing(void *unused)
{
	stay_on(1);
	while (!stop) {
		CHECK(!send_sge(&c2, 1, sge(c2.own, 0, 8), 0));
		CHECK(polled(c2.id->send_cq).status == IBV_WC_WR_FLUSH_ERR);
	}
	return unused;
}

/* Another thread's doorbells of its own queue pair say nothing about this one. */
CASE_WITH("streams", a_post_beside_a_ringing_thread_goes_out, "sq_poll_interval_us=10000")
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	pthread_t thread;
	int late = 0;
	double began;

	stay_on(0);
	connect_pair(&c2, &s2, NULL);
	CHECK(!ibv_modify_qp(c2.id->qp, &error, IBV_QP_STATE));
	stream(20);
	CHECK(!pthread_create(&thread, NULL, keep_ringing, NULL));
	for (int i = 0; i < 10; i++) {
		began = now();
		write_byte(100 + i, 0);
		arrives(100 + i);
		began = now() - began;
		printf("a post took %.1f ms\n", began * 1e3);
		late += began > 0.095;
	}
	stop = true;
	pthread_join(thread, NULL);
	/* The host of a guest may keep a CPU for as long; if no timer looks, all are late. */
	CHECK(late <= 5);
	release(&c2);
	release(&s2);
}

CASE("streams", a_post_before_sleeping_goes_out)
{
	stream(20);
	for (int i = 0; i < 20; i++) {
		CHECK(!ibv_req_notify_cq(c.id->send_cq, 0));
		write_byte(i, IBV_SEND_SIGNALED);
		CHECK(event_within(c.id->send_cq_channel, 5000));
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
		stream(1);
	}
}

/* What was posted before the sleep was announced goes out with the announcement. */
CASE("streams", arming_announces_what_was_posted)
{
	stream(20);
	for (int i = 0; i < 20; i++) {
		write_byte(i, IBV_SEND_SIGNALED);
		CHECK(!ibv_req_notify_cq(c.id->send_cq, 0));
		if (!ibv_poll_cq(c.id->send_cq, 1, &(struct ibv_wc){})) {
			CHECK(event_within(c.id->send_cq_channel, 5000));
			expect(c.id->send_cq, i, IBV_WC_SUCCESS);
		}
		stream(1);
	}
}

/* Doorbells of a call that is made behind a post, which may have been put off. */
static unsigned long rung_by(int (*call)(void), int id)
{
	unsigned long before;

	stream(3);
	write_byte(100 + id, 0);
	before = counted("tx_doorbells");
	CHECK(!call());
	return counted("tx_doorbells") - before;
}

static int arm(void)
{
	return ibv_req_notify_cq(c.id->send_cq, 0);
}

static int poll_nothing(void)
{
	return ibv_poll_cq(c.id->send_cq, 1, &(struct ibv_wc){});
}

static int poll_for_receives(void)
{
	return ibv_poll_cq(c.id->recv_cq, 1, &(struct ibv_wc){});
}

static int modify_nothing(void)
{
	return ibv_modify_qp(c.id->qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS },
			     IBV_QP_STATE);
}

/*
 * Some posts need no call. One that was put off and is rung for is put off again, or the kernel
 * would have to look from then on.
 */
static void rings_each_time(int (*call)(void))
{
	int rang = 0;

	for (int i = 0; i < 30 && rang < 3; i++) {
		rang += rung_by(call, i) > 0;
		arrives(100 + i);
	}
	CHECK(rang == 3);
}

/* It does not wait for the kernel to look, which happens as well. */
CASE_WITH("streams", arming_rings_for_what_was_put_off, "sq_poll_interval_us=10000")
{
	int rang = 0;

	for (int i = 0; i < 30 && rang < 3; i++) {
		rang += rung_by(arm, i) > 0;
		write_byte(i, IBV_SEND_SIGNALED);
		CHECK(event_within(c.id->send_cq_channel, 5000));
		expect(c.id->send_cq, i, IBV_WC_SUCCESS);
	}
	CHECK(rang == 3);
}

/* So does a poll that finds nothing. */
CASE_WITH("streams", polling_rings_for_what_was_put_off, "sq_poll_interval_us=10000")
{
	rings_each_time(poll_nothing);
}

/* Whichever of its queues a program polls: one that waits for an answer polls that of receives. */
CASE_WITH("streams", polling_for_receives_rings_for_what_was_put_off, "sq_poll_interval_us=10000")
{
	rings_each_time(poll_for_receives);
}

/* So does a call that may end the connection; here it changes nothing. */
CASE_WITH("streams", modifying_rings_for_what_was_put_off, "sq_poll_interval_us=10000")
{
	rings_each_time(modify_nothing);
}

/* --- posts that are put off, and the end of their queue pair ----------------------------- */

static __thread unsigned int commands; /* of this thread */
static __thread bool stops; /* in its next one */
static atomic_bool inside, go_on;

/* Of the libraries as well. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	commands++;
	if (stops)
		inside = true;
	while (stops && !go_on)
		usleep(1000);
	return syscall(SYS_ioctl, fd, request, arg);
}

/* A program that posts one request, and takes its completion, streams no more. */
CASE_WITH("streams", a_post_after_a_stream_goes_out_at_once, "sq_poll_interval_us=10000")
{
	const int posts = 20;
	unsigned int before;
	int rang = 0;

	for (int i = 0; i < posts; i++) {
		stream(3);
		write_byte(i, IBV_SEND_SIGNALED);
		good(c.id->send_cq, 1);
		usleep(1000); /* the kernel has done with it */
		before = commands;
		write_byte(100 + i, 0);
		rang += commands != before;
		arrives(100 + i);
	}
	printf("rang for %d of %d posts\n", rang, posts);
	CHECK(rang > posts / 2);
}

/* A post behind which no doorbell was rung. */
static void put_off(void)
{
	unsigned int before;
	int tries = 0;

	do {
		CHECK(tries++ < 100);
		stream(3);
		usleep(1000); /* the kernel has done with it */
		before = commands;
		write_byte(100, 0);
	} while (commands != before);
}

/* A thread that stops in the doorbell for such a post. */
static void *rings(void *unused)
{
	int tries = 0;

	while (!inside) {
		CHECK(tries++ < 100);
		put_off();
		stops = true;
		poll_nothing();
		stops = false;
	}
	return unused;
}

static void is_rung_for(pthread_t *thread)
{
	CHECK(!pthread_create(thread, NULL, rings, NULL));
	while (!inside)
		usleep(1000);
}

static void destroy_qp(void)
{
	CHECK(!ibv_destroy_qp(c.id->qp));
	c.id->qp = NULL;
}

static atomic_bool destroyed;

static void *destroys(void *unused)
{
	destroy_qp();
	destroyed = true;
	return unused;
}

/* The thread that rings goes on with what is the queue pair's. */
CASE_WITH("streams", destroying_waits_for_a_doorbell, "sq_poll_interval_us=10000")
{
	pthread_t ringing, destroying;

	is_rung_for(&ringing);
	CHECK(!pthread_create(&destroying, NULL, destroys, NULL));
	usleep(200000);
	CHECK(!destroyed);
	go_on = true;
	pthread_join(destroying, NULL);
	pthread_join(ringing, NULL);
}

/* A poll that finds nothing does not ring for one that is gone. */
CASE_WITH("streams", destroying_forgets_what_was_put_off, "sq_poll_interval_us=10000")
{
	unsigned int before;

	put_off();
	destroy_qp();
	before = commands;
	CHECK(!poll_nothing() && !ibv_poll_cq(c.id->recv_cq, 1, &(struct ibv_wc){}));
	CHECK(commands == before);
}

UNLISTED(goes_on_amid_a_doorbell)
{
	pthread_t thread;

	share(&c);
	share(&s);
	is_rung_for(&thread);
	become_a_daemon();
	alarm(30);
	for (int i = 0; i < 10; i++)
		rung_by(poll_nothing, i);
	rdma_destroy_qp(c.id);
}

/* A daemon does not wait for a call of a thread that it does not have. */
CASE_WITH("streams", a_daemon_amid_a_doorbell_goes_on, "sq_poll_interval_us=10000")
{
	daemon_ends_well("goes_on_amid_a_doorbell");
}

/* A message that was posted last is not lost with its queue pair. */
CASE("streams", a_post_before_destroying_goes_out)
{
	stream(20);
	write_byte(77, 0);
	rdma_destroy_qp(c.id);
	arrives(77);
}
