// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Deframing of socket buffers, however TCP cut them: each ULPDU once, in order,
 * unchanged, and read where it stands if it lies in a row.
 */
#include "net/mpa_rx.h"

#include <linux/build_bug.h>
#include <linux/gfp.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uio.h>

#include "base/counters.h"
#include "net/ulpdu_copy.h"
#include "proto/crc.h"
#include "suite.h"

#define FPDUS 11U
#define WIRE_LEN 1448U
#define ULPDU_LEN (WIRE_LEN - WEFT_MPA_LEN_BYTES - WEFT_MPA_CRC_BYTES)
#define STREAM_LEN (FPDUS * WIRE_LEN)
#define ORDER 2 /* pages for all of it */
#define DAMAGED 5 /* the FPDU that is damaged, across a page's end */

static_assert(DIV_ROUND_UP(STREAM_LEN, PAGE_SIZE) == 1 << ORDER);
static_assert(2 * PAGE_SIZE - DAMAGED * WIRE_LEN < WIRE_LEN, "the second page ends in it");

/**
 * struct layout - how the bytes lie
 * @name: of the row
 * @head: bytes in front of the fragments
 * @piece: bytes of a fragment
 * @backwards: each page, a fragment, stands in front of the one before it
 * @in_a_row: ULPDUs that can be read where they stand
 */
struct layout {
	const char *name;
	u32 head;
	u32 piece;
	bool backwards;
	u32 in_a_row;
};

static const struct layout layouts[] = {
	{ "all in the head", STREAM_LEN, PAGE_SIZE, false, FPDUS },
	{ "one fragment", 0, STREAM_LEN, false, FPDUS },
	{ "a fragment a page", 0, PAGE_SIZE, false, FPDUS },
	{ "fragments of 1000", 0, 1000, false, FPDUS },
	{ "pages apart", 0, PAGE_SIZE, true, FPDUS - 3 },
	{ "a head within an FPDU", 700, PAGE_SIZE, false, FPDUS - 1 },
	{ "a head and pages apart", 2 * WIRE_LEN, PAGE_SIZE, true, FPDUS - 3 },
};

WEFT_ROWS(layouts)

/**
 * struct reading - what comes of a buffer
 * @test: that reads it
 * @wire: its bytes
 * @piece: bytes that are there at a time, 0: all
 * @refuses: each ULPDU is taken at the second time only
 * @refused: the next one was, once
 * @stops_at: the ULPDU that is refused for good, 0: none
 * @offered: ULPDUs in all
 * @seen: ULPDUs taken
 * @in_a_row: of these, where they stand
 * @gathered: of these, from pieces
 * @rows: more of that length is said to come, each time
 * @in_rows: ULPDUs that were handed over as rows
 * @rx: the reader
 * @fault: framing was lost
 * @pos: of the stream, in the end
 * @counters: of the reader
 */
struct reading {
	struct kunit *test;
	u8 *wire;
	u32 piece;
	bool refuses;
	bool refused;
	u32 stops_at;
	u32 offered;
	u32 seen;
	u32 in_a_row;
	u64 gathered;
	bool rows;
	u32 in_rows;
	struct weft_mpa_rx *rx;
	enum weft_fault fault;
	u32 pos;
	struct weft_counters counters;
};

static enum weft_fault take_ulpdu(void *owner, const struct weft_ulpdu *u)
{
	struct reading *r = owner;
	const u8 *sent = r->wire + r->seen * WIRE_LEN + WEFT_MPA_LEN_BYTES;
	u8 *copy = kunit_kzalloc(r->test, ULPDU_LEN, GFP_KERNEL);

	KUNIT_EXPECT_NOT_NULL(r->test, copy);
	KUNIT_EXPECT_EQ(r->test, u->len, ULPDU_LEN);
	if (!copy || u->len != ULPDU_LEN)
		return WEFT_FAULT_STOPPED;
	KUNIT_EXPECT_EQ(r->test, weft_ulpdu_copy(u, 0, ULPDU_LEN, copy), 0);
	KUNIT_EXPECT_EQ(r->test, memcmp(copy, sent, ULPDU_LEN), 0);
	KUNIT_EXPECT_EQ(r->test, memcmp(u->head, sent, u->head_len), 0);
	if (u->linear)
		KUNIT_EXPECT_EQ(r->test, memcmp(u->linear, sent, ULPDU_LEN), 0);
	r->offered++;
	if (r->stops_at && r->seen == r->stops_at)
		return WEFT_FAULT_STOPPED;
	r->refused = r->refuses && !r->refused;
	if (r->refused)
		return WEFT_FAULT_NOT_READY;
	r->in_a_row += !!u->linear;
	r->seen++;
	if (r->rows)
		weft_mpa_rx_expect(r->rx, ULPDU_LEN);
	return WEFT_FAULT_NONE;
}

static u32 take_row(void *owner, const struct weft_ulpdu_span *span)
{
	struct reading *r = owner;
	const u8 *sent = r->wire + r->seen * WIRE_LEN + WEFT_MPA_LEN_BYTES;
	u32 len = (span->count - 1) * span->stride + span->len;

	KUNIT_EXPECT_EQ(r->test, span->stride, WIRE_LEN);
	KUNIT_EXPECT_EQ(r->test, span->len, ULPDU_LEN);
	KUNIT_EXPECT_EQ(r->test, memcmp(span->first, sent, len), 0);
	r->seen += span->count;
	r->in_rows += span->count;
	return span->count;
}

static void lose_framing(void *owner, enum weft_fault fault)
{
	((struct reading *)owner)->fault = fault;
}

static const struct weft_mpa_rx_events events = {
	.ulpdu = take_ulpdu,
	.span = take_row,
	.fault = lose_framing,
};

static u8 *make_wire(struct kunit *test)
{
	u8 *wire = kunit_kzalloc(test, STREAM_LEN, GFP_KERNEL);
	u64 state = 42;
	u32 i, at;

	KUNIT_ASSERT_NOT_NULL(test, wire);
	for (i = 0; i < STREAM_LEN; i++)
		wire[i] = weft_next_random(&state);
	for (at = 0; at < STREAM_LEN; at += WIRE_LEN) {
		u32 summed = WEFT_MPA_LEN_BYTES + ULPDU_LEN;

		put_unaligned_be16(ULPDU_LEN, wire + at);
		weft_crc_store(weft_crc_update(WEFT_CRC_SEED, wire + at, summed),
			       wire + at + summed);
	}
	return wire;
}

/* Where the fragment from byte @at on stands within the pages. */
static u32 place(const struct layout *l, u32 at)
{
	return l->backwards ? ((1U << ORDER) - 1) * PAGE_SIZE - at : at;
}

static struct sk_buff *make_skb(struct kunit *test, const struct layout *l, const u8 *wire)
{
	struct page *pages = alloc_pages(GFP_KERNEL | __GFP_COMP, ORDER);
	struct sk_buff *skb = alloc_skb(l->head, GFP_KERNEL);
	u32 at, n;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_data(skb, wire, l->head);
	for (at = 0; at < STREAM_LEN - l->head; at += n) {
		u32 to = place(l, at);
		struct page *page = pages + to / PAGE_SIZE;

		n = min(l->piece, STREAM_LEN - l->head - at);
		memcpy(page_address(pages) + to, wire + l->head + at, n);
		get_page(page);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, to % PAGE_SIZE, n, n);
	}
	put_page(pages);
	KUNIT_EXPECT_EQ(test, skb->len, STREAM_LEN);
	return skb;
}

/* Run for run, as long as there is something left, or something was not taken. */
static u32 take_all(const struct reading *r, struct weft_mpa_rx *rx, struct sk_buff *skb)
{
	read_descriptor_t desc = { .arg.data = rx };
	u32 most = r->piece ?: skb->len;
	u32 runs = 0;
	u32 taken = 0;

	do {
		KUNIT_ASSERT_LT(r->test, runs++, 100U);
		if (weft_mpa_rx_begin(rx))
			taken += weft_mpa_rx_take(&desc, skb, taken, min(most, skb->len - taken));
	} while (taken < skb->len || weft_mpa_rx_is_paused(rx));
	return taken;
}

static void read_all(struct kunit *test, struct reading *r, bool crc, u32 damaged)
{
	const struct layout *l = test->param_value;
	struct weft_mpa_rx rx;
	struct sk_buff *skb;

	r->test = test;
	r->wire = make_wire(test);
	if (damaged)
		r->wire[damaged] ^= 1;
	skb = make_skb(test, l, r->wire);
	KUNIT_ASSERT_EQ(test, weft_counters_init(&r->counters), 0);
	r->rx = &rx;
	weft_mpa_rx_init(&rx, crc, false, &events, r, &r->counters);
	KUNIT_EXPECT_EQ(test, take_all(r, &rx, skb), STREAM_LEN);
	r->gathered = weft_counters_read(&r->counters, WEFT_CTR_RX_REASSEMBLED);
	r->pos = rx.pos;
	weft_mpa_rx_free(&rx, NULL);
	weft_counters_free(&r->counters);
	kfree_skb(skb);
}

static void each_ulpdu_once(struct kunit *test)
{
	const struct layout *l = test->param_value;
	struct reading with = {}, without = {};

	read_all(test, &with, true, 0);
	KUNIT_EXPECT_EQ(test, with.fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, with.seen, FPDUS);
	KUNIT_EXPECT_EQ(test, with.in_a_row, l->in_a_row);
	read_all(test, &without, false, 0);
	KUNIT_EXPECT_EQ(test, without.seen, FPDUS);
	KUNIT_EXPECT_EQ(test, without.in_a_row, l->in_a_row);
	KUNIT_EXPECT_EQ(test, without.pos, STREAM_LEN);
}

/* Each stands where it stood, or in the pages in which it was gathered, until it is taken. */
static void what_is_not_taken_comes_again(struct kunit *test)
{
	const struct layout *l = test->param_value;
	struct reading r = { .refuses = true };
	struct reading pieces = { .refuses = true, .piece = 1000 };

	read_all(test, &r, true, 0);
	KUNIT_EXPECT_EQ(test, r.fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, r.seen, FPDUS);
	KUNIT_EXPECT_EQ(test, r.in_a_row, l->in_a_row);
	KUNIT_EXPECT_EQ(test, r.gathered, 0ULL);
	read_all(test, &pieces, true, 0);
	KUNIT_EXPECT_EQ(test, pieces.seen, FPDUS);
	KUNIT_EXPECT_EQ(test, pieces.gathered, (u64)FPDUS);
	KUNIT_EXPECT_EQ(test, pieces.pos, STREAM_LEN);
}

static void a_damaged_one_ends_it(struct kunit *test)
{
	struct reading r = {};
	struct reading pieces = { .piece = 1000 };

	read_all(test, &r, true, (DAMAGED + 1) * WIRE_LEN - WEFT_MPA_CRC_BYTES - 1);
	KUNIT_EXPECT_EQ(test, r.fault, WEFT_FAULT_MPA_CRC);
	KUNIT_EXPECT_EQ(test, r.seen, DAMAGED);
	read_all(test, &pieces, true, (DAMAGED + 1) * WIRE_LEN - WEFT_MPA_CRC_BYTES - 1);
	KUNIT_EXPECT_EQ(test, pieces.fault, WEFT_FAULT_MPA_CRC);
	KUNIT_EXPECT_EQ(test, pieces.seen, DAMAGED);
}

/*
 * Of a row no CRC is looked at, so there are none where there are CRCs. A peer on this host hands
 * segments over when all that came by TCP is read, by the position.
 */
static void rows_have_no_crc(struct kunit *test)
{
	struct reading with = { .rows = true }, without = { .rows = true };

	read_all(test, &without, false, 0);
	KUNIT_EXPECT_EQ(test, without.seen, FPDUS);
	KUNIT_EXPECT_GT(test, without.in_rows, 0U);
	KUNIT_EXPECT_EQ(test, without.pos, STREAM_LEN);
	read_all(test, &with, true, (DAMAGED + 1) * WIRE_LEN - WEFT_MPA_CRC_BYTES - 1);
	KUNIT_EXPECT_EQ(test, with.in_rows, 0U);
	KUNIT_EXPECT_EQ(test, with.fault, WEFT_FAULT_MPA_CRC);
	KUNIT_EXPECT_EQ(test, with.seen, DAMAGED);
}

/* Nothing behind it is offered, and the framing is as it was. */
static void a_refused_one_ends_it(struct kunit *test)
{
	struct reading r = { .stops_at = DAMAGED };

	read_all(test, &r, true, 0);
	KUNIT_EXPECT_EQ(test, r.fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, r.seen, DAMAGED);
	KUNIT_EXPECT_EQ(test, r.offered, DAMAGED + 1);
}

/* What had been gathered of it is given back when the reader ends. */
static void half_an_fpdu_goes_with_the_reader(struct kunit *test)
{
	struct reading r = { .test = test, .wire = make_wire(test) };
	struct sk_buff *skb = make_skb(test, &layouts[0], r.wire);
	struct weft_mpa_rx rx;
	read_descriptor_t desc = { .arg.data = &rx };
	struct page *page;

	KUNIT_ASSERT_EQ(test, weft_counters_init(&r.counters), 0);
	weft_mpa_rx_init(&rx, true, false, &events, &r, &r.counters);
	KUNIT_EXPECT_EQ(test, weft_mpa_rx_take(&desc, skb, 0, WIRE_LEN / 2), (int)WIRE_LEN / 2);
	KUNIT_ASSERT_NOT_NULL(test, rx.reassembly.pages);
	page = rx.reassembly.pages->page[0];
	KUNIT_ASSERT_NOT_NULL(test, page);
	get_page(page);
	weft_mpa_rx_free(&rx, NULL);
	KUNIT_EXPECT_EQ(test, page_ref_count(page), 1);
	put_page(page);
	weft_counters_free(&r.counters);
	kfree_skb(skb);
}

/* Of what a worker brings, a reader takes the pages that it lacks, or all with their table. */
static void a_reader_takes_what_it_lacks(struct kunit *test)
{
	struct weft_mpa_rx_pages *stock = NULL;
	struct weft_mpa_rx rx = {};
	struct weft_mpa_rx_reassembly *g = &rx.reassembly;
	struct page *own;
	u32 i;

	weft_mpa_rx_adopt(&rx, &stock); /* there was no memory for a table */
	KUNIT_EXPECT_NULL(test, g->pages);
	weft_mpa_rx_pages_fill(&stock, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, stock);
	weft_mpa_rx_adopt(&rx, &stock);
	KUNIT_EXPECT_NULL(test, stock);
	KUNIT_ASSERT_NOT_NULL(test, g->pages);
	KUNIT_EXPECT_EQ(test, g->held, (u32)WEFT_RX_PAGES);

	own = g->pages->page[0];
	__free_page(g->pages->page[1]);
	g->pages->page[1] = NULL;
	weft_mpa_rx_pages_fill(&stock, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, stock);
	weft_mpa_rx_adopt(&rx, &stock);
	KUNIT_EXPECT_EQ(test, g->held, (u32)WEFT_RX_PAGES);
	KUNIT_EXPECT_PTR_EQ(test, g->pages->page[0], own);
	KUNIT_EXPECT_NOT_NULL(test, g->pages->page[1]);
	for (i = 0; i < WEFT_RX_PAGES; i++)
		KUNIT_EXPECT_EQ(test, !stock->page[i], i == 1);
	weft_mpa_rx_pages_drop(stock);
	kfree(stock);
	weft_mpa_rx_free(&rx, NULL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(each_ulpdu_once, layouts_gen_params),
	KUNIT_CASE_PARAM(what_is_not_taken_comes_again, layouts_gen_params),
	KUNIT_CASE_PARAM(a_damaged_one_ends_it, layouts_gen_params),
	KUNIT_CASE_PARAM(a_refused_one_ends_it, layouts_gen_params),
	KUNIT_CASE_PARAM(rows_have_no_crc, layouts_gen_params),
	KUNIT_CASE(half_an_fpdu_goes_with_the_reader),
	KUNIT_CASE(a_reader_takes_what_it_lacks),
	{},
};

static struct kunit_suite suite = {
	.name = "weft_mpa_rx",
	.test_cases = cases,
};

kunit_test_suite(suite);
