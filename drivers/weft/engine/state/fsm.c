// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The state of a stream. The state machine (proto/qp_fsm.h) is stepped under the stream's lock
 * from any context; what its actions need is done by upper layers.
 */
#include "engine/state/fsm.h"

#include <linux/bug.h>
#include <linux/spinlock.h>

#include "base/counters.h"
#include "base/trace.h"
#include "engine/state/stream.h"
#include "net/tcp_socket.h"

/* What cm tells its consumer: 0 for a close that both sides agreed on. */
static int close_reason(const struct weft_stream *st, enum weft_qp_event event)
{
	int err = st->sock ? weft_sock_error(st->sock) : 0;

	switch (event) {
	case WEFT_QP_FAULTED:
	case WEFT_QP_PEER_TERMINATED:
		return -EPROTO;
	case WEFT_QP_TIMED_OUT:
		return -ETIMEDOUT;
	case WEFT_QP_CONN_LOST:
		/* Both FINs are through: TCP is done, and so are we. */
		return err || st->state == WEFT_QP_CLOSING ? err : -ECONNRESET;
	default:
		return 0;
	}
}

/**
 * weft_stream_step - something happened to a stream
 * @st: stream
 * @event: what
 *
 * Context: any up to softirq, also with the socket lock held.
 */
void weft_stream_step(struct weft_stream *st, enum weft_qp_event event)
{
	struct weft_qp_step step;

	spin_lock_bh(&st->lock);
	step = weft_qp_fsm(st->state, event);
	trace_weft_qp_state(st->cfg.ifindex, st->qpn, event, st->state, step.next);
	WARN_ONCE(step.actions & WEFT_QPA_IMPOSSIBLE, "weft: %s in state %s\n",
		  weft_qp_event_name(event), weft_qp_state_name(st->state));
	if (step.actions & WEFT_QPA_TELL_CM)
		st->close_error = close_reason(st, event);
	/* InfiniBand knows no end of a connection, only a peer that does not answer any more. */
	if (st->mpa.direct && step.actions & WEFT_QPA_TELL_CM &&
	    (event == WEFT_QP_CONN_LOST || event == WEFT_QP_PEER_CLOSED))
		st->oldest_fault = WEFT_FAULT_UNREACHABLE;
	if (event == WEFT_QP_CONN_LOST && st->close_error && step.actions & WEFT_QPA_TELL_CM)
		weft_count(&st->counters, WEFT_CTR_CONN_LOST);
	/* Pairs with may_send(): a Terminate tells the fault that was recorded before. */
	smp_store_release(&st->state, step.next);
	st->todo |= step.actions & WEFT_TEARDOWN_ACTIONS;
	spin_unlock_bh(&st->lock);
	if (step.actions & WEFT_TEARDOWN_ACTIONS)
		st->hooks->teardown(st);
	if (step.actions & WEFT_QPA_TX)
		st->hooks->want_tx(st);
}

/**
 * weft_stream_lose - the connection has come to its end
 * @st: stream
 * @event: WEFT_QP_PEER_CLOSED or WEFT_QP_CONN_LOST
 *
 * Where QPs are connected directly, programs end when they have what they wait for, in any
 * order: on InfiniBand the other end does not notice, and a request that finds no peer fails
 * when its time is up. So the stream stays as it is and sends no more; cm, which has the clock,
 * ends it. If TCP has waited for the peer as long, it ends at once.
 *
 * Context: any up to softirq; the socket lock is held, or the tx claim.
 */
void weft_stream_lose(struct weft_stream *st, enum weft_qp_event event)
{
	if (!st->mpa.direct || READ_ONCE(st->state) != WEFT_QP_RTS || !st->cm_events->lost ||
	    weft_sock_error(st->sock) == -ETIMEDOUT) {
		weft_stream_step(st, event);
		return;
	}
	WRITE_ONCE(st->gate_open, false);
	if (!xchg(&st->lost, true))
		st->cm_events->lost(st->cm);
}

/**
 * weft_stream_fault - a rule was broken, by the peer or by us
 * @st: stream
 * @fault: which; only the first one counts (RFC 5040, 7.1)
 * @head: start of the offending ULPDU, NULL if there is none
 * @head_len: bytes of it that can be read
 * @ulpdu_len: its length
 *
 * Context: any up to softirq.
 */
void weft_stream_fault(struct weft_stream *st, enum weft_fault fault, const u8 *head, u32 head_len,
		       u32 ulpdu_len)
{
	const struct weft_fault_info *info = weft_fault_info(fault);

	trace_weft_protocol_error(st->cfg.ifindex, st->qpn, fault, info->layer, info->etype,
				  info->ecode);
	spin_lock_bh(&st->lock);
	if (st->fault.fault == WEFT_FAULT_NONE)
		weft_fault_rec_fill(&st->fault, fault, head, head_len, ulpdu_len);
	spin_unlock_bh(&st->lock);
	weft_stream_step(st, WEFT_QP_FAULTED);
}

/**
 * weft_stream_put - drop a reference to a stream's memory
 * @st: stream; may be gone afterwards
 *
 * Context: any.
 */
void weft_stream_put(struct weft_stream *st)
{
	kref_put(&st->ref, st->hooks->release);
}
