// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Terminate messages: the headers to keep of an offending segment, the message
 * made of them, and what a received one says. RFC 5040, 4.8 and 7.1.
 */
#include "proto/term.h"
#include "proto/ddp.h"

#define TERM_SEGMENT_LEN	2	/* bytes of DDP Segment Length */

/**
 * weft_fault_rec_fill - keep of a segment what its Terminate will carry
 * @rec: filled completely
 * @fault: what was wrong
 * @ulpdu: the segment, or NULL if none caused it
 * @head_len: bytes of @ulpdu that can be read
 * @ulpdu_len: its ULPDU_Length
 *
 * A header that cannot be read as a whole is left out.
 */
void weft_fault_rec_fill(struct weft_fault_rec *rec, enum weft_fault fault, const u8 *ulpdu,
			 u32 head_len, u32 ulpdu_len)
{
	u8 wanted = weft_fault_info(fault)->headers;
	bool tagged;
	u32 len;

	memset(rec, 0, sizeof(*rec));
	rec->fault = fault;
	if (!ulpdu || !head_len || !(wanted & WEFT_HDR_DDP))
		return;
	tagged = ulpdu[WEFT_DDP_CTRL_AT] & WEFT_DDP_TAGGED;
	len = tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN;
	if (head_len < len)
		return;
	rec->segment_len = ulpdu_len;
	rec->ddp_len = len;
	if ((wanted & WEFT_HDR_READ_REQ) && !tagged &&
	    (ulpdu[WEFT_DDP_ULP_AT] & WEFT_RDMAP_OP_MASK) == WEFT_OP_READ_REQ &&
	    head_len >= len + WEFT_READ_REQ_LEN)
		rec->rdmap_len = WEFT_READ_REQ_LEN;
	memcpy(rec->headers, ulpdu, rec->ddp_len + rec->rdmap_len);
}

/**
 * weft_term_build - payload of a Terminate
 * @rec: a filled record
 * @out: WEFT_TERM_MAX_LEN bytes
 *
 * Return: its length.
 */
u32 weft_term_build(const struct weft_fault_rec *rec, u8 *out)
{
	const struct weft_fault_info *info = weft_fault_info(rec->fault);
	u16 bits = 0;

	if (rec->ddp_len)
		bits |= WEFT_TERM_M | WEFT_TERM_D;
	if (rec->rdmap_len)
		bits |= WEFT_TERM_R;
	out[0] = info->layer << 4 | info->etype;
	out[1] = info->ecode;
	put_unaligned_be16(bits, out + 2);
	if (!rec->ddp_len)
		return WEFT_TERM_CTRL_LEN;

	put_unaligned_be16(rec->segment_len, out + WEFT_TERM_CTRL_LEN);
	memcpy(out + WEFT_TERM_CTRL_LEN + TERM_SEGMENT_LEN, rec->headers,
	       rec->ddp_len + rec->rdmap_len);
	return WEFT_TERM_CTRL_LEN + TERM_SEGMENT_LEN + rec->ddp_len + rec->rdmap_len;
}

/**
 * weft_term_parse - what a received Terminate says
 * @payload: all bytes behind its DDP header, at least min(@len, WEFT_TERM_MAX_LEN)
 * @len: how many it has
 * @out: fields that are absent are 0
 *
 * Only the control word has to be there. Whatever else is cut short or odd just
 * names no segment: the stream is at its end either way.
 *
 * Return: WEFT_FAULT_NONE, or WEFT_FAULT_RDMAP_OPERATION without control word.
 */
enum weft_fault weft_term_parse(const u8 *payload, u32 len, struct weft_term *out)
{
	u32 at = WEFT_TERM_CTRL_LEN + TERM_SEGMENT_LEN;
	const u8 *hdr;
	u32 hdr_len;
	bool tagged;
	u16 bits;

	memset(out, 0, sizeof(*out));
	if (len < WEFT_TERM_CTRL_LEN)
		return WEFT_FAULT_RDMAP_OPERATION;
	out->layer = payload[0] >> 4;
	out->etype = payload[0] & 0x0f;
	out->ecode = payload[1];
	bits = get_unaligned_be16(payload + 2);
	/* the length's place is there with M as well as with D */
	if (!(bits & WEFT_TERM_D) || len <= at)
		return WEFT_FAULT_NONE;

	hdr = payload + at;
	tagged = hdr[WEFT_DDP_CTRL_AT] & WEFT_DDP_TAGGED;
	hdr_len = tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN;
	if (len - at < hdr_len)
		return WEFT_FAULT_NONE;
	/* It is one we sent, so its version is ours; some send zeros in its place for "none". */
	if ((hdr[WEFT_DDP_CTRL_AT] & WEFT_DDP_DV_MASK) != WEFT_DDP_DV)
		return WEFT_FAULT_NONE;
	out->has_ddp = true;
	out->tagged = tagged;
	out->opcode = hdr[WEFT_DDP_ULP_AT] & WEFT_RDMAP_OP_MASK;
	out->stag = get_unaligned_be32(hdr + WEFT_DDP_STAG_AT);
	if (tagged) {
		out->to = get_unaligned_be64(hdr + WEFT_DDP_TO_AT);
	} else {
		out->qn = get_unaligned_be32(hdr + WEFT_DDP_QN_AT);
		out->msn = get_unaligned_be32(hdr + WEFT_DDP_MSN_AT);
	}
	return WEFT_FAULT_NONE;
}
