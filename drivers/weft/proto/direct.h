/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * QPs that are connected by ibv_modify_qp(): what the two ends tell each other in the
 * private data of the MPA start frames. Documentation/protocol.md.
 */
#ifndef WEFT_PROTO_DIRECT_H
#define WEFT_PROTO_DIRECT_H

#include "proto/env.h"

#define WEFT_DIRECT_PORT	4791
#define WEFT_DIRECT_VERSION	1
#define WEFT_DIRECT_LEN		24
#define WEFT_DIRECT_REJECT_LEN	8
#define WEFT_DIRECT_GID_LEN	16

/* Bits of @extensions: used if both ends set them. */
#define WEFT_DIRECT_SEND_IMM	(1 << 0)
#define WEFT_DIRECT_EXTENSIONS	WEFT_DIRECT_SEND_IMM

/* A message waits for its receive as long as it takes. */
#define WEFT_DIRECT_RNR_FOREVER	0xffffffffU

/* Why a request is rejected; values of the wire. */
enum weft_direct_reason {
	WEFT_DIRECT_OK		= 0,
	WEFT_DIRECT_MALFORMED	= 1,
	WEFT_DIRECT_BAD_VERSION	= 2,
	WEFT_DIRECT_NO_QP	= 3,	/* or it is meant for another peer */
	WEFT_DIRECT_BAD_PSN	= 4,
	WEFT_DIRECT_BUSY	= 5,	/* too many wait, or it is connected */
	WEFT_DIRECT_REASONS
};

/* Which end of a pair of QPs connects. */
enum weft_direct_role {
	WEFT_DIRECT_ACCEPTS,
	WEFT_DIRECT_CONNECTS,
	WEFT_DIRECT_ITSELF,	/* there is only one */
};

/**
 * struct weft_direct_hello - one end
 * @qpn: its QP number
 * @peer_qpn: that of the QP it wants
 * @rq_psn: what it expects from the peer
 * @sq_psn: what it begins with; only if @has_sq_psn: a QP in RTR does not know yet
 * @rnr_retry: how often it would send a message again that finds no receive, 7: without end;
 *	only if @has_rnr_retry, likewise
 * @extensions: mask of what it can do
 */
struct weft_direct_hello {
	u32 qpn;
	u32 peer_qpn;
	u32 rq_psn;
	u32 sq_psn;
	bool has_sq_psn;
	u8 rnr_retry;
	bool has_rnr_retry;
	u16 extensions;
};

void weft_direct_build(const struct weft_direct_hello *hello, u8 *out);
enum weft_direct_reason weft_direct_parse(const u8 *pd, u32 len, struct weft_direct_hello *out);
enum weft_direct_reason weft_direct_match(const struct weft_direct_hello *own,
					  const struct weft_direct_hello *peer);

void weft_direct_build_reject(enum weft_direct_reason reason, u8 *out);
enum weft_direct_reason weft_direct_parse_reject(const u8 *pd, u32 len);
const char *weft_direct_reason_name(enum weft_direct_reason reason);

enum weft_direct_role weft_direct_role(const u8 *gid, u32 qpn, const u8 *peer_gid, u32 peer_qpn);
u64 weft_direct_retry_ns(u8 timeout, u8 retry_cnt);
u32 weft_direct_rnr_ms(u8 rnr_retry, u8 min_rnr_timer);

#endif
