// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Waiting for the lock of a queue. */
#include "lock.h"

#include <time.h>

/* A holder that is running has done with it by then. */
#define SPINS 1000

#define PAUSE_MAX_NS 1000000

#if __has_builtin(__builtin_ia32_pause)
#define pause_cpu() __builtin_ia32_pause()
#else
#define pause_cpu() ((void)0)
#endif

/*
 * A thread that resizes a queue holds its lock over a system call, and on a CPU that the caller
 * has for itself, as under a real-time policy, a holder that was preempted never runs.
 */
void weft_lock_wait(struct weft_lock *l)
{
	struct timespec moment = { .tv_nsec = WEFT_PAUSE_NS };
	int spins = 0;

	do {
		while (__atomic_load_n(&l->holder, __ATOMIC_RELAXED) == weft_generation) {
			if (spins++ < SPINS) {
				pause_cpu();
				continue;
			}
			nanosleep(&moment, NULL);
			if (moment.tv_nsec < PAUSE_MAX_NS)
				moment.tv_nsec *= 2;
		}
	} while (!weft_lock_try(l));
}
