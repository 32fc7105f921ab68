/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What TCP knows of a connection, as far as an operator of RDMA asks for it.
 */
#ifndef WEFT_NET_TCP_INFO_H
#define WEFT_NET_TCP_INFO_H

#include <linux/types.h>

struct weft_sock;

/**
 * struct weft_tcp_stats - what went on in one connection since it began
 * @retrans, @retrans_bytes: segments sent again, and their bytes
 * @dsacks: of those, how many the peer had already
 * @reordered: events of reordering on our way out
 * @out_of_order: segments received early
 * @ecn_marks: segments that met congestion on their way, as the peer says
 */
struct weft_tcp_stats {
	u64 retrans_bytes;
	u32 retrans;
	u32 dsacks;
	u32 reordered;
	u32 out_of_order;
	u32 ecn_marks;
};

/**
 * struct weft_tcp_info - one connection
 * @counts: since it began
 * @rtt_us: smoothed round trip
 * @cwnd: congestion window, segments
 * @mss: bytes of a segment
 * @unsent, @unacked: bytes not sent yet; segments sent, not acknowledged
 */
struct weft_tcp_info {
	struct weft_tcp_stats counts;
	u32 rtt_us;
	u32 cwnd;
	u32 mss;
	u32 unsent;
	u32 unacked;
};

u64 weft_tcp_bytes_acked(const struct weft_sock *s);
bool weft_tcp_all_acked(const struct weft_sock *s);
u64 weft_tcp_bytes_received(const struct weft_sock *s);
void weft_tcp_get_info(struct weft_sock *s, struct weft_tcp_info *out);

#endif
