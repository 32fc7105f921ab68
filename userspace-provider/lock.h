/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The lock of a queue. One whose owner promised to use it from one thread at a
 * time, by a thread domain or when creating the CQ, costs nothing; the others are
 * taken and released inline, since a call to another library costs as much as the rest.
 *
 * A child may inherit a lock that a thread of its parent held, and has no such thread.
 * The holder's generation stands in the lock: with an older one it is free.
 *
 *	0, or an older generation --- weft_lock() ---> generation --- weft_unlock() ---> 0
 */
#ifndef WEFT_LOCK_H
#define WEFT_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

struct weft_lock {
	uint32_t holder;	/* its generation, 0: it is free */
	bool single_threaded;
};

static inline void weft_lock_init(struct weft_lock *l, bool single_threaded)
{
	l->holder = 0;
	l->single_threaded = single_threaded;
}

/* How long to sleep between two looks at what another thread or process does. */
#define WEFT_PAUSE_NS 50000

/* Another thread has it: spins, and then sleeps, since a holder may be in a system call. */
void weft_lock_wait(struct weft_lock *l);

static inline bool weft_lock_try(struct weft_lock *l)
{
	uint32_t now = weft_generation;

	return __atomic_exchange_n(&l->holder, now, __ATOMIC_ACQUIRE) != now;
}

static inline void weft_lock(struct weft_lock *l)
{
	if (!l->single_threaded && !weft_lock_try(l))
		weft_lock_wait(l);
}

static inline void weft_unlock(struct weft_lock *l)
{
	if (!l->single_threaded)
		__atomic_store_n(&l->holder, 0, __ATOMIC_RELEASE);
}

#endif
