// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What TCP knows of a connection.
 */
#include "net/tcp_info.h"

#include <linux/net.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include "net/tcp_socket.h"

/**
 * weft_tcp_bytes_acked - what the peer has taken
 * @s: the socket
 *
 * Context: any. Return: bytes of ours that it has acknowledged.
 */
u64 weft_tcp_bytes_acked(const struct weft_sock *s)
{
	return READ_ONCE(tcp_sk(s->sk)->bytes_acked);
}

/**
 * weft_tcp_all_acked - has the peer taken all that TCP has?
 * @s: the socket
 *
 * Context: any. Return: a snapshot.
 */
bool weft_tcp_all_acked(const struct weft_sock *s)
{
	const struct tcp_sock *tp = tcp_sk(s->sk);

	return READ_ONCE(tp->snd_una) == READ_ONCE(tp->write_seq);
}

/**
 * weft_tcp_bytes_received - what the peer has sent
 * @s: the socket
 *
 * Context: any. Return: bytes of its that TCP has accepted.
 */
u64 weft_tcp_bytes_received(const struct weft_sock *s)
{
	return READ_ONCE(tcp_sk(s->sk)->bytes_received);
}

/**
 * weft_tcp_get_info - look into TCP
 * @s: a socket that was connected once
 * @out: filled in
 *
 * Context: process, without the socket lock, which it takes for a moment.
 */
void weft_tcp_get_info(struct weft_sock *s, struct weft_tcp_info *out)
{
	struct tcp_info info;

	tcp_get_info(s->sk, &info);
	*out = (struct weft_tcp_info){
		.counts.retrans_bytes = info.tcpi_bytes_retrans,
		.counts.retrans = info.tcpi_total_retrans,
		.counts.dsacks = info.tcpi_dsack_dups,
		.counts.reordered = info.tcpi_reord_seen,
		.counts.out_of_order = info.tcpi_rcv_ooopack,
		.counts.ecn_marks = info.tcpi_delivered_ce,
		.rtt_us = info.tcpi_rtt,
		.cwnd = info.tcpi_snd_cwnd,
		.mss = info.tcpi_snd_mss,
		.unsent = info.tcpi_notsent_bytes,
		.unacked = info.tcpi_unacked,
	};
}
