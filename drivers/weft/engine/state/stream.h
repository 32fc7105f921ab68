/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Inside of a stream, for the engine's own files. Grouped by owner: what tx
 * touches, what rx touches, and what both reach under a lock. On a host that talks
 * to itself the two directions run on different CPUs.
 */
#ifndef WEFT_ENGINE_STATE_STREAM_H
#define WEFT_ENGINE_STATE_STREAM_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "base/counters.h"
#include "engine/state/config.h"
#include "engine/state/rnr.h"
#include "engine/state/rx.h"
#include "engine/state/tx.h"
#include "proto/fault.h"
#include "proto/mpa_start.h"
#include "proto/qp_fsm.h"
#include "proto/readq.h"
#include "proto/term.h"

struct weft_defer;
struct weft_loopback;
struct weft_sock;
struct weft_stream_hooks;

/**
 * struct weft_stream - see engine/life/stream.h
 * @sock: among the fields that are not written: both directions look at it each time
 * @lock: @state, @todo, @fault, @close_error, and whether waits for pages are muted
 * @peer_terminated, @peer_fault, @peer_term: a Terminate came, and what it says
 * @lifecycle: start against release: taken to attach and detach the socket
 * @reserved: a connection is being set up for it, and no second one; under @lifecycle
 * @counters: where this stream counts; @cfg.counters points here
 * @mpa, @initiator: as started; written once, before @cm_events
 * @complete_lock: states of work requests, order of completion of the send queue
 * @gate_open: we may send FPDUs (a responder waits for the initiator's first)
 * @rnr_waits: a message waits for a receive; see @rnr, written by the owner of rx
 * @lost: the connection is over, and cm knows; no request that waits fails before its time
 * @oldest_fault: what the oldest request says when it is flushed; NONE: just that
 * @quiet: rx will not touch the receive queue again
 * @discard: the QP is being destroyed or reset: its requests end without completions
 * @loopback: the way to a peer on this host, or NULL; written with tx claim and socket lock
 * @hooks: what lower layers have upper ones do
 * @wq: where its work is done
 * @acked: what the peer had acknowledged when tx ran last in a callback; socket lock
 */
struct weft_stream {
	struct kref ref;
	u32 qpn;
	struct rcu_head rcu;
	struct weft_stream_index *index;
	struct weft_sock *sock;
	struct weft_loopback *loopback;
	struct weft_stream_config cfg;
	struct weft_counters counters;

	spinlock_t lock; /* state, todo, fault, close_error, weft_paging.muted */
	enum weft_qp_state state;
	u32 todo;
	int close_error;
	struct weft_fault_rec fault;
	enum weft_fault peer_fault;
	struct weft_term peer_term;
	bool peer_terminated;
	bool initiator;
	bool gate_open;
	bool rnr_waits;
	bool lost;
	enum weft_fault oldest_fault;
	bool quiet;
	bool reserved;
	bool discard;

	spinlock_t complete_lock; /* states of work requests, index of the oldest */

	struct mutex lifecycle; /* reserved, weft_teardown.acked, weft_teardown.received */
	struct weft_mpa_result mpa;
	const struct weft_stream_hooks *hooks;
	const struct weft_stream_cm_events *cm_events;
	void *cm;
	struct weft_readq readq;
	void *readq_mem;
	u32 ird;
	u32 ord;

	struct weft_tx tx;
	struct weft_defer *defer;
	struct workqueue_struct *wq;
	u64 acked;
	struct delayed_work tx_work;
	struct weft_rx rx ____cacheline_aligned_in_smp;
	struct work_struct rx_work;
	struct tasklet_struct rx_burst;
	struct weft_rnr rnr;
};

#endif
