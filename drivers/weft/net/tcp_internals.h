/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The private state of TCP that net/ reads by TCP's own rules, or changes. The
 * kernel promises nothing about it, so it is touched here and nowhere else
 * (scripts/check-layers), and each function says why it is needed and what
 * upstream would have to offer to replace it. Snapshots for an operator or a
 * heuristic are in net/tcp_info.h. The callbacks, tcp_read_sock() and
 * tcp_sendmsg_locked() are interfaces for modules.
 *
 * Context of all, unless it says otherwise: socket lock held.
 */
#ifndef WEFT_NET_TCP_INTERNALS_H
#define WEFT_NET_TCP_INTERNALS_H

#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/tcp.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>

/* --- segments --- */

/**
 * weft_tcp_mss - bytes of payload in a full segment
 * @sk: a connection
 *
 * Why: FPDUs are cut so that they fill segments (RFC 5044, 5.1), from before the socket
 * lock is taken. TCP_INFO has the same number, but takes the lock.
 * Instead: an exported tcp_current_mss().
 *
 * Context: any; without the socket lock, a hint that the next call corrects. Return:
 * bytes, rounded as weft_tcp_round_mss() does.
 */
static inline u32 weft_tcp_mss(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->mss_cache) & ~3U;
}

/**
 * weft_tcp_gso_segs - how many segments TCP puts in one socket buffer
 * @sk: a connection
 *
 * Why: staged bytes that end where a buffer of TCP's ends leave no short one behind.
 * Instead: an exported tcp_send_mss().
 *
 * Context: as weft_tcp_mss().
 */
static inline u32 weft_tcp_gso_segs(const struct sock *sk)
{
	return max_t(u32, READ_ONCE(tcp_sk(sk)->gso_segs), 1);
}

/**
 * weft_tcp_round_mss - make the segment size a multiple of four
 * @sk: a connection
 *
 * Why: FPDUs are multiples of four bytes. Where segments are not, as at an MTU of 1450 or
 * 9001, each FPDU would need a buffer of its own to start a segment. What IP options take
 * of a segment is a multiple of four itself, so icsk_ext_hdr_len gets up to three bytes
 * more: TCP subtracts it whenever it computes the size anew. The size TCP has is corrected
 * here.
 * Instead: a granularity of the MSS that a socket, or struct tcp_ulp_ops, can ask for.
 */
static inline void weft_tcp_round_mss(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 extra = icsk->icsk_ext_hdr_len;
	u32 mss = tcp_sk(sk)->mss_cache;

	if (likely(!(mss & 3)))
		return;
	icsk->icsk_ext_hdr_len = (extra & ~3U) | ((extra + mss) & 3);
	WRITE_ONCE(tcp_sk(sk)->mss_cache, mss & ~3U);
}

/**
 * weft_tcp_unsent_tail - the socket buffer that the next bytes would be appended to
 * @sk: a connection
 *
 * Why: whether an FPDU may go on in a segment that an earlier call began depends on how
 * full that is. Instead: the same as for weft_tcp_end_segment().
 *
 * Return: the buffer, to be looked at only, or NULL.
 */
static inline struct sk_buff *weft_tcp_unsent_tail(const struct sock *sk)
{
	return tcp_write_queue_tail(sk);
}

/**
 * weft_tcp_end_segment - the next byte written starts a segment
 * @sk: a connection
 *
 * Why: TCP cuts segments at multiples of the MSS from the start of a socket buffer, so an
 * FPDU that is to start one needs a new buffer. MSG_EOR says the same of bytes that are
 * being written, but not of what an earlier call left behind, and tcp_sendpage_locked()
 * (before 6.5) ignores it.
 * Instead: MSG_EOR that applies to the tail when nothing is written with it.
 */
static inline void weft_tcp_end_segment(struct sock *sk)
{
	struct sk_buff *tail = tcp_write_queue_tail(sk);

	if (tail)
		TCP_SKB_CB(tail)->eor = 1;
}

/**
 * weft_tcp_is_drained - is nothing unsent, and nothing unacknowledged?
 * @sk: a connection
 *
 * Why: then no acknowledgment is to come that TCP would call sk_write_space() for, so a
 * writer that got no memory must not wait for that call.
 * Instead: tcp_rtx_and_write_queues_empty() as an interface for modules.
 */
static inline bool weft_tcp_is_drained(const struct sock *sk)
{
	return tcp_rtx_and_write_queues_empty(sk);
}

/* --- the receive window --- */

void weft_tcp_check_window(struct sock *sk);

/**
 * weft_tcp_window_shut - is there much more room than the peer knows of?
 * @sk: a connection
 *
 * The rule of tcp_cleanup_rbuf(). Why and instead: see weft_tcp_check_window().
 *
 * Context: any; a hint without the socket lock.
 */
static inline bool weft_tcp_window_shut(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 told = 2 * tcp_receive_window(tp);

	return told <= tp->window_clamp &&
	       min_t(u32, max(tcp_space(sk), 0), tp->rcv_ssthresh) >= max_t(u32, told, tp->advmss);
}

/**
 * weft_tcp_release - let go of the socket lock
 * @sk: a connection whose lock the caller holds; callbacks that were due run in here
 *
 * Why and instead: see weft_tcp_check_window(). Context: process.
 */
static inline void weft_tcp_release(struct sock *sk)
{
	release_sock(sk);
	weft_tcp_check_window(sk);
}

/**
 * weft_tcp_in_burst - does what arrived last belong to a burst that goes on?
 * @sk: a connection, in its callback
 *
 * Whole segments, neither merged by GRO nor marked by the sender as its last one for now (PSH),
 * and not more than one buffer of the sender holds.
 *
 * Why: TCP sends an ACK for every second segment that has been read when the next one arrives.
 * One for each burst is enough.
 * Instead: a socket option for how many segments an ACK may wait for.
 *
 * Return: false also where a process has the socket lock, and processes the backlog.
 */
static inline bool weft_tcp_in_burst(const struct sock *sk)
{
	u32 unread = tcp_sk(sk)->rcv_nxt - tcp_sk(sk)->copied_seq;
	const struct sk_buff *last;

	/* Most often a short message, alone. */
	if (unread < weft_tcp_mss(sk) || unread >= SZ_64K || sock_owned_by_user(sk))
		return false;
	last = skb_peek_tail(&sk->sk_receive_queue);
	return last && !skb_is_gso(last) && !(TCP_SKB_CB(last)->tcp_flags & TCPHDR_PSH);
}

/* --- sending --- */

/**
 * weft_tcp_write_seq - how far TCP has taken what is sent
 * @sk: the connection
 *
 * Why: a peer is believed to answer only what TCP has, and while a push is under way only TCP
 * knows. Instead: a count of bytes written, as bytes_acked is one of bytes acknowledged.
 *
 * Context: any; without the socket lock a moment old. Return: sequence number of the next byte.
 */
static inline u32 weft_tcp_write_seq(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->write_seq);
}

/**
 * weft_tcp_read_seq - how far what was received has been read
 * @sk: the connection
 *
 * Why: with weft_tcp_write_seq() of the other end it tells that both are of one connection, where
 * that is on this host (net/loopback.h). Instead: a way to find a socket's peer, as there is
 * for AF_UNIX.
 *
 * Context: any; without the socket lock a moment old. Return: sequence number of the next byte.
 */
static inline u32 weft_tcp_read_seq(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->copied_seq);
}

bool weft_tcp_await_space(struct sock *sk);

/*
 * Is the next byte to read an urgent one? Why: tcp_read_sock() does not pass it, only recvmsg()
 * takes it out. Instead: urgent data in the stream, for kernel sockets. Socket lock held.
 */
static inline bool weft_tcp_at_urgent(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return unlikely(tp->urg_data) && tp->urg_seq == tp->copied_seq;
}

/* --- ports and listeners --- */

/**
 * weft_tcp_shares_port - did TCP give its port out by itself, to all that have it?
 * @sk: a bound socket
 *
 * Why: what connect() would share, bind() refuses, whatever socket has the port.
 * Instead: a flag of bind() that asks for what connect() does.
 *
 * Context: process.
 */
static inline bool weft_tcp_shares_port(const struct sock *sk)
{
	return READ_ONCE(inet_csk(sk)->icsk_bind_hash->fastreuse) < 0;
}

/**
 * weft_tcp_has_child - is there a connection to accept?
 * @sk: a listening socket
 *
 * Why: room is made for a connection only if there is one.
 * Instead: poll() of the socket, which needs a file.
 *
 * Context: any.
 */
static inline bool weft_tcp_has_child(const struct sock *sk)
{
	return !reqsk_queue_empty(&inet_csk(sk)->icsk_accept_queue);
}

/* --- memory --- */

/**
 * weft_tcp_segs - does anything come or go?
 * @sk: a connection
 *
 * Why: one at rest needs no reserve. Instead: TCP_INFO for modules, without the socket lock.
 *
 * Context: any; a hint without the socket lock. Return: segments in both directions so far,
 * which wraps.
 */
static inline u32 weft_tcp_segs(const struct sock *sk)
{
	return READ_ONCE(tcp_sk(sk)->segs_in) + READ_ONCE(tcp_sk(sk)->segs_out);
}

/**
 * weft_tcp_buffered - bytes that the buffers of a connection hold
 * @sk: the connection
 *
 * Why: so much it shall have of TCP's memory beforehand (net/tcp_mem_reserve.h).
 * Instead: SO_MEMINFO for modules.
 */
static inline u32 weft_tcp_buffered(const struct sock *sk)
{
	return sk->sk_wmem_queued + atomic_read(&sk->sk_rmem_alloc);
}

/**
 * weft_tcp_memory_plentiful - may connections keep memory that they do not use at once?
 * @sk: one of them
 *
 * Below the first limit of tcp_mem TCP leaves sockets alone. Half of that may be ours and
 * others'. Why and instead: see weft_tcp_reserve().
 */
static inline bool weft_tcp_memory_plentiful(const struct sock *sk)
{
	long pages = atomic_long_read(sk->sk_prot->memory_allocated);

	return !tcp_under_memory_pressure(sk) && pages < sk_prot_mem_limits(sk, 0) / 2;
}

/* What the connection keeps of TCP's memory. Why and instead: see weft_tcp_reserve(). */
static inline u32 weft_tcp_reserved(const struct sock *sk)
{
	return sk->sk_reserved_mem;
}

bool weft_tcp_reserve(struct sock *sk, u32 bytes);
u32 weft_tcp_charge(struct sock *sk, u32 charged, u32 bytes);
void weft_tcp_drop_fragment(struct sock *sk);

#endif
