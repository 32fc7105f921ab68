/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Two connections of this host that are the two ends of one: they find each other, and each may
 * reach the owner of the other one's socket.
 */
#ifndef WEFT_NET_LOOPBACK_H
#define WEFT_NET_LOOPBACK_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/wait_bit.h>

struct weft_sock;

/* What the attribute says. */
enum weft_loopback_mode {
	WEFT_LOOPBACK_NEVER,
	WEFT_LOOPBACK_NETNS,	/* both ends in one network namespace */
	WEFT_LOOPBACK_HOST,
};

/**
 * struct weft_loopback_end - one end of a TCP connection
 * @node: in the table, until its peer comes
 * @refs: its owner's, and its peer's
 * @users: contexts of the peer that are at work on @owner, and one for @owner itself; 0 for good
 *	once it has left
 * @peer: the other end; set once, goes with the owner
 * @sock: the connection
 * @owner: of it
 * @mode: least mode that both ends need
 * @written, @read: TCP's sequence numbers at which the stream starts
 *
 * All but @users and @peer are written before the end is in the table. @users changes without a
 * lock::
 *
 *	     enter
 *	1 ------------> 1 + contexts --- leave ---> contexts --- the last exits ---> 0, for good
 *	  <------------
 *	      exit
 */
struct weft_loopback_end {
	struct hlist_node node;
	refcount_t refs;
	atomic_t users;
	struct weft_loopback_end *peer;
	struct weft_sock *sock;
	void *owner;
	u8 mode;
	u32 written;
	u32 read;
};

bool weft_loopback_may_find(const struct weft_sock *sock, u8 mode);
void weft_loopback_join(struct weft_loopback_end *end, struct weft_sock *sock, void *owner);
void weft_loopback_leave(struct weft_loopback_end *end);
void weft_loopback_put(struct weft_loopback_end *end);

bool weft_loopback_lock(struct weft_loopback_end *end);
void weft_loopback_unlock(struct weft_loopback_end *end, bool slow);

/**
 * weft_loopback_enter - begin to work on the owner of an end
 * @end: with a reference
 *
 * Context: any. Return: false if it has left; else weft_loopback_exit() has to follow soon.
 */
static inline bool weft_loopback_enter(struct weft_loopback_end *end)
{
	return atomic_inc_not_zero(&end->users);
}

/* Context: any. */
static inline void weft_loopback_exit(struct weft_loopback_end *end)
{
	if (atomic_dec_and_test(&end->users))
		wake_up_var(&end->users);
}

/* The other end, NULL: it has not come. Context: any, the end's owner has not left. */
static inline struct weft_loopback_end *weft_loopback_peer(const struct weft_loopback_end *end)
{
	return smp_load_acquire(&end->peer); /* pairs with weft_loopback_join() */
}

#endif
