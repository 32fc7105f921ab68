// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The table in which the two ends of a connection find each other.
 *
 * What proves that two sockets are the ends of one connection is what their TCPs have agreed on:
 * the addresses, and both sequence numbers at which the streams start. These are random for each
 * connection, and each end knows its own side only. A proxy or an address translation between the
 * two leaves nothing that matches.
 */
#include "net/loopback.h"

#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <net/dst.h>
#include <net/sock.h>

#include "net/sockaddr.h"
#include "net/tcp_internals.h"
#include "net/tcp_socket.h"

/* Ends whose peer has not come. One on another host never does: then they stay until they leave. */
static DEFINE_HASHTABLE(ends, 10);
static DEFINE_MUTEX(ends_lock); /* ends, weft_loopback_end.node */

/* Is @a's socket at the address that @b's is connected to? */
static bool is_remote_of(const struct weft_loopback_end *a, const struct weft_loopback_end *b)
{
	struct sockaddr_storage local, remote;

	return !weft_sock_local(a->sock, &local) && !weft_sock_peer(b->sock, &remote) &&
	       weft_addr_equal(&local, &remote) &&
	       weft_addr_port(&local) == weft_addr_port(&remote);
}

/**
 * weft_loopback_may_find - can a connection have its other end where @mode allows it?
 * @sock: the connection
 * @mode: enum weft_loopback_mode
 *
 * A route that leaves the network namespace tells that it cannot, so a connection to another host
 * costs nothing by default. There may be none at the moment. Context: process.
 */
bool weft_loopback_may_find(const struct weft_sock *sock, u8 mode)
{
	const struct net_device *dev;
	const struct dst_entry *dst;
	bool local = true;

	if (mode != WEFT_LOOPBACK_NETNS)
		return mode != WEFT_LOOPBACK_NEVER;
	rcu_read_lock();
	dst = rcu_dereference(sock->sk->sk_dst_cache);
	if (dst) {
		dev = READ_ONCE(dst->dev);
		local = dev->flags & IFF_LOOPBACK || netif_is_l3_master(dev);
	}
	rcu_read_unlock();
	return local;
}

/**
 * weft_loopback_join - the owner of a connection may be reached by that of its other end
 * @end: zeroed; freed by kfree() when owner and peer have both put it
 * @sock: the connection; start frames have been exchanged, and nothing has been read since
 * @owner: of @end; may be found by its peer from now on, calls weft_loopback_leave() at the end
 *
 * Context: process, no socket lock held.
 */
void weft_loopback_join(struct weft_loopback_end *end, struct weft_sock *sock, void *owner)
{
	struct weft_loopback_end *peer;
	bool same;
	u32 key;

	refcount_set(&end->refs, 1);
	atomic_set(&end->users, 1);
	end->sock = sock;
	end->owner = owner;
	end->written = weft_tcp_write_seq(sock->sk);
	end->read = weft_tcp_read_seq(sock->sk);
	key = end->written + end->read; /* the same for both ends */
	mutex_lock(&ends_lock);
	hash_for_each_possible(ends, peer, node, key) {
		/* These first: they nearly always tell, and the rest takes socket locks. */
		if (end->written == peer->read && end->read == peer->written &&
		    is_remote_of(end, peer) && is_remote_of(peer, end))
			break;
	}
	if (peer) {
		hash_del(&peer->node);
		same = net_eq(sock_net(sock->sk), sock_net(peer->sock->sk));
		end->mode = same ? WEFT_LOOPBACK_NETNS : WEFT_LOOPBACK_HOST;
		peer->mode = end->mode;
		refcount_inc(&peer->refs);
		refcount_inc(&end->refs);
		/* The owner of @end does not run yet. */
		smp_store_release(&end->peer, peer); /* pairs with weft_loopback_peer() */
		smp_store_release(&peer->peer, end); /* likewise */
	} else {
		hash_add(ends, &end->node, key);
	}
	mutex_unlock(&ends_lock);
}

void weft_loopback_put(struct weft_loopback_end *end)
{
	if (refcount_dec_and_test(&end->refs))
		kfree(end);
}

/**
 * weft_loopback_leave - the owner cannot be reached any more
 * @end: from weft_loopback_join(); the references remain
 *
 * When it returns no context of the peer is at work on the owner. Context: may sleep; nothing is
 * held that such a context waits for: not the socket lock.
 */
void weft_loopback_leave(struct weft_loopback_end *end)
{
	mutex_lock(&ends_lock);
	hash_del(&end->node);
	mutex_unlock(&ends_lock);
	weft_loopback_exit(end);
	/* Pairs with weft_loopback_exit(): what they did is done. */
	wait_var_event(&end->users, !atomic_read_acquire(&end->users));
}

/**
 * weft_loopback_lock - take the socket lock of an end
 * @end: entered
 *
 * Context: process, no socket lock held. Return: for weft_loopback_unlock(). Bottom halves may be
 * off meanwhile.
 */
bool weft_loopback_lock(struct weft_loopback_end *end)
{
	bool slow = lock_sock_fast(end->sock->sk);

	__release(&end->sock->sk->sk_lock.slock); /* for sparse, which sees no pair */
	return slow;
}

void weft_loopback_unlock(struct weft_loopback_end *end, bool slow)
{
	if (slow) {
		weft_tcp_release(end->sock->sk);
		return;
	}
	__acquire(&end->sock->sk->sk_lock.slock); /* see above */
	unlock_sock_fast(end->sock->sk, false);
}
