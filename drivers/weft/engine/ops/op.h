/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the families of operations share: a message on its way out, a segment on its way
 * in, and the rows of the two tables that engine/ops/table.c puts together.
 */
#ifndef WEFT_ENGINE_OPS_OP_H
#define WEFT_ENGINE_OPS_OP_H

#include <linux/types.h>

#include "engine/state/msg.h"
#include "mem/access.h"
#include "net/ulpdu_copy.h"
#include "proto/ddp.h"
#include "proto/fault.h"
#include "proto/rdmap.h"
#include "proto/wire.h"

struct weft_cq_batch;
struct weft_mem_region;
struct weft_sge;
struct weft_stream;
struct weft_swr;

enum weft_tx_op_flags {
	WEFT_TXF_INLINE		= 1 << 0,	/* payload may stand in the entry */
	WEFT_TXF_CREDIT		= 1 << 1,	/* takes one of the ORD requests */
	WEFT_TXF_RESPONSE	= 1 << 2,	/* done when the response is in */
	WEFT_TXF_LOCAL		= 1 << 3,	/* nothing crosses the wire */
};

/**
 * struct weft_tx_op - a work request opcode
 * @flags: enum weft_tx_op_flags
 * @wc: opcode of its completion, enum weft_wc_op
 * @plan: turn a private work request into messages; for LOCAL, do it. @msgs
 *	are zeroed. Returns a fault to complete the request with. Context: tx
 *	claim held, process.
 * @messages: how many @plan fills
 */
struct weft_tx_op {
	u8 flags;
	u8 wc;
	u8 messages;
	enum weft_fault (*plan)(struct weft_stream *st, struct weft_swr *swr,
				struct weft_msg *msgs);
};

/**
 * struct weft_rx_seg - a segment being received
 * @ddp: its parsed DDP header
 * @u: all of it
 * @row: or, if not NULL, what it is put together of: @each octets of payload in each
 * @head: first octet behind the DDP header
 * @payload: payload octets (RDMAP header excluded)
 * @payload_at: where the payload starts in @u, or in each of the row
 * @batch: completion queues to notify when the loop is done
 */
struct weft_rx_seg {
	struct weft_ddp_hdr ddp;
	const struct weft_ulpdu *u;
	const struct weft_ulpdu_span *row;
	u32 each;
	const u8 *head;
	u32 payload;
	u32 payload_at;
	struct weft_cq_batch *batch;
};

/**
 * struct weft_rx_op - an RDMAP opcode
 * @begin: first segment of a message: find the target
 * @place: every segment: move the payload
 * @place_row: segments within a message, put together to one: move the payload, or do nothing
 *	that a second, single try at each of them would not do; whatever the fault, they get it
 * @end: last segment: complete, answer, invalidate
 *
 * All return the fault to terminate the stream with. Context: socket lock held,
 * must not sleep. A step an opcode does not need is weft_rx_nothing.
 */
struct weft_rx_op {
	enum weft_fault (*begin)(struct weft_stream *st, struct weft_rx_seg *seg);
	enum weft_fault (*place)(struct weft_stream *st, struct weft_rx_seg *seg);
	enum weft_fault (*place_row)(struct weft_stream *st, struct weft_rx_seg *seg);
	enum weft_fault (*end)(struct weft_stream *st, struct weft_rx_seg *seg);
};

enum weft_fault weft_rx_nothing(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_rx_singly(struct weft_stream *st, struct weft_rx_seg *seg);

/**
 * weft_msg_untagged - start a message on an untagged queue
 * @tx: the direction's numbers; tx claim held
 * @msg: zeroed; gets opcode and MSN
 * @opcode: RDMAP opcode
 */
static inline void weft_msg_untagged(struct weft_ddp_tx *tx, struct weft_msg *msg, u8 opcode)
{
	msg->opcode = opcode;
	msg->msn = weft_ddp_tx_msn(tx, weft_rdmap_info(opcode)->qn);
}

enum weft_fault weft_rx_copy_rows(const struct weft_rx_seg *seg, u32 at,
				  const struct weft_mem_ref *ref);
void weft_rxrow_copy(const struct weft_rx_seg *seg, u32 done, const struct weft_mem_ref *ref);

/**
 * weft_rx_copy - move some of a segment's payload to where it belongs
 * @seg: the segment
 * @done: octets of the payload to skip
 * @ref: the memory, granted for writing
 */
static __always_inline enum weft_fault weft_rx_copy(const struct weft_rx_seg *seg, u32 done,
						    const struct weft_mem_ref *ref)
{
	u32 at = seg->payload_at + done;

	if (unlikely(seg->row)) {
		weft_rxrow_copy(seg, done, ref);
		return WEFT_FAULT_NONE;
	}
	if (!ref->flat)
		return weft_rx_copy_rows(seg, at, ref);
	return weft_ulpdu_copy_flat(seg->u, at, ref->len, ref->flat) ?
		       WEFT_FAULT_LOCAL_CATASTROPHIC :
		       WEFT_FAULT_NONE;
}

/* For the families; place.c. */
void weft_rx_hold(struct weft_stream *st, struct weft_mem_region *busy);
enum weft_fault weft_rx_place(struct weft_mem_user *user, struct weft_rx_seg *seg,
			      const struct weft_sge *sge, u32 num_sge, u32 offset);

#endif
