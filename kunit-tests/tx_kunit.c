// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A turn of tx: how long it goes on in each of its contexts, and what it leaves to others.
 */
#include <linux/jiffies.h>

#include "engine/path/tx.h"
#include "engine/state/claim.h"
#include "mem_world.h"
#include "stream_world.h"
#include "suite.h"

#define SEGMENT		1000U
#define PLENTY		100000U
/* A callback may stage 64 KiB at least, and ends the batch it is at. */
#define IN_A_CALLBACK	(65536U / SEGMENT + 1)

static void start_run(struct weft_tx_run *run, bool atomic, u64 acked)
{
	if (atomic)
		weft_tx_run_atomic(run, acked);
	else
		weft_tx_run_process(run);
}

struct budget_row {
	const char *name;
	bool atomic;
	s64 bytes;	/* staged already */
	long jiffies;	/* gone already */
	bool spent;
	u64 acked;	/* since the callback before */
};

static const struct budget_row budget_rows[] = {
	{ "process_begins", false, 0, 0, false },
	{ "process_sends_much", false, 1LL << 40, 0, false },
	{ "process_late", false, 0, HZ, true },
	{ "callback_begins", true, 0, 0, false },
	{ "callback_one_byte_left", true, 65535, 0, false },
	{ "callback_used_up", true, 65536, 0, true },
	{ "callback_one_batch_beyond", true, 200000, 0, true },
	{ "callback_late", true, 0, HZ, false },
	{ "callback_acked_little", true, 65535, 0, false, 1 },
	{ "callback_acked_as_much", true, 99999, 0, false, 100000 },
	{ "callback_acked_and_used_up", true, 100000, 0, true, 100000 },
	{ "callback_acked_most", true, 524287, 0, false, 1 << 24 },
	{ "callback_acked_most_and_used_up", true, 524288, 0, true, 1 << 24 },
};

WEFT_ROWS(budget_rows)

static void weft_tx_budget(struct kunit *test)
{
	const struct budget_row *row = test->param_value;
	struct weft_tx_run run;

	start_run(&run, row->atomic, row->acked);
	KUNIT_EXPECT_EQ(test, run.atomic, row->atomic);
	run.bytes -= row->bytes;
	run.end -= row->jiffies;
	KUNIT_EXPECT_EQ(test, weft_tx_spent(&run), row->spent);
}

/* It has to come to its end; a callback runs on behalf of no process. */
static void weft_tx_killed_process_stops(struct kunit *test)
{
	struct weft_tx_run process, callback;

	start_run(&process, false, 0);
	start_run(&callback, true, 0);
	spin_lock_irq(&current->sighand->siglock);
	sigaddset(&current->pending.signal, SIGKILL);
	set_tsk_thread_flag(current, TIF_SIGPENDING);
	spin_unlock_irq(&current->sighand->siglock);
	KUNIT_EXPECT_TRUE(test, weft_tx_spent(&process));
	KUNIT_EXPECT_FALSE(test, weft_tx_spent(&callback));
	spin_lock_irq(&current->sighand->siglock);
	sigdelset(&current->pending.signal, SIGKILL);
	clear_tsk_thread_flag(current, TIF_SIGPENDING);
	spin_unlock_irq(&current->sighand->siglock);
	KUNIT_EXPECT_FALSE(test, weft_tx_spent(&process));
}

static struct stream_world *make_sender(struct kunit *test, u32 segments)
{
	struct stream_world *w = test->priv;

	w->net.segments = segments;
	w->net.segment_bytes = SEGMENT;
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&w->st.tx.claim));
	return w;
}

/* All turns of a callback share one budget; another context does the rest. */
static void weft_tx_callback_stops(struct kunit *test)
{
	struct stream_world *w = make_sender(test, PLENTY);
	struct weft_tx_run run;

	weft_tx_run_atomic(&run, 0);
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &run), WEFT_TX_MORE);
	KUNIT_EXPECT_EQ(test, w->net.segments, PLENTY - IN_A_CALLBACK);
	KUNIT_EXPECT_EQ(test, w->net.pushes, IN_A_CALLBACK);
	KUNIT_EXPECT_TRUE(test, w->st.tx.sock.atomic);
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &run), WEFT_TX_MORE);
	KUNIT_EXPECT_EQ(test, w->net.segments, PLENTY - IN_A_CALLBACK - 1);
	KUNIT_EXPECT_EQ(test, weft_sendq_ctl(&w->sq)->state, (u32)WEFT_SQ_BUSY);
}

static void weft_tx_process_sends_all(struct kunit *test)
{
	struct stream_world *w = make_sender(test, 10 * IN_A_CALLBACK);
	struct weft_tx_run run;

	weft_tx_run_process(&run);
	run.end += 60 * HZ;	/* the machine may be slow */
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &run), WEFT_TX_DONE);
	KUNIT_EXPECT_EQ(test, w->net.segments, 0U);
	KUNIT_EXPECT_FALSE(test, w->st.tx.sock.atomic);
	KUNIT_EXPECT_EQ(test, weft_sendq_ctl(&w->sq)->state, (u32)WEFT_SQ_NEED_DOORBELL);
}

static void weft_tx_process_that_is_late_stops(struct kunit *test)
{
	struct stream_world *w = make_sender(test, PLENTY);
	struct weft_tx_run run;

	weft_tx_run_process(&run);
	run.end = jiffies - 1;
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &run), WEFT_TX_MORE);
	KUNIT_EXPECT_EQ(test, w->net.segments, PLENTY - 1);
}

struct end_row {
	const char *name;
	bool atomic;
	bool no_context;
	int push_error;
	enum weft_qp_state state;
	bool gate_shut;
	enum weft_tx_result result;
	enum weft_qp_state then;
	bool rnr_waits;
};

static const struct end_row end_rows[] = {
	{ "nothing_to_send", true, false, 0, WEFT_QP_RTS, false, WEFT_TX_DONE, WEFT_QP_RTS },
	{ "gate_shut", true, false, 0, WEFT_QP_RTS, true, WEFT_TX_DONE, WEFT_QP_RTS },
	{ "idle", false, false, 0, WEFT_QP_IDLE, false, WEFT_TX_DONE, WEFT_QP_IDLE },
	{ "socket_full", true, false, -EAGAIN, WEFT_QP_RTS, false, WEFT_TX_DONE, WEFT_QP_RTS },
	{ "callback_no_context", true, true, 0, WEFT_QP_RTS, false, WEFT_TX_NEEDS_PROCESS,
	  WEFT_QP_RTS },
	{ "process_no_memory", false, true, 0, WEFT_QP_RTS, false, WEFT_TX_NO_MEMORY, WEFT_QP_RTS },
	{ "callback_push_no_memory", true, false, -ENOBUFS, WEFT_QP_RTS, false,
	  WEFT_TX_NEEDS_PROCESS, WEFT_QP_RTS },
	{ "process_push_no_memory", false, false, -ENOBUFS, WEFT_QP_RTS, false, WEFT_TX_NO_MEMORY,
	  WEFT_QP_RTS },
	{ "lost", true, false, -EPIPE, WEFT_QP_RTS, false, WEFT_TX_DONE, WEFT_QP_ERROR },
	{ "drained", true, false, 0, WEFT_QP_CLOSING, false, WEFT_TX_DONE, WEFT_QP_CLOSING },
	{ "drained_before_the_gate_opens", true, false, 0, WEFT_QP_CLOSING, true, WEFT_TX_DONE,
	  WEFT_QP_CLOSING },
	{ "drained_while_a_message_waits", true, false, 0, WEFT_QP_CLOSING, false, WEFT_TX_DONE,
	  WEFT_QP_CLOSING, true },
};

WEFT_ROWS(end_rows)

static void weft_tx_turn_ends(struct kunit *test)
{
	const struct end_row *row = test->param_value;
	bool ends = row->state == WEFT_QP_CLOSING && !row->rnr_waits && !row->gate_shut;
	struct stream_world *w = make_sender(test, 0);
	struct weft_tx_run run;

	w->st.state = row->state;
	w->st.gate_open = !row->gate_shut;
	w->net.no_context = row->no_context;
	w->net.push_error = row->push_error;
	w->st.rnr_waits = row->rnr_waits;
	weft_tx_mark(&w->st.tx.claim);
	start_run(&run, row->atomic, 0);
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &run), row->result);
	KUNIT_EXPECT_EQ(test, w->st.state, row->then);
	KUNIT_EXPECT_EQ(test, w->st.tx.claim, BIT(WEFT_TX_CLAIMED));
	KUNIT_EXPECT_EQ(test, w->st.todo & WEFT_QPA_HALF_CLOSE,
			ends ? (u32)WEFT_QPA_HALF_CLOSE : 0U);
	w->st.rnr_waits = false;
}

/* What a batch has pinned may be deregistered as soon as its requests complete. */
static void weft_tx_lets_go_of_memory(struct kunit *test)
{
	struct stream_world *w = make_sender(test, 0);
	struct weft_mem_user *user = &w->st.tx.mem;
	struct world *m = make_world(test);
	struct weft_mem_region *mr = make_region(test, m, RR);
	struct weft_tx_run run;

	*user = m->user;
	begin_read(test, user, mr->grant.stag);
	start_run(&run, true, 0);
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &run), WEFT_TX_DONE);
	KUNIT_EXPECT_NULL(test, user->held);
	weft_mem_release(user); /* drop() waits for it */
	drop(test, m, mr);
	leave(test, m);
}

/* A failed stream is flushed once rx is quiet, and where one may sleep. */
static void weft_tx_turn_flushes(struct kunit *test)
{
	struct stream_world *w = make_sender(test, PLENTY);
	struct weft_tx_run atomic, process;

	weft_tx_run_atomic(&atomic, 0);
	weft_tx_run_process(&process);
	w->st.state = WEFT_QP_ERROR;
	post_send(w, WEFT_WR_SEND, 0);
	weft_cq_arm(&w->send_cq, WEFT_ARM_NEXT);
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &process), WEFT_TX_DONE);
	KUNIT_EXPECT_EQ(test, w->sq.cons, 0U);
	w->st.quiet = true;
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &atomic), WEFT_TX_NEEDS_PROCESS);
	KUNIT_EXPECT_EQ(test, w->sq.cons, 0U);
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &process), WEFT_TX_DONE);
	expect_sends(test, w, 0, 1, WEFT_STATUS_FLUSH);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_CQ_EVENTS), 1ULL);
	KUNIT_EXPECT_EQ(test, w->net.segments, PLENTY);
}

/* An application that defers doorbells is left to the timer if there is one. */
static void weft_tx_turn_defers(struct kunit *test)
{
	struct stream_world *w = make_sender(test, 0);
	struct weft_tx_run run;

	weft_sendq_ctl(&w->sq)->defer_doorbell = 1;
	weft_tx_run_process(&run);
	weft_tx_turn(&w->st, &run);
	KUNIT_EXPECT_EQ(test, w->seen.defers, 1U);
	KUNIT_EXPECT_EQ(test, weft_sendq_ctl(&w->sq)->state, (u32)WEFT_SQ_NEED_DOORBELL);
	w->defer = true;
	weft_tx_turn(&w->st, &run);
	KUNIT_EXPECT_EQ(test, weft_sendq_ctl(&w->sq)->state, (u32)WEFT_SQ_POLLED);
}

struct posted_row {
	const char *name;
	bool defer;
	enum weft_sq_state left;
};

static const struct posted_row posted_rows[] = {
	{ "polled", true, WEFT_SQ_POLLED },
	{ "needs_doorbell", false, WEFT_SQ_NEED_DOORBELL },
};

WEFT_ROWS(posted_rows)

/* The process finds the queue BUSY, so it rings no doorbell: tx looks again before it leaves. */
static void weft_tx_turn_sees_a_late_post(struct kunit *test)
{
	const struct posted_row *row = test->param_value;
	struct stream_world *w = make_sender(test, 0);
	struct weft_tx_run run;

	weft_sendq_ctl(&w->sq)->defer_doorbell = 1;
	w->defer = row->defer;
	w->posts_in_defer = 1;
	w->net.fetch = true;
	weft_tx_run_process(&run);
	KUNIT_EXPECT_EQ(test, weft_tx_turn(&w->st, &run), WEFT_TX_DONE);
	KUNIT_EXPECT_EQ(test, w->sq.fetched, 1U);
	KUNIT_EXPECT_EQ(test, w->net.segments, 0U);
	KUNIT_EXPECT_EQ(test, w->seen.defers, 2U);
	KUNIT_EXPECT_EQ(test, weft_sendq_ctl(&w->sq)->state, (u32)row->left);
}

/*
 * The first message of many is done after one batch: an application that sleeps is woken then, and
 * not when all are sent. In a callback the socket is locked, so it is woken afterwards.
 */
static void weft_tx_tells_of_a_send(struct kunit *test)
{
	struct stream_world *w = make_sender(test, 4);
	struct weft_tx_run run;

	post_send(w, WEFT_WR_SEND, 0);
	stage_send(test, w, SEGMENT);
	weft_cq_arm(&w->send_cq, WEFT_ARM_NEXT);
	weft_tx_run_process(&run);
	run.end += 60 * HZ;	/* the machine may be slow */
	weft_tx_turn(&w->st, &run);
	KUNIT_EXPECT_EQ(test, w->told_at, 1U);
	KUNIT_EXPECT_EQ(test, w->net.pushes, 4U);

	w->net.segments = 4;
	post_send(w, WEFT_WR_SEND, 0);
	stage_send(test, w, w->st.tx.sock.pos + SEGMENT);
	weft_cq_arm(&w->send_cq, WEFT_ARM_NEXT);
	weft_tx_run_atomic(&run, 0);
	weft_tx_turn(&w->st, &run);
	KUNIT_EXPECT_EQ(test, w->told_at, 8U);
	KUNIT_EXPECT_EQ(test, w->net.pushes, 8U);
}

/* A QP may be destroyed before the worker comes that its doorbell was left to. */
static void weft_tx_settle_sends(struct kunit *test)
{
	struct stream_world *w = test->priv;

	weft_tx_settle(&w->st);
	KUNIT_EXPECT_EQ(test, w->net.pushes, 0U);
	w->net.segments = 1;
	w->net.fetch = true;
	post_send(w, WEFT_WR_SEND, 0);
	weft_tx_settle(&w->st);
	KUNIT_EXPECT_EQ(test, w->sq.fetched, 1U);
	KUNIT_EXPECT_EQ(test, w->net.segments, 0U);
	KUNIT_EXPECT_GE(test, w->net.pushes, 1U);
	KUNIT_EXPECT_EQ(test, w->st.tx.claim, 0UL);
}

/* What found the claim taken meanwhile has left a mark, and does not come again. */
static void weft_tx_limit_ord_serves_marks(struct kunit *test)
{
	struct stream_world *w = test->priv;

	weft_tx_limit_ord(&w->st, 5);
	KUNIT_EXPECT_EQ(test, w->seen.want_tx, 0U);
	weft_tx_mark(&w->st.tx.claim);
	weft_tx_limit_ord(&w->st, 4);
	KUNIT_EXPECT_EQ(test, w->seen.want_tx, 1U);
}

/* The end of a stream takes its claim for good, which nothing may wait for. */
static void weft_tx_limit_ord_of_an_ended_stream(struct kunit *test)
{
	struct stream_world *w = test->priv;

	w->st.readq.ord = 8;
	weft_tx_limit_ord(&w->st, 5);
	KUNIT_EXPECT_EQ(test, w->st.readq.ord, 5U);
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&w->st.tx.claim));
	w->st.state = WEFT_QP_ERROR;
	weft_tx_limit_ord(&w->st, 2);
	KUNIT_EXPECT_EQ(test, w->st.readq.ord, 5U);
}

static struct kunit_case tx_cases[] = { KUNIT_CASE_PARAM(weft_tx_budget, budget_rows_gen_params),
					KUNIT_CASE(weft_tx_killed_process_stops),
					KUNIT_CASE(weft_tx_callback_stops),
					KUNIT_CASE(weft_tx_process_sends_all),
					KUNIT_CASE(weft_tx_process_that_is_late_stops),
					KUNIT_CASE_PARAM(weft_tx_turn_ends, end_rows_gen_params),
					KUNIT_CASE(weft_tx_lets_go_of_memory),
					KUNIT_CASE(weft_tx_turn_flushes),
					KUNIT_CASE(weft_tx_turn_defers),
					KUNIT_CASE_PARAM(weft_tx_turn_sees_a_late_post,
							 posted_rows_gen_params),
					KUNIT_CASE(weft_tx_tells_of_a_send),
					KUNIT_CASE(weft_tx_settle_sends),
					KUNIT_CASE(weft_tx_limit_ord_serves_marks),
					KUNIT_CASE(weft_tx_limit_ord_of_an_ended_stream),
					{} };

static struct kunit_suite tx_suite = {
	.name = "weft_tx",
	.init = make_stream,
	.exit = free_stream,
	.test_cases = tx_cases,
};

kunit_test_suite(tx_suite);
