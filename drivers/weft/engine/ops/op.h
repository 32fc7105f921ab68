/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The operations: the two tables of engine/ops/table.c, a message on its way out, a segment on
 * its way in, and what there is for each family of opcodes.
 */
#ifndef WEFT_ENGINE_OPS_OP_H
#define WEFT_ENGINE_OPS_OP_H

#include <linux/kernel.h>
#include <linux/nospec.h>
#include <linux/types.h>

#include "engine/state/msg.h"
#include "mem/access.h"
#include "net/ulpdu_copy.h"
#include "proto/ddp.h"
#include "proto/fault.h"
#include "proto/rdmap.h"
#include "proto/wire.h"
#include "uapi/weft-abi.h"

struct weft_cq_batch;
struct weft_readq_owed;
struct weft_readq_sent;
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
 * @plan: turn a private work request into messages; for LOCAL, do it. @msgs
 *	are zeroed. Returns a fault to complete the request with. Context: tx
 *	claim held, process.
 * @messages: how many @plan fills
 */
struct weft_tx_op {
	u8 flags;
	u8 messages;
	enum weft_fault (*plan)(struct weft_stream *st, struct weft_swr *swr,
				struct weft_msg *msgs);
};

/**
 * struct weft_rx_seg - a segment being received
 * @ddp: its parsed DDP header
 * @u: all of it
 * @row: or, if not NULL, what it is put together of: @each bytes of payload in each
 * @head: first byte behind the DDP header
 * @payload: payload bytes (RDMAP header excluded)
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
 * @place_batch: segments within a message, put together to one: move the payload, or do nothing
 *	that a second, single try at each of them would not do; whatever the fault, they get it
 * @end: last segment: complete, answer, invalidate
 *
 * All return the fault to terminate the stream with. Context: socket lock held,
 * must not sleep. A step an opcode does not need is weft_rx_nothing.
 */
struct weft_rx_op {
	enum weft_fault (*begin)(struct weft_stream *st, struct weft_rx_seg *seg);
	enum weft_fault (*place)(struct weft_stream *st, struct weft_rx_seg *seg);
	enum weft_fault (*place_batch)(struct weft_stream *st, struct weft_rx_seg *seg);
	enum weft_fault (*end)(struct weft_stream *st, struct weft_rx_seg *seg);
};

extern const struct weft_tx_op weft_tx_ops[WEFT_WR_OP_COUNT];
extern const struct weft_rx_op weft_rx_ops[WEFT_OP_COUNT];

/**
 * weft_tx_op - row of a work request opcode
 * @wr_opcode: as found in a private copy, any value
 *
 * Return: the row, NULL for an unknown opcode.
 */
static inline const struct weft_tx_op *weft_tx_op(u8 wr_opcode)
{
	if (wr_opcode >= ARRAY_SIZE(weft_tx_ops))
		return NULL;
	return &weft_tx_ops[array_index_nospec(wr_opcode, ARRAY_SIZE(weft_tx_ops))];
}

/**
 * weft_rx_op - row of an RDMAP opcode
 * @rdmap_opcode: of a segment that passed weft_rdmap_check()
 */
static inline const struct weft_rx_op *weft_rx_op(u8 rdmap_opcode)
{
	return &weft_rx_ops[array_index_nospec(rdmap_opcode & WEFT_RDMAP_OP_MASK,
					       ARRAY_SIZE(weft_rx_ops))];
}

enum weft_fault weft_rx_nothing(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_rx_place_single(struct weft_stream *st, struct weft_rx_seg *seg);

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

/* For the families; place.c. */
enum weft_fault weft_rx_copy(const struct weft_rx_seg *seg, u32 done,
			     const struct weft_mem_ref *ref);
enum weft_fault weft_rx_place(struct weft_mem_user *user, struct weft_rx_seg *seg,
			      const struct weft_sge *sge, u32 num_sge, u32 offset);

/* send.c */
enum weft_fault weft_send_plan(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msgs);
enum weft_fault weft_send_begin(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_send_imm_begin(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_send_place(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_send_place_batch(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_send_end(struct weft_stream *st, struct weft_rx_seg *seg);

/* write.c */
enum weft_fault weft_write_plan(struct weft_stream *st, struct weft_swr *swr,
				struct weft_msg *msgs);
enum weft_fault weft_write_imm_plan(struct weft_stream *st, struct weft_swr *swr,
				    struct weft_msg *msgs);
enum weft_fault weft_write_begin(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_write_place(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_imm_end(struct weft_stream *st, struct weft_rx_seg *seg);

/* read.c */
enum weft_fault weft_read_plan(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msgs);
enum weft_fault weft_read_request_end(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_response_begin(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_response_place(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_response_place_batch(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_response_end(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_read_misanswered(struct weft_stream *st, struct weft_rx_seg *seg,
				      enum weft_fault fault);

struct weft_readq_sent *weft_read_awaited(struct weft_stream *st, bool atomic);
enum weft_fault weft_read_answer(struct weft_stream *st, const struct weft_readq_owed *owed,
				 struct weft_msg *msg);

/* atomic.c */
enum weft_fault weft_atomic_plan(struct weft_stream *st, struct weft_swr *swr,
				 struct weft_msg *msgs);
enum weft_fault weft_atomic_request_end(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_atomic_response_place(struct weft_stream *st, struct weft_rx_seg *seg);
enum weft_fault weft_atomic_response_end(struct weft_stream *st, struct weft_rx_seg *seg);

enum weft_fault weft_atomic_answer(struct weft_stream *st, const struct weft_readq_owed *owed,
				   struct weft_msg *msg);

/* local.c */
enum weft_fault weft_local_inv(struct weft_stream *st, struct weft_swr *swr, struct weft_msg *msgs);
enum weft_fault weft_local_bind(struct weft_stream *st, struct weft_swr *swr,
				struct weft_msg *msgs);
enum weft_fault weft_local_register(struct weft_stream *st, struct weft_swr *swr,
				    struct weft_msg *msgs);

/* paging.c */
struct weft_paging;

void weft_paging_init(struct weft_stream *st);
bool weft_paging_start(struct weft_stream *st, struct weft_paging *paging);
void weft_paging_end(struct weft_stream *st);
void weft_paging_renew(struct weft_stream *st);

/* rnr.c; the rest of it is in rnr.h */
void weft_rnr_end(struct weft_stream *st);

/* terminate.c */
void weft_term_message(struct weft_stream *st, struct weft_msg *msg);
enum weft_fault weft_term_end(struct weft_stream *st, struct weft_rx_seg *seg);

/* msg_stats.c */

/* Counters of an opcode. */
struct weft_msg_stats {
	u8 sent;
	u8 received;
};

extern const struct weft_msg_stats weft_msg_stats[WEFT_OP_COUNT];

/* For what reason a Terminate counts, by its fault; from WEFT_CTR_TX_TERM_FOR and its like on. */
extern const u8 weft_term_reasons[WEFT_FAULT_COUNT];

#endif
