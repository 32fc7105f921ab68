// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How long a ULPDU may be, and how an FPDU that is undone leaves the stream. The socket is a real
 * one, which was never connected.
 */
/* For other suites these are played. */
#define weft_mpa_tx_begin real_mpa_tx_begin
#define weft_mpa_tx_cancel real_mpa_tx_cancel
#define weft_mpa_tx_copy_any real_mpa_tx_copy_any
#define weft_mpa_tx_end real_mpa_tx_end
#define weft_mpa_tx_free real_mpa_tx_free
#define weft_mpa_tx_init real_mpa_tx_init
#define weft_mpa_tx_module_exit real_mpa_tx_module_exit
#define weft_mpa_tx_mulpdu real_mpa_tx_mulpdu
#define weft_mpa_tx_refresh real_mpa_tx_refresh
#define weft_mpa_tx_span_begin real_mpa_tx_span_begin
#define weft_mpa_tx_span_end real_mpa_tx_span_end
#include "net/mpa_tx.c"

#include <linux/in.h>
#include <linux/net.h>
#include <linux/page_ref.h>
#include <net/net_namespace.h>

#include "base/counters.h"
#include "suite.h"

#define HEADERS	18U
#define MSS	1448U

static const struct length_row {
	const char *name;
	u32 seg_fill;	/* of the segment that the next FPDU would start in */
	bool markers;
	u32 left;	/* of the message */
	u32 space;	/* for the FPDU */
} length_rows[] = {
	{ "a segment begins", 0, false, 100000, MSS },
	{ "it fills the rest", 1000, false, 100000, MSS - 1000 },
	{ "the rest is too short", MSS - 48, false, 100000, 48 + MSS - WEFT_FILL_FROM },
	{ "the rest is just long enough", MSS - WEFT_FILL_FROM, false, 100000, WEFT_FILL_FROM },
	{ "a short one may straddle", MSS - 48, false, 100, MSS },
	{ "it fits", 200, false, 1100, MSS },
	{ "it fits to the byte", 200, false, MSS - 200 - HEADERS - 6, MSS },
	{ "it does not fit by a byte", 200, false, MSS - 200 - HEADERS - 5, MSS - 200 },
	{ "marked", 1000, true, 100000, MSS },
};

WEFT_ROWS(length_rows);

/* RFC 5044, 4.5 and 5: what may be shorter ends where a segment does. */
static void a_ulpdu_ends_with_its_segment(struct kunit *test)
{
	const struct length_row *row = test->param_value;
	const struct weft_mpa_tx tx = {
		.mss = MSS,
		.mulpdu = weft_mpa_mulpdu(MSS, row->markers),
		.markers = row->markers,
		.seg_fill = row->seg_fill,
	};

	KUNIT_EXPECT_EQ(test, weft_mpa_tx_mulpdu(&tx, HEADERS, row->left),
			weft_mpa_mulpdu(row->space, row->markers));
}

struct staging {
	struct socket *sock;
	struct weft_sock s;
	struct weft_mpa_tx tx;
	struct weft_mpa_tx before;
	struct weft_counters counters;
	u8 *payload;
};

#define FIRST	4000U
#define PAYLOAD	65536U

static int make_staging(struct kunit *test)
{
	struct staging *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, g);
	g->payload = kunit_kzalloc(test, PAYLOAD, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, g->payload);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, AF_INET, SOCK_STREAM, 0, &g->sock), 0);
	g->s.sk = g->sock->sk;
	g->s.allocation = GFP_KERNEL;
	/* Staging begins in a fragment of its own. */
	if (current->task_frag.page)
		put_page(current->task_frag.page);
	current->task_frag.page = NULL;
	test->priv = g;
	return 0;
}

static void free_staging(struct kunit *test)
{
	struct staging *g = test->priv;

	if (!g)
		return;
	weft_mpa_tx_free(&g->tx);
	sock_release(g->sock);
}

/* An FPDU with @len bytes of payload, of which @staged are copied. */
static void stage(struct kunit *test, struct staging *g, u32 len, u32 staged)
{
	u8 start[WEFT_MPA_LEN_BYTES + HEADERS] = {};

	KUNIT_ASSERT_EQ(test, weft_mpa_tx_begin(&g->tx, start, HEADERS, len), 0);
	KUNIT_ASSERT_EQ(test, weft_mpa_tx_copy_linear(&g->tx, g->payload, staged), 0);
}

static const struct cancel_row {
	const char *name;
	bool crc;
	bool markers;
	u32 len;
	u32 staged;
} cancel_rows[] = {
	{ "short", false, false, 100, 50 },
	{ "over several page fragments", false, false, 65000, 64900 },
	{ "with a CRC", true, false, 65000, 64900 },
	{ "with markers, behind a cut", true, true, 500, 300 },
	{ "before its payload", false, false, 1000, 0 },
};

WEFT_ROWS(cancel_rows);

static void expect_as_before(struct kunit *test, const struct staging *g)
{
	const struct weft_mpa_tx *tx = &g->tx, *before = &g->before;

	KUNIT_EXPECT_EQ(test, tx->pos, before->pos);
	KUNIT_EXPECT_EQ(test, tx->eor, before->eor);
	KUNIT_EXPECT_EQ(test, tx->seg_fill, before->seg_fill);
	KUNIT_EXPECT_EQ(test, tx->big, before->big);
	KUNIT_EXPECT_EQ(test, tx->count, before->count);
	KUNIT_EXPECT_EQ(test, tx->vec[0].bv_len, before->few[0].bv_len);
	KUNIT_EXPECT_EQ(test, tx->space, 0U);
	KUNIT_EXPECT_EQ(test, tx->fresh, 0U);
}

/* Nothing of it goes out with the one before, and no page of it is kept. */
static void an_fpdu_that_is_undone_leaves_nothing(struct kunit *test)
{
	const struct cancel_row *row = test->param_value;
	struct staging *g = test->priv;
	struct page *page = NULL;

	KUNIT_ASSERT_EQ(test, weft_counters_init(&g->counters), 0);
	weft_mpa_tx_init(&g->tx, &g->s, row->crc, row->markers, &g->counters);
	stage(test, g, FIRST, FIRST);
	KUNIT_ASSERT_EQ(test, weft_mpa_tx_end(&g->tx), 0);
	KUNIT_ASSERT_EQ(test, g->tx.count, 1U);
	g->before = g->tx;
	stage(test, g, row->len, row->staged);
	KUNIT_EXPECT_EQ(test, g->tx.count > 1, row->len > 32768);
	if (g->tx.count > 1) {
		page = g->tx.vec[1].bv_page;
		get_page(page);
	}
	weft_mpa_tx_cancel(&g->tx);
	expect_as_before(test, g);
	if (page) {
		KUNIT_EXPECT_EQ(test, page_ref_count(page), 1);
		put_page(page);
	}
	weft_counters_free(&g->counters);
}

/* Behind each cut a run begins: there is space for it before the FPDU is. */
static void a_batch_has_space_for_its_runs(struct kunit *test)
{
	struct staging *g = test->priv;
	u32 i;

	KUNIT_ASSERT_EQ(test, weft_counters_init(&g->counters), 0);
	weft_mpa_tx_init(&g->tx, &g->s, false, true, &g->counters);
	for (i = 0; i < 2 * WEFT_FEW_VECS; i++) {
		stage(test, g, 500, 500);
		KUNIT_EXPECT_EQ(test, weft_mpa_tx_end(&g->tx), 0);
		KUNIT_EXPECT_EQ(test, g->tx.count, i + 1);
	}
	KUNIT_EXPECT_EQ(test, g->tx.vecs, WEFT_BATCH_VECS);
	weft_counters_free(&g->counters);
}

/* What was staged for a stream that ends goes with it. */
static void a_stream_that_ends_keeps_no_page(struct kunit *test)
{
	struct staging *g = test->priv;
	struct page *page;
	int refs;

	KUNIT_ASSERT_EQ(test, weft_counters_init(&g->counters), 0);
	weft_mpa_tx_init(&g->tx, &g->s, true, false, &g->counters);
	stage(test, g, FIRST, FIRST);
	KUNIT_ASSERT_EQ(test, weft_mpa_tx_end(&g->tx), 0);
	page = g->tx.vec[0].bv_page;
	refs = page_ref_count(page);
	get_page(page);
	weft_mpa_tx_free(&g->tx);
	weft_mpa_tx_free(&g->tx); /* the second time changes nothing */
	KUNIT_EXPECT_EQ(test, page_ref_count(page), refs);
	put_page(page);
	weft_counters_free(&g->counters);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(a_ulpdu_ends_with_its_segment, length_rows_gen_params),
	KUNIT_CASE_PARAM(an_fpdu_that_is_undone_leaves_nothing, cancel_rows_gen_params),
	KUNIT_CASE(a_batch_has_space_for_its_runs),
	KUNIT_CASE(a_stream_that_ends_keeps_no_page),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_mpa_tx",
	.init = make_staging,
	.exit = free_staging,
	.test_cases = cases,
};

kunit_test_suite(suite);
