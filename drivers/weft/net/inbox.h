/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Socket buffers borrowed from a receive queue, to be read without the socket
 * lock. Their memory stays charged to the socket, so they fill the window.
 */
#ifndef WEFT_NET_INBOX_H
#define WEFT_NET_INBOX_H

#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/types.h>

#include "net/tcp_socket.h"

struct weft_rxsock;

/**
 * struct weft_inbox - what was borrowed
 * @skbs: the buffers
 * @seq: TCP's number of the first octet not read when they were taken
 * @end: and of the first octet behind them
 * @done: octets read since
 *
 * One owner. Buffers that were taken must be given back before the socket is closed.
 */
struct weft_inbox {
	struct sk_buff_head skbs;
	u32 seq;
	u32 end;
	u32 done;
};

/**
 * weft_inbox_waiting - what there is to read
 * @s: the socket
 *
 * Context: socket lock held; without it, a hint. Return: octets.
 */
static inline u32 weft_inbox_waiting(const struct weft_sock *s)
{
	const struct tcp_sock *tp = tcp_sk(s->sk);

	return tp->rcv_nxt - tp->copied_seq;
}

void weft_inbox_init(struct weft_inbox *in);

/* Context: softirq. */
bool weft_inbox_with_lock(struct weft_sock *s, void (*act)(void *arg), void *arg);

/* Context: socket lock held. */
bool weft_inbox_barred(const struct weft_sock *s);
bool weft_inbox_take(struct weft_inbox *in, struct weft_sock *s);
bool weft_inbox_give_back(struct weft_inbox *in, struct weft_sock *s);

/* Context: any; whoever owns the reader owns the inbox. */
int weft_inbox_read(struct weft_inbox *in, struct weft_rxsock *rx);

#endif
