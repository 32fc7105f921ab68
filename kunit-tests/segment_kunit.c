// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What is sent next, and which requests are not sent at all. MPA is played, and notes the opcodes
 * of what it gets.
 */
/* For other suites these are played, too. */
#define weft_segment_next real_segment_next
#define weft_segment_drop real_segment_drop
#include "engine/path/tx_segment.c"

#include "engine/path/tx.h"
#include "engine/state/claim.h"
#include "stream_world.h"
#include "suite.h"

static u8 staged[8];
static u32 segments;
static u8 headers[WEFT_MPA_LEN_BYTES + WEFT_ULPDU_HDR_MAX]; /* of the last one */
static u32 shortages; /* attempts for which there is no memory */

u32 weft_mpa_tx_mulpdu(const struct weft_mpa_tx *tx, u32 hdr_len, u32 left)
{
	return 1000;
}

int weft_mpa_tx_begin(struct weft_mpa_tx *tx, u8 *start, u32 hdr_len, u32 payload_len)
{
	tx->no_memory = shortages > 0;
	if (tx->no_memory) {
		shortages--;
		return -ENOMEM;
	}
	memcpy(headers, start, WEFT_MPA_LEN_BYTES + hdr_len);
	if (segments < ARRAY_SIZE(staged))
		staged[segments] = weft_rdmap_opcode(start[WEFT_MPA_LEN_BYTES + 1]);
	segments++;
	return 0;
}

int weft_mpa_tx_copy_any(struct weft_mpa_tx *tx, const void *from, u32 len)
{
	return 0;
}

int weft_mpa_tx_end(struct weft_mpa_tx *tx)
{
	return 0;
}

void weft_mpa_tx_cancel(struct weft_mpa_tx *tx)
{
}

u32 weft_mpa_tx_span_begin(struct weft_mpa_tx *tx, u32 ulpdu_len, u32 most)
{
	return 0;
}

int weft_mpa_tx_span_end(struct weft_mpa_tx *tx)
{
	return 0;
}

static int make_sender(struct kunit *test)
{
	segments = 0;
	shortages = 0;
	return make_stream(test);
}

/* A Read Request of the peer, for nothing. */
static void owe_answer(struct kunit *test, struct stream_world *w)
{
	struct weft_readq_owed *owed = weft_readq_owed_slot(&w->st.readq);

	KUNIT_ASSERT_NOT_NULL(test, owed);
	*owed = (struct weft_readq_owed){};
	weft_readq_owed_push(&w->st.readq);
}

struct turn_row {
	const char *name;
	u8 burst;	/* answers sent so far */
	u8 opcode;	/* of the request in front */
	u8 first;	/* of what is sent */
	u32 segments;	/* then there is nothing to send */
};

static const struct turn_row turn_rows[] = {
	{ "answer_first", 0, WEFT_WR_SEND, WEFT_OP_READ_RESP, 3 },
	{ "last_of_many", ANSWER_BURST - 1, WEFT_WR_SEND, WEFT_OP_READ_RESP, 3 },
	{ "send_after_many", ANSWER_BURST, WEFT_WR_SEND, WEFT_OP_SEND, 3 },
	{ "read_that_waits", 0, WEFT_WR_READ, WEFT_OP_READ_RESP, 1 },
	{ "read_that_waits_after_many", ANSWER_BURST, WEFT_WR_READ, WEFT_OP_READ_RESP, 1 },
};

WEFT_ROWS(turn_rows)

/* An answer and two requests; as many others as may be wait for their response. */
static void weft_segment_turns(struct kunit *test)
{
	const struct turn_row *row = test->param_value;
	struct stream_world *w = test->priv;
	u32 i;

	for (i = 0; i < STREAM_ORD; i++)
		weft_readq_sent_push(&w->st.readq);
	owe_answer(test, w);
	post_send(w, row->opcode, 0);
	post_send(w, WEFT_WR_SEND, 0);
	w->st.tx.burst = row->burst;
	for (i = 0; i < row->segments; i++)
		KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_STAGED);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_NONE);
	KUNIT_EXPECT_EQ(test, segments, row->segments);
	KUNIT_EXPECT_EQ(test, staged[0], row->first);
	KUNIT_EXPECT_FALSE(test, weft_readq_owes(&w->st.readq));
}

struct refused_row {
	const char *name;
	u8 opcode;
	u8 flags;
	u32 ord;
	bool sent;
};

static const struct refused_row refused_rows[] = {
	{ "send", WEFT_WR_SEND, 0, 0, true },
	{ "inline_send", WEFT_WR_SEND, WEFT_WRF_INLINE, 0, true },
	{ "inline_write", WEFT_WR_WRITE, WEFT_WRF_INLINE, 0, true },
	{ "read", WEFT_WR_READ, 0, 1, true },
	{ "inline_read", WEFT_WR_READ, WEFT_WRF_INLINE, 1, false },
	{ "inline_fadd", WEFT_WR_ATOMIC_FADD, WEFT_WRF_INLINE, 1, false },
	{ "read_without_depth", WEFT_WR_READ, 0, 0, false },
	{ "fadd_without_depth", WEFT_WR_ATOMIC_FADD, 0, 0, false },
	{ "unknown", 255, 0, 1, false },
};

WEFT_ROWS(refused_rows)

/* A process may write what its library refuses. That ends the stream. RFC 5040, 7. */
static void weft_segment_refuses(struct kunit *test)
{
	const struct refused_row *row = test->param_value;
	struct stream_world *w = test->priv;

	w->st.readq.ord = row->ord;
	post_send(w, row->opcode, row->flags);
	post_send(w, WEFT_WR_SEND, 0);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st),
			row->sent ? WEFT_SEGMENT_STAGED : WEFT_SEGMENT_NONE);
	KUNIT_EXPECT_EQ(test, segments, (u32)row->sent);
	KUNIT_EXPECT_EQ(test, w->st.state, row->sent ? WEFT_QP_RTS : WEFT_QP_TERMINATE);
	if (row->sent)
		return;
	expect_sends(test, w, 0, 1, WEFT_STATUS_LOC_QP_OP);
	KUNIT_EXPECT_EQ(test, w->st.fault.fault, WEFT_FAULT_LOCAL_QP_OP);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_STAGED);
	KUNIT_EXPECT_EQ(test, staged[0], WEFT_OP_TERMINATE);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_NONE);
}

/* What is wrong with an entry is told as it was found, not as any mistake. */
static void weft_segment_tells_what_is_wrong(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_sqe *sqe = weft_ring_entry(&w->sq.ring, 0);

	post_send(w, WEFT_WR_SEND, WEFT_WRF_INLINE);
	sqe->inline_len = w->sq.max_inline + 1;
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_NONE);
	expect_sends(test, w, 0, 1, WEFT_STATUS_LOC_LEN);
	KUNIT_EXPECT_EQ(test, w->st.fault.fault, WEFT_FAULT_LOCAL_LENGTH);
}

/* It is no fault of the request: it stays in hand until there is some. */
static void weft_segment_without_memory_is_made_later(struct kunit *test)
{
	struct stream_world *w = test->priv;

	shortages = 2;
	post_send(w, WEFT_WR_SEND, 0);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_LATER);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_LATER);
	KUNIT_EXPECT_EQ(test, w->st.state, WEFT_QP_RTS);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_STAGED);
	KUNIT_EXPECT_EQ(test, segments, 1U);
	KUNIT_EXPECT_EQ(test, staged[0], WEFT_OP_SEND);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_NONE);
}

/* A Read that waits for a credit has no bytes that TCP could have. */
static void weft_segment_in_hand_is_not_sent(struct kunit *test)
{
	struct stream_world *w = test->priv;
	u32 i;

	for (i = 0; i < STREAM_ORD; i++)
		weft_readq_sent_push(&w->st.readq);
	post_send(w, WEFT_WR_READ, 0);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_NONE);
	KUNIT_ASSERT_NOT_NULL(test, w->st.tx.swr);
	KUNIT_EXPECT_FALSE(test, weft_complete_is_sent(&w->st, w->st.tx.swr));
	weft_complete_pushed(&w->st, 1ULL << 40, NULL);
	expect_sends(test, w, 0, 0, WEFT_STATUS_SUCCESS);
	KUNIT_EXPECT_EQ(test, w->st.tx.sent, 0U);
}

/* A plain Send has no STag: that of the Write before it is no business of the peer's. */
static void weft_segment_has_nothing_of_the_one_before(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_sqe *sqe = weft_ring_entry(&w->sq.ring, 0);
	struct weft_ddp_hdr hdr;

	post_send(w, WEFT_WR_WRITE, 0);
	sqe->rkey = 0x1234;
	sqe->remote_addr = 0x1000;
	post_send(w, WEFT_WR_SEND, 0);
	KUNIT_ASSERT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_STAGED);
	weft_ddp_parse(headers + WEFT_MPA_LEN_BYTES, WEFT_DDP_TAGGED_LEN, &hdr);
	KUNIT_EXPECT_EQ(test, hdr.stag, 0x1234U);
	KUNIT_EXPECT_EQ(test, hdr.to, 0x1000ULL);
	KUNIT_ASSERT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_STAGED);
	weft_ddp_parse(headers + WEFT_MPA_LEN_BYTES, WEFT_DDP_UNTAGGED_LEN, &hdr);
	KUNIT_EXPECT_EQ(test, hdr.stag, 0U);
	KUNIT_EXPECT_EQ(test, hdr.mo, 0U);
}

/*
 * The Read that a connection begins with is no request of the consumer's. It asks for nothing,
 * whatever the last request of an earlier connection was.
 */
static void weft_segment_first_read_completes_nothing(struct kunit *test)
{
	struct stream_world *w = test->priv;
	const struct weft_readq_sent *sent;
	struct weft_read_req req;

	memset(w->st.tx.hdr, 0xff, sizeof(w->st.tx.hdr));
	w->st.tx.rtr = WEFT_RTR_READ;
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_STAGED);
	KUNIT_EXPECT_EQ(test, staged[0], WEFT_OP_READ_REQ);
	sent = weft_readq_sent_head(&w->st.readq);
	KUNIT_ASSERT_NOT_NULL(test, sent);
	KUNIT_EXPECT_TRUE(test, sent->no_wr);
	weft_read_req_parse(headers + WEFT_MPA_LEN_BYTES + WEFT_DDP_UNTAGGED_LEN, &req);
	KUNIT_EXPECT_EQ(test, req.length, 0U);
	KUNIT_EXPECT_EQ(test, req.src_stag, 0U);
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_NONE);
}

struct late_row {
	const char *name;
	enum weft_qp_state state;
	enum selected selected;
};

static const struct late_row late_rows[] = {
	{ "rts", WEFT_QP_RTS, SELECTED_MESSAGE },
	{ "closing", WEFT_QP_CLOSING, SELECTED_MESSAGE },
	{ "terminate", WEFT_QP_TERMINATE, SELECTED_NONE },
	{ "error", WEFT_QP_ERROR, SELECTED_NONE },
};

WEFT_ROWS(late_rows)

/* A turn that began before the failure finds it. Its flush is what ib_drain_sq() waits for. */
static void weft_segment_leaves_a_late_post(struct kunit *test)
{
	const struct late_row *row = test->param_value;
	struct stream_world *w = test->priv;

	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&w->st.tx.claim));
	w->st.state = row->state;
	post_send(w, WEFT_WR_WRITE, 0);
	KUNIT_EXPECT_EQ(test, select_request(&w->st), row->selected);
	KUNIT_EXPECT_EQ(test, w->sq.cons, 0U);
	if (row->selected == SELECTED_MESSAGE)
		return;
	weft_tx_flush(&w->st);
	expect_sends(test, w, 0, 1, WEFT_STATUS_FLUSH);
	KUNIT_EXPECT_NULL(test, w->st.tx.swr);
}

/* A Send that the peer on this host takes later is not sent: it is complete when it is taken. */
static void weft_segment_waits_for_the_peer(struct kunit *test)
{
	struct weft_loopback at_w = {}, at_peer = {};
	struct stream_world *w = test->priv;
	struct stream_world *peer;
	struct weft_swr *swr;

	KUNIT_ASSERT_EQ(test, make_stream(test), 0);
	peer = test->priv;
	join_loopback(w, &at_w, &at_peer);
	join_loopback(peer, &at_peer, &at_w);
	peer->st.rx.first_seen = true;
	weft_ddp_tx_init(&w->st.tx.ddp);
	weft_ddp_rx_init(&peer->st.rx.ddp);
	post_receive(peer);
	post_send(w, WEFT_WR_SEND, 0);
	peer->st.rx.sock.reassembly.open = true; /* it is within an FPDU that came by TCP */
	non_block_start();
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_WAITS);
	swr = weft_sendq_wr(&w->sq, 0);
	KUNIT_EXPECT_EQ(test, swr->tx_end, U64_MAX);
	weft_complete_pushed(&w->st, w->st.tx.sock.pos, NULL);
	expect_sends(test, w, 0, 0, WEFT_STATUS_SUCCESS);
	peer->st.rx.sock.reassembly.open = false;
	KUNIT_EXPECT_EQ(test, real_segment_next(&w->st), WEFT_SEGMENT_STAGED);
	non_block_end();
	weft_complete_pushed(&w->st, w->st.tx.sock.pos, NULL);
	expect_sends(test, w, 0, 1, WEFT_STATUS_SUCCESS);
	weft_loopback_batch_end(&w->st, NULL);
	KUNIT_EXPECT_EQ(test, segments, 0U);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_TX_SEGS), 1ULL);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_TX_MSGS), 1ULL);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&peer->counters, WEFT_CTR_RX_SEGS), 1ULL);
	w->st.loopback = NULL;
	peer->st.loopback = NULL;
	free_stream(test);
	test->priv = w;
}

static struct kunit_case segment_cases[] = {
	KUNIT_CASE_PARAM(weft_segment_turns, turn_rows_gen_params),
	KUNIT_CASE_PARAM(weft_segment_refuses, refused_rows_gen_params),
	KUNIT_CASE(weft_segment_tells_what_is_wrong),
	KUNIT_CASE(weft_segment_without_memory_is_made_later),
	KUNIT_CASE(weft_segment_in_hand_is_not_sent),
	KUNIT_CASE(weft_segment_has_nothing_of_the_one_before),
	KUNIT_CASE(weft_segment_first_read_completes_nothing),
	KUNIT_CASE_PARAM(weft_segment_leaves_a_late_post, late_rows_gen_params),
	KUNIT_CASE(weft_segment_waits_for_the_peer),
	{},
};

static struct kunit_suite segment_suite = {
	.name = "weft_segment",
	.init = make_sender,
	.exit = free_stream,
	.test_cases = segment_cases,
};

kunit_test_suite(segment_suite);
