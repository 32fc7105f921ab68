// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which modify suits which state of a QP: every pair of states, each attribute that a step
 * needs, and the exceptions for rdma_cm.
 */
#include "suite.h"
#include "verbs/qp_transition.h"

#define SET_UP	(IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)
#define TO_RTR                                                                               \
	(IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | \
	 IB_QP_MIN_RNR_TIMER)
#define TO_RTS \
	(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC)
#define STATES	(IB_QPS_ERR + 1)

/* What is named for a step from anywhere to that state. */
static const int masks[STATES] = {
	[IB_QPS_INIT] = SET_UP,
	[IB_QPS_RTR] = TO_RTR,
};

/* Targets of each state: bits of enum ib_qp_state. Reset and error can always be reached. */
#define TO(state)	BIT(IB_QPS_##state)
#define OUT		(TO(RESET) | TO(ERR))

static const u32 reachable[STATES] = {
	[IB_QPS_RESET] = OUT | TO(INIT), [IB_QPS_INIT] = OUT | TO(INIT) | TO(RTR),
	[IB_QPS_RTR] = OUT | TO(RTS),	 [IB_QPS_RTS] = OUT | TO(RTS) | TO(SQD),
	[IB_QPS_SQD] = OUT | TO(SQD),	 [IB_QPS_ERR] = OUT,
};

/* As if rdma_cm had brought, or will bring, the connection. */
static const u32 managed[STATES] = {
	[IB_QPS_RESET] = OUT | TO(INIT) | TO(SQD),
	[IB_QPS_INIT] = OUT | TO(INIT) | TO(SQD),
	[IB_QPS_RTR] = OUT | TO(RTS),
	[IB_QPS_RTS] = OUT | TO(RTS) | TO(SQD),
	[IB_QPS_SQD] = OUT | TO(SQD),
	[IB_QPS_ERR] = OUT | TO(SQD),
};

static int ask(enum ib_qp_state from, bool is_managed, enum ib_qp_state to, int mask)
{
	struct weft_qp_now now = { .state = from, .managed = is_managed };
	struct ib_qp_attr attr = { .qp_state = to, .cur_qp_state = from };

	return weft_qp_transition_check(&now, &attr, mask | IB_QP_STATE);
}

static int mask_for(u32 from, u32 to)
{
	return from == IB_QPS_RTR && to == IB_QPS_RTS ? TO_RTS : masks[to];
}

static void weft_qp_transition_pairs(struct kunit *test)
{
	u32 from, to;

	for (from = 0; from < STATES; from++)
		for (to = 0; to < STATES; to++) {
			KUNIT_EXPECT_EQ_MSG(test, ask(from, false, to, mask_for(from, to)),
					    reachable[from] & BIT(to) ? 0 : -EINVAL, "%u to %u",
					    from, to);
			KUNIT_EXPECT_EQ_MSG(test, ask(from, true, to, mask_for(from, to)),
					    managed[from] & BIT(to) ? 0 : -EINVAL,
					    "%u to %u, managed", from, to);
		}
	KUNIT_EXPECT_EQ(test, ask(IB_QPS_INIT, false, STATES, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, ask(IB_QPS_INIT, false, 255, 0), -EINVAL);
}

struct mask_row {
	const char *name;
	enum ib_qp_state from;
	enum ib_qp_state to;
	int required;
	int optional;
};

static const struct mask_row mask_rows[] = {
	{ "reset_init", IB_QPS_RESET, IB_QPS_INIT, 0, SET_UP },
	{ "init_init", IB_QPS_INIT, IB_QPS_INIT, 0, SET_UP },
	{ "init_rtr", IB_QPS_INIT, IB_QPS_RTR, TO_RTR, IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS },
	{ "rtr_rts", IB_QPS_RTR, IB_QPS_RTS, TO_RTS,
	  IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER | IB_QP_PATH_MIG_STATE },
	{ "rts_rts", IB_QPS_RTS, IB_QPS_RTS, 0,
	  IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER | IB_QP_PATH_MIG_STATE },
	{ "rts_sqd", IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY },
	{ "rts_err", IB_QPS_RTS, IB_QPS_ERR, 0, 0 },
	{ "err_reset", IB_QPS_ERR, IB_QPS_RESET, 0, 0 },
};

WEFT_ROWS(mask_rows)

/* Without one that is required, and with any other that is not optional, nothing is done. */
static void weft_qp_transition_masks(struct kunit *test)
{
	const struct mask_row *row = test->param_value;
	int all = row->required | row->optional;
	u32 i;

	KUNIT_EXPECT_EQ(test, ask(row->from, false, row->to, row->required), 0);
	KUNIT_EXPECT_EQ(test, ask(row->from, false, row->to, all), 0);
	KUNIT_EXPECT_EQ(test, ask(row->from, false, row->to, all | IB_QP_CUR_STATE), 0);
	for (i = 0; i < 21; i++) {
		int bit = BIT(i);

		if (bit & (IB_QP_STATE | IB_QP_CUR_STATE | row->optional))
			continue;
		KUNIT_EXPECT_EQ_MSG(test, ask(row->from, false, row->to, row->required ^ bit),
				    -EINVAL, "bit %u", i);
	}
}

static int ask_current(struct weft_qp_now now, enum ib_qp_state current_state)
{
	struct ib_qp_attr attr = { .cur_qp_state = current_state };

	return weft_qp_transition_check(&now, &attr, IB_QP_CUR_STATE);
}

static void weft_qp_transition_current_state(struct kunit *test)
{
	struct weft_qp_now fresh = { .state = IB_QPS_INIT, .fresh = true };
	u32 from, said;

	for (from = 0; from < STATES; from++)
		for (said = 0; said < STATES; said++)
			KUNIT_EXPECT_EQ(test,
					ask_current((struct weft_qp_now){ .state = from }, said),
					from == said ? 0 : -EINVAL);
	for (said = 0; said < STATES; said++)
		KUNIT_EXPECT_EQ(test, ask_current(fresh, said), said <= IB_QPS_INIT ? 0 : -EINVAL);
}

/* It reports INIT, and has to enter it before any other state. */
static void weft_qp_transition_of_a_fresh_qp(struct kunit *test)
{
	const struct weft_qp_now now = { .state = IB_QPS_INIT, .fresh = true };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };

	KUNIT_EXPECT_EQ(test, weft_qp_transition_check(&now, &attr, IB_QP_STATE | TO_RTR), -EINVAL);
	attr.qp_state = IB_QPS_INIT;
	KUNIT_EXPECT_EQ(test, weft_qp_transition_check(&now, &attr, IB_QP_STATE), 0);
	attr.qp_state = IB_QPS_SQD;
	KUNIT_EXPECT_EQ(test, weft_qp_transition_check(&now, &attr, IB_QP_STATE), -EINVAL);
}

/* As iw_cm_init_qp_attr() has it: from INIT, with a port and rights, and with no peer. */
static void weft_qp_transition_to_rtr_of_rdma_cm(struct kunit *test)
{
	const int rights = IB_QP_PORT | IB_QP_ACCESS_FLAGS;
	u32 from;

	for (from = 0; from < STATES; from++)
		KUNIT_EXPECT_EQ(test, ask(from, false, IB_QPS_RTR, rights),
				from == IB_QPS_INIT ? 0 : -EINVAL);
	KUNIT_EXPECT_EQ(test, ask(IB_QPS_INIT, true, IB_QPS_RTR, rights), 0);
	KUNIT_EXPECT_EQ(test, ask(IB_QPS_INIT, false, IB_QPS_RTR, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, ask(IB_QPS_INIT, false, IB_QPS_RTR, IB_QP_PORT), -EINVAL);
	KUNIT_EXPECT_EQ(test, ask(IB_QPS_INIT, false, IB_QPS_RTR, rights | IB_QP_DEST_QPN),
			-EINVAL);
}

/* A port and nothing else is what rdma_cm names instead of RTS. */
static void weft_qp_transition_to_no_state(struct kunit *test)
{
	struct ib_qp_attr attr = { .port_num = 1 };
	u32 from, i;

	for (from = 0; from < STATES; from++) {
		struct weft_qp_now now = { .state = from };
		int optional = SET_UP | IB_QP_MIN_RNR_TIMER | IB_QP_PATH_MIG_STATE;

		KUNIT_EXPECT_EQ(test, weft_qp_transition_check(&now, &attr, 0), 0);
		KUNIT_EXPECT_EQ(test, weft_qp_transition_check(&now, &attr, IB_QP_PORT), 0);
		for (i = 2; i < 21; i++)
			KUNIT_EXPECT_EQ_MSG(test, weft_qp_transition_check(&now, &attr, BIT(i)),
					    BIT(i) & optional ? 0 : -EINVAL, "bit %u", i);
	}
}

static struct kunit_case qp_transition_cases[] = {
	KUNIT_CASE(weft_qp_transition_pairs),
	KUNIT_CASE_PARAM(weft_qp_transition_masks, mask_rows_gen_params),
	KUNIT_CASE(weft_qp_transition_current_state),
	KUNIT_CASE(weft_qp_transition_of_a_fresh_qp),
	KUNIT_CASE(weft_qp_transition_to_rtr_of_rdma_cm),
	KUNIT_CASE(weft_qp_transition_to_no_state),
	{},
};

static struct kunit_suite qp_transition_suite = {
	.name = "weft_qp_transition",
	.test_cases = qp_transition_cases,
};

kunit_test_suite(qp_transition_suite);
