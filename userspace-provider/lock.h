/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The lock of a queue. One whose owner promised to use it from one thread at a
 * time, by a thread domain or when creating the CQ, costs nothing.
 */
#ifndef WEFT_LOCK_H
#define WEFT_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct weft_lock {
	pthread_spinlock_t spin;
	bool single_threaded;
};

static inline void weft_lock_init(struct weft_lock *l, bool single_threaded)
{
	pthread_spin_init(&l->spin, PTHREAD_PROCESS_PRIVATE);
	l->single_threaded = single_threaded;
}

static inline void weft_lock_fini(struct weft_lock *l)
{
	pthread_spin_destroy(&l->spin);
}

static inline void weft_lock(struct weft_lock *l)
{
	if (!l->single_threaded)
		pthread_spin_lock(&l->spin);
}

static inline void weft_unlock(struct weft_lock *l)
{
	if (!l->single_threaded)
		pthread_spin_unlock(&l->spin);
}

#endif
