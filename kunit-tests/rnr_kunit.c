// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Messages that wait for a receive: the handshake with a process that posts, whose turn it is
 * where queues are shared, and how a stream begins and ends to wait.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>

#include "engine/ops/rnr.h"
#include "stream_world.h"
#include "suite.h"

#define ENTRIES	64U
#define WAITERS	40U	/* more than are woken at once */

/* A stream, as far as the queue knows it. */
struct guest {
	struct weft_rq_waiter waiter;
	u32 wakes;
};

/* A queue of a process, which has posted @prod receives, and those that wait for them. */
struct rnr_world {
	struct weft_recvq rq;
	struct weft_rwr rwr;
	struct weft_sge sge;
	u32 prod;
	struct guest guests[WAITERS];
};

static void count_wake(struct weft_rq_waiter *w)
{
	container_of(w, struct guest, waiter)->wakes++;
}

static struct rnr_world *make_rnr_world(struct kunit *test, bool shared)
{
	struct rnr_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_ASSERT_EQ(test, weft_recvq_init(&w->rq, ENTRIES, 1, NULL), 0);
	w->rq.user = true;
	w->rq.shared = shared;
	w->rwr.sge = &w->sge;
	for (i = 0; i < WAITERS; i++)
		weft_rq_waiter_init(&w->guests[i].waiter, count_wake);
	return w;
}

/* As a process does: publish, fence, look. Return: it is asked for a doorbell. */
static bool publish(struct rnr_world *w, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		struct weft_rqe *rqe = weft_ring_entry(&w->rq.ring, w->prod);

		memset(rqe, 0, sizeof(*rqe));
		rqe->wr_id = w->prod++;
	}
	WRITE_ONCE(w->rq.ctl->prod, w->prod);
	smp_mb(); /* as weft_ring_state() of the provider */
	return READ_ONCE(w->rq.ctl->state) == WEFT_RQ_NEED_DOORBELL;
}

static void wait_for(struct kunit *test, struct rnr_world *w, u32 guest)
{
	KUNIT_ASSERT_EQ(test, weft_recvq_fetch(&w->rq, &w->rwr), -ENOENT);
	weft_recvq_wait(&w->rq, &w->guests[guest].waiter);
}

static void gets(struct kunit *test, struct rnr_world *w, u32 guest, u64 wr_id)
{
	struct weft_rq_waiter *waiter = &w->guests[guest].waiter;

	KUNIT_EXPECT_TRUE(test, waiter->granted);
	KUNIT_ASSERT_EQ(test, weft_recvq_fetch_waited(&w->rq, waiter, &w->rwr), 0);
	KUNIT_EXPECT_EQ(test, w->rwr.wr_id, wr_id);
	KUNIT_EXPECT_EQ(test, w->guests[guest].wakes, 1U);
	KUNIT_EXPECT_FALSE(test, waiter->granted);
}

/* Posting makes no system call unless a message waits. */
static void weft_rnr_asks_for_doorbells(struct kunit *test)
{
	struct rnr_world *w = make_rnr_world(test, false);

	KUNIT_EXPECT_FALSE(test, publish(w, 1));
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(&w->rq, &w->rwr), 0);
	wait_for(test, w, 0);
	KUNIT_EXPECT_EQ(test, w->guests[0].wakes, 0U);
	KUNIT_EXPECT_TRUE(test, publish(w, 2));
	weft_recvq_posted(&w->rq);
	KUNIT_EXPECT_FALSE(test, publish(w, 0));
	gets(test, w, 0, 1);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(&w->rq, &w->rwr), 0);
	weft_recvq_posted(&w->rq); /* a doorbell that comes late */
	KUNIT_EXPECT_EQ(test, w->guests[0].wakes, 1U);
	weft_recvq_free(&w->rq);
}

/* Posted after the queue was found empty, and before the wish for a doorbell shows. */
static void weft_rnr_sees_what_was_posted_meanwhile(struct kunit *test)
{
	struct rnr_world *w = make_rnr_world(test, false);

	KUNIT_ASSERT_EQ(test, weft_recvq_fetch(&w->rq, &w->rwr), -ENOENT);
	KUNIT_EXPECT_FALSE(test, publish(w, 1));
	weft_recvq_wait(&w->rq, &w->guests[0].waiter);
	gets(test, w, 0, 0);
	weft_recvq_free(&w->rq);
}

static void weft_rnr_is_fair(struct kunit *test)
{
	struct rnr_world *w = make_rnr_world(test, true);

	wait_for(test, w, 0);
	wait_for(test, w, 1);
	wait_for(test, w, 2);
	KUNIT_EXPECT_TRUE(test, publish(w, 2));
	/* One that comes now goes to the end, though the doorbell is still to come. */
	wait_for(test, w, 3);
	weft_recvq_posted(&w->rq);
	KUNIT_EXPECT_EQ(test, w->guests[2].wakes, 0U);
	gets(test, w, 1, 0);
	gets(test, w, 0, 1);
	KUNIT_EXPECT_TRUE(test, publish(w, 0));
	/* What was granted to one that leaves goes to the next. */
	publish(w, 1);
	weft_recvq_posted(&w->rq);
	weft_recvq_leave(&w->rq, &w->guests[2].waiter);
	KUNIT_EXPECT_FALSE(test, publish(w, 0));
	gets(test, w, 3, 2);
	KUNIT_EXPECT_EQ(test, w->rq.waiters.granted, 0U);
	weft_recvq_free(&w->rq);
}

/* A stream that is granted a receive just before it waits once more has no second place. */
static void weft_rnr_waits_once(struct kunit *test)
{
	struct rnr_world *w = make_rnr_world(test, true);

	wait_for(test, w, 0);
	KUNIT_EXPECT_TRUE(test, publish(w, 1));
	weft_recvq_posted(&w->rq);
	weft_recvq_wait(&w->rq, &w->guests[0].waiter);
	KUNIT_EXPECT_TRUE(test, list_empty(&w->rq.waiters.list));
	gets(test, w, 0, 0);
	publish(w, 1);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(&w->rq, &w->rwr), 0);
	KUNIT_EXPECT_EQ(test, w->rwr.wr_id, 1ULL);
	KUNIT_EXPECT_EQ(test, w->guests[0].wakes, 1U);
	weft_recvq_free(&w->rq);
}

/* A doorbell wakes so many, and each of them the next. */
static void weft_rnr_wakes_a_few_at_once(struct kunit *test)
{
	struct rnr_world *w = make_rnr_world(test, true);
	u32 i, woken = 0;

	for (i = 0; i < WAITERS; i++)
		wait_for(test, w, i);
	KUNIT_EXPECT_TRUE(test, publish(w, WAITERS));
	weft_recvq_posted(&w->rq);
	for (i = 0; i < WAITERS; i++)
		woken += w->guests[i].wakes;
	KUNIT_EXPECT_GT(test, woken, 0U);
	KUNIT_EXPECT_LT(test, woken, WAITERS);
	for (i = 0; i < WAITERS; i++)
		gets(test, w, i, i);
	KUNIT_EXPECT_FALSE(test, publish(w, 0));
	weft_recvq_free(&w->rq);
}

/* An index that cannot be, and one that goes back. */
static void weft_rnr_hostile_index(struct kunit *test)
{
	struct rnr_world *w = make_rnr_world(test, true);
	struct weft_rq_waiter *first = &w->guests[0].waiter;

	wait_for(test, w, 0);
	wait_for(test, w, 1);
	publish(w, 1);
	weft_recvq_posted(&w->rq);
	w->rq.ctl->prod = 0;
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch_waited(&w->rq, first, &w->rwr), -ENOENT);
	KUNIT_EXPECT_EQ(test, w->rq.waiters.granted, 0U);
	weft_recvq_wait(&w->rq, first);
	weft_recvq_wait(&w->rq, first);
	w->rq.ctl->prod = ENTRIES + 1;
	weft_recvq_posted(&w->rq);
	KUNIT_EXPECT_EQ(test, w->guests[1].wakes, 1U);
	KUNIT_EXPECT_EQ(test, w->guests[0].wakes, 2U);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch_waited(&w->rq, first, &w->rwr), -EIO);
	weft_recvq_leave(&w->rq, &w->guests[1].waiter);
	KUNIT_EXPECT_EQ(test, w->rq.waiters.granted, 0U);
	weft_recvq_free(&w->rq);
}

/* --- a stream ------------------------------------------------------------- */

static u64 waits(const struct stream_world *w)
{
	return weft_counters_read(&w->counters, WEFT_CTR_RNR_WAITS);
}

static u64 timeouts(const struct stream_world *w)
{
	return weft_counters_read(&w->counters, WEFT_CTR_RNR_TIMEOUTS);
}

struct begin_row {
	const char *name;
	u32 timeout;
	enum weft_qp_state state;
	enum weft_fault fault;
};

static const struct begin_row begin_rows[] = {
	{ "waits", 1000, WEFT_QP_RTS, WEFT_FAULT_NOT_READY },
	{ "switched_off", 0, WEFT_QP_RTS, WEFT_FAULT_UNTAGGED_NO_BUFFER },
	{ "closing", 1000, WEFT_QP_CLOSING, WEFT_FAULT_UNTAGGED_NO_BUFFER },
};

WEFT_ROWS(begin_rows)

static void weft_rnr_begins(struct kunit *test)
{
	const struct begin_row *row = test->param_value;
	struct stream_world *w = test->priv;
	bool wait = row->fault == WEFT_FAULT_NOT_READY;

	w->index.rnr_timeout = row->timeout;
	w->st.state = row->state;
	KUNIT_EXPECT_EQ(test, weft_rnr_wait(&w->st), row->fault);
	KUNIT_EXPECT_EQ(test, w->st.rnr_waits, wait);
	KUNIT_EXPECT_EQ(test, waits(w), (u64)wait);
	KUNIT_EXPECT_EQ(test, w->rq.ctl->state, (u32)wait);
	KUNIT_EXPECT_EQ(test, weft_rnr_cancel(&w->st), wait);
	KUNIT_EXPECT_EQ(test, w->rq.ctl->state, (u32)WEFT_RQ_OPEN);
}

struct told_row {
	const char *name;
	u32 told;
	unsigned long least;
	bool waits;
};

/* A peer that connects by hand says how long its messages wait, whatever the operator says. */
static const struct told_row told_rows[] = {
	{ "not_at_all", 0, 0, false },
	{ "some_time", 5000, 4 * HZ, true },
	{ "without_end", U32_MAX, 1000000UL * HZ, true },
};

WEFT_ROWS(told_rows)

static void weft_rnr_is_reported(struct kunit *test)
{
	const struct told_row *row = test->param_value;
	struct stream_world *w = test->priv;

	w->index.rnr_timeout = row->waits ? 0 : 1000;
	w->st.mpa.rnr_told = true;
	w->st.mpa.rnr_ms = row->told;
	KUNIT_EXPECT_EQ(test, weft_rnr_wait(&w->st) == WEFT_FAULT_NOT_READY, row->waits);
	if (row->waits)
		KUNIT_EXPECT_TRUE(test, time_after(w->st.rnr.deadline, jiffies + row->least));
	weft_rnr_cancel(&w->st);
}

static struct stream_world *make_waiting(struct kunit *test)
{
	struct stream_world *w = test->priv;

	w->index.rnr_timeout = 60000;
	KUNIT_ASSERT_EQ(test, weft_rnr_wait(&w->st), WEFT_FAULT_NOT_READY);
	KUNIT_EXPECT_TRUE(test, weft_rnr_holds(&w->st));
	return w;
}

/* The process posts and rings; rx is run, and takes the receive. */
static void weft_rnr_goes_on(struct kunit *test)
{
	struct stream_world *w = make_waiting(test);

	weft_rnr_doorbell(&w->st);
	KUNIT_EXPECT_EQ(test, w->seen.want_rx, 0U);
	post_receive(w);
	weft_rnr_doorbell(&w->st);
	KUNIT_EXPECT_EQ(test, w->seen.want_rx, 1U);
	KUNIT_EXPECT_FALSE(test, weft_rnr_holds(&w->st));
	KUNIT_EXPECT_EQ(test, weft_rnr_fetch(&w->st), 0);
	KUNIT_EXPECT_FALSE(test, w->st.rnr_waits);
	KUNIT_EXPECT_EQ(test, w->rq.ctl->state, (u32)WEFT_RQ_OPEN);
	KUNIT_EXPECT_EQ(test, timeouts(w), 0ULL);
	weft_rnr_doorbell(&w->st);
	KUNIT_EXPECT_EQ(test, w->seen.want_rx, 1U);
}

static void weft_rnr_time_is_up(struct kunit *test)
{
	struct stream_world *w = make_waiting(test);

	KUNIT_EXPECT_EQ(test, weft_rnr_fetch(&w->st), -ENOENT);
	KUNIT_EXPECT_EQ(test, weft_rnr_wait(&w->st), WEFT_FAULT_NOT_READY);
	KUNIT_EXPECT_EQ(test, waits(w), 1ULL);
	w->st.rnr.deadline = jiffies - 1;
	KUNIT_EXPECT_FALSE(test, weft_rnr_holds(&w->st));
	KUNIT_EXPECT_EQ(test, weft_rnr_fetch(&w->st), -ENOENT);
	KUNIT_EXPECT_EQ(test, weft_rnr_wait(&w->st), WEFT_FAULT_UNTAGGED_NO_BUFFER);
	KUNIT_EXPECT_EQ(test, timeouts(w), 1ULL);
	KUNIT_EXPECT_FALSE(test, w->st.rnr_waits);
}

/* A stream that is closed does not wait until the time is up. */
static void weft_rnr_closing_ends_it(struct kunit *test)
{
	struct stream_world *w = make_waiting(test);

	w->st.state = WEFT_QP_CLOSING;
	KUNIT_EXPECT_FALSE(test, weft_rnr_holds(&w->st));
	KUNIT_EXPECT_EQ(test, weft_rnr_wait(&w->st), WEFT_FAULT_UNTAGGED_NO_BUFFER);
	KUNIT_EXPECT_EQ(test, timeouts(w), 0ULL);
}

/* The timer runs rx when the time is up, and looks for what a library posts that never rings. */
static void weft_rnr_timer(struct kunit *test)
{
	struct stream_world *w = test->priv;

	w->index.rnr_timeout = 20;
	KUNIT_ASSERT_EQ(test, weft_rnr_wait(&w->st), WEFT_FAULT_NOT_READY);
	msleep(200);
	KUNIT_EXPECT_EQ(test, w->seen.want_rx, 1U);
	KUNIT_EXPECT_EQ(test, weft_rnr_wait(&w->st), WEFT_FAULT_UNTAGGED_NO_BUFFER);

	w->index.rnr_timeout = 60000;
	KUNIT_ASSERT_EQ(test, weft_rnr_wait(&w->st), WEFT_FAULT_NOT_READY);
	KUNIT_EXPECT_TRUE(test, time_after(w->st.rnr.timer.expires, jiffies + HZ));
	weft_rnr_cancel(&w->st);
	w->rq.has_doorbell = false;
	KUNIT_ASSERT_EQ(test, weft_rnr_wait(&w->st), WEFT_FAULT_NOT_READY);
	msleep(50);
	KUNIT_EXPECT_EQ(test, w->seen.want_rx, 1U);
	post_receive(w);
	msleep(200);
	KUNIT_EXPECT_EQ(test, w->seen.want_rx, 2U);
	KUNIT_EXPECT_EQ(test, weft_rnr_fetch(&w->st), 0);
}

static struct kunit_case rnr_cases[] = { KUNIT_CASE(weft_rnr_asks_for_doorbells),
					 KUNIT_CASE(weft_rnr_sees_what_was_posted_meanwhile),
					 KUNIT_CASE(weft_rnr_is_fair),
					 KUNIT_CASE(weft_rnr_waits_once),
					 KUNIT_CASE(weft_rnr_wakes_a_few_at_once),
					 KUNIT_CASE(weft_rnr_hostile_index),
					 KUNIT_CASE_PARAM(weft_rnr_begins, begin_rows_gen_params),
					 KUNIT_CASE_PARAM(weft_rnr_is_reported,
							  told_rows_gen_params),
					 KUNIT_CASE(weft_rnr_goes_on),
					 KUNIT_CASE(weft_rnr_time_is_up),
					 KUNIT_CASE(weft_rnr_closing_ends_it),
					 KUNIT_CASE(weft_rnr_timer),
					 {} };

static struct kunit_suite rnr_suite = {
	.name = "weft_rnr",
	.init = make_stream,
	.exit = free_stream,
	.test_cases = rnr_cases,
};

kunit_test_suite(rnr_suite);
