// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The tx loop. One owner at a time, by a claim bit: the doorbell call or a
 * worker, always in process context. Order of choice: Terminate, the message in
 * hand, the ready-to-receive message, answers we owe, the send queue.
 */
#include "engine/tx.h"

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/sched/mm.h>

#include "base/counters.h"
#include "base/trace.h"
#include "engine/op_atomic.h"
#include "engine/op_read.h"
#include "engine/op_term.h"
#include "engine/ops.h"
#include "engine/retire.h"
#include "engine/stream_state.h"
#include "engine/tally.h"
#include "proto/mpa_start.h"
#include "ring/cq.h"
#include "ring/sendq.h"

/* Answers in a row before the send queue has its turn. */
#define ANSWER_BURST	8
/* Octets one caller of the doorbell sends before a worker takes over. */
#define BUDGET		(4U << 20)

/**
 * weft_msg_untagged - start a message on an untagged queue
 * @st: stream, tx claim held
 * @msg: zeroed; gets opcode and MSN
 * @opcode: RDMAP opcode
 */
void weft_msg_untagged(struct weft_stream *st, struct weft_msg *msg, u8 opcode)
{
	msg->opcode = opcode;
	msg->msn = weft_ddp_tx_msn(&st->tx.ddp, weft_rdmap_info(opcode)->qn);
}

static enum weft_fault touch_nothing(void *arg, u32 done, struct iov_iter *iter)
{
	return WEFT_FAULT_NONE;
}

/* May the response be placed where the request wants it? */
enum weft_fault weft_tx_check_sink(struct weft_stream *st, const struct weft_swr *swr)
{
	return weft_mem_walk(&st->mem, swr->sge, swr->wqe.num_sge, 0, swr->length,
			     WEFT_MEM_LOCAL_WRITE, touch_nothing, NULL);
}

/* --- choosing ---------------------------------------------------------- */

static struct weft_msg *hold(struct weft_tx *tx, u8 msgs)
{
	u8 i;

	for (i = 0; i < msgs; i++)
		memset(&tx->msg[i], 0, offsetof(struct weft_msg, hdr));
	tx->msgs = msgs;
	tx->cur = 0;
	return tx->msg;
}

static void drop(struct weft_tx *tx)
{
	tx->msgs = 0;
	tx->cur = 0;
}

static bool pick_terminate(struct weft_stream *st)
{
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
		weft_msg_untagged(st, msg, msg->opcode);
	if (st->tx.rtr == WEFT_RTR_READ) {
		msg->hdr_len = WEFT_READ_REQ_LEN;
		weft_read_req_build(&nothing, msg->hdr);
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

static bool pick_answer(struct weft_stream *st)
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
	drop(&st->tx);
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

/* Credits and fences: true while the request must wait for a response. */
static bool must_wait(struct weft_stream *st, const struct weft_swr *swr,
		      const struct weft_tx_op *op)
{
	if (swr->wqe.flags & WEFT_WRF_FENCE && !weft_readq_idle(&st->readq))
		return true;
	return op->flags & WEFT_TXF_CREDIT && !weft_readq_credit(&st->readq);
}

/* The mark goes up before the second look: rx pops, then looks at the mark. */
static bool waits(struct weft_stream *st, const struct weft_swr *swr, const struct weft_tx_op *op)
{
	if (!must_wait(st, swr, op))
		return false;
	set_bit(WEFT_TX_WAITS, &st->tx.claim);
	smp_mb__after_atomic();	/* pairs with weft_tx_response_in() */
	return must_wait(st, swr, op);
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

/* The request fails, and with it the stream (RFC 5040, 7: local errors). */
static void fail(struct weft_stream *st, struct weft_swr *swr, enum weft_fault fault)
{
	drop(&st->tx);
	st->tx.swr = NULL;
	swr->tx_end = st->tx.sock.pos;
	weft_retire_done(st, swr, fault, NULL);
	weft_stream_fault(st, fault, NULL, 0, 0);
}

static struct weft_swr *next_request(struct weft_stream *st)
{
	struct weft_swr *swr = st->tx.swr;

	if (swr)
		return swr;
	if (!weft_sendq_pending(st->cfg.sq))
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

enum request_outcome { REQUEST_NONE, REQUEST_HELD, REQUEST_AGAIN };

static enum request_outcome take_request(struct weft_stream *st)
{
	struct weft_swr *swr = next_request(st);
	const struct weft_tx_op *op;
	enum weft_fault fault;

	if (!swr)
		return REQUEST_NONE;
	op = weft_tx_op(swr->wqe.opcode);
	fault = check_request(st, swr, op);
	if (fault == WEFT_FAULT_NONE && waits(st, swr, op))
		return REQUEST_NONE;
	if (fault == WEFT_FAULT_NONE)
		fault = plan(st, swr, op);
	if (fault != WEFT_FAULT_NONE) {
		fail(st, swr, fault);
		return REQUEST_NONE;
	}
	st->tx.swr = NULL;
	if (!(op->flags & WEFT_TXF_LOCAL))
		return REQUEST_HELD;
	swr->tx_end = st->tx.sock.pos;
	return REQUEST_AGAIN;
}

static bool pick_request(struct weft_stream *st)
{
	enum request_outcome got;

	do {
		got = take_request(st);
	} while (got == REQUEST_AGAIN);
	return got == REQUEST_HELD;
}

/* Makes sure a message is in hand; false: nothing may be sent now. */
static bool pick(struct weft_stream *st)
{
	struct weft_tx *tx = &st->tx;
	bool yielded;

	if (READ_ONCE(st->state) == WEFT_QP_TERMINATE)
		return tx->msgs && tx->msg[0].opcode == WEFT_OP_TERMINATE ? true :
									    pick_terminate(st);
	if (tx->msgs)
		return true;
	if (tx->rtr)
		return pick_rtr(st);
	yielded = answers_yield(st);
	if (!yielded && pick_answer(st))
		return true;
	if (!tx->drained && pick_request(st))
		return true;
	return yielded && pick_answer(st); /* a request that waits holds up no answer */
}

/* --- staging ----------------------------------------------------------- */

static u32 header_len(const struct weft_msg *msg)
{
	bool tagged = weft_rdmap_info(msg->opcode)->tagged;

	return (tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN) + msg->hdr_len;
}

static void build_header(const struct weft_msg *msg, bool last, u8 *out)
{
	const struct weft_rdmap_info *info = weft_rdmap_info(msg->opcode);
	struct weft_ddp_hdr hdr;
	u32 len;

	hdr.tagged = info->tagged;
	hdr.last = last;
	hdr.ulp = weft_rdmap_ulp(msg->opcode);
	hdr.stag = msg->stag;
	hdr.to = msg->to + msg->done;
	hdr.qn = info->qn;
	hdr.msn = msg->msn;
	hdr.mo = msg->done;
	len = weft_ddp_build(&hdr, out);
	if (msg->hdr_len)
		memcpy(out + len, msg->hdr, msg->hdr_len);
}

static enum weft_fault stage_piece(void *arg, u32 done, struct iov_iter *iter)
{
	struct weft_stream *st = arg;

	return weft_txsock_copy(&st->tx.sock, iter, iov_iter_count(iter)) ?
		       WEFT_FAULT_LOCAL_CATASTROPHIC :
		       WEFT_FAULT_NONE;
}

static enum weft_fault stage_stag(struct weft_stream *st, const struct weft_msg *msg, u32 len)
{
	struct weft_mem_ref ref;
	struct iov_iter from;
	enum weft_fault fault;

	fault = weft_mem_get(&st->mem, msg->src_stag, msg->src_to + msg->done, len,
			     WEFT_MEM_REMOTE_READ, &ref);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	weft_mem_iter(&ref, ITER_SOURCE, &from);
	fault = stage_piece(st, 0, &from);
	weft_mem_put(&ref);
	return fault;
}

static enum weft_fault stage_payload(struct weft_stream *st, const struct weft_msg *msg, u32 len)
{
	const struct weft_swr *swr = msg->swr;

	if (!len)
		return WEFT_FAULT_NONE;
	if (msg->source == WEFT_SRC_STAG)
		return stage_stag(st, msg, len);
	if (msg->source == WEFT_SRC_SGE)
		return weft_mem_walk(&st->mem, swr->sge, swr->wqe.num_sge, msg->done, len,
				     WEFT_MEM_LOCAL_READ, stage_piece, st);
	if (weft_txsock_copy_linear(&st->tx.sock, (const u8 *)swr->sge + msg->done, len))
		return WEFT_FAULT_LOCAL_CATASTROPHIC;
	return WEFT_FAULT_NONE;
}

static enum weft_fault stage_segment(struct weft_stream *st, struct weft_msg *msg, bool *last)
{
	struct weft_txsock *sock = &st->tx.sock;
	u8 start[WEFT_MPA_LEN_OCTETS + WEFT_ULPDU_HDR_MAX];
	enum weft_fault fault;
	u32 payload, len;

	len = header_len(msg);
	payload = weft_ddp_cut(msg->length - msg->done, sock->mulpdu, len, last);
	build_header(msg, *last, start + WEFT_MPA_LEN_OCTETS);
	if (weft_txsock_begin(sock, start, len, payload))
		return WEFT_FAULT_LOCAL_CATASTROPHIC;
	fault = stage_payload(st, msg, payload);
	if (fault == WEFT_FAULT_NONE && weft_txsock_end(sock))
		fault = WEFT_FAULT_LOCAL_CATASTROPHIC;
	if (fault != WEFT_FAULT_NONE) {
		weft_txsock_cancel(sock);
		return fault;
	}
	msg->done += payload;
	weft_count(st->cfg.counters, WEFT_CTR_TX_SEGS);
	weft_count_add(st->cfg.counters, WEFT_CTR_TX_BYTES, payload);
	return WEFT_FAULT_NONE;
}

/* The last segment of the message in hand is staged. */
static void finish_message(struct weft_stream *st, struct weft_msg *msg)
{
	struct weft_tx *tx = &st->tx;

	weft_tally_sent(st, msg->opcode);
	trace_weft_message_sent(st->cfg.ifindex, st->qpn, msg->opcode, msg->length, msg->msn);
	if (msg->answer) {
		weft_readq_owed_pop(&st->readq);
		tx->burst++;
	} else {
		tx->burst = 0;
	}
	if (msg->opcode == WEFT_OP_TERMINATE) {
		tx->term_staged = true;
		weft_tally_term_sent(st, st->fault.fault);
	}
	if (++tx->cur < tx->msgs)
		return;
	if (msg->swr)
		msg->swr->tx_end = tx->sock.pos;
	drop(tx);
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

static void stage_failed(struct weft_stream *st, const struct weft_msg *msg, enum weft_fault fault)
{
	if (msg->swr)
		fail(st, msg->swr, fault);
	else if (msg->answer)
		answer_failed(st, msg, fault);
	else
		weft_stream_fault(st, fault, NULL, 0, 0);
	drop(&st->tx);
}

/* Stages one segment; false: nothing was staged. */
static bool stage_next(struct weft_stream *st)
{
	struct weft_msg *msg;
	enum weft_fault fault;
	bool last;

	if (!pick(st))
		return false;
	msg = &st->tx.msg[st->tx.cur];
	fault = stage_segment(st, msg, &last);
	if (fault != WEFT_FAULT_NONE)
		stage_failed(st, msg, fault);
	else if (last)
		finish_message(st, msg);
	return fault == WEFT_FAULT_NONE;
}

/* --- the loop ---------------------------------------------------------- */

/* Is another look worth it? The peer waits for the push meanwhile. */
static bool has_next(const struct weft_stream *st)
{
	const struct weft_tx *tx = &st->tx;

	return tx->msgs || tx->swr || weft_sendq_pending(st->cfg.sq) || weft_readq_owes(&st->readq);
}

/* Returns true when there was nothing more to stage, not even at a second look. */
static bool stage_train(struct weft_stream *st)
{
	struct weft_txsock *sock = &st->tx.sock;

	weft_txsock_refresh(sock);
	do {
		if (weft_txsock_full(sock))
			return false;
		if (!stage_next(st))
			return weft_txsock_empty(sock);
	} while (has_next(st));
	return true;
}

/*
 * Pushes what is staged: 0 all gone, -EAGAIN the socket is full, else it is
 * lost. A full train has a next one behind it, so its last segment may wait.
 */
static int push(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_txsock *sock = &st->tx.sock;
	u64 before = sock->pushed;
	int err = weft_txsock_push(sock, weft_txsock_full(sock));

	if (sock->pushed != before || err)
		trace_weft_train(st->cfg.ifindex, st->qpn, sock->pushed - before, err);
	weft_retire_pushed(st, sock->pushed, batch);
	if (err && err != -EAGAIN)
		weft_stream_step(st, WEFT_QP_CONN_LOST);
	return err;
}

/* Everything that may be sent was: tell the state machine what it waits for. */
static void report_progress(struct weft_stream *st)
{
	struct weft_tx *tx = &st->tx;
	struct weft_sendq *sq = st->cfg.sq;

	if (tx->drained)
		return;
	if (st->state == WEFT_QP_TERMINATE && tx->term_staged) {
		tx->drained = true;
		weft_stream_step(st, WEFT_QP_TERMINATE_SENT);
	} else if (st->state == WEFT_QP_CLOSING && !tx->swr && !weft_sendq_pending(sq) &&
		   READ_ONCE(sq->retired) == sq->fetched) {
		tx->drained = true;
		weft_stream_step(st, WEFT_QP_SQ_DRAINED);
	}
}

static bool may_send(const struct weft_stream *st)
{
	enum weft_qp_state state = READ_ONCE(st->state);

	if (state == WEFT_QP_TERMINATE)
		return true;
	return (state == WEFT_QP_RTS || state == WEFT_QP_CLOSING) && READ_ONCE(st->gate_open);
}

/**
 * weft_tx_rest - may the queue be left?
 * @st: stream
 *
 * Waiting requests are kicked by rx, those of a stopped stream by the flush.
 * Context: tx claim held. Return: false if there is something to send after all.
 */
bool weft_tx_rest(struct weft_stream *st)
{
	if (st->tx.swr || st->tx.drained || READ_ONCE(st->state) == WEFT_QP_TERMINATE)
		return true;
	return weft_watch_begin(st) || weft_sendq_set_idle(st->cfg.sq);
}

/* Returns true when the budget is spent and there is more. */
static bool send_trains(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_tx *tx = &st->tx;
	u64 start = tx->sock.pos;
	bool done;

	weft_sendq_set_busy(st->cfg.sq);
	while (may_send(st)) {
		done = stage_train(st);
		if (push(st, batch))
			return false;
		if (done) {
			report_progress(st);
			if (weft_tx_rest(st))
				return false;
		}
		if (tx->sock.pos - start > BUDGET)
			return true;
	}
	return false;
}

/**
 * weft_tx_flush - complete everything posted, as a failed stream must
 * @st: stream in error, tx claim held
 *
 * Not before rx is quiet: it may still be placing what answers one of them, and its owner
 * may free the memory. Posts that come later kick, find the stream in error and are
 * flushed the same way. Context: process.
 */
void weft_tx_flush(struct weft_stream *st)
{
	struct weft_cq_batch batch = {};

	drop(&st->tx);
	while (weft_retire_flush_sends(st, &batch) && !weft_sendq_set_idle(st->cfg.sq))
		;
	weft_retire_flush_receives(st, &batch);
	weft_cq_batch_fire(&batch);
}

/* One turn of the owner. Returns true when a worker should go on. */
static bool turn(struct weft_stream *st)
{
	struct weft_cq_batch batch = {};
	unsigned int noio;
	bool more;

	if (READ_ONCE(st->state) == WEFT_QP_ERROR) {
		if (READ_ONCE(st->quiet))
			weft_tx_flush(st);
		return false;
	}
	if (!may_send(st))
		return false;
	noio = memalloc_noio_save();
	more = send_trains(st, &batch);
	memalloc_noio_restore(noio);
	weft_cq_batch_fire(&batch);
	return more;
}

/**
 * weft_tx_mark - there is something to send
 * @st: stream
 *
 * Return: true if nobody runs tx, so that the caller must see to it. Any context.
 */
bool weft_tx_mark(struct weft_stream *st)
{
	set_bit(WEFT_TX_AGAIN, &st->tx.claim);
	smp_mb__after_atomic();	/* pairs with the one in weft_tx_unclaim() */
	return !test_bit(WEFT_TX_CLAIMED, &st->tx.claim);
}

/* Takes the claim if nobody has it. */
bool weft_tx_try_claim(struct weft_stream *st)
{
	return !test_and_set_bit_lock(WEFT_TX_CLAIMED, &st->tx.claim);
}

/* Lets go of the claim; marks left meanwhile are the caller's to notice. */
void weft_tx_unclaim(struct weft_stream *st)
{
	clear_bit_unlock(WEFT_TX_CLAIMED, &st->tx.claim);
	smp_mb__after_atomic();	/* pairs with the one in weft_tx_mark() */
}

/**
 * weft_tx_run - run tx here and now unless somebody does
 * @st: stream
 *
 * A mark left by others while we owned the claim is served before we go, so no
 * kick is lost. Context: process, may sleep.
 */
void weft_tx_run(struct weft_stream *st)
{
	bool more;

	do {
		while (test_and_set_bit_lock(WEFT_TX_CLAIMED, &st->tx.claim))
			if (!weft_tx_mark(st))
				return;	/* its owner sees the mark */
		if (test_bit(WEFT_TX_AGAIN, &st->tx.claim))
			clear_bit(WEFT_TX_AGAIN, &st->tx.claim);
		smp_mb__after_atomic();	/* news that came before is seen from here on */
		more = turn(st);
		weft_tx_unclaim(st);
		if (more) {
			weft_stream_kick_atomic(st);
			return;
		}
	} while (test_bit(WEFT_TX_AGAIN, &st->tx.claim));
}

/* Takes the claim, waiting for its owner to leave; an owner never blocks on TCP. */
void weft_tx_claim_wait(struct weft_stream *st)
{
	while (test_and_set_bit_lock(WEFT_TX_CLAIMED, &st->tx.claim))
		usleep_range(20, 100);
}

/**
 * weft_tx_settle - send what is posted by now, as far as TCP takes it
 * @st: stream about to be aborted
 *
 * A kick may have been left to a worker, or not been needed since one is looking;
 * that worker may come too late. Context: process, may sleep.
 */
void weft_tx_settle(struct weft_stream *st)
{
	if (!weft_sendq_waiting(st->cfg.sq))
		return;
	weft_tx_mark(st);	/* a worker that stays with the queue goes */
	weft_tx_claim_wait(st);
	turn(st);
	weft_tx_unclaim(st);
}

/**
 * weft_tx_response_in - a response has freed a credit
 * @st: stream, socket lock held
 *
 * Also the closing stream waits for its last response.
 */
void weft_tx_response_in(struct weft_stream *st)
{
	smp_mb();	/* the pop before, the mark after; pairs with waits() */
	if (test_and_clear_bit(WEFT_TX_WAITS, &st->tx.claim) ||
	    READ_ONCE(st->state) == WEFT_QP_CLOSING)
		st->rx.kick = true;
}
