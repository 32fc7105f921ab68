// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What directly connected QPs tell each other: layout, matching, and which end connects.
 */
#include "proto/direct.h"
#include "suite.h"

static const struct weft_direct_hello one_end = {
	.qpn = 0x000102,
	.peer_qpn = 0x030405,
	.rq_psn = 0x060708,
	.sq_psn = 0x090a0b,
	.has_sq_psn = true,
	.extensions = WEFT_DIRECT_SEND_IMM,
};

static const struct weft_direct_hello other_end = {
	.qpn = 0x030405,
	.peer_qpn = 0x000102,
	.rq_psn = 0x090a0b,
	.sq_psn = 0x060708,
	.has_sq_psn = true,
};

/* Documentation/protocol.md shows the same. */
static const u8 one_end_on_the_wire[WEFT_DIRECT_LEN] = {
	'W', 'F', 'T', 'Q', 1, 1, 0, 1, 0, 0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11,
};

static void direct_layout(struct kunit *test)
{
	u8 out[WEFT_DIRECT_LEN];

	memset(out, 0xa5, sizeof(out));
	weft_direct_build(&one_end, out);
	KUNIT_EXPECT_EQ(test, memcmp(out, one_end_on_the_wire, sizeof(out)), 0);
}

static void direct_reads_back(struct kunit *test)
{
	const u8 *in = weft_exact_copy(test, one_end_on_the_wire, WEFT_DIRECT_LEN);
	struct weft_direct_hello hello = {};

	KUNIT_EXPECT_EQ(test, weft_direct_parse(in, WEFT_DIRECT_LEN, &hello), WEFT_DIRECT_OK);
	KUNIT_EXPECT_EQ(test, hello.qpn, one_end.qpn);
	KUNIT_EXPECT_EQ(test, hello.peer_qpn, one_end.peer_qpn);
	KUNIT_EXPECT_EQ(test, hello.rq_psn, one_end.rq_psn);
	KUNIT_EXPECT_EQ(test, hello.sq_psn, one_end.sq_psn);
	KUNIT_EXPECT_TRUE(test, hello.has_sq_psn);
	KUNIT_EXPECT_EQ(test, hello.extensions, one_end.extensions);
}

static void direct_without_sq_psn(struct kunit *test)
{
	struct weft_direct_hello hello = one_end;
	u8 out[WEFT_DIRECT_LEN];

	hello.has_sq_psn = false;
	weft_direct_build(&hello, out);
	KUNIT_EXPECT_EQ(test, weft_direct_parse(out, sizeof(out), &hello), WEFT_DIRECT_OK);
	KUNIT_EXPECT_FALSE(test, hello.has_sq_psn);
	KUNIT_EXPECT_EQ(test, hello.sq_psn, 0U);
}

/* What is only known in RTS stands beside the flag that says so. */
static void direct_rnr_retry(struct kunit *test)
{
	struct weft_direct_hello hello = one_end;
	u8 out[WEFT_DIRECT_LEN];
	u8 retry;

	for (retry = 0; retry <= 7; retry++) {
		hello.has_rnr_retry = true;
		hello.rnr_retry = retry;
		weft_direct_build(&hello, out);
		KUNIT_EXPECT_EQ(test, out[5], 3 + 32 * retry);
		KUNIT_EXPECT_EQ(test, weft_direct_parse(out, sizeof(out), &hello), WEFT_DIRECT_OK);
		KUNIT_EXPECT_TRUE(test, hello.has_rnr_retry);
		KUNIT_EXPECT_EQ(test, hello.rnr_retry, retry);
		KUNIT_EXPECT_EQ(test, hello.sq_psn, one_end.sq_psn);
	}
	KUNIT_EXPECT_EQ(test, weft_direct_parse(one_end_on_the_wire, sizeof(out), &hello),
			WEFT_DIRECT_OK);
	KUNIT_EXPECT_FALSE(test, hello.has_rnr_retry);
}

struct bad_row {
	const char *name;
	u32 len;
	u8 at;
	u8 value;
	enum weft_direct_reason reason;
};

static const struct bad_row bad_rows[] = {
	{ "empty", 0, 0, 'W', WEFT_DIRECT_MALFORMED },
	{ "magic_alone", 4, 0, 'W', WEFT_DIRECT_MALFORMED },
	{ "one_byte_short", WEFT_DIRECT_LEN - 1, 0, 'W', WEFT_DIRECT_MALFORMED },
	{ "magic", WEFT_DIRECT_LEN, 3, 'R', WEFT_DIRECT_MALFORMED },
	{ "version_0", WEFT_DIRECT_LEN, 4, 0, WEFT_DIRECT_BAD_VERSION },
	{ "version_2", WEFT_DIRECT_LEN, 4, 2, WEFT_DIRECT_BAD_VERSION },
	{ "version_2_short", 8, 4, 2, WEFT_DIRECT_BAD_VERSION },
	{ "qpn", WEFT_DIRECT_LEN, 8, 1, WEFT_DIRECT_MALFORMED },
	{ "peer_qpn", WEFT_DIRECT_LEN, 12, 0x80, WEFT_DIRECT_MALFORMED },
	{ "rq_psn", WEFT_DIRECT_LEN, 16, 1, WEFT_DIRECT_MALFORMED },
	{ "sq_psn", WEFT_DIRECT_LEN, 20, 1, WEFT_DIRECT_MALFORMED },
};

WEFT_ROWS(bad_rows)

static void direct_bad_private_data(struct kunit *test)
{
	const struct bad_row *row = test->param_value;
	u8 *in = weft_exact_copy(test, one_end_on_the_wire, row->len);
	struct weft_direct_hello hello = { .qpn = 77 };

	if (row->at < row->len)
		in[row->at] = row->value;
	KUNIT_EXPECT_EQ(test, weft_direct_parse(in, row->len, &hello), row->reason);
	KUNIT_EXPECT_EQ(test, hello.qpn, 77U);
}

/* What a later version adds does not keep this one from reading. */
static void direct_ignores_what_it_does_not_know(struct kunit *test)
{
	struct weft_direct_hello hello;
	u8 in[WEFT_DIRECT_LEN + 4] = {};

	memcpy(in, one_end_on_the_wire, WEFT_DIRECT_LEN);
	in[5] = 0xff;
	in[6] = 0xff;
	in[7] = 0xff;
	KUNIT_EXPECT_EQ(test, weft_direct_parse(in, sizeof(in), &hello), WEFT_DIRECT_OK);
	KUNIT_EXPECT_EQ(test, hello.extensions, WEFT_DIRECT_EXTENSIONS);
}

static void direct_match_numbers(struct kunit *test)
{
	struct weft_direct_hello peer = other_end;

	KUNIT_EXPECT_EQ(test, weft_direct_match(&one_end, &peer), WEFT_DIRECT_OK);
	peer.qpn++;
	KUNIT_EXPECT_EQ(test, weft_direct_match(&one_end, &peer), WEFT_DIRECT_NO_QP);
	peer = other_end;
	peer.peer_qpn++;
	KUNIT_EXPECT_EQ(test, weft_direct_match(&one_end, &peer), WEFT_DIRECT_NO_QP);
}

static void direct_match_psns(struct kunit *test)
{
	struct weft_direct_hello own = one_end, peer = other_end;

	peer.sq_psn++;
	KUNIT_EXPECT_EQ(test, weft_direct_match(&own, &peer), WEFT_DIRECT_BAD_PSN);
	peer.has_sq_psn = false;
	KUNIT_EXPECT_EQ(test, weft_direct_match(&own, &peer), WEFT_DIRECT_OK);
	peer.rq_psn++;
	KUNIT_EXPECT_EQ(test, weft_direct_match(&own, &peer), WEFT_DIRECT_BAD_PSN);
	own.has_sq_psn = false;
	KUNIT_EXPECT_EQ(test, weft_direct_match(&own, &peer), WEFT_DIRECT_OK);
}

static void direct_rejects(struct kunit *test)
{
	static const u8 unknown[] = { 'W', 'F', 'T', 'Q', 1, WEFT_DIRECT_REASONS, 0, 0 };
	static const u8 accepted[] = { 'W', 'F', 'T', 'Q', 1, 0, 0, 0 };
	u8 out[WEFT_DIRECT_REJECT_LEN];
	int reason;

	for (reason = WEFT_DIRECT_MALFORMED; reason < WEFT_DIRECT_REASONS; reason++) {
		weft_direct_build_reject(reason, out);
		KUNIT_EXPECT_EQ(test, weft_direct_parse_reject(out, sizeof(out)), reason);
	}
	KUNIT_EXPECT_EQ(test, weft_direct_parse_reject(unknown, 8), WEFT_DIRECT_MALFORMED);
	KUNIT_EXPECT_EQ(test, weft_direct_parse_reject(accepted, 8), WEFT_DIRECT_MALFORMED);
	KUNIT_EXPECT_EQ(test, weft_direct_parse_reject(accepted, 7), WEFT_DIRECT_MALFORMED);
}

/* What the log says of a request that was rejected. */
static void direct_reason_names(struct kunit *test)
{
	static const char *const names[] = {
		"accepted",
		"malformed private data",
		"another version",
		"no such QP, or it has another peer",
		"wrong PSN",
		"busy",
		"?",
	};
	int reason;

	KUNIT_ASSERT_EQ(test, ARRAY_SIZE(names), (size_t)WEFT_DIRECT_REASONS + 1);
	for (reason = 0; reason <= WEFT_DIRECT_REASONS; reason++)
		KUNIT_EXPECT_STREQ(test, weft_direct_reason_name(reason), names[reason]);
}

struct role_row {
	const char *name;
	u8 last;
	u32 qpn;
	u8 peer_last;
	u32 peer_qpn;
	enum weft_direct_role role;
	enum weft_direct_role peer_role;
};

static const struct role_row role_rows[] = {
	{ "by_gid", 1, 9, 2, 3, WEFT_DIRECT_CONNECTS, WEFT_DIRECT_ACCEPTS },
	{ "by_unsigned_gid", 0x7f, 9, 0x80, 3, WEFT_DIRECT_CONNECTS, WEFT_DIRECT_ACCEPTS },
	{ "by_number", 1, 3, 1, 9, WEFT_DIRECT_CONNECTS, WEFT_DIRECT_ACCEPTS },
	{ "itself", 1, 3, 1, 3, WEFT_DIRECT_ITSELF, WEFT_DIRECT_ITSELF },
};

WEFT_ROWS(role_rows)

static void direct_roles(struct kunit *test)
{
	const struct role_row *row = test->param_value;
	u8 gid[WEFT_DIRECT_GID_LEN] = { 0xfd, [15] = row->last };
	u8 peer[WEFT_DIRECT_GID_LEN] = { 0xfd, [15] = row->peer_last };

	KUNIT_EXPECT_EQ(test, weft_direct_role(gid, row->qpn, peer, row->peer_qpn), row->role);
	KUNIT_EXPECT_EQ(test, weft_direct_role(peer, row->peer_qpn, gid, row->qpn), row->peer_role);
}

struct retry_time_row {
	const char *name;
	u8 timeout;
	u8 retry_cnt;
	u64 ns;
};

static const struct retry_time_row retry_time_rows[] = {
	{ "for_ever", 0, 7, 0 },
	{ "as_short_as_tcp_goes", 1, 0, 3000000000ULL },
	{ "of_ibv_rc_pingpong", 14, 7, 3000000000ULL },
	{ "of_perftest", 18, 7, 4096ULL * (1 << 18) * 32 },
	{ "longest", 31, 7, 4096ULL * (1ULL << 31) * 32 },
};

WEFT_ROWS(retry_time_rows)

static void direct_retry_time(struct kunit *test)
{
	const struct retry_time_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, weft_direct_retry_ns(row->timeout, row->retry_cnt), row->ns);
}

struct rnr_row {
	const char *name;
	u8 rnr_retry;
	u8 min_rnr_timer;
	u32 ms;
};

/* The timers of the specification: 0.64, 655.36, 0.01, 491.52, 7.68 ms. */
static const struct rnr_row rnr_rows[] = {
	{ "not_at_all", 0, 31, 0 },
	{ "of_many_examples", 6, 12, 4 },
	{ "longest", 6, 0, 3933 },
	{ "shortest", 1, 1, 1 },
	{ "next_to_longest", 1, 31, 492 },
	{ "between_powers", 1, 19, 8 },
	{ "for_ever", 7, 12, WEFT_DIRECT_RNR_FOREVER },
};

WEFT_ROWS(rnr_rows)

static void direct_rnr_time(struct kunit *test)
{
	const struct rnr_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, weft_direct_rnr_ms(row->rnr_retry, row->min_rnr_timer), row->ms);
}

static struct kunit_case direct_cases[] = {
	KUNIT_CASE(direct_layout),
	KUNIT_CASE(direct_reads_back),
	KUNIT_CASE(direct_rnr_retry),
	KUNIT_CASE_PARAM(direct_rnr_time, rnr_rows_gen_params),
	KUNIT_CASE(direct_without_sq_psn),
	KUNIT_CASE_PARAM(direct_bad_private_data, bad_rows_gen_params),
	KUNIT_CASE(direct_ignores_what_it_does_not_know),
	KUNIT_CASE(direct_match_numbers),
	KUNIT_CASE(direct_match_psns),
	KUNIT_CASE(direct_rejects),
	KUNIT_CASE(direct_reason_names),
	KUNIT_CASE_PARAM(direct_roles, role_rows_gen_params),
	KUNIT_CASE_PARAM(direct_retry_time, retry_time_rows_gen_params),
	{},
};

static struct kunit_suite direct_suite = {
	.name = "weft_direct",
	.test_cases = direct_cases,
};

kunit_test_suite(direct_suite);
