// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Attributes of a QP: what is refused, what is kept, and what the access flags come to.
 */
#include "suite.h"
#include "verbs/qp_attrs.h"

#define RR	IB_ACCESS_REMOTE_READ
#define RW	IB_ACCESS_REMOTE_WRITE
#define RA	IB_ACCESS_REMOTE_ATOMIC
#define LW	IB_ACCESS_LOCAL_WRITE
#define OPEN	(RR | RW | RA)

struct check_row {
	const char *name;
	int mask;
	struct ib_qp_attr attr;
	int ret;
};

/* The largest values that are valid, and the smallest that are not. */
static const struct check_row check_rows[] = {
	{ "nothing", 0, {}, 0 },
	{ "port_1", IB_QP_PORT, { .port_num = 1 }, 0 },
	{ "port_0", IB_QP_PORT, { .port_num = 0 }, -EINVAL },
	{ "port_2", IB_QP_PORT, { .port_num = 2 }, -EINVAL },
	{ "not_named", 0, { .port_num = 2, .pkey_index = 7, .timeout = 99 }, 0 },
	{ "pkey_0", IB_QP_PKEY_INDEX, {}, 0 },
	{ "pkey_1", IB_QP_PKEY_INDEX, { .pkey_index = 1 }, -EINVAL },
	{ "qkey", IB_QP_QKEY, {}, -EINVAL },
	{ "access", IB_QP_ACCESS_FLAGS, { .qp_access_flags = OPEN | LW }, 0 },
	{ "access_unknown", IB_QP_ACCESS_FLAGS, { .qp_access_flags = 1 << 19 }, -EINVAL },
	{ "qpn", IB_QP_DEST_QPN, { .dest_qp_num = 0xffffff }, 0 },
	{ "qpn_too_large", IB_QP_DEST_QPN, { .dest_qp_num = 0x1000000 }, -EINVAL },
	{ "mtu_256", IB_QP_PATH_MTU, { .path_mtu = IB_MTU_256 }, 0 },
	{ "mtu_4096", IB_QP_PATH_MTU, { .path_mtu = IB_MTU_4096 }, 0 },
	{ "mtu_0", IB_QP_PATH_MTU, {}, -EINVAL },
	{ "mtu_6", IB_QP_PATH_MTU, { .path_mtu = 6 }, -EINVAL },
	{ "av", IB_QP_AV, { .ah_attr.port_num = 1 }, 0 },
	{ "av_port", IB_QP_AV, { .ah_attr.port_num = 2 }, -EINVAL },
	{ "timeout", IB_QP_TIMEOUT, { .timeout = 31 }, 0 },
	{ "timeout_long", IB_QP_TIMEOUT, { .timeout = 32 }, -EINVAL },
	{ "rnr_timer", IB_QP_MIN_RNR_TIMER, { .min_rnr_timer = 31 }, 0 },
	{ "rnr_timer_long", IB_QP_MIN_RNR_TIMER, { .min_rnr_timer = 32 }, -EINVAL },
	{ "retries", IB_QP_RETRY_CNT, { .retry_cnt = 7 }, 0 },
	{ "retries_many", IB_QP_RETRY_CNT, { .retry_cnt = 8 }, -EINVAL },
	{ "rnr_retries", IB_QP_RNR_RETRY, { .rnr_retry = 7 }, 0 },
	{ "rnr_retries_many", IB_QP_RNR_RETRY, { .rnr_retry = 8 }, -EINVAL },
	{ "depths",
	  IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC,
	  { .max_rd_atomic = 255, .max_dest_rd_atomic = 255 },
	  0 },
	{ "psns", IB_QP_SQ_PSN | IB_QP_RQ_PSN, { .sq_psn = U32_MAX, .rq_psn = U32_MAX }, 0 },
	{ "migrated", IB_QP_PATH_MIG_STATE, { .path_mig_state = IB_MIG_MIGRATED }, 0 },
	{ "armed", IB_QP_PATH_MIG_STATE, { .path_mig_state = IB_MIG_ARMED }, -EOPNOTSUPP },
	{ "alternate_path", IB_QP_ALT_PATH, { .alt_port_num = 1 }, -EOPNOTSUPP },
	{ "resize", IB_QP_CAP, {}, -EOPNOTSUPP },
	{ "rate_limit", IB_QP_RATE_LIMIT, {}, -EOPNOTSUPP },
	{ "no_sqd_event", IB_QP_EN_SQD_ASYNC_NOTIFY, {}, 0 },
	{ "sqd_event", IB_QP_EN_SQD_ASYNC_NOTIFY, { .en_sqd_async_notify = 1 }, -EOPNOTSUPP },
};

WEFT_ROWS(check_rows)

static void weft_qp_attrs_are_checked(struct kunit *test)
{
	const struct check_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, weft_qp_attrs_check(&row->attr, row->mask), row->ret);
}

#define EVERYTHING                                                                          \
	(IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_AV | IB_QP_PATH_MTU |  \
	 IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MIN_RNR_TIMER | IB_QP_RQ_PSN | \
	 IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_DEST_QPN)

static struct ib_qp_attr made_up(void)
{
	const struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.rq_psn = 0xff123456,
		.sq_psn = 0xffabcdef,
		.dest_qp_num = 77,
		.qp_access_flags = RW,
		.max_rd_atomic = 11,
		.max_dest_rd_atomic = 12,
		.min_rnr_timer = 13,
		.timeout = 14,
		.retry_cnt = 5,
		.rnr_retry = 6,
		.ah_attr = { .sl = 3, .port_num = 1, .ah_flags = IB_AH_GRH },
	};

	return attr;
}

static void expect_made_up(struct kunit *test, const struct ib_qp_attr *got)
{
	KUNIT_EXPECT_EQ(test, got->path_mtu, IB_MTU_1024);
	KUNIT_EXPECT_EQ(test, got->rq_psn, 0x123456U);
	KUNIT_EXPECT_EQ(test, got->sq_psn, 0xabcdefU);
	KUNIT_EXPECT_EQ(test, got->dest_qp_num, 77U);
	KUNIT_EXPECT_EQ(test, got->qp_access_flags, (int)RW);
	KUNIT_EXPECT_EQ(test, got->max_rd_atomic, 11);
	KUNIT_EXPECT_EQ(test, got->max_dest_rd_atomic, 12);
	KUNIT_EXPECT_EQ(test, got->min_rnr_timer, 13);
	KUNIT_EXPECT_EQ(test, got->timeout, 14);
	KUNIT_EXPECT_EQ(test, got->retry_cnt, 5);
	KUNIT_EXPECT_EQ(test, got->rnr_retry, 6);
	KUNIT_EXPECT_EQ(test, got->ah_attr.sl, 3);
	KUNIT_EXPECT_EQ(test, got->ah_attr.port_num, 1U);
	KUNIT_EXPECT_EQ(test, got->ah_attr.ah_flags, IB_AH_GRH);
}

/* Attributes that were set are returned, and later ones do not change them. */
static void weft_qp_attrs_are_told_back(struct kunit *test)
{
	struct ib_qp_attr attr = made_up(), got = {};
	struct weft_qp_attrs attrs = {};
	struct ib_gid_attr gid_attr;

	attr.ah_attr.grh.sgid_attr = &gid_attr;
	weft_qp_attrs_set(&attrs, &attr, EVERYTHING);
	KUNIT_EXPECT_EQ(test, attrs.set, (u32)EVERYTHING);
	KUNIT_EXPECT_TRUE(test, attrs.by_hand);
	weft_qp_attrs_tell(&attrs, &got);
	expect_made_up(test, &got);
	KUNIT_EXPECT_NULL(test, got.ah_attr.grh.sgid_attr);

	memset(&attr, 0x11, sizeof(attr));
	weft_qp_attrs_set(&attrs, &attr, 0);
	weft_qp_attrs_set(&attrs, &attr, IB_QP_PORT | IB_QP_CUR_STATE);
	weft_qp_attrs_tell(&attrs, &got);
	expect_made_up(test, &got);
}

/* Flags of up to three modifies, and their result: it is in force, and returned. */
struct access_row {
	const char *name;
	struct {
		int mask;
		enum ib_qp_state state;
		int flags;
	} steps[3];
	int access;
};

#define OF_CM	(IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PORT)
#define OF_ALL	(OF_CM | IB_QP_PKEY_INDEX)
#define LATER	IB_QP_ACCESS_FLAGS

static const struct access_row access_rows[] = {
	{ "never_set", {}, 0 },
	{ "active_side", { { OF_CM, IB_QPS_INIT, 0 } }, OPEN },
	{ "passive_side", { { OF_CM, IB_QPS_INIT, RR | RW } }, OPEN },
	{ "rdma_cm_twice", { { OF_CM, IB_QPS_INIT, 0 }, { OF_CM, IB_QPS_INIT, RR | RW } }, OPEN },
	{ "own_none", { { OF_ALL, IB_QPS_INIT, 0 } }, 0 },
	{ "own_write", { { OF_ALL, IB_QPS_INIT, RW | LW } }, RW | LW },
	{ "own_after_rdma_cm", { { OF_CM, IB_QPS_INIT, RR | RW }, { LATER, 0, RR } }, RR },
	{ "own_before_rdma_cm", { { LATER, 0, RR }, { OF_CM, IB_QPS_INIT, RR | RW } }, RR },
	{ "own_in_rts", { { OF_CM, IB_QPS_INIT, 0 }, { OF_CM, IB_QPS_RTS, 0 } }, 0 },
	{ "own_twice", { { LATER, 0, 0 }, { LATER, 0, RR | RA } }, RR | RA },
	{ "by_hand", { { OF_CM, IB_QPS_INIT, RW }, { IB_QP_STATE | IB_QP_AV, IB_QPS_RTR } }, RW },
	{ "by_hand_never_set",
	  { { IB_QP_STATE, IB_QPS_INIT }, { IB_QP_STATE | IB_QP_AV, IB_QPS_RTR } },
	  0 },
	{ "rdma_cm_accepts",
	  { { OF_CM, IB_QPS_INIT, RR | RW }, { OF_CM, IB_QPS_RTR, RR | RW } },
	  OPEN },
	{ "own_before_accept", { { LATER, 0, RW }, { OF_CM, IB_QPS_RTR, RR | RW } }, RW },
};

WEFT_ROWS(access_rows)

static void weft_qp_attrs_access_flags(struct kunit *test)
{
	const struct access_row *row = test->param_value;
	struct weft_qp_attrs attrs = {};
	struct ib_qp_attr attr = {};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(row->steps); i++) {
		attr.qp_state = row->steps[i].state;
		attr.qp_access_flags = row->steps[i].flags;
		weft_qp_attrs_set(&attrs, &attr, row->steps[i].mask);
	}
	KUNIT_EXPECT_EQ(test, weft_qp_attrs_access(&attrs), row->access);
	weft_qp_attrs_tell(&attrs, &attr);
	KUNIT_EXPECT_EQ(test, attr.qp_access_flags, row->access);
}

static struct kunit_case qp_attrs_cases[] = {
	KUNIT_CASE_PARAM(weft_qp_attrs_are_checked, check_rows_gen_params),
	KUNIT_CASE(weft_qp_attrs_are_told_back),
	KUNIT_CASE_PARAM(weft_qp_attrs_access_flags, access_rows_gen_params),
	{},
};

static struct kunit_suite qp_attrs_suite = {
	.name = "weft_qp_attrs",
	.test_cases = qp_attrs_cases,
};

kunit_test_suite(qp_attrs_suite);
