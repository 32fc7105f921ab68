// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Takes memory away.
 *
 *	reclaim touch MB ROUNDS	write all of it and check it backwards, in rounds
 *	reclaim leave MB	pin memory until no more than that is available; say so;
 *				keep it until killed
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096
#define STEP	(4UL << 20)

static unsigned char *take(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		       0);

	return p == MAP_FAILED ? NULL : p;
}

/* Every word of every page differs from round to round, and does not compress. */
static void fill(uint64_t *page, uint64_t seed)
{
	for (unsigned int i = 0; i < PAGE / sizeof(*page); i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		page[i] = seed;
	}
}

static int touch(size_t pages, int rounds)
{
	unsigned char *mem = take(pages * PAGE, 0);
	uint64_t due[PAGE / sizeof(uint64_t)];

	if (!mem)
		return 1;
	for (int round = 0; round < rounds; round++) {
		for (size_t n = 0; n < pages; n++)
			fill((uint64_t *)(mem + n * PAGE), n * 1000 + round);
		/* What is still in memory comes first, so that each page is fetched once. */
		for (size_t n = pages; n-- > 0;) {
			fill(due, n * 1000 + round);
			if (memcmp(mem + n * PAGE, due, PAGE)) {
				printf("round %d: page %zu is not what was written\n", round, n);
				return 1;
			}
		}
		printf("round %d: %zu pages as written\n", round, pages);
		fflush(stdout);
	}
	return 0;
}

static long available_kb(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kb = -1;

	while (f && kb < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "MemAvailable: %ld", &kb);
	if (f)
		fclose(f);
	return kb;
}

/* It is not its memory that shall be freed. */
static void spare_me(void)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "w");

	if (f) {
		fputs("-1000", f);
		fclose(f);
	}
}

static int leave(long kb)
{
	spare_me();
	while (available_kb() > kb + (long)(STEP >> 10)) {
		if (!take(STEP, MAP_LOCKED | MAP_POPULATE))
			return 1;
	}
	printf("%ld KiB are left\n", available_kb());
	fflush(stdout);
	return pause();
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "touch"))
		return touch(strtoul(argv[2], NULL, 10) * (1 << 20) / PAGE, atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "leave"))
		return leave(atol(argv[2]) * 1024);
	fprintf(stderr, "usage: reclaim touch MB ROUNDS | leave MB\n");
	return 2;
}
