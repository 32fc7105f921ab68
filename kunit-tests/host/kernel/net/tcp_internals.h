/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The private state of a TCP that is played. */
#ifndef WEFT_HOST_TCP_INTERNALS_H
#define WEFT_HOST_TCP_INTERNALS_H

#define weft_tcp_mss(sk)		((sk)->mss & ~3U)
#define weft_tcp_gso_segs(sk)		max((sk)->gso_segs, 1U)
#define weft_tcp_round_mss(sk)		((sk)->mss &= ~3U)
#define weft_tcp_unsent_tail(sk)	((sk)->tail.len ? &(sk)->tail : NULL)
#define weft_tcp_is_drained(sk)		(!(sk)->unacked)
#define weft_tcp_check_window(sk)	((void)(sk))
#define weft_tcp_release(sk)		release_sock(sk)
#define weft_tcp_in_burst(sk)		((void)(sk), false)
#define weft_tcp_write_seq(sk)		READ_ONCE((sk)->write_seq)
#define weft_tcp_at_urgent(sk)		((void)(sk), false)
#define tcp_sock_set_nodelay(sk)	HOST_CHECK(!(sk)->owned)

static inline void weft_tcp_end_segment(struct sock *sk)
{
	sk->tail.len = 0;
}

static inline u32 weft_tcp_charge(struct sock *sk, u32 charged, u32 bytes)
{
	HOST_CHECK(sk->owned && sk->charged == charged);
	sk->charged = bytes;
	return bytes;
}

bool weft_tcp_await_space(struct sock *sk);

#endif
