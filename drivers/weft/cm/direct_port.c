// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The listeners of directly connected QPs. Each is bound to an address that QPs name as
 * their own, so that TCP delivers what is meant for them whichever netdev it comes over, and
 * two devices in a namespace do not get in each other's way.
 */
#include "cm/direct_port.h"

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/netdevice.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "cm/cm.h"
#include "cm/conn.h"
#include "cm/direct.h"
#include "cm/handshake.h"
#include "net/sockaddr.h"
#include "net/tcp_socket.h"

#define BACKLOG		256
/* Beyond this the connection that has waited longest for its request is dropped. */
#define WAITING_MAX	128U
/* No more than that are on their way out; what comes then stays in TCP's accept queue. */
#define DROPPED_MAX	32U
/* When memory is out TCP does not say again that a connection waits. */
#define TRY_AGAIN	(HZ / 10)

/**
 * struct weft_direct_port - a listener
 * @ref: one for the list, one for each connection that came here
 * @cm: of the device
 * @all: in weft_directs.ports
 * @users: QPs; protected by the lock of that list
 * @addr: and port
 * @sock: the socket
 * @work: takes connections off TCP; cancelled before @sock goes
 * @lock: protects @waiting, @num_waiting, @num_dropped, @full, @closed
 * @waiting: connections whose request is not complete, oldest first
 * @num_waiting: of them
 * @num_dropped: connections that were dropped for a newer one, and are not released yet
 * @full: @work accepts no more until one of these is released
 * @closed: no more of them
 */
struct weft_direct_port {
	struct kref ref;
	struct weft_cm *cm;
	struct list_head all;
	u32 users;
	struct sockaddr_storage addr;
	struct weft_sock *sock;
	struct delayed_work work;
	struct mutex lock; /* waiting, num_waiting, num_dropped, full, closed, weft_conn.dropped */
	struct list_head waiting;
	u32 num_waiting;
	u32 num_dropped;
	bool full;
	bool closed;
};

static void free_port(struct kref *ref)
{
	struct weft_direct_port *port = container_of(ref, struct weft_direct_port, ref);
	struct weft_cm *cm = port->cm;

	mutex_destroy(&port->lock);
	kfree(port);
	weft_cm_put(cm);
}

static bool stop_waiting_at_port(struct weft_conn *conn) __must_hold(&conn->port->lock)
{
	lockdep_assert_held(&conn->port->lock);
	if (list_empty(&conn->at_port))
		return false;
	list_del_init(&conn->at_port);
	conn->port->num_waiting--;
	return true;
}

/* It counts until its worker has released it, as peers may connect faster than that. */
static void drop_oldest(struct weft_direct_port *port) __must_hold(&port->lock)
{
	struct weft_conn *oldest = list_first_entry(&port->waiting, struct weft_conn, at_port);

	lockdep_assert_held(&port->lock);
	stop_waiting_at_port(oldest);
	oldest->dropped = true;
	port->num_dropped++;
	weft_conn_post(oldest, WEFT_CONN_ABANDONED);
}

/* May one more be taken from TCP? If not, @work runs again when one is released. */
static bool has_space(struct weft_direct_port *port)
{
	bool space;

	mutex_lock(&port->lock);
	space = !port->closed && port->num_dropped < DROPPED_MAX;
	port->full = !space;
	mutex_unlock(&port->lock);
	return space;
}

static bool join_port(struct weft_direct_port *port, struct weft_conn *conn)
{
	bool open;

	mutex_lock(&port->lock);
	open = !port->closed;
	if (open && port->num_waiting >= WAITING_MAX)
		drop_oldest(port);
	if (open) {
		kref_get(&port->ref);
		conn->port = port;
		list_add_tail(&conn->at_port, &port->waiting);
		port->num_waiting++;
	}
	mutex_unlock(&port->lock);
	return open;
}

/**
 * weft_direct_port_requested - a connection has sent its request
 * @conn: that came to a port
 *
 * From here on it does not end with the listener. Context: the worker of @conn. Return: false if
 * it has been told to end meanwhile, for a newer one or with the listener.
 */
bool weft_direct_port_requested(struct weft_conn *conn)
{
	struct weft_direct_port *port = conn->port;
	bool waited;

	mutex_lock(&port->lock);
	waited = !port->closed && stop_waiting_at_port(conn);
	mutex_unlock(&port->lock);
	return waited;
}

/* Not after the port is closed: its work is cancelled then. */
static void forget_dropped(struct weft_direct_port *port) __must_hold(&port->lock)
{
	lockdep_assert_held(&port->lock);
	port->num_dropped--;
	if (port->full && !port->closed)
		mod_delayed_work(port->cm->wq, &port->work, 0);
	port->full = false;
}

/**
 * weft_direct_port_leave - a connection has ended
 * @conn: that came to a port, or not; its socket is released
 *
 * Context: the worker of @conn.
 */
void weft_direct_port_leave(struct weft_conn *conn)
{
	struct weft_direct_port *port = conn->port;

	if (!port)
		return;
	mutex_lock(&port->lock);
	stop_waiting_at_port(conn);
	if (conn->dropped)
		forget_dropped(port);
	mutex_unlock(&port->lock);
	conn->port = NULL;
	kref_put(&port->ref, free_port);
}

static void serve_child(struct weft_direct_port *port, struct weft_sock *s)
{
	struct weft_conn *conn = weft_conn_new(port->cm, false);

	if (!conn) {
		weft_sock_release(s);
		return;
	}
	conn->ops = &weft_direct_conn_ops;
	conn->hs->policy.revision = 2;
	weft_handshake_serve(conn, s);
	if (!join_port(port, conn) || weft_conn_begin(conn, WEFT_CONN_TCP_ACCEPTED))
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	weft_conn_put(conn);
}

static void port_accept_work(struct work_struct *work)
{
	struct weft_direct_port *port = container_of(work, struct weft_direct_port, work.work);
	unsigned int noio = memalloc_noio_save();	/* as in conn_work() */
	struct weft_sock *s;
	int ret = 0;

	while ((!ret || ret == -ECONNABORTED) && has_space(port)) {
		ret = weft_sock_accept(port->sock, &s);
		if (!ret)
			serve_child(port, s);
		cond_resched();
	}
	if (ret == -ENOMEM || ret == -ENOBUFS || ret == -ENFILE)
		queue_delayed_work(port->cm->wq, &port->work, TRY_AGAIN);
	memalloc_noio_restore(noio);
}

static void connection_waits(void *owner)
{
	struct weft_direct_port *port = owner;

	mod_delayed_work(port->cm->wq, &port->work, 0);
}

static const struct weft_sock_events listen_events = {
	.readable = connection_waits,
};

static int open_port_sock(struct weft_direct_port *port)
{
	struct net *net = weft_cm_get_net(port->cm);
	int ret;

	if (!net)
		return -ENETDOWN;
	ret = weft_sock_create(net, port->addr.ss_family, &port->sock);
	put_net(net);	/* the socket holds it now */
	if (ret)
		return ret;
	weft_cm_tune(port->cm, port->sock, WEFT_TOS_NONE);
	ret = weft_sock_bind(port->sock, &port->addr, true);
	if (!ret)
		ret = weft_sock_listen(port->sock, BACKLOG);
	if (ret)
		weft_sock_release(port->sock);
	return ret;
}

static struct weft_direct_port *new_port(struct weft_cm *cm, const struct sockaddr_storage *addr)
{
	struct weft_direct_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	int ret;

	if (!port)
		return ERR_PTR(-ENOMEM);
	kref_init(&port->ref);
	mutex_init(&port->lock);
	INIT_LIST_HEAD(&port->waiting);
	INIT_DELAYED_WORK(&port->work, port_accept_work);
	port->users = 1;
	port->addr = *addr;
	port->cm = cm;
	weft_cm_get(cm);
	ret = open_port_sock(port);
	if (ret) {
		kref_put(&port->ref, free_port);
		return ERR_PTR(ret);
	}
	return port;
}

/**
 * weft_direct_port_open - one more QP is reached at an address
 * @cm: of the device
 * @addr: its own, with the port
 *
 * Context: process, the lock of weft_directs held. Return: the listener, for
 * weft_direct_port_close(), or an ERR_PTR: -EADDRINUSE when another socket has the port.
 */
struct weft_direct_port *weft_direct_port_open(struct weft_cm *cm,
					       const struct sockaddr_storage *addr)
	__must_hold(&cm->directs.lock)
{
	struct weft_direct_port *port;

	lockdep_assert_held(&cm->directs.lock);
	list_for_each_entry(port, &cm->directs.ports, all) {
		if (!weft_addr_equal(&port->addr, addr) ||
		    weft_addr_port(&port->addr) != weft_addr_port(addr))
			continue;
		port->users++;
		return port;
	}
	port = new_port(cm, addr);
	if (IS_ERR(port))
		return port;
	list_add_tail(&port->all, &cm->directs.ports);
	weft_sock_attach(port->sock, &listen_events, port);
	connection_waits(port);	/* what came before that was not announced */
	return port;
}

/**
 * weft_direct_port_close - one QP less
 * @port: from weft_direct_port_open()
 *
 * With the last one the listener goes, and connections that have not sent their request.
 * Its worker takes no lock of weft_directs, so it is waited for with that held: the
 * next one to open the port finds it free.
 *
 * Context: process, the lock of weft_directs held.
 */
void weft_direct_port_close(struct weft_direct_port *port) __must_hold(&port->cm->directs.lock)
{
	struct weft_conn *conn;

	lockdep_assert_held(&port->cm->directs.lock);
	if (--port->users)
		return;
	list_del(&port->all);
	weft_sock_detach(port->sock);
	mutex_lock(&port->lock);
	port->closed = true; /* none waits any more, and its worker ends */
	list_for_each_entry(conn, &port->waiting, at_port)
		weft_conn_post(conn, WEFT_CONN_ABANDONED);
	mutex_unlock(&port->lock);
	cancel_delayed_work_sync(&port->work);
	weft_sock_release(port->sock);
	kref_put(&port->ref, free_port);
}
