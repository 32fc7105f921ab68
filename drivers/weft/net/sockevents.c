// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The callbacks of a socket: from TCP to whoever owns it. Those of a connection
 * run under the socket lock.
 */
#include "net/sockevents.h"

#include <linux/net.h>
#include <linux/tcp.h>
#include <net/sock.h>

#include "net/allot.h"
#include "net/tcpsock.h"
#include "proto/hot.h"

static void weft_hot on_data_ready(struct sock *sk)
{
	struct weft_sock *s = sk->sk_user_data;

	sock_owned_by_me(sk);
	if (!s)
		return;
	weft_allot_check(sk);
	s->events->readable(s->owner);
}

/*
 * Without the socket lock, and also called for a child that was not accepted
 * yet, whose callback lock does not protect the listener's owner.
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

static void install(struct weft_sock *s, struct sock *sk)
{
	s->saved_data_ready = sk->sk_data_ready;
	s->saved_write_space = sk->sk_write_space;
	s->saved_state_change = sk->sk_state_change;
	sk->sk_user_data = s;
	if (s->listening) {
		sk->sk_data_ready = on_listen_ready;
		return;
	}
	sk->sk_data_ready = on_data_ready;
	sk->sk_write_space = on_write_space;
	sk->sk_state_change = on_state_change;
}

static void restore(struct weft_sock *s, struct sock *sk)
{
	sk->sk_user_data = NULL;
	sk->sk_data_ready = s->saved_data_ready;
	sk->sk_write_space = s->saved_write_space;
	sk->sk_state_change = s->saved_state_change;
}

/**
 * weft_sock_attach - tell @owner from now on, and nobody else
 * @s: the socket
 * @events: whom to call
 * @owner: handed to @events
 *
 * Context: process; replaces an earlier attachment without a gap. What happened
 * before is not told again: look at the state and read once after attaching.
 */
void weft_sock_attach(struct weft_sock *s, const struct weft_sock_events *events, void *owner)
{
	struct sock *sk = s->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	s->events = events;
	s->owner = owner;
	if (!sk->sk_user_data)
		install(s, sk);
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/**
 * weft_sock_detach - tell nobody any more
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
	weft_allot_end(&s->allot, sk);
	write_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_user_data)
		restore(s, sk);
	s->events = NULL;
	s->owner = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
}

/**
 * weft_sock_disinherit - let a new socket call back nobody
 * @listener: where it came from, which it has its callbacks of
 * @child: accepted just now
 *
 * Context: process.
 */
void weft_sock_disinherit(const struct weft_sock *listener, struct sock *child)
{
	lock_sock(child);
	write_lock_bh(&child->sk_callback_lock);
	child->sk_user_data = NULL;
	if (child->sk_data_ready == on_listen_ready)
		child->sk_data_ready = listener->saved_data_ready;
	write_unlock_bh(&child->sk_callback_lock);
	release_sock(child);
}
