// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The rx loop. It runs under the socket lock, so the lock is its claim: in the socket's
 * callback as a rule, in a worker when memory was short or bytes came before the callbacks.
 * It never sleeps and never sends: what must be sent is queued, and the caller runs tx.
 * Order of checks: RFC 5041, 7.1; RFC 5040, 7.
 */
#include "engine/path/rx.h"

#include <linux/kernel.h>

#include "base/trace.h"
#include "engine/ops/complete.h"
#include "engine/ops/op.h"
#include "engine/ops/rnr.h"
#include "engine/state/fsm.h"
#include "engine/state/loopback.h"
#include "mem/mr_ops.h"
#include "net/tcp_socket.h"
#include "proto/hot.h"

/*
 * The initiator's first FPDU opens our gate (RFC 5044, 7.1.2). In the
 * peer-to-peer model it must be the agreed, empty message (RFC 6581, 5). A
 * Terminate instead of it opens nothing.
 */
static enum weft_fault first_fpdu(struct weft_stream *st, const struct weft_rx_seg *seg)
{
	static const u8 kinds[WEFT_OP_COUNT] = {
		[WEFT_OP_SEND] = WEFT_RTR_SEND,
		[WEFT_OP_WRITE] = WEFT_RTR_WRITE,
		[WEFT_OP_READ_REQ] = WEFT_RTR_READ,
	};
	u8 opcode = weft_rdmap_opcode(seg->ddp.ulp);
	u8 kind = kinds[opcode];
	struct weft_rx *rx = &st->rx;
	u32 length = seg->payload;
	struct weft_read_req req;

	if (opcode == WEFT_OP_TERMINATE && !seg->ddp.tagged)
		return WEFT_FAULT_NONE;
	rx->first_seen = true;
	if (rx->rtr_kinds) {
		if (kind == WEFT_RTR_READ) {
			weft_read_req_parse(seg->head, &req);
			length = req.length;
		}
		if (!(kind & rx->rtr_kinds) || !seg->ddp.last || length)
			return WEFT_FAULT_RDMAP_OPCODE;
		rx->rtr_send = kind == WEFT_RTR_SEND;
	}
	WRITE_ONCE(st->gate_open, true);
	rx->tx_needed = true;
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

static enum weft_fault dispatch_segment(struct weft_stream *st, struct weft_rx_seg *seg)
{
	const struct weft_rx_op *op = weft_rx_op(weft_rdmap_opcode(seg->ddp.ulp));
	struct weft_rx *rx = &st->rx;
	enum weft_fault fault = WEFT_FAULT_NONE;

	if (seg->ddp.tagged ? !rx->msgs.tagged_open : !rx->ddp.open[seg->ddp.qn])
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
	weft_count_add2(st->cfg.counters, WEFT_CTR_RX_MSGS, 1,
			weft_msg_stats[weft_rdmap_opcode(seg->ddp.ulp)].received, 1);
	trace_weft_message_received(st->cfg.ifindex, st->qpn, weft_rdmap_opcode(seg->ddp.ulp),
				    seg->ddp.tagged ? rx->placed : seg->ddp.mo + seg->payload,
				    seg->ddp.msn);
	if (seg->ddp.tagged)
		rx->placed = 0;
	return op->end(st, seg);
}

static enum weft_fault refuse_segment(struct weft_stream *st, const struct weft_rx_seg *seg,
				      enum weft_fault fault)
{
	const struct weft_ulpdu *u = seg->u;

	if (fault == WEFT_FAULT_STOPPED || fault == WEFT_FAULT_NOT_READY)
		return fault;
	weft_count(st->cfg.counters, WEFT_CTR_RX_PROTOCOL_ERRORS);
	/* RFC 5040, 5.4: a Terminate, however broken, is never answered with another. */
	if (!seg->ddp.tagged && weft_rdmap_opcode(seg->ddp.ulp) == WEFT_OP_TERMINATE)
		weft_stream_step(st, WEFT_QP_PEER_TERMINATED);
	else
		weft_stream_fault(st, fault, u->head, u->head_len, u->len);
	return fault;
}

/* One whole ULPDU; anything but NONE and NOT_READY ends reception (RFC 5041, 7.1). */
static enum weft_fault weft_hot ulpdu(void *owner, const struct weft_ulpdu *u)
{
	struct weft_stream *st = owner;
	enum weft_qp_state state = READ_ONCE(st->state);
	struct weft_rx_seg seg __uninitialized;
	enum weft_fault fault;

	if (state != WEFT_QP_RTS && state != WEFT_QP_CLOSING)
		return WEFT_FAULT_STOPPED;
	seg.u = u;
	seg.row = NULL;
	seg.batch = st->rx.batch;
	seg.ddp.tagged = true;	/* until its header is known, it is no Terminate */
	fault = check_headers(st, &seg);
	if (fault == WEFT_FAULT_NONE && !st->rx.first_seen)
		fault = first_fpdu(st, &seg);
	if (fault == WEFT_FAULT_NONE)
		fault = dispatch_segment(st, &seg);
	if (fault != WEFT_FAULT_NONE)
		return refuse_segment(st, &seg, fault);
	weft_count_add2(st->cfg.counters, WEFT_CTR_RX_SEGS, 1, WEFT_CTR_RX_BYTES, seg.payload);
	if (!seg.ddp.last && seg.payload) {
		st->rx.like = seg.ddp;
		weft_mpa_rx_expect(&st->rx.sock, u->len);
	}
	return WEFT_FAULT_NONE;
}

/*
 * Segments within a message differ from the one before in their offset, and in nothing else.
 * Those that are contiguous are put together to one long segment: one look at memory, and one at
 * the message. Whatever is unusual is left to ulpdu(), which takes them one by one: faults, too,
 * which show there at the segment they belong to. So is the last segment of a message, which
 * shows when all of it is there.
 */

/* How many segments of the span continue the message? */
static u32 count_next(const struct weft_ulpdu_span *span, const struct weft_ddp_hdr *like)
{
	struct weft_ddp_hdr next = *like;
	const u8 *bytes = span->first;
	u8 expected[WEFT_DDP_UNTAGGED_LEN];
	u32 len, n;

	for (n = 0; n < span->count; n++, bytes += span->stride) {
		next.to += like->payload;
		next.mo += like->payload;
		len = weft_ddp_build(&next, expected);
		if (memcmp(bytes, expected, len))
			break;
	}
	return n;
}

/* Returns how many of the span were placed; the next one goes on its own. */
static u32 weft_hot take_like(void *owner, const struct weft_ulpdu_span *span)
{
	struct weft_stream *st = owner;
	enum weft_qp_state state = READ_ONCE(st->state);
	struct weft_ddp_hdr *like = &st->rx.like;
	struct weft_rx_seg seg __uninitialized;
	u32 n;

	if (state != WEFT_QP_RTS && state != WEFT_QP_CLOSING)
		return 0;
	n = count_next(span, like);
	if (!n)
		return 0;
	seg.row = span;
	seg.each = like->payload;
	seg.payload_at = like->hdr_len;
	seg.payload = n * like->payload;
	seg.batch = st->rx.batch;
	seg.ddp = *like;
	seg.ddp.to += like->payload;
	seg.ddp.mo += like->payload;
	seg.ddp.payload = seg.payload;
	if (weft_rx_op(weft_rdmap_opcode(seg.ddp.ulp))->place_batch(st, &seg) != WEFT_FAULT_NONE)
		return 0;
	if (seg.ddp.tagged)
		st->rx.placed += seg.payload;
	else
		weft_ddp_rx_advance(&st->rx.ddp, &seg.ddp);
	like->to += seg.payload;
	like->mo += seg.payload;
	weft_count_add2(st->cfg.counters, WEFT_CTR_RX_SEGS, n, WEFT_CTR_RX_BYTES, seg.payload);
	weft_count_add(st->cfg.counters, WEFT_CTR_RX_BATCHED, n);
	return n;
}

/* Framing is lost: no header of the segment can be believed. */
static void framing_lost(void *owner, enum weft_fault fault)
{
	weft_stream_fault(owner, fault, NULL, 0, 0);
}

const struct weft_mpa_rx_events weft_rx_mpa_events = {
	.ulpdu = ulpdu,
	.span = take_like,
	.fault = framing_lost,
};

/**
 * weft_rx_settle - tell the completion that was held back, if its region is quiet
 * @st: stream, socket lock held: no other context settles or holds meanwhile
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
		weft_complete_done(st, held.swr, WEFT_FAULT_NONE, batch);
	else
		weft_complete_receive(st, &held.cqe, batch);
	weft_mem_quiesce(held.busy);
	return NULL;
}

/**
 * weft_rx_read - read all there is
 * @st: stream, socket lock held
 * @batch: completion queues to notify afterwards
 *
 * Context: any up to softirq. Return: -EAGAIN if reading was paused, for memory or a completion
 * that is held back, and a worker has to go on; else 0, also while a message waits for a receive,
 * or for pages.
 * @st->rx.tx_needed tells whether tx has something to do.
 */
int weft_hot weft_rx_read(struct weft_stream *st, struct weft_cq_batch *batch)
{
	struct weft_rx *rx = &st->rx;
	int err;

	rx->tx_needed = false;
	if (rx->held.busy && !weft_mpa_rx_is_stopped(&rx->sock))
		return -EAGAIN;
	if (unlikely(st->rnr_waits) && weft_rnr_holds(st))
		return 0;
	rx->batch = batch;
	non_block_start(); /* regions are pinned, and an invalidation waits for that */
	err = weft_mpa_rx_run_locked(&rx->sock, st->sock);
	if (unlikely(err == -EAGAIN) && weft_paging_start(st, &rx->paging))
		err = 0;
	weft_mem_release(&rx->mem);
	weft_mem_release(&rx->rq_mem);
	non_block_end();
	rx->batch = NULL;
	if (unlikely(st->loopback))
		weft_loopback_resume(st);
	return err == -EAGAIN && !st->rnr_waits ? err : 0;
}

/**
 * weft_rx_take - take a ULPDU that comes from a peer on this host
 * @st: stream, socket lock held, that would read from its socket now, and has nothing left there
 * @u: the ULPDU
 * @batch: completion queues to notify afterwards
 *
 * Context: any up to softirq. Return: WEFT_FAULT_NOT_READY if it was not taken, and what it waits
 * for is said as for weft_rx_read(); anything else but WEFT_FAULT_NONE: none is taken any more.
 */
enum weft_fault weft_rx_take(struct weft_stream *st, const struct weft_ulpdu *u,
			     struct weft_cq_batch *batch)
{
	struct weft_rx *rx = &st->rx;
	enum weft_fault fault;

	rx->batch = batch;
	fault = ulpdu(st, u);
	rx->sock.expected = 0;
	if (fault != WEFT_FAULT_NONE && fault != WEFT_FAULT_NOT_READY)
		weft_mpa_rx_stop(&rx->sock);
	weft_mem_release(&rx->mem);
	weft_mem_release(&rx->rq_mem);
	rx->batch = NULL;
	return fault;
}

/**
 * weft_rx_discard - take no more segments
 * @st: stream, socket lock held
 *
 * What is in the socket is read and dropped, also what waited for a receive, for pages or for the
 * end of a burst: the peer's FIN stands behind it, and TCP resets what is closed with bytes unread.
 * Context: any up to softirq.
 */
void weft_rx_discard(struct weft_stream *st)
{
	weft_mpa_rx_stop(&st->rx.sock);
	weft_rnr_cancel(st);
	weft_mpa_rx_run_locked(&st->rx.sock, st->sock);
	if (unlikely(st->loopback))
		weft_loopback_resume(st);
}

/**
 * weft_rx_check_fin - see whether the connection has come to its end
 * @st: stream, socket lock held
 *
 * A FIN may be told before the bytes in front of it were read, so they are read first: where
 * reading is paused, by the worker that goes on with it, which judges then. A FIN inside an
 * FPDU is a lost connection (RFC 5044, 4.1).
 *
 * Context: any up to softirq.
 */
void weft_rx_check_fin(struct weft_stream *st)
{
	enum weft_sock_state state = weft_sock_state(st->sock);
	struct weft_rx *rx = &st->rx;
	bool behind;

	/* What came before the end is read first. But a lost connection waits for no receive. */
	if (weft_mpa_rx_is_stopped(&rx->sock))
		behind = false;
	else if (st->rnr_waits)
		behind = state != WEFT_SOCK_LOST || !weft_sock_error(st->sock);
	else
		behind = rx->held.busy || weft_mpa_rx_is_paused(&rx->sock);
	if (behind)
		return;
	if (state == WEFT_SOCK_PEER_CLOSED)
		weft_stream_lose(st, weft_mpa_rx_idle(&rx->sock) ? WEFT_QP_PEER_CLOSED :
								   WEFT_QP_CONN_LOST);
	else if (state == WEFT_SOCK_LOST)
		weft_stream_lose(st, WEFT_QP_CONN_LOST);
}
