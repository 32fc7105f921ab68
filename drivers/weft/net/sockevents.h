/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a socket tells its owner, and from when to when.
 */
#ifndef WEFT_NET_SOCKEVENTS_H
#define WEFT_NET_SOCKEVENTS_H

struct sock;
struct weft_sock;

/**
 * struct weft_sock_events - what a socket tells its owner
 * @readable: octets or a FIN arrived; of a listener: somebody wants in
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

void weft_sock_attach(struct weft_sock *s, const struct weft_sock_events *events, void *owner);
void weft_sock_detach(struct weft_sock *s);

/* Within this room. */
void weft_sock_disinherit(const struct weft_sock *listener, struct sock *child);

#endif
