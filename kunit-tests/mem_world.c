// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "mem_world.h"

#include <linux/slab.h>

struct world *make_world(struct kunit *test)
{
	static const u8 order[PAGES] = { 2, 0, 3, 1 };
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u8 *block;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	block = kunit_kzalloc(test, PAGES * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, block);
	for (i = 0; i < PAGES; i++)
		w->page[i] = block + order[i] * PAGE_SIZE;
	weft_stag_table_init(&w->table);
	w->user = (struct weft_mem_user){ .table = &w->table, .pd = PD, .qpn = QPN };
	return w;
}

struct weft_backing *make_backing(struct kunit *test, struct world *w)
{
	struct weft_backing *b = weft_backing_pages(PAGES);
	u32 i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(b));
	for (i = 0; i < PAGES; i++)
		KUNIT_ASSERT_EQ(test, weft_backing_add(b, w->page[i]), 0);
	KUNIT_EXPECT_EQ(test, weft_backing_add(b, w->page[0]), -ENOMEM);
	b->first = FIRST;
	return b;
}

struct weft_mem_region *make_stag(struct kunit *test, struct world *w, enum weft_stag_kind kind)
{
	struct weft_mem_region *mr = weft_stag_alloc(&w->table, kind, PD);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	return mr;
}

static void enable(struct kunit *test, struct world *w, struct weft_mem_region *mr, u32 access)
{
	struct weft_stag_grant grant = {
		.stag = mr->grant.stag,
		.access = access,
		.iova = IOVA,
		.length = LENGTH,
		.backing = make_backing(test, w),
	};

	KUNIT_ASSERT_EQ(test, weft_stag_enable(mr, &grant), 0);
}

struct weft_mem_region *make_region(struct kunit *test, struct world *w, u32 access)
{
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_REGION);

	enable(test, w, mr, access);
	return mr;
}

struct weft_mem_region *make_valid(struct kunit *test, struct world *w)
{
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_FASTREG);

	mr->next.backing = weft_backing_pages(1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr->next.backing));
	enable(test, w, mr, RIGHTS);
	return mr;
}

void drop(struct kunit *test, struct world *w, struct weft_mem_region *mr)
{
	weft_mem_release(&w->user);
	KUNIT_EXPECT_EQ(test, weft_stag_revoke(mr, true), 0);
	if (mr->kind == WEFT_STAG_REGION || mr->kind == WEFT_STAG_FASTREG)
		weft_backing_free(mr->grant.backing);
	weft_backing_free(mr->next.backing);
	KUNIT_EXPECT_EQ(test, kref_read(&mr->ref), 1U);	/* the owner's */
	weft_stag_free(&w->table, mr);
}

void leave(struct kunit *test, struct world *w)
{
	KUNIT_EXPECT_TRUE(test, xa_empty(&w->table.xa));
	weft_stag_table_destroy(&w->table);
}

void begin_read(struct kunit *test, struct weft_mem_user *reader, u32 stag)
{
	struct weft_mem_ref ref;
	enum weft_fault fault = weft_mem_get(reader, stag, IOVA, 4, WEFT_MEM_REMOTE_READ, &ref);

	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
}

enum weft_fault touch(struct world *w, u32 stag, u64 to, u32 len, enum weft_mem_right right,
		      u64 *offset)
{
	struct weft_mem_ref ref;
	enum weft_fault fault = weft_mem_get(&w->user, stag, to, len, right, &ref);

	if (fault == WEFT_FAULT_NONE && offset)
		*offset = ref.offset;
	weft_mem_release(&w->user);
	return fault;
}
