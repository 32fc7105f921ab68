/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The receive window where TCP would leave it shut. What comes while a process has the
 * socket lock is received when it lets go, and read then and there by our callback. Until
 * all of it is through TCP counts all of it as unread, so that the peer may be told of
 * hardly any room; then it waits until its timer of 200 ms asks again.
 */
#ifndef WEFT_NET_TCP_INTERNALS_H
#define WEFT_NET_TCP_INTERNALS_H

#include <net/sock.h>
#include <net/tcp.h>

void weft_window_tell(struct sock *sk);

/**
 * weft_window_shut - is there much more room than the peer knows of?
 * @sk: a connection
 *
 * TCP's own rule for telling it. Context: any; a hint without the socket lock.
 */
static inline bool weft_window_shut(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 told = 2 * tcp_receive_window(tp);

	return told <= tp->window_clamp &&
	       min_t(u32, max(tcp_space(sk), 0), tp->rcv_ssthresh) >= max_t(u32, told, tp->advmss);
}

/**
 * weft_window_check - the socket lock was held, and let go
 * @sk: a connection
 *
 * Context: process.
 */
static inline void weft_window_check(struct sock *sk)
{
	if (unlikely(weft_window_shut(sk)))
		weft_window_tell(sk);
}

/**
 * weft_window_release - let go of the socket lock
 * @sk: a connection whose lock the caller holds; callbacks that were due run in here
 *
 * Context: process.
 */
static inline void weft_window_release(struct sock *sk)
{
	release_sock(sk);
	weft_window_check(sk);
}

#endif
