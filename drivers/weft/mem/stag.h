/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The STag table of a device: 24-bit index, key byte, pins, invalidation.
 */
#ifndef WEFT_MEM_STAG_H
#define WEFT_MEM_STAG_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/kref.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct weft_backing;

#define WEFT_STAG_RECENT 256
#define WEFT_STAG_KEY_BITS 8

/* Pins of a valid STag that is not being accessed. */
#define WEFT_STAG_UNUSED 1

/**
 * struct weft_stag_table - all STags of a device
 * @xa: index to struct weft_mem_region; read under RCU, written under its own lock
 * @recent: what was made last of those whose index ends alike; spares most
 *	accesses the walk through @xa. Read under RCU, written by the owners
 */
struct weft_stag_table {
	struct xarray xa;
	struct weft_mem_region __rcu *recent[WEFT_STAG_RECENT];
};

/* What an STag names, and so what gives and takes its rights. */
enum weft_stag_kind {
	WEFT_STAG_REGION,	/* by the verbs, for good */
	WEFT_STAG_FASTREG,	/* by work requests; a peer may invalidate */
	WEFT_STAG_WINDOW1,	/* type 1: bound and bound again */
	WEFT_STAG_WINDOW2,	/* type 2: bound to a QP; a peer may invalidate */
};

/* IDLE -> VALID by enable, -> DRAINING by disable, -> IDLE by the last unpin. */
enum weft_stag_state {
	WEFT_STAG_IDLE,
	WEFT_STAG_VALID,
	WEFT_STAG_DRAINING,
};

/**
 * struct weft_stag_grant - what an STag gives access to while it is valid
 * @stag: index and key
 * @qpn: QP a type 2 window is bound to, 0: any of the domain
 * @access: enum ib_access_flags of remote and local rights
 * @iova: tagged offset of the first byte
 * @length: bytes
 * @offset: of the first byte within @backing
 * @backing: the memory; a window borrows that of its @parent
 * @parent: region a window is bound to, one of its @windows
 */
struct weft_stag_grant {
	u32 stag;
	u32 qpn;
	u32 access;
	u64 iova;
	u64 length;
	u64 offset;
	struct weft_backing *backing;
	struct weft_mem_region *parent;
};

/**
 * struct weft_stag_mapping - pages that a fast registration will install
 * @fresh: mapped since the last registration
 * @iova: tagged offset of the first byte
 * @length: bytes
 * @backing: the pages
 *
 * Owned by the kernel consumer until it posts the registration. Apart from the
 * grant, because consumers map new pages before the invalidation of the old
 * ones has run.
 */
struct weft_stag_mapping {
	bool fresh;
	u64 iova;
	u64 length;
	struct weft_backing *backing;
};

/**
 * struct weft_mem_region - an STag and what it names
 * @kind: enum weft_stag_kind, never changes
 * @pd: number of the protection domain
 * @index: in the table, never changes
 * @grant: stable while the STag is pinned; @grant.stag also while it is not valid
 * @next: of a fast-register region
 * @pins: %WEFT_STAG_UNUSED while valid, plus one per access under way
 * @lock: @state, @dead, @windows, @pd and the writing of @grant
 * @state: enum weft_stag_state
 * @dead: will never be valid again
 * @windows: windows that borrow the memory; the region cannot be taken away
 * @ref: of the structure alone: its owner, and a wait for it to drain
 * @rcu: for its end
 *
 * Owned by the MR or MW that added it; freed through RCU. Accesses change @pins without a lock::
 *
 *	     enable                pin
 *	0 -----------> UNUSED -------------> UNUSED + accesses
 *	^                |    <-------------        |
 *	|                |        unpin             | invalidate, revoke: the pin of validity
 *	|  invalidate,   |                          v is dropped, no new access begins
 *	+----------------+------------------- accesses
 *	   revoke            last unpin
 */
struct weft_mem_region {
	u8 kind;
	u32 pd;
	u32 index;
	struct weft_stag_grant grant;
	struct weft_stag_mapping next;
	atomic_t pins;
	spinlock_t lock; /* state, dead, windows; irqsave */
	u8 state;
	bool dead;
	u32 windows;
	struct kref ref;
	struct rcu_head rcu;
};

/* What an operator may know of an STag. */
struct weft_stag_details {
	u8 kind;
	u8 state;
	u32 access;
	u64 length;
	u32 pins;
	u32 windows;
};

void weft_stag_table_init(struct weft_stag_table *t);
void weft_stag_table_destroy(struct weft_stag_table *t);

/* The owner. */
struct weft_mem_region *weft_stag_alloc(struct weft_stag_table *t, enum weft_stag_kind kind,
					u32 pd);
int weft_stag_enable(struct weft_mem_region *mr, const struct weft_stag_grant *grant);
int weft_stag_revoke(struct weft_mem_region *mr, bool for_good);
void weft_stag_free(struct weft_stag_table *t, struct weft_mem_region *mr);
void weft_stag_inspect(struct weft_mem_region *mr, struct weft_stag_details *out);

/* An access. */
void weft_stag_drained(struct weft_mem_region *mr);

/**
 * weft_stag_unpin - end an access
 * @mr: from weft_stag_pin(); may be freed by its owner from here on
 *
 * Context: any.
 */
static inline void weft_stag_unpin(struct weft_mem_region *mr)
{
	if (atomic_dec_and_test(&mr->pins))
		weft_stag_drained(mr);
}

/**
 * weft_stag_is - is this region still what an STag names?
 * @mr: pinned
 * @stag: as an access names it, key byte included
 *
 * Context: any. Return: false also when it is being invalidated.
 */
static inline bool weft_stag_is(const struct weft_mem_region *mr, u32 stag)
{
	return READ_ONCE(mr->grant.stag) == stag && READ_ONCE(mr->state) == WEFT_STAG_VALID;
}

/**
 * weft_stag_hold - one pin more, unless the STag is invalid and quiet
 * @mr: a region that cannot go away just now
 *
 * As a rule another CPU had the line last and the STag is not being accessed: it is fetched
 * for writing at once, not first to look at it. Fewer copies run at a time than would
 * let the count overflow. Context: any. Return: true if there is a pin to be dropped.
 */
static inline bool weft_stag_hold(struct weft_mem_region *mr)
{
	int pins = WEFT_STAG_UNUSED;

	return atomic_try_cmpxchg(&mr->pins, &pins, WEFT_STAG_UNUSED + 1) ||
	       (pins && atomic_inc_not_zero(&mr->pins));
}

/* Place in the table of what an STag names. */
static inline u32 weft_stag_index(u32 stag)
{
	return stag >> WEFT_STAG_KEY_BITS;
}

/**
 * weft_stag_pin - begin an access
 * @t: table of the device
 * @stag: as the access names it, key byte included
 *
 * The grant does not change while the pin is held. Held for one run of copies only: an
 * invalidation may wait for it.
 *
 * Context: any. Return: the region, NULL when @stag is not valid.
 */
static inline struct weft_mem_region *weft_stag_pin(struct weft_stag_table *t, u32 stag)
{
	u32 index = weft_stag_index(stag);
	struct weft_mem_region *mr;

	rcu_read_lock_sched(); /* which is no call */
	mr = rcu_dereference_sched(t->recent[index % WEFT_STAG_RECENT]);
	if (!mr || mr->index != index)
		mr = xa_load(&t->xa, index);
	if (mr && !weft_stag_hold(mr))
		mr = NULL;
	rcu_read_unlock_sched();
	if (!mr)
		return NULL;

	/*
	 * What follows is read with the pin held: it is what was enabled, or
	 * the state tells that it is going away. Pairs with the smp_wmb() in
	 * weft_stag_enable().
	 */
	smp_mb__after_atomic();
	if (weft_stag_is(mr, stag))
		return mr;
	weft_stag_unpin(mr);
	return NULL;
}

/* A change of rights. */
struct weft_mem_region *weft_stag_find(struct weft_stag_table *t, u32 stag);
void weft_stag_put(struct weft_mem_region *mr);
bool weft_stag_disable(struct weft_mem_region *mr);
bool weft_stag_draining(const struct weft_mem_region *mr);
void weft_stag_drain(struct weft_mem_region *mr);
int weft_stag_rename(struct weft_mem_region *mr, u32 stag);
int weft_stag_add_window(struct weft_mem_region *mr);
void weft_stag_drop_window(struct weft_mem_region *mr);

#endif
