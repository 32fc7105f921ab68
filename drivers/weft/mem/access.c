// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Access to registered memory: find the STag, pin it, apply the rules, say where it is.
 */
#include "mem/access.h"

#include <linux/kernel.h>
#include <linux/mm.h>

#include "mem/backing.h"
#include "mem/stag.h"
#include "proto/hot.h"
#include "proto/stag_rules.h"
#include "uapi/weft-abi.h"

/* What a right asks of the STag, and in whose words a refusal is told. */
static const struct {
	enum weft_stag_context context;
	u32 bit;
} rights[] = {
	[WEFT_MEM_LOCAL_READ] = { WEFT_STAG_LOCAL, 0 },
	[WEFT_MEM_LOCAL_WRITE] = { WEFT_STAG_LOCAL, WEFT_ACCESS_LOCAL_WRITE },
	[WEFT_MEM_REMOTE_READ] = { WEFT_STAG_READ, WEFT_ACCESS_REMOTE_READ },
	[WEFT_MEM_REMOTE_WRITE] = { WEFT_STAG_TAGGED, WEFT_ACCESS_REMOTE_WRITE },
	[WEFT_MEM_REMOTE_ATOMIC] = { WEFT_STAG_READ, WEFT_ACCESS_REMOTE_ATOMIC },
};

/* The STag says that there is memory, but there is none: for a peer it ends before. */
static const enum weft_fault no_memory[WEFT_STAG_CONTEXTS] = {
	[WEFT_STAG_TAGGED] = WEFT_FAULT_TAGGED_BOUNDS,
	[WEFT_STAG_READ] = WEFT_FAULT_RDMAP_BOUNDS,
	[WEFT_STAG_LOCAL] = WEFT_FAULT_LOCAL_PROTECTION,
};

/*
 * What an access asks for, and what the STag has for it. A right that the QP withholds is as
 * good as none of the STag's. A local key names a region; a window is for peers.
 */
static __always_inline void describe_access(const struct weft_mem_user *user,
					    const struct weft_mem_region *mr, u64 to, u32 len,
					    enum weft_mem_right right, struct weft_stag_view *view,
					    struct weft_stag_req *req)
{
	*req = (struct weft_stag_req){
		.context = rights[right].context,
		.right = rights[right].bit,
		.pd = user->pd,
		.qpn = user->qpn,
		.to = to,
		.len = len,
	};
	if (!mr) {
		*view = (struct weft_stag_view){ .valid = false };
		return;
	}
	*view = (struct weft_stag_view){
		.valid = rights[right].context != WEFT_STAG_LOCAL || mr->kind == WEFT_STAG_REGION ||
			 mr->kind == WEFT_STAG_FASTREG,
		.pd = mr->pd,
		.qpn = mr->grant.qpn,
		.access = mr->grant.access & ~READ_ONCE(user->withheld),
		.base = mr->grant.iova,
		.length = mr->grant.length,
	};
}

static noinline enum weft_fault check_access_rules(const struct weft_mem_user *user,
						   const struct weft_mem_region *mr, u64 to,
						   u32 len, enum weft_mem_right right)
{
	struct weft_stag_view view;
	struct weft_stag_req req;
	enum weft_fault fault;

	describe_access(user, mr, to, len, right, &view, &req);
	fault = weft_stag_check(&view, &req);
	if (fault != WEFT_FAULT_NONE || !mr || req.context == WEFT_STAG_LOCAL)
		return fault;
	if (mr->grant.backing->vec || mr->grant.backing->odp)
		return WEFT_FAULT_NONE;
	/*
	 * A region of all kernel memory has been given to a peer on purpose, but an
	 * address where there is none must not take us down.
	 */
	if (virt_addr_valid((void *)(uintptr_t)to) &&
	    virt_addr_valid((void *)(uintptr_t)(to + len - 1)))
		return WEFT_FAULT_NONE;
	return no_memory[req.context];
}

/* The pages are there, or the context that runs the direction will ask for them. */
static noinline enum weft_fault grant_paged(struct weft_mem_user *user, struct weft_odp *odp,
					    enum weft_mem_right right, struct weft_mem_ref *ref)
{
	bool write = right == WEFT_MEM_LOCAL_WRITE || right == WEFT_MEM_REMOTE_WRITE ||
		     right == WEFT_MEM_REMOTE_ATOMIC;

	ref->flat = NULL;
	if (user->rights_only)
		return WEFT_FAULT_NONE;
	if (weft_odp_enter(odp, ref->offset, ref->len, write)) {
		user->entered = odp;
		if (user->want && READ_ONCE(user->want->state) != WEFT_ODP_IDLE)
			weft_odp_forget(user->want);
		return WEFT_FAULT_NONE;
	}
	if (weft_odp_must_wait(user->want, odp, ref->offset, ref->len, write))
		return WEFT_FAULT_NOT_READY;
	return no_memory[rights[right].context];
}

/**
 * weft_mem_get - access memory
 * @user: on whose behalf
 * @stag: names the memory; lkey 0 of a kernel consumer: all of it, by address
 * @to: tagged offset, or local address
 * @len: bytes; 0 is granted without a look at @stag
 * @right: what is to be done
 * @ref: filled in if access is granted
 *
 * Ends with weft_mem_done(). Context: any. Return: a fault in the words of the message @right
 * stands for; WEFT_FAULT_NOT_READY if pages are missing, @user->want says which.
 */
enum weft_fault weft_hot weft_mem_get(struct weft_mem_user *user, u32 stag, u64 to, u32 len,
				      enum weft_mem_right right, struct weft_mem_ref *ref)
{
	const struct weft_backing *backing;
	struct weft_mem_region *mr;
	struct weft_stag_view view;
	struct weft_stag_req req;
	enum weft_fault fault;
	u32 span;

	ref->mr = NULL;
	if (!len || (!stag && user->kernel && rights[right].context == WEFT_STAG_LOCAL))
		goto address;

	/*
	 * Segments of one message, and messages from one region, follow each other: the pin of
	 * the last access serves as long as the STag stays valid.
	 */
	mr = user->held;
	if (!mr || !weft_stag_is(mr, stag)) {
		weft_mem_release(user);
		mr = weft_stag_pin(user->table, stag);
		user->held = mr;
	}
	ref->mr = mr;
	/* What passes here passes check_access_rules(), too; nothing goes through memory for it. */
	describe_access(user, mr, to, len, right, &view, &req);
	if (unlikely(!mr || !mr->grant.backing->vec || !weft_stag_allows(&view, &req))) {
		fault = check_access_rules(user, mr, to, len, right);
		if (fault != WEFT_FAULT_NONE)
			return fault;
	}
	backing = mr->grant.backing;
	if (unlikely(!backing->vec && !backing->odp))
		goto address;
	ref->offset = mr->grant.offset + (to - mr->grant.iova);
	ref->len = len;
	if (unlikely(!backing->vec))
		return grant_paged(user, backing->odp, right, ref);
	ref->flat = weft_backing_span(backing, ref->offset, &span);
	if (unlikely(len > span))
		ref->flat = NULL;
	return WEFT_FAULT_NONE;

address:
	/* Nothing at all, or kernel memory, whose offsets are addresses. */
	ref->offset = to;
	ref->len = len;
	ref->flat = (void *)(uintptr_t)to;
	return WEFT_FAULT_NONE;
}

/**
 * weft_mem_check - would access be granted?
 * @user: on whose behalf
 * @stag: as for weft_mem_get()
 * @to: as for weft_mem_get()
 * @len: as for weft_mem_get()
 * @right: as for weft_mem_get()
 * @ref: filled in, to be looked at only
 *
 * Context: any. Return: a fault as weft_mem_get(); pages that are missing are none.
 */
enum weft_fault weft_mem_check(struct weft_mem_user *user, u32 stag, u64 to, u32 len,
			       enum weft_mem_right right, struct weft_mem_ref *ref)
{
	enum weft_fault fault;

	user->rights_only = true;
	fault = weft_mem_get(user, stag, to, len, right, ref);
	user->rights_only = false;
	return fault;
}

/* weft_mem_walk() for more than one element, or a list that is too short. */
enum weft_fault weft_mem_walk_list(struct weft_mem_user *user, const struct weft_sge *sge,
				   u32 num_sge, u32 offset, u32 len, enum weft_mem_right right,
				   weft_mem_copy_fn fn, void *arg)
{
	struct weft_mem_ref ref __uninitialized;
	enum weft_fault fault;
	u32 done = 0;
	u32 piece;

	for (; num_sge && done < len; num_sge--, sge++) {
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		piece = min(sge->length - offset, len - done);
		fault = weft_mem_get(user, sge->lkey, sge->addr + offset, piece, right, &ref);
		if (fault == WEFT_FAULT_NONE) {
			fault = fn(arg, done, &ref);
			weft_mem_done(user);
		}
		if (fault != WEFT_FAULT_NONE)
			return fault;
		done += piece;
		offset = 0;
	}
	return done == len ? WEFT_FAULT_NONE : WEFT_FAULT_LOCAL_LENGTH;
}

static enum weft_fault touch_nothing(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	return WEFT_FAULT_NONE;
}

/**
 * weft_mem_check_list - would access to a list of local buffers be granted?
 * @user: on whose behalf
 * @sge: the list
 * @num_sge: its elements
 * @len: bytes of it
 * @right: as for weft_mem_walk()
 *
 * Context: any. Return: a fault as weft_mem_walk(); pages that are missing are none.
 */
enum weft_fault weft_mem_check_list(struct weft_mem_user *user, const struct weft_sge *sge,
				    u32 num_sge, u32 len, enum weft_mem_right right)
{
	enum weft_fault fault;

	user->rights_only = true;
	fault = weft_mem_walk(user, sge, num_sge, 0, len, right, touch_nothing, NULL);
	user->rights_only = false;
	return fault;
}
