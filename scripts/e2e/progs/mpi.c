// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * An MPI program of which every byte is checked: messages, one-sided access,
 * collectives. It is given to two or more ranks by mpirun.
 *
 * Usage: mpi [CASE]...	prints "CASE: passed" for each, on rank 0
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (int)(sizeof(table) / sizeof((table)[0]))
#define MIB (1 << 20)
#define LARGE (64 * MIB)
#define WORDS 4096

static int rank, ranks;

/* A rank that finds a fault takes all others with it. */
#define CHECK(what)                                                                  \
	do {                                                                         \
		if (!(what)) {                                                       \
			printf("rank %d, line %d: not %s\n", rank, __LINE__, #what); \
			fflush(stdout);                                              \
			MPI_Abort(MPI_COMM_WORLD, 1);                                \
		}                                                                    \
	} while (0)

static unsigned char pattern_byte(int seed, int i)
{
	return (unsigned char)(seed * 131 + i * 7 + (i >> 8) * 13 + (i >> 16) * 29);
}

static unsigned char *buffer(int size)
{
	unsigned char *p = malloc((size_t)size + 1);

	CHECK(p);
	return p;
}

static void fill(unsigned char *p, int size, int seed)
{
	for (int i = 0; i < size; i++)
		p[i] = pattern_byte(seed, i);
}

static void verify(const unsigned char *p, int size, int seed)
{
	for (int i = 0; i < size; i++)
		CHECK(p[i] == pattern_byte(seed, i));
}

/* There and back, between ranks that are each other's opposite. */
static void exchange(int size, int rounds)
{
	int peer = rank ^ 1;
	unsigned char *out = buffer(size), *in = buffer(size);
	MPI_Status status;
	int count;

	for (int i = 0; i < rounds; i++) {
		fill(out, size, rank + i);
		memset(in, 0xee, (size_t)size + 1);
		if (rank & 1) {
			MPI_Recv(in, size, MPI_BYTE, peer, i, MPI_COMM_WORLD, &status);
			MPI_Send(out, size, MPI_BYTE, peer, i, MPI_COMM_WORLD);
		} else {
			MPI_Send(out, size, MPI_BYTE, peer, i, MPI_COMM_WORLD);
			MPI_Recv(in, size, MPI_BYTE, peer, i, MPI_COMM_WORLD, &status);
		}
		MPI_Get_count(&status, MPI_BYTE, &count);
		CHECK(count == size);
		verify(in, size, peer + i);
		CHECK(in[size] == 0xee);
	}
	free(out);
	free(in);
}

/* The sizes about which transports change their protocol, and their neighbours. */
static void messages(void)
{
	for (int size = 0; size <= 4; size++)
		exchange(size, 4);
	for (int size = 8; size <= 4 * MIB; size *= 2) {
		exchange(size - 1, 2);
		exchange(size, 2);
		exchange(size + 1, 2);
	}
}

static void large(void)
{
	exchange(LARGE, 1);
}

/* Both directions at once, messages taken in another order than they were sent in. */
static void crossing(void)
{
	enum { DEPTH = 64 };
	static const int sizes[] = { 1, 100, 4000, 12000, 70000, 300000 };
	unsigned char *out[DEPTH], *in[DEPTH];
	MPI_Request request[2 * DEPTH];
	int peer = rank ^ 1;

	for (int i = 0; i < DEPTH; i++) {
		int size = sizes[i % COUNT(sizes)];

		out[i] = buffer(size);
		in[i] = buffer(size);
		fill(out[i], size, rank + i);
		MPI_Isend(out[i], size, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request[i]);
	}
	for (int i = DEPTH - 1; i >= 0; i--)
		MPI_Irecv(in[i], sizes[i % COUNT(sizes)], MPI_BYTE, peer, i, MPI_COMM_WORLD,
			  &request[DEPTH + i]);
	MPI_Waitall(2 * DEPTH, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < DEPTH; i++) {
		verify(in[i], sizes[i % COUNT(sizes)], peer + i);
		free(out[i]);
		free(in[i]);
	}
}

/* Put into the right neighbour, Get from the left one. */
static void put_and_get(void)
{
	static const int sizes[] = { 1, 8, 1000, 4096, 65537, 3 * MIB };
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	unsigned char *shared, *own = buffer(4 * MIB);
	MPI_Win window;

	MPI_Win_allocate(4 * MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
	for (int i = 0; i < COUNT(sizes); i++) {
		fill(own, sizes[i], rank + i);
		MPI_Win_fence(0, window);
		MPI_Put(own, sizes[i], MPI_BYTE, right, 16, sizes[i], MPI_BYTE, window);
		MPI_Win_fence(0, window);
		verify(shared + 16, sizes[i], left + i);
		memset(own, 0, (size_t)sizes[i]);
		MPI_Get(own, sizes[i], MPI_BYTE, right, 16, sizes[i], MPI_BYTE, window);
		MPI_Win_fence(0, window);
		verify(own, sizes[i], rank + i);
	}
	MPI_Win_free(&window);
	free(own);
}

/* Every rank adds to the words of rank 0 at the same time: no addition may be lost. */
static void accumulate(void)
{
	static long ones[WORDS], *shared;
	const int rounds = 20;
	long one = 1, before, sum = 0, all;
	MPI_Win window;

	for (int i = 0; i < WORDS; i++)
		ones[i] = i;
	MPI_Win_allocate(sizeof(ones), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &shared,
			 &window);
	memset(shared, 0, sizeof(ones));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < rounds; i++) {
		MPI_Accumulate(ones, WORDS, MPI_LONG, 0, 0, WORDS, MPI_LONG, MPI_SUM, window);
		MPI_Win_flush(0, window);
		MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window);
		MPI_Win_flush(0, window);
		sum += before;
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	/* What the additions of 1 found are the numbers from 0 on, each once. */
	MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		long n = (long)rounds * ranks;

		CHECK(all == n * (n - 1) / 2);
		CHECK(shared[0] == n);
		for (int i = 1; i < WORDS; i++)
			CHECK(shared[i] == i * n);
	}
	MPI_Win_free(&window);
}

/* Of the ranks that swap a word at once, one wins each round. */
static void swap(void)
{
	const int rounds = 50;
	long *shared, won = 0, all, zero = 0, me = rank + 1, before = -1;
	MPI_Win window;

	MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &shared,
			 &window);
	for (int i = 0; i < rounds; i++) {
		*shared = 0;
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		MPI_Compare_and_swap(&me, &zero, &before, MPI_LONG, 0, 0, window);
		MPI_Win_unlock(0, window);
		won += before == 0;
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Reduce(&won, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0 && all != rounds)
		printf("%ld of %d rounds were won\n", all, rounds);
	CHECK(rank != 0 || all == rounds);
	MPI_Win_free(&window);
}

static void all_to_all(void)
{
	static const int sizes[] = { 1, 64, 5000, 100000, MIB };

	for (int i = 0; i < COUNT(sizes); i++) {
		int size = sizes[i];
		unsigned char *out = buffer(size * ranks), *in = buffer(size * ranks);

		for (int to = 0; to < ranks; to++)
			fill(out + (size_t)to * size, size, rank * 64 + to);
		MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
		for (int from = 0; from < ranks; from++)
			verify(in + (size_t)from * size, size, from * 64 + rank);
		free(out);
		free(in);
	}
}

static void collectives(void)
{
	unsigned char *data = buffer(MIB);
	static double in[WORDS], out[WORDS];

	for (int root = 0; root < ranks; root++) {
		memset(data, 0, MIB);
		if (rank == root)
			fill(data, MIB, root);
		MPI_Bcast(data, MIB, MPI_BYTE, root, MPI_COMM_WORLD);
		verify(data, MIB, root);
	}
	for (int i = 0; i < WORDS; i++)
		in[i] = i + rank;
	MPI_Allreduce(in, out, WORDS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < WORDS; i++)
		CHECK(out[i] == (double)i * ranks + ranks * (ranks - 1) / 2);
	for (int i = 0; i < 100; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	free(data);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "messages", messages },	{ "crossing", crossing },	{ "large", large },
	{ "put_and_get", put_and_get }, { "accumulate", accumulate },	{ "swap", swap },
	{ "all_to_all", all_to_all },	{ "collectives", collectives },
};

static void run_case(const char *name)
{
	for (int i = 0; i < COUNT(cases); i++) {
		double began = MPI_Wtime();

		if (strcmp(cases[i].name, name) != 0)
			continue;
		cases[i].run();
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0)
			printf("%s: passed in %.1f s\n", name, MPI_Wtime() - began);
		fflush(stdout);
		return;
	}
	printf("no case %s\n", name);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(ranks % 2 == 0);
	for (int i = 1; i < argc; i++)
		run_case(argv[i]);
	for (int i = 0; argc == 1 && i < COUNT(cases); i++)
		run_case(cases[i].name);
	MPI_Finalize();
	return 0;
}
