// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What is sent next. Order of choice: Terminate, the message in hand, the
 * ready-to-receive message, answers we owe, the send queue.
 */
#include "engine/path/tx_sched.h"

#include <linux/err.h>

#include "engine/ops/atomic.h"
#include "engine/ops/complete.h"
#include "engine/ops/credit.h"
#include "engine/ops/read.h"
#include "engine/ops/table.h"
#include "engine/ops/terminate.h"
#include "engine/path/zc_tx.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "proto/hot.h"
#include "proto/mpa_start.h"
#include "ring/sendq.h"

/* Answers in a row before the send queue has its turn. */
#define ANSWER_BURST	8

/* By field: the whole of it would be cleared by a string instruction, slow to start. */
static void clear(struct weft_msg *msg)
{
	msg->opcode = 0;
	msg->source = 0;
	msg->hdr_len = 0;
	msg->answer = false;
	msg->length = 0;
	msg->done = 0;
	msg->stag = 0;
	msg->to = 0;
	msg->msn = 0;
	msg->src_stag = 0;
	msg->src_to = 0;
	msg->swr = NULL;
}

static weft_hot struct weft_msg *hold(struct weft_tx *tx, u8 msgs)
{
	u8 i;

	for (i = 0; i < msgs; i++)
		clear(&tx->msg[i]);
	tx->msgs = msgs;
	tx->cur = 0;
	return tx->msg;
}

static bool pick_terminate(struct weft_stream *st)
{
	if (st->tx.msgs && st->tx.msg[0].opcode == WEFT_OP_TERMINATE)
		return true;
	if (st->tx.term_staged)
		return false;
	weft_term_message(st, hold(&st->tx, 1));
	return true;
}

/* RFC 6581, 5: exactly one zero-length message of the agreed kind comes first. */
static bool pick_rtr(struct weft_stream *st)
{
	static const u8 opcode[] = {
		[WEFT_RTR_SEND] = WEFT_OP_SEND,
		[WEFT_RTR_WRITE] = WEFT_OP_WRITE,
		[WEFT_RTR_READ] = WEFT_OP_READ_REQ,
	};
	const struct weft_read_req nothing = {};
	struct weft_msg *msg = hold(&st->tx, 1);

	msg->opcode = opcode[st->tx.rtr];
	if (st->tx.rtr != WEFT_RTR_WRITE)
		weft_msg_untagged(&st->tx.ddp, msg, msg->opcode);
	if (st->tx.rtr == WEFT_RTR_READ) {
		msg->hdr_len = WEFT_READ_REQ_LEN;
		weft_read_req_build(&nothing, st->tx.hdr);
		*weft_readq_sent_slot(&st->readq) = (struct weft_readq_sent){
			.no_wr = true,
			.msn = msg->msn,
		};
		weft_readq_sent_push(&st->readq);
	}
	st->tx.rtr = 0;
	return true;
}

/* After many answers in a row the send queue goes first. */
static bool answers_yield(struct weft_stream *st)
{
	if (st->tx.burst < ANSWER_BURST || !weft_sendq_pending(st->cfg.sq))
		return false;
	st->tx.burst = 0;
	return true;
}

static enum weft_fault answer(struct weft_stream *st, const struct weft_readq_owed *owed,
			      struct weft_msg *msg)
{
	return owed->atomic ? weft_atomic_answer(st, owed, msg) : weft_read_answer(st, owed, msg);
}

static bool weft_hot pick_answer(struct weft_stream *st)
{
	struct weft_readq_owed *owed = weft_readq_owed_head(&st->readq);
	struct weft_msg *msg;
	enum weft_fault fault;

	if (!owed)
		return false;
	msg = hold(&st->tx, 1);
	msg->answer = true;
	fault = owed->fault ?: answer(st, owed, msg);
	if (fault == WEFT_FAULT_NONE)
		return true;
	weft_pick_drop(&st->tx);
	weft_stream_fault(st, fault, owed->headers, owed->head_len, owed->segment_len);
	return false;
}

/* What no waiting can cure; a depth of 0 was agreed, or chosen by the consumer. */
static enum weft_fault check_request(const struct weft_stream *st, const struct weft_swr *swr,
				     const struct weft_tx_op *op)
{
	if (swr->status)
		return swr->vendor_err;
	if (swr->wqe.flags & WEFT_WRF_INLINE && !(op->flags & WEFT_TXF_INLINE))
		return WEFT_FAULT_LOCAL_QP_OP;
	if (op->flags & WEFT_TXF_CREDIT && !st->readq.ord)
		return WEFT_FAULT_LOCAL_QP_OP;
	return WEFT_FAULT_NONE;
}

static enum weft_fault plan(struct weft_stream *st, struct weft_swr *swr,
			    const struct weft_tx_op *op)
{
	struct weft_msg *msg = hold(&st->tx, op->messages);
	enum weft_fault fault;
	u8 i;

	fault = op->plan(st, swr, msg);
	for (i = 0; i < op->messages; i++)
		msg[i].swr = swr;
	return fault;
}

/**
 * weft_pick_fail - a request fails, and with it the stream
 * @st: stream, tx claim held
 * @swr: the request, in hand or half sent
 * @fault: what it completes with
 *
 * RFC 5040, 7: local errors. Context: tx claim.
 */
void weft_pick_fail(struct weft_stream *st, struct weft_swr *swr, enum weft_fault fault)
{
	weft_pick_drop(&st->tx);
	st->tx.swr = NULL;
	swr->tx_end = st->tx.sock.pos;
	weft_retire_done(st, swr, fault, NULL);
	weft_stream_fault(st, fault, NULL, 0, 0);
}

/* The first entry of a small queue allocates memory. */
static bool may_fetch(const struct weft_stream *st)
{
	return !weft_sendq_pending(st->cfg.sq) || !st->tx.sock.atomic ||
	       weft_sendq_is_used(st->cfg.sq);
}

static struct weft_swr *next_request(struct weft_stream *st)
{
	struct weft_swr *swr = st->tx.swr;

	if (swr)
		return swr;
	if (!weft_sendq_pending(st->cfg.sq) || !may_fetch(st))
		return NULL;
	swr = weft_sendq_fetch(st->cfg.sq);
	if (IS_ERR(swr)) {
		weft_stream_fault(st, WEFT_FAULT_LOCAL_QP_OP, NULL, 0, 0);
		return NULL;
	}
	if (swr)
		swr->tx_end = U64_MAX;
	st->tx.swr = swr;
	return swr;
}

enum request_outcome {
	REQUEST_NONE,
	REQUEST_HELD,
	REQUEST_AGAIN,	/* it is done, and sends nothing */
	REQUEST_LATER,	/* it may sleep, and the context may not */
};

static enum request_outcome take_request(struct weft_stream *st)
{
	struct weft_swr *swr = next_request(st);
	const struct weft_tx_op *op;
	enum weft_fault fault;

	if (!swr)
		return may_fetch(st) ? REQUEST_NONE : REQUEST_LATER;
	op = weft_tx_op(swr->wqe.opcode);
	/* @op is NULL for an unknown opcode. */
	if (unlikely(!READ_ONCE(st->gate_open)) && !(op && op->flags & WEFT_TXF_LOCAL))
		return REQUEST_NONE;
	fault = check_request(st, swr, op);
	if (fault == WEFT_FAULT_NONE && weft_tx_waits(st, swr, op))
		return REQUEST_NONE;
	/* It may wait for those who access the memory whose rights it changes. */
	if (fault == WEFT_FAULT_NONE && op->flags & WEFT_TXF_LOCAL && st->tx.sock.atomic)
		return REQUEST_LATER;
	if (fault == WEFT_FAULT_NONE)
		fault = plan(st, swr, op);
	if (fault != WEFT_FAULT_NONE) {
		weft_pick_fail(st, swr, fault);
		return REQUEST_NONE;
	}
	st->tx.swr = NULL;
	if (!(op->flags & WEFT_TXF_LOCAL)) {
		if (unlikely(st->tx.msg->length >= WEFT_LEND_FROM))
			weft_lend_begin(st, swr, st->tx.msg);
		return REQUEST_HELD;
	}
	swr->tx_end = st->tx.sock.pos;
	return REQUEST_AGAIN;
}

static enum weft_pick_result pick_request(struct weft_stream *st)
{
	enum request_outcome got;

	do {
		got = take_request(st);
	} while (got == REQUEST_AGAIN);
	if (got == REQUEST_LATER)
		return WEFT_PICK_LATER;
	return got == REQUEST_HELD ? WEFT_PICK_MESSAGE : WEFT_PICK_NONE;
}

/**
 * weft_pick - make sure a message is in hand
 * @st: stream, tx claim held
 *
 * Context: tx claim.
 */
enum weft_pick_result weft_hot weft_pick(struct weft_stream *st)
{
	enum weft_pick_result picked = WEFT_PICK_NONE;
	struct weft_tx *tx = &st->tx;
	bool yielded;

	if (READ_ONCE(st->state) == WEFT_QP_TERMINATE)
		return pick_terminate(st) ? WEFT_PICK_MESSAGE : WEFT_PICK_NONE;
	if (unlikely(!READ_ONCE(st->gate_open))) /* only what is local goes on */
		return tx->drained ? WEFT_PICK_NONE : pick_request(st);
	if (tx->msgs || (tx->rtr && pick_rtr(st)))
		return WEFT_PICK_MESSAGE;
	yielded = answers_yield(st);
	if (!yielded && weft_readq_owes(&st->readq) && pick_answer(st))
		return WEFT_PICK_MESSAGE;
	if (!tx->drained)
		picked = pick_request(st);
	if (picked == WEFT_PICK_MESSAGE)
		return picked;
	/* A request that waits holds up no answer. */
	return yielded && pick_answer(st) ? WEFT_PICK_MESSAGE : picked;
}
