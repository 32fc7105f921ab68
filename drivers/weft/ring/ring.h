/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One queue's memory: a control block and fixed-stride entries, zeroed, and
 * mappable into the process that owns the queue. Layout: uapi/weft-abi.h.
 */
#ifndef WEFT_RING_RING_H
#define WEFT_RING_RING_H

#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>

#include "uapi/weft-abi.h"

struct weft_ring_map;
struct weft_ring_space;

/**
 * struct weft_ring - memory of one queue
 * @mem: where it begins, control block first
 * @entries: a power of two
 * @stride: bytes from entry to entry
 * @map: present while it may be mapped by user space
 *
 * Owned by the queue it is embedded in. Pages live until the last mapping is
 * gone, even if the ring is freed before.
 */
struct weft_ring {
	void *mem;
	u32 entries;
	u32 stride;
	struct weft_ring_map *map;
};

int weft_ring_init(struct weft_ring *ring, u32 entries, u32 stride, struct weft_ring_space *space);
void weft_ring_free(struct weft_ring *ring);
void weft_ring_copy_ahead(struct weft_ring *to, const struct weft_ring *from, u32 begin, u32 end);

/* In ring/mmap.c, which knows what can be mapped. */
void weft_ring_describe(const struct weft_ring *ring, struct weft_queue_map *out);

/* Length of control block and entries. */
static inline u32 weft_ring_bytes(const struct weft_ring *ring)
{
	return WEFT_CTL_BYTES + ring->entries * ring->stride;
}

static inline void *weft_ring_ctl(const struct weft_ring *ring)
{
	return ring->mem;
}

/* Inline: every entry of every queue is reached through it. */
static inline void *weft_ring_entry(const struct weft_ring *ring, u32 index)
{
	return ring->mem + WEFT_CTL_BYTES + (size_t)(index & (ring->entries - 1)) * ring->stride;
}

/* Entries from @begin up to @end; their indices stay the same. Context: lock of the queue held. */
static inline void weft_ring_copy(struct weft_ring *to, const struct weft_ring *from, u32 begin,
				  u32 end)
{
	u32 i;

	for (i = begin; i != end; i++)
		memcpy(weft_ring_entry(to, i), weft_ring_entry(from, i), from->stride);
}

/*
 * Two lock classes, as spin_lock_init() makes one wherever it is written: lockdep must not conclude
 * from kernel consumers, whose queues are used in interrupts, that those of processes are as well.
 */
static inline void weft_ring_lock_init(spinlock_t *lock, bool user)
{
	if (user)
		spin_lock_init(lock);
	else
		spin_lock_init(lock);
}

/*
 * The lock of a queue. What a process owns is touched in process and softirq
 * context only; kernel consumers may also post and poll with interrupts off.
 * Return: what weft_ring_unlock() wants back.
 */
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
