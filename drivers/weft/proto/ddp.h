/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DDP segments: headers, cutting by MULPDU, order of untagged messages.
 * RFC 5041, 4 to 7.
 */
#ifndef WEFT_PROTO_DDP_H
#define WEFT_PROTO_DDP_H

#include "proto/fault.h"
#include "proto/wire.h"

/**
 * struct weft_ddp_hdr - a DDP header in host order
 * @ulp: RDMAP control octet
 * @stag: tagged: sink; untagged: the octets after the control (Invalidate STag)
 * @to: tagged offset
 * @hdr_len: 14 or 18
 * @payload: octets behind the DDP header, RDMAP header included
 */
struct weft_ddp_hdr {
	bool tagged;
	bool last;
	u8 ulp;
	u32 stag;
	u64 to;
	u32 qn;
	u32 msn;
	u32 mo;
	u32 hdr_len;
	u32 payload;
};

/* @head: at least min(@len, WEFT_DDP_UNTAGGED_LEN) octets of a ULPDU of @len. */
enum weft_fault weft_ddp_parse(const u8 *head, u32 len, struct weft_ddp_hdr *out);
u32 weft_ddp_build(const struct weft_ddp_hdr *hdr, u8 *out);

/* Payload of the next segment of a message of which @left octets remain. */
u32 weft_ddp_cut(u32 left, u32 mulpdu, u32 hdr_len, bool *last);

struct weft_ddp_tx {
	u32 msn[WEFT_DDP_QUEUES];	/* next to use */
};

void weft_ddp_tx_init(struct weft_ddp_tx *tx);
u32 weft_ddp_tx_msn(struct weft_ddp_tx *tx, u32 qn);

/**
 * struct weft_ddp_rx - what is expected next on each untagged queue
 * @mo: offset of the next segment; 0 when a message may start
 */
struct weft_ddp_rx {
	u32 msn[WEFT_DDP_QUEUES];
	u32 mo[WEFT_DDP_QUEUES];
	bool open[WEFT_DDP_QUEUES];	/* a message has begun and not ended */
};

void weft_ddp_rx_init(struct weft_ddp_rx *rx);

/* Checks QN and MSN of an untagged segment; changes nothing. */
enum weft_fault weft_ddp_rx_check(const struct weft_ddp_rx *rx, const struct weft_ddp_hdr *hdr);
/* Checks MO against what is expected and the end against @room octets of buffer. */
enum weft_fault weft_ddp_rx_check_offset(const struct weft_ddp_rx *rx,
					 const struct weft_ddp_hdr *hdr, u64 room);
/* Is this the first segment of its message? */
bool weft_ddp_rx_first(const struct weft_ddp_rx *rx, const struct weft_ddp_hdr *hdr);
/* The segment was placed. */
void weft_ddp_rx_advance(struct weft_ddp_rx *rx, const struct weft_ddp_hdr *hdr);

/* TO + len runs over 2^64 (RFC 5041, 5.2, 7.1). */
bool weft_ddp_to_wraps(u64 to, u32 len);

#endif
