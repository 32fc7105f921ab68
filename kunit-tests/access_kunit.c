// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Accesses to the memory behind STags: RFC 5040, 5.3; RFC 5041, 7.1.
 */
#include <linux/bvec.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "mem/access.h"
#include "mem/backing.h"
#include "mem/mr_ops.h"
#include "mem_world.h"
#include "proto/atomic.h"
#include "proto/rdmap.h"
#include "suite.h"
#include "uapi/weft-abi.h"

struct copy_job {
	u8 *buf;
	size_t moved;
};

static enum weft_fault pull(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	struct copy_job *job = arg;
	u32 at, len;

	job->moved += ref->len;
	for (at = 0; at < ref->len; at += len) {
		const u8 *from = weft_mem_span(ref, at, &len);

		memcpy(job->buf + done + at, from, len);
	}
	return WEFT_FAULT_NONE;
}

static enum weft_fault push(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	struct copy_job *job = arg;
	u32 at, len;

	job->moved += ref->len;
	for (at = 0; at < ref->len; at += len) {
		u8 *to = weft_mem_span(ref, at, &len);

		memcpy(to, job->buf + done + at, len);
	}
	return WEFT_FAULT_NONE;
}

/* The byte at @offset of a region that starts FIRST bytes into page 0. */
static u8 *byte_at(struct world *w, u64 offset)
{
	offset += FIRST;
	return &w->page[offset / PAGE_SIZE][offset % PAGE_SIZE];
}

static void weft_mem_walk_finds_every_byte(struct kunit *test)
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
		*byte_at(w, i) = weft_next_random(&seed);
	for (skip = 0; skip < total; skip += 1021) {
		job.moved = 0;
		fault = weft_mem_walk(&w->user, sge, 3, skip, total - skip, WEFT_MEM_LOCAL_READ,
				      pull, &job);
		KUNIT_ASSERT_EQ(test, fault, WEFT_FAULT_NONE);
		KUNIT_ASSERT_EQ(test, job.moved, (size_t)total - skip);
		for (i = skip; i < 2 * PAGE_SIZE; i++)
			KUNIT_ASSERT_EQ(test, job.buf[i - skip], *byte_at(w, 1 + i));
		for (i = max_t(u32, skip, 2 * PAGE_SIZE); i < total; i++)
			KUNIT_ASSERT_EQ(test, job.buf[i - skip],
					*byte_at(w, LENGTH - 40 + i - 2 * PAGE_SIZE));
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
		KUNIT_EXPECT_EQ(test, *byte_at(w, 1 + PAGE_SIZE - 30 + i), 0xa5);
	drop(test, w, mr);
	leave(test, w);
}

struct element_row {
	const char *name;
	u32 num_sge;
	u32 offset;
	u32 len;
	enum weft_fault fault;
};

#define ELEMENT	100U

static const struct element_row element_rows[] = {
	{ "all", 1, 0, ELEMENT, 0 },
	{ "its_end", 1, 40, ELEMENT - 40, 0 },
	{ "a_byte_behind_its_end", 1, 40, ELEMENT - 39, WEFT_FAULT_LOCAL_LENGTH },
	{ "behind_it", 1, ELEMENT, 1, WEFT_FAULT_LOCAL_LENGTH },
	{ "far_behind_it", 1, ELEMENT + 1, 1, WEFT_FAULT_LOCAL_LENGTH },
	{ "no_element", 0, 0, 1, WEFT_FAULT_LOCAL_LENGTH },
	{ "nothing_of_no_element", 0, 0, 0, 0 },
};

WEFT_ROWS(element_rows)

/* A list of one element is walked another way. What stands behind a list is not of it. */
static void weft_mem_walk_of_one_element(struct kunit *test)
{
	const struct element_row *row = test->param_value;
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_region(test, w, RIGHTS);
	struct copy_job job = { .buf = kunit_kzalloc(test, LENGTH, GFP_KERNEL) };
	struct weft_sge sge[2] = {
		{ .addr = IOVA, .length = ELEMENT, .lkey = mr->grant.stag },
		{ .addr = IOVA + ELEMENT, .length = ELEMENT, .lkey = mr->grant.stag },
	};

	KUNIT_ASSERT_NOT_NULL(test, job.buf);
	KUNIT_EXPECT_EQ(test,
			weft_mem_walk(&w->user, sge, row->num_sge, row->offset, row->len,
				      WEFT_MEM_LOCAL_READ, pull, &job),
			row->fault);
	if (row->fault == WEFT_FAULT_NONE)
		KUNIT_EXPECT_EQ(test, job.moved, (size_t)row->len);
	drop(test, w, mr);
	leave(test, w);
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

/* A right of the peer's, its access flag, and what the peer gets if that is missing. */
struct qp_row {
	const char *name;
	enum weft_mem_right right;
	u32 bit;
	enum weft_fault fault;
};

static const struct qp_row qp_rows[] = {
	{ "write", WEFT_MEM_REMOTE_WRITE, RW, WEFT_FAULT_TAGGED_STAG },
	{ "read", WEFT_MEM_REMOTE_READ, RR, WEFT_FAULT_RDMAP_ACCESS },
	{ "atomic", WEFT_MEM_REMOTE_ATOMIC, RA, WEFT_FAULT_RDMAP_ACCESS },
};

WEFT_ROWS(qp_rows)

/* A QP without a right refuses what the STag allows, from the next access on; only that. */
static void weft_mem_get_of_a_restricted_qp(struct kunit *test)
{
	const struct qp_row *row = test->param_value;
	struct world *w = make_world(test);
	struct weft_mem_region *mr = make_region(test, w, RIGHTS);
	u32 stag = mr->grant.stag;
	struct weft_mem_ref ref;
	u32 i;

	KUNIT_EXPECT_EQ(test, weft_mem_get(&w->user, stag, IOVA, 8, row->right, &ref),
			WEFT_FAULT_NONE);
	weft_mem_set_access(&w->user, RIGHTS & ~row->bit);
	KUNIT_EXPECT_EQ(test, weft_mem_get(&w->user, stag, IOVA, 8, row->right, &ref), row->fault);
	KUNIT_EXPECT_EQ(test, weft_mem_get(&w->user, stag, IOVA, 0, row->right, &ref),
			WEFT_FAULT_NONE);
	weft_mem_release(&w->user);
	for (i = 0; i < ARRAY_SIZE(qp_rows); i++)
		if (i != row - qp_rows)
			KUNIT_EXPECT_EQ(test, touch(w, stag, IOVA, 8, qp_rows[i].right, NULL),
					WEFT_FAULT_NONE);
	weft_mem_set_access(&w->user, 0);
	KUNIT_EXPECT_EQ(test, touch(w, stag, IOVA, 8, WEFT_MEM_LOCAL_WRITE, NULL), WEFT_FAULT_NONE);
	KUNIT_EXPECT_EQ(test, touch(w, stag, IOVA, 8, WEFT_MEM_LOCAL_READ, NULL), WEFT_FAULT_NONE);
	weft_mem_set_access(&w->user, row->bit);
	KUNIT_EXPECT_EQ(test, touch(w, stag, IOVA, 8, row->right, NULL), WEFT_FAULT_NONE);
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
	fault = touch(w, mr->grant.stag, 64, 8, WEFT_MEM_REMOTE_ATOMIC, NULL);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_RDMAP_BOUNDS);
	fault = touch(w, mr->grant.stag, 64, 8, WEFT_MEM_REMOTE_WRITE, NULL);
	KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_TAGGED_BOUNDS);
	/* Nor where memory ends in between; on a large machine it does not. */
	if (!virt_addr_valid((void *)(uintptr_t)(at + U32_MAX - 1))) {
		fault = touch(w, mr->grant.stag, at, U32_MAX, WEFT_MEM_REMOTE_WRITE, NULL);
		KUNIT_EXPECT_EQ(test, fault, WEFT_FAULT_TAGGED_BOUNDS);
	}
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

/* A CPU that works on the same word as the peers do. */
struct adder {
	u64 *word;
	u64 added;
};

static int add_to_word(void *arg)
{
	struct adder *a = arg;

	while (!kthread_should_stop()) {
		atomic64_inc((atomic64_t *)a->word);
		a->added++;
		cond_resched();
	}
	return 0;
}

/* Nothing is lost where the two meet, which shows when a value is not the last one plus 1. */
static void weft_backing_atomic_beside_a_cpu(struct kunit *test)
{
	unsigned long end = jiffies + 5 * HZ;
	struct world *w = make_world(test);
	struct weft_backing *b = make_backing(test, w);
	struct weft_atomic_op add = { .code = WEFT_ATOMIC_FADD, .data = 1 };
	struct adder adder = { .word = (u64 *)(w->page[0] + 32) };
	struct task_struct *task;
	u32 meetings = 0;
	u64 last = 0;
	u64 now;
	u64 n;

	task = kthread_run(add_to_word, &adder, "weft_kunit_adder");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (n = 0; meetings < 10000 && time_before(jiffies, end); n++) {
		now = weft_backing_atomic(b, 32 - FIRST, &add);
		meetings += now != last + 1;
		last = now;
		cond_resched();
	}
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, *adder.word, n + adder.added);
	weft_backing_free(b);
	leave(test, w);
}

static struct kunit_case access_cases[] = {
	KUNIT_CASE(weft_mem_walk_finds_every_byte),
	KUNIT_CASE_PARAM(weft_mem_walk_of_one_element, element_rows_gen_params),
	KUNIT_CASE_PARAM(weft_mem_get_refuses, get_rows_gen_params),
	KUNIT_CASE_PARAM(weft_mem_get_of_a_restricted_qp, qp_rows_gen_params),
	KUNIT_CASE(weft_mem_get_holds_a_run),
	KUNIT_CASE(weft_mem_get_kernel_address),
	KUNIT_CASE(weft_backing_atomic_both_codes),
	KUNIT_CASE(weft_backing_atomic_beside_a_cpu),
	{},
};

static struct kunit_suite access_suite = {
	.name = "weft_access",
	.test_cases = access_cases,
};

kunit_test_suite(access_suite);
