/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The STag table of a device: 24-bit index, key octet, pins, invalidation.
 */
#ifndef WEFT_MEM_STAG_H
#define WEFT_MEM_STAG_H

#include <linux/completion.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct weft_backing;

/**
 * struct weft_stag_table - all STags of a device
 * @xa: index to struct weft_stag; read under RCU, written under its own lock
 * @next: where the search for a free index goes on, so that a stale STag of a
 *	peer does not soon meet a new owner
 */
struct weft_stag_table {
	struct xarray xa;
	u32 next;
};

/**
 * struct weft_mem_region - an STag and what it names
 * @stag: index and key; the key octet changes at fast registration
 * @pd: number of the protection domain
 * @qpn: QP a type 2 window is bound to, 0: any of the domain
 * @access: enum ib_access_flags of remote and local rights
 * @iova: tagged offset of the first octet
 * @length: octets
 * @backing: the memory, one reference held
 * @remote_inv: a peer may invalidate it (fast-registered regions, type 2 windows)
 * @pins: 1 while valid, plus one per access under way; 0: invalid
 * @drained: completed by the last unpin after an invalidation
 * @lock: writers of all of the above; a reader holds a pin instead
 *
 * Owned by the MR or MW that added it; freed through RCU.
 */
struct weft_mem_region {
	u32 stag;
	u32 pd;
	u32 qpn;
	u32 access;
	u64 iova;
	u64 length;
	struct weft_backing *backing;
	bool remote_inv;
	refcount_t pins;
	struct completion drained;
	spinlock_t lock;
	struct rcu_head rcu;
};

void weft_stag_table_init(struct weft_stag_table *t);
void weft_stag_table_destroy(struct weft_stag_table *t);

struct weft_mem_region *weft_stag_alloc(struct weft_stag_table *t);
void weft_stag_enable(struct weft_mem_region *mr);
void weft_stag_free(struct weft_stag_table *t, struct weft_mem_region *mr);

struct weft_mem_region *weft_stag_pin(struct weft_stag_table *t, u32 stag);
void weft_stag_unpin(struct weft_mem_region *mr);
bool weft_stag_disable(struct weft_mem_region *mr);
void weft_stag_disable_wait(struct weft_mem_region *mr);

#endif
