// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The rx loop. It runs under the socket lock, so the lock is its claim: in the socket's
 * callback as a rule, in a worker when memory was short or bytes came before the callbacks.
 * It never sleeps and never sends: what must be sent is queued, and the caller runs tx.
 * Order of checks: RFC 5041, 7.1; RFC 5040, 7.
 */
#include "engine/path/rx.h"

#include <linux/uio.h>

#include "base/copy.h"
#include "base/counters.h"
#include "base/trace.h"
#include "engine/ops/complete.h"
#include "engine/ops/msg_stats.h"
#include "engine/ops/table.h"
#include "engine/path/rx_batch.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "mem/access.h"
#include "mem/rights.h"
#include "net/tcp_socket.h"
#include "proto/hot.h"
#include "proto/mpa_start.h"
#include "ring/cq.h"

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
		rx->placed = 0;
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

const struct weft_mpa_rx_events weft_rx_mpa_events = {
	.ulpdu = ulpdu,
	.span = weft_rxrow_take,
	.fault = framing_lost,
};

/**
 * weft_rx_settle - tell the completion that was held back, if its region is quiet
 * @st: stream, socket lock held: nobody else settles or holds meanwhile
 * @batch: completion queues to notify afterwards
 *
 * Return: a region to wait for, with a reference for weft_mem_quiesce(): then call again; NULL
 * if nothing is held back any more.
 */
struct weft_mem_region *weft_rx_settle(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_rx_held held = st->rx.held;

	if (!held.busy)
		return NULL;
	if (!weft_mem_quiet(held.busy))
		return weft_mem_busy_get(held.busy);
	memset(&st->rx.held, 0, sizeof(held));
	if (held.swr)
		weft_retire_done(st, held.swr, WEFT_FAULT_NONE, batch);
	else
		weft_retire_receive(st, &held.cqe, batch);
	weft_mem_quiesce(held.busy);
	return NULL;
}

/**
 * weft_rx_read - read all there is
 * @st: stream, socket lock held
 * @batch: completion queues to notify afterwards
 *
 * Context: any up to softirq. Return: -EAGAIN if reading was paused, for memory or a completion
 * that is held back, and a worker has to go on; else 0. @st->rx.kick tells whether tx has
 * something to do.
 */
int weft_hot weft_rx_read(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_rx *rx = &st->rx;
	int err;

	rx->kick = false;
	if (rx->held.busy && !weft_mpa_rx_is_stopped(&rx->sock))
		return -EAGAIN;
	rx->batch = batch;
	err = weft_mpa_rx_run_locked(&rx->sock, st->sock);
	weft_mem_release(&rx->mem);
	weft_mem_release(&rx->rq_mem);
	rx->batch = NULL;
	return err == -EAGAIN ? err : 0;
}

/**
 * weft_rx_judge - see whether the connection has come to its end
 * @st: stream, socket lock held
 *
 * A FIN may be told before the bytes in front of it were read, so they are read first: where
 * reading is paused, by the worker that goes on with it, which judges then. A FIN inside an
 * FPDU is a lost connection (RFC 5044, 4.1).
 *
 * Context: any up to softirq.
 */
void weft_rx_judge(struct weft_stream *st)
{
	enum weft_sock_state state = weft_sock_state(st->sock);

	if (!weft_mpa_rx_is_stopped(&st->rx.sock) &&
	    (st->rx.held.busy || weft_mpa_rx_is_paused(&st->rx.sock)))
		return;
	if (state == WEFT_SOCK_PEER_CLOSED)
		weft_stream_lose(st, weft_mpa_rx_idle(&st->rx.sock) ? WEFT_QP_PEER_CLOSED :
								      WEFT_QP_CONN_LOST);
	else if (state == WEFT_SOCK_LOST)
		weft_stream_lose(st, WEFT_QP_CONN_LOST);
}
