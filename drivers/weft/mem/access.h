/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Access to registered memory: find the STag, pin it, apply the rules, say where it
 * is. Rights are checked anew for every segment, so that an invalidation takes
 * effect at the next one; the pin stays for those that follow in the same run.
 */
#ifndef WEFT_MEM_ACCESS_H
#define WEFT_MEM_ACCESS_H

#include <linux/minmax.h>
#include <linux/types.h>

#include "mem/backing.h"
#include "mem/stag.h"
#include "proto/fault.h"
#include "uapi/weft-abi.h"

/**
 * struct weft_mem_user - on whose behalf memory is touched
 * @table: STags of the device
 * @held: region touched last, pinned until weft_mem_release(), or NULL
 * @entered: memory paged on demand that is being accessed, until weft_mem_done(), or NULL
 * @want: the pages that it lacked, or NULL where nothing waits for pages
 * @pd: protection domain of the QP, or of the queue whose buffers are touched
 * @qpn: number of the QP
 * @kernel: a kernel consumer: lkey 0 names kernel memory by address
 * @has_windows: type 2 windows may be bound to the QP
 * @rights_only: memory is asked for, but not touched: no page need be there
 * @withheld: enum weft_access: rights that no STag has for the QP's peer; may be changed at
 *	any time, by READ_ONCE() and WRITE_ONCE()
 *
 * One for what a QP sends, one for what it receives, and one for the buffers of its receive
 * queue, owned by the context of that direction. Invalidations wait for what is held: a run of
 * segments ends with weft_mem_release(), and so does each change of rights, before it waits
 * for others.
 */
struct weft_mem_user {
	struct weft_stag_table *table;
	struct weft_mem_region *held;
	struct weft_odp *entered;
	struct weft_odp_want *want;
	u32 pd;
	u32 qpn;
	bool kernel;
	bool has_windows;
	bool rights_only;
	u8 withheld;
};

enum weft_mem_right {
	WEFT_MEM_LOCAL_READ,
	WEFT_MEM_LOCAL_WRITE,
	WEFT_MEM_REMOTE_READ,
	WEFT_MEM_REMOTE_WRITE,
	WEFT_MEM_REMOTE_ATOMIC,
};

/**
 * struct weft_mem_ref - a granted access
 * @mr: region, pinned by its user; NULL for kernel memory by address
 * @offset: of the first byte within the region's backing, or the kernel address
 * @len: bytes granted
 * @flat: where they are if they lie in a span, else NULL: see weft_mem_span()
 *
 * Good until weft_mem_done(), never over a wait or a send. Memory that is paged on demand is
 * never @flat; until weft_mem_done() nothing may sleep there, nor reclaim memory.
 */
struct weft_mem_ref {
	struct weft_mem_region *mr;
	u64 offset;
	u32 len;
	u8 *flat;
};

enum weft_fault weft_mem_get(struct weft_mem_user *user, u32 stag, u64 to, u32 len,
			     enum weft_mem_right right, struct weft_mem_ref *ref);
enum weft_fault weft_mem_check(struct weft_mem_user *user, u32 stag, u64 to, u32 len,
			       enum weft_mem_right right, struct weft_mem_ref *ref);
enum weft_fault weft_mem_check_list(struct weft_mem_user *user, const struct weft_sge *sge,
				    u32 num_sge, u32 len, enum weft_mem_right right);

/**
 * weft_mem_span - the next bytes that lie in a span
 * @ref: granted
 * @done: bytes of it to skip, less than all
 * @span: set to how many lie in a span behind them
 *
 * Context: any. Return: where.
 */
static inline u8 *weft_mem_span(const struct weft_mem_ref *ref, u32 done, u32 *span)
{
	u8 *at;

	if (ref->flat) {
		*span = ref->len - done;
		return ref->flat + done;
	}
	at = weft_backing_span(ref->mr->grant.backing, ref->offset + done, span);
	*span = min(*span, ref->len - done);
	return at;
}

/* Memory that the kernel may want to take back meanwhile. Context: any. */
static inline bool weft_mem_is_paged(const struct weft_mem_ref *ref)
{
	return ref->mr && ref->mr->grant.backing->odp;
}

/**
 * weft_mem_done - an access that was granted is over
 * @user: on whose behalf it was
 *
 * Context: any.
 */
static inline void weft_mem_done(struct weft_mem_user *user)
{
	if (unlikely(user->entered)) {
		weft_odp_leave(user->entered);
		user->entered = NULL;
	}
}

/**
 * weft_mem_release - the run of accesses is over
 * @user: on whose behalf they were
 *
 * Context: any.
 */
static inline void weft_mem_release(struct weft_mem_user *user)
{
	if (user->held)
		weft_stag_unpin(user->held);
	user->held = NULL;
}

/**
 * typedef weft_mem_copy_fn - move one piece, part of one element
 * @arg: the caller's
 * @done: bytes of the request before this piece
 * @ref: the memory, granted
 *
 * Return: 0, or a fault that ends the walk.
 */
typedef enum weft_fault (*weft_mem_copy_fn)(void *arg, u32 done, const struct weft_mem_ref *ref);

enum weft_fault weft_mem_walk_list(struct weft_mem_user *user, const struct weft_sge *sge,
				   u32 num_sge, u32 offset, u32 len, enum weft_mem_right right,
				   weft_mem_copy_fn fn, void *arg);

/**
 * weft_mem_walk - move bytes to or from a list of local buffers
 * @user: on whose behalf
 * @sge: the list
 * @num_sge: its elements
 * @offset: bytes of the list to skip
 * @len: bytes to move
 * @right: WEFT_MEM_LOCAL_READ or WEFT_MEM_LOCAL_WRITE
 * @fn: moves one piece
 * @arg: for @fn
 *
 * Elements without bytes are not looked at.
 *
 * Context: as @fn. Return: a fault of the access or of @fn, or
 * WEFT_FAULT_LOCAL_LENGTH when the list ends too early; WEFT_FAULT_NOT_READY as
 * weft_mem_get().
 */
static __always_inline enum weft_fault weft_mem_walk(struct weft_mem_user *user,
						     const struct weft_sge *sge, u32 num_sge,
						     u32 offset, u32 len, enum weft_mem_right right,
						     weft_mem_copy_fn fn, void *arg)
{
	struct weft_mem_ref ref __uninitialized;
	enum weft_fault fault;

	if (num_sge != 1 || !len || offset > sge->length || len > sge->length - offset)
		return weft_mem_walk_list(user, sge, num_sge, offset, len, right, fn, arg);
	fault = weft_mem_get(user, sge->lkey, sge->addr + offset, len, right, &ref);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	fault = fn(arg, 0, &ref);
	weft_mem_done(user);
	return fault;
}

#endif
