// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How work requests complete: in which order, which of them raise a completion, and how a
 * Terminate and a flush complete the rest. RFC 5040, 4.8, 5.5 and 6.2.
 */
#include "engine/ops/complete.h"
#include "stream_world.h"
#include "suite.h"

#define BYTES	100U	/* of each request in the stream */
#define STEPS	20000

/* Posts and stages a request: its place in the stream follows from its index. */
static struct weft_swr *send_one(struct kunit *test, struct stream_world *w, u8 opcode, u8 flags)
{
	post_send(w, opcode, flags);
	return stage_send(test, w, (u64)w->posted * BYTES);
}

/* TCP takes all requests before @index, and the engine is notified. */
static void push_to(struct stream_world *w, u32 index)
{
	w->st.tx.sock.pushed = (u64)index * BYTES;
	weft_complete_pushed(&w->st, w->st.tx.sock.pushed, NULL);
}

static void respond(struct stream_world *w, u32 index)
{
	weft_complete_done(&w->st, weft_sendq_wr(&w->sq, index), WEFT_FAULT_NONE, NULL);
}

static void weft_complete_in_order_of_posting(struct kunit *test)
{
	static const u8 opcodes[] = { WEFT_WR_READ, WEFT_WR_SEND, WEFT_WR_ATOMIC_FADD,
				      WEFT_WR_WRITE, WEFT_WR_ATOMIC_CSWAP };
	static const u8 wc[] = { WEFT_WC_READ, WEFT_WC_SEND, WEFT_WC_FADD, WEFT_WC_WRITE,
				 WEFT_WC_CSWAP };
	struct stream_world *w = test->priv;
	struct weft_cqe cqe;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++)
		send_one(test, w, opcodes[i], 0);
	push_to(w, ARRAY_SIZE(opcodes));
	respond(w, 2);
	KUNIT_EXPECT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 0U);
	respond(w, 0);
	KUNIT_EXPECT_EQ(test, w->sq.cons, 4U);
	KUNIT_EXPECT_EQ(test, weft_sendq_ctl(&w->sq)->cons, 4U);
	respond(w, 4);
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 1U);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, (u64)i);
		KUNIT_EXPECT_EQ(test, cqe.opcode, wc[i]);
		KUNIT_EXPECT_EQ(test, cqe.status, WEFT_STATUS_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.qp_num, STREAM_QPN);
	}
	KUNIT_EXPECT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 0U);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_WR_ERRORS), 0ULL);
}

/* TCP has taken a part of a request: it is not done, and may not be answered. */
static void weft_complete_what_tcp_has(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_swr *read;

	send_one(test, w, WEFT_WR_SEND, 0);
	read = send_one(test, w, WEFT_WR_READ, 0);
	weft_complete_pushed(&w->st, BYTES - 1, NULL);
	expect_sends(test, w, 0, 0, 0);
	KUNIT_EXPECT_FALSE(test, weft_complete_is_sent(&w->st, read));
	weft_complete_pushed(&w->st, 2 * BYTES - 1, NULL);
	expect_sends(test, w, 0, 1, WEFT_STATUS_SUCCESS);
	KUNIT_EXPECT_FALSE(test, weft_complete_is_sent(&w->st, read));

	/* TCP has it all, and the peer answers before its pusher has told us. */
	w->st.tx.sock.pushed = 2 * BYTES;
	KUNIT_EXPECT_EQ(test, read->state, WEFT_SWR_FETCHED);
	KUNIT_EXPECT_TRUE(test, weft_complete_is_sent(&w->st, read));
	push_to(w, 2);
	KUNIT_EXPECT_EQ(test, read->state, WEFT_SWR_SENT);
	KUNIT_EXPECT_TRUE(test, weft_complete_is_sent(&w->st, read));
	expect_sends(test, w, 0, 0, 0);
}

/* Unsignalled requests complete visibly only when they fail. */
static void weft_complete_unsignalled(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_cqe cqe;

	w->st.cfg.signal_all = false;
	send_one(test, w, WEFT_WR_SEND, 0);
	send_one(test, w, WEFT_WR_SEND, WEFT_WRF_SIGNALED);
	send_one(test, w, WEFT_WR_READ, 0);
	send_one(test, w, WEFT_WR_SEND, 0);
	push_to(w, 4);
	expect_sends(test, w, 1, 2, WEFT_STATUS_SUCCESS);
	weft_complete_done(&w->st, weft_sendq_wr(&w->sq, 2), WEFT_FAULT_LOCAL_PROTECTION, NULL);
	KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 1U);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, 2ULL);
	KUNIT_EXPECT_EQ(test, cqe.status, WEFT_STATUS_LOC_PROT);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, WEFT_FAULT_LOCAL_PROTECTION);
	expect_sends(test, w, 3, 3, WEFT_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, w->sq.cons, 4U);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_WR_ERRORS), 1ULL);
}

struct mix {
	u32 asked[STREAM_SQES];
	u32 asks;
	u32 answers;
};

static void mix_send(struct kunit *test, struct stream_world *w, struct mix *mix, u64 random)
{
	struct weft_swr *swr;

	if (w->posted - weft_sendq_ctl(&w->sq)->cons == STREAM_SQES)
		return;
	swr = send_one(test, w, random & 1 ? WEFT_WR_READ : WEFT_WR_SEND, 0);
	if (random & 1)
		mix->asked[mix->asks++ % STREAM_SQES] = swr->index;
}

static void mix_respond(struct stream_world *w, struct mix *mix)
{
	u32 index = mix->asked[mix->answers % STREAM_SQES];

	if (mix->answers == mix->asks ||
	    !weft_complete_is_sent(&w->st, weft_sendq_wr(&w->sq, index)))
		return;
	mix->answers++;
	respond(w, index);
}

/* Whatever is done first: each request once, and in order. */
static void weft_complete_any_mix(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct mix mix = {};
	u32 i, completed = 0;
	u64 seed = 11;

	for (i = 0; i < STEPS; i++) {
		u64 random = weft_next_random(&seed);

		switch ((random >> 8) % 3) {
		case 0:
			mix_send(test, w, &mix, random);
			break;
		case 1:
			push_to(w,
				w->posted - min_t(u32, random & 3, w->sq.fetched - w->st.tx.sent));
			break;
		default:
			mix_respond(w, &mix);
		}
		expect_sends(test, w, completed, w->sq.cons, WEFT_STATUS_SUCCESS);
		completed = w->sq.cons;
	}
	push_to(w, w->posted);
	for (i = 0; i < STREAM_SQES; i++)
		mix_respond(w, &mix);
	expect_sends(test, w, completed, w->posted, WEFT_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, w->sq.cons, w->posted);
	KUNIT_EXPECT_GT(test, completed, STEPS / 10U);
}

static void fill_cq(struct kunit *test, struct weft_cq *cq)
{
	struct weft_cqe cqe = {};
	u32 i;

	for (i = 0; i < STREAM_CQES; i++)
		KUNIT_ASSERT_EQ(test, weft_cq_post(cq, &cqe, NULL), 0);
}

/* A completion that finds no room ends the stream; the request is free by then. */
static void weft_complete_overflow_is_a_fault(struct kunit *test)
{
	struct stream_world *w = test->priv;

	fill_cq(test, &w->send_cq);
	send_one(test, w, WEFT_WR_SEND, 0);
	push_to(w, 1);
	KUNIT_EXPECT_EQ(test, w->sq.cons, 1U);
	KUNIT_EXPECT_EQ(test, w->overflows, 1U);
	KUNIT_EXPECT_EQ(test, w->cons_at_overflow, 1U);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_TERMINATE);
	KUNIT_EXPECT_EQ(test, w->st.fault.fault, WEFT_FAULT_LOCAL_CATASTROPHIC);
}

/* So is one of a request that was answered, or of a receive. */
static void weft_complete_overflow_of_an_answer(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_swr *read = send_one(test, w, WEFT_WR_READ, 0);

	fill_cq(test, &w->send_cq);
	push_to(w, 1);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_RTS);
	weft_complete_done(&w->st, read, WEFT_FAULT_NONE, NULL);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_TERMINATE);
	KUNIT_EXPECT_EQ(test, w->st.fault.fault, WEFT_FAULT_LOCAL_CATASTROPHIC);
}

static void weft_complete_overflow_of_a_receive(struct kunit *test)
{
	const struct weft_cqe cqe = { .opcode = WEFT_WC_RECV };
	struct stream_world *w = test->priv;

	fill_cq(test, &w->recv_cq);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_RTS);
	weft_complete_receive(&w->st, &cqe, NULL);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_TERMINATE);
	KUNIT_EXPECT_EQ(test, w->st.fault.fault, WEFT_FAULT_LOCAL_CATASTROPHIC);
}

/* What is done keeps its outcome; what is not, fetched or still in the ring, is flushed. */
static void weft_complete_flush_in_order(struct kunit *test)
{
	static const u8 statuses[] = { WEFT_STATUS_FLUSH, WEFT_STATUS_SUCCESS, WEFT_STATUS_FLUSH,
				       WEFT_STATUS_FLUSH, WEFT_STATUS_FLUSH };
	struct stream_world *w = test->priv;
	struct weft_cqe cqe;
	u32 i;

	w->st.cfg.signal_all = false;	/* a flush is reported in any case */
	send_one(test, w, WEFT_WR_READ, 0);
	send_one(test, w, WEFT_WR_SEND, WEFT_WRF_SIGNALED);
	w->st.tx.swr = send_one(test, w, WEFT_WR_SEND, 0);
	push_to(w, 2);
	post_send(w, WEFT_WR_SEND, 0);
	post_send(w, 255, 0);
	weft_sendq_set_busy(&w->sq);
	weft_complete_flush_sends(&w->st, NULL);
	KUNIT_EXPECT_EQ(test, weft_sendq_ctl(&w->sq)->state, (u32)WEFT_SQ_NEED_DOORBELL);
	KUNIT_EXPECT_NULL(test, w->st.tx.swr);
	KUNIT_EXPECT_EQ(test, w->st.tx.sent, 5U);
	KUNIT_EXPECT_EQ(test, w->sq.cons, 5U);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_WR_FLUSHES), 4ULL);

	for (i = 0; i < ARRAY_SIZE(statuses); i++) {
		KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 1U);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, (u64)i);
		KUNIT_EXPECT_EQ(test, cqe.status, statuses[i]);
	}
	KUNIT_EXPECT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 0U);
}

/* The oldest request without an outcome says that there is no peer, wherever it is. */
static void weft_complete_flush_without_a_peer(struct kunit *test)
{
	static const u8 statuses[] = { WEFT_STATUS_SUCCESS, WEFT_STATUS_RETRY_EXC,
				       WEFT_STATUS_FLUSH, WEFT_STATUS_RETRY_EXC,
				       WEFT_STATUS_FLUSH };
	struct stream_world *w = test->priv;
	struct weft_cqe cqe;
	u32 i;

	send_one(test, w, WEFT_WR_SEND, 0);
	send_one(test, w, WEFT_WR_READ, 0);
	send_one(test, w, WEFT_WR_SEND, 0);
	push_to(w, 1);
	w->st.oldest_fault = WEFT_FAULT_UNREACHABLE;
	weft_complete_flush_sends(&w->st, NULL);
	w->st.oldest_fault = WEFT_FAULT_UNREACHABLE;
	weft_complete_flush_sends(&w->st, NULL);
	post_send(w, WEFT_WR_SEND, 0);
	post_send(w, WEFT_WR_SEND, 0);
	weft_complete_flush_sends(&w->st, NULL);
	for (i = 0; i < ARRAY_SIZE(statuses); i++) {
		KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 1U);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, (u64)i);
		KUNIT_EXPECT_EQ(test, cqe.status, statuses[i]);
	}
	KUNIT_EXPECT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 0U);
}

static void weft_complete_flush_of_unused_queue(struct kunit *test)
{
	struct stream_world *w = test->priv;

	weft_complete_flush_sends(&w->st, NULL);
	expect_sends(test, w, 0, 0, 0);
	post_send(w, WEFT_WR_SEND, 0);
	weft_complete_flush_sends(&w->st, NULL);
	expect_sends(test, w, 0, 1, WEFT_STATUS_FLUSH);
	weft_sendq_ctl(&w->sq)->prod = w->sq.fetched + STREAM_SQES + 1;
	weft_complete_flush_sends(&w->st, NULL);
	expect_sends(test, w, 0, 0, 0);
}

/* A process that posts as fast as its requests are flushed does not keep us for good. */
static void weft_complete_flush_is_bounded(struct kunit *test)
{
	struct stream_world *w = test->priv;

	post_send(w, WEFT_WR_SEND, 0);
	post_receive(w);
	w->send_cq.ctl->arm = WEFT_ARM_NEXT;
	w->reposts = STREAM_CQES / 2;
	weft_complete_flush_sends(&w->st, NULL);
	expect_sends(test, w, 0, STREAM_SQES, WEFT_STATUS_FLUSH);
	KUNIT_EXPECT_TRUE(test, weft_sendq_pending(&w->sq));
}

static void weft_complete_flush_of_receives_is_bounded(struct kunit *test)
{
	struct stream_world *w = test->priv;

	post_send(w, WEFT_WR_SEND, 0);
	post_receive(w);
	w->recv_cq.ctl->arm = WEFT_ARM_NEXT;
	w->reposts = STREAM_CQES / 2;
	weft_complete_flush_receives(&w->st, NULL);
	KUNIT_EXPECT_EQ(test, w->recv_cq.prod, STREAM_RQES);
}

struct named_row {
	const char *name;
	struct weft_term term;
	u32 fails;		/* index of the request that does; 4: none */
};

#define TERM(...)                                                                \
	{                                                                        \
		.layer = 0, .etype = 1, .ecode = 1, .has_ddp = true, __VA_ARGS__ \
	}
#define NONE		4U

/* Requests 0 to 3: a Read that waits, and done behind it a Send, a Write, a Send. */
static const struct named_row named_rows[] = {
	{ "first_send", TERM(.qn = WEFT_QN_SEND, .msn = 1), 1 },
	{ "last_send", TERM(.qn = WEFT_QN_SEND, .msn = 2), 3 },
	{ "send_never_sent", TERM(.qn = WEFT_QN_SEND, .msn = 3), NONE },
	{ "other_queue", TERM(.qn = WEFT_QN_REQUEST, .msn = 1), NONE },
	{ "write", TERM(.tagged = true, .opcode = WEFT_OP_WRITE, .stag = 7, .to = 0x1000), 2 },
	{ "other_stag", TERM(.tagged = true, .opcode = WEFT_OP_WRITE, .stag = 8, .to = 0x1000),
	  NONE },
	{ "before_write", TERM(.tagged = true, .opcode = WEFT_OP_WRITE, .stag = 7, .to = 0xfff),
	  NONE },
	{ "behind_write", TERM(.tagged = true, .opcode = WEFT_OP_WRITE, .stag = 7, .to = 0x1001),
	  NONE },
	{ "response", TERM(.tagged = true, .opcode = WEFT_OP_READ_RESP, .stag = 7, .to = 0x1000),
	  NONE },
	{ "no_headers", { .etype = 1, .ecode = 1, .qn = WEFT_QN_SEND, .msn = 1 }, NONE },
};

WEFT_ROWS(named_rows)

/* The request that the peer refuses fails with the peer's reason, though TCP had taken it. */
static void weft_complete_named_by_terminate(struct kunit *test)
{
	const struct named_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_swr *swr;
	struct weft_cqe cqe;
	u32 i;

	send_one(test, w, WEFT_WR_READ, 0);
	send_one(test, w, WEFT_WR_SEND, 0)->msn = 1;
	swr = send_one(test, w, WEFT_WR_WRITE, 0);
	swr->wqe.rkey = 7;
	swr->wqe.remote_addr = 0x1000;
	send_one(test, w, WEFT_WR_SEND, 0)->msn = 2;
	push_to(w, 4);
	w->st.peer_term = row->term;
	w->st.peer_terminated = true;
	weft_complete_flush_sends(&w->st, NULL);
	for (i = 0; i < 4; i++) {
		u8 wanted = !i ? WEFT_STATUS_FLUSH :
			    i == row->fails ? WEFT_STATUS_REM_ACCESS :
					      WEFT_STATUS_SUCCESS;

		KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 1U);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, (u64)i);
		KUNIT_EXPECT_EQ(test, cqe.status, wanted);
	}
}

struct kind_row {
	const char *name;
	u8 opcode;
	struct weft_term term;
	bool named;
};

#define A_SEND	TERM(.qn = WEFT_QN_SEND, .msn = 1)
#define A_WRITE TERM(.tagged = true, .opcode = WEFT_OP_WRITE, .stag = 7, .to = 0x1000)

static const struct kind_row kind_rows[] = {
	{ "send_inv", WEFT_WR_SEND_INV, A_SEND, true },
	{ "send_imm", WEFT_WR_SEND_IMM, A_SEND, true },
	{ "immediate", WEFT_WR_WRITE_IMM, A_SEND, true },
	{ "write_of_immediate", WEFT_WR_WRITE_IMM, A_WRITE, true },
	{ "write_is_no_send", WEFT_WR_WRITE, A_SEND, false },
	{ "read_is_no_send", WEFT_WR_READ, A_SEND, false },
	{ "send_is_no_write", WEFT_WR_SEND, A_WRITE, false },
	{ "read_is_no_write", WEFT_WR_READ, A_WRITE, false },
};

WEFT_ROWS(kind_rows)

/* What has a number of the queue of Sends is told by it, what writes by where that went. */
static void weft_complete_named_by_its_kind(struct kunit *test)
{
	const struct kind_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_swr *swr = send_one(test, w, row->opcode, 0);

	swr->msn = 1;
	swr->wqe.rkey = 7;
	swr->wqe.remote_addr = 0x1000;
	w->st.peer_term = row->term;
	w->st.peer_terminated = true;
	KUNIT_EXPECT_PTR_EQ(test, weft_complete_named(&w->st), row->named ? swr : NULL);
}

/* The Send for which there was no receive says so, and no other request. */
static void weft_complete_named_for_want_of_a_receive(struct kunit *test)
{
	static const u8 wanted[] = { WEFT_STATUS_FLUSH, WEFT_STATUS_RNR_RETRY_EXC };
	struct stream_world *w = test->priv;
	struct weft_cqe cqe;
	u32 i;

	send_one(test, w, WEFT_WR_READ, 0);
	send_one(test, w, WEFT_WR_SEND, 0)->msn = 1;
	push_to(w, 2);
	w->st.oldest_fault = WEFT_FAULT_NO_RECEIVE;
	w->st.peer_term = (struct weft_term)TERM(.qn = WEFT_QN_SEND, .msn = 1);
	w->st.peer_terminated = true;
	weft_complete_flush_sends(&w->st, NULL);
	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->send_cq, &cqe, 1), 1U);
		KUNIT_EXPECT_EQ(test, cqe.status, wanted[i]);
	}
}

/* A request that is not planned has no number yet; one that failed keeps its own reason. */
static void weft_complete_named_but_not_sent(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_swr *swr;

	send_one(test, w, WEFT_WR_READ, 0);
	swr = send_one(test, w, WEFT_WR_SEND, 0);
	swr->msn = 1;
	w->st.tx.swr = swr;
	w->st.peer_term = (struct weft_term)TERM(.qn = WEFT_QN_SEND, .msn = 1);
	KUNIT_EXPECT_NULL(test, weft_complete_named(&w->st));
	w->st.peer_terminated = true;
	KUNIT_EXPECT_NULL(test, weft_complete_named(&w->st));
	w->st.tx.swr = NULL;
	KUNIT_EXPECT_PTR_EQ(test, weft_complete_named(&w->st), swr);
	weft_complete_done(&w->st, swr, WEFT_FAULT_LOCAL_LENGTH, NULL);
	KUNIT_EXPECT_NULL(test, weft_complete_named(&w->st));
}

static void expect_flushed_receives(struct kunit *test, struct stream_world *w, u32 first, u32 end)
{
	struct weft_cqe cqe;

	for (; first != end; first++) {
		KUNIT_ASSERT_EQ(test, weft_cq_poll(&w->recv_cq, &cqe, 1), 1U);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, (u64)first);
		KUNIT_EXPECT_EQ(test, cqe.status, WEFT_STATUS_FLUSH);
		KUNIT_EXPECT_EQ(test, cqe.vendor_err, WEFT_FAULT_FLUSHED);
		KUNIT_EXPECT_EQ(test, cqe.opcode, WEFT_WC_RECV);
	}
	KUNIT_EXPECT_EQ(test, weft_cq_poll(&w->recv_cq, &cqe, 1), 0U);
}

/* The receive in hand goes first; a malformed one goes like the others. */
static void weft_complete_flush_of_receives(struct kunit *test)
{
	struct stream_world *w = test->priv;
	u32 i;

	for (i = 0; i < 4; i++)
		post_receive(w);
	((struct weft_rqe *)weft_ring_entry(&w->rq.ring, 2))->num_sge = 100;
	KUNIT_ASSERT_EQ(test, weft_recvq_fetch(&w->rq, &w->st.rx.rwr), 0);
	w->st.rx.rwr_held = true;
	weft_complete_flush_receives(&w->st, NULL);
	KUNIT_EXPECT_FALSE(test, w->st.rx.rwr_held);
	expect_flushed_receives(test, w, 0, 4);
}

static void weft_complete_flush_leaves_shared_receives(struct kunit *test)
{
	struct stream_world *w = test->priv;

	post_receive(w);
	post_receive(w);
	w->st.cfg.shared_rq = true;
	KUNIT_ASSERT_EQ(test, weft_recvq_fetch(&w->rq, &w->st.rx.rwr), 0);
	w->st.rx.rwr_held = true;
	weft_complete_flush_receives(&w->st, NULL);
	expect_flushed_receives(test, w, 0, 1);
	KUNIT_EXPECT_EQ(test, weft_recvq_fetch(&w->rq, &w->st.rx.rwr), 0);
}

static struct kunit_case complete_cases[] = {
	KUNIT_CASE(weft_complete_in_order_of_posting),
	KUNIT_CASE(weft_complete_what_tcp_has),
	KUNIT_CASE(weft_complete_unsignalled),
	KUNIT_CASE(weft_complete_any_mix),
	KUNIT_CASE(weft_complete_overflow_is_a_fault),
	KUNIT_CASE(weft_complete_overflow_of_an_answer),
	KUNIT_CASE(weft_complete_overflow_of_a_receive),
	KUNIT_CASE(weft_complete_flush_in_order),
	KUNIT_CASE(weft_complete_flush_without_a_peer),
	KUNIT_CASE(weft_complete_flush_of_unused_queue),
	KUNIT_CASE(weft_complete_flush_is_bounded),
	KUNIT_CASE(weft_complete_flush_of_receives_is_bounded),
	KUNIT_CASE_PARAM(weft_complete_named_by_terminate, named_rows_gen_params),
	KUNIT_CASE_PARAM(weft_complete_named_by_its_kind, kind_rows_gen_params),
	KUNIT_CASE(weft_complete_named_for_want_of_a_receive),
	KUNIT_CASE(weft_complete_named_but_not_sent),
	KUNIT_CASE(weft_complete_flush_of_receives),
	KUNIT_CASE(weft_complete_flush_leaves_shared_receives),
	{}
};

static struct kunit_suite complete_suite = {
	.name = "weft_complete",
	.init = make_stream,
	.exit = free_stream,
	.test_cases = complete_cases,
};

kunit_test_suite(complete_suite);
