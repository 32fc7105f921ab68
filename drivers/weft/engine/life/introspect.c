// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Looking into a stream from outside. What belongs to an owner is read without
 * asking it: each value is true of some moment, not all of the same one. The
 * socket is safe to look at while @lifecycle is held, and a caller that does not get
 * that at once does without, so that no operator waits for a stream that hangs.
 */
#include "engine/life/introspect.h"

#include <linux/jiffies.h>

#include "base/counters.h"
#include "engine/life/stream.h"
#include "engine/life/teardown.h"
#include "engine/state/stream.h"
#include "net/tcp_socket.h"
#include "ring/sendq.h"

/* The owner writes these without a lock; any value that was true at some moment will do. */
#define SNAPSHOT(_value) data_race(_value)

static_assert(WEFT_STREAM_QUEUES == WEFT_DDP_QUEUES);

/* Context: any. The values may change while they are read. */
void weft_stream_query(struct weft_stream *st, struct weft_stream_info *out)
{
	*out = (struct weft_stream_info){
		.state = READ_ONCE(st->state),
		.started = READ_ONCE(st->cm_events),
		.ird = SNAPSHOT(st->ird),
		.ord = SNAPSHOT(st->ord),
		.mulpdu = SNAPSHOT(st->tx.sock.mulpdu),
		.sq_drained = SNAPSHOT(st->tx.drained),
	};
}

/**
 * weft_stream_get_error - why it failed
 * @st: stream
 * @out: written completely
 *
 * Context: any.
 */
void weft_stream_get_error(struct weft_stream *st, struct weft_stream_end *out)
{
	*out = (struct weft_stream_end){
		.fault = SNAPSHOT(st->fault.fault),
		.peer_terminated = READ_ONCE(st->peer_terminated),
		.peer_fault = READ_ONCE(st->peer_fault),
	};
}

/**
 * weft_stream_inspect - everything an operator may want to know
 * @st: stream
 * @out: written completely
 *
 * Context: process.
 */
void weft_stream_inspect(struct weft_stream *st, struct weft_stream_details *out)
{
	const struct weft_readq *q = &st->readq;
	u32 i;

	memset(out, 0, sizeof(*out));
	weft_stream_get_error(st, &out->end);
	/* Pairs with take_socket(): what is written before is there. A RESET may take it away. */
	out->started = smp_load_acquire(&st->cm_events);
	if (!out->started)
		return;
	out->initiator = SNAPSHOT(st->initiator);
	out->gate_open = READ_ONCE(st->gate_open);
	out->rnr_waits = READ_ONCE(st->rnr_waits);
	out->mpa = SNAPSHOT(st->mpa);
	for (i = 0; i < WEFT_STREAM_QUEUES; i++) {
		out->tx_msn[i] = SNAPSHOT(st->tx.ddp.msn[i]);
		out->rx_msn[i] = SNAPSHOT(st->rx.ddp.msn[i]);
	}
	out->ord_used = SNAPSHOT(q->sent_tail - q->sent_head);
	out->ird_used = SNAPSHOT(q->owed_tail - q->owed_head);
	out->staged = SNAPSHOT(st->tx.sock.pos);
	out->pushed = SNAPSHOT(st->tx.sock.pushed);
	if (mutex_trylock(&st->lifecycle)) {
		if (st->sock) {
			weft_tcp_get_info(st->sock, &out->tcp);
			out->connected = !weft_sock_local(st->sock, &out->local) &&
					 !weft_sock_peer(st->sock, &out->peer);
		}
		mutex_unlock(&st->lifecycle);
	}
}

/* --- counters ------------------------------------------------------------ */

/**
 * weft_stream_count_tcp - count what TCP has counted since the last time
 * @st: stream, @lifecycle held
 *
 * Context: process, without the socket lock.
 */
void weft_stream_count_tcp(struct weft_stream *st) __must_hold(&st->lifecycle)
{
	struct weft_tcp_stats *then = &weft_stream_life(st)->tcp_counted;
	struct weft_counters *c = st->cfg.counters;
	const struct weft_tcp_stats *now;
	struct weft_tcp_info info;

	lockdep_assert_held(&st->lifecycle);
	if (!st->sock)
		return;
	weft_tcp_get_info(st->sock, &info);
	now = &info.counts;
	/* TCP's own counts begin at zero with each connection, and wrap. */
	weft_count_add(c, WEFT_CTR_TCP_RETRANS, now->retrans - then->retrans);
	weft_count_add(c, WEFT_CTR_TCP_RETRANS_BYTES, now->retrans_bytes - then->retrans_bytes);
	weft_count_add(c, WEFT_CTR_TCP_DSACKS, now->dsacks - then->dsacks);
	weft_count_add(c, WEFT_CTR_TCP_REORDERED, now->reordered - then->reordered);
	weft_count_add(c, WEFT_CTR_TCP_OUT_OF_ORDER, now->out_of_order - then->out_of_order);
	weft_count_add(c, WEFT_CTR_TCP_ECN_MARKS, now->ecn_marks - then->ecn_marks);
	*then = *now;
}

/**
 * weft_stream_count_tcp_all - the same for all streams of a device
 * @index: of the device
 * @max_age: jiffies since the last time that make it worth while
 *
 * Context: process.
 */
void weft_stream_count_tcp_all(struct weft_stream_index *index, unsigned long max_age)
{
	struct weft_stream *st;
	unsigned long qpn;

	if (time_before(jiffies, READ_ONCE(index->tcp_counted) + max_age))
		return;
	WRITE_ONCE(index->tcp_counted, jiffies);
	xa_for_each(&index->xa, qpn, st) {
		st = weft_stream_find(index, qpn);
		if (!st)
			continue;
		/* Else it starts or ends: then it counts by itself. */
		if (mutex_trylock(&st->lifecycle)) {
			weft_stream_count_tcp(st);
			mutex_unlock(&st->lifecycle);
		}
		weft_stream_put(st);
	}
}

/**
 * weft_stream_count_in - count what the stream does from now on in another block
 * @st: stream
 * @to: counters whose block outlives the stream's use of it by a grace period
 *
 * Context: process.
 */
void weft_stream_count_in(struct weft_stream *st, const struct weft_counters *to)
{
	mutex_lock(&st->lifecycle);
	weft_stream_count_tcp(st);
	weft_counters_redirect(&st->counters, to);
	mutex_unlock(&st->lifecycle);
}
