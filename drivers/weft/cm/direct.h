/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * QPs that are connected by ibv_modify_qp(): both ends name each other, one of them connects.
 */
#ifndef WEFT_CM_DIRECT_H
#define WEFT_CM_DIRECT_H

#include <linux/in6.h>
#include <linux/types.h>

struct weft_cm;
struct weft_conn_ops;
struct weft_direct;
struct weft_stream;

/**
 * struct weft_direct_config - what is known in RTR
 * @stream: of the QP, which outlives the connection
 * @local, @peer: GIDs, that is addresses
 * @peer_qpn: number of the peer's QP
 * @rq_psn: what the peer has to begin with
 * @ird: requests of the peer that are served at a time
 * @min_rnr_timer: as in InfiniBand
 * @traffic_class: 0: as the operator says
 */
struct weft_direct_config {
	struct weft_stream *stream;
	struct in6_addr local;
	struct in6_addr peer;
	u32 peer_qpn;
	u32 rq_psn;
	u32 ird;
	u8 min_rnr_timer;
	u8 traffic_class;
};

/**
 * struct weft_direct_send - what is known in RTS
 * @sq_psn: what this end begins with
 * @ord: requests for a response that may be outstanding
 * @timeout, @retry_cnt, @rnr_retry: as in InfiniBand
 */
struct weft_direct_send {
	u32 sq_psn;
	u32 ord;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
};

struct weft_direct *weft_direct_begin(struct weft_cm *cm, const struct weft_direct_config *cfg);
int weft_direct_may_send(struct weft_direct *d, const struct weft_direct_send *send);
void weft_direct_end(struct weft_direct *d);

/* Within this layer: for connections of directly connected QPs. */
extern const struct weft_conn_ops weft_direct_conn_ops;

#endif
