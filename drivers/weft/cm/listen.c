// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Listeners. Taking a connection off TCP is all that happens here; its request is
 * awaited by its own worker with its own deadline, so nobody waits for another.
 *
 * rdma_cm opens a wildcard listener on every device with the same port, so each
 * keeps to its own network device. A connection of the host to itself counts as
 * coming over the device that has the address, so nothing is lost by that.
 */
#include "cm/listen.h"

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/handshake.h"
#include "cm/iwcm.h"
#include "net/sockaddr.h"
#include "net/tcp_socket.h"

/* When memory is out TCP does not say again that somebody waits. */
#define TRY_AGAIN	(HZ / 10)

static void free_listener(struct kref *ref)
{
	struct weft_listener *l = container_of(ref, struct weft_listener, ref);
	struct weft_cm *cm = l->cm;

	weft_iwcm_put_id(l->id);
	weft_backlog_destroy(&l->backlog);
	kfree(l);
	weft_cm_put(cm);
}

static void put_listener(struct weft_listener *l)
{
	kref_put(&l->ref, free_listener);
}

/* --- taking connections off TCP --- */

static bool join(struct weft_listener *l, struct weft_conn *conn)
{
	if (!weft_backlog_add(&l->backlog, conn))
		return false;
	kref_get(&l->ref);
	conn->listener = l;
	return true;
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
	weft_backlog_leave(&l->backlog, conn);
	conn->listener = NULL;
	put_listener(l);
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

/* As long as there is room: what exceeds it stays with TCP, which the peers find busy then. */
static void accept_work(struct work_struct *work)
{
	struct weft_listener *l = container_of(work, struct weft_listener, backlog.work.work);
	unsigned int noio = memalloc_noio_save();	/* as in conn_work() */
	struct weft_sock *s;
	int ret = 0;

	weft_backlog_offer(&l->backlog);
	while ((!ret || ret == -ECONNABORTED) && weft_sock_has_child(l->sock) &&
	       weft_backlog_has_room(&l->backlog)) {
		ret = weft_sock_accept(l->sock, &s);
		if (!ret)
			adopt(l, s);
		cond_resched();
	}
	if (ret == -ENOMEM || ret == -ENOBUFS || ret == -ENFILE)
		queue_delayed_work(l->cm->wq, &l->backlog.work, TRY_AGAIN);
	memalloc_noio_restore(noio);
}

static void child_ready(void *owner)
{
	struct weft_listener *l = owner;

	weft_backlog_wake(&l->backlog);
}

static const struct weft_sock_events listen_events = {
	.readable = child_ready,
};

/* --- opening and closing --- */

static int bind_and_listen(struct weft_listener *l, const struct weft_listener_config *cfg)
{
	int ifindex = l->cm->netdev->ifindex;
	struct sockaddr_storage addr = *cfg->addr;
	int ret;

	weft_cm_tune(l->cm, l->sock, cfg->tos);
	if (cfg->v6only)
		weft_sock_set_v6only(l->sock);
	if (weft_addr_is_any(&addr))
		weft_sock_set_device(l->sock, ifindex);
	weft_addr_set_scope(&addr, ifindex);
	ret = weft_sock_bind(l->sock, &addr, true);
	return ret ?: weft_sock_listen(l->sock, cfg->backlog);
}

/*
 * rdma_cm asks every device to listen for a wildcard, also those of other network namespaces,
 * whose connections it refuses; and it gives up if one of them fails. So a port that is in use
 * in another namespace than the caller's is no error.
 */
static bool is_in_vain(const struct net *net, const struct weft_listener_config *cfg)
{
	return weft_addr_is_any(cfg->addr) && current->nsproxy &&
	       !net_eq(net, current->nsproxy->net_ns);
}

static int open_sock(struct weft_listener *l, const struct weft_listener_config *cfg)
{
	struct net *net = weft_cm_get_net(l->cm);
	int ret;

	if (!net)
		return -ENETDOWN;
	ret = weft_sock_create(net, cfg->addr->ss_family, &l->sock);
	put_net(net);	/* the socket holds it now */
	if (ret)
		return ret;
	ret = bind_and_listen(l, cfg);
	if (!ret)
		return 0;
	weft_sock_release(l->sock);
	l->sock = NULL;
	return ret == -EADDRINUSE && is_in_vain(net, cfg) ? 0 : ret;
}

static struct weft_listener *new_listener(struct weft_cm *cm, struct iw_cm_id *id, int backlog)
{
	struct weft_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return NULL;
	kref_init(&l->ref);
	weft_backlog_init(&l->backlog, cm->wq, accept_work, backlog);
	weft_cm_get(cm);
	l->cm = cm;
	weft_iwcm_get_id(id);
	l->id = id;
	return l;
}

/*
 * rdma_cm takes a loopback address for a wildcard and asks every device to
 * listen on it, and only the device on the loopback can ever hear anything.
 */
static bool is_deaf(const struct weft_cm *cm, const struct weft_listener_config *cfg)
{
	return weft_addr_is_loopback(cfg->addr) && !(cm->netdev->flags & IFF_LOOPBACK);
}

static void show(struct weft_listener *l)
{
	mutex_lock(&l->cm->listeners_lock);
	list_add_tail(&l->all, &l->cm->listeners);
	mutex_unlock(&l->cm->listeners_lock);
}

static void hide(struct weft_listener *l)
{
	mutex_lock(&l->cm->listeners_lock);
	list_del(&l->all);
	mutex_unlock(&l->cm->listeners_lock);
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
	struct weft_listener *l = new_listener(cm, cfg->id, cfg->backlog);
	int ret = 0;

	if (!l)
		return ERR_PTR(-ENOMEM);
	if (!is_deaf(cm, cfg))
		ret = open_sock(l, cfg);
	if (ret) {
		put_listener(l);
		return ERR_PTR(ret);
	}
	show(l);
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
	hide(l);
	if (l->sock)
		weft_sock_detach(l->sock);
	weft_backlog_stop(&l->backlog);
	if (l->sock)
		weft_sock_release(l->sock);
	weft_backlog_close(&l->backlog);
	put_listener(l);
}
