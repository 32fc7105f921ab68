/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The lock of a queue. What a process owns is touched in process and softirq
 * context only; kernel consumers may also post and poll with interrupts off.
 */
#ifndef WEFT_RING_LOCK_H
#define WEFT_RING_LOCK_H

#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* Return: what weft_ring_unlock() wants back. */
static inline unsigned long weft_ring_lock(spinlock_t *lock, bool user) __acquires(lock)
{
	unsigned long flags = 0;

	if (!user) {
		spin_lock_irqsave(lock, flags);
	} else if (softirq_count()) {
		spin_lock(lock); /* no softirq gets in between, as it is */
		flags = 1;
	} else {
		spin_lock_bh(lock);
	}
	return flags;
}

static inline void weft_ring_unlock(spinlock_t *lock, bool user, unsigned long flags)
	__releases(lock)
{
	if (!user)
		spin_unlock_irqrestore(lock, flags);
	else if (flags)
		spin_unlock(lock);
	else
		spin_unlock_bh(lock);
}

#endif
