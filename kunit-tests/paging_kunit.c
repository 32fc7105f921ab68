// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A direction waits for pages, and goes on when a worker has faulted them in. Faults are played.
 */
/* For other suites these are real. */
#define weft_odp_fault played_odp_fault
#define weft_odp_forget played_odp_forget
#define weft_odp_put played_odp_put
#define weft_odp_queue played_odp_queue
#define weft_paging_end real_paging_end
#define weft_paging_init real_paging_init
#define weft_paging_renew real_paging_renew
#define weft_paging_start real_paging_start
#include "engine/ops/paging.c"

#include <linux/errno.h>
#include <linux/string.h>

#include "stream_world.h"
#include "suite.h"

/* What was asked of the memory. */
static struct {
	u32 queued;
	u32 puts;
	u32 forgotten;
	u64 offset;
	u64 len;
	enum weft_odp_how how;
} asked;

bool weft_odp_queue(struct work_struct *work)
{
	asked.queued++;
	return true;
}

int weft_odp_fault(struct weft_odp *odp, u64 offset, u64 len, enum weft_odp_how how)
{
	asked.offset = offset;
	asked.len = len;
	asked.how = how;
	return -EFAULT;
}

void weft_odp_put(struct weft_odp *odp)
{
	asked.puts++;
}

void weft_odp_forget(struct weft_odp_want *want)
{
	asked.forgotten++;
}

static int make_paging(struct kunit *test)
{
	int err = make_stream(test);
	struct stream_world *w = test->priv;

	if (err)
		return err;
	memset(&asked, 0, sizeof(asked));
	weft_paging_init(&w->st);
	return 0;
}

static const struct state_row {
	const char *name;
	u8 state;
	bool waits;
	u32 queued;
	u8 then;
} state_rows[] = {
	{ "nothing_is_lacking", WEFT_ODP_IDLE, false, 0, WEFT_ODP_IDLE },
	{ "a_page_is_lacking", WEFT_ODP_ASKED, true, 1, WEFT_ODP_STARTED },
	{ "a_worker_is_at_it", WEFT_ODP_STARTED, true, 0, WEFT_ODP_STARTED },
	{ "a_worker_has_tried", WEFT_ODP_DONE, false, 0, WEFT_ODP_DONE },
};

WEFT_ROWS(state_rows);

/* One worker for each wait, which the stream outlives. */
static void weft_paging_starts_one_worker(struct kunit *test)
{
	const struct state_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_paging *paging = &w->st.rx.paging;

	paging->want.state = row->state;
	KUNIT_EXPECT_EQ(test, weft_paging_start(&w->st, paging), row->waits);
	KUNIT_EXPECT_EQ(test, asked.queued, row->queued);
	KUNIT_EXPECT_EQ(test, paging->want.state, row->then);
	KUNIT_EXPECT_EQ(test, kref_read(&w->st.ref), 1 + row->queued);
	KUNIT_EXPECT_EQ(test, weft_counters_read(&w->counters, WEFT_CTR_ODP_PAGE_WAITS),
			(u64)row->queued);
}

static const struct work_row {
	const char *name;
	bool sends;
	bool write;
	bool ended;	/* meanwhile */
	u32 want_tx;
	u32 want_rx;
} work_rows[] = {
	{ "what_is_sent", true, false, false, 1, 0 },
	{ "an_atomic", true, true, false, 1, 0 },
	{ "what_is_received", false, true, false, 0, 1 },
	{ "what_was_sent", true, false, true, 0, 0 },
	{ "what_was_received", false, true, true, 0, 0 },
};

WEFT_ROWS(work_rows);

/* The direction goes on, also if there are no pages; one of a stream that has ended does not. */
static void weft_paging_goes_on(struct kunit *test)
{
	const struct work_row *row = test->param_value;
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;
	struct weft_paging *paging = row->sends ? &st->tx.paging : &st->rx.paging;

	paging->want.state = WEFT_ODP_ASKED;
	paging->want.offset = 4096;
	paging->want.len = 100;
	paging->want.write = row->write;
	KUNIT_ASSERT_TRUE(test, weft_paging_start(st, paging));
	if (row->ended)
		weft_paging_end(st);
	paging_work(&paging->work);
	KUNIT_EXPECT_EQ(test, asked.offset, 4096ULL);
	KUNIT_EXPECT_EQ(test, asked.len, 100ULL);
	KUNIT_EXPECT_EQ(test, asked.how, row->write ? WEFT_ODP_WRITE : WEFT_ODP_READ);
	KUNIT_EXPECT_EQ(test, asked.puts, 1U);
	KUNIT_EXPECT_EQ(test, asked.forgotten, row->ended ? 2U : 0U);
	KUNIT_EXPECT_EQ(test, paging->want.state, WEFT_ODP_DONE);
	KUNIT_EXPECT_EQ(test, paging->want.err, -EFAULT);
	KUNIT_EXPECT_EQ(test, w->seen.want_tx, row->want_tx);
	KUNIT_EXPECT_EQ(test, w->seen.want_rx, row->want_rx);
	KUNIT_EXPECT_EQ(test, kref_read(&st->ref), 1U);
	KUNIT_EXPECT_EQ(test, w->seen.releases, 0U);
	weft_paging_renew(st);
	KUNIT_EXPECT_FALSE(test, st->tx.paging.muted || st->rx.paging.muted);
}

/* Each direction knows its own wait; what is received has one for both kinds of buffers. */
static void weft_paging_belongs_to_a_direction(struct kunit *test)
{
	struct stream_world *w = test->priv;
	struct weft_stream *st = &w->st;

	KUNIT_EXPECT_PTR_EQ(test, st->tx.mem.want, &st->tx.paging.want);
	KUNIT_EXPECT_PTR_EQ(test, st->rx.mem.want, &st->rx.paging.want);
	KUNIT_EXPECT_PTR_EQ(test, st->rx.rq_mem.want, &st->rx.paging.want);
}

static struct kunit_case paging_cases[] = {
	KUNIT_CASE_PARAM(weft_paging_starts_one_worker, state_rows_gen_params),
	KUNIT_CASE_PARAM(weft_paging_goes_on, work_rows_gen_params),
	KUNIT_CASE(weft_paging_belongs_to_a_direction),
	{},
};

static struct kunit_suite paging_suite = {
	.name = "weft_paging",
	.init = make_paging,
	.exit = free_stream,
	.test_cases = paging_cases,
};

kunit_test_suite(paging_suite);
