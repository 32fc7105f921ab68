/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The lock of a queue. One whose owner promised to use it from one thread at a
 * time, by a thread domain or when creating the CQ, costs nothing; the others are
 * taken and left in line, since a call to another library is as dear as the rest.
 */
#ifndef WEFT_LOCK_H
#define WEFT_LOCK_H

#include <stdbool.h>

struct weft_lock {
	bool held;
	bool single_threaded;
};

static inline void weft_lock_init(struct weft_lock *l, bool single_threaded)
{
	l->held = false;
	l->single_threaded = single_threaded;
}

static inline void weft_lock_pause(void)
{
#if __has_builtin(__builtin_ia32_pause)
	__builtin_ia32_pause();
#endif
}

static inline void weft_lock(struct weft_lock *l)
{
	if (l->single_threaded)
		return;
	while (__atomic_exchange_n(&l->held, true, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&l->held, __ATOMIC_RELAXED))
			weft_lock_pause();
}

static inline void weft_unlock(struct weft_lock *l)
{
	if (!l->single_threaded)
		__atomic_store_n(&l->held, false, __ATOMIC_RELEASE);
}

#endif
