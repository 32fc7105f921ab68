// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The work requests that give and take rights: RFC 5040, 5.3 and 7; protocol-rules, ORDER-9.
 */
#include <linux/mm.h>

#include "mem/access.h"
#include "mem/backing.h"
#include "mem/mr_ops.h"
#include "mem_world.h"
#include "suite.h"

/* A fast-register region whose next pages are mapped, from FIRST on. */
static struct weft_mem_region *make_fastreg(struct kunit *test, struct world *w)
{
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_FASTREG);

	mr->grant.backing = weft_backing_pages(PAGES);
	mr->next.backing = make_backing(test, w);
	mr->next.iova = IOVA;
	mr->next.length = LENGTH;
	mr->next.fresh = true;
	return mr;
}

static struct page *first_page(const struct weft_mem_region *mr)
{
	return mr->grant.backing->vec[0].bv_page;
}

static void weft_mem_register_swaps_pages(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_fastreg(test, w);
	struct weft_mem_region *busy;
	u32 stag = mr->grant.stag;
	struct weft_mem_user other;
	struct weft_mem_ref ref;
	enum weft_fault fault;

	w->user.pd = PD + 1;
	fault = weft_mem_register(&w->user, mr, stag, RIGHTS);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_LOCAL_BIND);
	w->user.pd = PD;
	fault = weft_mem_register(&w->user, mr, stag + 256, RIGHTS);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_LOCAL_BIND);
	fault = weft_mem_register(&w->user, mr, stag ^ 3, RR);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	fault = weft_mem_register(&w->user, mr, stag, RIGHTS);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_LOCAL_BIND);
	fault = touch(w, stag, IOVA, 4, WEFT_MEM_REMOTE_READ, NULL);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_RDMAP_STAG);

	/* Mapping again while the old pages are in use does not touch those. */
	weft_backing_reset(mr->next.backing, PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, weft_backing_add(mr->next.backing, w->page[3]), 0);
	mr->next.iova = 0;
	mr->next.length = 64;
	mr->next.fresh = true;
	other = w->user;
	fault = weft_mem_get(&other, stag ^ 3, IOVA, 4, WEFT_MEM_REMOTE_READ, &ref);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_PTR_EQ(test, first_page(ref.mr), virt_to_page(w->page[0]));

	fault = weft_mem_invalidate(&w->user, stag ^ 3, false, &busy);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_PTR_EQ(test, busy, mr);
	KUNIT_EXPECT_FALSE(test, weft_mem_quiet(busy));
	KUNIT_EXPECT_EQ(test, kref_read(&weft_mem_busy_get(busy)->ref), 3U);
	weft_mem_release(&other);
	KUNIT_EXPECT_TRUE(test, weft_mem_quiet(busy));
	weft_mem_quiesce(busy);
	weft_mem_quiesce(busy);

	fault = weft_mem_register(&w->user, mr, stag, RIGHTS);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	fault = touch(w, stag, 60, 4, WEFT_MEM_REMOTE_READ, NULL);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_PTR_EQ(test, first_page(mr), virt_to_page(w->page[3]));

	/* Registered once more with nothing mapped since, it has the same pages. */
	fault = weft_mem_invalidate(&w->user, stag, false, &busy);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	weft_mem_quiesce(busy);
	fault = weft_mem_register(&w->user, mr, stag ^ 1, RIGHTS);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_PTR_EQ(test, first_page(mr), virt_to_page(w->page[3]));
	drop(test, w, mr);
	leave(test, w);
}

/* The rights are those of the request, and what is not made for it is not registered by one. */
static void weft_mem_register_gives_rights(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *fast = make_fastreg(test, w);
	struct weft_mem_region *window = make_stag(test, w, WEFT_STAG_WINDOW2);
	struct weft_mem_region *busy;
	u32 stag = fast->grant.stag;

	KUNIT_EXPECT_EQ(test, weft_mem_register(&w->user, window, window->grant.stag, RIGHTS),
			WEFT_FAULT_LOCAL_BIND);
	KUNIT_EXPECT_EQ(test, weft_mem_register(&w->user, fast, stag, RR), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, touch(w, stag, IOVA, LENGTH, WEFT_MEM_REMOTE_READ, NULL),
			WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, touch(w, stag, IOVA, LENGTH + 1, WEFT_MEM_REMOTE_READ, NULL),
			WEFT_FAULT_RDMAP_BOUNDS);
	KUNIT_EXPECT_EQ(test, touch(w, stag, IOVA, 1, WEFT_MEM_REMOTE_WRITE, NULL),
			WEFT_FAULT_TAGGED_STAG);
	KUNIT_EXPECT_EQ(test, touch(w, stag, IOVA, 8, WEFT_MEM_REMOTE_ATOMIC, NULL),
			WEFT_FAULT_RDMAP_ACCESS);
	/* An access of the QP itself is over before it takes them away. */
	begin_read(test, &w->user, stag);
	KUNIT_EXPECT_EQ(test, weft_mem_invalidate(&w->user, stag, false, &busy), WEFT_FAULT_NONE);
	KUNIT_EXPECT_NULL(test, busy);
	weft_mem_release(&w->user);
	weft_mem_quiesce(busy);
	drop(test, w, window);
	drop(test, w, fast);
	leave(test, w);
}

static enum weft_fault invalidate(struct world *w, u32 stag, bool remote)
{
	struct weft_mem_region *busy;
	enum weft_fault fault = weft_mem_invalidate(&w->user, stag, remote, &busy);

	weft_mem_quiesce(busy);
	return fault;
}

static void weft_mem_invalidate_refuses(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *region = make_region(test, w, RIGHTS);
	struct weft_mem_region *fast = make_fastreg(test, w);
	u32 stag = fast->grant.stag;

	/* protocol-rules, ORDER-9 */
	KUNIT_EXPECT_EQ(test, invalidate(w, 0x12345678, true), WEFT_FAULT_RDMAP_INVALIDATE);
	KUNIT_EXPECT_EQ(test, invalidate(w, 0x12345678, false), WEFT_FAULT_LOCAL_BIND);
	KUNIT_EXPECT_EQ(test, invalidate(w, region->grant.stag, true), WEFT_FAULT_RDMAP_INVALIDATE);
	KUNIT_EXPECT_EQ(test, invalidate(w, region->grant.stag, false), WEFT_FAULT_LOCAL_BIND);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, true), WEFT_FAULT_RDMAP_INVALIDATE);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, false), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag ^ 1, false), WEFT_FAULT_LOCAL_BIND);

	KUNIT_ASSERT_EQ(test, weft_mem_register(&w->user, fast, stag, RIGHTS), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag ^ 1, true), WEFT_FAULT_RDMAP_INVALIDATE);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag ^ 1, false), WEFT_FAULT_LOCAL_BIND);
	w->user.pd = PD + 1;
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, true), WEFT_FAULT_RDMAP_INVALIDATE);
	w->user.pd = PD;
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, true), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, true), WEFT_FAULT_RDMAP_INVALIDATE);
	drop(test, w, fast);
	drop(test, w, region);
	leave(test, w);
}

static void weft_mem_bind_type1(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *region = make_region(test, w, RIGHTS);
	struct weft_mem_region *window = make_stag(test, w, WEFT_STAG_WINDOW1);
	struct weft_mem_binding req = {
		.addr = IOVA + 100,
		.length = 50,
		.lkey = region->grant.stag,
		.access = RW,
		.window = window->grant.stag,
		.stag = window->grant.stag ^ 1,
	};
	enum weft_fault fault;
	u64 offset;

	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_LOCAL_BIND);
	KUNIT_EXPECT_EQ(test, weft_stag_revoke(region, false), -EBUSY);
	fault = touch(w, req.stag, IOVA + 149, 1, WEFT_MEM_REMOTE_WRITE, &offset);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, offset, 149ULL);
	fault = touch(w, req.stag, IOVA + 149, 2, WEFT_MEM_REMOTE_WRITE, NULL);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_TAGGED_BOUNDS);
	/* A window is for peers. */
	fault = touch(w, req.stag, IOVA + 100, 1, WEFT_MEM_LOCAL_READ, NULL);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_LOCAL_PROTECTION);
	KUNIT_EXPECT_EQ(test, invalidate(w, req.stag, true), WEFT_FAULT_RDMAP_INVALIDATE);

	/* Bound again, by a name that it has no longer, zero based, and closed. */
	req.stag ^= 3;
	req.access = RR | IB_ZERO_BASED;
	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, region->windows, 1U);
	fault = touch(w, req.stag, 0, 50, WEFT_MEM_REMOTE_READ, &offset);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, offset, 100ULL);
	req.window = req.stag;
	req.stag ^= 4;
	req.length = 0;
	req.lkey = 0;
	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, region->windows, 0U);
	KUNIT_EXPECT_EQ(test, window->grant.stag, req.stag);
	drop(test, w, region);
	drop(test, w, window);
	leave(test, w);
}

struct bind_row {
	const char *name;
	u32 region;		/* rights of the region */
	u32 access;
	s64 start;
	u64 length;
	u32 pd;
	u32 key;		/* change of the STag */
};

static const struct bind_row bad_bind_rows[] = {
	{ "region_without_bind", LW | RR, RR, 0, 8, PD, 1 },
	{ "write_needs_local_write", MW, RW, 0, 8, PD, 1 },
	{ "atomic_needs_local_write", MW, RA, 0, 8, PD, 1 },
	{ "below", MW, RR, -1, 8, PD, 1 },
	{ "behind", MW, RR, LENGTH - 7, 8, PD, 1 },
	{ "huge", MW, RR, 8, U64_MAX, PD, 1 },
	{ "other_domain", MW, RR, 0, 8, PD + 1, 1 },
	{ "other_index", MW, RR, 0, 8, PD, 256 },
	{ "mw_bind", MW, RR | MW, 0, 8, PD, 1 },
	{ "nothing", MW, RR, 0, 0, PD, 1 },
};

WEFT_ROWS(bad_bind_rows)

static void weft_mem_bind_refuses(struct kunit *test)
{
	const struct bind_row *row = test->param_value;
	struct world *w = make_world(test);
	struct weft_mem_region *region = make_region(test, w, row->region);
	struct weft_mem_region *window = make_stag(test, w, WEFT_STAG_WINDOW2);
	struct weft_mem_binding req = {
		.addr = IOVA + row->start,
		.length = row->length,
		.lkey = region->grant.stag,
		.access = row->access,
		.window = window->grant.stag,
		.stag = window->grant.stag ^ row->key,
	};

	w->user.pd = row->pd;
	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_LOCAL_BIND);
	KUNIT_EXPECT_EQ(test, region->windows, 0U);
	drop(test, w, window);
	drop(test, w, region);
	leave(test, w);
}

/* The window and the region each have to be of the QP's domain. */
static void weft_mem_bind_across_domains(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *region = make_region(test, w, RIGHTS);
	struct weft_mem_region *window = weft_stag_alloc(&w->table, WEFT_STAG_WINDOW2, PD + 1);
	struct weft_mem_binding req = {
		.addr = IOVA,
		.length = LENGTH,
		.lkey = region->grant.stag,
		.access = RR,
	};

	KUNIT_ASSERT_FALSE(test, IS_ERR(window));
	req.window = window->grant.stag;
	req.stag = window->grant.stag ^ 1;
	for (w->user.pd = PD; w->user.pd <= PD + 1; w->user.pd++)
		KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_LOCAL_BIND);
	KUNIT_EXPECT_EQ(test, region->windows, 0U);
	drop(test, w, window);
	drop(test, w, region);
	leave(test, w);
}

static void weft_mem_bind_type2(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *region = make_region(test, w, RIGHTS);
	struct weft_mem_region *window = make_stag(test, w, WEFT_STAG_WINDOW2);
	struct weft_mem_binding req = {
		.addr = IOVA,
		.length = LENGTH,
		.lkey = region->grant.stag,
		.access = RW | LW, /* which it gives no more for that */
		.window = window->grant.stag,
		.stag = window->grant.stag ^ 1,
	};
	u32 stag = req.stag;
	enum weft_fault fault;

	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, window->grant.access, (u32)RW);
	/* Bound: not again before an invalidation. */
	req.window = stag;
	req.stag = stag ^ 2;
	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_LOCAL_BIND);
	KUNIT_EXPECT_EQ(test, region->windows, 1U);

	w->user.qpn = QPN + 1;
	fault = touch(w, stag, IOVA, 1, WEFT_MEM_REMOTE_WRITE, NULL);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_TAGGED_STREAM);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, true), WEFT_FAULT_RDMAP_INVALIDATE);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, false), WEFT_FAULT_LOCAL_BIND);
	w->user.qpn = QPN;
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, true), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, region->windows, 0U);
	/* By whatever STag it has had. */
	req.window = stag ^ 1;
	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_stag_revoke(region, true), -EBUSY);
	drop(test, w, window);
	drop(test, w, region);
	leave(test, w);
}

/* The windows of a destroyed QP no longer open their region, those of other QPs do. */
static void weft_mem_close_windows_of_one_qp(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *region = make_region(test, w, RIGHTS);
	struct weft_mem_region *window[3];
	u32 stag[3];
	u32 i;

	for (i = 0; i < 3; i++) {
		window[i] = make_stag(test, w, i == 2 ? WEFT_STAG_WINDOW1 : WEFT_STAG_WINDOW2);
		stag[i] = window[i]->grant.stag ^ 1;
		w->user.qpn = i == 1 ? QPN + 1 : QPN;
		w->user.has_windows = false;
		KUNIT_EXPECT_EQ(test,
				weft_mem_bind(&w->user,
					      &(struct weft_mem_binding){
						      .addr = IOVA,
						      .length = LENGTH,
						      .lkey = region->grant.stag,
						      .access = RW,
						      .window = stag[i] ^ 1,
						      .stag = stag[i],
					      }),
				WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, w->user.has_windows, i != 2);
	}
	KUNIT_EXPECT_EQ(test, region->windows, 3U);

	w->user.qpn = QPN;
	weft_mem_invalidate_windows(&w->user);
	KUNIT_EXPECT_EQ(test, region->windows, 3U);
	w->user.has_windows = true;
	/* Others want the CPU: the walk lets them have it, and lockdep looks at what it holds. */
	set_tsk_thread_flag(current, TIF_NEED_RESCHED);
	weft_mem_invalidate_windows(&w->user);
	KUNIT_EXPECT_EQ(test, region->windows, 2U);
	KUNIT_EXPECT_EQ(test, touch(w, stag[0], IOVA, 1, WEFT_MEM_REMOTE_WRITE, NULL),
			WEFT_FAULT_TAGGED_STAG);
	KUNIT_EXPECT_EQ(test, touch(w, stag[2], IOVA, 1, WEFT_MEM_REMOTE_WRITE, NULL),
			WEFT_FAULT_NONE);
	w->user.qpn = QPN + 1;
	KUNIT_EXPECT_EQ(test, touch(w, stag[1], IOVA, 1, WEFT_MEM_REMOTE_WRITE, NULL),
			WEFT_FAULT_NONE);
	for (i = 0; i < 3; i++)
		drop(test, w, window[i]);
	drop(test, w, region);
	leave(test, w);
}

/* Of two pages at a time: the second and the fourth of them stand one after the other. */
static void weft_backing_of_larger_pages(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_backing *b = weft_backing_pages(2);
	u32 span;

	KUNIT_ASSERT_FALSE(test, IS_ERR(b));
	weft_backing_reset(b, PAGE_SHIFT + 1);
	KUNIT_EXPECT_EQ(test, weft_backing_add(b, w->page[1]), 0);
	KUNIT_EXPECT_EQ(test, weft_backing_add(b, w->page[0]), 0);
	KUNIT_EXPECT_PTR_EQ(test, weft_backing_span(b, PAGE_SIZE + 8, &span), w->page[3] + 8);
	KUNIT_EXPECT_EQ(test, span, (u32)PAGE_SIZE - 8);
	KUNIT_EXPECT_PTR_EQ(test, weft_backing_span(b, 2 * PAGE_SIZE, &span), w->page[0]);
	KUNIT_EXPECT_EQ(test, span, 2 * (u32)PAGE_SIZE);
	weft_backing_free(b);
	leave(test, w);
}

/* Halves of pages, which need not begin where a page does. */
static void weft_backing_of_smaller_pages(struct kunit *test)
{
	const u32 half = PAGE_SIZE / 2;
	struct world *w = make_world(test);
	struct weft_backing *b = weft_backing_pages(2);
	u32 span;

	KUNIT_ASSERT_FALSE(test, IS_ERR(b));
	weft_backing_reset(b, PAGE_SHIFT - 1);
	KUNIT_EXPECT_EQ(test, weft_backing_add(b, w->page[1] + half), 0);
	KUNIT_EXPECT_EQ(test, weft_backing_add(b, w->page[0]), 0);
	KUNIT_EXPECT_EQ(test, weft_backing_add(b, w->page[2]), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, weft_backing_span(b, 8, &span), w->page[1] + half + 8);
	KUNIT_EXPECT_EQ(test, span, half - 8);
	KUNIT_EXPECT_PTR_EQ(test, weft_backing_span(b, half + 8, &span), w->page[0] + 8);
	KUNIT_EXPECT_EQ(test, span, half - 8);
	weft_backing_free(b);
	leave(test, w);
}

static struct kunit_case mr_ops_cases[] = {
	KUNIT_CASE(weft_mem_register_swaps_pages),
	KUNIT_CASE(weft_mem_register_gives_rights),
	KUNIT_CASE(weft_mem_invalidate_refuses),
	KUNIT_CASE(weft_mem_bind_type1),
	KUNIT_CASE_PARAM(weft_mem_bind_refuses, bad_bind_rows_gen_params),
	KUNIT_CASE(weft_mem_bind_across_domains),
	KUNIT_CASE(weft_mem_bind_type2),
	KUNIT_CASE(weft_mem_close_windows_of_one_qp),
	KUNIT_CASE(weft_backing_of_larger_pages),
	KUNIT_CASE(weft_backing_of_smaller_pages),
	{},
};

static struct kunit_suite mr_ops_suite = {
	.name = "weft_mr_ops",
	.test_cases = mr_ops_cases,
};

kunit_test_suite(mr_ops_suite);
