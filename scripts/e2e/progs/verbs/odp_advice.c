// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory that is paged on demand, and ibv_advise_mr(): what it brings, and what it says when there
 * is nothing to bring.
 */
#define _GNU_SOURCE
#include "odp.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int pages_there(void *from, size_t bytes)
{
	unsigned char vec[AREA / PAGE];
	int there = 0;

	CHECK(!mincore(from, bytes, vec));
	for (size_t i = 0; i < bytes / PAGE; i++)
		there += vec[i] & 1;
	return there;
}

static int advised(struct ibv_mr *mr, enum ibv_advise_mr_advice advice, int flush, char *from,
		   uint32_t bytes)
{
	struct ibv_sge sg = at(mr, from, bytes);

	return ibv_advise_mr(s.id->pd, advice, flush ? IBV_ADVISE_MR_FLAG_FLUSH : 0, &sg, 1);
}

static void prefetches(struct ibv_mr *mr, char *area)
{
	double end = now() + SECONDS;
	unsigned long waits;

	madvise(area, AREA, MADV_NOHUGEPAGE); /* a large one would come for a small one */
	CHECK(!advised(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 1, area, MIB));
	CHECK(!pages_there(area, MIB));
	CHECK(!advised(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 1, area, MIB));
	CHECK(pages_there(area, AREA) == MIB / PAGE);
	waits = counted("odp_page_waits");
	write_to(area + 100, mr->rkey, sge(c.own, 0, BYTES));
	written(&s);
	CHECK(counted("odp_page_waits") == waits);
	CHECK(!advised(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, area + MIB, MIB));
	while (pages_there(area + MIB, MIB) != MIB / PAGE && now() < end)
		usleep(1000);
	CHECK(pages_there(area, AREA) == 2 * MIB / PAGE);
	/* What the process has made itself is found. */
	make_words(area + 2 * MIB, BYTES, 4);
	CHECK(!advised(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 1, area + 2 * MIB, MIB));
	waits = counted("odp_page_waits");
	read_from(area + 2 * MIB, mr->rkey, sge(c.own, 0, BYTES));
	CHECK(has_words(c.own->addr, BYTES, 4) && counted("odp_page_waits") == waits);
	CHECK(!advised(mr, IBV_ADVISE_MR_ADVICE_PREFETCH, 1, area + 3 * MIB, MIB));
	waits = counted("odp_page_waits");
	read_from(area + 3 * MIB, mr->rkey, sge(c.own, 0, BYTES));
	CHECK(counted("odp_page_waits") == waits);
}

CASE("on demand", odp_prefetch)
{
	char *area = map_at(NULL, AREA, -1);
	struct ibv_mr *mr = reg_odp(&s, area, AREA, RIGHTS);

	prefetches(mr, area);
	CHECK(!ibv_dereg_mr(mr));
	area = map_at(NULL, AREA, -1);
	mr = implicit(&s);
	prefetches(mr, area);
	CHECK(!ibv_dereg_mr(mr));
}

static char *page;

static void page_once(void)
{
	struct ibv_mr *mr = reg_odp(&s, page, PAGE, RIGHTS);

	CHECK(!advised(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 1, page, PAGE));
	CHECK(!ibv_dereg_mr(mr));
}

/* A region has tables of its pages, which go with it. */
CASE("on demand", odp_no_table_is_left_behind)
{
	page = map_at(NULL, PAGE, -1);
	leaves_no_pages(page_once);
}

/* Half of it is there: segments that are tried many at once lack some, the first alone does not. */
static void write_of_pages(void)
{
	struct ibv_mr *mr;

	/* A table of which no page is left would go by itself. */
	CHECK(!madvise(page + 2 * PAGE, 2 * PAGE, MADV_DONTNEED));
	mr = reg_odp(&s, page, 4 * PAGE, RIGHTS);
	CHECK(!advised(mr, IBV_ADVISE_MR_ADVICE_PREFETCH, 1, page, 2 * PAGE));
	CHECK(!post(&s, 1, IBV_WR_RDMA_WRITE, at(mr, page, 4 * PAGE), (uintptr_t)c.buf,
		    c.open->rkey, IBV_SEND_SIGNALED));
	expect(s.id->send_cq, 1, IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr));
}

/* What was asked for on behalf of the many, and is not wanted any more, is let go. */
CASE("on demand", odp_no_table_is_left_by_a_write)
{
	page = map_at(NULL, 4 * PAGE, -1);
	leaves_no_pages(write_of_pages);
}

/* Of the calling thread; a worker's are its own. */
static long faults(void)
{
	struct rusage usage;

	CHECK(!getrusage(RUSAGE_THREAD, &usage));
	return usage.ru_minflt + usage.ru_majflt;
}

/* Few at a time are no reason to wait for one, however many there were before. */
CASE("on demand", odp_prefetch_is_not_waited_for)
{
	enum ibv_advise_mr_advice writes = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	char *area = map_at(NULL, AREA, -1);
	struct ibv_mr *mr = reg_odp(&s, area, AREA, RIGHTS);
	const int rounds = 20, pages = AREA / PAGE / (rounds + 1);
	double end = now() + SECONDS;
	long before, own;

	madvise(area, AREA, MADV_NOHUGEPAGE);
	for (int i = 0; i <= rounds; i++) {
		char *from = area + i * pages * PAGE;

		before = faults();
		CHECK(!advised(mr, writes, !i, from, pages * PAGE));
		own = faults() - before;
		CHECK(i ? own < pages / 2 : own >= pages);
		while (pages_there(from, pages * PAGE) != pages) {
			CHECK(now() < end);
			usleep(1000);
		}
	}
	CHECK(!ibv_dereg_mr(mr));
}

static void *unmaps_pages(void *arg)
{
	while (!over) {
		CHECK(!munmap(stage, STAGE));
		CHECK(map_at(stage, STAGE, -1) == stage);
		memset(stage, 0x5a, STAGE);
	}
	return NULL;
}

/* What the process has is looked for while munmap() is between taking it away and saying so. */
CASE("on demand", odp_unmapped_amid_advice)
{
	enum ibv_advise_mr_advice present = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	enum ibv_advise_mr_advice reads = IBV_ADVISE_MR_ADVICE_PREFETCH;
	double end = now() + 2;
	pthread_t thread;
	struct ibv_mr *mr;
	int err;

	stage = map_at(NULL, STAGE, -1);
	mr = reg_odp(&s, stage, STAGE, RIGHTS);
	CHECK(!pthread_create(&thread, NULL, unmaps_pages, NULL));
	while (now() < end) {
		CHECK(!advised(mr, present, 1, stage, STAGE));
		err = advised(mr, reads, 1, stage, STAGE / 2);
		CHECK(!err || err == EFAULT);
	}
	over = 1;
	pthread_join(thread, NULL);
	read_from(stage, mr->rkey, sge(c.own, 0, BYTES));
	CHECK(!memcmp(c.own->addr, stage, BYTES));
	CHECK(!ibv_dereg_mr(mr));
}

CASE("on demand", odp_prefetch_of_nothing)
{
	enum ibv_advise_mr_advice writes = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	char *area = hole(10 * PAGE);
	struct ibv_mr *mr = reg_odp(&s, area, MIB, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *reader = reg_odp(&s, area, MIB, IBV_ACCESS_REMOTE_READ);

	CHECK(advised(mr, writes, 1, area, MIB) == EFAULT);
	CHECK(!advised(mr, writes, 0, area, MIB));
	CHECK(!advised(mr, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 1, area, MIB));
	CHECK(advised(mr, writes, 1, area, MIB + 1) == EFAULT);
	CHECK(advised(reader, writes, 1, area, PAGE) == EPERM);
	for (int i = 0; i < 200; i++)
		CHECK(!advised(mr, writes, 0, area, MIB));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(reader));
	works(&c, &s);
}
