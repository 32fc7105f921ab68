// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * States of a stream, every pair of state and event: RFC 5040, 6.2; RFC 5041, 6.2.
 * What is no row and not ignored is impossible, and must be marked so.
 */
#include "proto/qp_fsm.h"
#include "suite.h"

#define FLUSH	(WEFT_QPA_TX | WEFT_QPA_RELEASE)
#define DOWN	(WEFT_QPA_STOP_RX | WEFT_QPA_TELL_CM | FLUSH)
#define SEND_TERMINATE \
	(WEFT_QPA_STOP_RX | WEFT_QPA_TX | WEFT_QPA_TELL_CM | WEFT_QPA_DEADLINE | WEFT_QPA_REPORT)

struct step_row {
	const char *name;
	u8 state;
	u8 event;
	u8 next;
	u8 actions;
};

/* clang-format off */
#define STEP(from, event, to, actions) \
	{ #from "_" #event, WEFT_QP_##from, WEFT_QP_##event, WEFT_QP_##to, (actions) }
/* clang-format on */

static const struct step_row step_rows[] = {
	STEP(IDLE, STARTED, RTS, WEFT_QPA_TX),
	STEP(IDLE, ABORT, ERROR, FLUSH),
	STEP(IDLE, FAULTED, ERROR, FLUSH | WEFT_QPA_REPORT),
	STEP(IDLE, PEER_CLOSED, ERROR, DOWN),
	STEP(IDLE, CONN_LOST, ERROR, DOWN),

	/* RFC 5040, 6.2: the three ends of a stream */
	STEP(RTS, CLOSE, CLOSING, WEFT_QPA_TX | WEFT_QPA_DEADLINE),
	STEP(RTS, ABORT, ERROR, DOWN),
	STEP(RTS, FAULTED, TERMINATE, SEND_TERMINATE),
	STEP(RTS, PEER_TERMINATED, ERROR, DOWN | WEFT_QPA_REPORT),
	STEP(RTS, PEER_CLOSED, ERROR, DOWN),
	STEP(RTS, CONN_LOST, ERROR, DOWN),

	/* RFC 5041, 6.2.1: what was posted goes out, then FIN */
	STEP(CLOSING, ABORT, ERROR, DOWN),
	STEP(CLOSING, FAULTED, TERMINATE, SEND_TERMINATE),
	STEP(CLOSING, PEER_TERMINATED, ERROR, DOWN | WEFT_QPA_REPORT),
	STEP(CLOSING, SQ_DRAINED, CLOSING, WEFT_QPA_HALF_CLOSE | WEFT_QPA_DEADLINE),
	STEP(CLOSING, CONN_LOST, ERROR, DOWN),
	STEP(CLOSING, TIMED_OUT, ERROR, DOWN),

	/* RFC 5040, 6.2.1: nothing follows a Terminate but a FIN */
	STEP(TERMINATE, ABORT, ERROR, FLUSH),
	STEP(TERMINATE, PEER_TERMINATED, ERROR, FLUSH),
	STEP(TERMINATE, TERMINATE_SENT, TERMINATE, WEFT_QPA_HALF_CLOSE | WEFT_QPA_DEADLINE),
	STEP(TERMINATE, CONN_LOST, ERROR, FLUSH),
	STEP(TERMINATE, TIMED_OUT, ERROR, FLUSH),

	/* a second life, once the first is over */
	STEP(ERROR, RESET, IDLE, 0),
};

WEFT_ROWS(step_rows)

#define BIT_OF(event)	(1U << WEFT_QP_##event)

/* Events that come too late, or again, and change nothing. */
static const u32 ignored[WEFT_QP_STATES] = {
	[WEFT_QP_IDLE] = BIT_OF(CLOSE) | BIT_OF(RESET),
	[WEFT_QP_RTS] = 0,
	[WEFT_QP_CLOSING] = BIT_OF(CLOSE) | BIT_OF(PEER_CLOSED),
	[WEFT_QP_TERMINATE] = BIT_OF(CLOSE) | BIT_OF(FAULTED) | BIT_OF(SQ_DRAINED) |
			      BIT_OF(PEER_CLOSED),
	[WEFT_QP_ERROR] = ((1U << WEFT_QP_EVENTS) - 1) & ~BIT_OF(RESET),
};

static void step_of_table(struct kunit *test)
{
	const struct step_row *row = test->param_value;
	struct weft_qp_step step = weft_qp_fsm(row->state, row->event);

	KUNIT_EXPECT_STREQ(test, weft_qp_state_name(step.next), weft_qp_state_name(row->next));
	KUNIT_EXPECT_EQ(test, step.actions, row->actions);
	KUNIT_EXPECT_FALSE(test, step.actions & WEFT_QPA_IMPOSSIBLE);
}

static bool has_row(u32 state, u32 event)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(step_rows); i++)
		if (step_rows[i].state == state && step_rows[i].event == event)
			return true;
	return false;
}

static void step_of_all_other_pairs(struct kunit *test)
{
	u32 state, event, pairs = 0;

	for (state = 0; state < WEFT_QP_STATES; state++)
		for (event = 0; event < WEFT_QP_EVENTS; event++) {
			struct weft_qp_step step = weft_qp_fsm(state, event);

			if (has_row(state, event))
				continue;
			pairs++;
			KUNIT_EXPECT_EQ_MSG(test, step.next, state, "%u, %u", state, event);
			KUNIT_EXPECT_EQ_MSG(test, step.actions,
					    ignored[state] >> event & 1 ? 0 : WEFT_QPA_IMPOSSIBLE,
					    "%u, %u", state, event);
		}
	KUNIT_EXPECT_EQ(test, pairs + (u32)ARRAY_SIZE(step_rows),
			(u32)(WEFT_QP_STATES * WEFT_QP_EVENTS));
}

/*
 * All lives a stream can have, as a walk over states and what was done so far.
 * @done: actions that were carried out at least once
 */
struct life {
	u8 state;
	u8 done;
};

#define ONCE	(WEFT_QPA_TELL_CM | WEFT_QPA_RELEASE | WEFT_QPA_REPORT)

static void expect_sane_step(struct kunit *test, struct life life, u32 event,
			     struct weft_qp_step step)
{
	bool ends = step.next == WEFT_QP_ERROR && life.state != WEFT_QP_ERROR;
	u8 done = life.done | step.actions;
	const char *from = weft_qp_state_name(life.state), *what = weft_qp_event_name(event);

	KUNIT_EXPECT_EQ_MSG(test, life.done & step.actions & ONCE, 0, "%s, %s", from, what);
	KUNIT_EXPECT_EQ_MSG(test, (step.actions & FLUSH) == FLUSH, ends, "%s, %s", from, what);
	/* a stream that ran does not end behind the back of the connection manager */
	KUNIT_EXPECT_TRUE_MSG(test, !ends || life.state == WEFT_QP_IDLE || done & WEFT_QPA_TELL_CM,
			      "%s, %s", from, what);
	KUNIT_EXPECT_TRUE_MSG(test, !ends || life.state == WEFT_QP_IDLE || done & WEFT_QPA_STOP_RX,
			      "%s, %s", from, what);
	/* a transient state always has a deadline */
	if (step.next == WEFT_QP_CLOSING || step.next == WEFT_QP_TERMINATE)
		KUNIT_EXPECT_TRUE_MSG(test, done & WEFT_QPA_DEADLINE, "%s, %s", from, what);
	if (step.next == WEFT_QP_RTS)
		KUNIT_EXPECT_EQ_MSG(test, done & ~WEFT_QPA_TX, 0, "%s, %s", from, what);
	if (step.next == WEFT_QP_TERMINATE)
		KUNIT_EXPECT_TRUE_MSG(test, done & WEFT_QPA_STOP_RX, "%s, %s", from, what);
}

static void every_life_of_a_stream(struct kunit *test)
{
	struct life *todo = kunit_kzalloc(test, WEFT_QP_STATES * 256 * sizeof(*todo), GFP_KERNEL);
	u8 *seen = kunit_kzalloc(test, WEFT_QP_STATES * 256, GFP_KERNEL);
	u32 at, end = 1, event;

	KUNIT_ASSERT_NOT_NULL(test, todo);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	todo[0] = (struct life){ .state = WEFT_QP_IDLE };
	for (at = 0; at < end; at++) {
		for (event = 0; event < WEFT_QP_EVENTS; event++) {
			struct weft_qp_step step = weft_qp_fsm(todo[at].state, event);
			struct life next = { step.next, todo[at].done | step.actions };

			if (event == WEFT_QP_RESET)
				next.done = 0;
			if (step.actions & WEFT_QPA_IMPOSSIBLE)
				continue;
			expect_sane_step(test, todo[at], event, step);
			if (seen[next.state << 8 | next.done]++ == 0)
				todo[end++] = next;
		}
	}
	KUNIT_EXPECT_GT(test, end, (u32)WEFT_QP_STATES);
}

/* From wherever it is, destroying a queue pair gets it to its end at once. */
static void abort_ends_every_state(struct kunit *test)
{
	u32 state;

	for (state = 0; state < WEFT_QP_STATES; state++)
		KUNIT_EXPECT_EQ(test, weft_qp_fsm(state, WEFT_QP_ABORT).next, WEFT_QP_ERROR);
}

/* clang-format off */
#define NAMED(id) \
	[WEFT_QP_##id] = #id
/* clang-format on */

static void names_are_those_of_the_constants(struct kunit *test)
{
	static const char *const states[WEFT_QP_STATES] = {
		NAMED(IDLE), NAMED(RTS), NAMED(CLOSING), NAMED(TERMINATE), NAMED(ERROR),
	};
	static const char *const events[WEFT_QP_EVENTS] = {
		NAMED(STARTED),	   NAMED(CLOSE),	   NAMED(ABORT),
		NAMED(FAULTED),	   NAMED(PEER_TERMINATED), NAMED(TERMINATE_SENT),
		NAMED(SQ_DRAINED), NAMED(PEER_CLOSED),	   NAMED(CONN_LOST),
		NAMED(TIMED_OUT),  NAMED(RESET),
	};

	WEFT_EXPECT_NAMES(test, weft_qp_state_name, states);
	WEFT_EXPECT_NAMES(test, weft_qp_event_name, events);
}

static void names_of_no_such_value(struct kunit *test)
{
	KUNIT_EXPECT_NOT_NULL(test, weft_qp_state_name(WEFT_QP_STATES));
	KUNIT_EXPECT_NOT_NULL(test, weft_qp_state_name((enum weft_qp_state)255));
	KUNIT_EXPECT_NOT_NULL(test, weft_qp_event_name(WEFT_QP_EVENTS));
	KUNIT_EXPECT_NOT_NULL(test, weft_qp_event_name((enum weft_qp_event)255));
}

static struct kunit_case qp_fsm_cases[] = {
	KUNIT_CASE_PARAM(step_of_table, step_rows_gen_params),
	KUNIT_CASE(step_of_all_other_pairs),
	KUNIT_CASE(every_life_of_a_stream),
	KUNIT_CASE(abort_ends_every_state),
	KUNIT_CASE(names_are_those_of_the_constants),
	KUNIT_CASE(names_of_no_such_value),
	{},
};

static struct kunit_suite qp_fsm_suite = {
	.name = "weft_qp_fsm",
	.test_cases = qp_fsm_cases,
};

kunit_test_suite(qp_fsm_suite);
