// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A stream steps: what upper layers are asked for, when, and which events the connection gets. The
 * table of states itself is qp_fsm_kunit.c's.
 */
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "stream_world.h"
#include "suite.h"

struct event_row {
	const char *name;
	enum weft_qp_state from;
	enum weft_qp_event event;
	int sock_error;
	int close_error;	/* 1: as it was */
	u32 lost;
};

#define UNTOLD	1

static const struct event_row event_rows[] = {
	{ "started", WEFT_QP_IDLE, WEFT_QP_STARTED, 0, UNTOLD },
	{ "start_fails", WEFT_QP_IDLE, WEFT_QP_FAULTED, 0, UNTOLD },
	{ "close", WEFT_QP_RTS, WEFT_QP_CLOSE, 0, UNTOLD },
	{ "abort", WEFT_QP_RTS, WEFT_QP_ABORT, -EPIPE, 0 },
	{ "faulted", WEFT_QP_RTS, WEFT_QP_FAULTED, 0, -EPROTO },
	{ "peer_terminated", WEFT_QP_RTS, WEFT_QP_PEER_TERMINATED, 0, -EPROTO },
	{ "peer_closed", WEFT_QP_RTS, WEFT_QP_PEER_CLOSED, 0, 0 },
	{ "reset", WEFT_QP_RTS, WEFT_QP_CONN_LOST, -ETIMEDOUT, -ETIMEDOUT, 1 },
	{ "torn_fpdu", WEFT_QP_RTS, WEFT_QP_CONN_LOST, 0, -ECONNRESET, 1 },
	{ "both_fins", WEFT_QP_CLOSING, WEFT_QP_CONN_LOST, 0, 0 },
	{ "reset_while_closing", WEFT_QP_CLOSING, WEFT_QP_CONN_LOST, -ECONNRESET, -ECONNRESET, 1 },
	{ "drained", WEFT_QP_CLOSING, WEFT_QP_SQ_DRAINED, 0, UNTOLD },
	{ "closing_takes_too_long", WEFT_QP_CLOSING, WEFT_QP_TIMED_OUT, 0, -ETIMEDOUT },
	{ "terminate_sent", WEFT_QP_TERMINATE, WEFT_QP_TERMINATE_SENT, 0, UNTOLD },
	{ "reset_after_terminate", WEFT_QP_TERMINATE, WEFT_QP_CONN_LOST, -ECONNRESET, UNTOLD },
	{ "fault_after_terminate", WEFT_QP_TERMINATE, WEFT_QP_FAULTED, 0, UNTOLD },
	{ "too_late", WEFT_QP_ERROR, WEFT_QP_CONN_LOST, -ECONNRESET, UNTOLD },
};

WEFT_ROWS(event_rows)

/* Each action goes to the one hook it is for, which finds the new state and what is to do. */
static void weft_fsm_step(struct kunit *test)
{
	const struct event_row *row = test->param_value;
	struct weft_qp_step step = weft_qp_fsm(row->from, row->event);
	u32 teardown = step.actions & ~WEFT_QPA_TX;
	bool tx = step.actions & WEFT_QPA_TX;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	st->sock = &w->sock;
	w->net.error = row->sock_error;
	st->state = row->from;
	st->close_error = UNTOLD;
	weft_stream_step(st, row->event);
	KUNIT_EXPECT_EQ(test, st->state, step.next);
	KUNIT_EXPECT_EQ(test, st->todo, teardown);
	KUNIT_EXPECT_EQ(test, st->close_error, row->close_error);
	KUNIT_EXPECT_EQ(test, w->seen.teardowns, teardown ? 1U : 0U);
	KUNIT_EXPECT_EQ(test, w->seen.want_tx, tx ? 1U : 0U);
	if (teardown || tx) {
		KUNIT_EXPECT_EQ(test, w->seen.state, step.next);
		KUNIT_EXPECT_EQ(test, w->seen.todo, teardown);
	}
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_CONN_LOST), (u64)row->lost);
	KUNIT_EXPECT_EQ(test, w->seen.releases + w->seen.defers, 0U);
}

struct unanswered_row {
	const char *name;
	bool direct;
	enum weft_qp_event event;
	enum weft_fault oldest;
};

static const struct unanswered_row unanswered_rows[] = {
	{ "direct_lost", true, WEFT_QP_CONN_LOST, WEFT_FAULT_UNREACHABLE },
	{ "direct_closed_by_peer", true, WEFT_QP_PEER_CLOSED, WEFT_FAULT_UNREACHABLE },
	{ "direct_aborted", true, WEFT_QP_ABORT, WEFT_FAULT_NONE },
	{ "lost", false, WEFT_QP_CONN_LOST, WEFT_FAULT_NONE },
	{ "closed_by_peer", false, WEFT_QP_PEER_CLOSED, WEFT_FAULT_NONE },
};

WEFT_ROWS(unanswered_rows)

/* As in InfiniBand: the oldest request of a QP connected by hand tells of a peer that has gone. */
static void weft_fsm_peer_has_gone(struct kunit *test)
{
	const struct unanswered_row *row = test->param_value;
	struct stream_world *w = test->priv;

	w->st.mpa.direct = row->direct;
	weft_stream_step(&w->st, row->event);
	KUNIT_EXPECT_EQ(test, w->st.oldest_fault, row->oldest);
}

/* What teardown has not yet come to is not forgotten. */
static void weft_fsm_todo_adds_up(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	weft_stream_step(st, WEFT_QP_CLOSE);
	KUNIT_EXPECT_EQ(test, st->todo, (u32)WEFT_QPA_DEADLINE);
	weft_stream_step(st, WEFT_QP_SQ_DRAINED);
	KUNIT_EXPECT_EQ(test, st->todo, (u32)(WEFT_QPA_DEADLINE | WEFT_QPA_HALF_CLOSE));
	weft_stream_step(st, WEFT_QP_CONN_LOST);
	KUNIT_EXPECT_EQ(test, st->todo,
			(u32)(WEFT_QPA_DEADLINE | WEFT_QPA_HALF_CLOSE | WEFT_QPA_STOP_RX |
			      WEFT_QPA_TELL_CM | WEFT_QPA_RELEASE));
	KUNIT_EXPECT_EQ(test, w->seen.teardowns, 3U);
	KUNIT_EXPECT_EQ(test, w->seen.want_tx, 2U);
}

/* Before it was started there is no socket to ask. */
static void weft_fsm_lost_without_socket(struct kunit *test)
{
	struct stream_world *w = test->priv;

	weft_stream_step(&w->st, WEFT_QP_CONN_LOST);
	KUNIT_EXPECT_EQ(test, w->st.close_error, -ECONNRESET);
}

static void weft_fsm_first_fault_counts(struct kunit *test)
{
	static const u8 head[18] = { 0x41, 0x43, 1, 2, 3, 4, 5 };
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct weft_fault_rec first;

	weft_stream_fault(st, WEFT_FAULT_UNTAGGED_MSN, head, sizeof(head), sizeof(head));
	KUNIT_EXPECT_EQ(test, st->state, WEFT_QP_TERMINATE);
	KUNIT_EXPECT_EQ(test, st->fault.fault, WEFT_FAULT_UNTAGGED_MSN);
	KUNIT_EXPECT_EQ(test, st->fault.ddp_len, 18);
	KUNIT_EXPECT_EQ(test, memcmp(st->fault.headers, head, sizeof(head)), 0);
	KUNIT_EXPECT_EQ(test, w->seen.teardowns, 1U);
	KUNIT_EXPECT_EQ(test, w->seen.want_tx, 1U);

	first = st->fault;
	weft_stream_fault(st, WEFT_FAULT_LOCAL_CATASTROPHIC, NULL, 0, 0);
	KUNIT_EXPECT_EQ(test, memcmp(&first, &st->fault, sizeof(first)), 0);
	KUNIT_EXPECT_EQ(test, st->close_error, -EPROTO);
	KUNIT_EXPECT_EQ(test, w->seen.teardowns, 1U);
	KUNIT_EXPECT_EQ(test, w->seen.want_tx, 1U);
}

static void weft_fsm_last_put_releases(struct kunit *test)
{
	struct stream_world *w = test->priv;

	kref_get(&w->st.ref);
	weft_stream_put(&w->st);
	KUNIT_EXPECT_EQ(test, w->seen.releases, 0U);
	weft_stream_put(&w->st);
	KUNIT_EXPECT_EQ(test, w->seen.releases, 1U);
}

static struct kunit_case fsm_cases[] = { KUNIT_CASE_PARAM(weft_fsm_step, event_rows_gen_params),
					 KUNIT_CASE_PARAM(weft_fsm_peer_has_gone,
							  unanswered_rows_gen_params),
					 KUNIT_CASE(weft_fsm_todo_adds_up),
					 KUNIT_CASE(weft_fsm_lost_without_socket),
					 KUNIT_CASE(weft_fsm_first_fault_counts),
					 KUNIT_CASE(weft_fsm_last_put_releases),
					 {} };

static struct kunit_suite fsm_suite = {
	.name = "weft_fsm",
	.init = make_stream,
	.exit = free_stream,
	.test_cases = fsm_cases,
};

kunit_test_suite(fsm_suite);
