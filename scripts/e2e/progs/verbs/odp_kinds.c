// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * On-demand paging of what is not plain memory: swapped out, huge pages, windows on it; and to
 * which process it is charged.
 */
#define _GNU_SOURCE
#include "odp.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE	(2 * MIB)

/* --- swap --------------------------------------------------------------------------------- */

static int has_swap(void)
{
	char line[256];
	int lines = 0;
	FILE *swaps = fopen("/proc/swaps", "r");

	while (swaps && fgets(line, sizeof(line), swaps))
		lines++;
	if (swaps)
		fclose(swaps);
	return lines > 1;
}

/* How many of these pages are in swap; see proc_pid_pagemap(5). */
static size_t swapped(const char *from, size_t bytes)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	size_t count = 0;
	uint64_t entry;

	CHECK(fd >= 0);
	for (size_t i = 0; i < bytes / PAGE; i++) {
		CHECK(pread(fd, &entry, 8, ((uintptr_t)from / PAGE + i) * 8) == 8);
		count += entry >> 62 & 1;
	}
	close(fd);
	return count;
}

/* Pages that another CPU has just made are passed over for a while. */
static void swap_out(char *from, size_t bytes)
{
	double end = now() + SECONDS;

	do {
		CHECK(!madvise(from, bytes, MADV_PAGEOUT));
		if (swapped(from, bytes) > bytes / PAGE * 9 / 10)
			return;
		usleep(10000);
	} while (now() < end);
	CHECK(!"they are swapped out");
}

/* What a peer wrote goes to swap like anything else, and comes back when it is accessed. */
UNLISTED(odp_swapped_out)
{
	char *area = map_at(NULL, MIB, -1), *near = map_at(NULL, 2 * MIB, -1);
	struct ibv_mr *near_mr = ibv_reg_mr(c.id->pd, near, 2 * MIB, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr = reg_odp(&s, area, MIB, RIGHTS);
	unsigned long waits;

	if (!has_swap())
		SKIP("no swap");
	CHECK(near_mr);
	for (uint32_t seed = 1; seed <= 3; seed++) {
		make_words(near, MIB, seed);
		write_to(area, mr->rkey, at(near_mr, near, MIB));
		written(&s);
		make_words(near, 8, seed); /* where the Read of written() went may be ours */
		swap_out(area, MIB);
		waits = counted("odp_page_waits");
		read_from(area, mr->rkey, at(near_mr, near + MIB, MIB));
		CHECK(has_words(near + MIB, MIB, seed));
		CHECK(counted("odp_page_waits") > waits);
		swap_out(area, MIB);
		CHECK(has_words(area, MIB, seed));
	}
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(near_mr));
}

static void *swaps_out(void *arg)
{
	while (!over) {
		madvise(stage, STAGE, MADV_PAGEOUT);
		usleep(200);
	}
	return NULL;
}

UNLISTED(odp_swapped_out_amid_traffic)
{
	if (!has_swap())
		SKIP("no swap");
	stage = map_at(NULL, STAGE, -1);
	hammer(swaps_out);
}

/* --- huge pages ----------------------------------------------------------------------------- */

static char *huge(void)
{
	char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (area == MAP_FAILED)
		SKIP("no huge pages available");
	return area;
}

UNLISTED(odp_huge_pages)
{
	static const int flags[] = { 0, IBV_ACCESS_HUGETLB };
	struct ibv_mr *near_mr, *far_mr;
	char *near, *far;

	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		near = huge();
		far = huge();
		near_mr = reg_odp(&c, near, AREA, RIGHTS | flags[i]);
		far_mr = reg_odp(&s, far, AREA, RIGHTS | flags[i]);
		every_operation(near_mr, near, far_mr, far);
		/* Others come in their place. */
		CHECK(!madvise(far, HUGE_PAGE, MADV_DONTNEED));
		make_words(near, MIB, 9);
		write_to(far + MIB / 2, far_mr->rkey, at(near_mr, near, MIB));
		written(&s);
		CHECK(has_words(far + MIB / 2, MIB, 9));
		CHECK(!munmap(far, AREA));
		CHECK(!ibv_dereg_mr(near_mr) && !ibv_dereg_mr(far_mr));
		CHECK(!munmap(near, AREA));
	}
}

/* --- windows -------------------------------------------------------------------------------- */

#define MW_ACCESS	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void bind_window(struct ibv_mw *mw, struct ibv_mr *mr, char *from, size_t bytes)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 30,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, rkey, { mr, (uintptr_t)from, bytes, MW_ACCESS } },
	};

	CHECK(!ibv_post_send(s.id->qp, &wr, &bad));
	expect(s.id->send_cq, 30, IBV_WC_SUCCESS);
	mw->rkey = rkey;
}

/* A window on pages that are not there; what is at its addresses counts when it is used. */
CASE("on demand", odp_window)
{
	char *area = map_at(NULL, AREA, -1);
	struct ibv_mr *mr = reg_odp(&s, area, AREA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(s.id->pd, IBV_MW_TYPE_2);
	unsigned long waits = counted("odp_page_waits");

	CHECK(mw);
	bind_window(mw, mr, area + MIB, MIB);
	for (uint32_t seed = 1; seed <= 2; seed++) {
		make_words(c.own->addr, BYTES, seed);
		write_to(area + MIB + 100, mw->rkey, sge(c.own, 0, BYTES));
		memset(c.own->addr, 0, BYTES);
		read_from(area + MIB + 100, mw->rkey, sge(c.own, 0, BYTES));
		CHECK(has_words(c.own->addr, BYTES, seed));
		CHECK(has_words(area + MIB + 100, BYTES, seed));
		CHECK(!munmap(area + MIB, MIB));
		map_at(area + MIB, MIB, -1);
		read_from(area + MIB, mw->rkey, sge(c.own, 0, BYTES));
		for (int i = 0; i < BYTES; i++)
			CHECK(!((char *)c.own->addr)[i]);
	}
	CHECK(counted("odp_page_waits") > waits);
	/* Beyond it is memory of the region, which grants nothing itself. */
	CHECK(!post(&c, 2, IBV_WR_RDMA_READ, sge(c.own, 0, PAGE), (uintptr_t)area + MIB - PAGE,
		    mw->rkey, IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	flushes(&c);
	flushes(&s);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
}

/* Its pages have gone while it was bound. */
CASE("on demand", odp_window_on_nothing)
{
	char *area = map_at(NULL, AREA, -1);
	struct ibv_mr *mr = reg_odp(&s, area, AREA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(s.id->pd, IBV_MW_TYPE_2);

	CHECK(mw);
	bind_window(mw, mr, area, MIB);
	write_to(area, mw->rkey, sge(c.own, 0, BYTES));
	read_from(area, mw->rkey, sge(c.own, 0, BYTES)); /* the Write has been placed */
	CHECK(!munmap(area, MIB));
	CHECK(!post(&c, 2, IBV_WR_RDMA_READ, sge(c.own, 0, PAGE), (uintptr_t)area, mw->rkey,
		    IBV_SEND_SIGNALED));
	expect(c.id->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	flushes(&c);
	flushes(&s);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
}

/* --- faults that hang --------------------------------------------------------------------------- */

/*
 * No page of VERBS_FILE can be written while its filesystem is frozen, and a peer writes to one. The
 * caller removes the module meanwhile, and sends SIGUSR1 then.
 */
UNLISTED(odp_fault_that_hangs)
{
	double end = now() + SECONDS;
	unsigned long waits;
	struct ibv_mr *mr;
	sigset_t thaw;
	char *area, *page;
	int fd, sig;

	sigemptyset(&thaw);
	sigaddset(&thaw, SIGUSR1);
	CHECK(!sigprocmask(SIG_BLOCK, &thaw, NULL));
	fd = open(getenv("VERBS_FILE"), O_RDWR);
	CHECK(fd >= 0);
	area = map_at(NULL, 2 * PAGE, -1);
	page = map_at(area + PAGE, PAGE, fd);
	mr = reg_odp(&s, area, 2 * PAGE, RIGHTS);
	write_to(area, mr->rkey, sge(c.own, 0, 8));
	read_from(area, mr->rkey, sge(c.own, 0, 8)); /* the Write has been placed */
	CHECK(!ioctl(fd, FIFREEZE, 0));
	waits = counted("odp_page_waits");
	CHECK(!post(&c, 1, IBV_WR_RDMA_WRITE, sge(c.own, 0, 8), (uintptr_t)page, mr->rkey, 0));
	while (counted("odp_page_waits") == waits) {
		CHECK(now() < end);
		usleep(10000);
	}
	printf("ready\n");
	CHECK(!sigwait(&thaw, &sig));
	/* Of what the fault keeps the last page goes, and the kernel learns of it. */
	CHECK(!madvise(area, PAGE, MADV_DONTNEED));
	CHECK(!ioctl(fd, FITHAW, 0));
	exit(0); /* there is no device any more */
}

/* --- what is charged ----------------------------------------------------------------------------- */

#define CHUNKS		300
#define CHUNK_BYTES	(2 * MIB)

/* A value of memory.stat in this process' memory cgroup. */
static long charged(const char *name)
{
	char path[200], line[300], key[100];
	long value, found = -1;
	FILE *file = fopen("/proc/self/cgroup", "r");

	CHECK(file && fgets(line, sizeof(line), file) && sscanf(line, "0::%150s", key) == 1);
	fclose(file);
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", key);
	file = fopen(path, "r");
	if (!file)
		SKIP("this process has no memory cgroup");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%99s %ld", key, &value) == 2 && !strcmp(key, name))
			found = value;
	fclose(file);
	CHECK(found >= 0);
	return found;
}

/* The kernel's memory, but for the page tables that any program gets by using its own. */
static long charged_tables(void)
{
	return charged("kernel") - charged("pagetables");
}

static char *area_of_chunks(void)
{
	char *area = mmap(NULL, CHUNKS * CHUNK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(area != MAP_FAILED && !madvise(area, CHUNKS * CHUNK_BYTES, MADV_NOHUGEPAGE));
	return area;
}

static void write_to_each_chunk(struct ibv_mr *mr, char *area)
{
	for (int i = 0; i < CHUNKS; i++)
		write_to(area + i * CHUNK_BYTES, mr->rkey, sge(c.own, 0, 8));
	written(&s);
}

/* It is given back, though not all is seen at once. */
static void charged_no_more_than(long most)
{
	double end = now() + SECONDS;

	while (charged_tables() > most && now() < end)
		usleep(10000);
	printf("%ld bytes charged, at most %ld\n", charged_tables(), most);
	CHECK(charged_tables() <= most);
}

/* What a peer makes the device remember is its process', though a worker allocates it. */
UNLISTED(odp_is_charged_to_the_process)
{
	char *area = area_of_chunks();
	struct ibv_mr *mr = implicit(&s);
	struct ibv_sge nowhere;
	long before, grown;

	before = charged_tables();
	write_to_each_chunk(mr, area);
	grown = charged_tables() - before;
	printf("%ld bytes charged for %d chunks\n", grown, CHUNKS);
	/* What a CPU has charged is seen when it is 64 pages. */
	CHECK(grown >= (CHUNKS - 64 * sysconf(_SC_NPROCESSORS_ONLN)) * (long)PAGE);
	/* Memory that goes is forgotten, and what is not there takes nothing. */
	CHECK(!munmap(area, CHUNKS * CHUNK_BYTES));
	charged_no_more_than(before + grown / 4);
	for (int i = 0; i < CHUNKS; i++) {
		nowhere = at(mr, area + i * CHUNK_BYTES, 8);
		CHECK(!ibv_advise_mr(s.id->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
				     IBV_ADVISE_MR_FLAG_FLUSH, &nowhere, 1));
	}
	charged_no_more_than(before + grown / 4);
	write_to_each_chunk(mr, area_of_chunks());
	CHECK(!ibv_dereg_mr(mr));
	charged_no_more_than(before + grown / 4);
}
