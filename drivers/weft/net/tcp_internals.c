// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What changes the private state of TCP, but for what each message runs through.
 */
#include "net/tcp_internals.h"

#include <linux/mm.h>

#include "base/compat.h"
#include "proto/hot.h"

#define RECEIVING	(TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)

/**
 * weft_tcp_check_window - tell the peer of room that TCP does not tell it of
 * @sk: a connection whose lock was held by a process, and was let go
 *
 * Why: what arrives while a process has the socket lock is received when it lets go, and
 * read then and there by our callback. Until all of it is through, TCP counts all of it as
 * unread, so that the peer may be told of hardly any room. Then it waits until its timer of
 * 200 ms asks again.
 * Instead: tcp_cleanup_rbuf() exported, or called by release_sock() behind the backlog.
 *
 * Takes the lock as a softirq does: held by a process for longer than a moment, there would
 * be something to receive behind it again. A process that has it by now sees to the window
 * itself.
 *
 * Context: process, socket lock not held.
 */
void weft_hot weft_tcp_check_window(struct sock *sk)
{
	if (likely(!weft_tcp_window_shut(sk)))
		return;
	local_bh_disable();
	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk) && BIT(sk->sk_state) & RECEIVING && weft_tcp_window_shut(sk))
		compat_send_ack(sk, tcp_sk(sk)->rcv_nxt);
	bh_unlock_sock(sk);
	local_bh_enable();
}

/**
 * weft_tcp_await_space - be told when the peer has acknowledged something
 * @sk: a connection
 *
 * As if it were full: the acknowledgment that leaves enough room calls sk_write_space(). The
 * flag is set before what is unacknowledged is read, so no acknowledgment is missed.
 *
 * Why: a writer whose turn is over goes on with the next acknowledgment, not in a worker.
 * Instead: a function of TCP's that asks for the call, as sk_stream_wait_memory() does.
 *
 * Context: any, the socket is not released meanwhile. Return: false if nothing is
 * unacknowledged, and there will be no call.
 */
bool weft_tcp_await_space(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	smp_mb__after_atomic();	/* pairs with the one in tcp_check_space() */
	return READ_ONCE(tp->snd_una) != READ_ONCE(tp->write_seq);
}

/**
 * weft_tcp_reserve - let a connection keep memory for its buffers
 * @sk: the connection
 * @bytes: how much in all, more than it has; 0: what is not in use is given back
 *
 * Why: a socket takes memory from the account of all sockets for each buffer and gives it
 * back with the buffer, which for small messages is once each, at both ends. What
 * sk_reserved_mem says stays in sk_forward_alloc.
 * Instead: SO_RESERVE_MEM, once it takes sockets that no memory cgroup accounts.
 *
 * Context: socket lock held, up to softirq; process, to give it back. Return: false if TCP does
 * not give it.
 */
bool weft_tcp_reserve(struct sock *sk, u32 bytes)
{
	if (bytes && !__sk_mem_schedule(sk, bytes - sk->sk_reserved_mem, SK_MEM_SEND))
		return false;
	WRITE_ONCE(sk->sk_reserved_mem, bytes);
	if (!bytes)
		sk_mem_reclaim(sk);
	return true;
}

/**
 * weft_tcp_charge - count memory as if it were in the receive queue of a connection
 * @sk: the connection
 * @charged: bytes that are counted so far
 * @bytes: how many there are now
 *
 * It does not take room from the window, since what is missing has to come through that.
 *
 * Why: parts of an FPDU that are taken from the receive queue are held on behalf of the
 * peer, as the queue is. Instead: a function of sk_rmem_schedule() and sk_mem_charge() for
 * modules.
 *
 * Context: socket lock held, up to softirq. Return: bytes that are counted now, @charged if TCP
 * gives no more.
 */
u32 weft_tcp_charge(struct sock *sk, u32 charged, u32 bytes)
{
	int more = bytes - charged - sk->sk_forward_alloc;

	if (bytes < charged) {
		sk_mem_uncharge(sk, charged - bytes);
		return bytes;
	}
	if (more > 0 && !__sk_mem_schedule(sk, more, SK_MEM_RECV))
		return charged;
	sk_mem_charge(sk, bytes - charged);
	return bytes;
}

/**
 * weft_tcp_drop_fragment - free the rest of the page fragment that TCP copied to
 * @sk: a connection
 *
 * Why: TCP keeps it, nearly 32 KiB, for the next write. A stream brings pages of its own,
 * so an idle connection would hold it for nothing.
 * Instead: TCP freeing it when all that was written is acknowledged.
 *
 * Context: process, takes the socket lock.
 */
void weft_tcp_drop_fragment(struct sock *sk)
{
	lock_sock(sk);
	if (sk->sk_frag.page) {
		put_page(sk->sk_frag.page);
		sk->sk_frag.page = NULL;
	}
	release_sock(sk);
}
