// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * States of a connection, every pair of state and event, and every way a
 * connection can go: RFC 5044, 7.1.2; RFC 6581, 5. What is no row and not ignored
 * is impossible, and must be marked so.
 */
#include "proto/conn_fsm.h"
#include "suite.h"

#define FAILED	(WEFT_CONNA_TELL_REPLY | WEFT_CONNA_CANCEL_TIMER | WEFT_CONNA_RELEASE)
#define DROP	(WEFT_CONNA_CANCEL_TIMER | WEFT_CONNA_RELEASE)
#define ENDED	(WEFT_CONNA_TELL_ESTABLISHED | WEFT_CONNA_TELL_DISCONNECT | WEFT_CONNA_CANCEL_TIMER)

struct step_row {
	const char *name;
	u8 state;
	u8 event;
	u8 next;
	u16 actions;
};

/* clang-format off */
#define STEP(from, event, to, actions) \
	{ #from "_" #event, WEFT_CONN_##from, WEFT_CONN_##event, WEFT_CONN_##to, (actions) }
/* clang-format on */

static const struct step_row step_rows[] = {
	STEP(IDLE, CONNECT, CONNECTING, WEFT_CONNA_ARM_TIMER),
	/* RFC 5044, 7.1.2 (8): a responder limits the wait for the request */
	STEP(IDLE, TCP_ACCEPTED, AWAIT_REQUEST, WEFT_CONNA_ARM_TIMER),
	STEP(IDLE, ABANDONED, CLOSED, WEFT_CONNA_RELEASE),

	/* the initiator: 7.1.2 (1), (3), (5), (10) */
	STEP(CONNECTING, TCP_CONNECTED, AWAIT_REPLY,
	     WEFT_CONNA_SEND_REQUEST | WEFT_CONNA_ARM_TIMER),
	STEP(CONNECTING, TCP_FAILED, CLOSED, FAILED),
	STEP(CONNECTING, TIMED_OUT, CLOSED, FAILED),
	STEP(CONNECTING, PEER_CLOSED, CLOSED, FAILED),
	STEP(CONNECTING, ABANDONED, CLOSED, FAILED),
	STEP(AWAIT_REPLY, REPLY_RECEIVED, RUNNING,
	     WEFT_CONNA_START_STREAM | WEFT_CONNA_TELL_REPLY | WEFT_CONNA_CANCEL_TIMER),
	STEP(AWAIT_REPLY, TCP_FAILED, CLOSED, FAILED),
	STEP(AWAIT_REPLY, REJECT_RECEIVED, CLOSED, FAILED),
	STEP(AWAIT_REPLY, BAD_FRAME, CLOSED, FAILED),
	STEP(AWAIT_REPLY, TIMED_OUT, CLOSED, FAILED),
	STEP(AWAIT_REPLY, PEER_CLOSED, CLOSED, FAILED),
	STEP(AWAIT_REPLY, ABANDONED, CLOSED, FAILED),

	/* the responder: 7.1.2 (2); before the request nothing is sent and no event raised */
	STEP(AWAIT_REQUEST, REQUEST_RECEIVED, AWAIT_ACCEPT,
	     WEFT_CONNA_TELL_REQUEST | WEFT_CONNA_ARM_TIMER),
	STEP(AWAIT_REQUEST, TCP_FAILED, CLOSED, DROP),
	STEP(AWAIT_REQUEST, BAD_FRAME, CLOSED, DROP),
	STEP(AWAIT_REQUEST, TIMED_OUT, CLOSED, DROP),
	STEP(AWAIT_REQUEST, PEER_CLOSED, CLOSED, DROP),
	STEP(AWAIT_REQUEST, ABANDONED, CLOSED, DROP),
	STEP(AWAIT_ACCEPT, ULP_ACCEPTED, RUNNING,
	     WEFT_CONNA_SEND_REPLY | WEFT_CONNA_START_STREAM | WEFT_CONNA_TELL_ESTABLISHED |
		     WEFT_CONNA_CANCEL_TIMER),
	STEP(AWAIT_ACCEPT, ULP_ACCEPTED_P2P, AWAIT_RTR,
	     WEFT_CONNA_SEND_REPLY | WEFT_CONNA_START_STREAM | WEFT_CONNA_ARM_TIMER),
	STEP(AWAIT_ACCEPT, ULP_REJECTED, CLOSED, WEFT_CONNA_SEND_REJECT | DROP),
	STEP(AWAIT_ACCEPT, TCP_FAILED, CLOSED, DROP),
	STEP(AWAIT_ACCEPT, PEER_CLOSED, CLOSED, DROP),
	STEP(AWAIT_ACCEPT, ABANDONED, CLOSED, DROP),

	/* RFC 6581, 5: the RTR ends the establishment */
	STEP(AWAIT_RTR, READY, RUNNING, WEFT_CONNA_TELL_ESTABLISHED | WEFT_CONNA_CANCEL_TIMER),
	STEP(AWAIT_RTR, TIMED_OUT, CLOSING, ENDED | WEFT_CONNA_ABORT_STREAM),
	STEP(AWAIT_RTR, STREAM_CLOSING, CLOSING, ENDED),
	STEP(AWAIT_RTR, ABANDONED, CLOSING, ENDED | WEFT_CONNA_ABORT_STREAM),

	STEP(RUNNING, STREAM_CLOSING, CLOSING, WEFT_CONNA_TELL_DISCONNECT),
	STEP(RUNNING, ABANDONED, CLOSING, WEFT_CONNA_TELL_DISCONNECT | WEFT_CONNA_ABORT_STREAM),
	STEP(CLOSING, STREAM_CLOSED, CLOSED, WEFT_CONNA_TELL_CLOSE | WEFT_CONNA_RELEASE),
	STEP(CLOSING, ABANDONED, CLOSING, WEFT_CONNA_ABORT_STREAM),
};

WEFT_ROWS(step_rows)

#define BIT_OF(event)	(1U << WEFT_CONN_##event)
#define LATE_SOCKET	(BIT_OF(TCP_FAILED) | BIT_OF(PEER_CLOSED))

/* Events that come too late, or again, and change nothing. */
static const u32 ignored[WEFT_CONN_STATES] = {
	[WEFT_CONN_AWAIT_REPLY] = BIT_OF(TCP_CONNECTED),
	[WEFT_CONN_AWAIT_REQUEST] = BIT_OF(TCP_CONNECTED),
	[WEFT_CONN_AWAIT_ACCEPT] = BIT_OF(TIMED_OUT),
	[WEFT_CONN_AWAIT_RTR] = LATE_SOCKET,
	[WEFT_CONN_RUNNING] = LATE_SOCKET | BIT_OF(READY) | BIT_OF(TIMED_OUT),
	[WEFT_CONN_CLOSING] = LATE_SOCKET | BIT_OF(READY) | BIT_OF(TIMED_OUT) |
			      BIT_OF(STREAM_CLOSING),
	[WEFT_CONN_CLOSED] = ((1U << WEFT_CONN_EVENTS) - 1) &
			     ~(BIT_OF(CONNECT) | BIT_OF(TCP_ACCEPTED) | BIT_OF(STREAM_CLOSING) |
			       BIT_OF(STREAM_CLOSED)),
};

static void step_of_table(struct kunit *test)
{
	const struct step_row *row = test->param_value;
	struct weft_conn_step step = weft_conn_fsm(row->state, row->event);

	KUNIT_EXPECT_STREQ(test, weft_conn_state_name(step.next), weft_conn_state_name(row->next));
	KUNIT_EXPECT_EQ(test, step.actions, row->actions);
	KUNIT_EXPECT_FALSE(test, step.actions & WEFT_CONNA_IMPOSSIBLE);
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

	for (state = 0; state < WEFT_CONN_STATES; state++)
		for (event = 0; event < WEFT_CONN_EVENTS; event++) {
			struct weft_conn_step step = weft_conn_fsm(state, event);

			if (has_row(state, event))
				continue;
			pairs++;
			KUNIT_EXPECT_EQ_MSG(test, step.next, state, "%u, %u", state, event);
			KUNIT_EXPECT_EQ_MSG(test, step.actions,
					    ignored[state] >> event & 1 ? 0 : WEFT_CONNA_IMPOSSIBLE,
					    "%u, %u", state, event);
		}
	KUNIT_EXPECT_EQ(test, pairs + (u32)ARRAY_SIZE(step_rows),
			(u32)(WEFT_CONN_STATES * WEFT_CONN_EVENTS));
}

/*
 * All lives a connection can have, as a walk over states and what was done so far.
 * @done: actions carried out at least once, ARM_TIMER while the timer runs
 */
struct life {
	u8 state;
	u16 done;
};

/* What may happen once in the life of a connection. */
#define ONCE                                                                                \
	(WEFT_CONNA_SEND_REQUEST | WEFT_CONNA_SEND_REPLY | WEFT_CONNA_SEND_REJECT |         \
	 WEFT_CONNA_START_STREAM | WEFT_CONNA_TELL_REQUEST | WEFT_CONNA_TELL_REPLY |        \
	 WEFT_CONNA_TELL_ESTABLISHED | WEFT_CONNA_TELL_DISCONNECT | WEFT_CONNA_TELL_CLOSE | \
	 WEFT_CONNA_RELEASE)

static u16 done_after(struct life life, u32 event, u16 actions)
{
	u16 done = life.done;

	if (event == WEFT_CONN_TIMED_OUT || actions & WEFT_CONNA_CANCEL_TIMER)
		done &= ~WEFT_CONNA_ARM_TIMER;
	return done | actions;
}

/* Nothing of @these was done unless something of @those was. */
static bool needs(u16 done, u16 these, u16 those)
{
	return !(done & these) || done & those;
}

static bool both(u16 done, u16 a, u16 b)
{
	return done & a && done & b;
}

static void expect_sane_step(struct kunit *test, struct life life, u32 event,
			     struct weft_conn_step step)
{
	const char *from = weft_conn_state_name(life.state), *what = weft_conn_event_name(event);
	u16 done = done_after(life, event, step.actions);
	bool sane;

	KUNIT_EXPECT_EQ_MSG(test, life.done & step.actions & ONCE, 0, "%s, %s", from, what);
	/* The consumer's side of it: which events iw_cm expects, and in which order. */
	sane = needs(done, WEFT_CONNA_TELL_ESTABLISHED, WEFT_CONNA_TELL_REQUEST) &&
	       needs(done, WEFT_CONNA_TELL_DISCONNECT,
		     WEFT_CONNA_TELL_REPLY | WEFT_CONNA_TELL_ESTABLISHED) &&
	       needs(done, WEFT_CONNA_TELL_CLOSE, WEFT_CONNA_TELL_DISCONNECT) &&
	       !both(done, WEFT_CONNA_TELL_REPLY, WEFT_CONNA_TELL_ESTABLISHED) &&
	       !both(done, WEFT_CONNA_SEND_REPLY, WEFT_CONNA_SEND_REJECT);
	KUNIT_EXPECT_TRUE_MSG(test, sane, "%s, %s", from, what);
	/*
	 * At the end the socket is let go, no timer runs, the caller that asked to connect knows
	 * how it ended, and a stream that ran was closed in front of the consumer.
	 */
	sane = done & WEFT_CONNA_RELEASE && !(done & WEFT_CONNA_ARM_TIMER) &&
	       needs(done, WEFT_CONNA_SEND_REQUEST, WEFT_CONNA_TELL_REPLY) &&
	       needs(done, WEFT_CONNA_START_STREAM, WEFT_CONNA_TELL_CLOSE);
	if (step.next == WEFT_CONN_CLOSED)
		KUNIT_EXPECT_TRUE_MSG(test, sane, "%s, %s", from, what);
	else
		KUNIT_EXPECT_FALSE_MSG(test, done & WEFT_CONNA_RELEASE, "%s, %s", from, what);
	/* only a stream that was started can be aborted */
	KUNIT_EXPECT_TRUE_MSG(test, needs(done, WEFT_CONNA_ABORT_STREAM, WEFT_CONNA_START_STREAM),
			      "%s, %s", from, what);
	/* RFC 5044, 7.1.2 (10): each wait for the peer has a limit. */
	if (step.next == WEFT_CONN_CONNECTING || step.next == WEFT_CONN_AWAIT_REPLY ||
	    step.next == WEFT_CONN_AWAIT_REQUEST || step.next == WEFT_CONN_AWAIT_RTR)
		KUNIT_EXPECT_TRUE_MSG(test, done & WEFT_CONNA_ARM_TIMER, "%s, %s", from, what);
}

#define LIVES	4096

static bool is_new(const struct life *lives, u32 n, struct life life)
{
	while (n--)
		if (lives[n].state == life.state && lives[n].done == life.done)
			return false;
	return true;
}

static void every_life_of_a_connection(struct kunit *test)
{
	struct life *lives = kunit_kzalloc(test, LIVES * sizeof(*lives), GFP_KERNEL);
	u32 at, end = 1, event;

	KUNIT_ASSERT_NOT_NULL(test, lives);
	lives[0] = (struct life){ .state = WEFT_CONN_IDLE };
	for (at = 0; at < end; at++) {
		for (event = 0; event < WEFT_CONN_EVENTS; event++) {
			struct weft_conn_step step = weft_conn_fsm(lives[at].state, event);
			struct life next = { step.next,
					     done_after(lives[at], event, step.actions) };

			if (step.actions & WEFT_CONNA_IMPOSSIBLE)
				continue;
			expect_sane_step(test, lives[at], event, step);
			KUNIT_ASSERT_LT(test, end, (u32)LIVES);
			if (is_new(lives, end, next))
				lives[end++] = next;
		}
	}
	KUNIT_EXPECT_GT(test, end, (u32)WEFT_CONN_STATES);
}

/* Abandoned, and its stream if there is one closed, every connection is at its end. */
static void abandoned_ends_every_state(struct kunit *test)
{
	u32 state;

	for (state = 0; state < WEFT_CONN_STATES; state++) {
		u32 next = weft_conn_fsm(state, WEFT_CONN_ABANDONED).next;

		if (next == WEFT_CONN_CLOSING)
			next = weft_conn_fsm(next, WEFT_CONN_STREAM_CLOSED).next;
		KUNIT_EXPECT_EQ_MSG(test, next, (u32)WEFT_CONN_CLOSED, "%s",
				    weft_conn_state_name(state));
	}
}

/* clang-format off */
#define NAMED(id) \
	[WEFT_CONN_##id] = #id
/* clang-format on */

static void names_are_those_of_the_constants(struct kunit *test)
{
	static const char *const states[WEFT_CONN_STATES] = {
		NAMED(IDLE),	      NAMED(CONNECTING),   NAMED(AWAIT_REPLY),
		NAMED(AWAIT_REQUEST), NAMED(AWAIT_ACCEPT), NAMED(AWAIT_RTR),
		NAMED(RUNNING),	      NAMED(CLOSING),	   NAMED(CLOSED),
	};
	static const char *const events[WEFT_CONN_EVENTS] = {
		NAMED(CONNECT),		 NAMED(TCP_ACCEPTED),	  NAMED(TCP_CONNECTED),
		NAMED(TCP_FAILED),	 NAMED(REQUEST_RECEIVED), NAMED(REPLY_RECEIVED),
		NAMED(REJECT_RECEIVED),	 NAMED(BAD_FRAME),	  NAMED(ULP_ACCEPTED),
		NAMED(ULP_ACCEPTED_P2P), NAMED(ULP_REJECTED),	  NAMED(READY),
		NAMED(TIMED_OUT),	 NAMED(PEER_CLOSED),	  NAMED(STREAM_CLOSING),
		NAMED(STREAM_CLOSED),	 NAMED(ABANDONED),
	};

	WEFT_EXPECT_NAMES(test, weft_conn_state_name, states);
	WEFT_EXPECT_NAMES(test, weft_conn_event_name, events);
}

static void names_of_no_such_value(struct kunit *test)
{
	KUNIT_EXPECT_NOT_NULL(test, weft_conn_state_name(WEFT_CONN_STATES));
	KUNIT_EXPECT_NOT_NULL(test, weft_conn_state_name((enum weft_conn_state)255));
	KUNIT_EXPECT_NOT_NULL(test, weft_conn_event_name(WEFT_CONN_EVENTS));
	KUNIT_EXPECT_NOT_NULL(test, weft_conn_event_name((enum weft_conn_event)255));
}

static struct kunit_case conn_fsm_cases[] = {
	KUNIT_CASE_PARAM(step_of_table, step_rows_gen_params),
	KUNIT_CASE(step_of_all_other_pairs),
	KUNIT_CASE(every_life_of_a_connection),
	KUNIT_CASE(abandoned_ends_every_state),
	KUNIT_CASE(names_are_those_of_the_constants),
	KUNIT_CASE(names_of_no_such_value),
	{},
};

static struct kunit_suite conn_fsm_suite = {
	.name = "weft_conn_fsm",
	.test_cases = conn_fsm_cases,
};

kunit_test_suite(conn_fsm_suite);
