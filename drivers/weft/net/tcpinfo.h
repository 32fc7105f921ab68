/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What TCP knows of a connection, as far as an operator of RDMA asks for it.
 */
#ifndef WEFT_NET_TCPINFO_H
#define WEFT_NET_TCPINFO_H

#include <linux/types.h>

struct weft_sock;

/**
 * struct weft_tcp_facts - one connection
 * @retrans, @retrans_bytes: segments sent again, and their octets
 * @dsacks: of those, how many the peer had already
 * @reordered: events of reordering on our way out
 * @out_of_order: segments received early
 * @ecn_marks: segments that met congestion on their way, as the peer says
 * @rtt_us: smoothed round trip
 * @cwnd: congestion window, segments
 * @mss: octets of a segment
 * @unsent, @unacked: octets not sent yet; segments sent, not acknowledged
 */
struct weft_tcp_facts {
	u64 retrans;
	u64 retrans_bytes;
	u64 dsacks;
	u64 reordered;
	u64 out_of_order;
	u64 ecn_marks;
	u32 rtt_us;
	u32 cwnd;
	u32 mss;
	u32 unsent;
	u32 unacked;
};

void weft_tcp_facts(struct weft_sock *s, struct weft_tcp_facts *out);

#endif
