// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What work requests and Send with Invalidate do to STags. RFC 5040, 5.3 and 7;
 * the rules for windows are those of the RDMA verbs.
 */
#include "mem/mr_ops.h"

#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <rdma/ib_verbs.h>

#include "mem/access.h"
#include "mem/stag.h"

#define REMOTE_MODIFY (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define WINDOW_ACCESS (REMOTE_MODIFY | IB_ACCESS_REMOTE_READ)
/* A window gives no local rights; asking for them has always been harmless. */
#define WINDOW_ACCEPTED (WINDOW_ACCESS | IB_ACCESS_LOCAL_WRITE | IB_ZERO_BASED)

/**
 * weft_mem_register - run a fast-register work request
 * @user: the QP it was posted on
 * @mr: fast-register region, not valid; attached to the work request
 * @stag: its STag from now on
 * @access: enum ib_access_flags
 *
 * Installs the pages that were mapped last. Context: process, may sleep for the
 * time of a run of copies.
 */
enum weft_fault weft_mem_register(struct weft_mem_user *user, struct weft_mem_region *mr, u32 stag,
				  u32 access)
{
	struct weft_backing *old = mr->grant.backing;
	struct weft_stag_grant grant = {
		.stag = stag,
		.access = access,
		.iova = mr->next.iova,
		.length = mr->next.length,
		.backing = mr->next.fresh ? mr->next.backing : old,
	};

	if (mr->kind != WEFT_STAG_FASTREG || mr->pd != user->pd ||
	    weft_stag_index(stag) != weft_stag_index(mr->grant.stag))
		return WEFT_FAULT_LOCAL_BIND;

	weft_mem_release(user);
	weft_stag_drain(mr);
	if (weft_stag_enable(mr, &grant))
		return WEFT_FAULT_LOCAL_BIND;

	if (mr->next.fresh) {
		mr->next.backing = old;
		mr->next.fresh = false;
	}
	return WEFT_FAULT_NONE;
}

/* Fills @grant from a region that stays as it is until the window lets go. */
static enum weft_fault grant_from_region(const struct weft_mem_user *user,
					 const struct weft_mem_binding *req,
					 struct weft_stag_grant *grant)
{
	struct weft_mem_region *region = weft_stag_pin(user->table, req->lkey);
	enum weft_fault fault = WEFT_FAULT_LOCAL_BIND;
	const struct weft_stag_grant *from;
	u64 start;

	if (!region)
		return fault;
	/* Does the region have what the window is to give away? */
	from = &region->grant;
	start = req->addr - from->iova;
	if (region->kind != WEFT_STAG_REGION || region->pd != user->pd ||
	    !(from->access & IB_ACCESS_MW_BIND))
		goto unpin;
	if (req->access & ~WINDOW_ACCEPTED)
		goto unpin;
	if ((req->access & REMOTE_MODIFY) && !(from->access & IB_ACCESS_LOCAL_WRITE))
		goto unpin;
	if (req->addr < from->iova || req->length > from->length ||
	    start > from->length - req->length)
		goto unpin;
	if (weft_stag_add_window(region))
		goto unpin;

	*grant = (struct weft_stag_grant){
		.stag = req->stag,
		.access = req->access & WINDOW_ACCESS,
		.iova = req->access & IB_ZERO_BASED ? 0 : req->addr,
		.length = req->length,
		.offset = from->offset + start,
		.backing = from->backing,
		.parent = region,
	};
	fault = WEFT_FAULT_NONE;
unpin:
	weft_stag_unpin(region);
	return fault;
}

static enum weft_fault bind_window(struct weft_mem_user *user, struct weft_mem_region *window,
				   const struct weft_mem_binding *req)
{
	struct weft_stag_grant grant;
	enum weft_fault fault;

	fault = grant_from_region(user, req, &grant);
	if (fault != WEFT_FAULT_NONE)
		return fault;

	if (window->kind == WEFT_STAG_WINDOW1) {
		weft_stag_disable(window);
	} else {
		grant.qpn = user->qpn;
		user->has_windows = true;
	}
	weft_stag_drain(window);
	if (!weft_stag_enable(window, &grant))
		return WEFT_FAULT_NONE;

	rcu_read_lock();
	weft_stag_drop_window(grant.parent);
	rcu_read_unlock();
	return WEFT_FAULT_LOCAL_BIND;
}

/**
 * weft_mem_bind - run a bind work request
 * @user: the QP it was posted on
 * @req: its operands, not checked yet
 *
 * A type 1 window may be bound already and is closed by a length of 0; a type 2
 * window must have been invalidated, and belongs to the QP from here on.
 *
 * Context: process, may sleep for the time of a run of copies.
 */
enum weft_fault weft_mem_bind(struct weft_mem_user *user, const struct weft_mem_binding *req)
{
	enum weft_fault fault = WEFT_FAULT_LOCAL_BIND;
	struct weft_mem_region *window;

	weft_mem_release(user);
	window = weft_stag_find(user->table, req->window);
	if (!window)
		return fault;

	if (window->pd != user->pd || weft_stag_index(req->window) != weft_stag_index(req->stag))
		goto put;
	/*
	 * The index says which window it is. The key of a type 2 window is chosen by the
	 * application, which need not tell its library what the window is called by now; the
	 * library chooses that of a type 1 window, and does not know of a bind that failed. It is
	 * a new one each time.
	 */
	if (window->kind != WEFT_STAG_WINDOW2 &&
	    (window->kind != WEFT_STAG_WINDOW1 || READ_ONCE(window->grant.stag) == req->stag))
		goto put;

	if (req->length) {
		fault = bind_window(user, window, req);
	} else if (window->kind == WEFT_STAG_WINDOW1) {
		/* A closed window has a new STag, too: the old one shall not open it again. */
		weft_stag_disable(window);
		weft_stag_drain(window);
		if (!weft_stag_rename(window, req->stag))
			fault = WEFT_FAULT_NONE;
	}
put:
	weft_stag_put(window);
	return fault;
}

/**
 * weft_mem_set_access - what the peer of a QP may do, where an STag allows it as well
 * @user: the QP
 * @access: enum ib_access_flags; only remote rights are looked at
 *
 * Context: any; one caller at a time. Holds from the next access on.
 */
void weft_mem_set_access(struct weft_mem_user *user, u32 access)
{
	WRITE_ONCE(user->withheld, WINDOW_ACCESS & ~access);
}

/**
 * weft_mem_invalidate_windows - take back what a QP has bound
 * @user: the QP, on its way out: nothing is bound on its behalf any more
 *
 * A type 2 window belongs to one QP and gives no access to its region once that is
 * gone. The walk is long on a device with many STags, and is only taken by a QP
 * that has ever bound one. Context: process, may sleep.
 */
void weft_mem_invalidate_windows(const struct weft_mem_user *user)
{
	struct weft_mem_region *mr;
	unsigned long index;

	if (!user->has_windows)
		return;
	rcu_read_lock();
	xa_for_each(&user->table->xa, index, mr) {
		if (mr->kind == WEFT_STAG_WINDOW2 && weft_stag_hold(mr)) {
			/* Pinned, so its grant is stable; pairs with weft_stag_enable(). */
			smp_mb__after_atomic();
			if (READ_ONCE(mr->grant.qpn) == user->qpn)
				weft_stag_disable(mr);
			weft_stag_unpin(mr);
		}
		if (need_resched()) {
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();
}

/* Both kinds that a work request made valid can be made invalid by one. */
static bool is_invalidatable(const struct weft_mem_region *mr, const struct weft_mem_user *user)
{
	return mr->pd == user->pd &&
	       (mr->kind == WEFT_STAG_FASTREG || mr->kind == WEFT_STAG_WINDOW2);
}

/**
 * weft_mem_invalidate - take the rights of an STag away
 * @user: the QP that is told to, or whose peer asks
 * @stag: the STag
 * @remote: a peer asks; then it must have been valid
 * @busy: set to NULL when the memory is no longer accessed; else to a region
 *	whose last accesses are under way: the caller completes nothing before
 *	weft_mem_quiet(), and hands it to weft_mem_quiesce()
 *
 * Context: any. Return: a fault, @busy is NULL then.
 */
enum weft_fault weft_mem_invalidate(struct weft_mem_user *user, u32 stag, bool remote,
				    struct weft_mem_region **busy)
{
	struct weft_mem_region *pinned, *mr;
	bool done = false;

	*busy = NULL;
	weft_mem_release(user);
	pinned = weft_stag_pin(user->table, stag);
	mr = weft_stag_find(user->table, stag);
	if (pinned) {
		/* Its grant is stable. */
		if (is_invalidatable(pinned, user) &&
		    (!pinned->grant.qpn || pinned->grant.qpn == user->qpn))
			done = weft_stag_disable(pinned);
		weft_stag_unpin(pinned);
	}
	if (!mr)
		return remote ? WEFT_FAULT_RDMAP_INVALIDATE : WEFT_FAULT_LOCAL_BIND;
	/* A local invalidation of what is invalid already succeeds; a peer's does not. */
	if (!pinned && !remote)
		done = is_invalidatable(mr, user) && READ_ONCE(mr->grant.stag) == stag &&
		       READ_ONCE(mr->state) != WEFT_STAG_VALID;

	if (done && weft_stag_draining(mr))
		*busy = mr;
	else
		weft_stag_put(mr);
	if (done)
		return WEFT_FAULT_NONE;
	return remote ? WEFT_FAULT_RDMAP_INVALIDATE : WEFT_FAULT_LOCAL_BIND;
}

/**
 * weft_mem_busy_get - a reference more, for one that waits without a lock
 * @busy: from weft_mem_invalidate(), still to be handed to weft_mem_quiesce()
 *
 * Context: any. Return: @busy, to be handed to weft_mem_quiesce() once more.
 */
struct weft_mem_region *weft_mem_busy_get(struct weft_mem_region *busy)
{
	kref_get(&busy->ref);
	return busy;
}

/**
 * weft_mem_quiet - are the last accesses of an invalidated STag over?
 * @busy: from weft_mem_invalidate(); still to be handed to weft_mem_quiesce()
 *
 * Context: any.
 */
bool weft_mem_quiet(const struct weft_mem_region *busy)
{
	return !weft_stag_draining(busy);
}

/**
 * weft_mem_quiesce - wait for the last accesses of an invalidated STag
 * @busy: from weft_mem_invalidate(), consumed; NULL is allowed
 *
 * Context: process, may sleep for the time of a run of copies; any, once
 * weft_mem_quiet() has said yes.
 */
void weft_mem_quiesce(struct weft_mem_region *busy)
{
	if (!busy)
		return;
	if (!weft_mem_quiet(busy))
		weft_stag_drain(busy);
	weft_stag_put(busy);
}
