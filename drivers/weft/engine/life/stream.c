// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Streams: birth, index, states, death. The state machine is stepped under the
 * stream's lock from any context; what may sleep is left to one worker per
 * stream (engine/life/teardown.c).
 */
#include "engine/life/stream.h"

#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/time64.h>

#include "base/limits.h"
#include "base/trace.h"
#include "engine/life/teardown.h"
#include "engine/ops/op.h"
#include "engine/ops/rnr.h"
#include "engine/path/loopback.h"
#include "engine/path/rx.h"
#include "engine/path/tx.h"
#include "engine/run/defer.h"
#include "engine/run/doorbell.h"
#include "engine/run/rx_entry.h"
#include "engine/state/fsm.h"
#include "engine/state/stream.h"
#include "mem/mr_ops.h"
#include "net/mpa_tx.h"
#include "net/tcp_mem_reserve.h"
#include "net/tcp_socket.h"
#include "proto/mpa_start.h"
#include "ring/recvq.h"
#include "ring/sendq.h"

#define QPN_FIRST	2
#define QPN_LAST	0xffffff

/*
 * Storage consumers write through these workers, so they must make progress when memory is
 * short: no work of a process, which may wait for memory, stands in front of theirs.
 */
static struct workqueue_struct *user_wq;
static struct workqueue_struct *kernel_wq;

/* Its size is just above one of those of kmalloc(), and there are thousands. */
static struct kmem_cache *streams;

int weft_stream_module_init(void)
{
	streams = KMEM_CACHE(weft_stream_life, SLAB_ACCOUNT);
	if (!streams)
		return -ENOMEM;
	user_wq = alloc_workqueue("weft_user", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	kernel_wq = alloc_workqueue("weft_kernel", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (user_wq && kernel_wq)
		return 0;
	if (user_wq)
		destroy_workqueue(user_wq);
	if (kernel_wq)
		destroy_workqueue(kernel_wq);
	kmem_cache_destroy(streams);
	return -ENOMEM;
}

void weft_stream_module_exit(void)
{
	destroy_workqueue(user_wq);
	destroy_workqueue(kernel_wq);
	rcu_barrier();	/* for streams that were let go */
	kmem_cache_destroy(streams);
	weft_mpa_tx_module_exit();
	weft_mem_reserve_module_exit();
}

void weft_stream_index_init(struct weft_stream_index *index)
{
	xa_init_flags(&index->xa, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	index->next = 0;
	index->close_timeout = 5 * MSEC_PER_SEC;
	index->rnr_timeout = MSEC_PER_SEC;
	index->sq_poll_interval = 250;
	atomic_set(&index->polled, 0);
	index->atomics = true;
	index->loopback = WEFT_LOOPBACK_NEVER;
	index->tcp_counted = jiffies;
}

void weft_stream_index_destroy(struct weft_stream_index *index)
{
	WARN_ON_ONCE(!xa_empty(&index->xa) || atomic_read(&index->polled));
	xa_destroy(&index->xa);
}

/* --- birth and death ---------------------------------------------------- */

/* In a softirq, where kvfree() may be called; the last reference may be dropped under a lock. */
static void free_late(struct rcu_head *rcu)
{
	struct weft_stream_life *life = container_of(rcu, struct weft_stream_life, st.rcu);
	struct weft_stream *st = &life->st;

	/* Nothing of it is begun after weft_stream_end(). */
	WARN_ON_ONCE(weft_defer_is_active(st) || timer_pending(&life->down.deadline) ||
		     work_pending(&life->down.work) || delayed_work_pending(&st->tx_work) ||
		     work_pending(&st->rx_work));
	mutex_destroy(&st->lifecycle);
	kvfree(st->readq_mem);
	kfree(st->defer);
	kfree(st->rx.rwr.sge);
	kmem_cache_free(streams, life);
}

static void free_stream(struct kref *ref)
{
	call_rcu(&container_of(ref, struct weft_stream, ref)->rcu, free_late);
}

static const struct weft_stream_hooks hooks = {
	.release = free_stream,
	.teardown = weft_teardown_wake,
	.want_tx = weft_tx_schedule,
	.want_rx = weft_rx_schedule,
	.defer = weft_defer_begin,
};

static void init_stream(struct weft_stream *st, struct weft_stream_index *index,
			const struct weft_stream_config *cfg)
{
	kref_init(&st->ref);
	spin_lock_init(&st->lock);
	spin_lock_init(&st->complete_lock);
	mutex_init(&st->lifecycle);
	st->index = index;
	st->hooks = &hooks;
	st->cfg = *cfg;
	st->wq = cfg->kernel ? kernel_wq : user_wq;
	st->counters = *cfg->counters;
	st->cfg.counters = &st->counters;
	st->tx.mem.table = cfg->stags;
	st->tx.mem.pd = cfg->pd;
	st->tx.mem.kernel = cfg->kernel;
	weft_doorbell_init(st);
	weft_rx_entry_init(st);
	weft_rnr_init(st);
	weft_teardown_init(st);
}

/**
 * weft_stream_create - a stream without a connection yet
 * @index: of the device; gives the QP number
 * @cfg: copied; what it points to outlives the stream
 *
 * Context: may sleep. Return: the stream, for weft_stream_end() and then weft_stream_put(),
 * or an ERR_PTR.
 */
struct weft_stream *weft_stream_create(struct weft_stream_index *index,
				       const struct weft_stream_config *cfg)
{
	struct weft_stream_life *life = kmem_cache_zalloc(streams, GFP_KERNEL);
	struct weft_stream *st = &life->st;
	int err = -ENOMEM;

	if (!life)
		return ERR_PTR(err);
	st->rx.rwr.sge = kcalloc(cfg->rq->max_sge, sizeof(*st->rx.rwr.sge), GFP_KERNEL_ACCOUNT);
	if (!st->rx.rwr.sge)
		goto free;
	init_stream(st, index, cfg);
	err = xa_alloc_cyclic_irq(&index->xa, &st->qpn, NULL, XA_LIMIT(QPN_FIRST, QPN_LAST),
				  &index->next, GFP_KERNEL);
	if (err < 0)
		goto free;
	st->tx.mem.qpn = st->qpn;
	st->rx.mem = st->tx.mem;
	st->rx.rq_mem = st->tx.mem;
	st->rx.rq_mem.pd = cfg->rq_pd;
	weft_paging_init(st);
	xa_store_irq(&index->xa, st->qpn, st, GFP_KERNEL);
	return st;
free:
	kfree(st->rx.rwr.sge);
	kmem_cache_free(streams, life);
	return ERR_PTR(err);
}

/**
 * weft_stream_end - end a stream
 * @st: from weft_stream_create(); weft_stream_put() is still to come
 *
 * When it returns all work is flushed, the socket is gone, cm has heard of it,
 * nothing given in the configuration is used any more, and no QP is found by its number.
 * Context: may sleep; never from a callback of the stream.
 */
void weft_stream_end(struct weft_stream *st)
{
	weft_tx_settle(st);
	WRITE_ONCE(st->discard, true);
	weft_stream_step(st, WEFT_QP_ABORT);
	weft_teardown_wait(st);
	xa_erase_irq(&st->index->xa, st->qpn);
	weft_teardown_end(st);
	weft_rx_entry_end(st);
	weft_tx_claim_wait(st);	/* for good: a mark that comes later finds an owner */
	weft_defer_cancel(st);	/* tx begins none any more */
	weft_doorbell_end(st);
	weft_mem_invalidate_windows(&st->tx.mem);
}

/**
 * weft_stream_drain - no worker is left that cm has queued
 * @st: stream after weft_stream_end()
 *
 * cm may have found tx without an owner just before that (weft_tx_limit_ord()). The worker finds
 * one, but looks at the completion queues. Context: may sleep; cm does not know the stream any
 * more.
 */
void weft_stream_drain(struct weft_stream *st)
{
	weft_doorbell_end(st);
}

/**
 * weft_stream_find - look a stream up by QP number
 * @index: of the device
 * @qpn: QP number
 *
 * Context: any. Return: the stream with a reference for weft_stream_put(), or
 * NULL. The reference keeps the memory, not the work: a destroyed stream
 * refuses to start and ignores the rest.
 */
struct weft_stream *weft_stream_find(struct weft_stream_index *index, u32 qpn)
{
	struct weft_stream *st;

	rcu_read_lock();
	st = xa_load(&index->xa, qpn);
	if (st && !kref_get_unless_zero(&st->ref))
		st = NULL;
	rcu_read_unlock();
	return st;
}

/**
 * weft_stream_find_owner - whose stream has a QP number?
 * @index: of the device
 * @qpn: QP number
 *
 * Context: any. Return: the owner given in the configuration, which lasts as the caller makes
 * sure by itself; NULL if there is none.
 */
void *weft_stream_find_owner(struct weft_stream_index *index, u32 qpn)
{
	struct weft_stream *st;
	void *owner;

	rcu_read_lock();
	st = xa_load(&index->xa, qpn);
	owner = st ? st->cfg.owner : NULL;
	rcu_read_unlock();
	return owner;
}

u32 weft_stream_qpn(const struct weft_stream *st)
{
	return st->qpn;
}

void *weft_stream_owner(const struct weft_stream *st)
{
	return st->cfg.owner;
}

/* Its consumer may be a disk that memory is waiting for. */
bool weft_stream_serves_kernel(const struct weft_stream *st)
{
	return st->cfg.kernel;
}

/**
 * weft_stream_set_access - what the peer may do, where an STag allows it as well
 * @st: stream
 * @access: enum ib_access_flags; only remote rights are looked at
 *
 * Holds from the next segment on, in both directions. Context: any; one caller at a time.
 */
void weft_stream_set_access(struct weft_stream *st, u32 access)
{
	weft_mem_set_access(&st->rx.mem, access);
	weft_mem_set_access(&st->tx.mem, access);
}

/**
 * weft_stream_reserve - a connection is going to be set up for a stream
 * @st: the stream
 *
 * Context: process. Return: 0, then weft_stream_start(), weft_stream_refuse() or
 * weft_stream_unreserve() has to follow; or -EINVAL if it is connected, has been, has failed,
 * or another connection is being set up for it.
 */
int weft_stream_reserve(struct weft_stream *st)
{
	int err = 0;

	mutex_lock(&st->lifecycle);
	if (READ_ONCE(st->state) != WEFT_QP_IDLE || st->sock || st->reserved)
		err = -EINVAL;
	else
		WRITE_ONCE(st->reserved, true);
	mutex_unlock(&st->lifecycle);
	return err;
}

/**
 * weft_stream_unreserve - there will be no connection
 * @st: reserved, not started
 *
 * Context: process.
 */
void weft_stream_unreserve(struct weft_stream *st)
{
	mutex_lock(&st->lifecycle);
	WRITE_ONCE(st->reserved, false);
	mutex_unlock(&st->lifecycle);
}

/* Is a connection being set up for it? Any context. */
bool weft_stream_is_reserved(const struct weft_stream *st)
{
	return READ_ONCE(st->reserved);
}

static int init_readq(struct weft_stream *st, const struct weft_mpa_result *mpa, bool initiator)
{
	u32 ord = min(mpa->ord, WEFT_MAX_ORD);
	u32 ird = min(mpa->ird, WEFT_MAX_IRD);

	/* A ready-to-receive Read needs a place even if no depth was agreed, at either end. */
	if (mpa->rtr & WEFT_RTR_READ && initiator)
		ord = max(ord, 1U);
	else if (mpa->rtr & WEFT_RTR_READ)
		ird = max(ird, 1U);
	st->readq_mem = kvzalloc(weft_readq_bytes(ord, ird), GFP_KERNEL);
	if (!st->readq_mem)
		return -ENOMEM;
	weft_readq_init(&st->readq, st->readq_mem, ord, ird);
	st->ord = ord;
	st->ird = ird;
	return 0;
}

static void init_directions(struct weft_stream *st, struct weft_sock *sock,
			    const struct weft_mpa_result *mpa, bool initiator)
{
	/* What the host itself writes to; a server's peers shall not live on its reserves. */
	if (weft_stream_serves_kernel(st) && initiator)
		weft_sock_set_memalloc(sock);
	weft_paging_renew(st);
	st->sock = sock;
	st->mpa = *mpa;
	st->initiator = initiator;
	weft_mpa_tx_init(&st->tx.sock, sock, mpa->crc, mpa->markers_tx, st->cfg.counters);
	weft_mpa_rx_init(&st->rx.sock, mpa->crc, mpa->markers_rx, &weft_rx_mpa_events, st,
			 st->cfg.counters);
	weft_ddp_tx_init(&st->tx.ddp);
	weft_ddp_rx_init(&st->rx.ddp);
	st->gate_open = initiator;
	st->rx.first_seen = initiator;
	st->rx.atomics = READ_ONCE(st->index->atomics);
	st->tx.rtr = initiator ? mpa->rtr : 0;
	st->rx.rtr_kinds = initiator ? 0 : mpa->rtr;
}

static int take_socket(struct weft_stream *st, struct weft_sock *sock,
		       const struct weft_mpa_result *mpa, bool initiator,
		       const struct weft_stream_cm_events *events, void *cm)
	__must_hold(&st->lifecycle)
{
	int err;

	lockdep_assert_held(&st->lifecycle);
	if (READ_ONCE(st->state) != WEFT_QP_IDLE || st->sock)
		return -EINVAL;
	err = init_readq(st, mpa, initiator);
	if (err)
		return err;
	init_directions(st, sock, mpa, initiator);
	WRITE_ONCE(st->reserved, false);
	st->cm = cm;
	smp_store_release(&st->cm_events, events); /* pairs with weft_stream_inspect() */
	return 0;
}

/**
 * weft_stream_start - give a stream its connection
 * @st: stream in state IDLE
 * @sock: connected, start frames exchanged, not attached; the stream owns it
 *	on success
 * @mpa: what the peers agreed on
 * @initiator: we sent the MPA request
 * @events: what cm wants to hear; @closed is called exactly once
 * @cm: handed to @events
 *
 * Context: process. Return: 0, -ENOMEM, or -EINVAL if the stream was started or
 * stopped before.
 */
int weft_stream_start(struct weft_stream *st, struct weft_sock *sock,
		      const struct weft_mpa_result *mpa, bool initiator,
		      const struct weft_stream_cm_events *events, void *cm)
{
	int err;

	mutex_lock(&st->lifecycle);
	err = take_socket(st, sock, mpa, initiator, events, cm);
	if (!err) {
		weft_loopback_start(st);
		weft_stream_step(st, WEFT_QP_STARTED);
		weft_sock_attach(st->sock, &weft_rx_sock_events, st);
		weft_rx_schedule(st);
	}
	mutex_unlock(&st->lifecycle);
	return err;
}

/**
 * weft_stream_refuse - give an initiator's stream a connection only to end it
 * @st: stream in state IDLE
 * @sock: as for weft_stream_start()
 * @mpa: framing the peer expects
 * @fault: what is wrong with the peer's reply (RFC 6581, 9.3)
 * @events: as for weft_stream_start()
 * @cm: as for weft_stream_start()
 *
 * A Terminate is all that is sent; then the stream goes down as after any
 * fault. Context: process. Return: as weft_stream_start().
 */
int weft_stream_refuse(struct weft_stream *st, struct weft_sock *sock,
		       const struct weft_mpa_result *mpa, enum weft_fault fault,
		       const struct weft_stream_cm_events *events, void *cm)
{
	int err;

	mutex_lock(&st->lifecycle);
	err = take_socket(st, sock, mpa, true, events, cm);
	if (!err) {
		WRITE_ONCE(st->gate_open, false); /* no request gets ahead of the Terminate */
		weft_stream_step(st, WEFT_QP_STARTED);
		weft_sock_attach(st->sock, &weft_rx_sock_events, st);
		weft_rx_schedule(st);
		weft_stream_fault(st, fault, NULL, 0, 0);
	}
	mutex_unlock(&st->lifecycle);
	return err;
}

/*
 * A responder waits no longer for the initiator's first FPDU. A stream that goes down takes
 * @lifecycle before its workers are cancelled for the last time. Context: process.
 */
void weft_stream_enable_tx(struct weft_stream *st)
{
	mutex_lock(&st->lifecycle);
	if (READ_ONCE(st->state) != WEFT_QP_ERROR) {
		WRITE_ONCE(st->gate_open, true);
		weft_tx_schedule(st);
	}
	mutex_unlock(&st->lifecycle);
}

/* Orderly: what is posted goes out, then FIN. Any context. */
void weft_stream_close(struct weft_stream *st)
{
	weft_stream_step(st, WEFT_QP_CLOSE);
}

/* At once: everything is flushed. Any context. */
void weft_stream_abort(struct weft_stream *st)
{
	weft_stream_step(st, WEFT_QP_ABORT);
}

/* Are there requests in the send queue without an outcome? Any context; a hint. */
bool weft_stream_waits(const struct weft_stream *st)
{
	const struct weft_sendq *sq = st->cfg.sq;

	return READ_ONCE(weft_sendq_ctl(sq)->prod) != READ_ONCE(sq->cons);
}

/**
 * weft_stream_limit_ord - fewer requests for a response than both sides agreed on
 * @st: stream; without a connection nothing happens
 * @ord: at most; the place of a ready-to-receive Read, which may still be to be sent, stays
 *
 * Context: process.
 */
void weft_stream_limit_ord(struct weft_stream *st, u32 ord)
{
	mutex_lock(&st->lifecycle);
	if (st->readq_mem) {
		if (st->initiator && st->mpa.rtr & WEFT_RTR_READ)
			ord = max(ord, 1U);
		st->ord = min(st->ord, ord);
		weft_tx_limit_ord(st, st->ord);
	}
	mutex_unlock(&st->lifecycle);
}

/**
 * weft_stream_set_user_timeout - how long the peer may leave bytes unacknowledged
 * @st: stream; without a connection nothing happens
 * @ms: milliseconds
 *
 * Context: process.
 */
void weft_stream_set_user_timeout(struct weft_stream *st, unsigned int ms)
{
	mutex_lock(&st->lifecycle);
	if (st->sock)
		weft_sock_set_user_timeout(st->sock, ms);
	mutex_unlock(&st->lifecycle);
}

/* At once, as by weft_stream_abort(); the oldest request says that there is no peer. */
void weft_stream_unreachable(struct weft_stream *st)
{
	/* Before the step: the flush comes after it. */
	WRITE_ONCE(st->oldest_fault, WEFT_FAULT_UNREACHABLE);
	weft_stream_abort(st);
}
