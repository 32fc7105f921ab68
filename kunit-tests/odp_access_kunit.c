// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Accesses to memory that is paged on demand: which pages have to be there, where they are, and
 * what is asked for if they are not. There is a table of pages, and no process behind it.
 */
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "mem/access.h"
#include "mem/backing.h"
#include "mem/odp.h"
#include "mem/odp_chunk.h"
#include "mem_world.h"
#include "suite.h"

#define INDEX	5U	/* of the chunk that is there */
#define SLOT	2U	/* of the region's first page */
#define SKIP	100U	/* bytes of it that are not of the region */
#define HERE	3U	/* pages that are there; the last one is to be read only */
#define BYTES	(HERE * PAGE_SIZE - SKIP) /* up to where there is no page */
#define TO_WRITE (BYTES - PAGE_SIZE)
#define ODP_LEN	(16 * PAGE_SIZE)

struct odp_world {
	struct weft_odp odp;
	struct weft_odp_chunk chunk;
	struct world *mem;
	struct weft_mem_region *mr;
};

static struct odp_world *make_odp_world(struct kunit *test)
{
	struct odp_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->mem = make_world(test);
	w->chunk.page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w->chunk.page);
	for (i = 0; i < HERE; i++)
		w->chunk.page[SLOT + i] = (unsigned long)virt_to_page(w->mem->page[i]) |
					  WEFT_ODP_PAGE_PRESENT |
					  (i < HERE - 1 ? WEFT_ODP_PAGE_WRITABLE : 0);
	kref_init(&w->odp.ref);
	rwlock_init(&w->odp.lock);
	xa_init_flags(&w->odp.chunks, XA_FLAGS_LOCK_BH);
	KUNIT_ASSERT_EQ(test, xa_err(xa_store_bh(&w->odp.chunks, INDEX, &w->chunk, GFP_KERNEL)), 0);
	w->odp.start = INDEX * WEFT_ODP_CHUNK_BYTES + SLOT * PAGE_SIZE + SKIP;
	w->odp.last = w->odp.start + ODP_LEN - 1;
	return w;
}

static void free_odp_world(struct kunit *test, struct odp_world *w)
{
	KUNIT_EXPECT_EQ(test, kref_read(&w->odp.ref), 1U);
	leave(test, w->mem);
	xa_destroy(&w->odp.chunks);
}

/* A region of it that allows everything. */
static void make_paged_region(struct kunit *test, struct odp_world *w)
{
	struct weft_stag_grant grant = { .access = RIGHTS, .iova = IOVA, .length = ODP_LEN };

	w->mr = make_stag(test, w->mem, WEFT_STAG_REGION);
	grant.stag = w->mr->grant.stag;
	grant.backing = weft_backing_from_odp(&w->odp);
	KUNIT_ASSERT_FALSE(test, IS_ERR(grant.backing));
	KUNIT_ASSERT_EQ(test, weft_stag_enable(w->mr, &grant), 0);
}

static void drop_paged_region(struct kunit *test, struct odp_world *w)
{
	w->mr->grant.backing->odp = NULL; /* it is not to be freed */
	drop(test, w->mem, w->mr);
}

struct enter_row {
	const char *name;
	u64 offset;
	u32 len;
	bool write;
	bool there;
};

static const struct enter_row enter_rows[] = {
	{ "first_byte", 0, 1, true, true },
	{ "first_page", 0, PAGE_SIZE - SKIP, true, true },
	{ "two_bytes_of_two_pages", PAGE_SIZE - SKIP - 1, 2, true, true },
	{ "all_that_can_be_written", 0, TO_WRITE, true, true },
	{ "a_byte_more_to_write", 0, TO_WRITE + 1, true, false },
	{ "a_byte_that_cannot_be_written", TO_WRITE, 1, true, false },
	{ "a_byte_to_read", TO_WRITE, 1, false, true },
	{ "all_that_is_there", 0, BYTES, false, true },
	{ "a_byte_more", 0, BYTES + 1, false, false },
	{ "last_byte_and_one_more", BYTES - 1, 2, false, false },
	{ "a_page_that_is_not_there", BYTES, 1, false, false },
	{ "a_chunk_that_is_not_there", WEFT_ODP_CHUNK_BYTES, 1, false, false },
};

WEFT_ROWS(enter_rows)

/* The lock is held until the access is over, and only if there is one; see what was written. */
static void weft_odp_enter_looks_at_each_page(struct kunit *test)
{
	const struct enter_row *row = test->param_value;
	struct odp_world *w = make_odp_world(test);
	bool there = weft_odp_enter(&w->odp, row->offset, row->len, row->write);
	u64 first = (row->offset + SKIP) / PAGE_SIZE;
	u64 last = (row->offset + SKIP + row->len - 1) / PAGE_SIZE;
	u32 i;

	KUNIT_EXPECT_EQ(test, there, row->there);
	if (there)
		weft_odp_leave(&w->odp);
	KUNIT_ASSERT_TRUE(test, write_trylock(&w->odp.lock));
	write_unlock(&w->odp.lock);
	for (i = 0; i < HERE && (there || !row->write); i++)
		KUNIT_EXPECT_EQ(test, !!(w->chunk.page[SLOT + i] & WEFT_ODP_PAGE_WRITTEN),
				row->write && i >= first && i <= last);
	free_odp_world(test, w);
}

static void weft_odp_span_ends_with_the_page(struct kunit *test)
{
	struct odp_world *w = make_odp_world(test);
	u32 span;

	KUNIT_EXPECT_PTR_EQ(test, weft_odp_span(&w->odp, 0, &span), w->mem->page[0] + SKIP);
	KUNIT_EXPECT_EQ(test, span, (u32)PAGE_SIZE - SKIP);
	KUNIT_EXPECT_PTR_EQ(test, weft_odp_span(&w->odp, BYTES - 1, &span),
			    w->mem->page[2] + PAGE_SIZE - 1);
	KUNIT_EXPECT_EQ(test, span, 1U);
	free_odp_world(test, w);
}

/* A region may begin anywhere: it is the address of a word that counts. */
static void weft_odp_words_are_aligned_by_address(struct kunit *test)
{
	struct odp_world *w = make_odp_world(test);

	make_paged_region(test, w);
	KUNIT_EXPECT_FALSE(test, weft_backing_aligned8(w->mr->grant.backing, 0));
	KUNIT_EXPECT_TRUE(test, weft_backing_aligned8(w->mr->grant.backing, 8 - SKIP % 8));
	drop_paged_region(test, w);
	free_odp_world(test, w);
}

struct want_row {
	const char *name;
	enum weft_mem_right right;
	bool write;
	enum weft_fault fault;	/* where nothing waits for pages */
};

static const struct want_row want_rows[] = {
	{ "local_read", WEFT_MEM_LOCAL_READ, false, WEFT_FAULT_LOCAL_PROTECTION },
	{ "local_write", WEFT_MEM_LOCAL_WRITE, true, WEFT_FAULT_LOCAL_PROTECTION },
	{ "remote_read", WEFT_MEM_REMOTE_READ, false, WEFT_FAULT_RDMAP_BOUNDS },
	{ "remote_write", WEFT_MEM_REMOTE_WRITE, true, WEFT_FAULT_TAGGED_BOUNDS },
	{ "remote_atomic", WEFT_MEM_REMOTE_ATOMIC, true, WEFT_FAULT_RDMAP_BOUNDS },
};

WEFT_ROWS(want_rows)

/* Pages that are not there: asked for, or none, or of no interest. */
static void weft_odp_access_wants_pages(struct kunit *test)
{
	const struct want_row *row = test->param_value;
	struct odp_world *w = make_odp_world(test);
	struct weft_mem_user *user = &w->mem->user;
	struct weft_odp_want want = {};
	struct weft_mem_ref ref;
	u64 to = IOVA + BYTES - 4;
	u32 stag;

	make_paged_region(test, w);
	stag = w->mr->grant.stag;
	KUNIT_EXPECT_EQ(test, weft_mem_get(user, stag, to, 8, row->right, &ref), row->fault);
	user->want = &want;
	KUNIT_EXPECT_EQ(test, weft_mem_check(user, stag, to, 8, row->right, &ref), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, want.state, (u8)WEFT_ODP_IDLE);
	KUNIT_EXPECT_EQ(test, weft_mem_get(user, stag, to, 8, row->right, &ref),
			WEFT_FAULT_NOT_READY);
	KUNIT_EXPECT_NULL(test, user->entered);
	KUNIT_EXPECT_EQ(test, want.state, (u8)WEFT_ODP_ASKED);
	KUNIT_EXPECT_PTR_EQ(test, want.odp, &w->odp);
	KUNIT_EXPECT_EQ(test, want.offset, (u64)BYTES - 4);
	KUNIT_EXPECT_EQ(test, want.len, 8U);
	KUNIT_EXPECT_EQ(test, want.write, row->write);
	weft_odp_forget(&want);
	drop_paged_region(test, w);
	free_odp_world(test, w);
}

/* Whatever was wanted is not wanted any more once an access finds its pages. */
static void weft_odp_access_that_is_granted_wants_none(struct kunit *test)
{
	struct odp_world *w = make_odp_world(test);
	struct weft_mem_user *user = &w->mem->user;
	struct weft_odp_want want = {};
	struct weft_mem_ref ref;
	u32 stag;

	make_paged_region(test, w);
	stag = w->mr->grant.stag;
	user->want = &want;
	KUNIT_EXPECT_EQ(test, weft_mem_get(user, stag, IOVA, BYTES + 1, WEFT_MEM_REMOTE_READ, &ref),
			WEFT_FAULT_NOT_READY);
	KUNIT_EXPECT_EQ(test, weft_mem_get(user, stag, IOVA, BYTES, WEFT_MEM_REMOTE_READ, &ref),
			WEFT_FAULT_NONE);
	KUNIT_EXPECT_PTR_EQ(test, user->entered, &w->odp);
	KUNIT_EXPECT_TRUE(test, weft_mem_is_paged(&ref));
	KUNIT_EXPECT_NULL(test, ref.flat);
	weft_mem_done(user);
	KUNIT_EXPECT_NULL(test, user->entered);
	KUNIT_EXPECT_EQ(test, want.state, (u8)WEFT_ODP_IDLE);
	KUNIT_EXPECT_EQ(test, kref_read(&w->odp.ref), 1U);
	drop_paged_region(test, w);
	free_odp_world(test, w);
}

static struct kunit_case odp_access_cases[] = {
	KUNIT_CASE_PARAM(weft_odp_enter_looks_at_each_page, enter_rows_gen_params),
	KUNIT_CASE(weft_odp_span_ends_with_the_page),
	KUNIT_CASE(weft_odp_words_are_aligned_by_address),
	KUNIT_CASE_PARAM(weft_odp_access_wants_pages, want_rows_gen_params),
	KUNIT_CASE(weft_odp_access_that_is_granted_wants_none),
	{},
};

static struct kunit_suite odp_access_suite = {
	.name = "weft_odp_access",
	.test_cases = odp_access_cases,
};

kunit_test_suite(odp_access_suite);
