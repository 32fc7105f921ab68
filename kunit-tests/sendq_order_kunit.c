// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * In what order work requests leave the send queue: each once, as they were posted, whatever
 * comes first: TCP's word that it has them, the responses, or requests in their slots.
 * RFC 5040, 5.5; 6.
 */
#include "proto/fault.h"
#include "ring/sendq.h"
#include "suite.h"

#define ENTRIES	16U
#define BYTES	52U	/* of each request in the stream */
#define FIRST	(0U - ENTRIES / 2) /* index; they wrap soon */
#define STEPS	20000
#define SHUT	500	/* of them that a window is shut for: Reads go round the queue */

/*
 * A process, tx, and a peer that answers. @staged, @pushed: positions in the stream. What the
 * engine knows of the latter is @sent. Responses come in order: @asked, up to @asks, are the
 * indices of the requests that wait for one.
 */
struct world {
	struct weft_sendq sq;
	u32 prod;
	u32 sent;
	u64 staged;
	u64 pushed;
	u32 asked[ENTRIES];
	u32 answers;
	u32 asks;
	u32 completed;
};

static int make_world(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_ASSERT_EQ(test, weft_sendq_init(&w->sq, ENTRIES, 1, 0, NULL), 0);
	w->sq.user = true;
	w->sq.fetched = FIRST;
	w->sq.cons = FIRST;
	weft_sendq_ctl(&w->sq)->prod = FIRST;
	weft_sendq_ctl(&w->sq)->cons = FIRST;
	w->prod = FIRST;
	w->sent = FIRST;
	w->completed = FIRST;
	test->priv = w;
	return 0;
}

static void free_world(struct kunit *test)
{
	struct world *w = test->priv;

	if (w)
		weft_sendq_free(&w->sq);
}

static bool post(struct world *w, u8 opcode)
{
	struct weft_sqe *sqe = weft_ring_entry(&w->sq.ring, w->prod);

	if (w->prod - weft_sendq_ctl(&w->sq)->cons >= ENTRIES)
		return false;
	memset(sqe, 0, sizeof(*sqe));
	sqe->wr_id = w->prod;
	sqe->opcode = opcode;
	weft_sendq_ctl(&w->sq)->prod = ++w->prod;
	return true;
}

static bool stage(struct kunit *test, struct world *w)
{
	struct weft_swr *swr = weft_sendq_fetch(&w->sq);

	if (!swr)
		return false;
	KUNIT_ASSERT_FALSE(test, IS_ERR(swr));
	w->staged += BYTES;
	swr->tx_end = w->staged;
	swr->awaits_response = swr->wqe.opcode == WEFT_WR_READ;
	if (swr->awaits_response)
		w->asked[w->asks++ % ENTRIES] = swr->index;
	return true;
}

/* All that may leave does, and is the next that was posted. */
static void complete_done(struct kunit *test, struct world *w)
{
	struct weft_swr *swr;

	while ((swr = weft_sendq_done_head(&w->sq))) {
		KUNIT_ASSERT_EQ(test, swr->wqe.wr_id, (u64)w->completed);
		KUNIT_ASSERT_EQ(test, swr->status, WEFT_STATUS_SUCCESS);
		w->completed++;
		weft_sendq_advance_cons(&w->sq, swr);
	}
	KUNIT_ASSERT_EQ(test, w->sq.cons, w->completed);
	KUNIT_ASSERT_LE(test, w->sq.fetched - w->sq.cons, ENTRIES);
	KUNIT_ASSERT_EQ(test, weft_sendq_in_flight(&w->sq), w->sq.fetched - w->sq.cons);
}

static void hear_of_push(struct kunit *test, struct world *w)
{
	w->sent = weft_sendq_pushed(&w->sq, w->sent, w->pushed);
	complete_done(test, w);
}

/* The oldest request that waits for one; @early: also if the peer cannot have it. */
static bool respond(struct kunit *test, struct world *w, bool early)
{
	struct weft_swr *swr;

	if (w->answers == w->asks)
		return false;
	swr = weft_sendq_wr(&w->sq, w->asked[w->answers % ENTRIES]);
	if (swr->tx_end > w->pushed && !early)
		return false;
	w->answers++;
	weft_sendq_done(swr, WEFT_FAULT_NONE);
	complete_done(test, w);
	return true;
}

/* TCP accepts some requests, but tx has not been notified yet. */
static void push(struct world *w, u32 requests)
{
	w->pushed = min(w->pushed + requests * BYTES, w->staged);
}

static void all_completes(struct kunit *test, struct world *w)
{
	while (stage(test, w))
		;
	push(w, U32_MAX / BYTES);
	hear_of_push(test, w);
	while (respond(test, w, false))
		;
	KUNIT_EXPECT_EQ(test, w->completed, w->prod);
	KUNIT_EXPECT_EQ(test, w->sent, w->sq.fetched);
}

/* Every Read is answered before TCP has it; then Sends take the slots, and go in parts. */
static void weft_sendq_order_after_early_responses(struct kunit *test)
{
	static const struct {
		u32 posts;
		u32 pushes;
	} parts[] = { { ENTRIES, ENTRIES + 4 }, { 4, ENTRIES - 4 }, { 0, 4 } };
	struct world *w = test->priv;
	u32 i, k;

	while (post(w, WEFT_WR_READ))
		stage(test, w);
	for (i = 0; i < ENTRIES; i++)
		KUNIT_ASSERT_TRUE(test, respond(test, w, true));
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		for (k = 0; k < parts[i].posts; k++)
			KUNIT_ASSERT_TRUE(test, post(w, WEFT_WR_SEND) && stage(test, w));
		push(w, parts[i].pushes);
		hear_of_push(test, w);
		KUNIT_ASSERT_EQ(test, (w->completed - FIRST) * BYTES, w->pushed);
	}
	all_completes(test, w);
}

/* The same of fewer Reads than the queue holds, whose indices wrap. */
static void weft_sendq_order_where_indices_wrap(struct kunit *test)
{
	const u32 reads = ENTRIES - 4;
	struct world *w = test->priv;
	u32 i;

	for (i = 0; i < reads; i++)
		KUNIT_ASSERT_TRUE(test, post(w, WEFT_WR_READ) && stage(test, w));
	while (respond(test, w, true))
		;
	KUNIT_ASSERT_EQ(test, w->sq.cons, FIRST + reads);
	KUNIT_ASSERT_LT(test, w->sq.cons, w->sent);
	while (post(w, WEFT_WR_SEND))
		stage(test, w);
	push(w, ENTRIES);
	hear_of_push(test, w);
	KUNIT_EXPECT_EQ(test, w->completed - FIRST, ENTRIES);
	all_completes(test, w);
}

/* Whatever becomes of it later. */
static void weft_sendq_order_keeps_the_first_outcome(struct kunit *test)
{
	struct world *w = test->priv;
	struct weft_swr *swr;

	KUNIT_ASSERT_TRUE(test, post(w, WEFT_WR_READ) && stage(test, w));
	swr = weft_sendq_wr(&w->sq, FIRST);
	weft_sendq_done(swr, WEFT_FAULT_LOCAL_PROTECTION);
	weft_sendq_done(swr, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, swr->status, WEFT_STATUS_LOC_PROT);
	KUNIT_EXPECT_EQ(test, swr->vendor_err, WEFT_FAULT_LOCAL_PROTECTION);
}

struct order_row {
	const char *name;
	bool early;
};

static const struct order_row order_rows[] = {
	{ "peer_answers_what_it_has", false },
	{ "peer_answers_what_it_cannot_have", true },
};

WEFT_ROWS(order_rows)

static void weft_sendq_order_is_that_of_posting(struct kunit *test)
{
	const struct order_row *row = test->param_value;
	struct world *w = test->priv;
	u64 seed = 7;
	int i;

	for (i = 0; i < STEPS; i++) {
		u64 random = weft_next_random(&seed);
		bool shut = row->early && i / SHUT % 2;

		switch (random >> 8 & 7) {
		case 0 ... 2:
			post(w, random & 1 || shut ? WEFT_WR_READ : WEFT_WR_SEND);
			break;
		case 3 ... 4:
			stage(test, w);
			break;
		case 5:
			push(w, shut ? 0 : random >> 16 & 7);
			break;
		case 6:
			respond(test, w, row->early);
			break;
		default:
			hear_of_push(test, w);
		}
	}
	all_completes(test, w);
	KUNIT_EXPECT_GT(test, w->completed - FIRST, STEPS / 10);
}

static void weft_sendq_discard_takes_what_is_posted(struct kunit *test)
{
	struct world *w = test->priv;
	u32 i;

	for (i = 0; i < 3; i++) {
		while (post(w, WEFT_WR_SEND))
			;
		KUNIT_EXPECT_EQ(test, weft_sendq_discard(&w->sq), 0);
		KUNIT_EXPECT_NULL(test, weft_sendq_fetch(&w->sq));
		KUNIT_EXPECT_EQ(test, weft_sendq_waiting(&w->sq), 0U);
	}
	weft_sendq_ctl(&w->sq)->prod = w->sq.cons + ENTRIES + 1;
	KUNIT_EXPECT_EQ(test, weft_sendq_discard(&w->sq), -EIO);
	weft_sendq_ctl(&w->sq)->prod = w->sq.cons - 1;
	KUNIT_EXPECT_EQ(test, weft_sendq_discard(&w->sq), -EIO);
	KUNIT_EXPECT_EQ(test, w->sq.cons, w->prod);
}

static struct kunit_case sendq_order_cases[] = {
	KUNIT_CASE(weft_sendq_order_after_early_responses),
	KUNIT_CASE(weft_sendq_order_where_indices_wrap),
	KUNIT_CASE(weft_sendq_order_keeps_the_first_outcome),
	KUNIT_CASE_PARAM(weft_sendq_order_is_that_of_posting, order_rows_gen_params),
	KUNIT_CASE(weft_sendq_discard_takes_what_is_posted),
	{}
};

static struct kunit_suite sendq_order_suite = {
	.name = "weft_sendq_order",
	.init = make_world,
	.exit = free_world,
	.test_cases = sendq_order_cases,
};

kunit_test_suite(sendq_order_suite);
