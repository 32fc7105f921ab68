// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Short Reads and atomics, one after the other, whose responder is another process: it
 * polls, sleeps, waits for events or answers messages, and is stopped or killed. Readers
 * go, too, with a Read under way.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader.h"
#include "target_region.h"
#include "verbs.h"

#define PORT 7556 /* of the first that is started */
#define KILLS 10
#define STOPS 3
#define EXITS 20
#define PAIRS 4
#define MESSAGES 60

/* --- whatever the responder's process does -------------------------------------------- */

static void read_from(const char *name)
{
	struct reader r = {};

	reader_starts(&r, name, PORT);
	read_words(&r);
	add_up(&r);
	reader_ends(&r);
	works(&c, &s);
}

CASE("one word", reads_from_a_polling_process)
{
	read_from("polls");
}

CASE("one word", reads_from_polling_threads)
{
	read_from("polls_by_threads");
}

CASE("one word", reads_from_a_process_waiting_for_events)
{
	read_from("waits_for_events");
}

CASE("one word", reads_from_a_sleeping_process)
{
	read_from("sleeps");
}

/* The post must not wait for the reader to poll. */
CASE("one word", a_reader_may_wait_for_events)
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

/* --- the responder's process has something else to do --------------------------------- */

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

/* A message for the process itself; reading goes on until it has answered. */
static double time_one(struct reader *r, uint64_t *writes)
{
	uint64_t *out = (uint64_t *)r->e.own->addr + 1;
	double begin;
	uint32_t i;

	post_empty_recv(&r->e);
	begin = now();
	if (writes) {
		*out = ++*writes;
		CHECK(!post(&r->e, 0, IBV_WR_RDMA_WRITE, sge(r->e.own, 8, 8),
			    r->at.to + offsetof(struct target, written), r->at.rkey, 0));
	} else {
		CHECK(!post(&r->e, 0, IBV_WR_SEND, sge(r->e.own, 0, 0), 0, 0, 0));
	}
	for (i = 0; !ibv_poll_cq(r->e.id->recv_cq, 1, &(struct ibv_wc){}); i++) {
		read_one(r, i % TARGET_WORDS);
		CHECK(now() - begin < SECONDS);
	}
	return now() - begin;
}

/* What a message and its answer take without Reads. */
static double time_alone(struct reader *r)
{
	double times[MESSAGES];

	for (int i = 0; i < MESSAGES; i++) {
		post_empty_recv(&r->e);
		times[i] = now();
		CHECK(!post(&r->e, 0, IBV_WR_SEND, sge(r->e.own, 0, 0), 0, 0, 0));
		while (!ibv_poll_cq(r->e.id->recv_cq, 1, &(struct ibv_wc){}))
			CHECK(now() - times[i] < SECONDS);
		times[i] = now() - times[i];
	}
	return usual(times, MESSAGES);
}

/* Is nearly as fast as without Reads what is for the process itself? */
static int others_are_fast(struct reader *r, uint64_t *written)
{
	double sends[MESSAGES], writes[MESSAGES];
	double most = 3 * time_alone(r);

	if (most < 1e-3)
		most = 1e-3;

	for (int i = 0; i < MESSAGES; i++) {
		read_for(r, 12e-3);
		sends[i] = time_one(r, NULL);
		read_for(r, 12e-3);
		writes[i] = time_one(r, written);
	}
	printf("Sends answered after %.0f us, Writes after %.0f us, at most %.0f us\n",
	       usual(sends, MESSAGES) * 1e6, usual(writes, MESSAGES) * 1e6, most * 1e6);
	return usual(sends, MESSAGES) < most && usual(writes, MESSAGES) < most;
}

/* What delays them delays them each time; a machine that is busy does not, for so long. */
CASE("one word", reads_delay_no_other_message)
{
	struct reader r = {};
	uint64_t written = 0;
	int fast = 0;

	reader_starts(&r, "answers", PORT);
	for (int i = 0; i < 5 && !fast; i++)
		fast = others_are_fast(&r, &written);
	CHECK(fast);
	reader_ends(&r);
}

/* --- the responder's process is stopped or killed -------------------------------------- */

CASE("one word", a_stopped_process_is_read_from)
{
	struct reader r = {};

	reader_starts(&r, "polls", PORT);
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

CASE("one word", a_killed_process_ends_its_connection)
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

CASE("one word", a_bad_read_fails_after_good_ones)
{
	struct reader r = {};

	reader_starts(&r, "polls", PORT);
	read_words(&r);
	CHECK(!post(&r.e, 1, IBV_WR_RDMA_READ, sge(r.e.own, 0, 4), r.at.to, r.at.rkey ^ 0x100,
		    IBV_SEND_SIGNALED));
	CHECK(polled(r.e.id->send_cq).status == IBV_WC_REM_ACCESS_ERR);
	ends_well(r.pid);
	reader_leaves(&r);
}

/* --- the reader goes ----------------------------------------------------------------- */

CASE("one word", readers_go_one_after_the_other)
{
	struct reader r = { .pid = start_case("polls_for_many", PORT) };

	for (int i = 0; i < TARGET_READS; i++) {
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
UNLISTED(reads_and_exits)
{
	struct reader r = {};

	unsetenv("VERBS_PORT");
	connect_end(&r.e);
	reader_listens(&r);
	send_empty(&r.e);
	good(r.e.id->recv_cq, 1);
	read_words(&r);
	post_read(&r, 0);
	_exit(0);
}

/* Here we are read from. */
CASE("one word", readers_exit_amid_a_read)
{
	for (int i = 0; i < EXITS; i++) {
		pid_t pid = start_case("reads_and_exits", PORT);
		struct end mine = {};

		accept_end(&mine, make_receiving);
		good(mine.id->recv_cq, 1);
		post_empty_recv(&mine);
		open_target(&mine);
		poll_until_it_goes(&mine);
		ends_well(pid);
		close_target();
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

CASE("one word", several_pairs_read)
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
