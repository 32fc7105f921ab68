/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DDP segments: headers of both kinds, cutting by MULPDU, order of untagged messages.
 * RFC 5041, 4 to 7. Each segment comes through here, so it is inline.
 */
#ifndef WEFT_PROTO_DDP_H
#define WEFT_PROTO_DDP_H

#include "proto/fault.h"
#include "proto/wire.h"

/**
 * struct weft_ddp_hdr - a DDP header in host order
 * @ulp: RDMAP control byte
 * @stag: tagged: sink; untagged: the bytes after the control (Invalidate STag)
 * @to: tagged offset
 * @hdr_len: 14 or 18
 * @payload: bytes behind the DDP header, RDMAP header included
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

/**
 * weft_ddp_parse - take a DDP header apart
 * @head: at least min(@len, WEFT_DDP_UNTAGGED_LEN) bytes
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
	out->to = tagged ? get_unaligned_be64(head + WEFT_DDP_TO_AT) : 0;
	out->qn = tagged ? 0 : get_unaligned_be32(head + WEFT_DDP_QN_AT);
	out->msn = tagged ? 0 : get_unaligned_be32(head + WEFT_DDP_MSN_AT);
	out->mo = tagged ? 0 : get_unaligned_be32(head + WEFT_DDP_MO_AT);
	return WEFT_FAULT_NONE;
}

/**
 * weft_ddp_build - write a DDP header
 * @hdr: @hdr_len and @payload are not looked at
 * @out: room for WEFT_DDP_UNTAGGED_LEN bytes
 *
 * Return: bytes written, 14 or 18.
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

struct weft_ddp_tx {
	u32 msn[WEFT_DDP_QUEUES];	/* next to use */
};

void weft_ddp_tx_init(struct weft_ddp_tx *tx);

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

/**
 * weft_ddp_cut - how much of a message the next segment takes
 * @left: bytes of payload not yet sent
 * @mulpdu: longest ULPDU; at least WEFT_MPA_MULPDU_MIN
 * @hdr_len: of the header in front of the payload
 * @last: set if this segment ends the message
 *
 * Return: payload bytes of the segment; 0 for the one segment of an empty
 * message.
 */
static inline u32 weft_ddp_cut(u32 left, u32 mulpdu, u32 hdr_len, bool *last)
{
	u32 room = mulpdu - hdr_len;

	*last = left <= room;
	return *last ? left : room;
}

/**
 * weft_ddp_tx_msn - draw the number of a new message
 * @tx: numbers of the sending direction
 * @qn: its queue, below WEFT_DDP_QUEUES
 */
static inline u32 weft_ddp_tx_msn(struct weft_ddp_tx *tx, u32 qn)
{
	return tx->msn[qn]++;
}

/**
 * weft_ddp_rx_check - is it this queue's turn?
 * @rx: what is expected
 * @hdr: an untagged segment, empty or not
 *
 * TCP keeps order, so of the window RFC 5041, 7.1 allows only the next number
 * can come. Whether a buffer waits for it is for the caller to know.
 */
static inline enum weft_fault weft_ddp_rx_check(const struct weft_ddp_rx *rx,
						const struct weft_ddp_hdr *hdr)
{
	if (hdr->qn >= WEFT_DDP_QUEUES)
		return WEFT_FAULT_UNTAGGED_QN;
	if (hdr->msn != rx->msn[hdr->qn])
		return WEFT_FAULT_UNTAGGED_MSN;
	return WEFT_FAULT_NONE;
}

/**
 * weft_ddp_rx_check_offset - does the segment continue its message and fit?
 * @rx: what is expected
 * @hdr: a segment that passed weft_ddp_rx_check()
 * @room: bytes of the buffer that takes the message
 */
static inline enum weft_fault weft_ddp_rx_check_offset(const struct weft_ddp_rx *rx,
						       const struct weft_ddp_hdr *hdr, u64 room)
{
	u64 end = (u64)hdr->mo + hdr->payload;

	if (hdr->mo != rx->mo[hdr->qn])
		return WEFT_FAULT_UNTAGGED_MO;
	/* a message is shorter than 2^32 bytes, whatever the buffer holds */
	if (end > room || end >> 32)
		return WEFT_FAULT_UNTAGGED_TOO_LONG;
	return WEFT_FAULT_NONE;
}

/**
 * weft_ddp_rx_advance - expect what follows this segment
 * @rx: what was expected
 * @hdr: a segment that passed all checks and was placed
 */
static inline void weft_ddp_rx_advance(struct weft_ddp_rx *rx, const struct weft_ddp_hdr *hdr)
{
	u32 qn = hdr->qn;

	rx->open[qn] = !hdr->last;
	rx->mo[qn] = hdr->last ? 0 : hdr->mo + hdr->payload;
	if (hdr->last)
		rx->msn[qn]++;
}

/**
 * weft_ddp_to_wraps - would the last byte lie beyond 2^64?
 * @to: tagged offset of the first byte
 * @len: bytes; a run ending exactly at 2^64 does not wrap
 */
static inline bool weft_ddp_to_wraps(u64 to, u32 len)
{
	return len && to + (len - 1) < to;
}

#endif
