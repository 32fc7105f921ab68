// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * STags, pins, the memory behind them, and the work requests that give and take
 * rights: RFC 5040, 5.3 and 7; RFC 5041, 7.1; wire.md, 6.
 */
#include <linux/bvec.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "base/limits.h"
#include "mem/access.h"
#include "mem/backing.h"
#include "mem/rights.h"
#include "mem/stag.h"
#include "proto/atomic.h"
#include "proto/rdmap.h"
#include "suite.h"
#include "uapi/weft-abi.h"

#define PD	5U
#define QPN	9U
#define PAGES	4U
#define FIRST	24U			/* offset in the first page */
#define LENGTH	(3 * PAGE_SIZE - 100)
#define IOVA	(0x7000000000ULL + FIRST)
#define MW	IB_ACCESS_MW_BIND
#define LW	IB_ACCESS_LOCAL_WRITE
#define RW	IB_ACCESS_REMOTE_WRITE
#define RR	IB_ACCESS_REMOTE_READ
#define RA	IB_ACCESS_REMOTE_ATOMIC
#define RIGHTS	(LW | RW | RR | RA | MW)

/* A table, a QP, and pages in no order, so that a wrong page is seen. */
struct world {
	struct weft_stag_table table;
	struct weft_mem_user user;
	u8 *page[PAGES];
};

static struct world *make_world(struct kunit *test)
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

static struct weft_backing *make_backing(struct kunit *test, struct world *w)
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

static struct weft_mem_region *make_stag(struct kunit *test, struct world *w,
					 enum weft_stag_kind kind)
{
	struct weft_mem_region *mr = weft_stag_alloc(&w->table, kind, PD);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	return mr;
}

static struct weft_mem_region *make_region(struct kunit *test, struct world *w, u32 access)
{
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_REGION);
	struct weft_stag_grant grant = {
		.stag = mr->grant.stag,
		.access = access,
		.iova = IOVA,
		.length = LENGTH,
		.backing = make_backing(test, w),
	};

	KUNIT_ASSERT_EQ(test, weft_stag_enable(mr, &grant), 0);
	return mr;
}

static void drop(struct kunit *test, struct world *w, struct weft_mem_region *mr)
{
	weft_mem_release(&w->user);
	KUNIT_EXPECT_EQ(test, weft_stag_revoke(mr, true), 0);
	if (mr->kind == WEFT_STAG_REGION || mr->kind == WEFT_STAG_FASTREG)
		weft_backing_free(mr->grant.backing);
	weft_backing_free(mr->next.backing);
	weft_stag_free(&w->table, mr);
}

static void leave(struct kunit *test, struct world *w)
{
	KUNIT_EXPECT_TRUE(test, xa_empty(&w->table.xa));
	weft_stag_table_destroy(&w->table);
}

#define NUMBERS	64

/* RFC 5040, 8.1.1 (8): hard to guess, spread over the whole range */
static void weft_stag_alloc_numbers(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr[NUMBERS];
	u32 least = U32_MAX;
	u32 most = 0;
	u32 keys = 0;
	u32 i;

	for (i = 0; i < NUMBERS; i++) {
		mr[i] = make_stag(test, w, WEFT_STAG_REGION);
		KUNIT_EXPECT_NE(test, mr[i]->grant.stag >> 8, 0U);
		least = min(least, mr[i]->grant.stag);
		most = max(most, mr[i]->grant.stag);
		keys |= mr[i]->grant.stag & 0xff;
	}
	KUNIT_EXPECT_GT(test, most - least, 1U << 31);
	KUNIT_EXPECT_EQ(test, keys, 0xffU);
	for (i = 0; i < NUMBERS; i++)
		drop(test, w, mr[i]);
	leave(test, w);
}

#define CROWD	(WEFT_STAG_RECENT + WEFT_STAG_RECENT / 4)

static void expect_found(struct kunit *test, struct world *w, struct weft_mem_region *mr, u32 stag)
{
	KUNIT_EXPECT_PTR_EQ(test, weft_stag_pin(&w->table, stag), mr);
	if (mr)
		weft_stag_unpin(mr);
}

/* Some share a slot of what was made last, and lose it to each other. */
static void weft_stag_pin_in_a_crowd(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region **mr = kunit_kcalloc(test, CROWD, sizeof(*mr), GFP_KERNEL);
	u32 stag;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	for (i = 0; i < CROWD; i++) {
		struct weft_stag_grant grant = { .length = 1 };

		mr[i] = make_stag(test, w, WEFT_STAG_WINDOW1);
		grant.stag = mr[i]->grant.stag;
		KUNIT_ASSERT_EQ(test, weft_stag_enable(mr[i], &grant), 0);
	}
	for (i = 0; i < CROWD; i++)
		expect_found(test, w, mr[i], mr[i]->grant.stag);
	for (i = CROWD; i--;) {
		stag = mr[i]->grant.stag;
		drop(test, w, mr[i]);
		expect_found(test, w, NULL, stag);
		if (i)
			expect_found(test, w, mr[0], mr[0]->grant.stag);
	}
	for (i = 0; i < WEFT_STAG_RECENT; i++)
		KUNIT_EXPECT_NULL(test, rcu_access_pointer(w->table.recent[i]));
	leave(test, w);
}

static void weft_stag_pin_follows_state(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_REGION);
	struct weft_stag_grant grant = { .stag = mr->grant.stag, .length = 1 };
	u32 stag = mr->grant.stag;

	KUNIT_EXPECT_NULL(test, weft_stag_pin(&w->table, stag));
	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), 0);
	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), -EBUSY);
	KUNIT_EXPECT_NULL(test, weft_stag_pin(&w->table, stag ^ 1));
	KUNIT_EXPECT_NULL(test, weft_stag_pin(&w->table, stag + 256));
	KUNIT_EXPECT_PTR_EQ(test, weft_stag_pin(&w->table, stag), mr);

	KUNIT_EXPECT_TRUE(test, weft_stag_disable(mr));
	KUNIT_EXPECT_FALSE(test, weft_stag_disable(mr));
	KUNIT_EXPECT_TRUE(test, weft_stag_draining(mr));
	KUNIT_EXPECT_NULL(test, weft_stag_pin(&w->table, stag));
	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), -EBUSY);
	KUNIT_EXPECT_EQ(test, weft_stag_rename(mr, stag ^ 1), -EBUSY);
	weft_stag_unpin(mr);
	KUNIT_EXPECT_FALSE(test, weft_stag_draining(mr));
	KUNIT_EXPECT_EQ(test, weft_stag_rename(mr, stag ^ 1), 0);

	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), 0);
	KUNIT_EXPECT_EQ(test, weft_stag_revoke(mr, true), 0);
	KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), -ENODEV);
	weft_stag_free(&w->table, mr);
	leave(test, w);
}

struct copy_job {
	u8 *buf;
	size_t moved;
};

static enum weft_fault pull(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	struct copy_job *job = arg;
	struct iov_iter iter;

	job->moved += ref->len;
	weft_mem_iter(ref, ITER_SOURCE, &iter);
	return copy_from_iter(job->buf + done, ref->len, &iter) == ref->len ?
		       WEFT_FAULT_NONE :
		       WEFT_FAULT_LOCAL_CATASTROPHIC;
}

static enum weft_fault push(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	struct copy_job *job = arg;
	struct iov_iter iter;

	job->moved += ref->len;
	weft_mem_iter(ref, ITER_DEST, &iter);
	return copy_to_iter(job->buf + done, ref->len, &iter) == ref->len ?
		       WEFT_FAULT_NONE :
		       WEFT_FAULT_LOCAL_CATASTROPHIC;
}

/* The octet at @offset of a region that starts FIRST octets into page 0. */
static u8 *octet(struct world *w, u64 offset)
{
	offset += FIRST;
	return &w->page[offset / PAGE_SIZE][offset % PAGE_SIZE];
}

static void weft_mem_walk_finds_every_octet(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_region(test, w, RIGHTS);
	struct copy_job job = { .buf = kunit_kzalloc(test, LENGTH, GFP_KERNEL) };
	struct weft_sge sge[3] = {
		{ .addr = IOVA + 1, .length = 2 * PAGE_SIZE, .lkey = mr->grant.stag },
		{ .addr = 1, .length = 0, .lkey = 0xdead },
		{ .addr = IOVA + LENGTH - 40, .length = 40, .lkey = mr->grant.stag },
	};
	u32 total = 2 * PAGE_SIZE + 40;
	enum weft_fault fault;
	u64 seed = 1;
	u32 skip;
	u32 i;

	for (i = 0; i < LENGTH; i++)
		*octet(w, i) = weft_next_random(&seed);
	for (skip = 0; skip < total; skip += 1021) {
		job.moved = 0;
		fault = weft_mem_walk(&w->user, sge, 3, skip, total - skip, WEFT_MEM_LOCAL_READ,
				      pull, &job);
		KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
		KUNIT_ASSERT_EQ(test, job.moved, (size_t)total - skip);
		for (i = skip; i < 2 * PAGE_SIZE; i++)
			KUNIT_ASSERT_EQ(test, job.buf[i - skip], *octet(w, 1 + i));
		for (i = max_t(u32, skip, 2 * PAGE_SIZE); i < total; i++)
			KUNIT_ASSERT_EQ(test, job.buf[i - skip],
					*octet(w, LENGTH - 40 + i - 2 * PAGE_SIZE));
	}
	fault = weft_mem_walk(&w->user, sge, 3, 1, total, WEFT_MEM_LOCAL_READ, pull, &job);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_LOCAL_LENGTH);
	fault = weft_mem_walk(&w->user, sge, 3, total, 0, WEFT_MEM_LOCAL_READ, pull, &job);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);

	memset(job.buf, 0xa5, LENGTH);
	fault = weft_mem_walk(&w->user, sge, 1, PAGE_SIZE - 30, 8, WEFT_MEM_LOCAL_WRITE, push,
			      &job);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, *octet(w, 1 + PAGE_SIZE - 30 + i), 0xa5);
	drop(test, w, mr);
	leave(test, w);
}

/* An access that ends at once; @offset may be NULL. */
static enum weft_fault touch(struct world *w, u32 stag, u64 to, u32 len, enum weft_mem_right right,
			     u64 *offset)
{
	struct weft_mem_ref ref;
	enum weft_fault fault = weft_mem_get(&w->user, stag, to, len, right, &ref);

	if (fault == WEFT_FAULT_NONE && offset)
		*offset = ref.offset;
	weft_mem_release(&w->user);
	return fault;
}

struct get_row {
	const char *name;
	u32 access;
	u32 pd;
	u64 to;
	u32 len;
	enum weft_mem_right right;
	enum weft_fault fault;
};

static const struct get_row get_rows[] = {
	{ "local_read", 0, PD, IOVA, LENGTH, WEFT_MEM_LOCAL_READ, 0 },
	{ "local_write", 0, PD, IOVA, 1, WEFT_MEM_LOCAL_WRITE, WEFT_FAULT_LOCAL_PROTECTION },
	{ "local_bounds", 0, PD, IOVA, LENGTH + 1, WEFT_MEM_LOCAL_READ,
	  WEFT_FAULT_LOCAL_PROTECTION },
	{ "local_pd", 0, PD + 1, IOVA, 1, WEFT_MEM_LOCAL_READ, WEFT_FAULT_LOCAL_PROTECTION },
	{ "local_write_ok", LW, PD, IOVA, 1, WEFT_MEM_LOCAL_WRITE, 0 },
	{ "write", RR, PD, IOVA, 1, WEFT_MEM_REMOTE_WRITE, WEFT_FAULT_TAGGED_STAG },
	{ "write_ok", RW, PD, IOVA, 1, WEFT_MEM_REMOTE_WRITE, 0 },
	{ "write_bounds", RIGHTS, PD, IOVA - 1, 1, WEFT_MEM_REMOTE_WRITE,
	  WEFT_FAULT_TAGGED_BOUNDS },
	{ "write_wrap", RIGHTS, PD, U64_MAX, 2, WEFT_MEM_REMOTE_WRITE, WEFT_FAULT_TAGGED_WRAP },
	{ "write_pd", RIGHTS, PD + 1, IOVA, 1, WEFT_MEM_REMOTE_WRITE, WEFT_FAULT_TAGGED_STREAM },
	{ "read", RIGHTS & ~RR, PD, IOVA, 1, WEFT_MEM_REMOTE_READ, WEFT_FAULT_RDMAP_ACCESS },
	{ "read_ok", RR, PD, IOVA, 1, WEFT_MEM_REMOTE_READ, 0 },
	{ "atomic", RIGHTS & ~RA, PD, IOVA, 8, WEFT_MEM_REMOTE_ATOMIC, WEFT_FAULT_RDMAP_ACCESS },
	{ "atomic_ok", RA, PD, IOVA, 8, WEFT_MEM_REMOTE_ATOMIC, 0 },
	{ "empty", 0, PD + 1, 0, 0, WEFT_MEM_REMOTE_WRITE, 0 },
};

WEFT_ROWS(get_rows)

static void weft_mem_get_refuses(struct kunit *test)
{
	const struct get_row *row = test->param_value;
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_region(test, w, row->access);
	enum weft_fault fault;

	w->user.pd = row->pd;
	fault = touch(w, mr->grant.stag, row->to, row->len, row->right, NULL);
	KUNIT_EXPECT_EQ(test, fault, row->fault);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->pins), WEFT_STAG_UNUSED);
	fault = touch(w, 0, IOVA, 1, row->right, NULL);
	KUNIT_EXPECT_NE(test, fault, WEFT_FAULT_NONE);
	drop(test, w, mr);
	leave(test, w);
}

/* One pin for a run of accesses; an invalidation stops the next one and is waited for. */
static void weft_mem_get_holds_a_run(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *a = make_region(test, w, RIGHTS);
	struct weft_mem_region *b = make_region(test, w, RR);
	u32 stag = a->grant.stag;
	struct weft_mem_ref ref;
	enum weft_fault fault;
	u32 i;

	for (i = 0; i < 3; i++) {
		fault = weft_mem_get(&w->user, stag, IOVA + i, 1, WEFT_MEM_REMOTE_WRITE, &ref);
		KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
		KUNIT_EXPECT_EQ(test, ref.offset, (u64)i);
		KUNIT_EXPECT_EQ(test, atomic_read(&a->pins), WEFT_STAG_UNUSED + 1);
	}
	/* Holding it gives no right that was not granted, and no other key. */
	fault = weft_mem_get(&w->user, stag, IOVA + LENGTH, 1, WEFT_MEM_REMOTE_WRITE, &ref);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_TAGGED_BOUNDS);
	fault = weft_mem_get(&w->user, stag ^ 1, IOVA, 1, WEFT_MEM_REMOTE_WRITE, &ref);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_TAGGED_STAG);
	KUNIT_EXPECT_EQ(test, atomic_read(&a->pins), WEFT_STAG_UNUSED);

	fault = weft_mem_get(&w->user, stag, IOVA, 1, WEFT_MEM_REMOTE_READ, &ref);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	fault = weft_mem_get(&w->user, b->grant.stag, IOVA, 1, WEFT_MEM_REMOTE_READ, &ref);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, atomic_read(&a->pins), WEFT_STAG_UNUSED);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->pins), WEFT_STAG_UNUSED + 1);

	fault = weft_mem_get(&w->user, stag, IOVA, 1, WEFT_MEM_REMOTE_READ, &ref);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, weft_stag_disable(a));
	KUNIT_EXPECT_TRUE(test, weft_stag_draining(a));
	fault = weft_mem_get(&w->user, stag, IOVA, 1, WEFT_MEM_REMOTE_READ, &ref);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_RDMAP_STAG);
	KUNIT_EXPECT_FALSE(test, weft_stag_draining(a));
	weft_mem_release(&w->user);
	drop(test, w, a);
	drop(test, w, b);
	leave(test, w);
}

static void weft_mem_get_kernel_address(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_REGION);
	struct weft_stag_grant grant = {
		.stag = mr->grant.stag,
		.access = RIGHTS,
		.length = U64_MAX,
		.backing = weft_backing_kernel(),
	};
	u64 at = (uintptr_t)w->page[0] + 3;
	struct copy_job job = { .buf = "weft" };
	struct weft_sge sge = { .addr = at, .length = 4 };
	enum weft_fault fault;
	u64 offset;

	KUNIT_ASSERT_EQ(test, weft_stag_enable(mr, &grant), 0);
	fault = weft_mem_walk(&w->user, &sge, 1, 0, 4, WEFT_MEM_LOCAL_WRITE, push, &job);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_LOCAL_PROTECTION);
	w->user.kernel = true;
	fault = weft_mem_walk(&w->user, &sge, 1, 0, 4, WEFT_MEM_LOCAL_WRITE, push, &job);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, memcmp(w->page[0] + 3, "weft", 4), 0);
	/* STag 0 is nothing to a peer. */
	fault = touch(w, 0, at, 4, WEFT_MEM_REMOTE_WRITE, NULL);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_TAGGED_STAG);

	fault = touch(w, mr->grant.stag, at + 5, 8, WEFT_MEM_REMOTE_ATOMIC, &offset);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_TRUE(test, weft_backing_aligned8(mr->grant.backing, offset));
	/* No memory there: refused, not oopsed. */
	fault = touch(w, mr->grant.stag, 64, 8, WEFT_MEM_REMOTE_READ, NULL);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_RDMAP_BOUNDS);
	drop(test, w, mr);
	leave(test, w);
}

static void weft_backing_atomic_both_codes(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_backing *b = make_backing(test, w);
	struct weft_atomic_op add = { .code = WEFT_ATOMIC_FADD, .data = 5 };
	struct weft_atomic_op swap = {
		.code = WEFT_ATOMIC_CSWAP,
		.data = 77,
		.mask = U64_MAX,
		.compare = 42,
		.compare_mask = U64_MAX,
	};
	u64 at = PAGE_SIZE + 16 - FIRST;	/* in the second page */
	u64 *word = (u64 *)(w->page[1] + 16);

	KUNIT_EXPECT_TRUE(test, weft_backing_aligned8(b, at));
	KUNIT_EXPECT_FALSE(test, weft_backing_aligned8(b, at + 4));
	*word = 37;
	KUNIT_EXPECT_EQ(test, weft_backing_atomic(b, at, &add), 37ULL);
	KUNIT_EXPECT_EQ(test, *word, 42ULL);
	KUNIT_EXPECT_EQ(test, weft_backing_atomic(b, at, &swap), 42ULL);
	KUNIT_EXPECT_EQ(test, *word, 77ULL);
	KUNIT_EXPECT_EQ(test, weft_backing_atomic(b, at, &swap), 77ULL);
	KUNIT_EXPECT_EQ(test, *word, 77ULL);
	weft_backing_free(b);
	leave(test, w);
}

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

	/* Mapping anew while the old pages are in use does not touch those. */
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
	weft_mem_release(&other);
	KUNIT_EXPECT_TRUE(test, weft_mem_quiet(busy));
	weft_mem_quiesce(busy);

	fault = weft_mem_register(&w->user, mr, stag, RIGHTS);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_NONE);
	fault = touch(w, stag, 60, 4, WEFT_MEM_REMOTE_READ, NULL);
	KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
	KUNIT_EXPECT_PTR_EQ(test, first_page(mr), virt_to_page(w->page[3]));
	drop(test, w, mr);
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

	/* wire.md, 6, rule 9 */
	KUNIT_EXPECT_EQ(test, invalidate(w, 0x12345678, true), WEFT_FAULT_RDMAP_INVALIDATE);
	KUNIT_EXPECT_EQ(test, invalidate(w, region->grant.stag, true), WEFT_FAULT_RDMAP_INVALIDATE);
	KUNIT_EXPECT_EQ(test, invalidate(w, region->grant.stag, false), WEFT_FAULT_LOCAL_BIND);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, true), WEFT_FAULT_RDMAP_INVALIDATE);
	KUNIT_EXPECT_EQ(test, invalidate(w, stag, false), WEFT_FAULT_NONE);

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

	/* Bound again, zero based, and closed. */
	req.window = req.stag;
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

static void weft_mem_bind_type2(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *region = make_region(test, w, RIGHTS);
	struct weft_mem_region *window = make_stag(test, w, WEFT_STAG_WINDOW2);
	struct weft_mem_binding req = {
		.addr = IOVA,
		.length = LENGTH,
		.lkey = region->grant.stag,
		.access = RW,
		.window = window->grant.stag,
		.stag = window->grant.stag ^ 1,
	};
	u32 stag = req.stag;
	enum weft_fault fault;

	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_NONE);
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
	KUNIT_EXPECT_EQ(test, weft_mem_bind(&w->user, &req), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, weft_stag_revoke(region, true), -EBUSY);
	drop(test, w, window);
	drop(test, w, region);
	leave(test, w);
}

/* A window of a QP that goes opens its region to nobody, those of others do. */
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
	weft_mem_close_windows(&w->user);
	KUNIT_EXPECT_EQ(test, region->windows, 3U);
	w->user.has_windows = true;
	weft_mem_close_windows(&w->user);
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

/* All 16777215 take 5 GB of memory and minutes, so that many are made only when asked for. */
static unsigned int stags = 65536;
module_param(stags, uint, 0444);
MODULE_PARM_DESC(stags, "STags that weft_stag_alloc_many makes, at most 16777215");

static void weft_stag_alloc_many(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr;
	u64 began = ktime_get_ns();
	unsigned long index;
	u32 made;

	for (made = 0; made < stags; made++) {
		mr = weft_stag_alloc(&w->table, WEFT_STAG_REGION, PD);
		if (IS_ERR(mr))
			break;
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, made, min(stags, WEFT_MAX_STAG));
	if (stags >= WEFT_MAX_STAG) {
		mr = weft_stag_alloc(&w->table, WEFT_STAG_REGION, PD);
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(mr), -ENOMEM);
	}
	kunit_info(test, "%u STags of %zu octets, %llu ns each\n", made, sizeof(*mr),
		   div_u64(ktime_get_ns() - began, max(made, 1U)));
	xa_for_each(&w->table.xa, index, mr) {
		weft_stag_free(&w->table, mr);
		cond_resched();
	}
	leave(test, w);
}

/* Accesses and revocations race; none is seen after its revocation. */
#define RACES	20000U

struct race {
	struct world *w;
	u32 stag;
	atomic_t inside;	/* accesses under way */
	atomic_t granted;
};

static int access_often(void *arg)
{
	struct race *r = arg;
	struct weft_mem_region *mr;

	while (!kthread_should_stop()) {
		mr = weft_stag_pin(&r->w->table, r->stag);
		if (mr) {
			atomic_inc(&r->inside);
			cpu_relax();
			atomic_inc(&r->granted);
			atomic_dec(&r->inside);
			weft_stag_unpin(mr);
		}
		cond_resched();
	}
	return 0;
}

static void weft_stag_revoke_waits_for_accesses(struct kunit *test)
{
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_stag(test, w, WEFT_STAG_REGION);
	struct weft_stag_grant grant = { .stag = mr->grant.stag };
	struct race r = { .w = w, .stag = grant.stag };
	struct task_struct *task[2];
	u32 seen = 0;
	u32 i;

	for (i = 0; i < 2; i++) {
		task[i] = kthread_run(access_often, &r, "weft_mem_access%u", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(task[i]));
	}
	for (i = 0; i < RACES; i++) {
		KUNIT_EXPECT_EQ(test, weft_stag_enable(mr, &grant), 0);
		if (i % 8 == 0)
			cond_resched();
		weft_stag_revoke(mr, false);
		seen += atomic_read(&r.inside);
	}
	KUNIT_EXPECT_EQ(test, seen, 0U);
	for (i = 0; i < 2; i++)
		kthread_stop(task[i]);
	kunit_info(test, "%d accesses granted\n", atomic_read(&r.granted));
	drop(test, w, mr);
	leave(test, w);
}

static struct kunit_case mem_cases[] = {
	KUNIT_CASE(weft_stag_alloc_numbers),
	KUNIT_CASE(weft_stag_pin_follows_state),
	KUNIT_CASE(weft_stag_pin_in_a_crowd),
	KUNIT_CASE(weft_stag_revoke_waits_for_accesses),
	KUNIT_CASE(weft_mem_walk_finds_every_octet),
	KUNIT_CASE_PARAM(weft_mem_get_refuses, get_rows_gen_params),
	KUNIT_CASE(weft_mem_get_holds_a_run),
	KUNIT_CASE(weft_mem_get_kernel_address),
	KUNIT_CASE(weft_backing_atomic_both_codes),
	KUNIT_CASE(weft_mem_register_swaps_pages),
	KUNIT_CASE(weft_mem_invalidate_refuses),
	KUNIT_CASE(weft_mem_bind_type1),
	KUNIT_CASE_PARAM(weft_mem_bind_refuses, bad_bind_rows_gen_params),
	KUNIT_CASE(weft_mem_bind_type2),
	KUNIT_CASE(weft_mem_close_windows_of_one_qp),
	KUNIT_CASE_SLOW(weft_stag_alloc_many),
	{}
};

static struct kunit_suite mem_suite = {
	.name = "weft_mem",
	.test_cases = mem_cases,
};

kunit_test_suite(mem_suite);
