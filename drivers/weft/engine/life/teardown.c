// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The way down. The state machine says what has to be done, in any context; one
 * worker per stream does it, so no data path ever tears itself down or waits for
 * itself.
 */
#include "engine/life/teardown.h"

#include <linux/jiffies.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/wait_bit.h>

#include "base/compat.h"
#include "engine/life/introspect.h"
#include "engine/path/loopback.h"
#include "engine/path/tx.h"
#include "engine/run/doorbell.h"
#include "engine/run/rx_entry.h"
#include "engine/state/claim.h"
#include "engine/state/fsm.h"
#include "net/tcp_socket.h"

/* Deadlines in a row for the Terminate of a stream to be acknowledged. */
#define RENEWALS_MOST	12

/* Tells verbs whose fault it was. */
static void report_fault(struct weft_stream *st)
{
	enum weft_stream_event event = WEFT_STREAM_FATAL;
	enum weft_fault fault = st->fault.fault;

	if (fault >= WEFT_FAULT_TAGGED_STAG && fault <= WEFT_FAULT_TAGGED_WRAP)
		event = WEFT_STREAM_ACCESS_ERR;
	else if (fault >= WEFT_FAULT_RDMAP_STAG && fault <= WEFT_FAULT_RDMAP_PROTECTION)
		event = WEFT_STREAM_ACCESS_ERR;
	else if (fault >= WEFT_FAULT_TAGGED_VERSION && fault <= WEFT_FAULT_RDMAP_OPERATION)
		event = WEFT_STREAM_REQ_ERR;
	st->cfg.events->async(st->cfg.owner, event);
}

static void tell_closing(struct weft_stream *st)
{
	if (!st->cm_events || weft_stream_teardown(st)->told_closing)
		return;
	weft_stream_teardown(st)->told_closing = true;
	st->cm_events->closing(st->cm, st->close_error);
}

/*
 * A batch that TCP took only in part leaves a torn FPDU: no orderly close then. Of one that it has
 * not touched nothing is missing: what completed before is in TCP, and a reset would lose that.
 */
static void close_socket(struct weft_stream *st) __must_hold(&st->lifecycle)
{
	struct weft_sock *sock = st->sock;
	bool torn;

	lockdep_assert_held(&st->lifecycle);
	if (!sock)
		return;
	weft_loopback_end(st);
	weft_sock_detach(sock);
	weft_rx_entry_end(st);	/* queued by a callback meanwhile */
	weft_stream_count_tcp(st);
	weft_mpa_rx_free(&st->rx.sock, sock);
	torn = weft_mpa_tx_is_torn(&st->tx.sock);
	weft_mpa_tx_free(&st->tx.sock);
	if (torn)
		weft_sock_reset(sock);
	weft_sock_release(sock);
	st->sock = NULL;
}

/* The one way down, in this order: rx, the claim of tx, the socket, the flush, events, cm. */
static void release_stream(struct weft_stream *st)
{
	mutex_lock(&st->lifecycle);
	weft_rx_stop(st);
	timer_delete(&weft_stream_teardown(st)->deadline);
	weft_tx_claim_wait(st);
	close_socket(st);
	weft_tx_flush(st);
	weft_tx_unclaim(&st->tx.claim);
	mutex_unlock(&st->lifecycle);
	weft_tx_process(st); /* marks that came while we held the claim */
	if (st->cfg.shared_rq)
		st->cfg.events->async(st->cfg.owner, WEFT_STREAM_LAST_WQE);
	tell_closing(st);
	if (st->cm_events)
		st->cm_events->closed(st->cm);
	/* Pairs with weft_teardown_wait(). */
	smp_store_release(&weft_stream_teardown(st)->over, true);
	smp_mb(); /* pairs with the one of prepare_to_wait_event() */
	wake_up_var(&weft_stream_teardown(st)->over);
}

/*
 * A long queue, or a Terminate behind full buffers, may take its time as long as the
 * peer takes bytes; a Read that is waited for, as long as it sends some. Nothing is added any
 * more, so this has an end.
 */
static bool makes_progress(struct weft_stream *st)
{
	struct weft_teardown *down = weft_stream_teardown(st);
	bool moved = false;
	u64 acked, received, handed, taken;

	mutex_lock(&st->lifecycle);
	if (st->sock) {
		acked = weft_tcp_bytes_acked(st->sock);
		received = weft_tcp_bytes_received(st->sock);
		handed = weft_loopback_progress(st, false);
		taken = weft_loopback_progress(st, true);
		moved = acked != down->acked && !weft_tcp_all_acked(st->sock);
		moved |= handed != down->handed;
		if (READ_ONCE(st->state) == WEFT_QP_CLOSING && !weft_readq_idle(&st->readq))
			moved |= received != down->received || taken != down->taken;
		down->handed = handed;
		down->taken = taken;
		down->acked = acked;
		down->received = received;
	}
	mutex_unlock(&st->lifecycle);
	return moved;
}

static void set_deadline(struct weft_stream *st)
{
	unsigned long timeout = msecs_to_jiffies(READ_ONCE(st->index->close_timeout));

	mod_timer(&weft_stream_teardown(st)->deadline, jiffies + timeout);
}

/* Whether the peer makes progress is for the worker to see: that takes a mutex. */
static void teardown_timer_fn(struct timer_list *timer)
{
	struct weft_stream_life *life = timer_container_of(life, timer, down.deadline);

	WRITE_ONCE(life->down.late, true);
	weft_teardown_wake(&life->st);
}

static void check_deadline(struct weft_stream *st)
{
	struct weft_teardown *down = weft_stream_teardown(st);

	if (!READ_ONCE(down->late))
		return;
	WRITE_ONCE(down->late, false);
	/* One that has failed does not wait for ever for a peer that takes a byte now and then. */
	if (makes_progress(st) &&
	    (READ_ONCE(st->state) != WEFT_QP_TERMINATE || down->renewals++ < RENEWALS_MOST))
		set_deadline(st);
	else
		weft_stream_step(st, WEFT_QP_TIMED_OUT);
}

static void teardown_work(struct work_struct *work)
{
	struct weft_stream *st = &container_of(work, struct weft_stream_life, down.work)->st;
	u32 todo;

	check_deadline(st);
	spin_lock_bh(&st->lock);
	todo = st->todo;
	st->todo = 0;
	spin_unlock_bh(&st->lock);
	if (todo & WEFT_QPA_STOP_RX)
		weft_rx_stop(st);
	if (todo & WEFT_QPA_TELL_CM)
		tell_closing(st);
	if (todo & WEFT_QPA_REPORT)
		report_fault(st);
	if (todo & WEFT_QPA_HALF_CLOSE && st->sock)
		weft_sock_half_close(st->sock);
	if (todo & WEFT_QPA_DEADLINE) {
		makes_progress(st); /* from now on */
		set_deadline(st);
		weft_rx_schedule(st); /* a message that waits for a receive waits no longer */
	}
	if (todo & WEFT_QPA_RELEASE)
		release_stream(st);
}

/* For a stream that is being made. */
void weft_teardown_init(struct weft_stream *st)
{
	INIT_WORK(&weft_stream_teardown(st)->work, teardown_work);
	timer_setup(&weft_stream_teardown(st)->deadline, teardown_timer_fn, 0);
}

/**
 * weft_teardown_wake - there is something in @todo
 * @st: stream
 *
 * Context: any.
 */
void weft_teardown_wake(struct weft_stream *st)
{
	queue_work(st->wq, &weft_stream_teardown(st)->work);
}

/**
 * weft_teardown_wait - until the socket is gone and everybody has been told
 * @st: stream that goes down
 *
 * Context: may sleep; not the stream's worker.
 */
void weft_teardown_wait(struct weft_stream *st)
{
	struct weft_teardown *down = weft_stream_teardown(st);

	/* Pairs with release_stream(). */
	wait_var_event(&down->over, smp_load_acquire(&down->over));
}

/**
 * weft_teardown_end - no worker and no deadline any more
 * @st: stream that is down
 *
 * Context: may sleep; not the stream's worker.
 */
void weft_teardown_end(struct weft_stream *st)
{
	timer_delete_sync(&weft_stream_teardown(st)->deadline);
	cancel_work_sync(&weft_stream_teardown(st)->work);
}

/**
 * weft_teardown_renew - the stream may go down once more
 * @st: stream after weft_teardown_end(), @lifecycle held
 *
 * Context: any.
 */
void weft_teardown_renew(struct weft_stream *st) __must_hold(&st->lifecycle)
{
	struct weft_teardown *down = weft_stream_teardown(st);

	lockdep_assert_held(&st->lifecycle);
	down->acked = 0;
	down->received = 0;
	down->handed = 0;
	down->taken = 0;
	down->renewals = 0;
	down->late = false;
	down->told_closing = false;
	WRITE_ONCE(down->over, false);
	/* TCP counts anew with each connection. */
	memset(&weft_stream_life(st)->tcp_counted, 0, sizeof(struct weft_tcp_stats));
}
