// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * May a request touch an STag, and if not, what is said first: RFC 5041, 7.1;
 * RFC 5040, 7.2; order of protocol-rules, ORDER-5.
 */
#include "proto/stag_rules.h"
#include "suite.h"

#define BASE	0x10000ULL
#define LENGTH	0x1000ULL

static const struct weft_stag_view region = {
	.valid = true,
	.pd = 7,
	.access = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_READ,
	.base = BASE,
	.length = LENGTH,
};

struct range_row {
	const char *name;
	u64 base;
	u64 length;
	u64 to;
	u32 len;
	enum weft_fault fault;	/* in the words of a tagged buffer */
};

static const struct range_row range_rows[] = {
	{ "whole", BASE, LENGTH, BASE, 0x1000 },
	{ "first_byte", BASE, LENGTH, BASE, 1 },
	{ "last_byte", BASE, LENGTH, BASE + LENGTH - 1, 1 },
	{ "one_below", BASE, LENGTH, BASE - 1, 1, WEFT_FAULT_TAGGED_BOUNDS },
	{ "one_below_overlaps", BASE, LENGTH, BASE - 1, 2, WEFT_FAULT_TAGGED_BOUNDS },
	{ "one_past_the_end", BASE, LENGTH, BASE + LENGTH, 1, WEFT_FAULT_TAGGED_BOUNDS },
	{ "crosses_the_end", BASE, LENGTH, BASE + LENGTH - 1, 2, WEFT_FAULT_TAGGED_BOUNDS },
	{ "one_too_long", BASE, LENGTH, BASE, 0x1001, WEFT_FAULT_TAGGED_BOUNDS },
	{ "longest", BASE, LENGTH, BASE, 0xffffffff, WEFT_FAULT_TAGGED_BOUNDS },
	{ "far_above", BASE, LENGTH, BASE + (1ULL << 32), 1, WEFT_FAULT_TAGGED_BOUNDS },
	{ "at_zero", BASE, LENGTH, 0, 1, WEFT_FAULT_TAGGED_BOUNDS },
	/* RFC 5041, 7.1 (5): the sum is never formed before it is known not to wrap */
	{ "wraps", BASE, LENGTH, ~0ULL - 7, 16, WEFT_FAULT_TAGGED_WRAP },
	{ "wraps_into_region", 0, LENGTH, ~0ULL, 2, WEFT_FAULT_TAGGED_WRAP },
	{ "reaches_2_64", BASE, LENGTH, ~0ULL - 7, 8, WEFT_FAULT_TAGGED_BOUNDS },
	{ "region_at_the_end", ~0ULL - 0xfff, LENGTH, ~0ULL - 7, 8 },
	{ "region_at_the_end_wraps", ~0ULL - 0xfff, LENGTH, ~0ULL - 7, 9, WEFT_FAULT_TAGGED_WRAP },
	{ "region_at_zero", 0, LENGTH, 0, 0x1000 },
	{ "region_of_everything", 0, ~0ULL, ~0ULL - 0x1000, 0x1000 },
	{ "region_of_nothing", BASE, 0, BASE, 1, WEFT_FAULT_TAGGED_BOUNDS },
	{ "region_above_4_gib", BASE, 1ULL << 33, BASE + (1ULL << 32), 0xffffffff },
	/* RFC 5041, 5.2; RFC 5040, 5.2.1: nothing touched, nothing checked */
	{ "empty", BASE, LENGTH, BASE, 0 },
	{ "empty_far_outside", BASE, LENGTH, ~0ULL, 0 },
};

WEFT_ROWS(range_rows)

static void check_range(struct kunit *test)
{
	const struct range_row *row = test->param_value;
	struct weft_stag_view stag = region;
	struct weft_stag_req req = {
		.context = WEFT_STAG_TAGGED,
		.right = WEFT_ACCESS_REMOTE_WRITE,
		.pd = 7,
		.qpn = 3,
		.to = row->to,
		.len = row->len,
	};

	stag.base = row->base;
	stag.length = row->length;
	KUNIT_EXPECT_EQ(test, weft_stag_check(&stag, &req), row->fault);
}

struct right_row {
	const char *name;
	u32 has;
	u32 needs;
	bool granted;
};

static const struct right_row right_rows[] = {
	{ "nothing_needed", 0, 0, true },
	{ "write", WEFT_ACCESS_REMOTE_WRITE, WEFT_ACCESS_REMOTE_WRITE, true },
	{ "write_of_all", 0xf, WEFT_ACCESS_REMOTE_WRITE, true },
	{ "write_without", 0xd, WEFT_ACCESS_REMOTE_WRITE, false },
	{ "read", WEFT_ACCESS_REMOTE_READ, WEFT_ACCESS_REMOTE_READ, true },
	{ "read_with_write_only", WEFT_ACCESS_REMOTE_WRITE, WEFT_ACCESS_REMOTE_READ, false },
	{ "write_with_read_only", WEFT_ACCESS_REMOTE_READ, WEFT_ACCESS_REMOTE_WRITE, false },
	{ "atomic", WEFT_ACCESS_REMOTE_ATOMIC, WEFT_ACCESS_REMOTE_ATOMIC, true },
	{ "atomic_with_read_and_write", 0x7, WEFT_ACCESS_REMOTE_ATOMIC, false },
	{ "local_write", WEFT_ACCESS_LOCAL_WRITE, WEFT_ACCESS_LOCAL_WRITE, true },
	{ "local_write_with_remote_only", 0xe, WEFT_ACCESS_LOCAL_WRITE, false },
	{ "no_rights_at_all", 0, WEFT_ACCESS_REMOTE_READ, false },
};

WEFT_ROWS(right_rows)

static void check_right(struct kunit *test)
{
	const struct right_row *row = test->param_value;
	struct weft_stag_view stag = region;
	struct weft_stag_req req = {
		.context = WEFT_STAG_READ,
		.right = row->needs,
		.pd = 7,
		.to = BASE,
		.len = 8,
	};

	stag.access = row->has;
	KUNIT_EXPECT_EQ(test, weft_stag_check(&stag, &req),
			row->granted ? WEFT_FAULT_NONE : WEFT_FAULT_RDMAP_ACCESS);
}

struct stream_row {
	const char *name;
	u32 pd;
	u32 qpn;
	bool granted;
};

/* RFC 5041, 8.2: by protection domain, and by stream if the STag is bound to one. */
static const struct stream_row stream_rows[] = {
	/* not bound */
	{ "any_qp_of_domain", 7, 0, true },
	{ "other_domain", 8, 0, false },
	/* bound to a queue pair */
	{ "this_qp", 7, 3, true },
	{ "another_qp", 7, 4, false },
	{ "other_domain_this_qp", 8, 3, false },
};

WEFT_ROWS(stream_rows)

static void check_stream(struct kunit *test)
{
	const struct stream_row *row = test->param_value;
	struct weft_stag_view stag = region;
	struct weft_stag_req req = {
		.context = WEFT_STAG_TAGGED,
		.right = WEFT_ACCESS_REMOTE_WRITE,
		.pd = 7,
		.qpn = 3,
		.to = BASE,
		.len = 8,
	};

	stag.pd = row->pd;
	stag.qpn = row->qpn;
	KUNIT_EXPECT_EQ(test, weft_stag_check(&stag, &req),
			row->granted ? WEFT_FAULT_NONE : WEFT_FAULT_TAGGED_STREAM);
}

/* The checks in their order, each with the words of each context. */
enum defect { INVALID, FOREIGN, NO_RIGHT, WRAPS, OUTSIDE, DEFECTS };

struct words_row {
	const char *name;
	enum weft_stag_context context;
	enum weft_fault fault[DEFECTS];
};

static const struct words_row words_rows[] = {
	/* DDP has no code for a missing right: protocol-rules, CHOICE-4 */
	{ "tagged",
	  WEFT_STAG_TAGGED,
	  { WEFT_FAULT_TAGGED_STAG, WEFT_FAULT_TAGGED_STREAM, WEFT_FAULT_TAGGED_STAG,
	    WEFT_FAULT_TAGGED_WRAP, WEFT_FAULT_TAGGED_BOUNDS } },
	{ "read",
	  WEFT_STAG_READ,
	  { WEFT_FAULT_RDMAP_STAG, WEFT_FAULT_RDMAP_STREAM, WEFT_FAULT_RDMAP_ACCESS,
	    WEFT_FAULT_RDMAP_WRAP, WEFT_FAULT_RDMAP_BOUNDS } },
	{ "local",
	  WEFT_STAG_LOCAL,
	  { WEFT_FAULT_LOCAL_PROTECTION, WEFT_FAULT_LOCAL_PROTECTION, WEFT_FAULT_LOCAL_PROTECTION,
	    WEFT_FAULT_LOCAL_PROTECTION, WEFT_FAULT_LOCAL_PROTECTION } },
};

WEFT_ROWS(words_rows)

static void corrupt(struct weft_stag_view *stag, struct weft_stag_req *req, u32 defects)
{
	if (defects & 1 << INVALID)
		stag->valid = false;
	if (defects & 1 << FOREIGN)
		stag->pd = 99;
	if (defects & 1 << NO_RIGHT)
		stag->access = 0;
	if (defects & 1 << OUTSIDE)
		req->to = BASE - 4;
	if (defects & 1 << WRAPS)
		req->to = ~0ULL;
}

/* Every combination of defects: the first of protocol-rules, ORDER-5 is reported. */
static void check_first_of_several(struct kunit *test)
{
	const struct words_row *row = test->param_value;
	u32 defects, first;

	for (defects = 0; defects < 1 << DEFECTS; defects++) {
		struct weft_stag_view stag = region;
		struct weft_stag_req req = {
			.context = row->context,
			.right = WEFT_ACCESS_REMOTE_READ,
			.pd = 7,
			.to = BASE,
			.len = 8,
		};

		corrupt(&stag, &req, defects);
		for (first = 0; first < DEFECTS && !(defects >> first & 1);)
			first++;
		KUNIT_EXPECT_EQ_MSG(test, weft_stag_check(&stag, &req),
				    first < DEFECTS ? row->fault[first] : WEFT_FAULT_NONE,
				    "defects %02x", defects);
	}
}

/* RFC 5041, 5.2: of an empty tagged segment neither STag nor TO is looked at. */
static void check_empty_with_every_defect(struct kunit *test)
{
	const struct words_row *row = test->param_value;
	struct weft_stag_view stag = region;
	struct weft_stag_req req = { .context = row->context, .right = 0xf };

	corrupt(&stag, &req, (1 << DEFECTS) - 1);
	KUNIT_EXPECT_EQ(test, weft_stag_check(&stag, &req), WEFT_FAULT_NONE);
}

#define GUESSES	20000

/* Small numbers around the ends of their range, so that every rule decides often. */
static u64 near_an_end(u64 *seed)
{
	u64 number = weft_next_random(seed) % 12;

	return weft_next_random(seed) & 1 ? number : -number;
}

/* What is allowed without a look at the order of the rules breaks none of them. */
static void allowed_is_not_refused(struct kunit *test)
{
	u64 seed = 7;
	u32 allowed = 0;
	u32 i;

	for (i = 0; i < GUESSES; i++) {
		const struct weft_stag_view stag = {
			.valid = weft_next_random(&seed) % 8,
			.pd = weft_next_random(&seed) % 2,
			.qpn = weft_next_random(&seed) % 3,
			.access = weft_next_random(&seed) & 0xf,
			.base = near_an_end(&seed),
			.length = near_an_end(&seed),
		};
		const struct weft_stag_req req = {
			.context = weft_next_random(&seed) % WEFT_STAG_CONTEXTS,
			.right = 1 << weft_next_random(&seed) % 4,
			.pd = weft_next_random(&seed) % 2,
			.qpn = 1,
			.to = near_an_end(&seed),
			.len = 1 + (u32)near_an_end(&seed) % 16,
		};
		bool fine = weft_stag_allows(&stag, &req);

		KUNIT_ASSERT_EQ(test, fine, weft_stag_refusal(&stag, &req) == WEFT_FAULT_NONE);
		allowed += fine;
	}
	KUNIT_EXPECT_GT(test, allowed, GUESSES / 200);
}

static struct kunit_case stag_rules_cases[] = {
	KUNIT_CASE_PARAM(check_range, range_rows_gen_params),
	KUNIT_CASE_PARAM(check_right, right_rows_gen_params),
	KUNIT_CASE_PARAM(check_stream, stream_rows_gen_params),
	KUNIT_CASE_PARAM(check_first_of_several, words_rows_gen_params),
	KUNIT_CASE_PARAM(check_empty_with_every_defect, words_rows_gen_params),
	KUNIT_CASE(allowed_is_not_refused),
	{},
};

static struct kunit_suite stag_rules_suite = {
	.name = "weft_stag_rules",
	.test_cases = stag_rules_cases,
};

kunit_test_suite(stag_rules_suite);
