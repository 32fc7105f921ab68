/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Terminate messages, from a saved fault and from the wire. RFC 5040, 4.8.
 */
#ifndef WEFT_PROTO_TERM_H
#define WEFT_PROTO_TERM_H

#include "proto/fault.h"
#include "proto/wire.h"

/**
 * struct weft_fault_rec - a fault and the headers that made it, copied at once
 * @segment_len: ULPDU_Length of the offending segment
 * @ddp_len: 0, 14 or 18 bytes of @headers
 * @rdmap_len: 0 or 28 bytes of @headers behind them
 */
struct weft_fault_rec {
	enum weft_fault fault;
	u16 segment_len;
	u8 ddp_len;
	u8 rdmap_len;
	u8 headers[WEFT_DDP_UNTAGGED_LEN + WEFT_READ_REQ_LEN];
};

/* @ulpdu may be NULL (no inbound cause); @head_len bytes of it can be read. */
void weft_fault_rec_fill(struct weft_fault_rec *rec, enum weft_fault fault, const u8 *ulpdu,
			 u32 head_len, u32 ulpdu_len);

/* Payload of the Terminate, at most WEFT_TERM_MAX_LEN bytes; returns its length. */
u32 weft_term_build(const struct weft_fault_rec *rec, u8 *out);

/**
 * struct weft_term - a received Terminate
 * @has_ddp: it has the DDP header of the offending segment: @tagged and all that follow
 */
struct weft_term {
	u8 layer;
	u8 etype;
	u8 ecode;
	bool has_ddp;
	bool tagged;
	u8 opcode;
	u32 qn;
	u32 msn;
	u32 stag;
	u64 to;
};

enum weft_fault weft_term_parse(const u8 *payload, u32 len, struct weft_term *out);

#endif
