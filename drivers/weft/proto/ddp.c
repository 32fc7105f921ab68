// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * DDP segments: both headers, cutting a message into segments, and the order in
 * which segments of the untagged queues may come. RFC 5041, 4, 5.2, 7.1.
 */
#include "proto/ddp.h"
#include "proto/hot.h"

/* Offsets within a ULPDU; the first three are common to both kinds. */
#define DDP_CTRL_AT	0
#define DDP_ULP_AT	1
#define DDP_STAG_AT	2
#define DDP_TO_AT	6
#define DDP_QN_AT	6
#define DDP_MSN_AT	10
#define DDP_MO_AT	14

static void parse_tagged(const u8 *head, struct weft_ddp_hdr *out)
{
	out->to = get_unaligned_be64(head + DDP_TO_AT);
	out->qn = 0;
	out->msn = 0;
	out->mo = 0;
}

static void parse_untagged(const u8 *head, struct weft_ddp_hdr *out)
{
	out->to = 0;
	out->qn = get_unaligned_be32(head + DDP_QN_AT);
	out->msn = get_unaligned_be32(head + DDP_MSN_AT);
	out->mo = get_unaligned_be32(head + DDP_MO_AT);
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
enum weft_fault weft_hot weft_ddp_parse(const u8 *head, u32 len, struct weft_ddp_hdr *out)
{
	bool tagged;
	u32 hdr_len;

	if (!len)
		return WEFT_FAULT_MPA_MARKER;
	tagged = head[DDP_CTRL_AT] & WEFT_DDP_TAGGED;
	hdr_len = tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN;
	if (len < hdr_len)
		return WEFT_FAULT_MPA_MARKER;
	if ((head[DDP_CTRL_AT] & WEFT_DDP_DV_MASK) != WEFT_DDP_DV)
		return tagged ? WEFT_FAULT_TAGGED_VERSION : WEFT_FAULT_UNTAGGED_VERSION;

	out->tagged = tagged;
	out->last = head[DDP_CTRL_AT] & WEFT_DDP_LAST;
	out->ulp = head[DDP_ULP_AT];
	out->stag = get_unaligned_be32(head + DDP_STAG_AT);
	out->hdr_len = hdr_len;
	out->payload = len - hdr_len;
	if (tagged)
		parse_tagged(head, out);
	else
		parse_untagged(head, out);
	return WEFT_FAULT_NONE;
}

/**
 * weft_ddp_build - write a DDP header
 * @hdr: @hdr_len and @payload are not looked at
 * @out: room for WEFT_DDP_UNTAGGED_LEN octets
 *
 * Return: octets written, 14 or 18.
 */
u32 weft_hot weft_ddp_build(const struct weft_ddp_hdr *hdr, u8 *out)
{
	out[DDP_CTRL_AT] = WEFT_DDP_DV | (hdr->tagged ? WEFT_DDP_TAGGED : 0) |
			   (hdr->last ? WEFT_DDP_LAST : 0);
	out[DDP_ULP_AT] = hdr->ulp;
	put_unaligned_be32(hdr->stag, out + DDP_STAG_AT);
	if (hdr->tagged) {
		put_unaligned_be64(hdr->to, out + DDP_TO_AT);
		return WEFT_DDP_TAGGED_LEN;
	}
	put_unaligned_be32(hdr->qn, out + DDP_QN_AT);
	put_unaligned_be32(hdr->msn, out + DDP_MSN_AT);
	put_unaligned_be32(hdr->mo, out + DDP_MO_AT);
	return WEFT_DDP_UNTAGGED_LEN;
}

/* Numbers of a new stream: every queue starts at 1 (RFC 5041, 4.3). */
static void first_msns(u32 *msn)
{
	u32 qn;

	for (qn = 0; qn < WEFT_DDP_QUEUES; qn++)
		msn[qn] = 1;
}

/**
 * weft_ddp_tx_init - no message sent yet
 * @tx: numbers of the sending direction
 */
void weft_ddp_tx_init(struct weft_ddp_tx *tx)
{
	first_msns(tx->msn);
}

/**
 * weft_ddp_rx_init - nothing received yet
 * @rx: expectations of the receiving direction
 */
void weft_ddp_rx_init(struct weft_ddp_rx *rx)
{
	memset(rx, 0, sizeof(*rx));
	first_msns(rx->msn);
}
