// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The rx loop. It runs under the socket lock, so the lock is its claim: in the
 * socket's callback as a rule, in a worker when memory was short or octets came
 * before the callbacks. Only while another CPU reads (engine/away.c) the claim is
 * that CPU's. It never sleeps and never sends: what must be sent is
 * queued and tx is kicked. Order of checks: RFC 5041, 7.1; RFC 5040, 7.
 */
#include "engine/rx.h"

#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "base/copy.h"
#include "base/counters.h"
#include "base/trace.h"
#include "engine/away.h"
#include "engine/kick.h"
#include "engine/ops.h"
#include "engine/retire.h"
#include "engine/rxrow.h"
#include "engine/stream_state.h"
#include "engine/tally.h"
#include "mem/access.h"
#include "mem/rights.h"
#include "net/inbox.h"
#include "net/rxpages.h"
#include "net/sockevents.h"
#include "net/tcpsock.h"
#include "proto/hot.h"
#include "proto/mpa_start.h"
#include "ring/cq.h"

/* Return: -EFAULT if not all were copied. */
static int copy_rows(const struct weft_ulpdu *u, u32 at, const struct weft_mem_ref *ref)
{
	u32 done = 0;
	u32 row;
	u8 *to = weft_mem_row(ref, done, &row);

	if (WARN_ON_ONCE(at > u->len || ref->len > u->len - at))
		return -EFAULT;
	while (row < ref->len - done) {
		weft_copy(to, u->linear + at + done, row);
		done += row;
		to = weft_mem_row(ref, done, &row);
	}
	return weft_ulpdu_copy_flat(u, at + done, row, to);
}

/**
 * weft_rx_copy_rows - the part of weft_rx_copy() for memory that does not lie in a row
 * @seg: the segment
 * @at: where in its ULPDU the octets are
 * @ref: the memory, granted for writing
 */
enum weft_fault weft_hot weft_rx_copy_rows(const struct weft_rx_seg *seg, u32 at,
					   const struct weft_mem_ref *ref)
{
	struct iov_iter to;
	int err;

	if (seg->u->linear && !IS_ENABLED(CONFIG_HIGHMEM)) {
		err = copy_rows(seg->u, at, ref);
	} else {
		weft_mem_iter(ref, ITER_DEST, &to);
		err = weft_ulpdu_copy(seg->u, at, ref->len, &to);
	}
	return err ? WEFT_FAULT_LOCAL_CATASTROPHIC : WEFT_FAULT_NONE;
}

static __always_inline enum weft_fault place_piece(void *arg, u32 done,
						   const struct weft_mem_ref *ref)
{
	return weft_rx_copy(arg, done, ref);
}

/**
 * weft_rx_place - scatter a segment's payload into an own buffer
 * @user: on whose behalf: of the send queue, or of the receive queue
 * @seg: the segment
 * @sge: elements of the work request
 * @num_sge: how many
 * @offset: where in the buffer they make the payload goes; it fits
 */
enum weft_fault weft_hot weft_rx_place(struct weft_mem_user *user, struct weft_rx_seg *seg,
				       const struct weft_sge *sge, u32 num_sge, u32 offset)
{
	if (!seg->payload)
		return WEFT_FAULT_NONE;
	return weft_mem_walk(user, sge, num_sge, offset, seg->payload, WEFT_MEM_LOCAL_WRITE,
			     place_piece, seg);
}

static u8 rtr_kind(const struct weft_ddp_hdr *ddp)
{
	static const u8 kind[WEFT_OP_COUNT] = {
		[WEFT_OP_SEND] = WEFT_RTR_SEND,
		[WEFT_OP_WRITE] = WEFT_RTR_WRITE,
		[WEFT_OP_READ_REQ] = WEFT_RTR_READ,
	};

	return kind[weft_rdmap_opcode(ddp->ulp)];
}

/* RFC 5040, 5.4: a Terminate, however broken, is never answered with another. */
static bool is_terminate(const struct weft_ddp_hdr *ddp)
{
	return !ddp->tagged && weft_rdmap_opcode(ddp->ulp) == WEFT_OP_TERMINATE;
}

/*
 * The initiator's first FPDU opens our gate (RFC 5044, 7.1.2). In the
 * peer-to-peer model it must be the agreed, empty message (RFC 6581, 5). A
 * Terminate instead of it opens nothing.
 */
static enum weft_fault first_fpdu(struct weft_stream *st, const struct weft_rx_seg *seg)
{
	struct weft_rx *rx = &st->rx;
	u8 kind = rtr_kind(&seg->ddp);

	if (is_terminate(&seg->ddp))
		return WEFT_FAULT_NONE;
	rx->first_seen = true;
	if (rx->rtr_kinds) {
		if (!(kind & rx->rtr_kinds) || !seg->ddp.last || seg->payload)
			return WEFT_FAULT_RDMAP_OPCODE;
		rx->rtr_send = kind == WEFT_RTR_SEND;
	}
	WRITE_ONCE(st->gate_open, true);
	rx->kick = true;
	st->cm_events->ready(st->cm);
	return WEFT_FAULT_NONE;
}

/* DDP and RDMAP headers, in the order the RFCs give. */
static enum weft_fault check_headers(struct weft_stream *st, struct weft_rx_seg *seg)
{
	struct weft_rx *rx = &st->rx;
	const struct weft_ulpdu *u = seg->u;
	enum weft_fault fault;
	u32 hdr_len;

	fault = weft_ddp_parse(u->head, u->len, &seg->ddp);
	if (fault == WEFT_FAULT_NONE)
		fault = weft_rdmap_check(&seg->ddp);
	if (fault == WEFT_FAULT_NONE && !seg->ddp.tagged)
		fault = weft_ddp_rx_check(&rx->ddp, &seg->ddp);
	if (fault == WEFT_FAULT_NONE)
		fault = weft_rdmap_rx_check(&rx->msgs, &rx->ddp, &seg->ddp);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	hdr_len = weft_rdmap_info(weft_rdmap_opcode(seg->ddp.ulp))->hdr_len;
	seg->head = u->head + seg->ddp.hdr_len;
	seg->payload_at = seg->ddp.hdr_len + hdr_len;
	seg->payload = seg->ddp.payload - hdr_len;
	return WEFT_FAULT_NONE;
}

static bool is_first(const struct weft_rx *rx, const struct weft_ddp_hdr *ddp)
{
	return ddp->tagged ? weft_rdmap_rx_first_tagged(&rx->msgs) :
			     weft_ddp_rx_first(&rx->ddp, ddp);
}

/* Of a tagged message. A process may look for it there, and not in a completion queue. */
static void whole_in_memory(struct weft_stream *st)
{
	st->rx.placed = 0;
	if (st->cfg.helper)
		weft_porter_news(&st->cfg.helper->porter.news);
}

static enum weft_fault dispatch(struct weft_stream *st, struct weft_rx_seg *seg)
{
	const struct weft_rx_op *op = weft_rx_op(weft_rdmap_opcode(seg->ddp.ulp));
	struct weft_rx *rx = &st->rx;
	enum weft_fault fault = WEFT_FAULT_NONE;

	if (is_first(rx, &seg->ddp))
		fault = op->begin(st, seg);
	if (fault == WEFT_FAULT_NONE && !seg->ddp.tagged)
		fault = weft_ddp_rx_check_offset(&rx->ddp, &seg->ddp, U64_MAX);
	if (fault == WEFT_FAULT_NONE)
		fault = op->place(st, seg);
	if (fault != WEFT_FAULT_NONE)
		return fault;
	if (seg->ddp.tagged)
		rx->placed += seg->payload;
	weft_rdmap_rx_advance(&rx->msgs, &seg->ddp);
	if (!seg->ddp.tagged)
		weft_ddp_rx_advance(&rx->ddp, &seg->ddp);
	if (!seg->ddp.last)
		return WEFT_FAULT_NONE;
	weft_tally_received(st->cfg.counters, weft_rdmap_opcode(seg->ddp.ulp));
	trace_weft_message_received(st->cfg.ifindex, st->qpn, weft_rdmap_opcode(seg->ddp.ulp),
				    seg->ddp.tagged ? rx->placed : seg->ddp.mo + seg->payload,
				    seg->ddp.msn);
	if (seg->ddp.tagged)
		whole_in_memory(st);
	return op->end(st, seg);
}

static enum weft_fault refuse(struct weft_stream *st, const struct weft_rx_seg *seg,
			      enum weft_fault fault)
{
	const struct weft_ulpdu *u = seg->u;

	if (fault == WEFT_FAULT_STOPPED)
		return fault;
	weft_count(st->cfg.counters, WEFT_CTR_RX_FAULTS);
	if (is_terminate(&seg->ddp))
		weft_stream_step(st, WEFT_QP_PEER_TERMINATED);
	else
		weft_stream_fault(st, fault, u->head, u->head_len, u->len);
	return fault;
}

/* One whole ULPDU; anything but NONE ends reception (RFC 5041, 7.1). */
static enum weft_fault weft_hot ulpdu(void *owner, const struct weft_ulpdu *u)
{
	struct weft_stream *st = owner;
	enum weft_fault fault;
	struct weft_rx_seg seg __uninitialized;

	if (!weft_rx_goes_on(st))
		return WEFT_FAULT_STOPPED;
	seg.u = u;
	seg.row = NULL;
	seg.batch = st->rx.batch;
	seg.ddp.tagged = true;	/* until its header is known, it is no Terminate */
	fault = check_headers(st, &seg);
	if (fault == WEFT_FAULT_NONE && !st->rx.first_seen)
		fault = first_fpdu(st, &seg);
	if (fault == WEFT_FAULT_NONE)
		fault = dispatch(st, &seg);
	if (fault != WEFT_FAULT_NONE)
		return refuse(st, &seg, fault);
	weft_count_two(st->cfg.counters, WEFT_CTR_RX_SEGS, 1, WEFT_CTR_RX_BYTES, seg.payload);
	if (!seg.ddp.last)
		weft_rxrow_expect(st, &seg);
	return WEFT_FAULT_NONE;
}

/* Framing is lost: no header of the segment can be believed. */
static void framing_lost(void *owner, enum weft_fault fault)
{
	weft_stream_fault(owner, fault, NULL, 0, 0);
}

const struct weft_rxsock_events weft_rx_mpa_events = {
	.ulpdu = ulpdu,
	.row = weft_rxrow_take,
	.fault = framing_lost,
};

/**
 * weft_rx_hold - keep a completion back, and what comes behind it
 * @st: stream; @st->rx.held says which completion
 * @busy: region to wait for
 *
 * Reading stops behind this segment and a worker, which may wait, goes on.
 */
void weft_rx_hold(struct weft_stream *st, struct weft_mem_region *busy)
{
	st->rx.held.busy = busy;
	weft_rxsock_pause(&st->rx.sock);
}

/* The region is quiet: what was held back may be told. Socket lock held. */
static void settle(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_rx_held *held = &st->rx.held;

	if (!held->busy)
		return;
	if (held->swr)
		weft_retire_done(st, held->swr, WEFT_FAULT_NONE, batch);
	else
		weft_retire_receive(st, &held->cqe, batch);
	memset(held, 0, sizeof(*held));
}

/* Much, or Reads that were held back, while whoever runs tx below us may be busy for long. */
static bool takes_long(const struct weft_stream *st)
{
	return st->rx.wanted >= WEFT_AWAY_LONG || (st->rx.kick && READ_ONCE(st->tx.held));
}

static bool is_train(const struct weft_stream *st)
{
	return st->rx.longest < WEFT_AWAY_LONG;
}

static int run(struct weft_stream *st, struct weft_inbox *in)
{
	return in ? weft_inbox_read(in, &st->rx.sock) :
		    weft_rxsock_run_locked(&st->rx.sock, st->sock);
}

/**
 * weft_rx_read - read all there is
 * @st: stream
 * @in: from this inbox; NULL: from the socket, whose lock the caller holds
 * @batch: completion queues to notify afterwards
 *
 * Context: owner of rx, any up to softirq.
 */
void weft_hot weft_rx_read(struct weft_stream *st, struct weft_inbox *in,
			   struct weft_cq_batch *batch)
{
	int err = -EAGAIN;

	st->rx.batch = batch;
	st->rx.kick = false;
	st->rx.wanted = 0;
	st->rx.longest = 0;
	if (!st->rx.held.busy)
		err = run(st, in);
	weft_mem_release(&st->rx.mem);
	weft_mem_release(&st->rx.rq_mem);
	st->rx.batch = NULL;
	if (takes_long(st))
		weft_kick_long(st, is_train(st));
	else if (st->rx.kick)
		weft_kick_soon(st);
	if (err == -EAGAIN) {
		weft_count(st->cfg.counters, WEFT_CTR_RX_RETRIES);
		queue_work(weft_stream_wq, &st->rx_work);
	}
}

static void read_here(struct weft_stream *st)
{
	struct weft_cq_batch batch;

	batch.count = 0;
	weft_rx_read(st, NULL, &batch);
	weft_cq_batch_fire(&batch);
}

static void read_much(struct weft_stream *st, u32 octets)
{
	u64 start;

	if (weft_away_takes_over(st, octets))
		return;
	start = ktime_get_ns();
	read_here(st);
	weft_away_learn(st, octets, start);
}

static void weft_hot readable(void *owner)
{
	struct weft_stream *st = owner;
	u32 octets;

	weft_count(st->cfg.counters, WEFT_CTR_RX_WAKEUPS);
	if (!weft_away_is_home(&st->away) && !weft_away_home(st))
		return;
	octets = weft_inbox_waiting(st->sock);
	if (octets < WEFT_AWAY_BULK)
		read_here(st);
	else
		read_much(st, octets);
}

static void writable(void *owner)
{
	struct weft_stream *st = owner;

	weft_count(st->cfg.counters, WEFT_CTR_TX_WAKEUPS);
	weft_kick_room(st);
}

/**
 * weft_rx_judge - see whether the connection has come to its end
 * @st: stream
 *
 * A FIN may be told before the octets in front of it were read, so they are
 * read first. A FIN inside an FPDU is a lost connection (RFC 5044, 4.1).
 *
 * Context: owner of rx, socket lock held.
 */
void weft_rx_judge(struct weft_stream *st)
{
	enum weft_sock_state state = weft_sock_state(st->sock);

	if (state == WEFT_SOCK_PEER_CLOSED)
		weft_stream_step(st, weft_rxsock_idle(&st->rx.sock) ? WEFT_QP_PEER_CLOSED :
								      WEFT_QP_CONN_LOST);
	else if (state == WEFT_SOCK_LOST)
		weft_stream_step(st, WEFT_QP_CONN_LOST);
}

static void changed(void *owner)
{
	readable(owner);
	if (weft_away_home(owner))
		weft_rx_judge(owner);
}

const struct weft_sock_events weft_rx_sock_events = {
	.readable = readable,
	.writable = writable,
	.changed = changed,
};

/* Only the worker sets it back, so it may be looked at without the lock. */
static void wait_for_quiet(struct weft_stream *st)
{
	struct weft_mem_region *busy = READ_ONCE(st->rx.held.busy);

	if (busy)
		weft_mem_quiesce(busy);
}

/**
 * weft_rx_poll - read what no callback will announce
 * @st: stream with a socket
 *
 * After start, for octets and a FIN that came before the callbacks; after a
 * shortage of memory; after a completion was held back. Context: the stream's rx
 * worker; takes the socket lock.
 */
void weft_rx_poll(struct weft_stream *st)
{
	struct weft_cq_batch batch = {};
	struct weft_rxpages *stock = NULL;

	wait_for_quiet(st);
	if (READ_ONCE(st->rx.sock.starved))
		weft_rxpages_fill(&stock, weft_sock_allocation(st->sock));
	weft_sock_lock(st->sock);
	weft_away_recall(st);
	if (weft_away_home(st)) {
		weft_rxsock_adopt(&st->rx.sock, &stock);
		settle(st, &batch);
		weft_rx_read(st, NULL, &batch);
		weft_rx_judge(st);
	}
	weft_sock_unlock(st->sock);
	weft_rxpages_drop(stock);
	kfree(stock);
	weft_cq_batch_fire(&batch);
}

/**
 * weft_rx_stop - take no more segments
 * @st: stream
 *
 * When it returns no callback touches the receive queue or a work request; the
 * socket is still drained, so that the peer's FIN is seen. Context: process.
 */
void weft_rx_stop(struct weft_stream *st)
{
	struct weft_cq_batch batch = {};

	if (st->sock) {
		weft_sock_lock(st->sock);
		weft_rxsock_stop(&st->rx.sock);
		weft_sock_unlock(st->sock);
		weft_errands_end(st);
		weft_away_stop(st);
		cancel_work_sync(&st->rx_work);
		wait_for_quiet(st);
		settle(st, &batch);
		weft_cq_batch_fire(&batch);
	}
	WRITE_ONCE(st->quiet, true);
}
