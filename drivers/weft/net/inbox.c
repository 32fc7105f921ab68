// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Buffers are taken off the head of the receive queue and put back there, in
 * order; what arrives meanwhile queues up at its tail. While they are out, TCP's
 * read position stands behind them: it must be where the queue begins, since TCP
 * may collapse the queue from there when memory runs out. When they are back, it
 * returns to where it was, and as many octets are consumed as were read, the usual
 * way, so that FINs, the window and the memory are TCP's own business.
 */
#include "net/inbox.h"

#include <net/sock.h>
#include <net/tcp.h>

#include "net/mpa_rx.h"
#include "net/tcp_socket.h"
#include "proto/hot.h"

/**
 * weft_inbox_init - an empty inbox
 * @in: what to fill in
 *
 * Context: any.
 */
void weft_inbox_init(struct weft_inbox *in)
{
	__skb_queue_head_init(&in->skbs);
	in->done = 0;
}

/**
 * weft_inbox_with_lock - do something with the socket lock where nobody may sleep
 * @s: the socket
 * @act: what to do; other CPUs may spin meanwhile
 * @arg: handed to @act
 *
 * Context: softirq, not from a callback. Return: false while a process has the lock:
 * then @act was not called.
 */
bool weft_inbox_with_lock(struct weft_sock *s, void (*act)(void *arg), void *arg)
{
	struct sock *sk = s->sk;
	bool ours;

	bh_lock_sock(sk);
	ours = !sock_owned_by_user(sk);
	if (ours)
		act(arg);
	bh_unlock_sock(sk);
	return ours;
}

/**
 * weft_inbox_barred - is a process behind the lock that the caller holds?
 * @s: the socket
 *
 * Context: socket lock held. Return: false if it is a softirq.
 */
bool weft_inbox_barred(const struct weft_sock *s)
{
	return sock_owned_by_user_nocheck(s->sk);
}

/**
 * weft_inbox_take - borrow all that is there to be read
 * @in: empty
 * @s: from its receive queue
 *
 * Urgent data is left to TCP's own reading, which knows what to do about it.
 *
 * Context: socket lock held, by a callback or weft_inbox_with_lock(). Nobody
 * reads the socket until weft_inbox_give_back(). Return: false if there is nothing.
 */
bool weft_inbox_take(struct weft_inbox *in, struct weft_sock *s)
{
	struct sock *sk = s->sk;
	struct tcp_sock *tp = tcp_sk(sk);

	sock_owned_by_me(sk);
	if (skb_queue_empty(&sk->sk_receive_queue) || tp->urg_data)
		return false;
	skb_queue_splice_init(&sk->sk_receive_queue, &in->skbs);
	in->seq = tp->copied_seq;
	in->end = TCP_SKB_CB(skb_peek_tail(&in->skbs))->end_seq;
	in->done = 0;
	WRITE_ONCE(tp->copied_seq, in->end);
	return true;
}

/* Where in @skb the next octet stands; at or behind its end if it has none. */
static u32 offset_in(const struct weft_inbox *in, const struct sk_buff *skb)
{
	u32 offset = in->seq + in->done - TCP_SKB_CB(skb)->seq;

	return TCP_SKB_CB(skb)->tcp_flags & TCPHDR_SYN ? offset - 1 : offset;
}

/**
 * weft_inbox_read - hand over every FPDU that is in the inbox
 * @in: filled by weft_inbox_take()
 * @rx: the reader of its socket
 *
 * Context: any up to softirq, without the socket lock. Return: octets read, or
 * -EAGAIN as weft_rxsock_run_locked(); what was not read goes back unread.
 */
int weft_inbox_read(struct weft_inbox *in, struct weft_rxsock *rx)
{
	struct sk_buff *skb;

	weft_rxsock_begin(rx);
	skb_queue_walk(&in->skbs, skb) {
		u32 offset = offset_in(in, skb);
		u32 taken;

		if (offset >= skb->len)
			continue;
		taken = weft_rxsock_take(rx, skb, offset, skb->len - offset);
		in->done += taken;
		if (taken < skb->len - offset)
			break;
	}
	return weft_rxsock_end(rx, in->done);
}

/* What was read already is only passed over. */
static int pass(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len)
{
	u32 n = min_t(size_t, len, desc->count);

	desc->count -= n;
	return n;
}

static bool all_read(const struct weft_inbox *in)
{
	struct sk_buff *skb;

	skb_queue_walk(&in->skbs, skb)
		if ((s32)(offset_in(in, skb) - skb->len) < 0)
			return false;
	return true;
}

/**
 * weft_inbox_give_back - return the buffers and consume what was read of them
 * @in: filled by weft_inbox_take(), or empty
 * @s: to its receive queue
 *
 * Opens the receive window. Context: socket lock held. Return: false if octets that
 * nobody has read are gone, since urgent data moved TCP's position meanwhile.
 */
bool weft_inbox_give_back(struct weft_inbox *in, struct weft_sock *s)
{
	read_descriptor_t desc = {};
	struct sock *sk = s->sk;
	struct tcp_sock *tp = tcp_sk(sk);
	bool whole;

	sock_owned_by_me(sk);
	if (skb_queue_empty(&in->skbs))
		return true;
	if (tp->copied_seq != in->end) { /* an urgent octet was skipped: no way back */
		whole = all_read(in);
		__skb_queue_purge(&in->skbs);
		return whole;
	}
	skb_queue_splice_init(&in->skbs, &sk->sk_receive_queue);
	WRITE_ONCE(tp->copied_seq, in->seq);
	desc.count = in->done;
	if (desc.count)
		tcp_read_sock(sk, &desc, pass);
	return true;
}
