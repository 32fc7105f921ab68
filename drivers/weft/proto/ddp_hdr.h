/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DDP headers of both kinds, taken apart and written. RFC 5041, 4. Each segment comes
 * through here, so it is inline.
 */
#ifndef WEFT_PROTO_DDP_HDR_H
#define WEFT_PROTO_DDP_HDR_H

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

/* Offsets within a ULPDU; the first three are common to both kinds. */
#define WEFT_DDP_CTRL_AT 0
#define WEFT_DDP_ULP_AT 1
#define WEFT_DDP_STAG_AT 2
#define WEFT_DDP_TO_AT 6
#define WEFT_DDP_QN_AT 6
#define WEFT_DDP_MSN_AT 10
#define WEFT_DDP_MO_AT 14

static inline void weft_ddp_parse_tagged(const u8 *head, struct weft_ddp_hdr *out)
{
	out->to = get_unaligned_be64(head + WEFT_DDP_TO_AT);
	out->qn = 0;
	out->msn = 0;
	out->mo = 0;
}

static inline void weft_ddp_parse_untagged(const u8 *head, struct weft_ddp_hdr *out)
{
	out->to = 0;
	out->qn = get_unaligned_be32(head + WEFT_DDP_QN_AT);
	out->msn = get_unaligned_be32(head + WEFT_DDP_MSN_AT);
	out->mo = get_unaligned_be32(head + WEFT_DDP_MO_AT);
}

/**
 * weft_ddp_parse - take a DDP header apart
 * @head: at least min(@len, WEFT_DDP_UNTAGGED_LEN) octets
 * @len: of the whole ULPDU
 * @out: filled only if the result is WEFT_FAULT_NONE
 *
 * Reserved bits are not looked at (RFC 5041, 4.1).
 *
 * Return: WEFT_FAULT_NONE, WEFT_FAULT_MPA_MARKER for a ULPDU that ends inside
 * its header, or the version fault of its kind.
 */
static inline enum weft_fault weft_ddp_parse(const u8 *head, u32 len, struct weft_ddp_hdr *out)
{
	bool tagged;
	u32 hdr_len;

	if (!len)
		return WEFT_FAULT_MPA_MARKER;
	tagged = head[WEFT_DDP_CTRL_AT] & WEFT_DDP_TAGGED;
	hdr_len = tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN;
	if (len < hdr_len)
		return WEFT_FAULT_MPA_MARKER;
	if ((head[WEFT_DDP_CTRL_AT] & WEFT_DDP_DV_MASK) != WEFT_DDP_DV)
		return tagged ? WEFT_FAULT_TAGGED_VERSION : WEFT_FAULT_UNTAGGED_VERSION;

	out->tagged = tagged;
	out->last = head[WEFT_DDP_CTRL_AT] & WEFT_DDP_LAST;
	out->ulp = head[WEFT_DDP_ULP_AT];
	out->stag = get_unaligned_be32(head + WEFT_DDP_STAG_AT);
	out->hdr_len = hdr_len;
	out->payload = len - hdr_len;
	if (tagged)
		weft_ddp_parse_tagged(head, out);
	else
		weft_ddp_parse_untagged(head, out);
	return WEFT_FAULT_NONE;
}

/**
 * weft_ddp_build - write a DDP header
 * @hdr: @hdr_len and @payload are not looked at
 * @out: room for WEFT_DDP_UNTAGGED_LEN octets
 *
 * Return: octets written, 14 or 18.
 */
static inline u32 weft_ddp_build(const struct weft_ddp_hdr *hdr, u8 *out)
{
	out[WEFT_DDP_CTRL_AT] = WEFT_DDP_DV | (hdr->tagged ? WEFT_DDP_TAGGED : 0) |
				(hdr->last ? WEFT_DDP_LAST : 0);
	out[WEFT_DDP_ULP_AT] = hdr->ulp;
	put_unaligned_be32(hdr->stag, out + WEFT_DDP_STAG_AT);
	if (hdr->tagged) {
		put_unaligned_be64(hdr->to, out + WEFT_DDP_TO_AT);
		return WEFT_DDP_TAGGED_LEN;
	}
	put_unaligned_be32(hdr->qn, out + WEFT_DDP_QN_AT);
	put_unaligned_be32(hdr->msn, out + WEFT_DDP_MSN_AT);
	put_unaligned_be32(hdr->mo, out + WEFT_DDP_MO_AT);
	return WEFT_DDP_UNTAGGED_LEN;
}

#endif
