/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * RDMAP messages: facts per opcode, headers, which may be in progress.
 * RFC 5040, 4 and 5; RFC 7306, 4 to 6.
 */
#ifndef WEFT_PROTO_RDMAP_H
#define WEFT_PROTO_RDMAP_H

#include "proto/ddp.h"
#include "proto/fault.h"
#include "proto/wire.h"

/**
 * struct weft_rdmap_info - facts about an opcode
 * @hdr_len: bytes of RDMAP header behind the DDP header
 * @payload: carries payload behind that; otherwise the segment ends there
 * @immediate: the ULP's word of the DDP header is an immediate; only where that was agreed on
 * @consumes_rq, @invalidates, @solicited: effects at the sink
 */
struct weft_rdmap_info {
	const char *name;
	bool known;
	bool tagged;
	u8 qn;
	u8 hdr_len;
	bool payload;
	bool consumes_rq;
	bool invalidates;
	bool immediate;
	bool solicited;
};

static inline u8 weft_rdmap_ulp(u8 opcode)
{
	return WEFT_RDMAP_RV | opcode;
}

static inline u8 weft_rdmap_opcode(u8 ulp)
{
	return ulp & WEFT_RDMAP_OP_MASK;
}

/**
 * struct weft_rdmap_rx - messages in progress towards us
 * @tagged_open: a Write or Read Response has begun and not ended
 * @tagged_op: which
 * @send_op: opcode of the open message on queue 0
 */
struct weft_rdmap_rx {
	bool tagged_open;
	u8 tagged_op;
	u8 send_op;
};

struct weft_read_req {
	u32 sink_stag;
	u64 sink_to;
	u32 length;
	u32 src_stag;
	u64 src_to;
};

void weft_read_req_build(const struct weft_read_req *req, u8 *out);
void weft_read_req_parse(const u8 *in, struct weft_read_req *out);

enum weft_atomic_code {
	WEFT_ATOMIC_FADD	= 0,
	WEFT_ATOMIC_CSWAP	= 2,
};

struct weft_atomic_req {
	u8 code;
	u32 id;
	u32 stag;
	u64 to;
	u64 data;	/* addend, or what to store */
	u64 mask;
	u64 compare;
	u64 compare_mask;
};

struct weft_atomic_resp {
	u32 id;
	u64 original;
};

void weft_atomic_req_build(const struct weft_atomic_req *req, u8 *out);
enum weft_fault weft_atomic_req_parse(const u8 *in, struct weft_atomic_req *out);
void weft_atomic_resp_build(const struct weft_atomic_resp *resp, u8 *out);
void weft_atomic_resp_parse(const u8 *in, struct weft_atomic_resp *out);

extern const struct weft_rdmap_info weft_rdmap_messages[WEFT_OP_COUNT];

/**
 * weft_rdmap_info - facts about an opcode
 * @opcode: below WEFT_OP_COUNT, as weft_rdmap_opcode() yields; check @known
 */
static inline const struct weft_rdmap_info *weft_rdmap_info(u8 opcode)
{
	return &weft_rdmap_messages[opcode & WEFT_RDMAP_OP_MASK];
}

/**
 * weft_rdmap_check - does the segment make a legal message, whenever it comes?
 * @hdr: a parsed DDP header
 *
 * Version, opcode, tagged bit, queue, length of fixed-size messages: protocol-rules, ORDER-3
 * and ORDER-4.
 */
static inline enum weft_fault weft_rdmap_check(const struct weft_ddp_hdr *hdr)
{
	const struct weft_rdmap_info *info = weft_rdmap_info(weft_rdmap_opcode(hdr->ulp));

	if ((hdr->ulp & WEFT_RDMAP_RV_MASK) != WEFT_RDMAP_RV)
		return WEFT_FAULT_RDMAP_VERSION;
	if (!info->known || info->tagged != hdr->tagged)
		return WEFT_FAULT_RDMAP_OPCODE;
	if (!hdr->tagged && hdr->qn != info->qn)
		return WEFT_FAULT_UNTAGGED_QN;
	/* A message with a header of its own is one segment; most end behind the header. */
	if (info->hdr_len && (!hdr->last || hdr->payload < info->hdr_len ||
			      (!info->payload && hdr->payload != info->hdr_len)))
		return WEFT_FAULT_RDMAP_OPERATION;
	return WEFT_FAULT_NONE;
}

/**
 * weft_rdmap_rx_check - may this segment come now?
 * @rx: messages in progress
 * @ddp: what is expected on the untagged queues
 * @hdr: a segment that passed weft_rdmap_check()
 *
 * A tagged message may come between segments of an untagged one, and the other
 * way round, but within a message the opcode stays.
 */
static inline enum weft_fault weft_rdmap_rx_check(const struct weft_rdmap_rx *rx,
						  const struct weft_ddp_rx *ddp,
						  const struct weft_ddp_hdr *hdr)
{
	u8 opcode = weft_rdmap_opcode(hdr->ulp);

	if (hdr->tagged && rx->tagged_open && rx->tagged_op != opcode)
		return WEFT_FAULT_RDMAP_OPCODE;
	if (!hdr->tagged && hdr->qn == WEFT_QN_SEND && ddp->open[WEFT_QN_SEND] &&
	    rx->send_op != opcode)
		return WEFT_FAULT_RDMAP_OPCODE;
	return WEFT_FAULT_NONE;
}

/**
 * weft_rdmap_rx_advance - the segment was placed
 * @rx: messages in progress
 * @hdr: the segment
 */
static inline void weft_rdmap_rx_advance(struct weft_rdmap_rx *rx, const struct weft_ddp_hdr *hdr)
{
	u8 opcode = weft_rdmap_opcode(hdr->ulp);

	if (hdr->tagged) {
		rx->tagged_open = !hdr->last;
		rx->tagged_op = opcode;
	} else if (hdr->qn == WEFT_QN_SEND) {
		rx->send_op = opcode;
	}
}

#endif
