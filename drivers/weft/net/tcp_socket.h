/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A kernel TCP socket with one owner, and the callbacks to that owner. Not called sock.h,
 * which is a header of the kernel in a directory of the same name.
 */
#ifndef WEFT_NET_TCP_SOCKET_H
#define WEFT_NET_TCP_SOCKET_H

#include <linux/socket.h>
#include <linux/types.h>

#include "net/tcp_mem_reserve.h"

struct net;
struct sock;
struct socket;

/**
 * struct weft_sock_events - callbacks to the owner of a socket
 * @readable: bytes or a FIN arrived; of a listener: a connection can be accepted
 * @writable: a full socket has room again
 * @changed: connected, closed by the peer, reset
 *
 * Called with the socket lock held (softirq, or a process that processes its
 * backlog), so they must not sleep and must not take the socket lock. The one
 * exception: @readable of a listener runs under its callback lock only.
 */
struct weft_sock_events {
	void (*readable)(void *owner);
	void (*writable)(void *owner);
	void (*changed)(void *owner);
};

/**
 * struct weft_sock - a socket and its owner
 * @sock: the kernel's object; holds its network namespace until it is destructed
 * @sk: of @sock
 * @events, @owner: what the callbacks call; NULL: nothing
 * @listening: it is a listener
 * @allocation: as TCP allocates; a copy, since sk_allocation shares a cache line with what
 *	each ACK changes
 * @reserve: memory that it keeps for its buffers
 *
 * One owner at a time: the connection until it hands the socket to the stream,
 * then the stream. Released by the owner in process context. @events and @owner
 * are protected by the socket lock, for a listener by sk_callback_lock.
 */
struct weft_sock {
	struct socket *sock;
	struct sock *sk;
	const struct weft_sock_events *events;
	void *owner;
	bool listening;
	gfp_t allocation;
	struct weft_mem_reserve reserve;
	void (*saved_data_ready)(struct sock *sk);
	void (*saved_write_space)(struct sock *sk);
	void (*saved_state_change)(struct sock *sk);
};

/* How a TCP connection stands, from the owner's point of view. */
enum weft_sock_state {
	WEFT_SOCK_CONNECTING,
	WEFT_SOCK_UP,
	WEFT_SOCK_PEER_CLOSED,	/* FIN received, we may still send */
	WEFT_SOCK_LOST,		/* reset, timed out, or fully closed */
};

int weft_sock_create(struct net *net, int family, struct weft_sock **out);
int weft_sock_bind(struct weft_sock *s, const struct sockaddr_storage *addr, bool reuse);
int weft_sock_bind_shared(struct weft_sock *s, const struct sockaddr_storage *addr);
int weft_sock_listen(struct weft_sock *s, int backlog);
bool weft_sock_has_child(const struct weft_sock *listener);
int weft_sock_accept(struct weft_sock *listener, struct weft_sock **out);
int weft_sock_connect(struct weft_sock *s, const struct sockaddr_storage *addr);
bool weft_sock_is_unreachable(int err);
int weft_sock_error(const struct weft_sock *s);
enum weft_sock_state weft_sock_state(const struct weft_sock *s);
int weft_sock_local(const struct weft_sock *s, struct sockaddr_storage *out);
int weft_sock_peer(const struct weft_sock *s, struct sockaddr_storage *out);
void weft_sock_set_tos(struct weft_sock *s, u8 tos);
void weft_sock_set_v6only(struct weft_sock *s, bool v6only);
void weft_sock_set_device(struct weft_sock *s, int ifindex);
void weft_sock_set_user_timeout(struct weft_sock *s, unsigned int ms);
void weft_sock_set_memalloc(struct weft_sock *s);

void weft_sock_attach(struct weft_sock *s, const struct weft_sock_events *events, void *owner);
void weft_sock_detach(struct weft_sock *s);

void weft_sock_lock(struct weft_sock *s);
void weft_sock_unlock(struct weft_sock *s);
bool weft_sock_call(struct weft_sock *s, void (*callback)(void *owner));

int weft_sock_recv(struct weft_sock *s, void *buf, size_t len);
int weft_sock_send(struct weft_sock *s, const void *buf, size_t len);
void weft_sock_half_close(struct weft_sock *s);
void weft_sock_reset(struct weft_sock *s);
void weft_sock_release(struct weft_sock *s);

/**
 * weft_sock_allocation - flags for memory that the connection needs to go on
 * @s: the socket
 *
 * Context: any. Return: as TCP allocates for it in process context.
 */
static inline gfp_t weft_sock_allocation(const struct weft_sock *s)
{
	return READ_ONCE(s->allocation);
}

#endif
