// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Somebody reads from a process that polls in vain, one short Read after the other: the
 * process becomes porter and hears of the Reads itself. Here the reader is we, and who is
 * read from another process, which does not poll, or has more to do, is stopped or
 * killed, or lies.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader.h"
#include "shop.h"
#include "verbs.h"

#define PORT 7556 /* of the first that is started */
#define ROUNDS 8  /* of these, until somebody should be porter */
#define SLOW 50e-6 /* seconds */
#define KILLS 10
#define STOPS 3
#define EXITS 20
#define PAIRS 4
#define MESSAGES 60

/* --- one polls and is porter ------------------------------------------------------- */

/* Return: it was many, of these. A stay of a porter is too short for two that are slow. */
static int heard_of(void (*some)(struct reader *r), struct reader *r)
{
	unsigned long before = counted("posts_heard"), heard;
	double begin = now(), each;

	for (int i = 0; i < ROUNDS; i++)
		some(r);
	each = (now() - begin) / (ROUNDS * READER_WORDS);
	heard = counted("posts_heard") - before;
	printf("%lu of %d heard, %.1f us each\n", heard, ROUNDS * READER_WORDS, each * 1e6);
	return heard >= (each < SLOW ? ROUNDS * READER_WORDS / 4 : 1);
}

/*
 * A porter that was needed elsewhere is not asked again soon, so if there was no CPU for
 * one just then, another process has a try. With one CPU there is never any.
 */
static void start_porter(struct reader *r, void (*some)(struct reader *r))
{
	double until = now() + SECONDS;

	reader_starts(r, "polls", PORT);
	while (!heard_of(some, r) && sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		CHECK(now() < until);
		reader_ends(r);
		*r = (struct reader){};
		reader_starts(r, "polls", PORT);
	}
}

static void who_polls_is_porter(void (*some)(struct reader *r))
{
	struct reader r = {};

	start_porter(&r, some);
	reader_ends(&r);
}

static void who_polls_hears_of_reads(void)
{
	who_polls_is_porter(read_words);
}

static void who_polls_hears_of_atomics(void)
{
	who_polls_is_porter(add_up);
}

static void read_and_add_up(struct reader *r)
{
	read_words(r);
	add_up(r);
}

static void nobody_hears(const char *name, void (*some)(struct reader *r))
{
	unsigned long heard = counted("posts_heard"), porters = counted("porters");
	struct reader r = {};

	reader_starts(&r, name, PORT);
	heard_of(some, &r);
	CHECK(counted("posts_heard") == heard && counted("porters") == porters);
	reader_ends(&r);
}

/* With the knob at 0. */
static void nobody_is_porter(void)
{
	nobody_hears("polls", read_and_add_up);
}

static void let_help(int on)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/weft/helpers",
		 ibv_get_device_name(c.id->verbs->device));
	f = fopen(path, "w");
	CHECK(f && fprintf(f, "%d", on) > 0 && !fclose(f));
}

/* The knob goes to 0 while one is at work; who runs us puts it back. */
static void a_porter_goes_when_told(void)
{
	struct reader r = {};
	unsigned long heard;

	start_porter(&r, read_words);
	let_help(0);
	read_words(&r);
	heard = counted("posts_heard");
	read_words(&r);
	CHECK(counted("posts_heard") == heard);
	reader_ends(&r);
}

static void who_waits_for_events_is_no_porter(void)
{
	nobody_hears("waits_for_events", read_and_add_up);
}

static void who_sleeps_is_no_porter(void)
{
	nobody_hears("sleeps", read_and_add_up);
}

/* The post must not wait for the reader to poll, with a porter or without. */
static void who_reads_may_wait_for_events(void)
{
	struct reader r = {};

	reader_starts(&r, "polls", PORT);
	for (uint32_t i = 0; i < READER_WORDS; i++) {
		read_by_event(&r, i);
		if (i % 50 == 0)
			read_words(&r);
	}
	reader_ends(&r);
}

static void read_by_events(struct reader *r)
{
	for (uint32_t i = 0; i < READER_WORDS; i++)
		read_by_event(r, i);
}

/* A porter would have to wake it. */
static void who_only_waits_for_events_has_no_porter(void)
{
	nobody_hears("polls", read_by_events);
}

/* --- the porter has something else to do ------------------------------------------ */

static int by_time(const void *a, const void *b)
{
	double diff = *(const double *)a - *(const double *)b;

	return (diff > 0) - (diff < 0);
}

/* On a busy machine most wait for a CPU, but not all of them do. */
static double usual(double *times, int count)
{
	qsort(times, count, sizeof(*times), by_time);
	return times[count / 10];
}

/* Something for the porter itself; reading goes on until it has answered. */
static double time_one(struct reader *r, uint64_t *writes)
{
	uint64_t *out = (uint64_t *)r->e.own->addr + 1;
	double begin;
	uint32_t i;

	hear(&r->e);
	begin = now();
	if (writes) {
		*out = ++*writes;
		CHECK(!post(&r->e, 0, IBV_WR_RDMA_WRITE, sge(r->e.own, 8, 8),
			    r->at.to + offsetof(struct shop, written), r->at.rkey, 0));
	} else {
		CHECK(!post(&r->e, 0, IBV_WR_SEND, sge(r->e.own, 0, 0), 0, 0, 0));
	}
	for (i = 0; !ibv_poll_cq(r->e.id->recv_cq, 1, &(struct ibv_wc){}); i++) {
		read_one(r, i % SHOP_WORDS);
		CHECK(now() - begin < SECONDS);
	}
	return now() - begin;
}

static void a_porter_sees_what_is_for_itself(void)
{
	unsigned long heard = counted("posts_heard");
	double sends[MESSAGES], writes[MESSAGES];
	struct reader r = {};
	uint64_t written = 0;

	reader_starts(&r, "answers", PORT);
	for (int i = 0; i < MESSAGES; i++) {
		read_for(&r, 12e-3);
		sends[i] = time_one(&r, NULL);
		read_for(&r, 12e-3);
		writes[i] = time_one(&r, &written);
	}
	printf("%lu heard, Sends answered after %.0f us, Writes after %.0f us\n",
	       counted("posts_heard") - heard, usual(sends, MESSAGES) * 1e6,
	       usual(writes, MESSAGES) * 1e6);
	CHECK(usual(sends, MESSAGES) < 1e-3 && usual(writes, MESSAGES) < 1e-3);
	reader_ends(&r);
}

/* --- the porter is stopped, killed, or lies ---------------------------------------- */

static void a_stopped_porter_delays_nobody(void)
{
	struct reader r = {};

	start_porter(&r, read_words);
	for (int i = 0; i < STOPS; i++) {
		double begin;

		read_words(&r);
		CHECK(!kill(r.pid, SIGSTOP));
		begin = now();
		read_words(&r);
		CHECK(now() - begin < 5);
		usleep(100000);
		CHECK(!kill(r.pid, SIGCONT));
		read_words(&r);
	}
	reader_ends(&r);
}

/* Until the connection is gone. */
static void *read_on(void *arg)
{
	struct reader *r = arg;
	struct ibv_wc wc;

	do {
		post_read(r, 0);
		wc = polled(r->e.id->send_cq);
	} while (wc.status == IBV_WC_SUCCESS);
	return NULL;
}

static void a_killed_porter_ends_its_connection(void)
{
	for (int i = 0; i < KILLS; i++) {
		struct reader r = {};
		pthread_t thread;

		reader_starts(&r, "polls", PORT + i);
		CHECK(!pthread_create(&thread, NULL, read_on, &r));
		usleep(20000 + i * 170);
		CHECK(!kill(r.pid, SIGKILL));
		CHECK(waitpid(r.pid, NULL, 0) == r.pid);
		pthread_join(thread, NULL);
		rdma_disconnect(r.e.id);
		reader_leaves(&r);
	}
	works(&c, &s);
}

static void a_bad_read_fails_at_a_porter(void)
{
	struct reader r = {};

	start_porter(&r, read_words);
	CHECK(!post(&r.e, 1, IBV_WR_RDMA_READ, sge(r.e.own, 0, 4), r.at.to, r.at.rkey ^ 0x100,
		    IBV_SEND_SIGNALED));
	CHECK(polled(r.e.id->send_cq).status == IBV_WC_REM_ACCESS_ERR);
	ends_well(r.pid);
	reader_leaves(&r);
}

static void read_from(const char *name)
{
	struct reader r = {};

	reader_starts(&r, name, PORT);
	heard_of(read_words, &r);
	heard_of(add_up, &r);
	reader_ends(&r);
	works(&c, &s);
}

static void a_porter_that_lies_hurts_nobody(void)
{
	read_from("lies");
}

static void threads_may_be_porters(void)
{
	read_from("polls_by_threads");
}

/* --- the reader goes ----------------------------------------------------------------- */

static void readers_go_from_their_porter(void)
{
	struct reader r = { .pid = start_case("polls_for_many", PORT) };

	for (int i = 0; i < SHOP_VISITS; i++) {
		reader_meets(&r);
		for (uint32_t k = 0; k < 200; k++)
			read_one(&r, k);
		if (i % 3 == 0)
			post_read(&r, 0);
		if (i % 2)
			rdma_disconnect(r.e.id);
		else
			rdma_destroy_qp(r.e.id);
		reader_leaves(&r);
	}
	ends_well(r.pid);
}

/* Run by the case below: all that it has ends with it, in the middle of a Read. */
static void reads_and_exits(void)
{
	struct reader r = {};

	unsetenv("VERBS_PORT");
	connect_end(&r.e);
	reader_listens(&r);
	tell(&r.e);
	good(r.e.id->recv_cq, 1);
	read_words(&r);
	post_read(&r, 0);
	_exit(0);
}

/* Here we are read from. */
static void readers_exit_from_their_porter(void)
{
	for (int i = 0; i < EXITS; i++) {
		pid_t pid = start_case("reads_and_exits", PORT);
		struct end mine = {};

		accept_end(&mine, make_hearing);
		good(mine.id->recv_cq, 1);
		hear(&mine);
		open_shop(&mine);
		poll_until_it_goes(&mine);
		ends_well(pid);
		close_shop();
		release(&mine);
	}
	works(&c, &s);
}

/* --- several at once ------------------------------------------------------------------ */

static void *read_all(void *arg)
{
	read_words(arg);
	return NULL;
}

static void several_pairs_read(void)
{
	struct reader r[PAIRS] = {};
	pthread_t thread[PAIRS];

	for (int i = 0; i < PAIRS; i++)
		reader_starts(&r[i], "polls", PORT + i);
	for (int i = 0; i < PAIRS; i++)
		CHECK(!pthread_create(&thread[i], NULL, read_all, &r[i]));
	for (int i = 0; i < PAIRS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < PAIRS; i++)
		reader_ends(&r[i]);
}

const struct test_case porter_cases[] = {
	CASE(who_polls_hears_of_reads),
	CASE(who_polls_hears_of_atomics),
	CASE(nobody_is_porter),
	CASE(a_porter_goes_when_told),
	CASE(who_waits_for_events_is_no_porter),
	CASE(who_sleeps_is_no_porter),
	CASE(who_reads_may_wait_for_events),
	CASE(who_only_waits_for_events_has_no_porter),
	CASE(a_porter_sees_what_is_for_itself),
	CASE(a_stopped_porter_delays_nobody),
	CASE(a_killed_porter_ends_its_connection),
	CASE(a_bad_read_fails_at_a_porter),
	CASE(a_porter_that_lies_hurts_nobody),
	CASE(threads_may_be_porters),
	CASE(readers_go_from_their_porter),
	CASE(reads_and_exits),
	CASE(readers_exit_from_their_porter),
	CASE(several_pairs_read),
	{},
};
