// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What TCP knows of a connection.
 */
#include "net/tcpinfo.h"

#include <linux/net.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include "net/tcpsock.h"

/**
 * weft_tcp_facts - look into TCP
 * @s: a socket that was connected once
 * @out: filled in
 *
 * Context: process, without the socket lock, which it takes for a moment.
 */
void weft_tcp_facts(struct weft_sock *s, struct weft_tcp_facts *out)
{
	struct tcp_info info;

	tcp_get_info(s->sk, &info);
	*out = (struct weft_tcp_facts){
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
