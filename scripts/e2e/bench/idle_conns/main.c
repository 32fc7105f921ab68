// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Many idle connections, of TCP sockets or of RDMA queue pairs: how fast
 * it comes together, and what it costs in memory, kernel and process together.
 *
 * Usage: idle_conns tcp|rdma ADDRESS PORT COUNT
 * Prints: seconds, and KiB per connection (both ends) by MemAvailable and Slab
 */
#include "idle_conns.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

struct memory {
	long available;
	long slab;
};

static struct memory memory_now(void)
{
	struct memory now = { 0 };
	char line[256];
	FILE *file = fopen("/proc/meminfo", "r");

	CHECK("meminfo", file);
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "MemAvailable: %ld", &now.available);
		sscanf(line, "Slab: %ld", &now.slab);
	}
	fclose(file);
	return now;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct memory before, after;
	double began, took;
	opener *open_all;
	int count;

	if (argc != 5)
		return 2;
	open_all = strcmp(argv[1], "tcp") ? rdma_open : tcp_open;
	count = atoi(argv[4]);
	before = memory_now();
	began = seconds_now();
	open_all(argv[2], atoi(argv[3]), count);
	took = seconds_now() - began;
	sleep(1);
	after = memory_now();
	printf("%.6f %.3f %.3f\n", took, (double)(before.available - after.available) / count,
	       (double)(after.slab - before.slab) / count);
	fflush(stdout);
	_exit(0);
}
