// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Requests that wait for a response, and what a response sets going. RFC 5040, 5.2.1; RFC 6581,
 * 9.1.
 */
#include <linux/kthread.h>

#include "engine/ops/credit.h"
#include "engine/ops/op.h"
#include "engine/state/claim.h"
#include "stream_world.h"
#include "suite.h"

/* @sent of ORD requests wait for their response; must another one wait? */
struct wait_row {
	const char *name;
	u32 sent;
	u8 opcode;
	u8 flags;
	bool waits;
};

static const struct wait_row wait_rows[] = {
	{ "send_of_none", 0, WEFT_WR_SEND, 0, false },
	{ "read_of_none", 0, WEFT_WR_READ, 0, false },
	{ "read_below_ord", STREAM_ORD - 1, WEFT_WR_READ, 0, false },
	{ "read_at_ord", STREAM_ORD, WEFT_WR_READ, 0, true },
	{ "read_inv_at_ord", STREAM_ORD, WEFT_WR_READ_INV, 0, true },
	{ "fadd_at_ord", STREAM_ORD, WEFT_WR_ATOMIC_FADD, 0, true },
	{ "cswap_at_ord", STREAM_ORD, WEFT_WR_ATOMIC_CSWAP, 0, true },
	{ "send_at_ord", STREAM_ORD, WEFT_WR_SEND, 0, false },
	{ "write_at_ord", STREAM_ORD, WEFT_WR_WRITE, WEFT_WRF_SIGNALED, false },
	{ "fenced_send_of_none", 0, WEFT_WR_SEND, WEFT_WRF_FENCE, false },
	{ "fenced_send", 1, WEFT_WR_SEND, WEFT_WRF_FENCE, true },
	{ "fenced_local_inv", 1, WEFT_WR_LOCAL_INV, WEFT_WRF_FENCE, true },
	{ "fenced_read_of_none", 0, WEFT_WR_READ, WEFT_WRF_FENCE, false },
	{ "fenced_read_with_credit", 1, WEFT_WR_READ, WEFT_WRF_FENCE, true },
	{ "fenced_read_at_ord", STREAM_ORD, WEFT_WR_READ, WEFT_WRF_FENCE, true },
};

WEFT_ROWS(wait_rows)

static void send_requests(struct stream_world *w, u32 count)
{
	while (count-- && weft_readq_sent_slot(&w->st.readq))
		weft_readq_sent_push(&w->st.readq);
}

static bool waits(struct stream_world *w, u8 opcode, u8 flags)
{
	const struct weft_swr swr = { .wqe = { .opcode = opcode, .flags = flags } };

	return weft_tx_waits(&w->st, &swr, weft_tx_op(opcode));
}

/* rx: the oldest request has its response. Return: is tx to be run? */
static bool response(struct stream_world *w)
{
	weft_readq_sent_pop(&w->st.readq);
	WRITE_ONCE(w->st.rx.tx_needed, false);
	weft_tx_response_in(&w->st);
	return READ_ONCE(w->st.rx.tx_needed);
}

static void weft_credit_waits(struct kunit *test)
{
	const struct wait_row *row = test->param_value;
	struct stream_world *w = test->priv;

	send_requests(w, row->sent);
	KUNIT_EXPECT_EQ(test, waits(w, row->opcode, row->flags), row->waits);
	KUNIT_EXPECT_EQ(test, test_bit(WEFT_TX_WAITS, &w->st.tx.claim), row->waits);
}

/* One response frees a credit; a fence takes all of them. */
static void weft_credit_response_goes_on(struct kunit *test)
{
	struct stream_world *w = test->priv;

	send_requests(w, STREAM_ORD);
	KUNIT_EXPECT_TRUE(test, waits(w, WEFT_WR_READ, 0));
	KUNIT_EXPECT_TRUE(test, response(w));
	KUNIT_EXPECT_FALSE(test, test_bit(WEFT_TX_WAITS, &w->st.tx.claim));
	KUNIT_EXPECT_FALSE(test, waits(w, WEFT_WR_READ, 0));

	KUNIT_EXPECT_TRUE(test, waits(w, WEFT_WR_READ, WEFT_WRF_FENCE));
	KUNIT_EXPECT_TRUE(test, response(w));
	KUNIT_EXPECT_FALSE(test, waits(w, WEFT_WR_READ, WEFT_WRF_FENCE));
}

/* No request waits: rx leaves tx alone, and the claim as it is. */
static void weft_credit_unexpected_response(struct kunit *test)
{
	struct stream_world *w = test->priv;

	send_requests(w, STREAM_ORD);
	KUNIT_ASSERT_TRUE(test, weft_tx_try_claim(&w->st.tx.claim));
	KUNIT_EXPECT_FALSE(test, response(w));
	KUNIT_EXPECT_EQ(test, w->st.tx.claim, BIT(WEFT_TX_CLAIMED));

	KUNIT_EXPECT_TRUE(test, waits(w, WEFT_WR_SEND, WEFT_WRF_FENCE));
	weft_tx_mark(&w->st.tx.claim);
	KUNIT_EXPECT_TRUE(test, response(w));
	KUNIT_EXPECT_EQ(test, w->st.tx.claim, BIT(WEFT_TX_CLAIMED) | BIT(WEFT_TX_AGAIN));
}

/* A stream that closes reports when its last response is in, waited for or not. */
static void weft_credit_response_while_closing(struct kunit *test)
{
	struct stream_world *w = test->priv;

	send_requests(w, 2);
	w->st.state = WEFT_QP_CLOSING;
	KUNIT_EXPECT_TRUE(test, response(w));
	w->st.state = WEFT_QP_TERMINATE;
	KUNIT_EXPECT_FALSE(test, response(w));
}

/* On two CPUs: a request that waits is always gone on with. */
#define ROUNDS	50000U

struct race {
	struct stream_world *w;
	atomic_t doorbells;
};

static int answer(void *arg)
{
	struct race *race = arg;

	while (!kthread_should_stop()) {
		if (!weft_readq_sent_head(&race->w->st.readq))
			cond_resched();
		else if (response(race->w))
			atomic_inc(&race->doorbells);
	}
	return 0;
}

static void weft_credit_no_response_is_missed(struct kunit *test)
{
	struct race race = { .w = test->priv };
	unsigned long deadline = jiffies + 60 * HZ;
	struct task_struct *task;
	u32 sent, waited = 0;

	task = kthread_run(answer, &race, "weft_answer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (sent = 0; sent < ROUNDS && time_before(jiffies, deadline); sent++) {
		/* Every other request has a fence: waits for the last of ORD, or for any. */
		while (waits(race.w, WEFT_WR_READ, sent & 1 ? WEFT_WRF_FENCE : 0)) {
			waited++;
			while (!atomic_xchg(&race.doorbells, 0) && time_before(jiffies, deadline))
				cond_resched();
			if (time_after_eq(jiffies, deadline))
				goto out;
		}
		send_requests(race.w, 1);
	}
out:
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, sent, ROUNDS);
	kunit_info(test, "waited %u times\n", waited);
}

static struct kunit_case credit_cases[] = { KUNIT_CASE_PARAM(weft_credit_waits,
							     wait_rows_gen_params),
					    KUNIT_CASE(weft_credit_response_goes_on),
					    KUNIT_CASE(weft_credit_unexpected_response),
					    KUNIT_CASE(weft_credit_response_while_closing),
					    KUNIT_CASE(weft_credit_no_response_is_missed),
					    {} };

static struct kunit_suite credit_suite = {
	.name = "weft_credit",
	.init = make_stream,
	.exit = free_stream,
	.test_cases = credit_cases,
};

kunit_test_suite(credit_suite);
