/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Objects that resource tracking shows while their owner destroys them.
 */
#ifndef WEFT_VERBS_TRACKED_H
#define WEFT_VERBS_TRACKED_H

#include <linux/compiler.h>
#include <linux/refcount.h>
#include <linux/types.h>

/**
 * struct weft_tracked - how long an object can be looked at
 * @refs: one of its owner, and one of each context that works on it or looks at it
 * @hidden: its owner is destroying it: no dump begins any more
 *
 * The core finds an object for netlink until rdma_restrack_del(), which many kernels call
 * after the driver has destroyed it. So a dump takes a reference, and destroying waits
 * for the last one before it frees what a dump reads; the object itself is the core's and stays
 * until then. All zero: not created yet, and not to be looked at.
 */
struct weft_tracked {
	refcount_t refs;
	bool hidden;
};

/* It is complete. Context: its owner. */
static inline void weft_tracked_init(struct weft_tracked *t)
{
	WRITE_ONCE(t->hidden, false);
	refcount_set(&t->refs, 1);
}

/* For what is done although it is being destroyed. Context: any. Return: false if it is gone. */
static inline bool weft_tracked_get_hidden(struct weft_tracked *t)
{
	return refcount_inc_not_zero(&t->refs);
}

/**
 * weft_tracked_get - begin to look at an object
 * @t: of an object that the core keeps
 *
 * Dumps that follow each other without a gap must not hold off its end, hence @hidden.
 *
 * Context: any. Return: false if it is being destroyed; else weft_tracked_put() follows.
 */
static inline bool weft_tracked_get(struct weft_tracked *t)
{
	return !READ_ONCE(t->hidden) && weft_tracked_get_hidden(t);
}

static inline void weft_tracked_hide(struct weft_tracked *t)
{
	WRITE_ONCE(t->hidden, true);
}

static inline bool weft_tracked_is_hidden(const struct weft_tracked *t)
{
	return READ_ONCE(t->hidden);
}

void weft_tracked_put(struct weft_tracked *t);
void weft_tracked_end(struct weft_tracked *t);

#endif
