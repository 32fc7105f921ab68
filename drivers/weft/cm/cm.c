// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Birth and death of a device's connection management.
 */
#include "cm/cm.h"

#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "base/limits.h"
#include "cm/conn.h"
#include "engine/life/stream.h"
#include "net/tcp_socket.h"
#include "proto/direct.h"

/* Revision 2 with the peer-to-peer model, so that a responder may send first. */
static const struct weft_mpa_policy default_policy = {
	.revision = 2,
	.crc = WEFT_MPA_CRC_ON,
	.markers = false,
	.p2p = true,
	.rtr = WEFT_RTR_SEND | WEFT_RTR_WRITE | WEFT_RTR_READ,
	.ird_max = WEFT_MAX_IRD,
};

static const struct weft_cm_deadlines default_deadlines = {
	.connect = 20 * MSEC_PER_SEC,
	.request = 10 * MSEC_PER_SEC,
	.decision = 60 * MSEC_PER_SEC,
	.reply = 30 * MSEC_PER_SEC,
	.rtr = 10 * MSEC_PER_SEC,
};

/**
 * weft_cm_init - prepare a device for connections
 * @cm: part of the device
 * @streams: of the device
 * @netdev: of the device, held until weft_cm_exit()
 * @counters: of the device
 *
 * Context: process. The queue is for reclaim, since storage reconnects through
 * it; its items are independent, so one slow connection delays no other.
 * Return: 0 or -ENOMEM.
 */
int weft_cm_init(struct weft_cm *cm, struct weft_stream_index *streams, struct net_device *netdev,
		 struct weft_counters *counters)
{
	cm->wq = alloc_workqueue("weft_cm", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!cm->wq)
		return -ENOMEM;
	cm->streams = streams;
	cm->netdev = netdev;
	cm->counters = counters;
	cm->policy = default_policy;
	cm->deadlines = default_deadlines;
	cm->ord_max = WEFT_MAX_ORD;
	cm->private_data_max = U8_MAX;	/* iw_cm cannot hand on more */
	mutex_init(&cm->opts_lock);
	INIT_LIST_HEAD(&cm->listeners);
	mutex_init(&cm->listeners_lock);
	mutex_init(&cm->directs.lock);
	xa_init(&cm->directs.by_qpn);
	INIT_LIST_HEAD(&cm->directs.ports);
	INIT_LIST_HEAD(&cm->directs.held);
	cm->directs.num_held = 0;
	cm->directs.port = WEFT_DIRECT_PORT;
	xa_init_flags(&cm->conns, XA_FLAGS_ALLOC1);
	hash_init(cm->by_context);
	spin_lock_init(&cm->by_context_lock);
	cm->next_handle = 0;
	refcount_set(&cm->users, 1);
	init_completion(&cm->idle);
	return 0;
}

/* Those of @stream only, NULL: all. */
static void abandon_conns(struct weft_cm *cm, const struct weft_stream *stream)
{
	struct weft_conn *conn;
	unsigned long handle;

	xa_for_each(&cm->conns, handle, conn) {
		conn = weft_conn_find(cm, handle);
		if (!conn)
			continue;
		if (!stream || READ_ONCE(conn->stream) == stream)
			weft_conn_post(conn, WEFT_CONN_ABANDONED);
		weft_conn_put(conn);
	}
}

/**
 * weft_cm_cancel_pending - no consumer waits for this connection any more
 * @cm: of the device
 * @stream: of a QP that goes away before it was connected
 *
 * A connect under way holds a reference to the QP, so its deadline would be the
 * QP's too. Context: process. Does not wait.
 */
void weft_cm_cancel_pending(struct weft_cm *cm, const struct weft_stream *stream)
{
	if (weft_stream_is_reserved(stream))	/* most are not, and there may be thousands */
		abandon_conns(cm, stream);
}

/**
 * weft_cm_abort - end every connection now
 * @cm: of the device
 *
 * Context: process. Consumers that wait for an outcome are told at once instead
 * of at their deadline. Does not wait.
 */
void weft_cm_abort(struct weft_cm *cm)
{
	abandon_conns(cm, NULL);
}

/**
 * weft_cm_exit - end what is left and wait for it
 * @cm: of the device; consumers have destroyed all their ids
 *
 * Context: process.
 */
void weft_cm_exit(struct weft_cm *cm)
{
	weft_cm_abort(cm);
	weft_cm_put(cm);
	wait_for_completion(&cm->idle);
	destroy_workqueue(cm->wq);
	WARN_ON_ONCE(!xa_empty(&cm->conns));
	xa_destroy(&cm->conns);
	mutex_destroy(&cm->listeners_lock);
	WARN_ON_ONCE(!xa_empty(&cm->directs.by_qpn) || !list_empty(&cm->directs.ports));
	xa_destroy(&cm->directs.by_qpn);
	mutex_destroy(&cm->directs.lock);
	mutex_destroy(&cm->opts_lock);
}

/**
 * weft_cm_set_congestion - choose TCP's congestion control for later connections
 * @cm: of the device
 * @name: shorter than TCP_CA_NAME_MAX; empty: that of the network namespace
 *
 * Context: process. Return: 0, -EINVAL for a name TCP does not know or the caller
 * has no right to, or another -errno.
 */
int weft_cm_set_congestion(struct weft_cm *cm, const char *name)
{
	struct net *net = weft_cm_get_net(cm);
	int ret = 0;

	if (!net)
		return -ENETDOWN;
	if (*name)
		ret = weft_sock_try_congestion(net, name);
	put_net(net);
	if (ret == -ENOENT || ret == -EPERM)
		return -EINVAL;
	if (ret)
		return ret;
	mutex_lock(&cm->opts_lock);
	strscpy(cm->opts.congestion, name, sizeof(cm->opts.congestion));
	mutex_unlock(&cm->opts_lock);
	return 0;
}

/**
 * weft_cm_get_congestion - what was chosen
 * @cm: of the device
 * @name: TCP_CA_NAME_MAX bytes
 *
 * Context: process.
 */
void weft_cm_get_congestion(struct weft_cm *cm, char *name)
{
	mutex_lock(&cm->opts_lock);
	strscpy(name, cm->opts.congestion, TCP_CA_NAME_MAX);
	mutex_unlock(&cm->opts_lock);
}

/**
 * weft_cm_tune - give a socket what operator and consumer want
 * @cm: of the device
 * @s: not connected yet, or just accepted
 * @tos: the consumer's type of service, or WEFT_TOS_NONE, WEFT_TOS_KEEP
 *
 * Context: process.
 */
void weft_cm_tune(struct weft_cm *cm, struct weft_sock *s, int tos)
{
	struct weft_sock_opts opts;

	mutex_lock(&cm->opts_lock);
	opts = cm->opts;
	mutex_unlock(&cm->opts_lock);
	if (tos != WEFT_TOS_NONE)
		opts.tos = 0;
	weft_sock_apply_opts(s, &opts);
	if (tos >= 0)
		weft_sock_set_tos(s, tos);
}

/**
 * weft_cm_get - one more connection or listener
 * @cm: of the device
 */
void weft_cm_get(struct weft_cm *cm)
{
	refcount_inc(&cm->users);
}

/**
 * weft_cm_put - one connection or listener less
 * @cm: of the device; may be gone afterwards
 */
void weft_cm_put(struct weft_cm *cm)
{
	if (refcount_dec_and_test(&cm->users))
		complete(&cm->idle);
}

/**
 * weft_cm_get_net - the network namespace the device's sockets live in
 * @cm: of the device
 *
 * Context: any. Return: a reference for put_net(), or NULL if it is going away.
 */
struct net *weft_cm_get_net(struct weft_cm *cm)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(dev_net(cm->netdev));
	rcu_read_unlock();
	return net;
}
