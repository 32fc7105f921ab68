// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Kernel TCP sockets. Everything here that takes the socket lock runs in process
 * context.
 *
 * Lock classes: sock_create_kern() and the children of its listeners already
 * have classes apart from user space's, where pages are faulted in under the
 * socket lock. Classes of our own would pin the module until the last orphaned
 * socket is gone, and could not be given to accepted sockets, which are live.
 */
#include "net/tcp_socket.h"

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "base/compat.h"
#include "net/sockaddr.h"
#include "net/tcp_internals.h"
#include "net/tcp_mem_reserve.h"
#include "proto/hot.h"

/* --- callbacks: from TCP to the owner --- */

static void weft_hot on_data_ready(struct sock *sk)
{
	struct weft_sock *s = sk->sk_user_data;

	sock_owned_by_me(sk);
	if (!s)
		return;
	weft_mem_reserve_check(sk);
	s->events->readable(s->owner);
}

/*
 * Runs without the socket lock, also for a child that was not accepted yet, whose
 * callback lock does not protect the listener's owner.
 */
static void on_listen_ready(struct sock *sk)
{
	struct weft_sock *s;

	read_lock_bh(&sk->sk_callback_lock);
	s = sk->sk_user_data;
	if (s && sk->sk_state == TCP_LISTEN)
		s->events->readable(s->owner);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void on_write_space(struct sock *sk)
{
	struct weft_sock *s = sk->sk_user_data;

	sock_owned_by_me(sk);
	if (!s || !sk_stream_is_writeable(sk))
		return;
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	s->events->writable(s->owner);
}

static void on_state_change(struct sock *sk)
{
	struct weft_sock *s = sk->sk_user_data;

	sock_owned_by_me(sk);
	if (s)
		s->events->changed(s->owner);
}

/**
 * weft_sock_attach - let the callbacks call @owner from now on
 * @s: the socket
 * @events: what to call
 * @owner: handed to @events
 *
 * Context: process; replaces an earlier owner without a gap. What happened before
 * causes no call: look at the state and read once after attaching.
 */
void weft_sock_attach(struct weft_sock *s, const struct weft_sock_events *events, void *owner)
{
	struct sock *sk = s->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	s->events = events;
	s->owner = owner;
	if (!sk->sk_user_data) {
		s->saved_data_ready = sk->sk_data_ready;
		s->saved_write_space = sk->sk_write_space;
		s->saved_state_change = sk->sk_state_change;
		sk->sk_user_data = s;
		if (s->listening) {
			sk->sk_data_ready = on_listen_ready;
		} else {
			sk->sk_data_ready = on_data_ready;
			sk->sk_write_space = on_write_space;
			sk->sk_state_change = on_state_change;
		}
	}
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/**
 * weft_sock_detach - call no owner any more
 * @s: the socket, attached or not
 *
 * Context: process, not from a callback. No callback runs once it returns:
 * those of a connection run under the socket lock, those of a listener under
 * the callback lock.
 */
void weft_sock_detach(struct weft_sock *s)
{
	struct sock *sk = s->sk;

	lock_sock(sk);
	weft_mem_reserve_end(&s->reserve, sk);
	write_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_user_data) {
		sk->sk_user_data = NULL;
		sk->sk_data_ready = s->saved_data_ready;
		sk->sk_write_space = s->saved_write_space;
		sk->sk_state_change = s->saved_state_change;
	}
	s->events = NULL;
	s->owner = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/* --- creation and options --- */

/*
 * A kernel socket does not hold its network namespace, but its timers need it
 * after the release: an orphan still retransmits its FIN. So count it like a
 * user's, until the sock is destructed. Children of a listener inherit this.
 */
static void hold_netns(struct sock *sk)
{
#ifdef HAVE_SK_NET_REFCNT_UPGRADE
	sk_net_refcnt_upgrade(sk);
#else
	struct net *net = sock_net(sk);

#ifdef HAVE_NETNS_TRACKER_FREE
	__netns_tracker_free(net, &sk->ns_tracker, false);
#endif
	sk->sk_net_refcnt = 1;
	get_net_track(net, &sk->ns_tracker, GFP_KERNEL);
	sock_inuse_add(net, 1);
#endif
}

static void init_sock(struct weft_sock *s)
{
	struct sock *sk = s->sk;

	INIT_LIST_HEAD(&s->reserve.node);
	s->reserve.not_before = jiffies;
	/*
	 * Sends happen on the way to a disk at times: no allocation may wait for I/O. The task's
	 * page fragment may be in use where the task faulted, or reclaims.
	 */
	s->allocation = GFP_NOIO;
	sk->sk_allocation = s->allocation;
	compat_use_own_frag(sk);
	tcp_sock_set_nodelay(sk);
}

/**
 * weft_sock_create - a new TCP socket
 * @net: its network namespace, which must not be gone yet
 * @family: AF_INET or AF_INET6
 * @out: the socket, owned by the caller
 *
 * Context: process. Return: 0 or -errno.
 */
int weft_sock_create(struct net *net, int family, struct weft_sock **out)
{
	struct weft_sock *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	ret = sock_create_kern(net, family, SOCK_STREAM, IPPROTO_TCP, &s->sock);
	if (ret) {
		kfree(s);
		return ret;
	}
	s->sk = s->sock->sk;
	hold_netns(s->sk);
	init_sock(s);
	*out = s;
	return 0;
}

/**
 * weft_sock_set_memalloc - let TCP allocate from the memory reserves
 * @s: the socket of a connection that may have a disk at its other end
 *
 * When memory is short because dirty pages wait for that disk, the reserves let them get
 * there: TCP allocates from them, and does not drop answers that were received into them.
 *
 * Context: process.
 */
void weft_sock_set_memalloc(struct weft_sock *s)
{
	struct sock *sk = s->sk;

	lock_sock(sk);
	if (!sock_flag(sk, SOCK_MEMALLOC))
		sk_set_memalloc(sk);
	WRITE_ONCE(s->allocation, sk->sk_allocation);
	release_sock(sk);
}

/**
 * weft_sock_bind - give the socket its local address
 * @s: the socket
 * @addr: address, port and scope
 * @reuse: the port may have connections in TIME_WAIT
 *
 * Context: process. Return: 0 or -errno.
 */
int weft_sock_bind(struct weft_sock *s, const struct sockaddr_storage *addr, bool reuse)
{
	struct sockaddr_storage copy = *addr;
	int len = addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);

	if (reuse)
		sock_set_reuseaddr(s->sk);
	return kernel_bind(s->sock, (struct weft_sockaddr *)&copy, len);
}

/**
 * weft_sock_bind_shared - give the socket a port that connections of others have
 * @s: the socket, about to connect
 * @addr: address, port and scope
 *
 * A connection that binds no port gets one that others may have, as long as no two of them
 * have the same peer; bind() refuses such a port. This takes it as a connect would have.
 *
 * Context: process. Return: 0; -EADDRINUSE if the port was bound, the socket is of no use then;
 * or another -errno.
 */
int weft_sock_bind_shared(struct weft_sock *s, const struct sockaddr_storage *addr)
{
	int ret;

	lock_sock(s->sk);
	s->sk->sk_reuse = SK_FORCE_REUSE;
	release_sock(s->sk);
	ret = weft_sock_bind(s, addr, false);
	sock_set_reuseaddr(s->sk);
	if (!ret && !weft_tcp_shares_port(s->sk))
		ret = -EADDRINUSE;
	return ret;
}

/**
 * weft_sock_listen - wait for connections
 * @s: a bound socket, not attached yet
 * @backlog: connections not accepted yet, at least; there is room for as many more as any
 *	process could ask for
 *
 * Context: process. What arrived before weft_sock_attach() is not announced:
 * accept once after attaching. Return: 0 or -errno.
 */
int weft_sock_listen(struct weft_sock *s, int backlog)
{
	int somaxconn = READ_ONCE(sock_net(s->sk)->core.sysctl_somaxconn);

	s->listening = true;
	return kernel_listen(s->sock, max(backlog, somaxconn));
}

/**
 * weft_sock_has_child - is there a connection to accept?
 * @listener: a listening socket
 *
 * Context: any.
 */
bool weft_sock_has_child(const struct weft_sock *listener)
{
	return weft_tcp_has_child(listener->sk);
}

/**
 * weft_sock_accept - take one connection off a listener
 * @listener: where
 * @out: the new socket, owned by the caller and not attached
 *
 * Context: process. Return: 0, -EAGAIN when there is none, or -errno.
 */
int weft_sock_accept(struct weft_sock *listener, struct weft_sock **out)
{
	struct weft_sock *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct sock *sk;
	int ret;

	if (!s)
		return -ENOMEM;
	ret = kernel_accept(listener->sock, &s->sock, O_NONBLOCK);
	if (ret) {
		kfree(s);
		return ret;
	}
	sk = s->sock->sk;
	s->sk = sk;
	/* It has the callbacks of its listener: drop them. */
	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	if (sk->sk_data_ready == on_listen_ready)
		sk->sk_data_ready = listener->saved_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
	init_sock(s);
	*out = s;
	return 0;
}

/**
 * weft_sock_connect - start to connect
 * @s: an attached socket
 * @addr: the peer
 *
 * Context: process. Return: 0, -EINPROGRESS when @changed will be called, or -errno.
 */
int weft_sock_connect(struct weft_sock *s, const struct sockaddr_storage *addr)
{
	struct sockaddr_storage copy = *addr;
	int len = addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);

	return kernel_connect(s->sock, (struct weft_sockaddr *)&copy, len, O_NONBLOCK);
}

/**
 * weft_sock_error - why the connection was lost
 * @s: the socket
 *
 * Context: any. Return: 0 for an orderly end, else -errno; it is not consumed.
 */
int weft_sock_error(const struct weft_sock *s)
{
	return -READ_ONCE(s->sk->sk_err);
}

/**
 * weft_sock_is_unreachable - does an error mean that no packet gets to the peer?
 * @err: of weft_sock_error()
 *
 * That is what ARP and ICMP report. No answer at all: -ETIMEDOUT.
 */
bool weft_sock_is_unreachable(int err)
{
	switch (err) {
	case -EHOSTUNREACH:
	case -EHOSTDOWN:
	case -ENETUNREACH:
	case -ENETDOWN:
		return true;
	default:
		return false;
	}
}

/**
 * weft_sock_state - how the connection stands
 * @s: the socket
 *
 * Context: any. Bytes that arrived before the end may still be read.
 */
enum weft_sock_state weft_sock_state(const struct weft_sock *s)
{
	switch (inet_sk_state_load(s->sk)) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return WEFT_SOCK_CONNECTING;
	case TCP_ESTABLISHED:
	case TCP_FIN_WAIT1:
	case TCP_FIN_WAIT2:
		return WEFT_SOCK_UP;
	case TCP_CLOSE_WAIT:
		return WEFT_SOCK_PEER_CLOSED;
	default:
		return WEFT_SOCK_LOST;
	}
}

/**
 * weft_sock_local - own address and port
 * @s: the socket
 * @out: filled in
 *
 * Context: process. Return: 0 or -errno.
 */
int weft_sock_local(const struct weft_sock *s, struct sockaddr_storage *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	ret = kernel_getsockname(s->sock, (struct sockaddr *)out);
	weft_addr_unmap(out);
	return ret < 0 ? ret : 0;
}

/**
 * weft_sock_peer - address and port of the peer
 * @s: a connected socket
 * @out: filled in
 *
 * Context: process. Return: 0 or -errno.
 */
int weft_sock_peer(const struct weft_sock *s, struct sockaddr_storage *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	ret = kernel_getpeername(s->sock, (struct sockaddr *)out);
	weft_addr_unmap(out);
	return ret < 0 ? ret : 0;
}

/**
 * weft_sock_set_tos - set the type of service, or the traffic class
 * @s: the socket; children of a listener inherit it
 * @tos: the byte
 *
 * Context: process.
 */
void weft_sock_set_tos(struct weft_sock *s, u8 tos)
{
	int val = tos;

	ip_sock_set_tos(s->sk, tos);
	if (s->sk->sk_family == AF_INET6)
		s->sock->ops->setsockopt(s->sock, SOL_IPV6, IPV6_TCLASS, KERNEL_SOCKPTR(&val),
					 sizeof(val));
}

/**
 * weft_sock_set_v6only - does an IPv6 listener refuse IPv4 peers?
 * @s: a socket not bound yet
 * @v6only: it does, whatever the default of its namespace (bindv6only)
 *
 * Context: process.
 */
void weft_sock_set_v6only(struct weft_sock *s, bool v6only)
{
	lock_sock(s->sk);
	s->sk->sk_ipv6only = v6only;
	release_sock(s->sk);
}

/**
 * weft_sock_set_user_timeout - how long bytes may stay unacknowledged
 * @s: the socket
 * @ms: milliseconds
 *
 * Context: process.
 */
void weft_sock_set_user_timeout(struct weft_sock *s, unsigned int ms)
{
	tcp_sock_set_user_timeout(s->sk, ms);
}

/**
 * weft_sock_set_device - use one interface only
 * @s: a socket not bound yet
 * @ifindex: the interface, 0: any
 *
 * Context: process. Connections of the host to itself count as coming over the
 * interface that has the address.
 */
void weft_sock_set_device(struct weft_sock *s, int ifindex)
{
	if (ifindex)
		sock_bindtoindex(s->sk, ifindex, true);
}

/**
 * weft_sock_lock - keep the callbacks of a socket out
 * @s: the socket
 *
 * Context: process, not from a callback. Callbacks that become due meanwhile run in
 * weft_sock_unlock(), in this task.
 */
void weft_sock_lock(struct weft_sock *s)
{
	lock_sock(s->sk);
}

/**
 * weft_sock_unlock - let the callbacks run
 * @s: the socket; those that are due run in here
 *
 * Context: process.
 */
void weft_sock_unlock(struct weft_sock *s)
{
	weft_tcp_release(s->sk);
}

/**
 * weft_sock_call - call the owner as a callback of TCP does
 * @s: the socket, not released meanwhile
 * @callback: called with the socket lock held, unless the owner is detached
 *
 * Context: softirq. Return: false if a process has the socket lock: nothing was called.
 */
bool weft_hot weft_sock_call(struct weft_sock *s, void (*callback)(void *owner))
{
	struct sock *sk = s->sk;
	bool owned;

	bh_lock_sock(sk);
	owned = sock_owned_by_user(sk);
	/* The owner may be detached by now: that takes the lock as well. */
	if (!owned && s->events)
		callback(s->owner);
	bh_unlock_sock(sk);
	return !owned;
}

/**
 * weft_sock_recv - read what is there
 * @s: the socket
 * @buf: where to
 * @len: at most
 *
 * Context: process; does not wait. Return: bytes, 0 after the peer's FIN,
 * -EAGAIN when there are none yet, or -errno.
 */
int weft_sock_recv(struct weft_sock *s, void *buf, size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = buf, .iov_len = len };

	return kernel_recvmsg(s->sock, &msg, &vec, 1, len, msg.msg_flags);
}

/**
 * weft_sock_send - write what there is room for
 * @s: the socket
 * @buf: from
 * @len: at most
 *
 * Context: process; does not wait. Return: bytes taken, -EAGAIN when there is
 * no room (@writable will be called), or -errno.
 */
int weft_sock_send(struct weft_sock *s, const void *buf, size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = (void *)buf, .iov_len = len };
	int ret = kernel_sendmsg(s->sock, &msg, &vec, 1, len);

	weft_tcp_drop_fragment(s->sk);
	return ret;
}

/**
 * weft_sock_half_close - send a FIN behind everything written
 * @s: the socket
 *
 * Context: process. The peer may still send.
 */
void weft_sock_half_close(struct weft_sock *s)
{
	kernel_sock_shutdown(s->sock, SHUT_WR);
}

/**
 * weft_sock_reset - end the connection at once
 * @s: the socket, in any state
 *
 * Context: process. The peer gets a RST; @changed of an attached owner is called before
 * this returns.
 */
void weft_sock_reset(struct weft_sock *s)
{
	tcp_abort(s->sk, ECONNRESET);
}

/**
 * weft_sock_release - give the socket up
 * @s: detached; freed
 *
 * Context: process. An open connection is closed in order: TCP goes on to
 * deliver what was written, then a FIN. Never waits for the peer.
 */
void weft_sock_release(struct weft_sock *s)
{
	struct sock *sk = s->sk;

	WARN_ON_ONCE(sk->sk_user_data);
	lock_sock(sk);
	if (sock_flag(sk, SOCK_MEMALLOC)) /* counted, and TCP does not clear it at the end */
		sk_clear_memalloc(sk);
	release_sock(sk);
	sock_release(s->sock);
	kfree(s);
}
