// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Where rx is entered. What it brings for tx to do is done right there: the socket is locked
 * already, and the peer waits.
 */
#include "engine/run/rx_entry.h"

#include <linux/interrupt.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "engine/ops/op.h"
#include "engine/path/rx.h"
#include "engine/run/doorbell.h"
#include "engine/state/stream.h"
#include "mem/mr_ops.h"
#include "net/tcp_internals.h"
#include "net/tcp_socket.h"
#include "proto/hot.h"
#include "ring/cq.h"

/**
 * weft_rx_schedule - let a worker read
 * @st: stream with a socket
 *
 * For bytes and a FIN that came before the callbacks; after a shortage of memory; after a
 * completion was held back; when a message no longer waits for a receive. Context: any.
 */
void weft_rx_schedule(struct weft_stream *st)
{
	queue_work(st->wq, &st->rx_work);
}

static void weft_hot read_socket(void *owner)
{
	struct weft_stream *st = owner;
	struct weft_cq_batch batch;
	bool wants_tx;

	batch.count = 0;
	if (weft_rx_read(st, &batch) == -EAGAIN) {
		weft_count(st->cfg.counters, WEFT_CTR_RX_WORK_QUEUED);
		weft_rx_schedule(st);
	}
	wants_tx = st->rx.tx_needed;
	weft_cq_batch_fire(&batch);
	if (wants_tx)
		weft_tx_softirq(st);
}

/*
 * TCP sends an ACK for every second segment that it finds read, and one for all that is read
 * later. So a burst without GRO is read when the softirq has received it. Not what is waited
 * for: the peer sends Read Responses on by these ACKs. Nor what is only drained: TCP answers a
 * close with bytes unread by a reset.
 */
static void weft_hot readable(void *owner)
{
	struct weft_stream *st = owner;

	weft_count(st->cfg.counters, WEFT_CTR_SK_DATA_READY);
	if (weft_tcp_in_burst(st->sock->sk) && !weft_readq_sent_head(&st->readq) &&
	    !weft_mpa_rx_is_stopped(&st->rx.sock))
		tasklet_schedule(&st->rx_burst);
	else
		read_socket(st);
}

/* The softirq has received what there was. */
static void rx_burst(struct tasklet_struct *tasklet)
{
	struct weft_stream *st = container_of(tasklet, struct weft_stream, rx_burst);

	if (weft_sock_call(st->sock, read_socket))
		return;
	weft_count(st->cfg.counters, WEFT_CTR_RX_WORK_QUEUED);
	weft_rx_schedule(st);
}

static void weft_hot writable(void *owner)
{
	struct weft_stream *st = owner;

	weft_count(st->cfg.counters, WEFT_CTR_SK_WRITE_SPACE);
	weft_tx_softirq(st);
}

static void changed(void *owner)
{
	struct weft_stream *st = owner;

	weft_count(st->cfg.counters, WEFT_CTR_SK_DATA_READY);
	read_socket(st);
	weft_rx_check_fin(st);
}

const struct weft_sock_events weft_rx_sock_events = {
	.readable = readable,
	.writable = writable,
	.changed = changed,
};

/* Reads what no callback will announce. */
static void rx_work(struct work_struct *work)
{
	struct weft_stream *st = container_of(work, struct weft_stream, rx_work);
	struct weft_cq_batch batch = {};
	struct weft_mpa_rx_pages *stock = NULL;
	struct weft_mem_region *busy;

	if (weft_mpa_rx_is_paused(&st->rx.sock) && !READ_ONCE(st->rnr_waits))
		weft_mpa_rx_pages_fill(&stock, weft_sock_allocation(st->sock));
	weft_sock_lock(st->sock);
	busy = weft_rx_settle(st, &batch);
	if (!busy) {
		weft_mpa_rx_adopt(&st->rx.sock, &stock);
		if (weft_rx_read(st, &batch) == -EAGAIN) {
			weft_count(st->cfg.counters, WEFT_CTR_RX_WORK_QUEUED);
			weft_rx_schedule(st);
		}
		weft_rx_check_fin(st);
	}
	weft_sock_unlock(st->sock);
	weft_mpa_rx_pages_drop(stock);
	kfree(stock);
	weft_cq_batch_fire(&batch);
	if (busy) {
		weft_mem_quiesce(busy);
		weft_rx_schedule(st);
		return;
	}
	weft_tx_process(st); /* also for a close that waited for what was held back */
}

/* For a stream that is being made. */
void weft_rx_entry_init(struct weft_stream *st)
{
	INIT_WORK(&st->rx_work, rx_work);
	tasklet_setup(&st->rx_burst, rx_burst);
}

/*
 * Tasklet and worker read no more, and nothing is left that would have them, or tx, go on: what
 * queues the worker ends before it does. Context: may sleep; no callback is attached, rx takes no
 * segments, and tx has stopped.
 */
void weft_rx_entry_end(struct weft_stream *st)
{
	tasklet_kill(&st->rx_burst);
	weft_rnr_end(st);
	weft_paging_end(st);
	cancel_work_sync(&st->rx_work);
}

/**
 * weft_rx_stop - take no more segments
 * @st: stream
 *
 * When it returns no callback touches the receive queue or a work request; the socket is still
 * drained, so that the peer's FIN is seen. Context: process.
 */
void weft_rx_stop(struct weft_stream *st)
{
	struct weft_cq_batch batch = {};
	struct weft_mem_region *busy;

	if (st->sock) {
		weft_sock_lock(st->sock);
		weft_rx_discard(st);
		weft_sock_unlock(st->sock);
		cancel_work_sync(&st->rx_work);
		/* What was held back is told, however long that takes. */
		do {
			weft_sock_lock(st->sock);
			busy = weft_rx_settle(st, &batch);
			weft_sock_unlock(st->sock);
			weft_mem_quiesce(busy);
		} while (busy);
		weft_cq_batch_fire(&batch);
	}
	smp_store_release(&st->quiet, true); /* pairs with weft_tx_turn() */
}
