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

static bool is_local(enum weft_mem_right right)
{
	return rights[right].context == WEFT_STAG_LOCAL;
}

/* A right that the QP withholds is as good as none of the STag's. */
static __always_inline struct weft_stag_view view_of(const struct weft_mem_user *user,
						     const struct weft_mem_region *mr)
{
	if (!mr)
		return (struct weft_stag_view){ .valid = false };
	return (struct weft_stag_view){
		.valid = true,
		.pd = mr->pd,
		.qpn = mr->grant.qpn,
		.access = mr->grant.access & ~READ_ONCE(user->withheld),
		.base = mr->grant.iova,
		.length = mr->grant.length,
	};
}

/* A local key names a region; a window is for peers. */
static bool is_local_key(const struct weft_mem_region *mr)
{
	return mr->kind == WEFT_STAG_REGION || mr->kind == WEFT_STAG_FASTREG;
}

/*
 * A region of all kernel memory has been given to a peer on purpose, but an
 * address where there is none must not take us down.
 */
static bool is_kernel_range(u64 addr, u32 len)
{
	return virt_addr_valid((void *)(uintptr_t)addr) &&
	       virt_addr_valid((void *)(uintptr_t)(addr + len - 1));
}

/* The STag says that there is memory, but there is none: for a peer it ends before. */
static enum weft_fault no_memory(enum weft_mem_right right)
{
	static const enum weft_fault wording[WEFT_STAG_CONTEXTS] = {
		[WEFT_STAG_TAGGED] = WEFT_FAULT_TAGGED_BOUNDS,
		[WEFT_STAG_READ] = WEFT_FAULT_RDMAP_BOUNDS,
		[WEFT_STAG_LOCAL] = WEFT_FAULT_LOCAL_PROTECTION,
	};

	return wording[rights[right].context];
}

static __always_inline struct weft_stag_req request_of(const struct weft_mem_user *user, u64 to,
						       u32 len, enum weft_mem_right right)
{
	return (struct weft_stag_req){
		.context = rights[right].context,
		.right = rights[right].bit,
		.pd = user->pd,
		.qpn = user->qpn,
		.to = to,
		.len = len,
	};
}

static noinline enum weft_fault check_access_rules(const struct weft_mem_user *user,
						   const struct weft_mem_region *mr, u64 to,
						   u32 len, enum weft_mem_right right)
{
	const struct weft_stag_view view = view_of(user, mr);
	const struct weft_stag_req req = request_of(user, to, len, right);
	enum weft_fault fault = weft_stag_check(&view, &req);

	if (fault != WEFT_FAULT_NONE || !mr)
		return fault;
	if (is_local(right))
		return is_local_key(mr) ? WEFT_FAULT_NONE : WEFT_FAULT_LOCAL_PROTECTION;
	if (mr->grant.backing->vec || mr->grant.backing->odp || is_kernel_range(to, len))
		return WEFT_FAULT_NONE;
	return no_memory(right);
}

/* What passes here passes check_access_rules(), too; nothing goes through memory for it. */
static __always_inline bool access_allows(const struct weft_mem_user *user,
					  const struct weft_mem_region *mr, u64 to, u32 len,
					  enum weft_mem_right right)
{
	const struct weft_stag_req req = request_of(user, to, len, right);
	struct weft_stag_view view;

	if (!mr || !mr->grant.backing->vec || (is_local(right) && !is_local_key(mr)))
		return false;
	view = view_of(user, mr);
	return weft_stag_allows(&view, &req);
}

static void grant_address(struct weft_mem_ref *ref, u64 addr, u32 len)
{
	ref->offset = addr;
	ref->len = len;
	ref->flat = (void *)(uintptr_t)addr;
}

static bool is_write(enum weft_mem_right right)
{
	return right == WEFT_MEM_LOCAL_WRITE || right == WEFT_MEM_REMOTE_WRITE ||
	       right == WEFT_MEM_REMOTE_ATOMIC;
}

/* The pages are there, or will be asked for by whoever runs the direction. */
static noinline enum weft_fault grant_paged(struct weft_mem_user *user, struct weft_odp *odp,
					    enum weft_mem_right right, struct weft_mem_ref *ref)
{
	ref->flat = NULL;
	if (user->rights_only)
		return WEFT_FAULT_NONE;
	if (weft_odp_enter(odp, ref->offset, ref->len, is_write(right))) {
		user->entered = odp;
		weft_odp_satisfied(user->want);
		return WEFT_FAULT_NONE;
	}
	if (weft_odp_must_wait(user->want, odp, ref->offset, ref->len, is_write(right)))
		return WEFT_FAULT_NOT_READY;
	return no_memory(right);
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
	struct weft_mem_region *mr;
	enum weft_fault fault;
	u32 span;

	ref->mr = NULL;
	if (!len || (!stag && user->kernel && is_local(right))) {
		grant_address(ref, to, len);
		return WEFT_FAULT_NONE;
	}

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
	if (unlikely(!access_allows(user, mr, to, len, right))) {
		fault = check_access_rules(user, mr, to, len, right);
		if (fault != WEFT_FAULT_NONE)
			return fault;
	}
	if (unlikely(!mr->grant.backing->vec && !mr->grant.backing->odp)) {
		grant_address(ref, to, len);
		return WEFT_FAULT_NONE;
	}
	ref->offset = mr->grant.offset + (to - mr->grant.iova);
	ref->len = len;
	if (unlikely(!mr->grant.backing->vec))
		return grant_paged(user, mr->grant.backing->odp, right, ref);
	ref->flat = weft_backing_span(mr->grant.backing, ref->offset, &span);
	if (unlikely(len > span))
		ref->flat = NULL;
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
