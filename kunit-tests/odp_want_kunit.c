// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which accesses wait for pages that are not there: all while a worker faults some in, and those
 * that no worker has tried to serve. The memory is none; only its references are looked at.
 */
#include <linux/errno.h>
#include <linux/kref.h>
#include <linux/string.h>

#include "mem/odp.h"
#include "mem/odp_chunk.h"
#include "suite.h"

#define AT	8192U
#define LENGTH	4096U

/* Two regions, each with the reference of its owner. */
struct want_world {
	struct weft_odp memory;
	struct weft_odp other;
	struct weft_odp_want want;
};

static struct want_world *want_world(struct kunit *test, enum weft_odp_want_state state)
{
	struct want_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	kref_init(&w->memory.ref);
	kref_init(&w->other.ref);
	w->want.state = state;
	if (state == WEFT_ODP_IDLE)
		return w;
	w->want.odp = &w->memory;
	w->want.offset = AT;
	w->want.len = LENGTH;
	if (state != WEFT_ODP_DONE)
		kref_get(&w->memory.ref);
	return w;
}

/* What an access comes to that lacks pages. */
enum outcome {
	WAITS,	/* for what is wanted already */
	ASKS,	/* for its own pages from now on */
	FAILS,	/* there are none */
};

/* @writes: wanted; @err, @moot: what has come of it; then the access. */
struct access_row {
	const char *name;
	enum weft_odp_want_state state;
	bool writes;
	int err;
	bool moot;
	bool elsewhere;
	bool write;
	u64 offset;
	u32 len;
	enum outcome outcome;
};

#define ASKED(...)	.state = WEFT_ODP_ASKED, __VA_ARGS__
#define STARTED(...)	.state = WEFT_ODP_STARTED, __VA_ARGS__
#define DONE(_err, ...)	.state = WEFT_ODP_DONE, .err = (_err), __VA_ARGS__
#define ACCESS(_offset, _len, _outcome)	.offset = (_offset), .len = (_len), .outcome = (_outcome)

static const struct access_row access_rows[] = {
	{ "nothing_wanted", ACCESS(AT, LENGTH, ASKS) },

	{ "wanted", ASKED(ACCESS(AT, LENGTH, WAITS)) },
	{ "first_part", ASKED(ACCESS(AT, LENGTH - 1, WAITS)) },
	{ "last_part", ASKED(ACCESS(AT + 1, LENGTH - 1, WAITS)) },
	{ "from_a_byte_before", ASKED(ACCESS(AT - 1, LENGTH, ASKS)) },
	{ "up_to_a_byte_behind", ASKED(ACCESS(AT + 1, LENGTH, ASKS)) },
	{ "longer", ASKED(ACCESS(AT, LENGTH + 1, ASKS)) },
	{ "far_behind", ASKED(ACCESS(AT + 2 * LENGTH, 1, ASKS)) },
	{ "read_of_what_is_to_be_written", ASKED(.writes = true, ACCESS(AT, LENGTH, WAITS)) },
	{ "write_to_what_is_to_be_read", ASKED(.write = true, ACCESS(AT, LENGTH, ASKS)) },
	{ "of_another_region", ASKED(.elsewhere = true, ACCESS(AT, LENGTH, ASKS)) },

	{ "under_way", STARTED(ACCESS(AT, LENGTH, WAITS)) },
	{ "under_way_elsewhere", STARTED(.elsewhere = true, .write = true, ACCESS(0, 1, WAITS)) },
	{ "under_way_and_moot", STARTED(.moot = true, ACCESS(0, 1, WAITS)) },

	{ "there_and_gone", DONE(0, ACCESS(AT, LENGTH, ASKS)) },
	{ "none", DONE(-EFAULT, ACCESS(AT, LENGTH, FAILS)) },
	{ "none_in_the_middle", DONE(-EFAULT, ACCESS(AT - 1, LENGTH + 2, FAILS)) },
	{ "first_part_of_none", DONE(-EFAULT, ACCESS(AT, LENGTH - 1, ASKS)) },
	{ "last_part_of_none", DONE(-EFAULT, ACCESS(AT + 1, LENGTH - 1, ASKS)) },
	{ "beside_none", DONE(-EFAULT, ACCESS(AT + 1, LENGTH, ASKS)) },
	{ "none_to_read", DONE(-EFAULT, .write = true, ACCESS(AT, LENGTH, FAILS)) },
	{ "none_to_write", DONE(-EFAULT, .writes = true, ACCESS(AT, LENGTH, ASKS)) },
	{ "none_in_another_region", DONE(-EFAULT, .elsewhere = true, ACCESS(AT, LENGTH, ASKS)) },
	{ "none_and_moot", DONE(-EFAULT, .moot = true, ACCESS(AT, LENGTH, ASKS)) },
	{ "changed_all_the_time", DONE(-EBUSY, ACCESS(AT, LENGTH, ASKS)) },
};

WEFT_ROWS(access_rows)

/* The new one, with a reference; what was wanted and not begun has none any more. */
static void asks(struct kunit *test, const struct access_row *row, struct want_world *w)
{
	struct weft_odp *odp = row->elsewhere ? &w->other : &w->memory;

	KUNIT_EXPECT_EQ(test, w->want.state, (u8)WEFT_ODP_ASKED);
	KUNIT_EXPECT_PTR_EQ(test, w->want.odp, odp);
	KUNIT_EXPECT_EQ(test, w->want.offset, row->offset);
	KUNIT_EXPECT_EQ(test, w->want.len, row->len);
	KUNIT_EXPECT_EQ(test, w->want.write, row->write);
	KUNIT_EXPECT_FALSE(test, w->want.moot);
	KUNIT_EXPECT_EQ(test, kref_read(&w->memory.ref), row->elsewhere ? 1U : 2U);
	KUNIT_EXPECT_EQ(test, kref_read(&w->other.ref), row->elsewhere ? 2U : 1U);
}

static void weft_odp_want_waits(struct kunit *test)
{
	const struct access_row *row = test->param_value;
	struct want_world *w = want_world(test, row->state);
	struct weft_odp *odp = row->elsewhere ? &w->other : &w->memory;
	struct weft_odp_want before;
	u32 refs = kref_read(&w->memory.ref);
	bool waits;

	w->want.write = row->writes;
	w->want.err = row->err;
	w->want.moot = row->moot;
	before = w->want;
	waits = weft_odp_must_wait(&w->want, odp, row->offset, row->len, row->write);
	KUNIT_EXPECT_EQ(test, waits, row->outcome != FAILS);
	if (row->outcome == ASKS) {
		asks(test, row, w);
		return;
	}
	KUNIT_EXPECT_EQ(test, memcmp(&w->want, &before, sizeof(before)), 0);
	KUNIT_EXPECT_EQ(test, kref_read(&w->memory.ref), refs);
	KUNIT_EXPECT_EQ(test, kref_read(&w->other.ref), 1U);
}

static void weft_odp_want_where_nothing_waits(struct kunit *test)
{
	struct want_world *w = want_world(test, WEFT_ODP_IDLE);

	KUNIT_EXPECT_FALSE(test, weft_odp_must_wait(NULL, &w->memory, AT, LENGTH, false));
	KUNIT_EXPECT_EQ(test, kref_read(&w->memory.ref), 1U);
}

struct forget_row {
	const char *name;
	enum weft_odp_want_state state;
	u32 refs;
};

static const struct forget_row forget_rows[] = {
	{ "nothing", WEFT_ODP_IDLE, 1 },
	{ "asked", WEFT_ODP_ASKED, 1 },
	{ "started", WEFT_ODP_STARTED, 2 },	/* the worker's */
	{ "done", WEFT_ODP_DONE, 1 },
};

WEFT_ROWS(forget_rows)

/* What a worker has begun it ends; the outcome counts for no access. */
static void weft_odp_want_is_forgotten(struct kunit *test)
{
	const struct forget_row *row = test->param_value;
	struct want_world *w = want_world(test, row->state);
	bool started = row->state == WEFT_ODP_STARTED;

	weft_odp_forget(&w->want);
	KUNIT_EXPECT_EQ(test, kref_read(&w->memory.ref), row->refs);
	KUNIT_EXPECT_EQ(test, w->want.moot, started);
	KUNIT_EXPECT_EQ(test, w->want.state, (u8)(started ? WEFT_ODP_STARTED : WEFT_ODP_IDLE));
	KUNIT_EXPECT_PTR_EQ(test, w->want.odp, started ? &w->memory : NULL);
}

static struct kunit_case odp_want_cases[] = {
	KUNIT_CASE_PARAM(weft_odp_want_waits, access_rows_gen_params),
	KUNIT_CASE(weft_odp_want_where_nothing_waits),
	KUNIT_CASE_PARAM(weft_odp_want_is_forgotten, forget_rows_gen_params),
	{},
};

static struct kunit_suite odp_want_suite = {
	.name = "weft_odp_want",
	.test_cases = odp_want_cases,
};

kunit_test_suite(odp_want_suite);
