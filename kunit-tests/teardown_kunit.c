// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The way down: whose fault is told, what counts as progress of the peer, how the socket ends, and
 * that a stream that is reset is as it was made.
 */
/* What the peer has acknowledged is played here; for other suites it is 0. */
#define weft_tcp_bytes_acked played_acked
#include "engine/life/teardown.c"

#include "engine/life/stream.h"
#include "engine/state/loopback.h"
#include "stream_world.h"
#include "suite.h"

/* Played: TCP. */
static struct {
	u64 acked;
	u64 received;
	bool all_acked;
} tcp;

u64 played_acked(const struct weft_sock *s)
{
	return tcp.acked;
}

u64 weft_tcp_bytes_received(const struct weft_sock *s)
{
	return tcp.received;
}

bool weft_tcp_all_acked(const struct weft_sock *s)
{
	return tcp.all_acked;
}

/* Played: the end of a socket, a letter for each step; a capital one for what comes too late. */
static char steps[8];

static void note_step(char letter)
{
	size_t taken = strlen(steps);

	if (taken < sizeof(steps) - 1)
		steps[taken] = letter;
}

/* The last callback uses pages of the reader, and lets a message wait for a receive, for hours. */
void weft_sock_detach(struct weft_sock *s)
{
	struct stream_world *w = container_of(s, struct stream_world, sock);

	note_step(w->st.rx.sock.reassembly.pages ? 'd' : 'D');
	mod_timer(&w->st.rnr.timer, jiffies + 10000 * HZ);
}

void weft_stream_count_tcp(struct weft_stream *st)
{
	note_step('c');
}

void weft_mpa_tx_free(struct weft_mpa_tx *tx)
{
	note_step('f');
}

void weft_sock_half_close(struct weft_sock *s)
{
}

void weft_sock_reset(struct weft_sock *s)
{
	note_step('x');
}

void weft_sock_release(struct weft_sock *s)
{
	note_step('r');
}

static int make_ending(struct kunit *test)
{
	struct stream_world *w;
	int err = make_stream(test);

	if (err)
		return err;
	w = test->priv;
	memset(&tcp, 0, sizeof(tcp));
	mutex_init(&w->st.lifecycle);
	weft_teardown_init(&w->st);
	return 0;
}

/* --- events --- */

static int told;

static void note_event(void *owner, enum weft_stream_event event)
{
	told = event;
}

/* Of every other fault: WEFT_STREAM_FATAL. */
static const u8 events[WEFT_FAULT_COUNT] = {
	[WEFT_FAULT_TAGGED_STAG] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_TAGGED_BOUNDS] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_TAGGED_STREAM] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_TAGGED_WRAP] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_TAGGED_VERSION] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_UNTAGGED_QN] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_UNTAGGED_NO_BUFFER] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_UNTAGGED_MSN] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_UNTAGGED_MO] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_UNTAGGED_TOO_LONG] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_UNTAGGED_VERSION] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_RDMAP_STAG] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_RDMAP_BOUNDS] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_RDMAP_ACCESS] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_RDMAP_STREAM] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_RDMAP_WRAP] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_RDMAP_INVALIDATE] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_RDMAP_PROTECTION] = WEFT_STREAM_ACCESS_ERR,
	[WEFT_FAULT_RDMAP_VERSION] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_RDMAP_OPCODE] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_RDMAP_CATASTROPHIC] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_RDMAP_GLOBAL] = WEFT_STREAM_REQ_ERR,
	[WEFT_FAULT_RDMAP_OPERATION] = WEFT_STREAM_REQ_ERR,
};

static void weft_teardown_tells_whose_fault(struct kunit *test)
{
	static const struct weft_stream_qp_events qp_events = { .async = note_event };
	struct stream_world *w = test->priv;
	u32 fault;

	w->st.cfg.events = &qp_events;
	for (fault = WEFT_FAULT_NONE + 1; fault < WEFT_FAULT_COUNT; fault++) {
		told = -1;
		w->st.fault.fault = fault;
		report_fault(&w->st);
		KUNIT_EXPECT_EQ_MSG(test, told, events[fault], "%s", weft_fault_info(fault)->name);
	}
}

/* --- cm --- */

static int closings[2]; /* so many, and the error of the last one */

static void note_closing(void *owner, int error)
{
	closings[0]++;
	closings[1] = error;
}

/* A connection goes down once, for the reason that came first. */
static void weft_teardown_tells_cm_once(struct kunit *test)
{
	static const struct weft_stream_cm_events closing_events = { .closing = note_closing };
	struct stream_world *w = test->priv;

	closings[0] = 0;
	tell_closing(&w->st); /* cm does not know it */
	w->st.cm_events = &closing_events;
	w->st.close_error = -EPROTO;
	tell_closing(&w->st);
	w->st.close_error = -ETIMEDOUT;
	tell_closing(&w->st);
	KUNIT_EXPECT_EQ(test, closings[0], 1);
	KUNIT_EXPECT_EQ(test, closings[1], -EPROTO);
}

/* --- progress --- */

static const struct progress_row {
	const char *name;
	enum weft_qp_state state;
	bool reading;	/* a Read waits for its response */
	u64 acked;
	bool all_acked;
	u64 received;
	u64 handed;	/* without TCP */
	u64 taken;
	bool moves;
} progress_rows[] = {
	{ "nothing", WEFT_QP_CLOSING, .reading = true },
	{ "takes_some", WEFT_QP_CLOSING, .acked = 1, .moves = true },
	{ "takes_some_of_a_terminate", WEFT_QP_TERMINATE, .acked = 1, .moves = true },
	{ "has_taken_all", WEFT_QP_CLOSING, .acked = 1, .all_acked = true },
	{ "has_taken_the_terminate", WEFT_QP_TERMINATE, .acked = 1, .all_acked = true },
	{ "answers", WEFT_QP_CLOSING, true, .received = 1, .moves = true },
	{ "sends_what_is_not_waited_for", WEFT_QP_CLOSING, .received = 1 },
	{ "answers_what_has_failed", WEFT_QP_TERMINATE, true, .received = 1 },
	{ "takes_some_without_tcp", WEFT_QP_CLOSING, .handed = 1, .moves = true },
	{ "answers_without_tcp", WEFT_QP_CLOSING, true, .taken = 1, .moves = true },
	{ "sends_in_vain_without_tcp", WEFT_QP_CLOSING, .taken = 1 },
};

WEFT_ROWS(progress_rows);

/* A peer may take its time as long as it takes bytes, or sends what is waited for. */
static void weft_teardown_sees_progress(struct kunit *test)
{
	const struct progress_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_loopback lb = {};

	w->st.sock = &w->sock;
	w->st.loopback = &lb;
	w->st.state = row->state;
	if (row->reading)
		weft_readq_sent_push(&w->st.readq);
	KUNIT_EXPECT_FALSE(test, makes_progress(&w->st));
	tcp.acked = row->acked;
	tcp.all_acked = row->all_acked;
	tcp.received = row->received;
	lb.handed = row->handed;
	lb.taken = row->taken;
	KUNIT_EXPECT_EQ(test, makes_progress(&w->st), row->moves);
	KUNIT_EXPECT_FALSE(test, makes_progress(&w->st));
	w->st.loopback = NULL;
}

/* The deadline is over, and the peer has taken @more bytes meanwhile. */
static void pass_deadline(struct weft_stream *st, u64 more)
{
	tcp.acked += more;
	weft_stream_teardown(st)->late = true;
	check_deadline(st);
}

static const struct renewal_row {
	const char *name;
	enum weft_qp_state state;
	u32 renewals;
	enum weft_qp_state then;	/* after one more */
} renewal_rows[] = {
	{ "of_a_close", WEFT_QP_CLOSING, 3 * RENEWALS_MOST, WEFT_QP_CLOSING },
	{ "of_a_terminate", WEFT_QP_TERMINATE, RENEWALS_MOST, WEFT_QP_ERROR },
};

WEFT_ROWS(renewal_rows);

/* One that is not over ends nothing, and a peer that takes nothing has no second one. */
static void weft_teardown_renews_its_deadline(struct kunit *test)
{
	const struct renewal_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	u32 i;

	w->index.close_timeout = 3600 * MSEC_PER_SEC;
	st->sock = &w->sock;
	st->state = row->state;
	for (i = 0; i < row->renewals; i++)
		pass_deadline(st, 1);
	KUNIT_EXPECT_EQ(test, st->state, row->state);
	check_deadline(st);
	KUNIT_EXPECT_EQ(test, st->state, row->state);
	pass_deadline(st, 1);
	KUNIT_EXPECT_EQ(test, st->state, row->then);
	if (row->then == WEFT_QP_CLOSING)
		pass_deadline(st, 0);
	KUNIT_EXPECT_EQ(test, st->state, WEFT_QP_ERROR);
	timer_delete_sync(&weft_stream_teardown(st)->deadline);
	st->sock = NULL;
}

/* --- the socket --- */

static const struct close_row {
	const char *name;
	u32 staged;
	bool partial;
	const char *steps;
} close_rows[] = {
	{ "nothing_staged", 0, false, "dcfr" },
	{ "a_batch_that_tcp_has_not_touched", 1, false, "dcfr" },
	{ "a_batch_that_tcp_has_in_part", 1, true, "dcfxr" },
};

WEFT_ROWS(close_rows);

/*
 * A FIN behind a part of an FPDU would be no orderly end. What a last callback begins ends, too:
 * the stream goes.
 */
static void weft_teardown_ends_the_socket(struct kunit *test)
{
	const struct close_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	weft_rx_entry_init(st);
	st->sock = &w->sock;
	st->tx.sock.count = row->staged;
	st->tx.sock.partial = row->partial;
	st->rx.sock.reassembly.pages = kzalloc(sizeof(*st->rx.sock.reassembly.pages), GFP_KERNEL);
	memset(steps, 0, sizeof(steps));
	mutex_lock(&st->lifecycle);
	close_socket(st);
	mutex_unlock(&st->lifecycle);
	KUNIT_EXPECT_STREQ(test, steps, row->steps);
	KUNIT_EXPECT_FALSE(test, timer_pending(&st->rnr.timer));
	KUNIT_EXPECT_NULL(test, st->rx.sock.reassembly.pages);
	KUNIT_EXPECT_NULL(test, st->sock);
}

/* --- a second life --- */

static const struct weft_stream_cm_events cm_events;

/* As far as a connection may have changed it. */
static void use_up(struct stream_world *w)
{
	struct weft_teardown *down = weft_stream_teardown(&w->st);
	struct weft_stream *st = &w->st;

	weft_recvq_set_flushing(&w->rq, true);
	memset(&st->rx.msgs, 1, sizeof(st->rx.msgs));
	st->rx.rtr_send = true;
	st->rx.tx_needed = true;
	st->rx.written = 1;
	st->rx.placed = 1;
	st->tx.burst = 1;
	st->tx.term_staged = true;
	st->tx.drained = true;
	st->cm_events = &cm_events;
	st->cm = w;
	memset(&st->mpa, 1, sizeof(st->mpa));
	st->close_error = -EPROTO;
	memset(&st->fault, 1, sizeof(st->fault));
	memset(&st->peer_term, 1, sizeof(st->peer_term));
	st->peer_fault = WEFT_FAULT_MPA_CRC;
	st->peer_terminated = true;
	st->initiator = true;
	st->lost = true;
	st->oldest_fault = WEFT_FAULT_UNREACHABLE;
	st->ird = 1;
	st->ord = 1;
	st->acked = 1;
	st->quiet = true;
	st->readq_mem = kvzalloc(weft_readq_bytes(1, 1), GFP_KERNEL); /* not the suite's */
	down->acked = 1;
	down->received = 1;
	down->handed = 1;
	down->taken = 1;
	down->renewals = 1;
	down->late = true;
	down->told_closing = true;
	down->over = true;
	memset(&w->life.tcp_counted, 1, sizeof(w->life.tcp_counted));
}

#define EXPECT_ZERO(_test, _field) \
	KUNIT_EXPECT_NULL_MSG(_test, memchr_inv(&(_field), 0, sizeof(_field)), #_field)

static void weft_teardown_reset_forgets_all(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	use_up(w);
	post_send(w, WEFT_WR_SEND, 0);
	post_send(w, WEFT_WR_SEND, 0);
	post_receive(w);
	st->state = WEFT_QP_ERROR;
	KUNIT_ASSERT_EQ(test, weft_stream_reset(st), 0);
	KUNIT_EXPECT_EQ(test, st->state, WEFT_QP_IDLE);
	KUNIT_EXPECT_EQ(test, w->sq.cons, 2U);
	KUNIT_EXPECT_EQ(test, st->tx.sent, 2U);
	KUNIT_EXPECT_EQ(test, weft_recvq_depth(&w->rq), 0U);
	KUNIT_EXPECT_FALSE(test, weft_recvq_needs_doorbell(&w->rq));
	EXPECT_ZERO(test, st->rx.msgs);
	EXPECT_ZERO(test, st->rx.rtr_send);
	EXPECT_ZERO(test, st->rx.tx_needed);
	EXPECT_ZERO(test, st->rx.written);
	EXPECT_ZERO(test, st->rx.placed);
	EXPECT_ZERO(test, st->tx.burst);
	EXPECT_ZERO(test, st->tx.term_staged);
	EXPECT_ZERO(test, st->tx.drained);
	EXPECT_ZERO(test, st->cm_events);
	EXPECT_ZERO(test, st->cm);
	EXPECT_ZERO(test, st->mpa);
	EXPECT_ZERO(test, st->close_error);
	EXPECT_ZERO(test, st->fault);
	EXPECT_ZERO(test, st->peer_term);
	EXPECT_ZERO(test, st->peer_fault);
	EXPECT_ZERO(test, st->peer_terminated);
	EXPECT_ZERO(test, st->gate_open);
	EXPECT_ZERO(test, st->initiator);
	EXPECT_ZERO(test, st->lost);
	EXPECT_ZERO(test, st->oldest_fault);
	EXPECT_ZERO(test, st->ird);
	EXPECT_ZERO(test, st->ord);
	EXPECT_ZERO(test, st->acked);
	EXPECT_ZERO(test, st->readq);
	EXPECT_ZERO(test, st->readq_mem);
	EXPECT_ZERO(test, st->quiet);
	EXPECT_ZERO(test, w->life.down.acked);
	EXPECT_ZERO(test, w->life.down.received);
	EXPECT_ZERO(test, w->life.down.handed);
	EXPECT_ZERO(test, w->life.down.taken);
	EXPECT_ZERO(test, w->life.down.renewals);
	EXPECT_ZERO(test, w->life.down.late);
	EXPECT_ZERO(test, w->life.down.told_closing);
	EXPECT_ZERO(test, w->life.down.over);
	EXPECT_ZERO(test, w->life.tcp_counted);
}

static struct kunit_case teardown_cases[] = {
	KUNIT_CASE(weft_teardown_tells_whose_fault),
	KUNIT_CASE(weft_teardown_tells_cm_once),
	KUNIT_CASE_PARAM(weft_teardown_renews_its_deadline, renewal_rows_gen_params),
	KUNIT_CASE_PARAM(weft_teardown_sees_progress, progress_rows_gen_params),
	KUNIT_CASE_PARAM(weft_teardown_ends_the_socket, close_rows_gen_params),
	KUNIT_CASE(weft_teardown_reset_forgets_all),
	{},
};

static struct kunit_suite teardown_suite = {
	.name = "weft_teardown",
	.init = make_ending,
	.exit = free_stream,
	.test_cases = teardown_cases,
};

kunit_test_suite(teardown_suite);
