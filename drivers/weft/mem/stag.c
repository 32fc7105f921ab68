// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The STag table of a device. Accesses pin an STag for the time of one run of copies;
 * taking its rights away stops new pins at once and ends when the last old one
 * is dropped. RFC 5041, 7.1; RFC 5042, 5.
 */
#include "mem/stag.h"

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "base/limits.h"

/**
 * weft_stag_table_init - set up an empty table
 * @t: of a new device
 *
 * Context: any.
 */
void weft_stag_table_init(struct weft_stag_table *t)
{
	xa_init_flags(&t->xa, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	memset(t->recent, 0, sizeof(t->recent));
}

/**
 * weft_stag_table_destroy - give the table back
 * @t: all STags are freed
 *
 * Context: may sleep.
 */
void weft_stag_table_destroy(struct weft_stag_table *t)
{
	WARN_ON_ONCE(!xa_empty(&t->xa));
	xa_destroy(&t->xa);
}

/**
 * weft_stag_alloc - a new STag that gives access to nothing yet
 * @t: table of the device
 * @kind: what it is for
 * @pd: number of its protection domain
 *
 * Context: may sleep. Return: the region, owned by the caller, or an ERR_PTR.
 */
struct weft_mem_region *weft_stag_alloc(struct weft_stag_table *t, enum weft_stag_kind kind, u32 pd)
{
	struct weft_mem_region *mr;
	struct xa_limit limit;
	u32 index;
	int ret;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	mr->kind = kind;
	mr->pd = pd;
	mr->state = WEFT_STAG_IDLE;
	spin_lock_init(&mr->lock);
	kref_init(&mr->ref);
	/*
	 * Hard to guess and spread over all values: RFC 5040, 8.1.1. Index 0 is never used:
	 * STag 0 stays free for the local DMA key. Others find the region before it knows its
	 * own STag, but it is not valid.
	 */
	limit = XA_LIMIT(max(weft_stag_index(get_random_u32()), 1U), WEFT_MAX_STAG);
	ret = xa_alloc(&t->xa, &index, mr, limit, GFP_KERNEL);
	if (ret == -EBUSY)
		ret = xa_alloc(&t->xa, &index, mr, XA_LIMIT(1, WEFT_MAX_STAG), GFP_KERNEL);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret == -EBUSY ? -ENOMEM : ret);
	}
	mr->index = index;
	WRITE_ONCE(mr->grant.stag, index << WEFT_STAG_KEY_BITS | (u8)get_random_u32());
	/*
	 * Only the owner enters a region and only the owner takes it out, before it goes
	 * from the table: a slot never holds what RCU may be about to free.
	 */
	rcu_assign_pointer(t->recent[index % WEFT_STAG_RECENT], mr);
	return mr;
}

/**
 * weft_stag_enable - make an STag valid
 * @mr: the region, IDLE
 * @grant: what it gives access to; @grant.stag with the index of @mr
 *
 * Context: any. Return: 0; -EBUSY: it is valid or still draining; -ENODEV: it
 * is being destroyed.
 */
int weft_stag_enable(struct weft_mem_region *mr, const struct weft_stag_grant *grant)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&mr->lock, flags);
	if (mr->dead) {
		ret = -ENODEV;
	} else if (mr->state != WEFT_STAG_IDLE) {
		ret = -EBUSY;
	} else {
		mr->grant = *grant;
		WRITE_ONCE(mr->state, WEFT_STAG_VALID);
		/* Pairs with smp_mb__after_atomic() in weft_stag_pin(). */
		smp_wmb();
		atomic_set(&mr->pins, WEFT_STAG_UNUSED);
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	return ret;
}

/**
 * weft_stag_rename - give an invalid STag another key
 * @mr: the region
 * @stag: with the index of @mr
 *
 * Context: any. Return: 0, or -EBUSY when it is valid or still draining.
 */
int weft_stag_rename(struct weft_mem_region *mr, u32 stag)
{
	unsigned long flags;
	int ret = -EBUSY;

	spin_lock_irqsave(&mr->lock, flags);
	if (mr->state == WEFT_STAG_IDLE) {
		WRITE_ONCE(mr->grant.stag, stag);
		ret = 0;
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	return ret;
}

/**
 * weft_stag_drained - the last pin of a disabled STag is gone
 * @mr: the region; its owner may free it as soon as it sees IDLE, hence RCU
 *
 * Context: any.
 */
void weft_stag_drained(struct weft_mem_region *mr)
{
	struct weft_mem_region *parent;
	unsigned long flags;

	rcu_read_lock();
	/* Before IDLE: a wait for a window ends with its region free. */
	parent = mr->grant.parent;
	mr->grant.parent = NULL;
	if (parent)
		weft_stag_drop_window(parent);

	spin_lock_irqsave(&mr->lock, flags);
	/* Pairs with weft_stag_draining(): the copies are done. */
	smp_store_release(&mr->state, WEFT_STAG_IDLE);
	spin_unlock_irqrestore(&mr->lock, flags);
	/* Pairs with wait_var_event(): the waiter sees IDLE, or we see the waiter. */
	smp_mb();
	wake_up_var(&mr->state);
	rcu_read_unlock();
}

/**
 * weft_stag_disable - let no new access begin
 * @mr: the region
 *
 * Accesses that began before go on; weft_stag_draining() tells.
 *
 * Context: any. Return: true if it was valid.
 */
bool weft_stag_disable(struct weft_mem_region *mr)
{
	unsigned long flags;
	bool was_valid;

	spin_lock_irqsave(&mr->lock, flags);
	was_valid = mr->state == WEFT_STAG_VALID;
	if (was_valid)
		WRITE_ONCE(mr->state, WEFT_STAG_DRAINING);
	spin_unlock_irqrestore(&mr->lock, flags);

	/* The pin of validity. */
	if (was_valid)
		weft_stag_unpin(mr);
	return was_valid;
}

/**
 * weft_stag_draining - are accesses from before an invalidation under way?
 * @mr: the region
 *
 * Context: any. When false, what those accesses did is visible to the caller.
 */
bool weft_stag_draining(const struct weft_mem_region *mr)
{
	/* Pairs with weft_stag_drained(). */
	return smp_load_acquire(&mr->state) == WEFT_STAG_DRAINING;
}

/**
 * weft_stag_drain - wait until accesses from before an invalidation are over
 * @mr: disabled region, which the caller owns or holds a reference to
 *
 * Context: process, may sleep for the time of a run of copies.
 */
void weft_stag_drain(struct weft_mem_region *mr)
{
	wait_var_event(&mr->state, !weft_stag_draining(mr));
}

/**
 * weft_stag_revoke - take a region away from everybody
 * @mr: the region
 * @for_good: it is to be freed, weft_stag_enable() fails from now on
 *
 * Context: process, may sleep; by the owner. Return: 0: it is no longer
 * accessed; -EBUSY: windows are bound to it, nothing was changed.
 */
int weft_stag_revoke(struct weft_mem_region *mr, bool for_good)
{
	unsigned long flags;
	bool was_valid;

	spin_lock_irqsave(&mr->lock, flags);
	if (mr->windows) {
		spin_unlock_irqrestore(&mr->lock, flags);
		return -EBUSY;
	}
	mr->dead |= for_good;
	was_valid = mr->state == WEFT_STAG_VALID;
	if (was_valid)
		WRITE_ONCE(mr->state, WEFT_STAG_DRAINING);
	spin_unlock_irqrestore(&mr->lock, flags);

	/* The pin of validity. */
	if (was_valid)
		weft_stag_unpin(mr);
	weft_stag_drain(mr);
	return 0;
}

/**
 * weft_stag_free - give an STag back
 * @t: its table
 * @mr: revoked for good, or never enabled
 *
 * The owner frees the backing itself, before. Context: may sleep.
 */
void weft_stag_free(struct weft_stag_table *t, struct weft_mem_region *mr)
{
	cmpxchg(&t->recent[mr->index % WEFT_STAG_RECENT], RCU_INITIALIZER(mr), NULL);
	xa_erase(&t->xa, mr->index);
	weft_stag_put(mr);
}

/**
 * weft_stag_inspect - look at an STag
 * @mr: a region that cannot go away just now
 * @out: written completely
 *
 * Context: any.
 */
void weft_stag_inspect(struct weft_mem_region *mr, struct weft_stag_details *out)
{
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	*out = (struct weft_stag_details){
		.kind = mr->kind,
		.state = mr->state,
		.access = mr->grant.access,
		.length = mr->grant.length,
		.pins = atomic_read(&mr->pins),
		.windows = mr->windows,
	};
	spin_unlock_irqrestore(&mr->lock, flags);
}

/**
 * weft_stag_find - refer to an STag, valid or not
 * @t: table of the device
 * @stag: only the index counts
 *
 * Context: any. Return: the region with a reference to the structure, which
 * does not keep its memory; NULL when there is none.
 */
struct weft_mem_region *weft_stag_find(struct weft_stag_table *t, u32 stag)
{
	struct weft_mem_region *mr;

	rcu_read_lock();
	mr = xa_load(&t->xa, weft_stag_index(stag));
	if (mr && !kref_get_unless_zero(&mr->ref))
		mr = NULL;
	rcu_read_unlock();
	return mr;
}

static void release_stag(struct kref *ref)
{
	struct weft_mem_region *mr = container_of(ref, struct weft_mem_region, ref);

	kfree_rcu(mr, rcu);
}

/**
 * weft_stag_put - drop a reference to the structure
 * @mr: the region
 *
 * Context: any.
 */
void weft_stag_put(struct weft_mem_region *mr)
{
	kref_put(&mr->ref, release_stag);
}

/**
 * weft_stag_add_window - let a window borrow the memory of a region
 * @mr: the region
 *
 * From here to weft_stag_drop_window() the region cannot be revoked.
 *
 * Context: any, @mr pinned. Return: 0, or -EINVAL when it is not valid any more.
 */
int weft_stag_add_window(struct weft_mem_region *mr)
{
	unsigned long flags;
	bool valid;

	spin_lock_irqsave(&mr->lock, flags);
	valid = mr->state == WEFT_STAG_VALID;
	if (valid)
		mr->windows++;
	spin_unlock_irqrestore(&mr->lock, flags);
	return valid ? 0 : -EINVAL;
}

/**
 * weft_stag_drop_window - a window has let go of a region
 * @mr: the region; may be freed by its owner from here on
 *
 * Context: any, in an RCU read section.
 */
void weft_stag_drop_window(struct weft_mem_region *mr)
{
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	mr->windows--;
	spin_unlock_irqrestore(&mr->lock, flags);
}
