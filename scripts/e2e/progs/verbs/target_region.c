// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Processes that others read from. Each connects to the process that started it and says where its
 * target is; what it does while it is read from, until that one goes, is in its name.
 */
#include "target_region.h"

#include <pthread.h>
#include <unistd.h>

#include "verbs.h"

static struct target target;
static struct ibv_mr *target_mr, *place_mr;
static struct place place;

void open_target(struct end *e)
{
	for (uint32_t i = 0; i < TARGET_WORDS; i++)
		target.words[i] = word_of(i, TARGET_SEED);
	target.sum = 0;
	target.written = 0;
	target_mr = ibv_reg_mr(e->id->pd, &target, sizeof(target),
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	place_mr = ibv_reg_mr(e->id->pd, &place, sizeof(place), 0);
	CHECK(target_mr && place_mr);
	place = (struct place){ (uintptr_t)&target, target_mr->rkey };
	CHECK(!send_sge(e, 0, sge(place_mr, 0, sizeof(place)), 0));
	good(e->id->send_cq, 1);
}

void close_target(void)
{
	CHECK(!ibv_dereg_mr(place_mr) && !ibv_dereg_mr(target_mr));
}

void poll_until_it_goes(struct end *e)
{
	CHECK(polled(e->id->recv_cq).status == IBV_WC_WR_FLUSH_ERR);
}

static void serve(void (*until_it_goes)(struct end *e))
{
	struct end mine = {};

	unsetenv("VERBS_PORT"); /* connect to the process that started us */
	connect_end(&mine);
	post_empty_recv(&mine);
	open_target(&mine);
	until_it_goes(&mine);
	close_target();
	release(&mine);
}

UNLISTED(polls)
{
	serve(poll_until_it_goes);
}

UNLISTED(polls_for_many)
{
	for (int i = 0; i < TARGET_READS; i++)
		polls();
}

static void wait_until_it_goes(struct end *e)
{
	struct ibv_wc wc;

	CHECK(!ibv_req_notify_cq(e->id->recv_cq, 0));
	if (!ibv_poll_cq(e->id->recv_cq, 1, &wc)) {
		CHECK(event_within(e->id->recv_cq_channel, SECONDS * 1000));
		CHECK(ibv_poll_cq(e->id->recv_cq, 1, &wc) == 1);
	}
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
}

UNLISTED(waits_for_events)
{
	serve(wait_until_it_goes);
}

/* A poll now and then, as in a program that also does other work. */
static void sleep_until_it_goes(struct end *e)
{
	CHECK(next(e->id->recv_cq).status == IBV_WC_WR_FLUSH_ERR);
}

UNLISTED(sleeps)
{
	serve(sleep_until_it_goes);
}

/* By turns there is a Send to receive, and a word that the reader writes. */
static void answer_until_it_goes(struct end *e)
{
	volatile uint64_t *written = &target.written;
	uint64_t answered = 0;
	struct ibv_wc wc;

	for (;;) {
		if (ibv_poll_cq(e->id->recv_cq, 1, &wc)) {
			if (wc.status == IBV_WC_WR_FLUSH_ERR)
				return;
			CHECK(wc.status == IBV_WC_SUCCESS);
			post_empty_recv(e);
			send_empty(e);
		} else if (*written != answered) {
			CHECK(*written == ++answered);
			send_empty(e);
		}
	}
}

UNLISTED(answers)
{
	serve(answer_until_it_goes);
}

static volatile int stop;

static void *poll_another(void *arg)
{
	while (!stop)
		CHECK(!ibv_poll_cq(s.id->recv_cq, 1, &(struct ibv_wc){}));
	return arg;
}

UNLISTED(polls_by_threads)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, poll_another, NULL));
	polls();
	stop = 1;
	pthread_join(thread, NULL);
}
