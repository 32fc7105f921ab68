// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Listeners. Taking a connection off TCP is all that happens here; its request is
 * awaited by its own worker with its own deadline, so nobody waits for another.
 *
 * rdma_cm opens a wildcard listener on every device of a port, so each must keep
 * to its own network device. Connections from the same host arrive on the
 * loopback device instead, whatever their address; all wildcard listeners of a
 * port share it and pass on what is not theirs.
 */
#include "cm/listen.h"

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/handshake.h"
#include "cm/iwcm.h"
#include "net/addr.h"
#include "net/tcpsock.h"

/* Beyond this the one that has waited longest for its request is dropped. */
#define WAITING_MAX	512U
/* When memory is out TCP does not say again that somebody waits. */
#define TRY_AGAIN	(HZ / 10)

static LIST_HEAD(wildcards);
static DEFINE_MUTEX(wildcards_lock);	/* protects wildcards */

static void free_listener(struct kref *ref)
{
	struct weft_listener *l = container_of(ref, struct weft_listener, ref);
	struct weft_cm *cm = l->cm;

	weft_iwcm_put_id(l->id);
	mutex_destroy(&l->lock);
	kfree(l);
	weft_cm_put(cm);
}

static void put_listener(struct weft_listener *l)
{
	kref_put(&l->ref, free_listener);
}

/* --- connections that have not said yet what they want --- */

static bool join(struct weft_listener *l, struct weft_conn *conn)
{
	bool open;

	mutex_lock(&l->lock);
	open = !l->closed;
	if (open) {
		kref_get(&l->ref);
		conn->listener = l;
		list_add_tail(&conn->waiting, &l->waiting);
		if (++l->num_waiting > WAITING_MAX)
			weft_conn_post(list_first_entry(&l->waiting, struct weft_conn, waiting),
				       WEFT_CONN_ABANDONED);
	}
	mutex_unlock(&l->lock);
	return open;
}

/**
 * weft_listener_leave - a connection does not need its listener any more
 * @conn: of a listener or not
 *
 * Context: the worker of @conn.
 */
void weft_listener_leave(struct weft_conn *conn)
{
	struct weft_listener *l = conn->listener;

	if (!l)
		return;
	mutex_lock(&l->lock);
	list_del_init(&conn->waiting);
	l->num_waiting--;
	mutex_unlock(&l->lock);
	conn->listener = NULL;
	put_listener(l);
}

/* --- taking connections off TCP --- */

static bool same_place(const struct weft_listener *a, const struct weft_listener *b)
{
	return a->net == b->net && a->port == b->port;
}

/* Who listens on the device that has the address @s was connected to. */
static struct weft_listener *rightful(struct weft_listener *l, struct weft_sock *s)
{
	struct weft_listener *other, *found = l;
	struct sockaddr_storage local;

	weft_sock_local(s, &local);
	mutex_lock(&wildcards_lock);
	if (l->wildcard && !weft_addr_on_device(&local, l->cm->netdev)) {
		list_for_each_entry(other, &wildcards, siblings) {
			if (same_place(l, other) && weft_addr_on_device(&local, other->cm->netdev))
				found = other;
		}
	}
	kref_get(&found->ref);
	mutex_unlock(&wildcards_lock);
	return found;
}

static void adopt(struct weft_listener *l, struct weft_sock *s)
{
	struct weft_conn *conn = weft_conn_new(l->cm, false);

	if (!conn) {
		weft_sock_release(s);
		return;
	}
	weft_handshake_serve(conn, s);
	if (join(l, conn))
		weft_conn_begin(conn, WEFT_CONN_ACCEPTED_TCP);
	else
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	weft_conn_put(conn);
}

/* Return: 0 if there may be more, or -errno. */
static int take_one(struct weft_listener *l, struct weft_sock *from)
{
	struct weft_listener *to;
	struct weft_sock *s;
	int ret;

	ret = weft_sock_accept(from, &s);
	if (ret)
		return ret == -ECONNABORTED ? 0 : ret;
	to = rightful(l, s);
	adopt(to, s);
	put_listener(to);
	return 0;
}

static void accept_work(struct work_struct *work)
{
	struct weft_listener *l = container_of(work, struct weft_listener, work.work);
	bool again = false;
	int i, ret;

	for (i = 0; i < WEFT_LISTEN_SOCKS; i++) {
		if (!l->sock[i])
			continue;
		do {
			ret = take_one(l, l->sock[i]);
		} while (!ret);
		again |= ret == -ENOMEM || ret == -ENOBUFS || ret == -ENFILE;
	}
	if (again)
		queue_delayed_work(l->cm->wq, &l->work, TRY_AGAIN);
}

static void knocked(void *owner)
{
	struct weft_listener *l = owner;

	mod_delayed_work(l->cm->wq, &l->work, 0);
}

static const struct weft_sock_events listen_events = {
	.readable = knocked,
};

/* --- opening and closing --- */

static int bind_and_listen(struct weft_listener *l, struct weft_sock *s,
			   const struct weft_listener_config *cfg)
{
	struct sockaddr_storage addr = *cfg->addr;
	int ret;

	if (cfg->tos >= 0)
		weft_sock_set_tos(s, cfg->tos);
	if (cfg->v6only)
		weft_sock_set_v6only(s);
	weft_addr_scope(&addr, l->cm->netdev->ifindex);
	ret = weft_sock_bind(s, &addr, true);
	return ret ?: weft_sock_listen(s, cfg->backlog);
}

/* @ifindex: the only device to listen on, 0: any. */
static int open_sock(struct weft_listener *l, enum weft_listener_sock which, struct net *net,
		     int ifindex, const struct weft_listener_config *cfg)
{
	struct weft_sock *s;
	int ret;

	ret = weft_sock_create(net, cfg->addr->ss_family, &s);
	if (ret)
		return ret;
	weft_sock_set_device(s, ifindex);
	if (ifindex == net->loopback_dev->ifindex)
		weft_sock_share_port(s);
	ret = bind_and_listen(l, s, cfg);
	if (ret) {
		weft_sock_release(s);
		return ret;
	}
	l->sock[which] = s;
	return 0;
}

/* Without loopback the listener is still good for everybody else. */
static int open_socks(struct weft_listener *l, struct net *net,
		      const struct weft_listener_config *cfg)
{
	int own = l->wildcard ? l->cm->netdev->ifindex : 0;
	int loopback = net->loopback_dev->ifindex;
	int ret;

	ret = open_sock(l, WEFT_LISTEN_MAIN, net, own, cfg);
	if (!ret && l->wildcard && own != loopback)
		open_sock(l, WEFT_LISTEN_LOOPBACK, net, loopback, cfg);
	return ret;
}

static void start(struct weft_listener *l)
{
	int i;

	if (l->wildcard) {
		mutex_lock(&wildcards_lock);
		list_add(&l->siblings, &wildcards);
		mutex_unlock(&wildcards_lock);
	}
	for (i = 0; i < WEFT_LISTEN_SOCKS; i++)
		if (l->sock[i])
			weft_sock_attach(l->sock[i], &listen_events, l);
	knocked(l);	/* who came before that was not announced */
}

static struct weft_listener *new_listener(struct weft_cm *cm, const struct net *net,
					  const struct weft_listener_config *cfg)
{
	struct weft_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return NULL;
	kref_init(&l->ref);
	mutex_init(&l->lock);
	INIT_LIST_HEAD(&l->waiting);
	INIT_LIST_HEAD(&l->siblings);
	INIT_DELAYED_WORK(&l->work, accept_work);
	weft_cm_get(cm);
	l->cm = cm;
	l->net = net;
	l->port = weft_addr_port(cfg->addr);
	l->wildcard = weft_addr_is_any(cfg->addr);
	l->id = cfg->id;
	weft_iwcm_get_id(l->id);
	return l;
}

/**
 * weft_listener_open - listen
 * @cm: of the device
 * @cfg: for whom, where and how
 *
 * Context: process. Return: the listener, for weft_listener_close(), or an
 * ERR_PTR.
 */
struct weft_listener *weft_listener_open(struct weft_cm *cm, const struct weft_listener_config *cfg)
{
	struct net *net = weft_cm_get_net(cm);
	struct weft_listener *l;
	int ret = -ENOMEM;

	if (!net)
		return ERR_PTR(-ENETDOWN);
	l = new_listener(cm, net, cfg);
	if (l)
		ret = open_socks(l, net, cfg);
	put_net(net);	/* the sockets hold it now */
	if (!ret) {
		start(l);
		return l;
	}
	if (l)
		put_listener(l);
	return ERR_PTR(ret);
}

static void close_socks(struct weft_listener *l)
{
	int i;

	for (i = 0; i < WEFT_LISTEN_SOCKS; i++)
		if (l->sock[i])
			weft_sock_detach(l->sock[i]);
	cancel_delayed_work_sync(&l->work);
	for (i = 0; i < WEFT_LISTEN_SOCKS; i++)
		if (l->sock[i])
			weft_sock_release(l->sock[i]);
}

/**
 * weft_listener_close - stop listening
 * @l: from weft_listener_open()
 *
 * Connections whose request is not complete go down with it; those the consumer
 * knows of live on. Context: process.
 */
void weft_listener_close(struct weft_listener *l)
{
	struct weft_conn *conn;

	mutex_lock(&wildcards_lock);
	list_del_init(&l->siblings);
	mutex_unlock(&wildcards_lock);
	close_socks(l);

	mutex_lock(&l->lock);
	l->closed = true;
	list_for_each_entry(conn, &l->waiting, waiting)
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	mutex_unlock(&l->lock);
	put_listener(l);
}
