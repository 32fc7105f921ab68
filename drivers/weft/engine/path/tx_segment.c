// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What is sent next, and how it becomes segments: cut by MULPDU, with their headers, staged one
 * behind the other (RFC 5041, 4 and 5). Order of choice: Terminate, the message in hand, the
 * ready-to-receive message, answers we owe, the send queue.
 */
#include "engine/path/tx_segment.h"

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "base/trace.h"
#include "engine/ops/complete.h"
#include "engine/ops/credit.h"
#include "engine/ops/op.h"
#include "engine/path/loopback.h"
#include "engine/state/fsm.h"
#include "engine/state/loopback.h"
#include "proto/hot.h"
#include "ring/sendq.h"

/* Answers in a row before the send queue has its turn. */
#define ANSWER_BURST	8

/* --- a message: its header, and where its payload is --- */

/* Bytes of the DDP and RDMAP headers in front of each segment's payload. */
static u32 header_len(const struct weft_msg *msg)
{
	bool tagged = weft_rdmap_info(msg->opcode)->tagged;

	return (tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN) + msg->hdr_len;
}

/* The DDP header of the next segment. */
static __always_inline void fill_header(const struct weft_msg *msg, bool last,
					struct weft_ddp_hdr *hdr)
{
	const struct weft_rdmap_info *info = weft_rdmap_info(msg->opcode);

	hdr->tagged = info->tagged;
	hdr->last = last;
	hdr->ulp = weft_rdmap_ulp(msg->opcode);
	hdr->stag = msg->stag;
	hdr->to = msg->to + msg->done;
	hdr->qn = info->qn;
	hdr->msn = msg->msn;
	hdr->mo = msg->done;
}

/* Hands the next @len bytes of the payload, in registered memory, to @fn piece by piece. */
static __always_inline enum weft_fault walk_payload(struct weft_stream *st,
						    const struct weft_msg *msg, u32 len,
						    weft_mem_copy_fn fn, void *arg)
{
	const struct weft_swr *swr = msg->swr;
	struct weft_mem_ref ref;
	enum weft_fault fault;

	if (msg->source == WEFT_SRC_SGE)
		return weft_mem_walk(&st->tx.mem, swr->sge, swr->wqe.num_sge, msg->done, len,
				     WEFT_MEM_LOCAL_READ, fn, arg);
	fault = weft_mem_get(&st->tx.mem, msg->src_stag, msg->src_to + msg->done, len,
			     WEFT_MEM_REMOTE_READ, &ref);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	fault = fn(arg, 0, &ref);
	weft_mem_done(&st->tx.mem);
	return fault;
}

/* --- spans: segments that fill a TCP segment each, and differ in one field of the header --- */

/**
 * struct span - segments being staged
 * @sock: where to
 * @hdr: of the next one
 * @ulpdu_len: of each
 * @payload: bytes of it
 * @filled: payload bytes of the one that has begun
 */
struct span {
	struct weft_mpa_tx *sock;
	struct weft_ddp_hdr hdr;
	u32 ulpdu_len;
	u32 payload;
	u32 filled;
};

static enum weft_fault put_piece(void *arg, u32 done, const struct weft_mem_ref *ref)
{
	struct span *span = arg;
	struct weft_mpa_tx *sock = span->sock;
	u32 at, len, left, n;

	for (at = 0; at < ref->len; at += len) {
		const u8 *from = weft_mem_span(ref, at, &len);

		for (left = len; left; left -= n) {
			n = min(left, span->payload - span->filled);
			if (!span->filled) {
				put_unaligned_be16(span->ulpdu_len, sock->to);
				weft_mpa_tx_advance(sock, WEFT_MPA_LEN_BYTES);
				weft_mpa_tx_advance(sock, weft_ddp_build(&span->hdr, sock->to));
				span->hdr.to += span->payload;
				span->hdr.mo += span->payload;
			}
			weft_mpa_tx_span_put(sock, from, n);
			span->filled += n;
			from += n;
			if (span->filled == span->payload) {
				weft_mpa_tx_span_put_crc(sock);
				span->filled = 0;
			}
		}
	}
	return WEFT_FAULT_NONE;
}

/*
 * One look at memory and one room in the batch for many segments; the last one of the message
 * is never among them. Return: false if nothing was staged. They go one by one then, also where
 * something is wrong, which shows at the segment it belongs to.
 */
static bool stage_span(struct weft_stream *st, struct weft_msg *msg)
{
	struct weft_mpa_tx *sock = &st->tx.sock;
	struct span span = {
		.sock = sock,
		.ulpdu_len = sock->mulpdu,
		.payload = sock->mulpdu - header_len(msg),
	};
	u32 segs, bytes;

	segs = weft_mpa_tx_span_begin(sock, sock->mulpdu,
				      (msg->length - msg->done - 1) / span.payload);
	if (!segs)
		return false;
	bytes = segs * span.payload;
	fill_header(msg, false, &span.hdr);
	if (walk_payload(st, msg, bytes, put_piece, &span) != WEFT_FAULT_NONE ||
	    weft_mpa_tx_span_end(sock)) {
		weft_mpa_tx_cancel(sock);
		return false;
	}
	msg->done += bytes;
	weft_count_add2(st->cfg.counters, WEFT_CTR_TX_SEGS, segs, WEFT_CTR_TX_BYTES, bytes);
	return true;
}

/* --- one segment --- */

static __always_inline enum weft_fault stage_piece(void *arg, u32 done,
						   const struct weft_mem_ref *ref)
{
	struct weft_mpa_tx *sock = arg;
	int err = 0;
	u32 row;

	if (ref->flat) {
		err = weft_mpa_tx_copy_linear(sock, ref->flat, ref->len);
		return err ? WEFT_FAULT_LOCAL_CATASTROPHIC : WEFT_FAULT_NONE;
	}
	/* Memory that is not contiguous, or that is paged on demand. */
	for (done = 0; done < ref->len && !err; done += row) {
		const u8 *from = weft_mem_span(ref, done, &row);

		err = weft_mpa_tx_copy_linear(sock, from, row);
	}
	return err ? WEFT_FAULT_LOCAL_CATASTROPHIC : WEFT_FAULT_NONE;
}

static __always_inline enum weft_fault stage_segment(struct weft_stream *st, struct weft_msg *msg,
						     bool *last)
{
	struct weft_mpa_tx *sock = &st->tx.sock;
	u8 start[WEFT_MPA_LEN_BYTES + WEFT_ULPDU_HDR_MAX] __uninitialized;
	struct weft_ddp_hdr hdr __uninitialized;
	enum weft_fault fault = WEFT_FAULT_NONE;
	u32 payload, len, left, at;

	len = header_len(msg);
	left = msg->length - msg->done;
	payload = weft_ddp_cut(left, weft_mpa_tx_mulpdu(sock, len, left), len, last);
	fill_header(msg, *last, &hdr);
	at = WEFT_MPA_LEN_BYTES;
	at += weft_ddp_build(&hdr, start + at);
	if (msg->hdr_len)
		memcpy(start + at, st->tx.hdr, msg->hdr_len);
	if (weft_mpa_tx_begin(sock, start, len, payload))
		return WEFT_FAULT_LOCAL_CATASTROPHIC; /* nothing to cancel */
	if (payload && msg->source != WEFT_SRC_INLINE)
		fault = walk_payload(st, msg, payload, stage_piece, sock);
	else if (payload &&
		 weft_mpa_tx_copy_linear(sock, (const u8 *)msg->swr->sge + msg->done, payload))
		fault = WEFT_FAULT_LOCAL_CATASTROPHIC;
	if (fault == WEFT_FAULT_NONE && weft_mpa_tx_end(sock))
		fault = WEFT_FAULT_LOCAL_CATASTROPHIC;
	if (fault != WEFT_FAULT_NONE) {
		weft_mpa_tx_cancel(sock);
		return fault;
	}
	msg->done += payload;
	weft_count_add2(st->cfg.counters, WEFT_CTR_TX_SEGS, 1, WEFT_CTR_TX_BYTES, payload);
	return WEFT_FAULT_NONE;
}

/* --- the end of a message --- */

/**
 * weft_segment_drop - no message is in hand any more
 * @tx: the direction, claim held
 *
 * Context: as tx runs.
 */
void weft_segment_drop(struct weft_tx *tx)
{
	tx->msgs = 0;
	tx->cur = 0;
}

/* The last segment of the message in hand is staged. */
static void finish_message(struct weft_stream *st, struct weft_msg *msg)
{
	struct weft_tx *tx = &st->tx;

	weft_count_add2(st->cfg.counters, WEFT_CTR_TX_MSGS, 1, weft_msg_stats[msg->opcode].sent, 1);
	trace_weft_message_sent(st->cfg.ifindex, st->qpn, msg->opcode, msg->length, msg->msn);
	if (msg->answer) {
		if (!msg->popped)
			weft_readq_owed_pop(&st->readq);
		tx->burst++;
	} else {
		tx->burst = 0;
	}
	if (msg->opcode == WEFT_OP_TERMINATE) {
		tx->term_staged = true;
		weft_count(st->cfg.counters,
			   WEFT_CTR_TX_TERM_FOR + weft_term_reasons[st->fault.fault]);
	}
	if (++tx->cur < tx->msgs)
		return;
	if (msg->swr)
		WRITE_ONCE(msg->swr->tx_end, tx->sock.pos); /* rx looks at it */
	weft_segment_drop(tx);
}

/* RFC 5040, 7: local errors. The request, in hand or half sent, fails, and with it the stream. */
static void fail_request(struct weft_stream *st, struct weft_swr *swr, enum weft_fault fault)
{
	weft_segment_drop(&st->tx);
	st->tx.swr = NULL;
	swr->tx_end = st->tx.sock.pos;
	weft_complete_done(st, swr, fault, NULL);
	weft_stream_fault(st, fault, NULL, 0, 0);
}

/* RFC 5040, 4.8: the Read Request in a Terminate shows how far we got. */
static void answer_failed(struct weft_stream *st, const struct weft_msg *msg, enum weft_fault fault)
{
	struct weft_readq_owed *owed = weft_readq_owed_head(&st->readq);
	struct weft_read_req req = owed->read;

	if (!owed->atomic) {
		req.sink_to += msg->done;
		req.src_to += msg->done;
		req.length -= msg->done;
		weft_read_req_build(&req, owed->headers + WEFT_DDP_UNTAGGED_LEN);
	}
	weft_stream_fault(st, fault, owed->headers, owed->head_len, owed->segment_len);
}

/* --- what is sent next --- */

enum selected {
	SELECTED_NONE,	/* nothing may be sent now */
	SELECTED_MESSAGE,	/* a message is in hand */
	SELECTED_LATER,	/* what is next takes process context */
};

/* By field: the whole of a message would be cleared by a string instruction, slow to start. */
static weft_hot struct weft_msg *new_messages(struct weft_tx *tx, u8 msgs)
{
	struct weft_msg *msg;

	for (msg = tx->msg; msg < tx->msg + msgs; msg++) {
		msg->opcode = 0;
		msg->source = 0;
		msg->hdr_len = 0;
		msg->answer = false;
		msg->popped = false;
		msg->length = 0;
		msg->done = 0;
		msg->stag = 0;
		msg->to = 0;
		msg->msn = 0;
		msg->src_stag = 0;
		msg->src_to = 0;
		msg->swr = NULL;
	}
	tx->msgs = msgs;
	tx->cur = 0;
	return tx->msg;
}

/* RFC 6581, 5: exactly one zero-length message of the agreed kind comes first. */
static bool select_rtr(struct weft_stream *st)
{
	static const u8 opcode[] = {
		[WEFT_RTR_SEND] = WEFT_OP_SEND,
		[WEFT_RTR_WRITE] = WEFT_OP_WRITE,
		[WEFT_RTR_READ] = WEFT_OP_READ_REQ,
	};
	const struct weft_read_req nothing = {};
	struct weft_msg *msg = new_messages(&st->tx, 1);

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

static bool weft_hot select_response(struct weft_stream *st)
{
	struct weft_readq_owed *owed = weft_readq_owed_head(&st->readq);
	struct weft_msg *msg;
	enum weft_fault fault;

	if (!owed)
		return false;
	msg = new_messages(&st->tx, 1);
	msg->answer = true;
	fault = owed->fault;
	if (fault == WEFT_FAULT_NONE)
		fault = owed->atomic ? weft_atomic_answer(st, owed, msg) :
				       weft_read_answer(st, owed, msg);
	if (fault == WEFT_FAULT_NONE)
		return true;
	weft_segment_drop(&st->tx);
	if (fault == WEFT_FAULT_NOT_READY)
		weft_paging_start(st, &st->tx.paging);
	else
		weft_stream_fault(st, fault, owed->headers, owed->head_len, owed->segment_len);
	return false;
}

/*
 * Takes the next request from the send queue, if none is in hand. One that was posted when the
 * stream had failed already is owed a flush, also if it asks for no completion: ib_drain_sq() waits
 * for that. So the state is looked at after the request, and the flush finds it in hand.
 */
static enum selected fetch_request(struct weft_stream *st)
{
	struct weft_sendq *sq = st->cfg.sq;
	enum weft_qp_state state;
	struct weft_swr *swr;

	if (st->tx.swr)
		return SELECTED_MESSAGE;
	if (!weft_sendq_pending(sq))
		return SELECTED_NONE;
	if (!sq->wr)
		return SELECTED_LATER;	/* the first one of a queue, see weft_sendq_prepare() */
	swr = weft_sendq_fetch(sq);
	if (IS_ERR(swr))
		weft_stream_fault(st, WEFT_FAULT_LOCAL_QP_OP, NULL, 0, 0);
	if (IS_ERR_OR_NULL(swr))
		return SELECTED_NONE;
	swr->tx_end = U64_MAX;
	st->tx.swr = swr;
	state = READ_ONCE(st->state); /* after the producer index, which is loaded with acquire */
	if (unlikely(state == WEFT_QP_ERROR || state == WEFT_QP_TERMINATE))
		return SELECTED_NONE;
	return SELECTED_MESSAGE;
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

/* Requests that send nothing are done on the way. */
static enum selected select_request(struct weft_stream *st)
{
	struct weft_tx *tx = &st->tx;
	const struct weft_tx_op *op;
	enum weft_fault fault;
	struct weft_swr *swr;
	struct weft_msg *msg;
	enum selected selected;
	u8 i;

	do {
		selected = fetch_request(st);
		if (selected != SELECTED_MESSAGE)
			return selected;
		swr = tx->swr;
		op = weft_tx_op(swr->wqe.opcode);
		/* @op is NULL for an unknown opcode. */
		if (unlikely(!READ_ONCE(st->gate_open)) && !(op && op->flags & WEFT_TXF_LOCAL))
			return SELECTED_NONE;
		fault = check_request(st, swr, op);
		if (fault != WEFT_FAULT_NONE)
			goto failed;
		if (weft_tx_waits(st, swr, op))
			return SELECTED_NONE;
		/* It may wait for accesses to the memory whose rights it changes. */
		if (op->flags & WEFT_TXF_LOCAL && tx->sock.atomic)
			return SELECTED_LATER;
		msg = new_messages(tx, op->messages);
		swr->awaits_response = op->flags & WEFT_TXF_RESPONSE;
		/* Before it waits it has let go of all that the batch has pinned: mem/mr_ops.c. */
		if (op->flags & WEFT_TXF_LOCAL)
			non_block_end();
		fault = op->plan(st, swr, msg);
		if (op->flags & WEFT_TXF_LOCAL)
			non_block_start();
		for (i = 0; i < op->messages; i++)
			msg[i].swr = swr;
		if (fault != WEFT_FAULT_NONE)
			goto failed;
		tx->swr = NULL;
		if (op->flags & WEFT_TXF_LOCAL)
			swr->tx_end = tx->sock.pos;
	} while (op->flags & WEFT_TXF_LOCAL);
	return SELECTED_MESSAGE;
failed:
	fail_request(st, swr, fault);
	return SELECTED_NONE;
}

static enum selected weft_hot select_message(struct weft_stream *st)
{
	enum selected selected = SELECTED_NONE;
	struct weft_tx *tx = &st->tx;
	bool yielded;

	/* Pairs with the release in weft_stream_step(): the fault was recorded before. */
	if (smp_load_acquire(&st->state) == WEFT_QP_TERMINATE) {
		if (tx->msgs && tx->msg[0].opcode == WEFT_OP_TERMINATE)
			return SELECTED_MESSAGE;
		if (tx->term_staged)
			return SELECTED_NONE;
		weft_term_message(st, new_messages(tx, 1));
		return SELECTED_MESSAGE;
	}
	if (unlikely(!READ_ONCE(st->gate_open))) /* only what is local goes on */
		return tx->drained ? SELECTED_NONE : select_request(st);
	if (tx->msgs || (tx->rtr && select_rtr(st)))
		return SELECTED_MESSAGE;
	/* After many answers in a row the send queue goes first. */
	yielded = tx->burst >= ANSWER_BURST && weft_sendq_pending(st->cfg.sq);
	if (yielded)
		tx->burst = 0;
	else if (weft_readq_owes(&st->readq) && select_response(st))
		return SELECTED_MESSAGE;
	if (!tx->drained)
		selected = select_request(st);
	if (selected == SELECTED_MESSAGE)
		return selected;
	/* A request that waits holds up no answer. */
	return yielded && select_response(st) ? SELECTED_MESSAGE : selected;
}

/* The next segment was not made. */
static enum weft_segment_result not_staged(struct weft_stream *st, const struct weft_msg *msg,
					   enum weft_fault fault)
{
	if (st->tx.sock.no_memory)
		return WEFT_SEGMENT_LATER;
	if (fault == WEFT_FAULT_NOT_READY && weft_paging_start(st, &st->tx.paging))
		return WEFT_SEGMENT_WAITS;
	if (fault == WEFT_FAULT_NOT_READY) /* they have come meanwhile */
		return WEFT_SEGMENT_LATER;
	if (msg->swr)
		fail_request(st, msg->swr, fault);
	else if (msg->answer && !msg->popped)
		answer_failed(st, msg, fault);
	else
		weft_stream_fault(st, fault, NULL, 0, 0);
	weft_segment_drop(&st->tx);
	return WEFT_SEGMENT_NONE;
}

/* --- a peer on this host --- */

static enum weft_fault add_payload(struct weft_stream *st, const struct weft_msg *msg, u32 left,
				   struct weft_loopback_seg *seg)
{
	const struct weft_swr *swr = msg->swr;
	struct weft_mem_ref own = {};
	u32 done = msg->done;
	u32 i;

	/* Of a gather list, no more than an element: it is pinned for the next one only. */
	if (msg->source == WEFT_SRC_SGE) {
		for (i = 0; i < swr->wqe.num_sge && done >= swr->sge[i].length; i++)
			done -= swr->sge[i].length;
		if (i < swr->wqe.num_sge)
			left = min(left, swr->sge[i].length - done);
	}
	own.len = min(left, WEFT_LOOPBACK_PAYLOAD);
	if (!own.len)
		return WEFT_FAULT_NONE;
	if (msg->source != WEFT_SRC_INLINE)
		return walk_payload(st, msg, own.len, weft_loopback_add, seg);
	own.flat = (u8 *)swr->sge + msg->done;
	return weft_loopback_add(seg, 0, &own);
}

static enum weft_segment_result hand_segment(struct weft_stream *st, struct weft_msg *msg,
					     enum weft_handed *handed)
{
	struct weft_loopback_seg seg __uninitialized;
	struct weft_ddp_hdr hdr __uninitialized;
	u32 left = msg->length - msg->done;
	enum weft_fault fault;
	bool last;
	u32 len;

	seg.st = st;
	seg.answered = msg->swr && msg->swr->awaits_response;
	seg.payload = 0;
	seg.count = 0;
	st->tx.sock.no_memory = false;
	fault = add_payload(st, msg, left, &seg);
	if (fault != WEFT_FAULT_NONE)
		return not_staged(st, msg, fault);
	last = seg.payload == left;
	fill_header(msg, last, &hdr);
	len = weft_ddp_build(&hdr, seg.u.head);
	memcpy(seg.u.head + len, st->tx.hdr, msg->hdr_len);
	if (last) {
		/*
		 * The peer may act on it at once: answer it, or use the place of the request that
		 * it answers. So both are seen to before.
		 */
		if (msg->answer && !msg->popped)
			weft_readq_owed_pop(&st->readq);
		msg->popped = true;
		if (msg->swr && st->tx.cur + 1 == st->tx.msgs)
			WRITE_ONCE(msg->swr->tx_end, st->tx.sock.pos);
	}
	*handed = weft_loopback_hand(&seg, len + msg->hdr_len);
	if (*handed != WEFT_HANDED_TAKEN) {
		if (last && msg->swr)
			WRITE_ONCE(msg->swr->tx_end, U64_MAX);
		return WEFT_SEGMENT_WAITS;
	}
	msg->done += seg.payload;
	weft_count_add2(st->cfg.counters, WEFT_CTR_TX_SEGS, 1, WEFT_CTR_TX_BYTES, seg.payload);
	if (last)
		finish_message(st, msg);
	return WEFT_SEGMENT_STAGED;
}

/* A Terminate goes by TCP, as the FIN behind it does. Return: false if the segment does. */
static bool by_loopback(struct weft_stream *st, struct weft_msg *msg, enum weft_segment_result *got)
{
	enum weft_handed handed = WEFT_HANDED_WAITS;
	enum weft_route route = WEFT_ROUTE_TCP;

	if (msg->opcode != WEFT_OP_TERMINATE)
		route = weft_loopback_route(st);
	*got = WEFT_SEGMENT_LATER;
	if (route == WEFT_ROUTE_LOOPBACK)
		*got = hand_segment(st, msg, &handed);
	return route != WEFT_ROUTE_TCP && handed != WEFT_HANDED_REFUSED;
}

/**
 * weft_segment_next - stage one segment of the next message, or a span of them
 * @st: stream, tx claim held, with room in its batch
 *
 * A segment that cannot be made fails its request, or the stream; one for which there is no
 * memory stays in hand. Context: tx claim.
 */
enum weft_segment_result weft_hot weft_segment_next(struct weft_stream *st)
{
	enum selected selected = select_message(st);
	struct weft_mpa_tx *sock = &st->tx.sock;
	enum weft_segment_result got;
	struct weft_msg *msg;
	enum weft_fault fault;
	bool last;

	if (selected != SELECTED_MESSAGE)
		return selected == SELECTED_LATER ? WEFT_SEGMENT_LATER : WEFT_SEGMENT_NONE;
	msg = &st->tx.msg[st->tx.cur];
	if (unlikely(st->loopback) && by_loopback(st, msg, &got))
		return got;
	/* Is there enough left of the message, and may a span begin? */
	if (msg->length - msg->done > 2 * sock->mulpdu && weft_mpa_tx_may_span(sock) &&
	    !msg->hdr_len && (msg->source == WEFT_SRC_SGE || msg->source == WEFT_SRC_STAG) &&
	    stage_span(st, msg))
		return WEFT_SEGMENT_STAGED;
	fault = stage_segment(st, msg, &last);
	if (fault != WEFT_FAULT_NONE)
		return not_staged(st, msg, fault);
	if (last)
		finish_message(st, msg);
	return WEFT_SEGMENT_STAGED;
}
