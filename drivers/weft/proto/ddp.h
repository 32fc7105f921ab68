/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * DDP segments: cutting by MULPDU, order of untagged messages. RFC 5041, 4 to 7.
 */
#ifndef WEFT_PROTO_DDP_H
#define WEFT_PROTO_DDP_H

#include "proto/ddp_hdr.h"
#include "proto/fault.h"
#include "proto/wire.h"

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
 * @left: octets of payload not yet sent
 * @mulpdu: longest ULPDU; at least WEFT_MPA_MULPDU_MIN
 * @hdr_len: of the header in front of the payload
 * @last: set if this segment ends the message
 *
 * Return: payload octets of the segment; 0 for the one segment of an empty
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
 * @room: octets of the buffer that takes the message
 */
static inline enum weft_fault weft_ddp_rx_check_offset(const struct weft_ddp_rx *rx,
						       const struct weft_ddp_hdr *hdr, u64 room)
{
	u64 end = (u64)hdr->mo + hdr->payload;

	if (hdr->mo != rx->mo[hdr->qn])
		return WEFT_FAULT_UNTAGGED_MO;
	/* a message is shorter than 2^32 octets, whatever the buffer holds */
	if (end > room || end >> 32)
		return WEFT_FAULT_UNTAGGED_TOO_LONG;
	return WEFT_FAULT_NONE;
}

/**
 * weft_ddp_rx_first - does this segment open a message?
 * @rx: what is expected
 * @hdr: a segment that passed weft_ddp_rx_check()
 */
static inline bool weft_ddp_rx_first(const struct weft_ddp_rx *rx, const struct weft_ddp_hdr *hdr)
{
	return !rx->open[hdr->qn];
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
 * weft_ddp_to_wraps - would the last octet lie beyond 2^64?
 * @to: tagged offset of the first octet
 * @len: octets; a run ending exactly at 2^64 does not wrap
 */
static inline bool weft_ddp_to_wraps(u64 to, u32 len)
{
	return len && to + (len - 1) < to;
}

#endif
