// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Listeners. Taking a connection off TCP is all that happens here; its request is
 * awaited by its own worker with its own deadline, so no connection waits for another.
 * Those for a wildcard share a socket, see cm/wildcard.c.
 */
#include "cm/listen.h"

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/handshake.h"
#include "cm/iwcm.h"
#include "cm/wildcard.h"
#include "net/sockaddr.h"
#include "net/tcp_socket.h"

/* When memory is out TCP does not say again that a connection waits. */
#define TRY_AGAIN	(HZ / 10)

static void free_listener(struct kref *ref)
{
	struct weft_listener *l = container_of(ref, struct weft_listener, ref);
	struct weft_cm *cm = l->cm;

	weft_iwcm_put_id(l->id);
	mutex_destroy(&l->backlog.lock);
	kfree(l);
	weft_cm_put(cm);
}

/* --- taking connections off TCP --- */

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
	weft_backlog_leave(&l->backlog, conn);
	conn->listener = NULL;
	kref_put(&l->ref, free_listener);
}

/**
 * weft_listener_adopt - a connection is for this listener
 * @l: the listener
 * @s: just accepted; taken over
 */
void weft_listener_adopt(struct weft_listener *l, struct weft_sock *s)
{
	struct weft_conn *conn = weft_conn_new(l->cm, false);
	bool joined;

	if (!conn) {
		weft_sock_release(s);
		return;
	}
	if (l->tos != WEFT_TOS_KEEP)
		weft_cm_tune(l->cm, s, l->tos);
	weft_handshake_serve(conn, s);
	joined = weft_backlog_add(&l->backlog, conn);
	if (joined) {
		kref_get(&l->ref);
		conn->listener = l;
	}
	if (!joined || weft_conn_begin(conn, WEFT_CONN_TCP_ACCEPTED))
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	weft_conn_put(conn);
}

/* As long as there is room: what exceeds it stays with TCP, which the peers find busy then. */
static int accept_own(struct weft_listener *l)
{
	struct weft_sock *s;
	int ret = 0;

	while ((!ret || ret == -ECONNABORTED) && weft_sock_has_child(l->sock) &&
	       weft_backlog_has_space(&l->backlog)) {
		ret = weft_sock_accept(l->sock, &s);
		if (!ret)
			weft_listener_adopt(l, s);
		cond_resched();
	}
	return ret;
}

static void listener_accept_work(struct work_struct *work)
{
	struct weft_listener *l = container_of(work, struct weft_listener, backlog.work.work);
	unsigned int noio = memalloc_noio_save();	/* as in conn_work() */
	int ret = 0;

	weft_backlog_offer(&l->backlog);
	if (l->wildcard)
		ret = weft_wildcard_accept(l);
	else if (l->sock)
		ret = accept_own(l);
	if (ret == -ENOMEM || ret == -ENOBUFS || ret == -ENFILE)
		queue_delayed_work(l->cm->wq, &l->backlog.work, TRY_AGAIN);
	memalloc_noio_restore(noio);
}

static void child_ready(void *owner)
{
	struct weft_listener *l = owner;

	mod_delayed_work(l->cm->wq, &l->backlog.work, 0);
}

static const struct weft_sock_events listen_events = {
	.readable = child_ready,
};

/* --- opening and closing --- */

static int open_own(struct weft_listener *l, const struct weft_listener_config *cfg,
		    struct net *net)
{
	int ifindex = l->cm->netdev->ifindex;
	struct sockaddr_storage addr = *cfg->addr;
	int ret;

	ret = weft_sock_create(net, addr.ss_family, &l->sock);
	if (ret)
		return ret;
	weft_cm_tune(l->cm, l->sock, cfg->tos);
	weft_sock_set_v6only(l->sock, cfg->v6only);
	if (weft_addr_is_any(&addr))
		weft_sock_set_device(l->sock, ifindex);
	weft_addr_set_scope(&addr, ifindex);
	ret = weft_sock_bind(l->sock, &addr, true);
	if (!ret)
		ret = weft_sock_listen(l->sock, cfg->backlog);
	if (ret) {
		weft_sock_release(l->sock);
		l->sock = NULL;
	}
	return ret;
}

/*
 * rdma_cm takes a loopback address for a wildcard, and asks every device to listen for that.
 * Only a device on the loopback ever hears something there; and connections to a device of
 * another network namespace than the consumer's would be refused. Such listeners have no socket.
 */
static int open_listener_sock(struct weft_listener *l, const struct weft_listener_config *cfg)
{
	struct net *net = weft_cm_get_net(l->cm);
	bool loopback = weft_addr_is_loopback(cfg->addr);
	bool any = weft_addr_is_any(cfg->addr);
	int ret;

	if (!net)
		return -ENETDOWN;
	if ((loopback && !(l->cm->netdev->flags & IFF_LOOPBACK)) ||
	    (any && cfg->scope == WEFT_WILDCARD_NONE) ||
	    ((loopback || any) && !net_eq(net, cfg->net)))
		ret = 0;
	else if (any && cfg->scope == WEFT_WILDCARD_SHARED)
		ret = weft_wildcard_join(l, cfg, net);
	else
		ret = open_own(l, cfg, net);
	put_net(net);	/* the socket holds it now */
	return ret;
}

static struct weft_listener *new_listener(struct weft_cm *cm, struct iw_cm_id *id, int backlog)
{
	struct weft_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return NULL;
	kref_init(&l->ref);
	weft_backlog_init(&l->backlog, cm->wq, listener_accept_work, backlog);
	weft_cm_get(cm);
	l->cm = cm;
	weft_iwcm_get_id(id);
	l->id = id;
	l->tos = WEFT_TOS_KEEP;
	return l;
}

/**
 * weft_listener_open - listen
 * @cm: of the device
 * @cfg: for which consumer, where and how
 *
 * Context: process. Return: the listener, for weft_listener_close(), or an
 * ERR_PTR.
 */
struct weft_listener *weft_listener_open(struct weft_cm *cm, const struct weft_listener_config *cfg)
{
	struct weft_listener *l = new_listener(cm, cfg->id, cfg->backlog);
	int ret;

	if (!l)
		return ERR_PTR(-ENOMEM);
	ret = open_listener_sock(l, cfg);
	if (ret) {
		kref_put(&l->ref, free_listener);
		return ERR_PTR(ret);
	}
	mutex_lock(&cm->listeners_lock);
	list_add_tail(&l->all, &cm->listeners);
	mutex_unlock(&cm->listeners_lock);
	if (!l->sock)
		return l;
	weft_sock_attach(l->sock, &listen_events, l);
	child_ready(l);	/* what came before that was not announced */
	return l;
}

/**
 * weft_listener_close - stop listening
 * @l: from weft_listener_open()
 *
 * Connections that the consumer has been told of live on, the others go down with the
 * listener. Context: process.
 */
void weft_listener_close(struct weft_listener *l)
{
	mutex_lock(&l->cm->listeners_lock);
	list_del(&l->all);
	mutex_unlock(&l->cm->listeners_lock);
	if (l->wildcard)
		weft_wildcard_leave(l);
	if (l->sock)
		weft_sock_detach(l->sock);
	weft_backlog_stop(&l->backlog);
	if (l->sock)
		weft_sock_release(l->sock);
	weft_backlog_close(&l->backlog);
	kref_put(&l->ref, free_listener);
}
