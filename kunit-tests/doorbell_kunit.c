// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which context runs tx, and when it never runs again; which queues are left to a timer.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>

/* The suite looks into it. */
#include "engine/run/defer.c"

#include "base/trace.h"
#include "engine/path/tx.h"
#include "engine/run/doorbell.h"
#include "engine/state/claim.h"
#include "stream_world.h"
#include "suite.h"

struct poll_world {
	struct stream_world *w;
	struct weft_stream_index index;
	struct weft_db_stat db_stat;
};

/* A queue of an application that defers its doorbells; something was sent. */
static struct poll_world *make_polled(struct kunit *test)
{
	struct poll_world *poll = kunit_kzalloc(test, sizeof(*poll), GFP_KERNEL);
	struct weft_stream *st;

	KUNIT_ASSERT_NOT_NULL(test, poll);
	poll->w = test->priv;
	poll->index.sq_poll_interval = 10000;
	st = &poll->w->st;
	st->index = &poll->index;
	st->cfg.db_stat = &poll->db_stat;
	st->wq = system_wq;
	weft_doorbell_init(st);
	poll->w->sq.fetched = 1;
	poll->w->sq.cons = 1;
	weft_sendq_ctl(&poll->w->sq)->prod = 1;
	return poll;
}

static void free_polled(struct poll_world *poll)
{
	weft_defer_cancel(&poll->w->st);
	kfree(poll->w->st.defer);
}

/* No context runs tx any more, and no worker is left. */
static void end_tx(struct poll_world *poll)
{
	weft_tx_claim_wait(&poll->w->st);
	weft_doorbell_end(&poll->w->st);
	free_polled(poll);
}

static void weft_defer_counts_queues(struct kunit *test)
{
	struct poll_world *poll = make_polled(test);
	struct weft_stream *st = &poll->w->st;

	KUNIT_EXPECT_TRUE(test, weft_defer_begin(st));
	KUNIT_EXPECT_TRUE(test, weft_defer_begin(st)); /* goes on */
	KUNIT_EXPECT_EQ(test, atomic_read(&poll->index.polled), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&poll->db_stat.polled), 1);
	weft_defer_cancel(st);
	KUNIT_EXPECT_EQ(test, atomic_read(&poll->index.polled), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&poll->db_stat.polled), 0);
	KUNIT_EXPECT_FALSE(test, weft_defer_is_active(st));
	free_polled(poll);
}

struct limit_row {
	const char *name;
	int process;
	int device;
	bool begins;
};

static const struct limit_row limit_rows[] = {
	{ "some", 100, 1000, true },
	{ "a_thousand", 999, 1000, true },
	{ "nearly_too_many", WEFT_DEFER_PROCESS_MAX - 1, WEFT_DEFER_DEVICE_MAX - 1, true },
	{ "too_many_of_the_process", WEFT_DEFER_PROCESS_MAX, 1000, false },
	{ "too_many_of_the_device", 1, WEFT_DEFER_DEVICE_MAX, false },
};

WEFT_ROWS(limit_rows)

/* Each look is an interrupt's work: so many queues may ask for it and no more. */
static void weft_defer_is_limited(struct kunit *test)
{
	const struct limit_row *row = test->param_value;
	struct poll_world *poll = make_polled(test);

	atomic_set(&poll->db_stat.polled, row->process);
	atomic_set(&poll->index.polled, row->device);
	KUNIT_EXPECT_EQ(test, weft_defer_begin(&poll->w->st), row->begins);
	KUNIT_EXPECT_EQ(test, atomic_read(&poll->db_stat.polled), row->process + row->begins);
	KUNIT_EXPECT_EQ(test, atomic_read(&poll->index.polled), row->device + row->begins);
	free_polled(poll);
}

struct look_row {
	const char *name;
	u32 posted;
};

static const struct look_row look_rows[] = {
	{ "empty", 0 },
	{ "a_late_post", 1 },
};

WEFT_ROWS(look_rows)

/*
 * Each late look asks for tx, which stands still here; the last one does in any case. The timer
 * ends after looks that find nothing new, and what went wrong before is forgiven.
 */
static void weft_defer_looks(struct kunit *test)
{
	const struct look_row *row = test->param_value;
	struct poll_world *poll = make_polled(test);
	struct weft_stream *st = &poll->w->st;
	u64 hits, merged;
	u32 i;

	poll->index.sq_poll_interval = 1000;
	KUNIT_ASSERT_NOT_NULL(test, new_defer(st));
	st->defer->backoff = BACKOFF_MAX;
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&st->tx.claim));
	KUNIT_ASSERT_TRUE(test, weft_defer_begin(st));
	weft_sendq_ctl(&poll->w->sq)->state = WEFT_SQ_POLLED;
	weft_sendq_ctl(&poll->w->sq)->prod += row->posted;
	for (i = 0; i < 1000 && weft_defer_is_active(st); i++)
		msleep(20);
	KUNIT_EXPECT_FALSE(test, weft_defer_is_active(st));
	KUNIT_EXPECT_EQ(test, st->defer->backoff, (unsigned long)BACKOFF_MIN);
	KUNIT_EXPECT_EQ(test, atomic_read(&poll->index.polled), 0);
	hits = weft_counters_read(&poll->w->counters, WEFT_CTR_SQ_POLL_HITS);
	merged = weft_counters_read(&poll->w->counters, WEFT_CTR_TX_WORK_MERGED);
	if (row->posted)
		KUNIT_EXPECT_GT(test, hits, 2ULL);
	else
		KUNIT_EXPECT_EQ(test, hits, 0ULL);
	KUNIT_EXPECT_GE(test, merged, max(hits, 1ULL));
	weft_doorbell_end(st);
	free_polled(poll);
}

struct ringer_row {
	const char *name;
	bool shares_send, shares_recv;	/* with the queue that is looked at */
	bool inside;	/* the call goes on */
	bool late;
};

static const struct ringer_row ringer_rows[] = {
	{ "rings_for_others", false, false, false, true },
	{ "rang_with_its_send_cq", true, false, false, false },
	{ "rang_with_its_recv_cq", false, true, false, false },
	{ "is_inside_for_others", false, false, true, true },
	{ "is_inside_with_its_send_cq", true, false, true, false },
	{ "is_inside_with_its_recv_cq", false, true, true, false },
};

WEFT_ROWS(ringer_rows)

/* A look at a queue with these completion queues. */
static bool is_late(struct weft_stream *st, struct weft_cq *send_cq, struct weft_cq *recv_cq)
{
	struct weft_cq *own_send = st->cfg.send_cq, *own_recv = st->cfg.recv_cq;
	bool late;

	st->cfg.send_cq = send_cq;
	st->cfg.recv_cq = recv_cq;
	st->defer->since = jiffies;
	late = poll_queue(st->defer);
	st->cfg.send_cq = own_send;
	st->cfg.recv_cq = own_recv;
	return late;
}

/*
 * What was posted is left to a thread that rings doorbells of QPs with the same CQ, whether that is
 * theirs for sends or for receives.
 */
static void weft_defer_leaves_it_to_another(struct kunit *test)
{
	const struct ringer_row *row = test->param_value;
	struct poll_world *poll = make_polled(test);
	struct weft_stream *st = &poll->w->st;
	struct weft_cq *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct weft_cq *send_cq, *recv_cq;

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_NOT_NULL(test, new_defer(st));
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&st->tx.claim));
	send_cq = row->shares_send ? st->cfg.send_cq : other;
	recv_cq = row->shares_recv ? st->cfg.recv_cq : other;
	weft_sendq_ctl(&poll->w->sq)->state = WEFT_SQ_POLLED;
	weft_sendq_ctl(&poll->w->sq)->prod++;
	KUNIT_EXPECT_FALSE(test, is_late(st, send_cq, recv_cq));
	if (row->inside) {
		st->cfg.send_cq->doorbells.inside = true;
		st->cfg.recv_cq->doorbells.inside = true;
	} else {
		weft_doorbell(st);
	}
	KUNIT_EXPECT_EQ(test, is_late(st, send_cq, recv_cq), row->late);
	/* The call is over, or there was none: no thread will get to it any more. */
	st->cfg.send_cq->doorbells.inside &= !row->inside;
	st->cfg.recv_cq->doorbells.inside &= !row->inside;
	if (!row->late)
		KUNIT_EXPECT_TRUE(test, is_late(st, send_cq, recv_cq));
	weft_doorbell_end(st);
	free_polled(poll);
}

/* Where posts lie about again and again, a queue is left alone, and for longer each time. */
static void weft_defer_backs_off(struct kunit *test)
{
	static const unsigned long next[] = { BACKOFF_MAX, BACKOFF_MAX };
	struct poll_world *poll = make_polled(test);
	struct weft_stream *st = &poll->w->st;
	struct weft_defer *w = new_defer(st);
	unsigned long begun, off;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&st->tx.claim));
	w->backoff = BACKOFF_MAX / 2;
	for (i = 0; i < ARRAY_SIZE(next); i++) {
		w->not_before = jiffies;
		w->seen = 0;
		KUNIT_ASSERT_TRUE(test, weft_defer_begin(st));
		/* Played: the look that is one too many. */
		hrtimer_cancel(&w->timer);
		w->late = LATE_MAX;
		off = w->backoff;
		begun = jiffies;
		KUNIT_EXPECT_EQ(test, defer_timer_fn(&w->timer), HRTIMER_NORESTART);
		KUNIT_EXPECT_FALSE(test, time_before(w->not_before, begun + off));
		KUNIT_EXPECT_EQ(test, w->backoff, next[i]);
		w->seen = 0;
		KUNIT_EXPECT_FALSE(test, weft_defer_begin(st));
		KUNIT_EXPECT_EQ(test, atomic_read(&poll->index.polled), 0);
	}
	weft_doorbell_end(st);
	free_polled(poll);
}

/* After the end nothing begins, whatever the mapped queue says and whichever side rings. */
static void weft_doorbell_end_is_final(struct kunit *test)
{
	struct poll_world *poll = make_polled(test);
	struct weft_stream *st = &poll->w->st;
	u64 merged;

	weft_tx_schedule(st);
	weft_tx_claim_wait(st);
	weft_doorbell_end(st);
	poll->w->net.segments = 1;
	poll->w->net.segment_bytes = 1;
	poll->w->net.pushes = 0;
	weft_sendq_ctl(&poll->w->sq)->defer_doorbell = 1;
	weft_sendq_ctl(&poll->w->sq)->state = WEFT_SQ_POLLED;
	weft_sendq_ctl(&poll->w->sq)->prod = 5;
	merged = weft_counters_read(&poll->w->counters, WEFT_CTR_TX_WORK_MERGED);
	weft_tx_schedule(st);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&st->tx_work));
	KUNIT_EXPECT_EQ(test, weft_counters_read(&poll->w->counters, WEFT_CTR_TX_WORK_MERGED),
			merged + 1);
	weft_doorbell(st);
	KUNIT_EXPECT_EQ(test, poll->w->net.pushes, 0U);
	KUNIT_EXPECT_EQ(test, poll->w->seen.defers, 0U);
	free_polled(poll);
}

/* As the tracepoint names it. */
#define MERGED	2U

static void see_mode(void *data, int ifindex, u32 qpn, u8 mode)
{
	*(u32 *)data = mode;
}

/* A request to run tx while tx runs starts no worker, and the trace says so. */
static void weft_doorbell_merge_is_traced(struct kunit *test)
{
	struct stream_world *w = test->priv;
	u32 mode = U32_MAX;

	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&w->st.tx.claim));
	KUNIT_ASSERT_EQ(test, register_trace_weft_tx_run(see_mode, &mode), 0);
	weft_tx_schedule(&w->st);
	unregister_trace_weft_tx_run(see_mode, &mode);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_EQ(test, mode, MERGED);
}

struct later_row {
	const char *name;
	bool no_memory;
	int push_error;
	enum weft_qp_state state;
	u64 workers;
};

static const struct later_row later_rows[] = {
	{ "all_sent", false, 0, WEFT_QP_RTS, 0 },
	{ "socket_full", false, -EAGAIN, WEFT_QP_RTS, 0 },
	{ "lost", false, -EPIPE, WEFT_QP_RTS, 0 },
	{ "no_memory_to_stage", true, 0, WEFT_QP_RTS, 1 },
	{ "no_memory_for_a_terminate", true, 0, WEFT_QP_TERMINATE, 1 },
	{ "no_memory_of_tcp", false, -ENOBUFS, WEFT_QP_RTS, 1 },
};

WEFT_ROWS(later_rows)

static u64 workers_queued(const struct stream_world *w)
{
	return weft_counters_read(&w->counters, WEFT_CTR_TX_WORK_QUEUED);
}

/*
 * No event comes for memory that is free again, so it has to be polled for: a worker comes, and
 * as there is none still, another one.
 */
static void weft_doorbell_without_memory(struct kunit *test)
{
	const struct later_row *row = test->param_value;
	struct poll_world *poll = make_polled(test);
	struct stream_world *w = poll->w;
	u64 before;
	u32 i;

	w->st.state = row->state;
	w->net.segments = 1;
	w->net.segment_bytes = 1;
	w->net.no_context = row->no_memory;
	w->net.push_error = row->push_error;
	weft_sendq_set_busy(&w->sq);
	before = workers_queued(w);
	weft_doorbell(&w->st);
	for (i = 0; i < 250 && workers_queued(w) - before < 2 * row->workers; i++)
		msleep(20);
	KUNIT_EXPECT_GE(test, workers_queued(w) - before, 2 * row->workers);
	if (!row->workers)
		KUNIT_EXPECT_FALSE(test, delayed_work_pending(&w->st.tx_work));
	end_tx(poll);
}

/* What another thread posts while tx runs is sent before it ends, without a worker. */
static void weft_doorbell_serves_a_mark(struct kunit *test)
{
	struct poll_world *poll = make_polled(test);
	struct stream_world *w = poll->w;
	u64 before = workers_queued(w);

	w->net.segments = 1;
	w->net.segment_bytes = 1;
	w->net.mark = true;
	weft_doorbell(&w->st);
	KUNIT_EXPECT_EQ(test, w->net.pushes, 2U);
	KUNIT_EXPECT_EQ(test, w->net.inside, 2U);
	KUNIT_EXPECT_FALSE(test, w->send_cq.doorbells.inside || w->recv_cq.doorbells.inside);
	KUNIT_EXPECT_EQ(test, w->net.segments, 0U);
	KUNIT_EXPECT_EQ(test, workers_queued(w), before);
	end_tx(poll);
}

/* A thread that keeps ringing the doorbell does not keep the process that posted in its call. */
static void weft_doorbell_ends_amid_marks(struct kunit *test)
{
	struct poll_world *poll = make_polled(test);
	struct stream_world *w = poll->w;
	u64 before = workers_queued(w);
	unsigned long begun = jiffies;

	w->net.segments = 1;
	w->net.segment_bytes = 1;
	w->net.marks_until = begun + 5 * HZ;
	weft_doorbell(&w->st);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, begun + 2 * HZ));
	KUNIT_EXPECT_GE(test, workers_queued(w), before + 1);
	w->net.marks_until = 0;
	end_tx(poll);
}

/* Nor does it keep a softirq, where no time is looked at: a turn that stages nothing counts. */
static void weft_doorbell_callback_ends_amid_marks(struct kunit *test)
{
	struct poll_world *poll = make_polled(test);
	struct stream_world *w = poll->w;
	u64 before = workers_queued(w);

	w->st.sock = &w->sock;
	w->net.marks_until = jiffies + 5 * HZ;
	weft_tx_softirq(&w->st);
	KUNIT_EXPECT_GT(test, w->net.pushes, 1U);
	KUNIT_EXPECT_LE(test, w->net.pushes, 65U);
	KUNIT_EXPECT_EQ(test, workers_queued(w), before + 1);
	w->net.marks_until = 0;
	end_tx(poll);
}

struct resume_row {
	const char *name;
	bool callback;
	bool unacked;	/* so an acknowledgment is to come */
	bool marked;	/* by another thread, again and again */
	bool worker;
};

static const struct resume_row resume_rows[] = {
	{ "process", false, true, false, false },
	{ "process_and_all_is_acknowledged", false, false, false, true },
	{ "process_amid_marks", false, true, true, true },
	{ "callback", true, true, false, false },
	{ "callback_and_all_is_acknowledged", true, false, false, true },
	{ "callback_amid_marks", true, true, true, false },
};

WEFT_ROWS(resume_rows)

/*
 * There is more to send than one turn may. The next acknowledgment goes on with it. It may have
 * come already, and found the claim taken: where that can be, and where none comes, a worker does.
 */
static void weft_doorbell_leaves_the_rest(struct kunit *test)
{
	const struct resume_row *row = test->param_value;
	struct poll_world *poll = make_polled(test);
	struct stream_world *w = poll->w;
	u64 before = workers_queued(w);

	w->st.sock = &w->sock;
	w->st.tx.sock.sk = row->unacked ? (void *)w : NULL;
	w->net.segments = U32_MAX;
	w->net.segment_bytes = 1000;
	w->net.marks_until = row->marked ? jiffies + 60 * HZ : 0;
	if (row->callback)
		weft_tx_softirq(&w->st);
	else
		weft_doorbell(&w->st);
	KUNIT_EXPECT_EQ(test, workers_queued(w) - before > 0, row->worker);
	w->net.segments = 0;
	w->net.marks_until = 0;
	end_tx(poll);
}

/* As much follows as the peer has acknowledged since the callback before, or a little. */
static void weft_doorbell_callback_follows_the_peer(struct kunit *test)
{
	struct poll_world *poll = make_polled(test);
	struct stream_world *w = poll->w;

	w->st.sock = &w->sock;
	w->st.tx.sock.sk = (void *)w;
	w->net.segments = U32_MAX;
	w->net.segment_bytes = 1000;
	w->net.acked = 299999;
	weft_tx_softirq(&w->st);
	KUNIT_EXPECT_EQ(test, w->net.pushes, 300U);
	weft_tx_softirq(&w->st);
	KUNIT_EXPECT_EQ(test, w->net.pushes, 300U + 66);
	w->net.segments = 0;
	end_tx(poll);
}

static struct kunit_case doorbell_cases[] = {
	KUNIT_CASE_PARAM(weft_doorbell_without_memory, later_rows_gen_params),
	KUNIT_CASE(weft_doorbell_serves_a_mark),
	KUNIT_CASE(weft_doorbell_ends_amid_marks),
	KUNIT_CASE(weft_doorbell_callback_ends_amid_marks),
	KUNIT_CASE_PARAM(weft_doorbell_leaves_the_rest, resume_rows_gen_params),
	KUNIT_CASE(weft_doorbell_callback_follows_the_peer),
	KUNIT_CASE(weft_defer_counts_queues),
	KUNIT_CASE_PARAM(weft_defer_is_limited, limit_rows_gen_params),
	KUNIT_CASE_PARAM(weft_defer_looks, look_rows_gen_params),
	KUNIT_CASE_PARAM(weft_defer_leaves_it_to_another, ringer_rows_gen_params),
	KUNIT_CASE(weft_defer_backs_off),
	KUNIT_CASE(weft_doorbell_end_is_final),
	KUNIT_CASE(weft_doorbell_merge_is_traced),
	{}
};

static struct kunit_suite doorbell_suite = {
	.name = "weft_doorbell",
	.init = make_stream,
	.exit = free_stream,
	.test_cases = doorbell_cases,
};

kunit_test_suite(doorbell_suite);
