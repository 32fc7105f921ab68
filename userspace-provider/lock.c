// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Waiting for the lock of a queue. */
#include "lock.h"

#include <time.h>

/* A holder that is running has done with it by then. */
#define SPINS 1000

#define PAUSE_MIN 50000		/* nanoseconds */
#define PAUSE_MAX 1000000

static void pause_cpu(void)
{
#if __has_builtin(__builtin_ia32_pause)
	__builtin_ia32_pause();
#endif
}

static void pause_ns(long nanoseconds)
{
	const struct timespec moment = { .tv_nsec = nanoseconds };

	nanosleep(&moment, NULL);
}

void weft_lock_pause(void)
{
	pause_ns(PAUSE_MIN);
}

/*
 * Whoever resizes a queue holds its lock over a system call, and on a CPU that the caller
 * has for itself, as under a real-time policy, a holder that was preempted never runs.
 */
void weft_lock_wait(struct weft_lock *l)
{
	long nanoseconds = PAUSE_MIN;
	int spins = 0;

	do {
		while (__atomic_load_n(&l->holder, __ATOMIC_RELAXED) == weft_generation) {
			if (spins++ < SPINS) {
				pause_cpu();
				continue;
			}
			pause_ns(nanoseconds);
			if (nanoseconds < PAUSE_MAX)
				nanoseconds *= 2;
		}
	} while (!weft_lock_try(l));
}
