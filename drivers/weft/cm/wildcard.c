// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Wildcard listeners. rdma_cm has every device listen for a wildcard, with the same port. They
 * share a socket that is bound to no device, so that TCP decides what is accepted, and over
 * which network device it is answered. A connection then belongs to the device on whose network
 * device its local address is: that is the one rdma_cm takes for it, whichever listener says so.
 *
 * The socket is worked off by the backlog's work of the first listener. If one of them has no
 * room, all wait: they have the same consumer.
 */
#include "cm/wildcard.h"

#include <linux/err.h>
#include <linux/if_vlan.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>

#include "base/compat.h"
#include "cm/cm.h"
#include "cm/listen.h"
#include "net/sockaddr.h"
#include "net/tcp_socket.h"

/**
 * struct weft_wildcard - a socket and its listeners
 * @all: in the list of all
 * @users: listeners, from join to the end of leave; protected by the lock of that list
 * @net: namespace of @sock, which holds it
 * @family: AF_INET or AF_INET6
 * @port: TCP port
 * @v6only: no IPv4 peers
 * @sock: the socket
 * @lock: protects @listeners, with @wake_lock; held while accepting
 * @wake_lock: protects @listeners, too
 * @listeners: one of each device
 */
struct weft_wildcard {
	struct list_head all;
	u32 users;
	struct net *net;
	sa_family_t family;
	__be16 port;
	bool v6only;
	struct weft_sock *sock;
	struct mutex lock; /* listeners, weft_listener.at_wildcard */
	spinlock_t wake_lock; /* listeners */
	struct list_head listeners;
};

static LIST_HEAD(wildcards);
static DEFINE_MUTEX(wildcards_lock); /* wildcards, weft_wildcard.users, weft_wildcard.all */

static void wake(void *owner)
{
	struct weft_wildcard *w = owner;
	struct weft_listener *first;

	spin_lock_bh(&w->wake_lock);
	first = list_first_entry_or_null(&w->listeners, struct weft_listener, at_wildcard);
	if (first)
		mod_delayed_work(first->cm->wq, &first->backlog.work, 0);
	spin_unlock_bh(&w->wake_lock);
}

static const struct weft_sock_events listen_events = {
	.readable = wake,
};

/* --- connections --- */

/*
 * As rdma_cm finds the device: it asks them in the order in which they were added, which is that
 * of the list. (A listener for a wildcard does not say which port it is for, so that rdma_cm does
 * not get what it asks first, which is the device of the listener.)
 */
static struct weft_listener *listener_on(struct weft_wildcard *w, const struct net_device *netdev)
	__must_hold(&w->lock)
{
	const struct net_device *own;
	struct weft_listener *l;

	lockdep_assert_held(&w->lock);
	list_for_each_entry(l, &w->listeners, at_wildcard) {
		own = l->cm->netdev;
		if (own == netdev)
			return l;
		if (!compat_cma_unites_vlans())
			continue;
		if ((is_vlan_dev(own) && vlan_dev_real_dev(own) == netdev) ||
		    (is_vlan_dev(netdev) && vlan_dev_real_dev(netdev) == own))
			return l;
	}
	return NULL;
}

/* NULL: rdma_cm would find no device for it. */
static struct weft_listener *listener_for(struct weft_wildcard *w, const struct weft_sock *s)
	__must_hold(&w->lock)
{
	const struct net_device *netdev;
	struct weft_listener *l = NULL;
	struct sockaddr_storage local;

	lockdep_assert_held(&w->lock);
	if (weft_sock_local(s, &local))
		return NULL;
	rcu_read_lock();
	netdev = weft_addr_find_netdev(w->net, &local);
	if (netdev)
		l = listener_on(w, netdev);
	rcu_read_unlock();
	return l;
}

static int accept_one(struct weft_wildcard *w) __must_hold(&w->lock)
{
	struct weft_listener *l;
	struct weft_sock *s;
	int ret;

	lockdep_assert_held(&w->lock);
	ret = weft_sock_accept(w->sock, &s);
	if (ret)
		return ret;
	l = listener_for(w, s);
	if (l) {
		weft_listener_adopt(l, s);
	} else {
		weft_sock_reset(s);
		weft_sock_release(s);
	}
	return 0;
}

/**
 * weft_wildcard_accept - take connections off TCP
 * @l: a listener that has joined
 *
 * As long as there is room, for all that share the socket. Context: the backlog's work of @l.
 * Return: of the last accept.
 */
int weft_wildcard_accept(struct weft_listener *l)
{
	struct weft_wildcard *w = l->wildcard;
	struct weft_listener *each;
	bool room = true;
	int ret = 0;

	mutex_lock(&w->lock);
	while ((!ret || ret == -ECONNABORTED) && weft_sock_has_child(w->sock) &&
	       !list_empty(&w->listeners)) {
		/* Each is asked: one that has no room runs the work when it has. */
		list_for_each_entry(each, &w->listeners, at_wildcard)
			room &= weft_backlog_has_space(&each->backlog);
		if (!room)
			break;
		ret = accept_one(w);
		cond_resched();
	}
	mutex_unlock(&w->lock);
	return ret;
}

/* --- listeners --- */

/* They have the same consumer, which wants to be told of so many by all of them together. */
static u32 offered_elsewhere(struct weft_backlog *b)
{
	struct weft_listener *each, *l = container_of(b, struct weft_listener, backlog);
	struct weft_wildcard *w = l->wildcard;
	u32 told = 0;

	spin_lock_bh(&w->wake_lock);
	list_for_each_entry(each, &w->listeners, at_wildcard) {
		if (each != l)
			told += READ_ONCE(each->backlog.num[WEFT_BACKLOG_OFFERED]);
	}
	spin_unlock_bh(&w->wake_lock);
	return told;
}

/* Its type of service is the consumer's; what the operator says is up to each device. */
static int open_wildcard_sock(struct weft_wildcard *w, struct weft_listener *l, struct net *net,
			      const struct weft_listener_config *cfg)
{
	int ret;

	ret = weft_sock_create(net, cfg->addr->ss_family, &w->sock);
	if (ret)
		return ret;
	weft_cm_tune(l->cm, w->sock, cfg->tos >= 0 ? cfg->tos : WEFT_TOS_KEEP);
	weft_sock_set_v6only(w->sock, cfg->v6only);
	ret = weft_sock_bind(w->sock, cfg->addr, true);
	if (!ret)
		ret = weft_sock_listen(w->sock, cfg->backlog);
	if (ret)
		weft_sock_release(w->sock);
	return ret;
}

static struct weft_wildcard *new_wildcard(struct weft_listener *l, struct net *net,
					  const struct weft_listener_config *cfg)
{
	struct weft_wildcard *w = kzalloc(sizeof(*w), GFP_KERNEL);
	int ret;

	if (!w)
		return ERR_PTR(-ENOMEM);
	w->net = net;
	w->family = cfg->addr->ss_family;
	w->port = weft_addr_port(cfg->addr);
	w->v6only = cfg->v6only;
	mutex_init(&w->lock);
	spin_lock_init(&w->wake_lock);
	INIT_LIST_HEAD(&w->listeners);
	ret = open_wildcard_sock(w, l, net, cfg);
	if (ret) {
		mutex_destroy(&w->lock);
		kfree(w);
		return ERR_PTR(ret);
	}
	list_add_tail(&w->all, &wildcards);
	weft_sock_attach(w->sock, &listen_events, w);
	return w;
}

/**
 * weft_wildcard_join - listen for a wildcard
 * @l: a new listener
 * @cfg: what for
 * @net: where, a reference is held
 *
 * Context: process. Return: 0, and weft_wildcard_leave() is owed; -EADDRINUSE when a socket
 * that is none of ours has the port, or another -errno.
 */
int weft_wildcard_join(struct weft_listener *l, const struct weft_listener_config *cfg,
		       struct net *net)
{
	struct weft_wildcard *w;

	mutex_lock(&wildcards_lock);
	list_for_each_entry(w, &wildcards, all) {
		if (w->net == net && w->family == cfg->addr->ss_family &&
		    w->port == weft_addr_port(cfg->addr) && w->v6only == cfg->v6only)
			goto found;
	}
	w = new_wildcard(l, net, cfg);
	if (IS_ERR(w)) {
		mutex_unlock(&wildcards_lock);
		return PTR_ERR(w);
	}
found:
	w->users++;
	l->wildcard = w;
	l->tos = cfg->tos;
	l->backlog.offered_elsewhere = offered_elsewhere;
	mutex_lock(&w->lock);
	spin_lock_bh(&w->wake_lock);
	list_add_tail(&l->at_wildcard, &w->listeners);
	spin_unlock_bh(&w->wake_lock);
	mutex_unlock(&w->lock);
	wake(w);	/* what came before that was not announced */
	mutex_unlock(&wildcards_lock);
	return 0;
}

/**
 * weft_wildcard_leave - stop listening for a wildcard
 * @l: a listener that has joined
 *
 * Its backlog is stopped, and gets no more connections. Context: process.
 */
void weft_wildcard_leave(struct weft_listener *l)
{
	struct weft_wildcard *w = l->wildcard;

	weft_backlog_refuse(&l->backlog);	/* or the lock is held as long as a flood lasts */
	mutex_lock(&w->lock);
	spin_lock_bh(&w->wake_lock);
	list_del(&l->at_wildcard);
	spin_unlock_bh(&w->wake_lock);
	mutex_unlock(&w->lock);
	weft_backlog_stop(&l->backlog);	/* its work looks at @w */
	mutex_lock(&wildcards_lock);
	if (--w->users) {
		wake(w);	/* what it was woken for is another's now */
		mutex_unlock(&wildcards_lock);
		return;
	}
	list_del(&w->all);
	weft_sock_detach(w->sock);
	weft_sock_release(w->sock);
	mutex_unlock(&wildcards_lock);
	mutex_destroy(&w->lock);
	kfree(w);
}
